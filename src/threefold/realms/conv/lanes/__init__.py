"""Lanes: what was sent to a conversation and is not recorded yet, kept so that no process that dies takes it along."""

from threefold.realms.conv.lanes.realm import Lanes

__all__ = ["Lanes"]
