"""The description is valid and true: what it says is asked of the server, at random."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from http_server import Server, served
from hypothesis.errors import Unsatisfiable

import threefold
from threefold.surfaces.http.aliases import ALIASES

validator = pytest.importorskip("openapi_spec_validator")
schemathesis = pytest.importorskip("schemathesis")
# Of each operation; in a long run some hundred operations are asked for minutes.
_EXAMPLES = 20 if os.environ.get("THREEFOLD_TEST_PROFILE") == "long" else 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("store")
    with threefold.open(folder, embedder=None, background=False, durable=False) as db:
        ann = db.user("ann")
        with ann.turn("trip", turn="1") as turn:
            turn.prompt("Where is the harbour?")
        ann.mem.remember("prefers trains")
        ann.cnv.board("plans").pin("conv:conversation:trip")
        ann.doc.ingest("# Visa\n\n60 €", "visa.md")
        with served(db) as found:
            yield found


@pytest.fixture(scope="module")
def described(server: Server) -> dict[str, Any]:
    with server.client() as http:
        found: dict[str, Any] = http.get("/v1/openapi.json").json()
    return found


def test_it_is_valid(described: dict[str, Any]) -> None:
    assert described["openapi"] == "3.1.0"
    validator.validate(described)
    templates = [re.sub(r"\{\w+\}", "{}", path) for path in described["paths"]]
    assert len(set(templates)) == len(templates)
    ids = [each["operationId"] for methods in described["paths"].values() for each in methods.values()]
    assert len(set(ids)) == len(ids)


def test_it_has_every_operation_with_its_own_schemas_and_grant(server: Server, described: dict[str, Any]) -> None:
    for each in server.db.user("ann").services.operations():
        path = f"/v1/{each.name}" if each.namespace == "all" else f"/v1/{each.namespace}/{each.name}"
        told = described["paths"][path]
        assert set(told) == ({"get", "post"} if each.access == "read" else {"post"})
        assert told["post"].get("x-grant", "") == each.grant
        assert told["post"]["operationId"] == each.full_name
        body = told["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert body["properties"] == each.takes["properties"]
        assert told["post"]["responses"]["200"]["content"]["application/json"]["schema"] == each.gives
        assert {"4XX", "5XX"} <= told["post"]["responses"].keys()
    for alias in ALIASES:
        assert alias.method.lower() in described["paths"][alias.path]


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_what_it_says_is_so(server: Server, described: dict[str, Any], mode: str) -> None:
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis import GenerationMode, checks
    from schemathesis.specs.openapi import checks as of_openapi

    # Not that all that is off is refused: a null says that an argument is left out.
    held = [
        checks.not_a_server_error, of_openapi.status_code_conformance, of_openapi.content_type_conformance,
        of_openapi.response_schema_conformance,
    ]  # fmt: skip
    # What moves everything is asked elsewhere.
    apart = ("/v1/export", "/v1/import", "/metrics", "/v1/openapi.json")
    asked = 0
    for result in schemathesis.openapi.from_dict(described).get_all_operations():
        operation = result.ok()
        if operation.path in apart:
            continue
        asked += 1

        @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
        @settings(
            max_examples=_EXAMPLES, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def ask(case: Any) -> None:
            case.headers["X-Threefold-Request"] = "1"
            case.call_and_validate(base_url=server.url, checks=held)

        try:
            ask()
        except Unsatisfiable:  # an operation that takes nothing takes nothing wrong
            assert mode == "negative"
    assert asked > 90
