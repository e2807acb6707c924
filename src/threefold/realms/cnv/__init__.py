"""Boards: what people set aside and agents suggest, as cards that stand for objects of every realm."""

from threefold.realms.cnv.board import BoardHandle
from threefold.realms.cnv.realm import Cnv
from threefold.realms.cnv.rendering import read_in_order

__all__ = ["BoardHandle", "Cnv", "read_in_order"]
