"""From what a person asks to the question for the store, the same in every realm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from threefold.errors import InvalidInput, ThreefoldError
from threefold.model.clean import storable
from threefold.model.query import LISTS, Filter, ListName, Query
from threefold.model.scope import Scope
from threefold.realms.wiring import Ports
from threefold.text.terms import query_terms

if TYPE_CHECKING:
    import numpy as np

# Longer questions are cut: what stands there is a document, and every word of it costs a look-up.
MAX_QUERY, MAX_TERMS = 10_000, 256


def check_question(value: object) -> str:
    """What is asked, as text that can be stored; refuses what is none, or blank."""
    if not isinstance(value, str):
        raise InvalidInput(f"query must be text, not {type(value).__name__}")
    if not value.strip():
        raise InvalidInput("query is empty; ask a question, or give words to look for")
    return storable(value)


def question_for(
    scope: Scope, ports: Ports, text: str, where: Filter, lists: Sequence[ListName], depth: int
) -> tuple[Query, tuple[str, ...]]:
    """The question for the store, and warnings about what cannot be asked."""
    unknown = [name for name in lists if name not in LISTS]
    if unknown or not lists:
        raise InvalidInput(f"lists must name some of {', '.join(LISTS)}, not {unknown or 'nothing'}")
    wanted = tuple(name for name in LISTS if name in lists)
    vector, warning = _vector(ports, text[:MAX_QUERY]) if "semantic" in wanted else (None, None)
    model = None if ports.embedder is None else ports.embedder.name
    asked = text[:MAX_QUERY]
    terms = query_terms(asked)
    warnings = [] if warning is None else [warning]
    if len(text) > MAX_QUERY or len(terms) > MAX_TERMS:
        warnings.append(
            f"the question is long: its first {MAX_QUERY:,} characters and {MAX_TERMS} words were searched for"
        )
    return Query(scope, where, terms[:MAX_TERMS], wanted, vector, model, depth), tuple(warnings)


def _vector(ports: Ports, text: str) -> tuple[np.ndarray | None, str | None]:
    """The question's vector; or why there is none. A model that loads in the background is never waited for."""
    embedder = ports.embedder
    if embedder is None:
        return None, "semantic search is off: the store was opened without an embedder"
    try:
        if not embedder.ready:
            ports.warm()
            if not embedder.ready:
                return None, f"semantic search is off for the moment: the model {embedder.name!r} is being loaded"
        vector = ports.question(text)
    except ThreefoldError as error:
        return None, f"semantic search is off: the embedder failed: {error}"
    # All zeros: the model knows nothing of this text, such as one in a script that it never saw.
    return (vector if vector.any() else None), None
