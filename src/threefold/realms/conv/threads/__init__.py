"""Threads: named conversations with a sliding window over the record, and a summary of what left it."""

from threefold.realms.conv.threads.realm import Thread

__all__ = ["Thread"]
