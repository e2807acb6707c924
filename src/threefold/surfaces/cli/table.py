"""A command whose acts are the operations of a service: one loop over the table of operations."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from threefold.errors import InvalidInput
from threefold.surfaces.cli.context import Context

if TYPE_CHECKING:
    from threefold.services import Operation

Print = Callable[[Mapping[str, Any]], None]
Run = Callable[[Context, argparse.Namespace], int]
_Plain, _Described = argparse.ArgumentParser, argparse.RawDescriptionHelpFormatter


class ServiceParser(argparse.ArgumentParser):
    """A command with an act for each operation, made when it is asked for: others need not wait for the services.

    `names` are those of acts that people know by another name than the operation has, `prints` how some are shown; what
    the others give is printed as JSON. `finish` is done to every act.
    """

    def __init__(
        self,
        *arguments: Any,
        operations: Callable[[], Sequence[Operation]],
        names: Mapping[str, str],
        prints: Mapping[str, Print],
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self._operations, self._names, self._prints = operations, names, prints
        self.finish: Callable[[argparse.ArgumentParser], object] = id
        self._acts: Mapping[str, argparse.ArgumentParser] | None = None

    def acts(self) -> Mapping[str, argparse.ArgumentParser]:
        """The act of each operation, by its name."""
        if self._acts is None:
            # Acts are plain parsers: they have no acts of their own.
            added = self.add_subparsers(title="acts", metavar="ACT", required=True, parser_class=_Plain)
            for each in self._operations():
                name = self._names.get(each.name, each.name.replace("_", "-"))
                act = added.add_parser(name, help=each.line, description=each.about, formatter_class=_Described)
                taken = _add_arguments(act, each.takes)
                act.add_argument("--agent", help="as this agent: what it may only suggest waits for the person")
                act.set_defaults(run=_run(each, taken, self._prints.get(each.name)))
                self.finish(act)
            self._acts = dict(added.choices)
        return self._acts

    def parse_known_args(self, *arguments: Any, **more: Any) -> Any:
        """As argparse does, with the acts."""
        self.acts()
        return super().parse_known_args(*arguments, **more)

    def format_help(self) -> str:
        """As argparse does, with the acts."""
        self.acts()
        return super().format_help()


def _add_arguments(act: argparse.ArgumentParser, takes: Mapping[str, Any]) -> Sequence[str]:
    """What an operation needs stands in order, what it may be given by name; returns the names."""
    needed = takes.get("required", ())
    for name, schema in takes["properties"].items():
        about = schema.get("description", "").replace("%", "%%")
        default = schema.get("default")
        if name in needed:
            act.add_argument(name, help=about or None, **_read(name, schema))
        elif schema.get("type") == "boolean":
            flag = f"--no-{name}" if default is True else f"--{name}"
            act.add_argument(flag, dest=name, action="store_const", const=default is not True, help=about or None)
        else:
            shown = f"{about} (default: {default})".strip() if default not in (None, "") else about
            action = "append" if schema.get("type") == "array" else "store"
            flag = f"--{name.replace('_', '-')}"
            act.add_argument(flag, dest=name, action=action, help=shown or None, **_read(name, schema))
    return tuple(takes["properties"])


def _read(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """How a value is read from the command line: choices, and JSON where it is no plain text or number."""
    items = schema.get("items", {}) if schema.get("type") == "array" else schema
    found: dict[str, Any] = {"metavar": name.upper()}
    if "enum" in items:
        found["choices"] = items["enum"]
    if items.get("type") == "object":
        found["type"] = _json
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is no JSON: {error}") from None


def _run(operation: Operation, taken: Sequence[str], show: Print | None) -> Run:
    def run(context: Context, options: argparse.Namespace) -> int:
        given = {name: value for name in taken if (value := getattr(options, name)) is not None}
        many = [name for name in taken if operation.takes["properties"][name].get("type") == "array"]
        # An array that is needed is one JSON text, or several values.
        given |= {name: _list(given[name]) for name in many if name in given}
        with context.open(make=operation.access != "read") as db:
            services = db.user(context.user, context.tenant, agent=options.agent).services
            value = services.call(operation.namespace, operation.name, given, lenient=True)
        if context.json or show is None:
            context.emit(value)
        else:
            show(value)
        return 0

    return run


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise InvalidInput(f"{value!r} is no list; give a JSON list")
