"""The one retrieval engine: candidate lists in, ranked hits out. Pure."""
