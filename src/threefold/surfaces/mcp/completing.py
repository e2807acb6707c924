"""Completion: ids that begin with what was typed, for arguments of prompts and the gaps of resource templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from mcp.server.context import ServerRequestContext
from mcp_types import CompleteRequestParams, CompleteResult, Completion, PromptReference

from threefold.errors import InvalidInput
from threefold.model.ref import ObjectRef, parse_ref
from threefold.surfaces.mcp.desk import At, Desk
from threefold.surfaces.mcp.listing import last, templates
from threefold.surfaces.mcp.prompts import described

# So many are given, as the protocol has it.
_MOST: Final = 100
_TURNS: Final = 100


async def complete(ctx: ServerRequestContext[Desk], params: CompleteRequestParams) -> CompleteResult:
    """Answer `completion/complete`."""
    found = await ctx.lifespan_context.ask(partial(_complete, params))
    return CompleteResult(completion=Completion(values=found[:_MOST], has_more=len(found) > _MOST))


def _complete(params: CompleteRequestParams, at: At) -> list[str]:
    begun = params.argument.value.casefold()
    fitting = (each for each in _known(params, at) if each.casefold().startswith(begun))
    return list(islice(dict.fromkeys(fitting), _MOST + 1))


def _known(params: CompleteRequestParams, at: At) -> Iterable[str]:
    """What may stand there.

    Raises:
        InvalidInput: there is no such prompt or template.
    """
    name = params.argument.name
    if isinstance(params.ref, PromptReference):
        described(at, params.ref.name)
        return _ids(at, "conv") if name == "thread" else ()
    template = next((each for each in templates(at) if each.uri == params.ref.uri), None)
    if template is None:
        raise InvalidInput("unknown template: resources/templates/list has those that there are")
    if name == "turn":
        return _turns(at, ((params.context and params.context.arguments) or {}).get("conversation"))
    kind = template.name if template.uri.startswith(f"{template.namespace}:{template.name}:") else None
    return _ids(at, template.namespace, kind) if f"{{{name}}}" in template.uri else ()


def _ids(at: At, namespace: str, kind: str | None = None) -> Iterator[str]:
    for ref in last(at, namespace):
        parsed = parse_ref(ref)
        if isinstance(parsed, ObjectRef) and kind in (None, parsed.kind):
            yield parsed.id


def _turns(at: At, conversation: str | None) -> Iterator[str]:
    if conversation:
        asked = {"conversation": conversation, "order": "newest", "limit": _TURNS}
        for each in at.services.call("conv", "catalog", asked)["turns"]:
            yield each["turn"]
