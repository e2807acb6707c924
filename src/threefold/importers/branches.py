"""Conversations that are trees: every edited prompt and every answer that was asked for again begins a branch.

The active branch is the conversation. Nothing of the others is lost: the turns of an abandoned branch that are not
part of the conversation (or of a branch told before) are a conversation of their own, `<conversation>/branch-<its
last message>`, whose `origin` names the conversation that it left and the turn after which it did. So the
conversation reads as its owner saw it last, each turn is stored once, and what was said on a branch can still be
found and placed. Ids do not depend on order or time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from threefold.importers.folding import Conversation
from threefold.model.turn import Turn

MAX_SHARED = 100  # messages of the turn in which a branch leaves that are told again with it


@dataclass(frozen=True, slots=True)
class Node:
    """One message of a tree. `prompt` says whether it is a person's."""

    id: str
    parent: str | None
    prompt: bool
    at: datetime | None
    message: Mapping[str, Any]


class Tree:
    """The messages of a conversation in the order of the file, with the leaf that its owner saw last."""

    def __init__(self, nodes: Iterable[Node], active: object) -> None:
        self._nodes = {node.id: node for node in nodes}
        parents = {node.parent for node in self._nodes.values()}
        self._leaves = [node.id for node in self._nodes.values() if node.id not in parents]
        self._active = active if isinstance(active, str) and active in self._nodes else self._latest()
        self._owner: dict[str, tuple[str, str]] = {}  # message → its conversation and turn

    def unfold(
        self,
        main: Conversation,
        branch: Callable[[str, Mapping[str, Any]], Conversation],
        feed: Callable[[Conversation, Node], list[Turn]],
    ) -> Iterator[Turn]:
        """The turns of the active branch, fed into `main`, then those of the others, each into what `branch` makes.

        `branch` is given the branch's id and what its origin says.
        """
        if self._active is not None:
            yield from self._told(main, self._path(self._active), feed)
        for leaf in self._leaves:
            if leaf not in self._owner:
                yield from self._branch(main, leaf, branch, feed)
        for rest in reversed(self._nodes):  # only circles have no leaf
            if rest not in self._owner:
                yield from self._branch(main, rest, branch, feed)

    def _branch(
        self,
        main: Conversation,
        leaf: str,
        branch: Callable[[str, Mapping[str, Any]], Conversation],
        feed: Callable[[Conversation, Node], list[Turn]],
    ) -> Iterator[Turn]:
        path = self._path(leaf)
        first = next(i for i, name in enumerate(path) if name not in self._owner)
        above = path[first - 1] if first else None
        # A prompt after an answer begins a turn: the branch left after the turn of that answer, else within it.
        whole = above is not None and self._nodes[path[first]].prompt and not self._nodes[above].prompt
        conversation, after = self._owner.get((above if whole else self._nodes[path[0]].parent) or "", (main.id, ""))
        about = {"parent": conversation, "branch": leaf} | ({"after": after} if after else {})
        yield from self._told(branch(f"{main.id}/branch-{leaf}", about), path, feed)

    def _told(
        self, talk: Conversation, path: list[str], feed: Callable[[Conversation, Node], list[Turn]]
    ) -> Iterator[Turn]:
        members: list[str] = []
        for name in path:
            ended = feed(talk, self._nodes[name])
            yield from self._kept(ended, members)
            if ended:
                members = []
            members.append(name)
        yield from self._kept(talk.close(), members)
        for name in members:  # of a branch without a word
            self._owner.setdefault(name, (talk.id, ""))

    def _kept(self, ended: list[Turn], members: list[str]) -> Iterator[Turn]:
        """The turn, if one of its messages was not told before."""
        fresh = [name for name in members if name not in self._owner]
        for turn in ended:
            if fresh:
                yield turn
            for name in fresh:
                self._owner[name] = (turn.conversation, turn.id)

    def _path(self, leaf: str) -> list[str]:
        """The way to `leaf`, from the beginning of the turn in or after which it leaves what was told already."""
        path: list[str] = []
        passed: set[str] = set()
        told = 0  # how many messages of the path are not told yet
        left: tuple[str, str] | None = None
        name: str | None = leaf
        while name is not None and name in self._nodes and name not in passed:
            owner = self._owner.get(name)
            if left is not None and (owner != left or len(path) - told >= MAX_SHARED):
                break
            told += left is None
            left = owner
            path.append(name)
            passed.add(name)
            name = self._nodes[name].parent
        return path[::-1]

    def _latest(self) -> str | None:
        """The leaf of the latest message; of equal times that which the file names last."""
        ends = self._leaves or list(self._nodes)
        times = [
            (node.at.timestamp() if (node := self._nodes[name]).at is not None else 0.0, i)
            for i, name in enumerate(ends)
        ]
        return ends[max(times)[1]] if times else None
