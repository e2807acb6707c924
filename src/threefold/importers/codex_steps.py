"""The tool calls of Codex: what was called with what, and what came of it, from the many shapes in which it is
recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threefold.importers.base import first_text, items, mapping, text
from threefold.importers.blocks import joined_text
from threefold.importers.records import DamagedError, parse_text
from threefold.model.kinds import StepStatus

CALLS = {
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "tool_call",
    "tool_search_call",
    "web_search_call",
    "image_generation_call",
    "dynamic_tool_call_request",
}
OUTPUTS = {
    "function_call_output",
    "custom_tool_call_output",
    "tool_search_output",
    "local_shell_call_output",
    "tool_result",
}
WITHOUT_OUTPUT = {"web_search_call", "image_generation_call"}  # done when they are recorded
ENDS = {
    "exec_command_end": "shell",
    "mcp_tool_call_end": "mcp",
    "patch_apply_end": "apply_patch",
    "web_search_end": "web_search",
    "image_generation_end": "image_generation",
    "view_image_tool_call": "view_image",
    "dynamic_tool_call_response": "dynamic_tool",
    "collab_agent_spawn_end": "spawn_agent",
    "collab_agent_interaction_end": "send_to_agent",
    "collab_waiting_end": "wait_for_agents",
    "collab_close_end": "close_agent",
    "CommandExecution": "shell",
    "McpToolCall": "mcp",
    "FileChange": "apply_patch",
    "Extension": "web_search",
}
_ARGUMENTS = (
    "command",
    "cwd",
    "arguments",
    "invocation",
    "changes",
    "query",
    "action",
    "path",
    "prompt",
    "revised_prompt",
)
_RESULTS = (
    "aggregated_output",
    "stdout",
    "stderr",
    "exit_code",
    "result",
    "results",
    "content_items",
    "status",
    "statuses",
    "error",
)


def call_of(kind: str, payload: Mapping[str, Any]) -> tuple[str, Any]:
    """The name and the arguments of a call; arguments that are JSON within text are unpacked."""
    name = first_text(payload.get("name"), payload.get("tool"), mapping(payload.get("function")).get("name"))
    given = next((payload[key] for key in ("arguments", "input", "action") if payload.get(key) is not None), None)
    if given is None and kind == "image_generation_call":
        given = payload.get("revised_prompt")
    return name or kind.removesuffix("_request").removesuffix("_call"), unpacked(given)


def unpacked(given: Any) -> Any:
    """`given`, or the JSON object or list that it holds as text."""
    if isinstance(given, str) and given.lstrip()[:1] in ("{", "["):
        try:
            return parse_text(given)
        except DamagedError:
            return given
    return given


def output_of(payload: Mapping[str, Any]) -> tuple[Any, StepStatus]:
    """The result of a call, and whether it was one."""
    result = next((payload[key] for key in ("output", "result", "tools") if payload.get(key) is not None), None)
    result = unpacked(result)
    failed = False
    if isinstance(result, dict):
        code = next(
            (result[k] for k in ("exit_code", "exitCode") if k in result),
            mapping(result.get("metadata")).get("exit_code"),
        )
        failed = result.get("success") is False or (code not in (None, 0) and isinstance(code, int))
        if set(result) <= {"output", "metadata"} and isinstance(result.get("output"), str):
            result = result["output"]
    if isinstance(result, list) and result and all(text(mapping(part).get("text")) for part in result):
        result = joined_text(result)
    elif isinstance(result, dict) and result.get("type") == "input_text":
        result = text(result.get("text"))
    return result, "error" if failed else "completed"


def end_of(kind: str, payload: Mapping[str, Any]) -> tuple[str, Any, Any, StepStatus]:
    """Name, arguments, result and status of a call, from the event that tells of its end."""
    name = first_text(payload.get("tool"), mapping(payload.get("invocation")).get("tool"), ENDS[kind])
    arguments = {key: payload[key] for key in _ARGUMENTS if payload.get(key) not in (None, "", [], {})}
    result = {key: payload[key] for key in _RESULTS if payload.get(key) not in (None, "", [], {})}
    if kind.startswith("image_generation"):
        result.pop("result", None)  # the picture itself, in base64
    outcome = mapping(payload.get("result"))
    code = payload.get("exit_code")
    failed = (
        "Err" in outcome
        or mapping(outcome.get("Ok")).get("isError") is True
        or outcome.get("isError") is True
        or payload.get("success") is False
        or payload.get("status") in ("failed", "declined")
        or (isinstance(code, int) and code != 0)
    )
    only = items(arguments.get("arguments")) or arguments.get("arguments") or arguments.get("invocation")
    return name, only or arguments or None, result or None, "error" if failed else "completed"
