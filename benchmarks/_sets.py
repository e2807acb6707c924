"""The retrieval sets: one loader each, from the folder of the set to a `Dataset`."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from _dataset import UNDATED, Dataset, Entry, Question, item_of, lines_of, replay, turn_of

_LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
# What identifies a phone's record or describes the picture file says nothing about the day.
_LIFEBENCH_TECHNICAL = frozenset({"type", "event_id", "phone_id", "image_size", "shoot_mode"})


def load(name: str, folder: Path) -> Dataset:
    """The set called `name` from its folder."""
    return LOADERS[name](folder)


def locomo(folder: Path) -> Dataset:
    """LoCoMo: a chat is a user, a session a conversation, a message a turn of its speaker at the session's time.

    Questions of categories 1 to 4 that name evidence, without those whose gold the audit found wrong.
    """
    chats = json.loads((folder / "conversations.json").read_text("utf-8"))
    places = {chat["sample_id"]: {entry.item: entry for entry in _chat(chat["conversation"])} for chat in chats}
    questions = []
    for line in lines_of(folder / "questions.jsonl"):
        if line["category"] not in _LOCOMO_CATEGORIES or line.get("gold_is_wrong") or not line["evidence"]:
            continue
        gold = [places[line["sample_id"]][item] for item in line["evidence"]]
        units = {
            "message": frozenset(item_of("message", e, "user" if e.turn.submissions else "assistant") for e in gold),
            "session": frozenset(e.session for e in gold),
        }
        groups = ("all", _LOCOMO_CATEGORIES[line["category"]])
        questions.append(Question(line["sample_id"], line["question"], units, groups))
    histories = {name: replay(found.values()) for name, found in places.items()}
    return Dataset("locomo", ("message", "session"), histories, tuple(questions))


def _chat(chat: Mapping[str, Any]) -> list[Entry]:
    numbers = sorted(int(key.removeprefix("session_")) for key in chat if re.fullmatch(r"session_\d+", key))
    entries = []
    for number in numbers:
        session = f"session_{number}"
        # Such as "1:56 pm on 8 May, 2023".
        at = datetime.strptime(chat[f"{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for i, message in enumerate(chat[session]):
            author = message["speaker"]
            asked, answered = (author, None) if author == chat["speaker_a"] else (None, author)
            said = message["text"]
            turn = turn_of(session, i, at, said if asked else None, None if asked else said, asked, answered)
            entries.append(Entry(turn, message["dia_id"], session))
    return entries


def chats(folder: Path) -> Dataset:
    """The chats written for this project: friends as in LoCoMo, one with an assistant as in LongMemEval."""
    histories: dict[str, Callable[[], Iterator[Entry]]] = {}
    questions = []
    for path in sorted(folder.glob("*.json")):
        chat = json.loads(path.read_text("utf-8"))
        places = dict(_written(chat))
        histories[chat["chat"]] = replay({entry.item: entry for entry, _ in places.values()}.values())
        for line in chat["questions"]:
            gold = [places[session, message] for session, message in line["gold"]]
            units = {
                "message": frozenset(item_of("message", entry, role) for entry, role in gold),
                "session": frozenset(entry.session for entry, _ in gold),
            }
            groups = ("all", chat["language"], line["kind"])
            questions.append(Question(chat["chat"], line["text"], units, groups))
    return Dataset("chats", ("message", "session"), histories, tuple(questions))


def _written(chat: Mapping[str, Any]) -> Iterator[tuple[tuple[int, int], tuple[Entry, str]]]:
    """For each (session, message) its entry and role. Friends' messages are turns; a round with an assistant is one."""
    first, second = chat["speakers"]
    named = chat["kind"] == "friends"
    for number, session in enumerate(chat["sessions"]):
        at = datetime.fromisoformat(session["at"]).replace(tzinfo=UTC)
        said = [
            {"role": "user" if message["by"] == first else "assistant", "content": message["text"]}
            for message in session["messages"]
        ]
        for i, members in enumerate([[n] for n in range(len(said))] if named else rounds(said)):
            texts = {said[n]["role"]: said[n]["content"] for n in members}
            authors = (first, second) if named else (None, None)
            turn = turn_of(f"session_{number}", i, at, texts.get("user"), texts.get("assistant"), *authors)
            entry = Entry(turn, f"{number}:{i}", f"session_{number}")
            yield from (((number, n), (entry, said[n]["role"])) for n in members)


