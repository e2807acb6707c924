"""Pure functions over text: folding and terms of every script, excerpts. No input or output."""
