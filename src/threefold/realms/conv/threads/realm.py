"""A thread of one scope: add, context, archive, reopen, retrieve, maintain; and the list of threads."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from typing import Final, Literal

from threefold.errors import Conflict, InvalidInput, Unavailable
from threefold.model.paging import Cursor
from threefold.model.scope import Scope, check_id
from threefold.model.times import Moment, parse_moment
from threefold.realms.conv.finding import MAX_LIMIT, check_limit
from threefold.realms.conv.realm import Conv
from threefold.realms.conv.refs import ref_for
from threefold.realms.conv.threads.keeping import State, Summary
from threefold.realms.conv.threads.reading import Stretch, joined, parts, read_stretch
from threefold.realms.conv.threads.shelf import Shelf, list_states
from threefold.realms.conv.threads.values import Maintained, Status, ThreadContext, ThreadEntry, ThreadInfo
from threefold.realms.conv.threads.writing import AT_ONCE, EXTRACT, STEP, extended, on_the_fly
from threefold.realms.wiring import Ports

WINDOW: Final = 50
_TRIES: Final = 5
# So many messages behind what the kept summary covers are worth a word.
_MANY: Final = 10 * STEP
# Without a model the summary is looked after every so many turns as messages are added.
_EVERY: Final = STEP // 2


class Thread:
    """A named conversation of the record with a sliding window: what leaves it is summarised.

    The messages are those of every turn of the conversation with that name: what the user sent, and the answers, in
    order of time. Reading makes nothing; the thread is made by `create` or with the first `add`.
    """

    def __init__(self, scope: Scope, ports: Ports, name: str) -> None:
        self.name = check_id(name, "name")
        self._scope, self._ports = scope, ports
        self._shelf = Shelf(scope, ports, name)

    def create(self) -> ThreadInfo:
        """Make the thread, if it is not there; a conversation that is recorded already becomes one.

        Raises:
            Forbidden: the conversation belongs to another app of the user.
        """
        for _ in range(_TRIES):
            state, _ = self._shelf.kept()
            if state is not None or self._shelf.put(self._shelf.new()):
                return self.retrieve()
        raise self._busy()

    def add(self, role: Literal["user", "assistant"], text: str, at: Moment = None, author: str | None = None) -> str:
        """Add a message, as a turn of its own, and return its reference. `at` is when it was said, if not now.

        Raises:
            InvalidInput: `role` is neither, `text` is blank. Conflict: the thread is archived.
            Forbidden: the conversation belongs to another app of the user. Unavailable: the store is busy or full.
        """
        if role not in ("user", "assistant"):
            raise InvalidInput(f"role {role!r} must be user or assistant")
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput("text must be text that is not blank")
        state, _ = self._shelf.kept()
        if state is not None and state.archived is not None:
            raise archived_thread(self.name)
        moment = None if at is None else parse_moment(at, "at")
        turn = Conv(self._scope, self._ports).open_turn(self.name, started=moment)
        if role == "user":
            turn.prompt(text, moment, author=author)
        else:
            turn.answer(text, moment, author=author)
        turn.record()
        # The message is kept; what is left over is made up for by the next one.
        with suppress(Conflict, Unavailable):
            self._follow(state)
        return ref_for(self.name, turn.id, "user.prompt" if role == "user" else "assistant.completion")

    def _follow(self, state: State | None) -> None:
        """After a message: the thread is there and moves up the list; without a model to wait for, it is summarised."""
        if state is None:
            self._shelf.put(self._shelf.new())
        elif self._shelf.stale(state):
            self._shelf.put(state)
        if self._ports.summarizer is None:
            last = self._shelf.turn(newest=True)
            if last is not None and last.ordinal % _EVERY == 0:
                self.maintain()

    def context(self, window: int = WINDOW) -> ThreadContext:
        """A summary of all messages before the last `window` (1 to 10,000), and these whole, oldest first.

        Never waits for a model: of what no kept summary covers, the sentences that say most are taken. Costs a few
        reads, however long the thread is, as long as its summary is kept up by `add` or `maintain`, and `window` is no
        larger than there.

        Raises:
            NotFound: there is no such thread and no such conversation. Forbidden: it belongs to another app.
        """
        _check_window(window)
        state, kept = self._shelf.kept()
        stretch = self._stretch(state, kept, window)
        messages = stretch.messages
        behind, shown = messages[:-window], messages[-window:]
        summary = on_the_fly(stretch.covered, behind)
        covered = 0 if stretch.covered is None else stretch.covered.messages
        return ThreadContext(
            name=self.name,
            summary=summary,
            messages=shown,
            summarised=covered + len(behind),
            status=_status(state),
            warnings=self._warnings(stretch.covered, len(behind)),
        )

    def _warnings(self, covered: Summary | None, behind: int) -> tuple[str, ...]:
        found = []
        if behind >= _MANY:
            found.append(f"{behind} messages were summarised anew; call maintain() after a turn, with this window")
        if self._ports.summarizer is not None and covered is not None and covered.by == EXTRACT:
            found.append("the last part of the summary was extracted, not written by the model")
        return tuple(found)

    def retrieve(self) -> ThreadInfo:
        """Times, counts and how far the summary is.

        Raises:
            NotFound: there is no such thread and no such conversation. Forbidden: it belongs to another app.
        """
        state, kept = self._shelf.kept()
        stretch = self._stretch(state, kept, 0)
        covered = stretch.covered
        first, last = self._shelf.turn(newest=False), self._shelf.turn(newest=True)
        ends = [said.entry.ended for said in stretch.turns] or ([] if last is None else [last.ended])
        return ThreadInfo(
            name=self.name,
            status=_status(state),
            created=None if state is None else state.created,
            started=None if first is None else first.started,
            last_activity=max(ends, default=None),
            turns=0 if last is None else last.ordinal,
            messages=len(stretch.messages) + (0 if covered is None else covered.messages),
            summarised=0 if covered is None else covered.messages,
            parts={} if covered is None else covered.parts,
            archived=None if state is None else state.archived,
        )

    def check_open(self) -> None:
        """Refuse where it cannot be written to; one that is not there yet can.

        Raises:
            Conflict: it is archived. Forbidden: it belongs to another app.
        """
        state, _ = self._shelf.kept()
        if state is not None and state.archived is not None:
            raise archived_thread(self.name)
        self._shelf.home()

    def archive(self) -> ThreadInfo:
        """Refuse further messages and leave the thread out of lists; nothing is removed. Raises as `retrieve`."""
        return self._set(archived=True)

    def reopen(self) -> ThreadInfo:
        """Undo `archive`. Raises as `retrieve`."""
        return self._set(archived=False)

    def _set(self, archived: bool) -> ThreadInfo:
        for _ in range(_TRIES):
            state, _ = self._shelf.kept()
            if state is None:
                self._shelf.check_there()
                state = self._shelf.new()
            elif (state.archived is not None) == archived:
                return self.retrieve()
            if self._shelf.put(replace(state, archived=self._ports.clock() if archived else None)):
                return self.retrieve()
        raise self._busy()

    def maintain(self, window: int = WINDOW) -> Maintained:
        """Write the parts of the summary that are due: call it after a turn, in the background.

        Parts of 20 messages or more, of turns that left the window whole, are written once, by the summarizer of the
        store; where it fails, or without one, by extraction. `window` is the largest that will be asked for. Where
        another process is ahead, nothing is written here. A conversation becomes a thread.

        Raises:
            NotFound: there is no such thread and no such conversation. Forbidden: it belongs to another app.
            Unavailable: the store is busy.
        """
        _check_window(window)
        state, kept = self._shelf.kept()
        if state is None:
            self._shelf.check_there()
            self._shelf.put(self._shelf.new())
            state, kept = self._shelf.kept()
        # The state was read before the messages: what is removed from now on is in no summary that is kept.
        return Maintained(0) if state is None else self._extend(state, kept, self._stretch(state, kept, window), window)

    def _extend(self, state: State, kept: Summary | None, stretch: Stretch, window: int) -> Maintained:
        covered, digest = stretch.covered, "" if kept is None else kept.digest
        summarizer, store = self._ports.summarizer, self._ports.store
        warnings, written = list[str](), 0
        due = joined(parts(stretch.turns, window, STEP), 0 if summarizer is None else AT_ONCE)
        for left, part in zip(range(len(due), 0, -1), due, strict=True):
            keys = [(said.entry.conversation, said.entry.turn) for said in part]
            records = store.records(self._scope, keys, self._ports.clock())
            if len(records) < len(keys):
                break  # some are over by now
            ends = [record.expires for record in records]
            covered, warning = extended(covered, part, ends, summarizer if left <= AT_ONCE else None)
            warnings += [] if warning is None else [warning]
            put = self._shelf.put_summary(state, covered, digest)
            if put is None:
                break
            state, digest = put
            written += 1
        return Maintained(written, tuple(dict.fromkeys(warnings)))

    def _stretch(self, state: State | None, kept: Summary | None, window: int) -> Stretch:
        """The turns that are not summarised; refuses where there is no thread."""
        found = read_stretch(self._ports.store, self._scope, self.name, self._ports.clock(), window, kept)
        if state is None and not found.turns and found.covered is None:
            self._shelf.check_there()
        return found

    def _busy(self) -> Conflict:
        return Conflict(f"thread {self.name!r} is being changed by many at once; try again")


def archived_thread(name: str) -> Conflict:
    """The error of who adds to a thread that is archived; it names the mend in Python and on the command line."""
    return Conflict(f"thread {name!r} is archived; reopen() it first (threefold threads reopen {shlex.quote(name)})")


def list_threads(
    scope: Scope, ports: Ports, limit: int = 20, after: ThreadEntry | Cursor | None = None, archived: bool = False
) -> tuple[ThreadEntry, ...]:
    """Threads that were made, those last written to first; see `Handle.threads`."""
    check_limit(limit, MAX_LIMIT)
    states = list_states(scope, ports, limit, None if after is None else (after.cursor.at, after.cursor.id), archived)
    return tuple(ThreadEntry(state.name, _status(state), state.created, state.active) for state in states)


def _status(state: State | None) -> Status:
    return "active" if state is None or state.archived is None else "archived"


def _check_window(window: int) -> None:
    if not isinstance(window, int) or isinstance(window, bool) or not 1 <= window <= MAX_LIMIT:
        raise InvalidInput(f"window {window!r} must be a whole number of messages from 1 to {MAX_LIMIT:,}")
