"""Chat models: what answers, and by which wire."""
