"""Curated memory: what is true about a user, a team, everyone. Formed by people and agents, explicitly."""

from threefold.realms.mem.realm import Mem

__all__ = ["Mem"]
