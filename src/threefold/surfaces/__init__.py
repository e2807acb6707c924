"""Surfaces: thin loops over what the handle can do."""
