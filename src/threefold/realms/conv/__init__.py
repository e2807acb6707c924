"""The record: what happened, when, in what context. Nobody forms it; it is what each turn leaves behind."""

from threefold.realms.conv.realm import Conv
from threefold.realms.wiring import Ports

__all__ = ["Conv", "Ports"]
