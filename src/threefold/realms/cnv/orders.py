"""What is asked for, an act with its arguments, becomes a change of a board. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from threefold.errors import Forbidden, InvalidInput
from threefold.model.board import Board
from threefold.realms.cnv import changing, checking
from threefold.realms.cnv.changing import Writer

Clean = Callable[[str], str]


class _Act(NamedTuple):
    """How an act is done, what it must and may be told; what an agent may do; what may make a board."""

    change: Callable[..., Board]
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    by_agents: bool = False
    makes: bool = False


_PLACED: Final = ("x", "y", "conversation", "source")
_ACTS: Final[Mapping[str, _Act]] = {
    "pin": _Act(changing.pin, ("ref",), ("note", *_PLACED), by_agents=True, makes=True),
    "suggest": _Act(changing.suggest, ("ref",), ("note", "why", *_PLACED), by_agents=True, makes=True),
    "suggest_bin": _Act(changing.suggest_bin, ("card",), ("why",), by_agents=True),
    "accept": _Act(changing.accept, ("card",)),
    "decline": _Act(changing.decline, ("card",), by_agents=True),
    "bin": _Act(changing.bin_, ("card",)),
    "restore": _Act(changing.restore, ("card",)),
    "remove": _Act(changing.remove, ("card",)),
    "move": _Act(changing.move, ("card", "x", "y")),
    "resize": _Act(changing.resize, ("card", "w", "h")),
    "annotate": _Act(changing.annotate, ("card", "note")),
    "comment": _Act(changing.comment, ("card", "text"), by_agents=True),
    "rename": _Act(changing.rename, ("title",), makes=True),
    "archive": _Act(changing.archive),
    "reopen": _Act(changing.reopen),
    "attach": _Act(changing.attach, ("conversation",), makes=True),
    "detach": _Act(changing.detach, ("conversation",)),
}


@dataclass(frozen=True, slots=True)
class Order:
    """An act, checked. `card` is the id of the card that it is about, None for one about the board."""

    act: str
    card: str | None
    makes: bool
    apply: Callable[[Board, Writer], Board]


def order(act: object, given: Mapping[str, Any], agent: str | None, clean: Clean, token: str) -> Order:
    """An act with its arguments, of which those that are None are not given.

    `clean` redacts texts; `token` is the id of a comment that is made.

    Raises:
        InvalidInput: the act is unknown, or an argument is missing, unknown or malformed. Forbidden: agents may not.
    """
    known = _ACTS.get(act) if isinstance(act, str) else None
    if known is None or not isinstance(act, str):
        raise InvalidInput(f"op {act!r} is unknown; known are {', '.join(_ACTS)}")
    if agent is not None and not known.by_agents:
        raise Forbidden(f"an agent may not {act}: suggest it; the person arranges")
    values = _checked(act, known, given, clean)
    if agent is not None and act == "pin":
        act = "suggest"
    if act == "comment":
        values["token"] = token
    card = checking.card_of(values["ref"]) if "ref" in values else values.get("card")
    return Order(act, card, known.makes, lambda board, writer: _ACTS[act].change(board, writer, **values))


def _checked(act: str, known: _Act, given: Mapping[str, Any], clean: Clean) -> dict[str, Any]:
    """The arguments as they will be used."""
    told = {name: value for name, value in given.items() if value is not None}
    if missing := [name for name in known.needed if name not in told]:
        raise InvalidInput(f"{act} needs {', '.join(missing)}")
    if unknown := set(given) - {*known.needed, *known.optional}:
        may = ", ".join((*known.needed, *known.optional)) or "nothing"
        raise InvalidInput(f"{act} has no {', '.join(sorted(map(str, unknown)))}; it takes {may}")
    values = {name: checking.ARGUMENTS[name](value) for name, value in told.items()}
    if ("x" in values) != ("y" in values):
        raise InvalidInput("x and y say together where a card lies; give both, or neither")
    values |= {name: clean(values[name]) for name in checking.TEXTS if name in values}
    if "ref" in values:
        full = partial(checking.reference, conversation=values.pop("conversation", None))
        values |= {name: full(values[name], name) for name in ("ref", "source") if name in values}
    return values


def orders(ops: object, agent: str | None, clean: Clean, token: Callable[[], str]) -> tuple[Order, ...]:
    """A batch: each an object whose `op` says which act, with its arguments beside it.

    Raises:
        as `order`, with the place in the batch.
    """
    if isinstance(ops, str | Mapping) or not isinstance(ops, Collection) or not ops:
        raise InvalidInput(
            'ops must be a list with at least one object such as {"op": "move", "card": …, "x": 0, "y": 0}'
        )
    if len(ops) > checking.MAX_ORDERS:
        raise InvalidInput(
            f"ops has {len(ops)} entries, at most {checking.MAX_ORDERS} go at once; make several batches"
        )
    return tuple(_numbered(number, op, agent, clean, token()) for number, op in enumerate(ops))


def _numbered(number: int, op: object, agent: str | None, clean: Clean, token: str) -> Order:
    try:
        if not isinstance(op, Mapping):
            raise InvalidInput(f'{op!r} is no object such as {{"op": "bin", "card": …}}')
        return order(op.get("op"), {name: value for name, value in op.items() if name != "op"}, agent, clean, token)
    except (InvalidInput, Forbidden) as error:
        raise type(error)(f"ops[{number}]: {error}") from None
