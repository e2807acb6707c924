"""Frozen values without input or output: what every other room speaks about."""
