"""Documents: files and texts, cut into chunks that are found, cited and kept up to date."""

from threefold.realms.doc.realm import Doc

__all__ = ["Doc"]
