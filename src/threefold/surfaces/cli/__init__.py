"""The command line: `threefold COMMAND`. Each command is a function of one file; `main` finds it."""
