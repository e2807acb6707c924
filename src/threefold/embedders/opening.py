"""Which embedder a name means. Each is imported when it is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from threefold.errors import InvalidInput, Unavailable
from threefold.ports import Embedder

BUNDLED: Final = "threefold-static-"
"""How the names of all bundled models begin, of this version and of others."""

_ADDRESSES: Final = ("http://", "https://")


def open_embedder(
    chosen: Embedder | str | None,
    model: str | None = None,
    key: str | None = None,
    dimensions: int | None = None,
) -> Embedder | None:
    """`"bundled"`, `"onnx"`, `"multilingual"`, the address of a server, an `Embedder`, or None.

    `model` names the server's model, or the folder of an ONNX model; `key` and `dimensions` are for servers.

    Raises:
        InvalidInput: the name is unknown, or an argument does not go with it. Unavailable: it is not installed.
    """
    given = {
        name
        for name, value in (("embedder_model", model), ("embedder_key", key), ("embedder_dimensions", dimensions))
        if value is not None
    }
    if isinstance(chosen, str) and chosen.startswith(_ADDRESSES):
        from threefold.embedders.http import HttpEmbedder

        return HttpEmbedder(chosen, model or "", key, dimensions)
    if isinstance(chosen, str) and chosen in NAMED:
        make, takes = NAMED[chosen]
        _refuse(given - takes, f"embedder {chosen!r}")
        return make(model)
    if isinstance(chosen, str):
        known = ", ".join(map(repr, NAMED))
        raise InvalidInput(f"embedder {_shown(chosen)} is unknown; give {known}, http(s)://…, None or an Embedder")
    _refuse(given, "embedder None" if chosen is None else "an embedder that is made already")
    if chosen is not None and not isinstance(chosen, Embedder):
        raise InvalidInput(f"embedder {chosen!r} lacks name, dimensions, ready or embed; see threefold.ports.Embedder")
    return chosen


def settings_for(name: str) -> frozenset[str]:
    """Which settings of `Config` go with an embedder of this name."""
    if name.startswith(_ADDRESSES):
        return frozenset({"embedder_model", "embedder_key", "embedder_dimensions"})
    return NAMED[name][1] if name in NAMED else frozenset()


def _refuse(names: set[str], what: str) -> None:
    if names:
        raise InvalidInput(f"{', '.join(sorted(names))}: not for {what}; leave out, or give http(s)://… as embedder")


def _shown(chosen: str) -> str:
    """Something like an address may hold a password."""
    return f"{chosen.partition('://')[0]}://…" if "://" in chosen else repr(chosen[:100])


def _bundled(_: str | None) -> Embedder:
    from threefold.embedders.bundled import StaticEmbedder

    try:
        return StaticEmbedder()
    except (OSError, ValueError) as error:
        raise Unavailable(f"the bundled model cannot be read ({error}); install threefold anew") from None


def _onnx(folder: str | None) -> Embedder:
    from threefold.embedders.onnx import OnnxEmbedder

    return OnnxEmbedder(folder)


def _multilingual(_: str | None) -> Embedder:
    from threefold.embedders.multilingual import MultilingualEmbedder

    return MultilingualEmbedder()


NAMED: Final[Mapping[str, tuple[Callable[[str | None], Embedder], frozenset[str]]]] = {
    "bundled": (_bundled, frozenset()),
    "onnx": (_onnx, frozenset({"embedder_model"})),
    "multilingual": (_multilingual, frozenset()),
}
"""Names that `Config.embedder` knows beside addresses: how each is made, and which settings go with it."""
