"""Tools: one for each operation that was granted, and two that tell what there is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from threefold.errors import ThreefoldError
from threefold.services import Caller, Operation, Services
from threefold.services.calls import ALL, Marked, operation_of
from threefold.surfaces.mcp.bounds import sized
from threefold.surfaces.mcp.desk import At, Desk

GRANT: Final = "threefold/grant"
"""Where a tool's `_meta` says which grant it needs."""
# A client that loads tools when they are looked for has these at hand from the beginning.
_AT_HAND: Final = frozenset({"context", "search", "fetch"})
Namespace = Annotated[str, "such as mem; `services` lists them"]
Named = Annotated[str | None, "one of its operations: what it takes and gives"]


def table(at: At) -> Mapping[str, Operation]:
    """Every tool by its name. Where apps make the same one of different words, the one published first has it."""
    found: dict[str, Operation] = {}
    for each in (*at.services.operations(), *_guide(at.services)):
        found.setdefault(each.full_name, each)
    return found


def _guide(offered: Services) -> tuple[Operation, ...]:
    """What there is, in three depths, for a client that does not take in every tool; to tell it needs no grant."""

    def services(caller: Caller) -> dict[str, Any]:  # noqa: ARG001 - every operation is given it
        """List what there is to work with, a namespace in a line; `about` says more of one."""
        return {"services": [each._asdict() for each in offered.introductions()]}

    def about(caller: Caller, namespace: Namespace, operation: Named = None) -> dict[str, Any]:  # noqa: ARG001
        """Tell what a namespace is and can do, or what one of its operations takes and gives.

        The tool of an operation is called `<namespace>_<operation>`; those of `all` have no namespace before them.
        """
        return offered.about(namespace) if operation is None else offered.schema(namespace, operation)

    reading = Marked("read", destructive=False, idempotent=True, free=True)
    return tuple(operation_of(ALL, each.__name__, each, reading) for each in (services, about))


async def list_tools(ctx: ServerRequestContext[Desk], _: PaginatedRequestParams | None) -> ListToolsResult:
    """Answer `tools/list`."""
    desk = ctx.lifespan_context
    desk.told.remember(ctx)
    found = await desk.ask(table)
    return ListToolsResult(tools=[_tool(each) for each in found.values()])


async def call_tool(ctx: ServerRequestContext[Desk], params: CallToolRequestParams) -> CallToolResult:
    """Answer `tools/call`: what goes wrong in a tool is its result, for the model to read and mend."""
    desk = ctx.lifespan_context
    try:
        value, text = await desk.do(partial(_call, params.name, params.arguments or {}))
    except ThreefoldError as error:
        return CallToolResult(content=[TextContent(text=desk.message(error))], is_error=True)
    return CallToolResult(content=[TextContent(text=text)], structured_content=value)


def _call(name: str, arguments: Mapping[str, Any], at: At) -> tuple[Any, str]:
    called = table(at).get(name)
    if called is None:
        raise MCPError(INVALID_PARAMS, f"unknown tool {name[:100]!r}: tools/list has those that there are")
    value = called(at.caller, _given(called, arguments))
    return sized(value if _is_object(called.gives) else {"result": value})


def _given(called: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments; a null where an argument may be left out says just that, as many models write it."""
    left_out = called.takes["properties"].keys() - set(called.takes.get("required", ()))
    return {name: value for name, value in arguments.items() if value is not None or name not in left_out}


def _tool(each: Operation) -> Tool:
    meta: dict[str, Any] = {GRANT: each.grant} if each.grant else {}
    if each.full_name in _AT_HAND:
        meta["anthropic/alwaysLoad"] = True
    gives = dict(each.gives)
    return Tool(
        name=each.full_name,
        title=each.line,
        description=each.about,
        input_schema=dict(each.takes),
        output_schema=gives if _is_object(gives) else {"type": "object", "properties": {"result": gives}},
        annotations=ToolAnnotations(
            read_only_hint=each.access == "read",
            destructive_hint=each.destructive,
            idempotent_hint=each.idempotent,
            open_world_hint=False,
        ),
        _meta=meta or None,
    )


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object"
