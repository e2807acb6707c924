"""Cutting a text into chunks: each a part of it exactly, none longer than so many tokens, in any language. Pure."""

from __future__ import annotations

from threefold.text.chunking.cutting import Chunk, chunk

__all__ = ["Chunk", "chunk"]
