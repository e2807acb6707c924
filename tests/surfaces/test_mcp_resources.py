"""Resources, prompts and completion over MCP; and that nothing of others comes through any of its doors."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_client import ERAS, READ, Tasks, caller, session, text_of
from mcp_types import (
    BlobResourceContents,
    GetPromptResult,
    PromptReference,
    ResourceTemplateReference,
    TextResourceContents,
)

import threefold
from threefold.surfaces.mcp.resources import MOST_BYTES
from threefold.testing.fakes import Clock, HashEmbedder

MISSING = {"legacy": -32002, "auto": -32602}


@pytest.fixture(params=ERAS)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def new() -> Iterator[Callable[[], threefold.Threefold]]:
    opened: list[threefold.Threefold] = []

    def new_() -> threefold.Threefold:
        opened.append(threefold.open(":memory:", background=False, clock=Clock(), embedder=HashEmbedder()))
        opened[-1].publish(Tasks())
        return opened[-1]

    yield new_
    for db in opened:
        db.close()


@pytest.fixture
def db(new: Callable[[], threefold.Threefold]) -> threefold.Threefold:
    return new()


def fill(db: threefold.Threefold, user: str = "ann", tenant: str = "default", word: str = "harbour") -> list[str]:
    """One of everything that says the word; references of it."""
    handle = db.user(user, tenant)
    with handle.turn("地図 a.b", turn="1", title=f"{word} plans") as turn:
        turn.prompt(f"Where is the {word}?")
        turn.publish("plan.md", b"# Plan " + word.encode())
        turn.publish("big.bin", b"x" * (MOST_BYTES + 1))
        turn.step("find", {"city": word}, result=["one"])
        turn.answer(f"The {word} is behind the station")
    memory = handle.mem.remember(f"prefers the {word} train")
    proposal = db.user(user, tenant, agent="mcp").mem.propose(f"likes the {word}", context="line one\nline two")
    document = handle.doc.ingest(f"# Guide\n\nThe {word} opens at nine.\n\n# More\n\nMuch more.", source=f"{word}.md")
    board = handle.cnv.board(f"{word} wall")
    board.pin(memory.ref, note=f"the {word} note")
    board.attach("地図 a.b")
    db.embed_pending()
    chunk = handle.doc.chunks(document.id)[0].ref
    return [turn.ref, "conv:conversation:地図%20a%2Eb", memory.ref, proposal.ref, document.ref, chunk,
            f"cnv:{word}%20wall"]  # fmt: skip


def text(contents: Any) -> str:
    (item,) = contents.contents
    assert isinstance(item, TextResourceContents)
    return item.text


def said(result: GetPromptResult) -> str:
    (message,) = result.messages
    assert message.content.type == "text"
    return message.content.text


async def missing(client: Client, uri: str) -> MCPError:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    return caught.value


def test_what_is_listed_can_be_read_and_so_can_what_templates_lead_to(db: threefold.Threefold, mode: str) -> None:
    refs = fill(db)

    async def work(client: Client) -> None:
        listed = {each.uri: each for each in (await client.list_resources()).resources}
        assert len(listed) == 5
        assert all(uri.isascii() and " " not in uri for uri in listed)
        assert {each.name for each in listed.values()} == {
            "harbour plans", "prefers the harbour train", "Guide", "harbour wall", "Fix the door",
        }  # fmt: skip
        for uri in listed:
            assert text(await client.read_resource(uri))
        for ref in refs:
            fetched = (await client.call_tool("fetch", {"id": ref})).structured_content
            read = text(await client.read_resource(ref))
            assert read == fetched["text"] or (ref == refs[4] and read.startswith(fetched["text"]))
        assert "Much more." in text(await client.read_resource(refs[4]))
        # As a client fills in a template: escaped, but for the full stop.
        assert "Where is" in text(await client.read_resource("conv:conversation:%E5%9C%B0%E5%9B%B3%20a.b"))
        assert json.loads(text(await client.read_resource(f"conv:tc:{refs[0].split(':', 2)[2][:-8]}step_1.result")))

    session(db, work, mode)


def test_files_are_bytes_with_their_kind_and_big_ones_are_led_elsewhere(db: threefold.Threefold, mode: str) -> None:
    head = fill(db)[0].removeprefix("conv:ar:").removesuffix("turn.log")

    async def work(client: Client) -> None:
        (file,) = (await client.read_resource(f"conv:fi:{head}files/plan.md")).contents
        assert isinstance(file, BlobResourceContents)
        assert base64.b64decode(file.blob) == b"# Plan harbour"
        assert file.mime_type == "text/markdown"
        (picture,) = (await client.read_resource("task:picture:7")).contents
        assert isinstance(picture, BlobResourceContents)
        assert (base64.b64decode(picture.blob), picture.mime_type) == (b"\x89PNG", "image/png")
        error = await missing(client, f"conv:fi:{head}files/big.bin")
        assert "--raw" in error.message

    session(db, work, mode)


def test_what_is_not_there_and_what_is_not_theirs_is_told_alike(db: threefold.Threefold, mode: str) -> None:
    refs = fill(db, "bob")
    others = [*refs, "task:issue:secret", "task:issue:8", "nobody:thing:1", "no reference", "file:///etc/passwd", "",
              "mem:", "mem:record:x\x00", "conv:conversation:%ZZ", "conv:" + "x" * 5_000, "cnv:board"]  # fmt: skip

    async def work(client: Client) -> None:
        for uri in others:
            error = await missing(client, uri)
            assert (error.code, error.message, error.data) == (MISSING[mode], "no such resource", {"uri": uri})
        error = await missing(client, "task:issue:broken")
        assert error.message == "it failed: KeyError; the log of the server has more"

    session(db, work, mode)


def test_pages_of_resources_end_and_name_everything_once(db: threefold.Threefold, mode: str) -> None:
    handle = db.user("ann")
    for number in range(60):
        with handle.turn(f"talk {number}", turn="1") as turn:
            turn.prompt(f"number {number}")
        handle.mem.remember(f"fact number {number}")
        if number < 30:
            handle.doc.ingest(f"text {number}", source=f"{number}.md")

    async def work(client: Client) -> None:
        uris, cursor, pages = [], None, 0
        while pages < 10:
            page = await client.list_resources(cursor=cursor)
            assert 0 < len(page.resources) <= 100
            uris += [each.uri for each in page.resources]
            cursor, pages = page.next_cursor, pages + 1
            if cursor is None:
                break
        assert pages == 3
        assert len(uris) == len(set(uris)) == 60 + 8 + 30 + 1
        for wrong in ("x", "", "bnVsbA==", base64.urlsafe_b64encode(b'[1, {"conv": 3}]').decode(), "é" * 100):
            with pytest.raises(MCPError) as caught:
                await client.list_resources(cursor=wrong)
            assert caught.value.code == -32602

    session(db, work, mode)


def test_templates_and_prompts_are_those_of_the_grants(db: threefold.Threefold, mode: str) -> None:
    fill(db)

    async def names(client: Client) -> tuple[set[str], set[str], int]:
        templates = (await client.list_resource_templates()).resource_templates
        prompts = (await client.list_prompts()).prompts
        listed = (await client.list_resources()).resources
        return {each.uri_template.split(":")[0] for each in templates}, {each.name for each in prompts}, len(listed)

    assert session(db, names, mode) == (
        {"conv", "mem", "doc", "cnv", "task"}, {"recall", "remember", "review_proposals"}, 5,
    )  # fmt: skip
    assert session(db, names, mode, caller(grants=frozenset({"mem:read"}))) == ({"mem"}, {"review_proposals"}, 1)
    assert session(db, names, mode, caller(grants=frozenset({"mem:propose"}))) == (set(), {"remember"}, 0)

    async def refused(client: Client) -> None:
        assert (await missing(client, "conv:conversation:地図%20a%2Eb")).message == "no such resource"
        with pytest.raises(MCPError, match="unknown prompt"):
            await client.get_prompt("recall", {"goal": "x"})
        with pytest.raises(MCPError, match="unknown template"):
            await client.complete(ResourceTemplateReference(uri="doc:{id}"), {"name": "id", "value": ""})

    session(db, refused, mode, caller(grants=frozenset({"mem:read"})))


def test_prompts_quote_what_is_known(db: threefold.Threefold, mode: str) -> None:
    fill(db)

    async def work(client: Client) -> None:
        recall = said(await client.get_prompt("recall", {"goal": "go to the harbour", "thread": ""}))
        assert "> prefers the harbour train" in recall
        assert recall.endswith("## What is asked\n\ngo to the harbour")
        assert "`mem_propose`" in said(await client.get_prompt("remember"))
        assert "tea, not coffee" in said(await client.get_prompt("remember", {"note": "tea, not coffee"}))
        review = said(await client.get_prompt("review_proposals"))
        assert "> likes the harbour\n> (line one\n> line two)" in review
        assert "threefold memories confirm" in review
        for given in ({}, {"goal": " "}):
            with pytest.raises(MCPError, match="needs 'goal'") as caught:
                await client.get_prompt("recall", given)
            assert caught.value.code == -32602
        with pytest.raises(MCPError, match="unknown prompt"):
            await client.get_prompt("nothing")

    session(db, work, mode)
    person = caller(grants=None, agent=None)
    assert "`mem_confirm`" in said(session(db, lambda client: client.get_prompt("review_proposals"), mode, person))


def test_ids_that_begin_as_was_typed_are_completed(db: threefold.Threefold, mode: str) -> None:
    refs = fill(db)
    handle = db.user("ann")
    for number in range(120):
        with handle.turn(f"Trip {number}", turn="1") as turn:
            turn.prompt("go")

    async def work(client: Client) -> None:
        async def values(uri: str, name: str, value: str, **context: str) -> list[str]:
            found = await client.complete(
                ResourceTemplateReference(uri=uri), {"name": name, "value": value}, context_arguments=context
            )
            return found.completion.values

        recall = PromptReference(name="recall")
        many = (await client.complete(recall, {"name": "thread", "value": "tRIP"})).completion
        assert (len(many.values), many.has_more) == (100, True)
        assert all(each.startswith("Trip ") for each in many.values)
        assert (await client.complete(recall, {"name": "thread", "value": "地"})).completion.values == ["地図 a.b"]
        assert (await client.complete(recall, {"name": "goal", "value": ""})).completion.values == []
        assert await values("conv:conversation:{conversation}", "conversation", "Trip 11") == [
            f"Trip {number}" for number in (119, 118, 117, 116, 115, 114, 113, 112, 111, 110, 11)
        ]  # fmt: skip
        turn = "conv:ar:conv_{conversation}.turn_{turn}.turn.log"
        assert await values(turn, "turn", "", conversation="Trip 1") == ["1"]
        assert await values(turn, "turn", "") == []
        assert await values("mem:record:{id}", "id", "mem_") == [refs[2].removeprefix("mem:record:")]
        assert await values("doc:{id}", "id", "doc_") == [refs[4].removeprefix("doc:")]
        assert await values("cnv:{board}", "board", "HAR") == ["harbour wall"]
        assert await values("task:issue:{id}", "id", "") == ["7", "secret"]
        assert await values("task:picture:{id}", "id", "") == []
        assert await values("doc:{id}", "nothing", "") == []
        with pytest.raises(MCPError, match="unknown template"):
            await values("nobody:{id}", "id", "")
        with pytest.raises(MCPError, match="unknown prompt"):
            await client.complete(PromptReference(name="x"), {"name": "thread", "value": ""})

    session(db, work, mode)


@pytest.mark.parametrize("who", [caller("bob"), caller("ann", tenant="elsewhere")])
def test_nothing_of_others_comes_through_any_door_not_even_a_count(
    new: Callable[[], threefold.Threefold], mode: str, who: threefold.Caller
) -> None:
    """Everything that can be asked is answered as from a store in which nobody else has anything."""
    full, empty = new(), new()
    refs = fill(full, word="zeppelin")

    async def ask(client: Client) -> list[str]:
        answers = []
        for tool in (await client.list_tools()).tools:
            if tool.annotations and tool.annotations.read_only_hint and not tool.name.startswith("task_"):
                calls = [
                    (given, await client.call_tool(tool.name, given)) for given in _guesses(tool.input_schema, refs)
                ]
                answers += [f"{tool.name} {given}: {text_of(result)}" for given, result in calls]
        answers += [str((await client.list_resources()).resources), str(await client.get_prompt("review_proposals"))]
        answers.append(str((await client.get_prompt("recall", {"goal": "zeppelin", "thread": "地図 a.b"})).messages))
        answers += [str(await missing(client, ref)) for ref in refs]
        for template in (await client.list_resource_templates()).resource_templates:
            for name in ("id", "conversation", "turn"):
                reference = ResourceTemplateReference(uri=template.uri_template)
                found = await client.complete(
                    reference, {"name": name, "value": ""}, context_arguments={"conversation": "地図 a.b"}
                )
                answers.append(str(found.completion))
        return answers

    own = session(full, lambda client: client.call_tool("search", {"query": "zeppelin"}), mode)
    assert len(own.structured_content["results"]) > 2
    for theirs, nobodys in zip(session(full, ask, mode, who), session(empty, ask, mode, who), strict=True):
        assert theirs == nobodys


def test_an_app_sees_nothing_of_another_app_of_the_same_person(db: threefold.Threefold, mode: str) -> None:
    refs = fill(db)

    async def work(client: Client) -> None:
        assert {each.name for each in (await client.list_resources()).resources} == {"Fix the door"}
        assert (await client.call_tool("search", {"query": "harbour"})).structured_content == {"results": []}
        for ref in refs:
            assert (await missing(client, ref)).message == "no such resource"

    handle = db.user("bob", app="other")
    with handle.turn("talk") as turn:
        turn.prompt("harbour")
    session(db, work, mode, caller("ann", app="other"))


def _guesses(schema: dict[str, Any], refs: list[str]) -> Iterator[dict[str, Any]]:
    """Calls that would find something, if it were theirs."""
    needed = schema.get("required", [])
    for ref in refs if {"id", "ref", "refs"} & set(needed) else refs[:1]:
        known = {"query": "zeppelin", "goal": "zeppelin", "id": ref, "ref": ref, "refs": refs, "namespace": "mem"}
        known |= {"name": "地図 a.b", "board": "zeppelin wall"}
        yield {name: known[name] for name in needed}
        if "conversation" in schema["properties"]:
            yield {**{name: known[name] for name in needed}, "conversation": "地図 a.b"}


def test_what_an_agent_writes_is_a_proposal(db: threefold.Threefold, mode: str) -> None:
    async def work(client: Client) -> None:
        proposed = (await client.call_tool("mem_propose", {"memory": "drinks 茶"})).structured_content
        assert proposed["status"] == "proposed"
        again = await client.call_tool("mem_upsert", {"memory": "drinks coffee"})
        assert again.is_error or again.structured_content["status"] == "proposed"

    session(db, work, mode, caller(grants=frozenset({*READ, "mem:write"})))
    assert not db.user("ann").mem.list()
    assert db.user("ann").mem.proposals()
