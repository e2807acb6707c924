"""What every list shares: how rows are left out that are over or that the filter refuses, and how rows are named."""

from __future__ import annotations

from threefold.model.query import Query
from threefold.model.times import to_micros
from threefold.text.asking import ENDING

# Expired rows are swept soon after their time; the owner's first end tells whether there are any to leave out.
_ANY_OVER = "(SELECT expires <= %(now)s FROM threefold.owners WHERE owner = %(owner)s)"
_LIVE = "(r.expires IS NULL OR r.expires > %(now)s)"


def named(order: str, told: str = "0", once: str = "NULL") -> str:
    """The end of a list's statement: what ranking needs of the rows of `best`, with the names of their keys.

    `order` says which row comes first of those with the same score: ASC or DESC by number. `told` is what the list
    tells of each row, `once` what it tells of all, given with the first.
    """
    return f"""SELECT l.row, l.score, {told},
            CASE WHEN row_number() OVER (ORDER BY l.score DESC, l.row {order}) = 1 THEN {once} END,
            c.name, t.name, r.seq, r.role, r.at, r.position, r.word_count, r.author, right(r.text, {ENDING})
        FROM best AS l
        JOIN threefold.rows AS r ON r.owner = %(owner)s AND r.number = l.row
        JOIN threefold.turns AS t ON t.owner = %(owner)s AND t.number = r.turn
        JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.number = r.conversation
        ORDER BY l.score DESC, l.row {order}"""


def narrow(query: Query) -> tuple[str, dict[str, object]]:
    """The filter as a condition on `rows AS r`, empty where it lets every row pass, and the values it names."""
    where, conditions = query.where, list[str]()
    values: dict[str, object] = {"now": to_micros(where.now)}

    def add(condition: str, name: str, value: object) -> None:
        conditions.append(condition)
        values[name] = value

    if where.conversation is not None:
        add(
            """r.conversation = (SELECT number FROM threefold.conversations
                                 WHERE owner = %(owner)s AND name = %(conversation)s)""",
            "conversation",
            where.conversation,
        )
    if where.roles is not None:
        add("r.role = ANY(%(roles)s::text[])", "roles", list(where.roles))
    if where.since is not None:
        add("r.at >= %(since)s", "since", to_micros(where.since))
    if where.until is not None:
        add("r.at < %(until)s", "until", to_micros(where.until))
    for column, name in (("agent", where.agent), ("app", query.scope.app)):
        if name is not None:
            add(
                f"""EXISTS (SELECT 1 FROM threefold.turns AS t WHERE t.owner = %(owner)s AND t.number = r.turn
                            AND t.{column} = %({column})s)""",
                column,
                name,
            )
    for i, group in enumerate(where.labels):
        add(labelled("r.turn", i), f"labels{i}", list(group))
    return " AND ".join(conditions), values


def labelled(turn: str, group: int) -> str:
    """The condition that a turn has one of the labels that the value `labels<group>` names."""
    return f"""EXISTS (SELECT 1 FROM threefold.labels AS b WHERE b.owner = %(owner)s
                      AND b.label = ANY(%(labels{group})s::text[]) AND b.turn = {turn})"""


def join_and_condition(row: str, narrowing: str) -> tuple[str, str]:
    """How a list of rows is narrowed: what to join to its `row`, and a condition that begins with AND."""
    if narrowing:
        join = f"JOIN threefold.rows AS r ON r.owner = %(owner)s AND r.number = {row}"
        return join, f"AND {narrowing} AND {_LIVE}"
    return (
        "",
        f"""AND ({_ANY_OVER} IS NOT TRUE OR EXISTS (
        SELECT 1 FROM threefold.rows AS r WHERE r.owner = %(owner)s AND r.number = {row} AND {_LIVE}))""",
    )