def longmemeval(folder: Path) -> Dataset:
    """LongMemEval-S: a question is a user, a haystack session a conversation, a round (user, assistant) a turn.

    A session that a haystack repeats is recorded at both of its dates and counts as one item. Questions that are to
    be left unanswered are left out. The unit `message` is stricter than `turn`: the message that holds the answer
    must be the row that matched.
    """
    sessions = {line["id"]: line["turns"] for line in lines_of(folder / "sessions.jsonl.gz")}
    histories: dict[str, Callable[[], Iterator[Entry]]] = {}
    questions = []
    for line in lines_of(folder / "questions.jsonl"):
        if line["abstention"]:
            continue
        user = line["question_id"]
        histories[user] = _haystack(line["haystack"], sessions)
        questions.append(Question(user, line["question"], _answers(line, sessions), ("all", line["question_type"])))
    return Dataset("longmemeval", ("session", "turn", "message"), histories, tuple(questions))


def longmemeval_pool(folder: Path) -> Dataset:
    """All sessions of the cut under one user, each at the first date that a haystack gives it."""
    sessions = {line["id"]: line["turns"] for line in lines_of(folder / "sessions.jsonl.gz")}
    lines = list(lines_of(folder / "questions.jsonl"))
    dates: dict[str, str] = {}
    for line in lines:
        for session, date in line["haystack"]:
            dates.setdefault(session, date)
    pool = [(session, dates.get(session)) for session in sessions]
    questions = tuple(
        Question("pool", line["question"], _answers(line, sessions), ("all", line["question_type"]))
        for line in lines
        if not line["abstention"]
    )
    facts = {"pool": len(pool)}
    return Dataset("longmemeval-pool", ("session",), {"pool": _haystack(pool, sessions)}, questions, facts)


def _answers(line: Mapping[str, Any], sessions: Mapping[str, Sequence[Mapping[str, str]]]) -> dict[str, frozenset[str]]:
    turns, messages = set(), set()
    for session, numbers in line["has_answer_turns"].items():
        for i, members in enumerate(rounds(sessions[session])):
            for number in set(members).intersection(numbers):
                turns.add(f"{session}/{i}")
                messages.add(f"{session}/{i}:{sessions[session][number]['role']}")
    return {
        "session": frozenset(line["answer_session_ids"]),
        "turn": frozenset(turns),
        "message": frozenset(messages),
    }


def rounds(messages: Sequence[Mapping[str, str]]) -> list[list[int]]:
    """Numbers of the messages of each round: a user's message and the assistant's that follows it, where one does."""
    found: list[list[int]] = []
    for number, message in enumerate(messages):
        if message["role"] == "assistant" and found and messages[found[-1][-1]]["role"] == "user":
            found[-1].append(number)
        else:
            found.append([number])
    return found


def _haystack(
    haystack: Iterable[Sequence[str | None]], sessions: Mapping[str, Sequence[Mapping[str, str]]]
) -> Callable[[], Iterator[Entry]]:
    def history() -> Iterator[Entry]:
        seen: dict[str, int] = {}
        for session, date in haystack:
            assert session is not None
            seen[session] = seen.get(session, 0) + 1
            conversation = session if seen[session] == 1 else f"{session}#{seen[session]}"
            at = UNDATED if date is None else _longmemeval_time(date)
            messages = sessions[session]
            for i, members in enumerate(rounds(messages)):
                said = {messages[n]["role"]: messages[n]["content"] for n in members}
                yield Entry(
                    turn_of(conversation, i, at, said.get("user"), said.get("assistant")), f"{session}/{i}", session
                )

    return history


