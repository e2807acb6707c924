"""What agents may do with a user's memory: nothing, propose, or hold some kinds at once. A person decides."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, get_args

from threefold.errors import Conflict, Forbidden, InvalidInput
from threefold.model.codec import digest_of, log_to_json
from threefold.model.commit import Commit, RecordTurn
from threefold.model.memory import Status
from threefold.model.record import TurnLog, TurnRecord
from threefold.model.scope import Scope, check_id
from threefold.realms.mem import checking
from threefold.realms.mem.places import place_of
from threefold.realms.wiring import Ports

Rule = Literal["off", "propose", "auto"]
CONVERSATION: Final = "policy"
# Of every agent that has none of its own.
_ANY: Final = "any agent"


@dataclass(frozen=True, slots=True)
class Policy:
    """`off`: agents write nothing. `propose`: what they say waits for the person. `auto`: `kinds` are held at once."""

    rule: Rule = "propose"
    kinds: tuple[str, ...] = ()

    def status(self, kind: str) -> Status:
        """How a memory of this kind from an agent begins.

        Raises:
            Forbidden: agents may not write.
        """
        if self.rule == "off":
            raise Forbidden("agents may not write this user's memory; the person can allow it: mem.allow('propose')")
        return "active" if self.rule == "auto" and kind in self.kinds else "proposed"


def policy_for(scope: Scope, ports: Ports, agent: str | None) -> Policy:
    """What an agent may do: the rule for it, else that for all, else `propose`."""
    names = [*([_name(agent)] if agent is not None else []), _ANY]
    found = {record.turn: record for record in _records(scope, ports, names)}
    for name in names:
        if name in found:
            return Policy(found[name].replay["rule"], tuple(found[name].replay["kinds"]))
    return Policy()


def allow(scope: Scope, ports: Ports, rule: Rule, kinds: Collection[str], agent: str | None) -> Policy:
    """Set the rule for one agent, or for all that have none of their own.

    Raises:
        InvalidInput: `rule` is none, or `kinds` does not fit it. Conflict: it is being set by another.
    """
    if rule not in get_args(Rule):
        raise InvalidInput(f"rule {rule!r} must be one of {', '.join(get_args(Rule))}")
    chosen = tuple(checking.kind_name(kind) for kind in checking.tag_names(kinds))
    if bool(chosen) != (rule == "auto"):
        raise InvalidInput("kinds names what agents may hold at once; give it with rule='auto' and only then")
    name, now = _ANY if agent is None else _name(agent), ports.clock()
    log = TurnLog(name, now, now, "completed", ())
    body = {"rule": rule, "kinds": list(chosen)}
    digest = digest_of([log_to_json(log), body])
    record = TurnRecord(CONVERSATION, name, "minimal", log, (), (), body, digest, "")
    before = next(iter(_records(scope, ports, [name])), None)
    try:
        write = RecordTurn(record, replaces="" if before is None else before.digest)
        ports.store.commit(Commit(_place(scope), (write,)))
    except Conflict:
        raise Conflict("the policy is being set by another; read it and try again") from None
    return Policy(rule, chosen)


def _records(scope: Scope, ports: Ports, names: Collection[str]) -> tuple[TurnRecord, ...]:
    return ports.store.records(_place(scope), [(CONVERSATION, name) for name in names], ports.clock())


def _place(scope: Scope) -> Scope:
    """The same for every app of the user."""
    return place_of(scope, "own").owner


def _name(agent: str) -> str:
    return f"agent {check_id(agent, 'agent')}"
