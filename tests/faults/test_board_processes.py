"""Two processes edit one board at once, in SQLite and in PostgreSQL: nothing that was written is lost."""

from __future__ import annotations

import subprocess
import sys

import threefold
from threefold.realms.cnv import Cnv
from threefold.testing.fakes import ShownObjects

WRITES = 200

WRITER = f"""
import sys, threefold
from threefold.errors import Conflict
from threefold.realms.cnv import Cnv
from threefold.testing.fakes import ShownObjects
store, n = sys.argv[1], int(sys.argv[2])
with threefold.open(store, embedder=None, background=False, durable=False) as db:
    board = Cnv(db.user("alice").scope, db._ports, ShownObjects()).board("小组")
    print("ready", flush=True)
    sys.stdin.readline()
    refused = 0
    for i in range({WRITES}):
        kind = i % 4
        if kind == 0:
            board.pin(f"task:issue:{{n}}-{{i}}", note=f"note of {{n}} {{i}}")
        elif kind == 1:
            board.comment("task:issue:common", f"{{n}}-{{i}}") if i < 150 else board.pin("task:issue:common")
        elif kind == 2:
            board.move(f"task:issue:{{n}}-{{i - 2}}", i, n)
        else:
            # With a revision that is stale by now, more often than not.
            seen = board.get().revision
            try:
                board.annotate("task:issue:common", f"{{n}}-{{i}}", revision=seen)
            except Conflict:
                refused += 1
    print(refused, flush=True)
"""


def test_two_processes_that_edit_one_board_lose_nothing(store: str) -> None:
    settings = {"embedder": None, "background": False, "durable": False}
    with threefold.open(store, **settings) as db:
        Cnv(db.user("alice").scope, db._ports, ShownObjects()).board("小组").pin("task:issue:common")
    command = [sys.executable, "-c", WRITER, store]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    running = [subprocess.Popen([*command, str(n)], text=True, **pipes) for n in range(2)]
    assert [process.stdout and process.stdout.readline() for process in running] == ["ready\n"] * 2
    for process in running:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    refused = sum(map(int, said))
    with threefold.open(store, **settings) as db:
        board = Cnv(db.user("alice").scope, db._ports, ShownObjects()).board("小组")
        read = board.get()
        cards = {card.ref: card for card in read.cards}
        assert len(cards) == 1 + 2 * WRITES // 4
        for n in range(2):
            for i in range(0, WRITES, 4):
                card = cards[f"task:issue:{n}-{i}"]
                assert (card.note, card.rect.x, card.rect.y) == (f"note of {n} {i}", i + 2, n)
        told = [comment.text for comment in cards["task:issue:common"].comments]
        # Each said its own in order, and all of it.
        for n in range(2):
            assert [text for text in told if text.startswith(f"{n}-")] == [f"{n}-{i}" for i in range(1, 150, 4)]
        # One revision for each write that changed something: no pin of what is there, and none that was refused.
        pinned_again = 2 * len(range(153, WRITES, 4))
        assert read.revision == 1 + 2 * WRITES - pinned_again - refused
        assert [each.revision for each in board.history()] == list(range(read.revision, read.revision - 100, -1))
        assert db.state(check=True).problems == ()
