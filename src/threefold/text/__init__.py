"""Pure functions over text: folding and terms of every script, excerpts, dates. No input or output."""
