"""Asking the full-text index: BM25 whose rarity of words and length of rows are counted among the owner's rows.

One pass over the rows that have any of the words: the index finds them, how many have each word is counted among
them, and the score follows. What a filter leaves out is left out after counting, so it does not move the rarity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg import Cursor

from threefold.backends.postgres.connection import Db, planned_anew, run
from threefold.backends.postgres.filtering import join_and_condition, named
from threefold.backends.postgres.keys import term_key
from threefold.model.query import TOLD
from threefold.search.bm25 import BESIDE, K1, B
from threefold.text.terms import WILDCARD


def lexical(
    db: Db, owner: UUID, phrases: Sequence[str], narrowing: str, values: Mapping[str, object], depth: int
) -> Cursor[tuple[Any, ...]] | None:
    """Send the question for rows that have any of the distinct phrases, by BM25; None where nothing is asked.

    Those that end in `*` come last. With each row come the bits of the phrases that it has, with the first row the
    rarity of each phrase, 0 for one that does not occur.
    """
    if not phrases:
        return None
    keys = [term_key(owner, term) for term in phrases if not term.endswith(WILDCARD)]
    prefixes = [term.removesuffix(WILDCARD) for term in phrases if term.endswith(WILDCARD)]
    mine = {
        **values,
        **{f"k{i}": key for i, key in enumerate(keys)},
        **{f"p{i}": prefix for i, prefix in enumerate(prefixes)},
        "owner": owner,
        "keys": keys,
    }
    with planned_anew(db):
        return run(db, lexical_statement(len(keys), len(prefixes), narrowing, depth), mine)


def lexical_statement(words: int, prefixes: int, narrowing: str, depth: int) -> str:
    """The statement for so many words (`k0`, `k1`, …) and beginnings of words (`p0`, …).

    `depth` stands in it as a number, so that the planner knows how few rows are to be named.
    """
    expanded = [
        f"""x{i} AS MATERIALIZED (SELECT coalesce(array_agg(key), '{{}}') AS keys FROM threefold.vocabulary
            WHERE owner = %(owner)s AND starts_with(term, %(p{i})s)),"""
        for i in range(prefixes)
    ]
    keys = " || ".join(["%(keys)s::bigint[]", *(f"(SELECT keys FROM x{i})" for i in range(prefixes))])
    counts = [f"w.counts[array_position(w.terms, %(k{i})s::bigint)]::float8" for i in range(words)]
    counts += [
        f"""(SELECT sum(u.n) FROM unnest(w.terms, w.counts) AS u (key, n)
             WHERE u.key = ANY ((SELECT keys FROM x{i})::bigint[]))::float8"""
        for i in range(prefixes)
    ]
    n = range(words + prefixes)
    bits = n[:TOLD]
    told = " + ".join(f"CASE WHEN n{i} IS NULL THEN 0 ELSE {1 << i}::bigint END" for i in bits)
    rarity = ", ".join(f"CASE WHEN d{i} > 0 THEN w{i} ELSE 0 END" for i in bits)
    join, condition = join_and_condition("l.row", narrowing)
    return f"""WITH {"".join(expanded)} matched AS MATERIALIZED (
            SELECT w.row, w.length, {", ".join(f"{count} AS n{i}" for i, count in enumerate(counts))}
            FROM threefold.words AS w WHERE w.owner = %(owner)s AND w.terms && ({keys})
        ), counted AS (
            SELECT {", ".join(f"count(n{i})::float8 AS d{i}" for i in n)} FROM matched
        ), weighed AS (
            SELECT o.words::float8 / greatest(o.rows, 1) + {BESIDE} AS average,
                   {", ".join(f"ln(1 + (greatest(o.rows, d{i}) - d{i} + 0.5) / (d{i} + 0.5)) AS w{i}" for i in n)}
            FROM counted CROSS JOIN threefold.owners AS o WHERE o.owner = %(owner)s
        ), scored AS (
            SELECT m.row, {" + ".join(f"coalesce(w{i} * n{i} / (n{i} + norm), 0)" for i in n)} AS score,
                   {told} AS told
            FROM weighed CROSS JOIN LATERAL (
                SELECT *, {K1}::float8 * ({1 - B}::float8 + {B}::float8 * (length + {BESIDE}) / average) AS norm
                FROM matched) AS m
        ), best AS MATERIALIZED (
            SELECT l.row, {K1 + 1}::float8 * l.score AS score, l.told
            FROM scored AS l {join} WHERE true {condition}
            ORDER BY l.score DESC, l.row DESC LIMIT {depth:d}
        ) {named("DESC", "l.told", f"(SELECT ARRAY[{rarity}] FROM weighed CROSS JOIN counted)")}"""
