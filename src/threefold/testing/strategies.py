"""Hypothesis strategies: identifiers and texts that have broken other systems, turns made of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from threefold.model.kinds import STATUSES, SUBMISSION_KINDS
from threefold.model.ref import ConvRef, ObjectRef
from threefold.model.scope import MAX_ID_BYTES, Scope
from threefold.model.turn import Attachment, Completion, Note, Submission, Turn

# Prefixes of each other, separators, wildcards, quotes, fragments of SQL and of full-text expressions, marks that
# combine, joiners, other directions and widths, ids that look like parts of stored keys.
HOSTILE_IDS = (
    "a", "aa", "ab", "a b", "a ", " a", "A", "a.", "a..", ".a", "a/", "a/b", "../a", "..", ".", "a\\", "\\",
    "a:", ":",
    "a|b", "|", "a%", "%", "%25", "a_", "_", "*", "a*", "?", "a?", "[a]", "{a}", "$a", "~", "#", "a#1", "a@2",
    "&", "=",
    "'", '"', "a'", 'a"', "''", '""', "`", "a;--", "' OR '1'='1", '" OR "a', "a' --", "/* a */", "NULL",
    "null", "None",
    "0", "1", "-1", "1:a", "1:c1", "c1", "ruser", "user", "u1", "default", "a.batch", "turn_a", "conv_a",
    "turn_", "conv_",
    "NOT a", "a AND b", "a NEAR/2 b", "^a", "terms : a", "scope:a", "{$gt: ''}", "@a:{*}", "<a>", "\n", "\ta",
    "a\r\n",
    "\x01", "\x1b[0m", "\x7f", "\x85a", "\u00a0a", "\u2028", "\u3000a", "e\u0301", "\u00e9", "\u0301", "a\u0301",
    "\u200da", "a\u200b", "\ufeffa", "\u202ea", "\u2066a\u2069", "a\u00ad", "ﬁ", "fi", "ß", "ss", "İ", "i̇",
    "ı", "Ａ", "𝐚",
    "ﷺ", "ﱞ1:a", "ͺ1:a", "ᾳ", "ſ", "K", "Å", "猫", "猫猫", "成语", "しりとり", "끝말", "ไทย", "हिन्दी", "عربي", "עברית",
    "αβγ", "щи",
    "🕯️", "🕯", "👩‍👩‍👧", "🇵🇹", "🇵", "\U0001f600", "𠀀", "\U0010ffff", "\ufffd", "\uffff", "a" * 255, "a" * 256,
    "é" * 512,
    "猫" * 341, "🕯" * 256,
)  # fmt: skip

_LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")


def _usable(text: str) -> bool:
    return bool(text.strip()) and len(text.encode()) <= MAX_ID_BYTES


def ids(also: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """Identifiers that must be accepted: hostile ones, any Unicode, and near relatives of the hostile ones."""
    hostile = st.sampled_from([text for text in (*HOSTILE_IDS, *also) if _usable(text)])
    related = st.tuples(hostile, st.sampled_from(["", " ", "%", "_", "*", ".", ":", "/", "a", "\u0301", "\u200d", "'"]))
    free = st.text(_LETTERS, min_size=1, max_size=20)
    return st.one_of(hostile, related.map("".join), free).filter(_usable)


def bad_ids() -> st.SearchStrategy[Any]:
    """What must be refused wherever an identifier is asked for."""
    fixed = [
        "",
        " ",
        "\t\n",
        "\u2003",
        "\x00",
        "a\x00",
        "\ud800",
        "a\udfff",
        "x" * 1025,
        "é" * 513,
        1,
        1.0,
        b"a",
        (),
        True,
    ]
    return st.sampled_from(fixed) | st.text(_LETTERS, max_size=9).map(lambda text: text + "\x00")


def scopes() -> st.SearchStrategy[Scope]:
    """Scopes of hostile tenants and users, without app and agent."""
    return st.builds(Scope, user=ids(), tenant=ids(("default",)))


def texts(max_size: int = 60) -> st.SearchStrategy[str]:
    """Any Python text: every plane, controls, NUL, lone surrogates; and pieces of what people write."""
    words = st.sampled_from(
        ["river", "boats", "Lisbon", "Café", "it's", "l'amour", "C++", "a_b", "getUserName", "v1.2.3",
        "x@y.org", "成语接龙",
         "しりとり", "끝말잇기", "ไปตลาด", "हिन्दी", "مَدِينَة", "Straße", "İstanbul", "ﷺ", "ﬁn", "🎉", "e\u0301", "½",
         "№5", "\x00", "--", "where?", "どこ？", "أين؟", "why?\x00"]
    )  # fmt: skip
    return st.text(max_size=max_size) | st.lists(words, max_size=8).map(" ".join)


def moments(around: datetime = datetime(2026, 11, 29, 12, tzinfo=UTC)) -> st.SearchStrategy[datetime]:
    """Moments in whole minutes within two days of `around`, so that many are equal."""
    return st.integers(-2880, 2880).map(lambda minutes: around + timedelta(minutes=minutes))


def file_paths() -> st.SearchStrategy[str]:
    """Relative paths of one to three segments that may be published."""
    segment = ids().filter(lambda s: "/" not in s and "\\" not in s and s not in (".", "..") and len(s.encode()) < 300)
    return st.lists(segment, min_size=1, max_size=3).map("/".join)


@st.composite
def turns(draw: st.DrawFn, conversations: st.SearchStrategy[str], names: st.SearchStrategy[str]) -> Turn:
    """A turn with some of everything."""
    started = draw(moments())
    ended = started + timedelta(minutes=draw(st.integers(0, 30)))
    authors = st.sampled_from([None, None, "Ana", "张伟", "a\x00b"])
    said = draw(st.lists(st.tuples(st.sampled_from(SUBMISSION_KINDS), texts(), authors), max_size=3))
    answer = draw(st.none() | texts())
    data = draw(st.lists(st.binary(max_size=20), max_size=2))
    note = draw(st.none() | texts())
    return Turn(
        conversation=draw(conversations),
        id=draw(names),
        started=started,
        ended=ended,
        status=draw(st.sampled_from(STATUSES)),
        title=draw(st.none() | texts(20)),
        submissions=tuple(Submission(kind, text, started, author=author) for kind, text, author in said),
        attachments=tuple(Attachment(f"file{i}.txt", d, started, None, answer) for i, d in enumerate(data)),
        notes=() if note is None else (Note(note, ended),),
        completion=None if answer is None else Completion(answer, ended),
    )


def conv_refs() -> st.SearchStrategy[ConvRef]:
    """References into the record, of every family, with hostile ids."""
    number = st.integers(0, 99).map(str)
    bodies = {
        "ar": st.sampled_from(["user.prompt", "assistant.completion", "turn.log", "notes.1"]),
        "tc": st.sampled_from(["call", "result", "notice"]).flatmap(
            lambda end: number.map(lambda n: f"step_{n}.{end}")
        ),
        "so": st.sampled_from(["sources_pool", "sources_pool[1]", "sources_pool[1,3-5]"]),
        "ws": st.sampled_from(["conv.working.summary", "conv.working.summary.anchors"]),
        "su": st.sampled_from(["conv.range.summary", "conv.range.summary.2"]),
        "ev": number.map(lambda n: f"events/{n}"),
        "fi": st.tuples(st.sampled_from(["files", "user.attachments"]), file_paths()).map("/".join),
    }
    return st.sampled_from(sorted(bodies)).flatmap(
        lambda family: st.builds(ConvRef, st.just(family), ids(), bodies[family], ids())
    )


def object_refs() -> st.SearchStrategy[ObjectRef]:
    """References of the other realms and of apps, with hostile ids."""
    revision = st.none() | st.integers(0, 10**17)
    return st.one_of(
        st.builds(ObjectRef, st.just("mem"), ids(), st.just("record")),
        st.builds(lambda id_, rev: ObjectRef("cnv", id_, revision=rev), ids(), revision),
        st.builds(lambda id_, part: ObjectRef("doc", id_, fragment=part), ids(), st.none() | ids()),
        st.builds(ObjectRef, st.sampled_from(["task", "x-1", "app_2"]), ids(), st.sampled_from(["issue", "k"])),
    )
