"""Tools over MCP, through the SDK's own client in memory, in both eras."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import fastjsonschema
import pytest
from mcp import Client, MCPError
from mcp_client import ERAS, READ, Tasks, caller, session, text_of

import threefold
from threefold.errors import Unavailable
from threefold.surfaces.mcp import Opening
from threefold.surfaces.mcp.bounds import MOST
from threefold.testing.fakes import Clock, HashEmbedder

SCRIPTS = "Zug 電車 รถไฟ поезд قطار 🚆 e\u0301 \u202e"


@pytest.fixture(params=ERAS)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(**settings: Any) -> threefold.Threefold:
    chosen = {"background": False, "clock": Clock(), "embedder": HashEmbedder(), **settings}
    return threefold.open(":memory:", **chosen)


@pytest.fixture
def db() -> Iterator[threefold.Threefold]:
    with opened() as db:
        yield db


def fill(db: threefold.Threefold, user: str = "ann", tenant: str = "default") -> dict[str, str]:
    """One of everything; what names it."""
    handle = db.user(user, tenant)
    with handle.turn("trip", turn="1", title="Lisbon") as turn:
        turn.prompt(f"Where is the harbour? {SCRIPTS}")
        turn.publish("plan.md", b"# Plan")
        turn.answer("Behind the station")
    memory = handle.mem.remember("prefers the harbour train", context="said in Porto")
    proposal = db.user(user, tenant, agent="mcp").mem.propose("likes the harbour")
    document = handle.doc.ingest("# Harbour\n\nThe harbour opens at nine.", source="harbour.md")
    board = handle.cnv.board("plans")
    cards = [board.pin(ref).id for ref in (memory.ref, document.ref, turn.ref)]
    suggested = db.user(user, tenant, agent="mcp").cnv.board("plans").suggest("task:issue:7").id
    handle.thread("talk").add("user", "about the harbour")
    db.embed_pending()
    return {
        "suggested": suggested,
        "card": cards[0],
        "other": cards[1],
        "memory": memory.id,
        "proposal": proposal.id,
        "document": document.id,
        "turn": turn.ref,
    }


def arguments(made: dict[str, str]) -> dict[str, dict[str, Any]]:
    """A real call of every tool, reading ones first."""
    memory, board = {"id": made["memory"]}, {"board": "plans"}
    card, other = {**board, "card": made["card"]}, {**board, "card": made["other"]}
    return {
        "context": {"goal": "where is the harbour?"}, "search": {"query": "harbour"}, "fetch": {"id": made["turn"]},
        "describe": {"refs": [made["turn"], f"mem:record:{made['memory']}"]}, "services": {},
        "about": {"namespace": "mem", "operation": "get"}, "conv_search": {"query": "harbour", "explain": True},
        "conv_catalog": {"conversation": "trip"}, "conv_list": {}, "conv_get": {"ref": made["turn"]},
        "mem_search": {"query": "harbour", "explain": True}, "mem_list": {}, "mem_proposals": {}, "mem_get": memory,
        "mem_history": memory, "mem_hotset": {}, "doc_search": {"query": "harbour", "explain": True},
        "conv_threads": {}, "conv_thread": {"name": "talk"},
        "conv_editions": {"ref": "conv:fi:conv_trip.turn_1.files/plan.md"},
        "mem_policy": {}, "cnv_list": {}, "cnv_search": {"query": "harbour"}, "cnv_get": board, "cnv_render": board,
        "cnv_history": board, "doc_context": {"query": "harbour"}, "doc_list": {},
        "doc_get": {"id": made["document"]}, "doc_stats": {}, "doc_chunks": {"id": made["document"]},
        "mem_propose": {"memory": f"takes the train {SCRIPTS}"},
        "conv_feedback": {"ref": made["turn"], "reaction": "ok"}, "mem_upsert": {"memory": "drinks tea"},
        "mem_confirm": {"id": made["proposal"]}, "mem_pin": memory, "mem_contradict": memory, "mem_undo": memory,
        "mem_reject": {"id": made["proposal"]}, "mem_retire": memory, "mem_reconcile": {}, "mem_delete": memory,
        "doc_upsert": {"text": "# Tram", "source": "tram.md"}, "doc_delete": {"id": made["document"]},
        "mem_allow": {"rule": "propose"}, "cnv_suggest": {**board, "ref": made["turn"]}, "cnv_suggest_bin": card,
        "cnv_comment": {**card, "text": SCRIPTS}, "cnv_pin": {**board, "ref": "conv:conversation:trip"},
        "cnv_upsert": {"board": "new"}, "cnv_edit": {**board, "ops": [{"op": "rename", "title": "Plans"}]},
        "cnv_move": {**card, "x": 3, "y": 4}, "cnv_resize": {**card, "w": 4, "h": 4},
        "cnv_annotate": {**card, "note": SCRIPTS}, "cnv_accept": card, "cnv_restore": card, "cnv_bin": other,
        "cnv_attach": {**board, "conversation": "trip"}, "cnv_remove": other,
        "cnv_decline": {**board, "card": made["suggested"]}, "cnv_delete": board, "conv_archive": {"name": "talk"},
        "conv_say": {"name": "walk", "role": "user", "text": SCRIPTS}, "mem_undo_reconcile": {"id": "x"},
        "conv_delete": {"conversation": "trip"}, "whoami": {}, "forget": {"confirm": "ann"},
    }  # fmt: skip


@pytest.mark.parametrize(
    "grants", [READ, None, frozenset({"mem:read"}), frozenset({"conv:read", "mem:write"}), frozenset[str]()]
)
def test_the_tools_are_the_operations_that_were_granted(
    db: threefold.Threefold, mode: str, grants: frozenset[str] | None
) -> None:
    db.publish(Tasks())
    who = caller(grants=grants)
    operations = {each.full_name: each for each in db.services(who).operations()}

    async def work(client: Client) -> None:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        assert tools.keys() == operations.keys() | {"services", "about"}
        for name, each in operations.items():
            tool = tools[name]
            assert (tool.title, tool.description, tool.input_schema) == (each.line, each.about, dict(each.takes))
            assert tool.output_schema == dict(each.gives) or name == "task_numbers"
            assert tool.annotations is not None
            hints = tool.annotations.model_dump(exclude_none=True)
            assert hints == {
                "read_only_hint": each.access == "read", "destructive_hint": each.destructive,
                "idempotent_hint": each.idempotent, "open_world_hint": False,
            }  # fmt: skip
            assert (tool.meta or {}).get("threefold/grant", "") == each.grant
        for tool in tools.values():
            assert "$ref" not in json.dumps([tool.input_schema, tool.output_schema])
            assert fastjsonschema.compile(tool.input_schema)
        for name in ("mem_delete", "task_close"):
            if name not in tools:
                with pytest.raises(MCPError, match="unknown tool") as caught:
                    await client.call_tool(name, {"id": "7"})
                assert caught.value.code == -32602

    session(db, work, mode, who)


def test_what_every_tool_gives_fits_its_schema_twice(db: threefold.Threefold, mode: str) -> None:
    calls = arguments(fill(db))

    async def work(client: Client) -> None:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        assert tools.keys() == calls.keys()
        for name, given in calls.items():
            result = await client.call_tool(name, given)
            if name == "mem_undo_reconcile":
                assert "none was applied" in text_of(result)
                continue
            assert not result.is_error, (name, text_of(result))
            fastjsonschema.compile(tools[name].output_schema)(result.structured_content)
            said = text_of(result)
            assert json.loads(said) == result.structured_content
            assert "\\u" not in said.replace("\\u202e", "")
            assert "vector" not in said.replace("vectors", "")
            assert len(said) <= MOST

    session(db, work, mode, caller(grants=None, agent=None))


def test_search_and_fetch_are_what_connectors_of_chat_assistants_expect(db: threefold.Threefold, mode: str) -> None:
    fill(db)

    async def work(client: Client) -> None:
        found = (await client.call_tool("search", {"query": "電車 harbour"})).structured_content
        assert set(found) == {"results"}
        assert len(found["results"]) >= 3
        for each in found["results"]:
            assert set(each) == {"id", "title", "text", "url"}
            result = await client.call_tool("fetch", {"id": each["id"]})
            fetched = result.structured_content
            assert set(fetched) == {"id", "title", "text", "url", "metadata"}
            assert fetched["id"] == each["id"]
            assert "harbour" in fetched["text"].casefold()
        tools = {each.name: each for each in (await client.list_tools()).tools}
        assert tools["search"].input_schema["required"] == ["query"]
        assert tools["fetch"].input_schema["required"] == ["id"]

    session(db, work, mode)


def test_what_goes_wrong_in_a_tool_is_its_result_and_names_the_mend(db: threefold.Threefold, mode: str) -> None:
    db.publish(Tasks())
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("mem_get", {"id": "mem_0"}, "no such memory"),
        ("conv_search", {}, "missing required field `query`; it takes query, [roles]"),
        ("conv_search", {"query": 3}, "query: Expected `str`, got `int`"),
        ("conv_search", {"query": None}, "query: Expected `str`, got `null`"),
        ("conv_search", {"query": "x", "limit": 10**9}, "limit: Expected `int` <= 100"),
        ("conv_search", {"query": "x", "roles": ["nobody"]}, "must be one of assistant"),
        ("conv_search", {"query": "x", "tenant": "other"}, "unknown field `tenant`"),
        ("fetch", {"id": "'; DROP TABLE turns; --"}, "no namespace"),
        ("fetch", {"id": "task:issue:secret"}, "only for its author"),
        ("about", {"namespace": "nothing"}, "is not published"),
        ("about", {"namespace": "mem", "operation": "explode"}, "has no operation"),
        ("task_broken", {}, "it failed: KeyError; the log of the server has more"),
        ("task_unheard", {}, "it failed: TypeError"),
        ("task_much", {"texts": 0, "size": 0, "keys": 20_000}, "too long to be given: ask for less"),
    ]

    async def work(client: Client) -> None:
        for name, given, told in wrong:
            result = await client.call_tool(name, given)
            assert result.is_error, name
            assert result.structured_content is None
            said = text_of(result)
            assert told in said
            assert "Traceback" not in said
            assert "/etc" not in said
        for name in ("", "conv_explode", "x" * 10_000, "conv_search\x00"):
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, {})
            assert caught.value.code == -32602
            assert len(caught.value.message) < 300

    session(db, work, mode)


def test_a_null_where_nothing_need_stand_is_left_out(db: threefold.Threefold) -> None:
    fill(db)
    given = {"query": "harbour", "limit": None, "roles": None, "conversation": None, "explain": None}

    async def work(client: Client) -> None:
        plain = await client.call_tool("conv_search", {"query": "harbour"})
        assert (await client.call_tool("conv_search", given)).structured_content == plain.structured_content

    session(db, work)


@pytest.mark.parametrize(
    "value",
    [None, 0, -1, 10**30, 1.5, True, "", "\x00", SCRIPTS, "x" * 200_000, "%' OR 1=1 --", "../../etc/passwd",
     "conv:ar:conv_trip.turn_1.turn.log", [], [None], ["a"] * 1_000, {}, {"$gt": ""}, {"a": {"b": [None]}}],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_no_value_of_any_argument_breaks_a_tool(db: threefold.Threefold, value: Any) -> None:
    calls = arguments(fill(db))

    async def work(client: Client) -> None:
        for tool in (await client.list_tools()).tools:
            for name in tool.input_schema["properties"]:
                result = await client.call_tool(tool.name, {**calls[tool.name], name: value})
                said = text_of(result)
                assert "Traceback" not in said
                assert "it failed" not in said, (tool.name, name, said)
                assert len(said) <= MOST
                if not result.is_error:
                    fastjsonschema.compile(tool.output_schema)(result.structured_content)

    session(db, work, who=caller(grants=frozenset({"*:read", "*:propose"})))


def test_a_long_result_is_cut_at_its_longest_texts_and_says_so(db: threefold.Threefold) -> None:
    db.publish(Tasks())

    async def work(client: Client) -> None:
        async def much(texts: int, size: int) -> dict[str, Any]:
            result = await client.call_tool("task_much", {"texts": texts, "size": size})
            assert len(text_of(result)) <= MOST
            assert json.loads(text_of(result)) == result.structured_content
            return dict(result.structured_content)

        short = await much(10, 1_000)
        assert "cut" not in short
        long = await much(10, 100_000)
        assert long["cut"] is True
        assert "ask for less" in long["rest"]
        assert len(long["entries"]) == 10
        assert all(5_000 < len(each["text"]) < 6_000 for each in long["entries"])
        many = await much(1_000, 1_000)
        assert many["cut"] is True
        assert 50 < len(many["entries"]) < 1_000
        for each in (long, many):
            assert each["next"] == "x" * 300
            assert {entry["ref"] for entry in each["entries"]} == {"task:issue:7"}

    session(db, work)


def test_values_that_json_has_not_become_values_that_it_has(db: threefold.Threefold, mode: str) -> None:
    db.publish(Tasks())

    async def work(client: Client) -> None:
        assert (await client.call_tool("task_numbers", {})).structured_content == {"result": [1, 2]}
        odd = (await client.call_tool("task_odd", {})).structured_content
        assert odd["number"] is None
        assert odd["at"].startswith("20")

    session(db, work, mode)


def test_apps_appear_and_vanish_and_clients_of_the_first_era_are_told(db: threefold.Threefold) -> None:
    told = anyio.Event()

    async def handler(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            told.set()

    async def work(client: Client) -> None:
        nonlocal told
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed
        assert "task_list" not in {each.name for each in (await client.list_tools()).tools}
        db.publish(Tasks())
        await told.wait()
        assert "task_list" in {each.name for each in (await client.list_tools()).tools}
        told = anyio.Event()
        await anyio.to_thread.run_sync(db.withdraw, "task")
        await told.wait()
        assert "task_list" not in {each.name for each in (await client.list_tools()).tools}

    session(db, work, "legacy", message_handler=handler)
    db.publish(Tasks())


def test_apps_appear_and_vanish_and_streams_of_the_second_era_are_told(db: threefold.Threefold) -> None:
    async def work(client: Client) -> None:
        assert "task_list" not in {each.name for each in (await client.list_tools()).tools}
        async with client.listen(tools_list_changed=True) as events:
            for change, there in ((lambda: db.publish(Tasks()), True), (lambda: db.withdraw("task"), False)):
                await anyio.to_thread.run_sync(change)
                assert type(await anext(events)).__name__ == "ToolsListChanged"
                assert ("task_list" in {each.name for each in (await client.list_tools()).tools}) is there

    session(db, work)


def test_several_calls_run_at_once_and_one_can_be_given_up(db: threefold.Threefold, mode: str) -> None:
    app = Tasks()
    db.publish(app)

    async def work(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "task_both", {})
            group.start_soon(client.call_tool, "task_both", {})
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "task_wait", {})
            await anyio.to_thread.run_sync(app.begun.wait)
            assert not (await client.call_tool("services", {})).is_error
            group.cancel_scope.cancel()
        assert not (await client.call_tool("services", {})).is_error
        app.go.set()

    session(db, work, mode)


def test_a_store_that_cannot_be_opened_is_told_without_its_place_and_tried_again(tmp_path: Path, mode: str) -> None:
    there = False

    def open_() -> threefold.Threefold:
        if not there:
            raise Unavailable(f"store {tmp_path / 'store'}: nobody answers; start it")
        return opened()

    async def work(client: Client) -> None:
        nonlocal there
        result = await client.call_tool("conv_list", {})
        assert result.is_error
        assert text_of(result) == "store the store: nobody answers; start it"
        with pytest.raises(MCPError, match="nobody answers; start it") as caught:
            await client.list_tools()
        assert str(tmp_path) not in caught.value.message
        there = True
        assert len((await client.list_tools()).tools) > 20

    session(Opening(open_, str(tmp_path / "store")), work, mode)


def test_what_is_said_to_a_client_at_first(db: threefold.Threefold, mode: str) -> None:
    async def work(client: Client) -> None:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("threefold", threefold.__version__)
        assert "`context`" in (client.instructions or "")
        capabilities = client.server_capabilities
        assert capabilities.tools
        assert capabilities.resources
        assert capabilities.prompts
        assert capabilities.completions is not None

    session(db, work, mode)
