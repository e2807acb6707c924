"""Named services and references across realms, through the public door, on each back end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

import fastjsonschema
import pytest

import threefold
from threefold import Caller, Resolved, Service, operation
from threefold.errors import Conflict, Expired, Forbidden, InvalidInput, NotFound, Purged, Unavailable
from threefold.model.scope import Scope
from threefold.testing.fakes import Clock, HashEmbedder
from threefold.text.tokens import count_tokens

Open = Callable[..., threefold.Threefold]
READ = frozenset({"all:read", "conv:read", "mem:read", "doc:read", "cnv:read", "task:read"})


class Tasks(Service):
    """Issues by tenant, and one that breaks."""

    namespace = "task"
    line = "Issues of a team"
    kinds: Mapping[str, str] = {"issue": "a thing to do, task:issue:<id>"}

    def __init__(self) -> None:
        self.issues: dict[tuple[str, str], str] = {}

    def resolve(self, caller: Caller, ref: Any) -> Resolved:
        if ref.id == "broken":
            raise KeyError("the tracker is down")
        if ref.id == "secret":
            raise Forbidden(f"{ref}: only for its author")
        if ref.id == "late":
            raise Unavailable("the tracker answers no more")
        text = self.issues.get((caller.scope.tenant, ref.id))
        if text is None:
            raise NotFound(f"{ref}: no such issue")
        return Resolved(str(ref), "issue", {"title": text}, text, content=text.encode())

    @operation("write")
    def upsert(
        self,
        caller: Caller,
        id: str,  # noqa: A002
        title: Annotated[str, "what is to be done"],
        state: Literal["open", "closed"] = "open",
        tags: list[str] | None = None,
        points: int = 1,
    ) -> dict[str, Any]:
        """Open an issue.

        The same id again changes it.
        """
        self.issues[caller.scope.tenant, id] = title
        return {"ref": f"task:issue:{id}", "state": state, "tags": tags or [], "points": points}

    @operation()
    def who(self, caller: Caller) -> dict[str, Any]:
        """Say who calls."""
        return {"user": caller.scope.user, "tenant": caller.scope.tenant, "agent": caller.scope.agent}


@pytest.fixture
def published(db: threefold.Threefold) -> threefold.Threefold:
    db.publish(Tasks())
    return db


def fill(handle: threefold.Handle) -> dict[str, str]:
    """One of everything; references by kind."""
    with handle.turn("trip", turn="1", title="Lisbon") as turn:
        turn.prompt("Where is the 地図 of Alfama?")
        turn.step("find", {"city": "Lisbon"}, result=["one", "two"])
        turn.publish("plan.md", b"# Plan")
        turn.answer("In the harbour office")
    memory = handle.mem.remember("prefers trains", context="said in Porto")
    document = handle.doc.ingest("# Visa\n\nA visa costs 60 euros.", source="visa.md", title="Visa rules")
    chunk = handle.doc.chunks(document.id)[0]
    handle.services.call("task", "upsert", id="7", title="Fix the door")
    return {
        "conversation": "conv:conversation:trip", "turn": turn.ref,
        "message": "conv:ar:conv_trip.turn_1.user.prompt", "file": "conv:fi:conv_trip.turn_1.files/plan.md",
        "memory": memory.ref, "document": document.ref, "chunk": chunk.ref, "issue": "task:issue:7",
    }  # fmt: skip


@pytest.mark.capability("services")
def test_services_introduce_themselves_at_three_depths(published: threefold.Threefold) -> None:
    services = published.user("alice").services
    lines = dict(services.introductions())
    assert {"all", "conv", "mem", "doc", "task"} <= set(lines)
    assert lines["task"] == "Issues of a team"
    about = services.about("task")
    assert about["kinds"] == {"issue": "a thing to do, task:issue:<id>"}
    assert [(each["name"], each["grant"]) for each in about["operations"]] == [
        ("upsert", "task:write"), ("who", "task:read"),
    ]  # fmt: skip
    schema = services.schema("task", "upsert")
    assert schema["about"] == "Open an issue.\n\nThe same id again changes it."
    assert schema["input"] == {
        "type": "object", "additionalProperties": False, "required": ["id", "title"],
        "properties": {
            "id": {"type": "string"}, "title": {"type": "string", "description": "what is to be done"},
            "state": {"enum": ["closed", "open"], "default": "open"},
            "tags": {"type": "array", "items": {"type": "string"}}, "points": {"type": "integer", "default": 1},
        },
    }  # fmt: skip
    for each in services.introductions():
        for described in services.about(each.namespace)["operations"]:
            told = services.schema(each.namespace, described["name"])
            assert described["line"], described
            assert "$ref" not in json.dumps(told)
            fastjsonschema.compile(told["input"])
            fastjsonschema.compile(told["output"])


@pytest.mark.capability("services")
def test_an_operation_is_called_with_plain_values_as_who_calls(published: threefold.Threefold) -> None:
    bot = published.user("alice", tenant="acme", agent="planner")
    assert bot.services.call("task", "who") == {"user": "alice", "tenant": "acme", "agent": "planner"}
    made = bot.services.call("task", "upsert", {"id": "7", "title": "Tür 修理"}, tags=["a"])
    assert made == {"ref": "task:issue:7", "state": "open", "tags": ["a"], "points": 1}
    assert bot.resolve("task:issue:7").text == "Tür 修理"
    assert bot.read("task:issue:7") == "Tür 修理".encode()
    assert bot.services.call("task", "upsert", {"id": "7", "title": "x", "points": "3"}, lenient=True)["points"] == 3


@pytest.mark.capability("services.input")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing required field `id`"),
        ({"id": "1"}, "missing required field `title`"),
        ({"id": "1", "title": None}, "title: Expected `str`, got `null`"),
        ({"id": 5, "title": "x"}, "id: Expected `str`, got `int`"),
        ({"id": "1", "title": "x", "state": "later"}, "must be one of closed, open"),
        ({"id": "1", "title": "x", "tags": ["a", 1]}, "tags[1]: Expected `str`"),
        ({"id": "1", "title": "x", "points": "3"}, "points: Expected `int`, got `str`"),
        ({"id": "1", "title": "x", "user": "mallory"}, "unknown field `user`"),
        ({"id": "1", "title": "x", "scope": {"user": "mallory"}}, "unknown field `scope`"),
        ({"id": "1", "title": {"$gt": ""}}, "title: Expected `str`, got `object`"),
    ],
)
def test_arguments_that_are_off_are_named_with_the_mend(
    published: threefold.Threefold, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        published.user("alice").services.call("task", "upsert", arguments)
    assert said in str(refused.value)
    assert "it takes id, title, [state], [tags], [points]" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert published.user("alice").show(["task:issue:1"])["task:issue:1"].standing == "gone"


@pytest.mark.capability("services.input")
def test_what_is_not_there_names_what_is(published: threefold.Threefold) -> None:
    services = published.user("alice").services
    with pytest.raises(NotFound, match=r"service 'taks' is not published; there are .*task"):
        services.call("taks", "who")
    with pytest.raises(NotFound, match="no operation 'whom'; it has upsert, who"):
        services.call("task", "whom")
    for cursor in ("x", "W10", "", "🕯️", "A" * 5000):
        with pytest.raises(InvalidInput, match="cursor"):
            services.call("conv", "list", cursor=cursor)


@pytest.mark.capability("services.grants")
def test_a_service_refuses_without_the_grant_whoever_calls_it(published: threefold.Threefold) -> None:
    alice = published.user("alice")
    refs = fill(alice)
    few = published.services(Caller(alice.scope, frozenset({"mem:read"})))
    assert [each.namespace for each in few.introductions()] == ["mem"]
    assert {each.full_name for each in few.operations()} == {
        "whoami",
        "mem_search",
        "mem_list",
        "mem_proposals",
        "mem_get",
        "mem_history",
        "mem_hotset",
        "mem_policy",
    }  # fmt: skip
    assert few.call("mem", "search", query="trains")["memories"]
    for service, name, arguments in (
        ("mem", "propose", {"memory": "x"}), ("mem", "delete", {"id": "mem_x"}), ("conv", "search", {"query": "x"}),
        ("doc", "get", {"id": "x"}), ("task", "who", {}), ("all", "search", {"query": "x"}),
        ("all", "context", {"goal": "x"}),
    ):  # fmt: skip
        with pytest.raises(Forbidden, match=rf"needs the grant '{service}:(read|write|propose)'; given are mem:read"):
            few.call(service, name, arguments)
    shown = few.objects.describe(list(refs.values()))
    assert {kind: shown[ref].standing for kind, ref in refs.items()} == {
        kind: "there" if kind == "memory" else "forbidden" for kind in refs
    }
    assert not any(shown[ref].text or shown[ref].title for kind, ref in refs.items() if kind != "memory")
    for kind in ("turn", "chunk", "issue"):
        with pytest.raises(Forbidden):
            few.objects.resolve(refs[kind])
    # A method of a service called directly is no way around it.
    with pytest.raises(Forbidden):
        Tasks().who(Caller(alice.scope, frozenset()))
    reads = published.services(Caller(alice.scope, READ))
    with pytest.raises(Forbidden, match="conv:write"):
        reads.call("conv", "delete", conversation="trip")
    # Who may not read a realm finds nothing of it.
    only = published.services(Caller(alice.scope, frozenset({"all:read", "mem:read"})))
    found = only.call("all", "search", query="trains visa harbour")["results"]
    assert [each["id"] for each in found] == [refs["memory"]]


@pytest.mark.capability("services.publish")
def test_a_namespace_is_published_once_and_withdrawn(published: threefold.Threefold) -> None:
    class Others(Tasks):
        pass

    with pytest.raises(Conflict, match="'task' is published by Tasks"):
        published.publish(Others())
    for name in ("conv", "mem", "cnv", "doc", "all", "fi", "ar", "Task", "task:issue", "", "ta sk", "задача"):
        service = type("Named", (Tasks,), {"namespace": name})()
        with pytest.raises(InvalidInput):
            published.publish(service)
    for wrong in (Tasks, object(), None, type("Silent", (Tasks,), {"namespace": "silent", "line": ""})()):
        with pytest.raises(InvalidInput):
            published.publish(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="offers nothing"):
        published.publish(type("Empty", (Service,), {"namespace": "empty", "line": "nothing"})())
    alice = published.user("alice")
    alice.services.call("task", "upsert", id="7", title="Fix the door")
    published.withdraw("task")
    assert alice.show(["task:issue:7"])["task:issue:7"].standing == "unknown"
    with pytest.raises(NotFound, match="not published"):
        alice.resolve("task:issue:7")
    published.publish(Others())
    with pytest.raises(InvalidInput, match="Threefold's own"):
        published.withdraw("mem")
    with pytest.raises(NotFound):
        published.withdraw("nothing")


@pytest.mark.capability("services.publish")
def test_what_cannot_be_offered_is_refused_when_it_is_published(db: threefold.Threefold) -> None:
    class Bare(Service):
        namespace, line = "bare", "x"

        @operation()
        def look(self, caller: Caller, what) -> dict[str, Any]:  # type: ignore[no-untyped-def]
            """Look."""
            return {}

    class Silent(Service):
        namespace, line = "silent", "x"

        @operation()
        def look(self, caller: Caller) -> dict[str, Any]:
            return {}

    class Odd(Service):
        namespace, line = "odd", "x"

        @operation()
        def look(self, caller: Caller, what: Callable[[], int]) -> dict[str, Any]:
            """Look."""
            return {}

    for service, said in (
        (Bare(), "annotate the parameter"),
        (Silent(), "no docstring"),
        (Odd(), "plain values"),
    ):
        with pytest.raises(InvalidInput, match=said):
            db.publish(service)
    with pytest.raises(InvalidInput, match="access 'all'"):
        operation("all")  # type: ignore[arg-type]


@pytest.mark.capability("references")
def test_every_namespace_is_shown_through_one_door(published: threefold.Threefold) -> None:
    alice = published.user("alice")
    refs = fill(alice)
    shown = alice.show(refs.values())
    assert {kind: (shown[ref].standing, shown[ref].kind) for kind, ref in refs.items()} == {
        kind: ("there", {"issue": "issue"}.get(kind, kind)) for kind in refs
    }
    titles = {kind: shown[ref].title for kind, ref in refs.items()}
    assert titles["conversation"] == "Lisbon"
    assert titles["file"] == "plan.md"
    assert titles["memory"] == "prefers trains"
    assert titles["chunk"].startswith("Visa rules")
    assert "In the harbour office" in shown[refs["turn"]].text
    assert "visa costs 60" in shown[refs["document"]].text
    assert shown[refs["file"]].more["size"] == 6
    assert all(len(each.text) <= 8 for each in alice.show(refs.values(), size=8).values())
    for kind, ref in refs.items():
        assert alice.resolve(ref).ref == ref, kind
        assert isinstance(alice.read(ref), bytes)
    assert alice.read(refs["file"]) == b"# Plan"
    assert alice.show([]) == {}


@pytest.mark.capability("references")
def test_what_cannot_be_seen_says_why_and_the_others_are_shown_all_the_same(
    published: threefold.Threefold,
) -> None:
    alice = published.user("alice")
    refs = fill(alice)
    with published.user("alice", app="other").turn("others", turn="1") as turn:
        turn.prompt("of another app")
    said = published.user("alice", app="mine").show(
        ["conv:ar:conv_others.turn_1.user.prompt", "conv:conversation:others"]
    )
    assert {each.standing for each in said.values()} == {"forbidden"}
    asked = {
        "conv:ar:conv_trip.turn_9.user.prompt": "gone", "conv:ar:conv_trip.turn_1.agent.note": "gone",
        "conv:conversation:nowhere": "gone", "mem:record:mem_0": "gone", "mem:record:odd": "gone",
        "doc:doc_0": "gone", "doc:odd": "gone", f"{refs['document']}#nothing": "gone", "task:issue:none": "gone",
        "task:issue:broken": "unavailable", "task:issue:secret": "forbidden", "task:issue:late": "unavailable",
        "nobody:thing:1": "unknown",
    }  # fmt: skip
    for ref, standing in asked.items():
        each = alice.show([ref, refs["memory"]])
        assert (each[ref].standing, each[refs["memory"]].standing) == (standing, "there"), ref
        assert each[ref].why
        assert "\n" not in each[ref].why
        assert (each[ref].text, each[ref].title) == ("", "")
    for malformed in ("", "nothing", "conv:", "task:issue:", "mem:record:%zz", "conv:fi:conv_a.turn_1.files/../x"):
        with pytest.raises(InvalidInput):
            alice.show([malformed])


@pytest.mark.capability("references")
def test_a_purge_and_the_end_of_time_are_told_of(open_db: Open) -> None:
    clock = Clock()
    db = open_db(clock=clock, ttl=timedelta(days=1))
    db.publish(Tasks())
    alice = db.user("alice")
    refs = fill(alice)
    alice.forget(conversation="trip")
    gone = alice.show([refs["message"], refs["file"], refs["conversation"]])
    assert {each.standing for each in gone.values()} == {"gone"}
    assert gone[refs["message"]].why == "it was removed"
    with pytest.raises(Purged):
        alice.resolve(refs["file"])
    with alice.turn("trip", turn="2") as turn:
        turn.prompt("again")
    clock.advance(timedelta(days=2))
    assert alice.show([turn.ref])[turn.ref].why == "its time to live is over"
    with pytest.raises(Expired):
        alice.resolve(turn.ref)


@pytest.mark.capability("references")
def test_short_forms_are_completed_and_long_ones_given(published: threefold.Threefold) -> None:
    alice = published.user("alice")
    refs = fill(alice)
    assert alice.resolve("ar:1.user.prompt", conversation="trip").ref == refs["message"]
    assert alice.read("fi:1.outputs/plan.md", conversation="trip") == b"# Plan"
    with pytest.raises(InvalidInput, match="conversation is not known"):
        alice.resolve("ar:1.user.prompt")


@pytest.mark.capability("services.isolation")
def test_nobody_reads_across_scopes_through_any_operation(published: threefold.Threefold) -> None:
    alice = published.user("alice", tenant="acme")
    refs = fill(alice)
    for other in (
        published.user("bob", tenant="acme"), published.user("alice", tenant="other"), published.user("alic", "acme"),
        published.user("alice%", tenant="acme"), published.user("ALICE", tenant="acme"),
    ):  # fmt: skip
        for kind, ref in refs.items():
            if kind == "issue" and other.scope.tenant == "acme":
                continue  # the tracker's issues are its tenant's
            assert other.show([ref])[ref].standing == "gone", (other.scope, kind)
            for reach in (other.resolve, other.read):
                with pytest.raises(NotFound):
                    reach(ref)
            with pytest.raises(NotFound):
                other.services.call("all", "fetch", id=ref)
        call = other.services.call
        assert call("conv", "search", query="harbour map Alfama")["hits"] == []
        assert call("conv", "list")["conversations"] == []
        assert call("conv", "catalog")["turns"] == []
        assert call("mem", "search", query="trains")["memories"] == []
        assert call("mem", "list")["memories"] == []
        assert call("mem", "hotset")["memories"] == []
        assert call("doc", "search", query="visa")["chunks"] == []
        assert call("doc", "list", shared=True)["documents"] == []
        assert call("doc", "stats")["documents"] == 0
        assert call("all", "search", query="harbour trains visa")["results"] == []
        assert "harbour" not in call("all", "context", goal="harbour trains visa")["text"]
        for service, name, arguments in (
            ("mem", "confirm", {"id": refs["memory"]}), ("mem", "delete", {"id": refs["memory"]}),
            ("mem", "history", {"id": refs["memory"]}), ("doc", "delete", {"id": refs["document"]}),
            ("conv", "feedback", {"ref": refs["message"], "reaction": "ok"}),
        ):  # fmt: skip
            with pytest.raises(NotFound):
                call(service, name, arguments)
        call("conv", "delete", conversation="trip")
    assert {each.standing for each in alice.show(refs.values()).values()} == {"there"}


PINNED = "conv:ar:conv_trip.turn_1.user.prompt"
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("all", "context", {"goal": "visa", "thread": "trip", "explain": True}),
    ("all", "context", {"goal": "visa"}), ("all", "search", {"query": "visa"}), ("conv", "list", {}),
    ("all", "whoami", {}),
    ("conv", "search", {"query": "harbour", "snippets": ["user"], "explain": True}),
    ("conv", "search", {"query": "Alfama harbur", "group": "conversation"}),
    ("conv", "catalog", {"conversation": "trip", "ordinal": -1}), ("conv", "catalog", {"limit": 1}),
    ("mem", "search", {"query": "trains", "explain": True}), ("mem", "list", {"limit": 1}), ("mem", "proposals", {}),
    ("mem", "hotset", {"goal": "trains"}), ("mem", "propose", {"memory": "likes 茶", "tags": ["a"]}),
    ("mem", "upsert", {"memory": "likes tea", "pinned": True}), ("mem", "reconcile", {}),
    ("doc", "search", {"query": "visa", "explain": True}), ("doc", "context", {"query": "visa", "max_tokens": 50}),
    ("doc", "list", {}), ("doc", "stats", {}), ("doc", "chunks", {"id": "visa.md"}),
    ("doc", "get", {"id": "visa.md", "size": 5, "start": 2}),
    ("doc", "upsert", {"text": "# Tea\n\nGreen.", "source": "tea.md", "metadata": {"n": 1}}),
    ("doc", "delete", {"id": "tea.md"}), ("task", "who", {}), ("task", "upsert", {"id": "8", "title": "x"}),
    ("conv", "say", {"name": "chat", "role": "user", "text": "hello"}), ("conv", "threads", {}),
    ("conv", "thread", {"name": "chat"}), ("conv", "archive", {"name": "chat"}),
    ("conv", "editions", {"ref": "conv:fi:conv_trip.turn_1.files/plan.md"}),
    ("mem", "allow", {"rule": "auto", "kinds": ["fact"]}), ("mem", "policy", {}),
    ("cnv", "upsert", {"board": "lisbon", "title": "Lisbon 旅行"}), ("cnv", "list", {"attached": "trip"}),
    ("cnv", "pin", {"board": "lisbon", "ref": PINNED, "note": "so it begins", "x": 1, "y": 0}), ("cnv", "list", {}),
    ("cnv", "suggest", {"board": "cnv:lisbon", "ref": "task:issue:7", "why": "to be done"}),
    ("cnv", "accept", {"board": "lisbon", "card": "task:issue:7"}),
    ("cnv", "suggest_bin", {"board": "lisbon", "card": PINNED}),
    ("cnv", "decline", {"board": "lisbon", "card": PINNED}),
    ("cnv", "move", {"board": "lisbon", "card": PINNED, "x": 1.5, "y": 2}),
    ("cnv", "resize", {"board": "lisbon", "card": PINNED, "w": 10, "h": 20}),
    ("cnv", "annotate", {"board": "lisbon", "card": PINNED, "note": "anew"}),
    ("cnv", "comment", {"board": "lisbon", "card": PINNED, "text": "好"}),
    ("cnv", "bin", {"board": "lisbon", "card": PINNED}), ("cnv", "restore", {"board": "lisbon", "card": PINNED}),
    ("cnv", "attach", {"board": "lisbon", "conversation": "trip"}), ("cnv", "get", {"board": "lisbon"}),
    ("cnv", "get", {"board": "lisbon", "revision": 2}), ("cnv", "render", {"board": "lisbon", "budget": 100}),
    ("cnv", "search", {"query": "door"}), ("cnv", "history", {"board": "lisbon"}),
    ("cnv", "edit", {"board": "lisbon", "ops": [{"op": "archive"}, {"op": "bin", "card": PINNED}]}),
    ("cnv", "remove", {"board": "lisbon", "card": PINNED}), ("cnv", "delete", {"board": "lisbon"}),
]  # fmt: skip
OF_REFS = (
    ("all", "fetch", "id"), ("conv", "get", "ref"), ("mem", "get", "id"), ("mem", "history", "id"),
    ("mem", "confirm", "id"), ("mem", "pin", "id"), ("mem", "contradict", "id"), ("mem", "undo", "id"),
    ("mem", "retire", "id"), ("conv", "feedback", "ref"), ("mem", "delete", "id"),
)  # fmt: skip


@pytest.mark.capability("services.output")
def test_what_operations_give_is_plain_and_fits_their_schema(published: threefold.Threefold) -> None:
    alice = published.user("alice")
    refs = fill(alice)
    done = set()
    named: list[tuple[str, str, dict[str, Any]]] = [("all", "fetch", {"id": ref}) for ref in refs.values()]
    named += [("all", "describe", {"refs": [*refs.values(), "mem:record:mem_0"]})]
    named += [("conv", "get", {"ref": refs[kind]}) for kind in ("conversation", "message", "file")]
    for service, name, argument in OF_REFS:
        named.append((service, name, {argument: refs["memory" if service == "mem" else "turn"]}))
    alice.mem.remember("the harbour office opens at nine")
    alice.mem.remember("The harbour office opens at 9.", tags=["hours"])
    done_now = alice.services.call("mem", "reconcile", apply=True)
    named.append(("mem", "undo_reconcile", {"id": done_now["id"]}))
    end = [("mem", "reject", {"id": alice.mem.propose("a proposal").id}), ("conv", "delete", {"conversation": "trip"})]
    end.append(("all", "forget", {"confirm": "alice"}))
    for service, name, arguments in [*CALLS, *named, *end]:
        given = alice.services.call(service, name, arguments)
        check = fastjsonschema.compile(alice.services.schema(service, name)["output"])
        plain = json.loads(json.dumps(given, ensure_ascii=False, allow_nan=False))
        assert plain == given, (service, name)
        check(plain)
        done.add((service, name))
    assert {(each.namespace, each.name) for each in alice.services.operations()} == done


@pytest.mark.capability("services.output")
def test_a_context_tells_what_it_is_made_of_and_what_was_left_out(published: threefold.Threefold) -> None:
    alice = published.user("alice")
    fill(alice)
    call = alice.services.call
    found = call("all", "context", goal="A visa costs 60 euros", thread="trip", explain=True)
    labelled = (*found["entries"], *found["thread"]["messages"])
    assert {each["label"]: each["ref"] for each in labelled} == found["refs"]
    assert {each["section"] for each in found["entries"]} >= {"longterm", "document"}
    assert all(each["tokens"] == count_tokens(each["text"]) for each in found["entries"])
    assert [said["role"] for said in found["thread"]["messages"]] == ["user", "assistant"]
    short = call("all", "context", goal="A visa costs 60 euros", budget=60, explain=True)
    assert len(short["left_out"]) == short["dropped"] > 0
    assert {each["why"] for each in short["left_out"]} <= {"budget", "irrelevant", "duplicate"}
    assert "entries" not in call("all", "context", goal="visa")


@pytest.mark.capability("services.output")
def test_the_chunks_of_a_document_come_in_pieces_with_their_places(published: threefold.Threefold) -> None:
    alice = published.user("alice")
    text = "\n\n".join(f"Paragraph {n} is about number {n}." for n in range(20))
    alice.services.call("doc", "upsert", text=text, source="long.md", chunk_tokens=16, overlap=0)
    start, seen = 0, []
    while start is not None:
        page = alice.services.call("doc", "chunks", id="long.md", start=start, limit=3)
        seen += page["chunks"]
        start = page["next"]
    assert [each["number"] for each in seen] == [*range(page["total"])]
    assert all(text[each["start"] : each["end"]] == each["text"] for each in seen)
    with pytest.raises(NotFound):
        published.user("bob").services.call("doc", "chunks", id="long.md")


@pytest.mark.capability("services.output")
def test_a_proposal_that_was_seen_is_done_only_while_it_holds(published: threefold.Threefold) -> None:
    alice = published.user("alice")
    call = alice.services.call
    older = alice.mem.remember("The user gets up at six o'clock")
    alice.mem.remember("user gets up at six o'clock.")
    seen = call("mem", "reconcile")
    assert seen["steps"]
    alice.mem.update(older.id, tags=["morning"])
    with pytest.raises(Conflict, match="out of date"):
        call("mem", "reconcile", apply=True, id=seen["id"])
    assert not alice.mem.list(statuses=["merged"])
    again = call("mem", "reconcile")
    assert call("mem", "reconcile", apply=True, id=again["id"])["applied"]


@pytest.mark.capability("services.output")
def test_lists_are_paged_to_their_end_and_each_entry_comes_once(open_db: Open) -> None:
    db = open_db(clock=Clock(), embedder=HashEmbedder(8))
    alice = db.user("alice")
    for n in range(7):
        with alice.turn(f"talk {n}", turn="1") as turn:
            turn.prompt(f"prompt {n}")
        alice.mem.remember(f"note {n}")
        alice.doc.ingest(f"text {n}", source=f"{n}.md")
    for service, name, key in (
        ("conv", "list", "conversations"), ("conv", "catalog", "turns"), ("mem", "list", "memories"),
        ("doc", "list", "documents"),
    ):  # fmt: skip
        seen, cursor = [], None
        while True:
            page = alice.services.call(service, name, limit=3, cursor=cursor)
            seen += [each["ref"] for each in page[key]]
            cursor = page["next"]
            if cursor is None:
                break
        assert len(seen) == len(set(seen)) == 7, (service, name)


@pytest.mark.capability("services.output")
def test_longer_texts_are_cut_and_said_to_be(published: threefold.Threefold) -> None:
    alice = published.user("alice")
    with alice.turn("long", turn="1") as turn:
        turn.prompt("長い" * 20_000)
    whole = alice.services.call("conv", "get", ref=turn.ref, size=100)
    assert whole["cut"] is True
    assert len(json.dumps(whole, ensure_ascii=False)) < 3_000
    assert alice.services.call("conv", "get", ref=turn.ref, size=100_000)["cut"] is False
    assert len(alice.services.call("all", "fetch", id=turn.ref, size=100)["text"]) <= 100


@pytest.mark.capability("references")
def test_a_board_of_five_worlds_resolves_each_at_home(published: threefold.Threefold) -> None:
    alice = published.user("alice")
    refs = fill(alice)
    board = alice.cnv.board("lisbon")
    kinds = ("memory", "conversation", "file", "chunk", "issue", "turn", "document", "message")
    for kind in kinds:
        board.pin(refs[kind], note=f"a {kind}")
    looked = board.look()
    assert [each.shown.kind for each in looked] == list(kinds)
    assert {each.shown.standing for each in looked} == {"there"}
    for each in looked:
        assert board.open(each.card).ref == each.card.ref
    assert alice.read(refs["file"]) == b"# Plan"
    # Each is found by what it shows now, not by what it showed when it was pinned.
    alice.mem.update(alice.mem.list()[0].id, memory="prefers night boats")
    alice.services.call("task", "upsert", id="7", title="Paint the gate")
    assert [hit.ref for hit in alice.cnv.search("night boats")][:1] == [refs["memory"]]
    assert [hit.ref for hit in alice.cnv.search("paint the gate")][:1] == [refs["issue"]]
    assert refs["memory"] not in [hit.ref for hit in alice.cnv.search("trains")]
    # A board lies on a board, also on itself, and nobody goes round in circles.
    board.pin("cnv:lisbon")
    alice.cnv.board("other").pin("cnv:lisbon@1")
    board.pin("cnv:other")
    assert {each.shown.standing for each in board.look()} == {"there"}
    assert "cnv:lisbon" in board.render().refs.values()
    # What is gone or not to be seen says so and stays a card.
    alice.forget(conversation="trip")
    published.withdraw("task")
    now = {each.card.ref: each.shown.standing for each in board.look()}
    assert now[refs["file"]] == now[refs["conversation"]] == now[refs["turn"]] == "gone"
    assert (now[refs["issue"]], now[refs["memory"]]) == ("unknown", "there")
    # A caller without a realm's grant sees nothing of it on a board either.
    few = published.services(Caller(alice.scope, frozenset({"cnv:read", "mem:read"})))
    seen = {card["ref"]: card["shown"] for card in few.call("cnv", "get", board="lisbon")["cards"]}
    assert seen[refs["memory"]]["title"] == "prefers night boats"
    assert seen[refs["chunk"]]["standing"] == "forbidden"
    assert "60 euros" not in json.dumps(few.call("cnv", "render", board="lisbon"))
    assert "60 euros" not in json.dumps(few.call("cnv", "search", query="visa costs 60 euros"))


@pytest.mark.capability("references")
def test_a_later_edition_has_its_own_reference_and_the_earlier_one_keeps_its_bytes(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    for number in range(3):
        with alice.turn("trip", turn=f"{number}") as turn:
            turn.prompt("write it")
            if number != 1:
                turn.publish("plan.md", f"edition {number}".encode())
            turn.publish("other.md", b"other")
    with alice.turn("elsewhere", turn="9") as turn:
        turn.publish("plan.md", b"of another conversation")
        turn.answer("done")
    refs = alice.editions("fi:2.outputs/plan.md", conversation="trip")
    assert refs == ("conv:fi:conv_trip.turn_0.files/plan.md", "conv:fi:conv_trip.turn_2.files/plan.md")
    assert [alice.read(ref) for ref in refs] == [b"edition 0", b"edition 2"]
    assert alice.services.call("conv", "editions", ref=refs[1]) == {"refs": [*refs]}
    memory = alice.mem.remember("prefers trains")
    assert alice.editions(memory.ref) == (memory.ref,)
    board = alice.cnv.board("lisbon")
    board.pin(memory.ref)
    board.rename("Lisbon in May")
    assert alice.editions("cnv:lisbon") == ("cnv:lisbon@1", "cnv:lisbon@2")
    assert alice.resolve("cnv:lisbon@1").title == "lisbon"
    with pytest.raises(NotFound):
        alice.editions("conv:fi:conv_trip.turn_1.files/plan.md")


@pytest.mark.capability("services.whoami")
def test_whoever_is_let_in_is_told_as_whom(published: threefold.Threefold) -> None:
    scope = Scope("アリス", "acme", "crm", "planner")
    for told in (None, [], ["*:read", "mem:write"]):
        services = published.services(Caller(scope, None if told is None else frozenset(told)))
        assert services.call("all", "whoami") == {
            "user": "アリス", "tenant": "acme", "app": "crm", "agent": "planner", "grants": told,
        }  # fmt: skip
    assert published.user("alice").services.schema("all", "whoami")["grant"] == ""
    assert [each.full_name for each in published.services(Caller(scope, frozenset())).operations()] == ["whoami"]


EVERY = frozenset(f"{realm}:write" for realm in ("all", "conv", "mem", "doc", "cnv"))


@pytest.mark.capability("services.forget")
def test_a_person_forgets_everything_by_their_own_name(published: threefold.Threefold) -> None:
    alice, bob = published.user("alice"), published.user("bob")
    refs = fill(alice)
    kept = fill(bob)
    alice.cnv.board("lisbon").pin(refs["turn"])
    for grants in ({"*:read"}, EVERY - {"doc:write"}, EVERY - {"all:write"}):
        with pytest.raises(Forbidden, match=r"needs the grant '(all|doc):write'"):
            published.services(Caller(alice.scope, frozenset(grants))).call("all", "forget", confirm="alice")
    with pytest.raises(Forbidden, match="is the person's: use a handle or a token without agent"):
        published.user("alice", agent="planner").services.call("all", "forget", confirm="alice")
    for confirm in ("", "bob", "Alice", "alice "):
        with pytest.raises(InvalidInput, match="must be the user's own name, 'alice'; nothing went"):
            alice.services.call("all", "forget", confirm=confirm)
    assert alice.resolve(refs["memory"]).value["memory"] == "prefers trains"
    receipt = published.services(Caller(alice.scope, EVERY)).call("all", "forget", confirm="alice")
    assert (receipt["forgot"], receipt["leftovers"]) == ("user", [])
    assert receipt["stores"]["turns"] >= 4
    left = [alice.conv.conversations(), alice.mem.list(), alice.doc.list(), alice.cnv.boards()]
    assert [list(each) for each in left] == [[], [], [], []]
    for name in ("turn", "memory", "document"):
        with pytest.raises(NotFound):
            alice.resolve(refs[name])
        assert bob.resolve(kept[name])
    assert alice.services.call("all", "forget", confirm="alice")["forgot"] == "user"


@pytest.mark.capability("services.forget")
def test_a_caller_of_an_app_forgets_what_that_app_recorded(published: threefold.Threefold) -> None:
    alice, crm = published.user("alice"), published.user("alice", app="crm")
    refs = fill(alice)
    with crm.turn("call", turn="1") as turn:
        turn.prompt("who called?")
    assert crm.services.call("all", "forget", confirm="alice")["stores"]["turns"] == 1
    assert not crm.conv.conversations()
    assert alice.resolve(refs["turn"])
