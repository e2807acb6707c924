"""Boards: the operations of `cnv` from the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from threefold.surfaces.cli.context import bold, counted, dim, one_line, visible
from threefold.surfaces.cli.table import ServiceParser

if TYPE_CHECKING:
    from threefold.services import Operation

_NAMES: Final = {"get": "show", "upsert": "create"}
_WIDTH: Final = 90


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    prints = {"list": _print_boards, "get": _print_board, "search": _print_hits, "render": _print_text,
              "history": _print_history}  # fmt: skip
    for name in ("pin", "suggest", "suggest_bin", "move", "resize", "annotate", "comment", "accept", "decline", "bin",
                 "restore"):  # fmt: skip
        prints[name] = _print_card
    for name in ("upsert", "attach", "remove", "edit"):
        prints[name] = _print_head
    parsers = commands._parser_class  # noqa: SLF001 - argparse has no public way to give one command its own class
    commands._parser_class = ServiceParser  # noqa: SLF001
    commands.add_parser(
        "board", help="what is set aside: boards of cards that stand for objects", operations=_operations,
        names=_NAMES, prints=prints,
    )  # fmt: skip
    commands._parser_class = parsers  # noqa: SLF001


def _operations() -> Sequence[Operation]:
    from threefold.services.cnv import CnvService

    return tuple(CnvService(_nobody).operations.values())


def _nobody(caller: Any) -> Any:
    """Only the table is looked at."""
    raise AssertionError(caller)


def _print_boards(value: Mapping[str, Any]) -> None:
    for board in value["boards"]:
        _print_head(board)


def _print_head(board: Mapping[str, Any]) -> None:
    cards = board["cards"] if isinstance(board["cards"], int) else len(board["cards"])
    waiting = f", {board['suggested']} suggested" if board.get("suggested") else ""
    attached = f", attached to {', '.join(map(visible, board['attached']))}" if board["attached"] else ""
    archived = ", archived" if board["archived"] else ""
    told = f"{counted(cards, 'cards')}{waiting}{archived}{attached}, revision {board['revision']}"
    ref = visible(board["ref"])
    print(f"{bold(one_line(board['title'], _WIDTH))}  {dim(f'{ref}  {told}')}")


def _print_board(board: Mapping[str, Any]) -> None:
    _print_head(board)
    for card in board["cards"]:
        _print_card(card)


def _print_card(card: Mapping[str, Any]) -> None:
    shown = card.get("shown", {})
    what = shown.get("title") or shown.get("why") or ""
    marks = [each for each in (shown.get("kind"), _standing(shown), _state(card)) if each]
    place = f"{card['rect']['x']:g},{card['rect']['y']:g}"
    told = dim(visible(f"({', '.join(marks)})")) if marks else ""
    print(f"  {card['id']}  {one_line(what, _WIDTH)} {told}".rstrip())
    print(dim(f"    {visible(card['ref'])}  at {place}"))
    if card["note"]:
        print(f"    note: {one_line(card['note'], _WIDTH)}")
    for said in card["comments"]:
        print(f"    {visible(said['agent'] or said['by'])}: {one_line(said['text'], _WIDTH)}")


def _standing(shown: Mapping[str, Any]) -> str:
    standing: str = shown.get("standing", "there")
    return "" if standing == "there" else standing


def _state(card: Mapping[str, Any]) -> str:
    suggestion = card["suggestion"]
    if suggestion is None:
        return "" if card["state"] == "placed" else card["state"]
    why = f": {one_line(suggestion['why'], 60)}" if suggestion["why"] else ""
    act = "suggested" if suggestion["act"] == "pin" else "to be binned, suggested"
    return f"{act} by {suggestion['agent'] or suggestion['by']}{why}"


def _print_hits(value: Mapping[str, Any]) -> None:
    for hit in value["hits"]:
        print(f"{hit['score']:.2f}  {bold(one_line(hit['board']['title'], 40))}  {one_line(hit['text'], _WIDTH)}")
        print(dim(f"      {visible(hit['ref'])}"))
    for warning in value["warnings"]:
        print(dim(visible(warning)))


def _print_text(value: Mapping[str, Any]) -> None:
    print(visible(value["text"]))
    print(dim(counted(value["tokens"], "tokens")))


def _print_history(value: Mapping[str, Any]) -> None:
    for each in value["revisions"]:
        who = visible(each["agent"] or each["by"])
        print(f"{each['revision']:>5}  {each['at'][:16].replace('T', ' ')}  {who}: {', '.join(each['acts'])}")