def _longmemeval_time(text: str) -> datetime:
    """Such as "2023/07/17 (Mon) 23:24"."""
    day, _, hour = text.partition(" (")
    return datetime.strptime(f"{day} {hour.partition(') ')[2]}", "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def xquad(folder: Path) -> Dataset:
    """XQuAD: a language is a user, a paragraph a conversation of one turn that the assistant gives.

    Groups: `all` and each language for the questions as they are; `variant:<kind>` for their spelling variants.
    """
    texts: dict[str, list[Entry]] = {}
    for line in lines_of(folder / "documents.jsonl"):
        texts.setdefault(line["lang"], []).append(_document(line["id"], line["text"]))
    questions = [
        Question(line["lang"], line["text"], {"paragraph": frozenset([line["gold"]])}, groups)
        for name, variant in (("queries.jsonl", False), ("variants.jsonl", True))
        for line in lines_of(folder / name)
        for groups in [(f"variant:{line['variant']}",) if variant else ("all", line["lang"])]
    ]
    histories = {language: replay(found) for language, found in texts.items()}
    return Dataset("xquad", ("paragraph",), histories, tuple(questions))


def scifact(folder: Path) -> Dataset:
    """SciFact: there is no realm of documents yet, so each is a conversation of one turn, title and text its answer."""
    documents = [
        _document(line["id"], f"{line['title']}\n{line['text']}") for line in lines_of(folder / "documents.jsonl.gz")
    ]
    questions = tuple(
        Question("scifact", line["text"], {"document": frozenset(line["gold"])}, ("all",))
        for line in lines_of(folder / "queries.jsonl")
    )
    return Dataset("scifact", ("document",), {"scifact": replay(documents)}, questions)


def _document(name: str, text: str) -> Entry:
    return Entry(turn_of(name, 0, UNDATED, None, text), name)


def lifebench(folder: Path) -> Dataset:
    """LifeBench: a language is a user, a kind of record a conversation, a record a turn of one row that the kind says.

    The row's text is every value of the record but its ids and what the camera was set to. Evidence that is not among
    the records cannot be found and is left out; so are questions without evidence. Groups: `all`, each language, and
    the question types.
    """
    histories: dict[str, Callable[[], Iterator[Entry]]] = {}
    questions = []
    for language in ("en", "zh"):
        if not (folder / f"{language}.records.json.gz").exists():
            continue
        with gzip.open(folder / f"{language}.records.json.gz", "rt", encoding="utf-8") as file:
            entries = list(_phone(json.load(file)))
        known = {entry.item for entry in entries}
        histories[language] = replay(entries)
        for line in json.loads((folder / f"{language}.questions.json").read_text("utf-8")):
            gold = frozenset(f"{e['type']}/{e['id']}" for e in line.get("evidence", ())) & known
            if gold:
                groups = ("all", language, line["question_type"])
                questions.append(Question(language, line["question"], {"record": gold}, groups))
    return Dataset("lifebench", ("record",), histories, tuple(questions))


def _phone(records: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Entry]:
    for kind, kept in records.items():
        dated = sorted(((_lifebench_time(record), record) for record in kept), key=lambda pair: pair[0])
        for i, (at, record) in enumerate(dated):
            text = "\n".join(_values({k: v for k, v in record.items() if k not in _LIFEBENCH_TECHNICAL}))
            yield Entry(turn_of(kind, i, at, text, None, kind), f"{kind}/{record['phone_id']}", kind)


def _lifebench_time(record: Mapping[str, Any]) -> datetime:
    written = record.get("datetime") or record.get("date") or record.get("日期")
    return UNDATED if written is None else datetime.fromisoformat(written.strip()).replace(tzinfo=UTC)


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _values(part)
    elif value not in (None, ""):
        yield str(value)


LOADERS: Mapping[str, Callable[[Path], Dataset]] = {
    "chats": chats,
    "locomo": locomo,
    "longmemeval": longmemeval,
    "longmemeval-pool": longmemeval_pool,
    "xquad": xquad,
    "scifact": scifact,
    "lifebench": lifebench,
}
