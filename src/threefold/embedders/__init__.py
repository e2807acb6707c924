"""Texts to vectors: the model that comes with the package."""
