"""The reference grammar: every reference survives a round trip, and nothing else gets through."""

from __future__ import annotations

import contextlib

from hypothesis import example, given
from hypothesis import strategies as st

from threefold.errors import InvalidInput
from threefold.model.ref import FAMILIES, ConvRef, check_path, parse_ref
from threefold.testing.strategies import HOSTILE_IDS, conv_refs, file_paths, ids, object_refs, texts

ROOMY = 300


@given(conv_refs() | object_refs())
def test_any_reference_survives_a_round_trip(ref) -> None:
    text = str(ref)
    assert parse_ref(text) == ref
    assert str(parse_ref(text)) == text
    assert not any(c.isspace() for c in text)


@given(conv_refs())
def test_short_forms_are_completed_by_the_conversation(ref: ConvRef) -> None:
    _, family, rest = str(ref).split(":", 2)
    local = rest[rest.index(".turn_") + 1 :]
    for short in (f"{family}:{local}", f"conv:{family}:{local}"):
        assert parse_ref(short, ref.conversation) == ref
        assert parse_ref(short).conversation is None
    # A conversation that is written out wins over the one that is known.
    assert parse_ref(str(ref), "another") == ref


@given(file_paths(), ids(), ids())
def test_any_valid_path_survives(path: str, turn: str, conversation: str) -> None:
    ref = ConvRef("fi", turn, f"files/{check_path(path)}", conversation)
    assert parse_ref(str(ref)) == ref


@given(
    st.text(max_size=80)
    | texts()
    | st.tuples(st.sampled_from(["conv", "mem", "cnv", "doc", "x", *FAMILIES]), st.text(max_size=40)).map(":".join)
    | st.builds(lambda f, c, b: f"conv:{f}:conv_{c}.turn_1.{b}", st.sampled_from([*FAMILIES]), ids(), st.text()),
    st.none() | ids(),
)  # fmt: skip
@example("conv:fi:conv_a.turn_b.files/../../etc/passwd", None)
@example("conv:fi:conv_a.turn_b.files/%2e%2e/x", None)
@example("conv:fi:conv_a.turn_b.files/a%2Fb", None)
@example("conv:fi:conv_a.turn_b.files//a", None)
@example("conv:fi:conv_a.turn_b.secrets/a", None)
@example("conv:ar:conv_a.turn_b.user.prompt\n", None)
@example("conv:ar:conv_%FF.turn_b.user.prompt", None)
@example("conv:ar:conv_%00.turn_b.user.prompt", None)
@example("conv:ar:conv_a%2.turn_b.user.prompt", None)
@example("conv:so:conv_a.turn_b.sources_pool[" + "9" * 5000 + "]", None)
@example("cnv:a@" + "9" * 5000, None)
@example("", None)
@example("conv:ar:conv_\ud800.turn_b.user.prompt", None)
@example(None, None)
@example(7, None)
def test_anything_else_is_refused_in_our_own_words(text, conversation) -> None:
    with contextlib.suppress(InvalidInput):
        found = parse_ref(text, conversation)
        if getattr(found, "conversation", "") is not None:
            assert parse_ref(str(found)) == found


@given(st.lists(ids(), min_size=2, max_size=2, unique=True))
def test_two_ids_never_share_a_reference(pair: list[str]) -> None:
    refs = {str(ConvRef("ar", turn, "user.prompt", conversation)) for turn in pair for conversation in pair}
    assert len(refs) == 4


def test_hostile_ids_are_many_and_distinct() -> None:
    assert len(HOSTILE_IDS) == len(set(HOSTILE_IDS)) > 130
