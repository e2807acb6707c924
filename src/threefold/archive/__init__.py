"""Export and restore: everything of one user in one zip file that other programs can read."""

from threefold.archive.export import export_user
from threefold.archive.packed import Bounds
from threefold.archive.restore import Restored, read_owner, restore_user

__all__ = ["Bounds", "Restored", "export_user", "read_owner", "restore_user"]
