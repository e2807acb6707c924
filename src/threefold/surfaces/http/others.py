"""What is described beside the table of operations: references, files, turns, what there is, how the server is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from threefold.importers import KINDS
from threefold.model.document import STRATEGIES
from threefold.services.schemas import schema_of
from threefold.surfaces.http.lanes import Cancelled, Submission
from threefold.surfaces.http.turns import FinishedTurn, Recorded

_TEXT: Final = {"type": "string"}
_BINARY: Final = {"type": "string", "format": "binary"}
_OBJECT: Final = {"type": "object"}
_REF: Final = {
    "name": "ref", "in": "path", "required": True, "schema": _TEXT,
    "description": "a reference, percent-encoded, its slashes too",
}  # fmt: skip


def _gives(schema: Mapping[str, Any], media: str = "application/json") -> dict[str, Any]:
    return {"description": "done", "content": {media: {"schema": schema}}}


def _query(name: str, schema: Mapping[str, Any], about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": about}


def _form(*fields: str) -> dict[str, Any]:
    properties: dict[str, Any] = {"file": _BINARY, **dict.fromkeys(fields, _TEXT)}
    schema = {"type": "object", "required": ["file"], "properties": properties}
    return {"required": True, "content": {
        "multipart/form-data": {"schema": schema}, "application/octet-stream": {"schema": _BINARY},
    }}  # fmt: skip


def _get(name: str, summary: str, gives: Mapping[str, Any], *parameters: Any, **more: Any) -> dict[str, Any]:
    told = {"operationId": name, "summary": summary, "parameters": [*parameters], "responses": {"200": gives}}
    return {"get": {**told, **more}}


_VIEW: Final = {
    "type": "object",
    "required": ["ref", "kind", "value", "cut"],
    "properties": {
        "ref": _TEXT, "kind": _TEXT, "title": _TEXT, "cut": {"type": "boolean"}, "value": {},
        "at": {"type": ["string", "null"]}, "text": {"type": ["string", "null"]}, "file": _OBJECT,
    },
}  # fmt: skip
_IMPORTED: Final = {
    "type": "object",
    "required": ["imported", "unchanged", "skipped"],
    "properties": {
        "imported": {"type": "integer"}, "unchanged": {"type": "integer"},
        "skipped": {"type": "array", "items": {"type": "object", "properties": {"where": _TEXT, "why": _TEXT}}},
    },
}  # fmt: skip
_COUNTS: Final = {name: {"type": "integer"} for name in ("created", "replaced", "unchanged", "files")}
_RESTORED: Final = {
    "type": "object",
    "required": ["user", "tenant", "from", *_COUNTS],
    "properties": {
        "user": _TEXT, "tenant": _TEXT, **_COUNTS,
        "from": {"type": "object", "required": ["user", "tenant"], "properties": {"user": _TEXT, "tenant": _TEXT}},
    },
}  # fmt: skip
_CAPABILITY: Final = {
    "type": "object", "required": ["id", "description", "confidence"],
    "properties": {"id": _TEXT, "description": _TEXT, "confidence": {"type": "number", "minimum": 0, "maximum": 1}},
}  # fmt: skip
_AGENTS: Final = {
    "type": "object",
    "required": ["agents"],
    "properties": {"agents": {"type": "array", "items": {
        "type": "object", "required": ["name", "description", "capabilities"],
        "properties": {
            "name": _TEXT, "description": _TEXT, "capabilities": {"type": "array", "items": _CAPABILITY},
        },
    }}},
}  # fmt: skip
_SEEN: Final = {"description": "the exact bytes, or a part of them", "content": {"*/*": {"schema": _BINARY}}}
_TURN: Final = schema_of(FinishedTurn)
_PARTS: Final = {"turn": _TEXT, "attachment": _BINARY, "file": _BINARY}
_TURN_FORM: Final = {"type": "object", "required": ["turn"], "properties": _PARTS}

_CONVERSATION: Final = {"name": "conversation", "in": "path", "required": True, "schema": _TEXT}
_AGENT: Final = _query("agent", _TEXT, "the lane of this agent")
_SUBMISSION_FORM: Final = {
    "type": "object", "required": ["text"],
    "properties": {
        **dict.fromkeys(("text", "kind", "agent", "key", "author", "context"), _TEXT),
        "files": {"type": "array", "items": _BINARY},
    },
}  # fmt: skip

OTHERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "/v1/openapi.json": _get("openapi", "Get this description", _gives(_OBJECT)),
    "/v1/services": _get("services", "List what there is, a namespace in a line", _gives(_OBJECT)),
    "/v1/services/{namespace}": _get(
        "about", "Get what a namespace is and can do", _gives(_OBJECT),
        {"name": "namespace", "in": "path", "required": True, "schema": _TEXT},
    ),
    "/v1/services/{namespace}/{operation}": _get(
        "schema", "Get what an operation takes and gives", _gives(_OBJECT),
        {"name": "namespace", "in": "path", "required": True, "schema": _TEXT},
        {"name": "operation", "in": "path", "required": True, "schema": _TEXT},
    ),
    "/v1/agents": _get(
        "agents", "List the agents that answer in lanes; without any, a built-in one does", _gives(_AGENTS),
        **{"x-grant": "conv:read", "tags": ["lanes"]},
    ),
    "/v1/refs/{ref}": {"get": {
        "operationId": "ref", "summary": "Get what a reference names, as JSON or its exact bytes",
        "description": "Bytes come with an ETag, which is their SHA-256, and in parts where a Range is asked for.",
        "parameters": [
            _REF,
            _query("raw", {"type": "string", "enum": ["0", "1"]}, "1 for the exact bytes"),
            _query("size", {"type": "integer", "minimum": 1, "maximum": 100_000}, "the most characters of a text"),
        ],
        "responses": {
            "200": {
                "description": "it", "content": {"application/json": {"schema": _VIEW}, "*/*": {"schema": _BINARY}},
            },
            "206": _SEEN,
            "304": {"description": "the bytes that are known already"},
        },
    }},
    "/v1/refs/{ref}/editions": _get("ref_editions", "Get the references of all editions", _gives(_OBJECT), _REF),
    "/v1/doc/files": {"post": {
        "operationId": "doc_files", "summary": "Take a file in as a document", "x-grant": "doc:write", "tags": ["doc"],
        "parameters": [
            _query("name", _TEXT, "what the file is called, where it is the body"),
            _query("source", _TEXT, "where it comes from: what makes it the same document; its name unless given"),
            _query("title", _TEXT, "by default what the document says"),
            _query("metadata", _TEXT, "a JSON object that it can be filtered by"),
            _query("strategy", {"type": "string", "enum": [*STRATEGIES]}, "how it is cut"),
            _query("chunk_tokens", {"type": "integer"}, "the most tokens of a chunk"),
            _query("overlap", {"type": "integer"}, "tokens before its own that a chunk is given too"),
        ],
        "requestBody": _form("source", "title", "metadata", "strategy", "chunk_tokens", "overlap"),
        "responses": {"200": _gives(_OBJECT)},
    }},
    "/v1/import": {"post": {
        "operationId": "import", "summary": "Import a history of another tool", "x-grant": "conv:write",
        "parameters": [
            _query("name", _TEXT, "what the file is called, where it is the body"),
            _query("kind", {"type": "string", "enum": [*KINDS]}, "the format; found out unless given"),
        ],
        "requestBody": _form("kind"),
        "responses": {"200": _gives(_IMPORTED)},
    }},
    "/v1/restore": {"post": {
        "operationId": "restore", "summary": "Take in what /v1/export gave, as the token's user",
        "description": "Needs every grant to write, and a token of no app or agent. What is there stays.",
        "x-grant": "conv:write",
        "parameters": [
            _query("foreign", {"type": "string", "enum": ["0", "1"]}, "1 takes in the export of another user"),
        ],
        "requestBody": _form("foreign"),
        "responses": {"200": _gives(_RESTORED)},
    }},
    "/v1/export": _get("export", "Get everything of the user as a zip file", _gives(_BINARY, "application/zip")),
    "/v1/turns": {"post": {
        "operationId": "turns", "summary": "Record a finished turn", "x-grant": "conv:write", "tags": ["conv"],
        "requestBody": {"required": True, "content": {
            "application/json": {"schema": _TURN}, "multipart/form-data": {"schema": _TURN_FORM},
        }},
        "responses": {"200": _gives(schema_of(Recorded))},
    }},
    "/v1/lanes/{conversation}": {
        **_get("lane", "Get what runs and waits in a conversation", _gives(_OBJECT), _CONVERSATION, _AGENT,
               **{"x-grant": "conv:read", "tags": ["lanes"]}),
        "post": {
            "operationId": "lane_submit", "summary": "Send something to a conversation; it is kept when this answers",
            "description": "Needs conv:read, mem:read, doc:read and cnv:read too: answers are made of these.",
            "x-grant": "conv:write", "tags": ["lanes"], "parameters": [_CONVERSATION, _AGENT],
            "requestBody": {"required": True, "content": {
                "application/json": {"schema": schema_of(Submission)},
                "multipart/form-data": {"schema": _SUBMISSION_FORM},
            }},
            "responses": {"202": _gives(_OBJECT)},
        },
    },
    "/v1/lanes/{conversation}/cancel": {"post": {
        "operationId": "lane_cancel", "summary": "Stop the turn that runs", "x-grant": "conv:write", "tags": ["lanes"],
        "parameters": [_CONVERSATION, _AGENT],
        "requestBody": {"content": {"application/json": {"schema": schema_of(Cancelled)}}},
        "responses": {"200": _gives(_OBJECT)},
    }},
    "/v1/lanes/{conversation}/submissions/{submission}": {"delete": {
        "operationId": "lane_withdraw", "summary": "Take back a submission that waits, which is the answer",
        "x-grant": "conv:write", "tags": ["lanes"],
        "parameters": [
            _CONVERSATION, {"name": "submission", "in": "path", "required": True, "schema": _TEXT}, _AGENT,
        ],
        "responses": {"200": _gives(_OBJECT)},
    }},
    "/v1/lanes/{conversation}/events": _get(
        "lane_events", "Follow a conversation: AG-UI events as they happen", _gives(_TEXT, "text/event-stream"),
        _CONVERSATION, _AGENT, _query("after", _TEXT, "the id of the last event that was received"),
        **{"x-grant": "conv:read", "tags": ["lanes"]},
    ),
    "/health": _get("health", "Whether the server is alive", _gives(_OBJECT), security=[]),
    "/ready": _get("ready", "Whether the store answers", _gives(_OBJECT), security=[]),
    "/metrics": _get("metrics", "Figures for Prometheus", _gives(_TEXT, "text/plain"), **{"x-grant": "metrics:read"}),
}  # fmt: skip
