"""Every operation of every service, as the table of operations has it: services, call."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from threefold.errors import InvalidInput
from threefold.surfaces.cli.context import Context, bold, dim, visible

if TYPE_CHECKING:
    from threefold.services import Services


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    command = commands.add_parser("services", help="what there is to call: namespaces, operations, arguments")
    command.add_argument("service", nargs="?", help="a namespace, such as mem: what it is and can do")
    command.add_argument("operation", nargs="?", help="one operation of it: what it takes and gives")
    command.set_defaults(run=services)
    command = commands.add_parser(
        "call",
        help="run an operation of a service, a realm's or an app's",
        epilog='arguments: NAME=VALUE, lists by repeating a name, or one JSON object; "-" reads it from standard input',
    )
    command.add_argument("service", help="a namespace, such as conv; `threefold services` lists them")
    command.add_argument("operation", help="one of its operations; `threefold services conv` lists them")
    command.add_argument("arguments", nargs="*", metavar="NAME=VALUE", help="what it takes")
    command.add_argument("--agent", help="call as this agent: what it may only suggest waits for the person")
    command.set_defaults(run=call)


def services(context: Context, options: argparse.Namespace) -> int:
    """What there is, what a namespace is, what an operation takes and gives."""
    with context.open() as db:
        offered = context.handle(db).services
        if options.operation is not None:
            value = offered.schema(options.service, options.operation)
        elif options.service is not None:
            value = offered.about(options.service)
        else:
            value = {"services": [each._asdict() for each in offered.introductions()]}
    if context.json:
        context.emit(value)
    elif options.operation is not None:
        _print_operation(options.service, options.operation, value)
    elif options.service is not None:
        _print_service(value)
    else:
        for each in value["services"]:
            print(f"{bold(visible(each['namespace'])):<10} {visible(each['line'])}")
    return 0


def call(context: Context, options: argparse.Namespace) -> int:
    """Run an operation; what it gives is printed as JSON."""
    with context.open(make=True) as db:
        handle = db.user(context.user, context.tenant, agent=options.agent)
        arguments = _arguments(handle.services, options.service, options.operation, options.arguments)
        context.emit(handle.services.call(options.service, options.operation, arguments, lenient=True))
    return 0


def _print_service(value: Mapping[str, Any]) -> None:
    print(f"{bold(visible(value['namespace']))}: {visible(value['line'])}\n\n{visible(value['about'])}\n")
    for kind, about in value["kinds"].items():
        print(f"  {visible(kind):<14} {visible(about)}")
    print("\noperations:")
    for each in value["operations"]:
        print(f"  {visible(each['name']):<14} {dim(visible(each['grant'])):<14} {visible(each['line'])}")


def _print_operation(service: str, operation: str, value: Mapping[str, Any]) -> None:
    needed = value["input"].get("required", ())
    print(f"{bold(f'{service} {operation}')} {dim(value['grant'])}\n\n{visible(value['about'])}\n")
    for name, schema in value["input"]["properties"].items():
        kind = schema.get("type") or "one of " + ", ".join(map(str, schema.get("enum", ("anything",))))
        more = "" if name in needed else f", default {schema['default']}" if "default" in schema else ", optional"
        print(f"  {visible(name):<16} {dim(f'{kind}{more}')} {visible(schema.get('description', ''))}".rstrip())
    example = " ".join(f"{name}=…" for name in needed)
    print(f"\n  threefold call {service} {operation} {example}".rstrip())


def _arguments(services: Services, service: str, operation: str, given: Sequence[str]) -> dict[str, Any]:
    """The arguments as plain values; of what is no text by its schema, the JSON that stands there."""
    taken = services.operation(service, operation).takes["properties"]
    found: dict[str, Any] = {}
    for each in given:
        if each == "-" or each.lstrip().startswith("{"):
            found |= _object(sys.stdin.read() if each == "-" else each)
            continue
        name, equals, value = each.partition("=")
        if not equals:
            raise InvalidInput(f"argument {each!r} has no value; write {each}=…")
        schema = taken.get(name, {})
        if schema.get("type") == "array":
            found[name] = [*found.get(name, ()), *(_json(name, value) if value.startswith("[") else [value])]
        elif schema.get("type") in ("object", None) and "enum" not in schema and name in taken:
            found[name] = _json(name, value)
        else:
            found[name] = value
    return found


def _object(text: str) -> dict[str, Any]:
    value = _json("arguments", text)
    if not isinstance(value, dict):
        raise InvalidInput('arguments: give a JSON object, such as {"query": "…"}')
    return value


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{name}: {text[:60]!r} is no JSON: {error}") from None
