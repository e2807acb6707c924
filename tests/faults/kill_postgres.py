"""Kill writers, connections and the server at random and count what survived. `python tests/faults/kill_postgres.py`

Several processes record, react, purge and embed in one PostgreSQL store; each has several threads. Writers are killed
with SIGKILL and replaced; connections are cut by the server; the server is killed with SIGKILL and started again, after
which every writer must go on by itself. A line in the acknowledgement file is written only after the call returned.
Afterwards what was acknowledged is there whole, once, and what is there is whole. Every error that a writer met must
be `Unavailable`, in one line. Prints one JSON line; exits with 1 where anything was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import threefold
from threefold.errors import Unavailable

sys.path.append(str(Path(__file__).parent.parent))  # where it is run alone

from kill_writers import MODEL, NOW, USERS, bytes_of, everything, not_whole, owner_of, word_of
from postgres_server import ROLE, Server
from waiting import wait_until

WRITERS, THREADS, STORE = 3, 2, "kills"


def open_store(url: str, hours: int = 0) -> threefold.Threefold:
    now = NOW + timedelta(hours=hours)
    return threefold.open(url, embedder=MODEL, background=False, clock=lambda: now, ttl=None)


class Writer:
    """The life of a writer. What could not be done is done again, by the same open store."""

    def __init__(self, url: str, acks: Path, seed: str) -> None:
        self.url, self.seed, self.refs = url, seed, dict[str, str]()
        self._out = os.open(acks, os.O_WRONLY | os.O_APPEND)

    def live(self) -> None:
        self.guarded(self.until_done, self.open)
        jobs = [(self.work, n) for n in range(THREADS)] + [(self.embed,)]
        for job in jobs:
            threading.Thread(target=self.guarded, args=job).start()
        threading.Event().wait()

    def open(self) -> None:
        self.db = open_store(self.url)

    def say(self, what: str, name: str) -> None:
        os.write(self._out, f"{what} {name}\n".encode())

    def guarded(self, job: Callable[..., object], *arguments: object) -> None:
        try:
            job(*arguments)
        except BaseException as error:  # noqa: BLE001 - told to the parent
            self.say("error", f"{self.seed} {error!r}")

    def until_done(self, job: Callable[..., object], *arguments: object) -> None:
        while True:
            try:
                job(*arguments)
            except Unavailable as error:
                self.say("error" if "\n" in str(error) else "unavailable", f"{self.seed} {error!r}")
            else:
                return

    def record(self, name: str) -> None:
        user, word = self.db.user(f"user{owner_of(name)}"), word_of(name)
        with user.turn(f"c{self.seed}", turn=name, title=f"about {word}", started=NOW) as turn:
            turn.prompt(f"asked {word}", at=NOW)
            turn.attach(("in.txt", bytes_of(name)), text=f"attached {word}", at=NOW)
            turn.step("look", {"for": word}, result=[word], at=NOW)
            turn.answer(f"answered {word}", at=NOW)
        self.refs[name] = turn.ref

    def react(self, name: str) -> None:
        self.db.user(f"user{owner_of(name)}").conv.feedback(self.refs[name], "ok", word_of(name))
        self.say("reacted", name)

    def forget(self, name: str) -> None:
        self.db.user(f"user{owner_of(name)}").forget(conversation=f"c{self.seed}", turn=name)

    def work(self, thread: int) -> None:
        rng = random.Random(f"{self.seed}/{thread}")
        mine: list[str] = []
        for n in range(10**9):
            name = f"{self.seed}.{thread}.{n}"
            self.until_done(self.record, name)
            self.say("recorded", name)
            mine.append(name)
            if rng.random() < 0.3:
                self.until_done(self.react, name)
            if rng.random() < 0.12:
                gone = mine.pop(rng.randrange(len(mine)))
                self.say("purging", gone)
                self.until_done(self.forget, gone)
                self.say("purged", gone)

    def embed(self) -> None:
        while True:
            self.until_done(self.db.embed_pending, 64)
            time.sleep(0.02)


class Round:
    """One server, its writers, and what was done to them."""

    def __init__(self, server: Server, acks: Path, rng: random.Random) -> None:
        self.server, self.acks, self.rng = server, acks, rng
        self.url = server.make_database(STORE) + "&partitions=4"
        self.kills: Counter[str] = Counter()
        self.problems: list[str] = []
        self.born = 0
        open_store(self.url).close()
        self.running = [self.start() for _ in range(WRITERS)]

    def start(self) -> tuple[int, str]:
        seed = str(self.born)
        self.born += 1
        child = os.fork()
        if child == 0:
            Writer(self.url, self.acks, seed).live()
        return child, seed

    def end(self, place: int) -> None:
        os.kill(self.running[place][0], signal.SIGKILL)
        os.waitpid(self.running[place][0], 0)
        self.kills["writers"] += 1

    def cut(self) -> None:
        """The server ends some connections, whatever they are doing."""
        with self.server.admin(STORE) as db:
            cut = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                     WHERE usename = %s AND datname = %s AND random() < 0.5"""
            (count,) = db.execute(cut, (ROLE, STORE)).fetchone() or (0,)
        self.kills["connections"] += count

    def fell(self) -> None:
        """The server dies and comes back; every writer goes on without being started again."""
        self.server.kill()
        time.sleep(self.rng.random())
        self.server.start()
        self.kills["server"] += 1
        seen = self.acks.stat().st_size

        def all_go_on() -> bool:
            with self.acks.open("rb") as said:
                said.seek(seen)
                lines = said.read().decode().splitlines()
            going = {line.partition(" ")[2].partition(".")[0] for line in lines if line.startswith("recorded ")}
            return {seed for _, seed in self.running} <= going

        if not wait_until(all_go_on, 40):
            self.problems.append("a writer did not go on after the server had come back")

    def go(self, kills: int, seconds: float) -> None:
        """Until enough was killed or the time is over, but each kind at least once."""
        ends = time.monotonic() + seconds
        try:
            while (self.kills.total() < kills and time.monotonic() < ends) or not self.kills["connections"]:
                time.sleep(self.rng.random() * self.rng.choice([0.02, 0.1, 0.4]) + 0.05)
                chance = self.rng.random()
                if chance < 0.06 or not self.kills["server"]:
                    self.fell()
                elif chance < 0.4 or not self.kills["connections"]:
                    self.cut()
                else:
                    place = self.rng.randrange(WRITERS)
                    self.end(place)
                    self.running[place] = self.start()
        finally:
            for place in range(WRITERS):
                self.end(place)

    def check(self, sample: int) -> dict[str, object]:
        """Look from both sides; `problems` is empty where nothing was lost or left."""
        said: dict[str, set[str]] = {w: set() for w in ("recorded", "reacted", "purging", "purged", "unavailable")}
        for line in self.acks.read_text().splitlines():
            what, _, name = line.partition(" ")
            if what == "error":
                self.problems.append(name)
            else:
                said[what].add(name)
        db = open_store(self.url, hours=1)  # the claims of the killed have ended
        db.expire()
        db.embed_pending()
        state = db.state(check=True)
        self.problems += state.problems
        rows = state.counts["rows"]
        if (state.pending, state.failed, state.counts["vectors"]) != (0, 0, rows):
            self.problems.append(f"{state.pending} wait, {state.failed} failed, {rows} rows, {state.counts['vectors']}")
        visible = {e.turn: user for user in range(USERS) for e in everything(db.user(f"user{user}"))}
        self.problems += [f"lost: {name}" for name in said["recorded"] - said["purging"] - visible.keys()]
        self.problems += [f"still there: {name}" for name in said["purged"] & visible.keys()]
        self.problems += [f"no bytes: {digest}" for digest in db.missing_blobs()]
        for name in self.rng.sample(sorted(visible), min(sample, len(visible))):
            self.problems += not_whole(db, visible[name], name)
        db.close()
        self.problems += self.dangling(said["reacted"] & visible.keys())
        counts = {what: len(names) for what, names in said.items()}
        return counts | {"visible": len(visible), "rows": rows, "problems": self.problems[:20]}

    def dangling(self, reacted: set[str]) -> list[str]:
        """What is half or doubled, asked of the database itself."""
        each = "(SELECT count(*) FROM threefold.{} AS o WHERE o.owner = t.owner AND o.turn = t.number)"
        questions = {
            "turns that lack rows or have too many": f"{each.format('rows')} <> 3",
            "turns that lack files or have too many": f"{each.format('files')} <> 1",
            "turns with a doubled reaction": f"{each.format('feedback')} > 1",
        }
        with self.server.admin(STORE) as db:
            found = {
                what: db.execute(f"SELECT count(*) FROM threefold.turns AS t WHERE {condition}").fetchone()
                for what, condition in questions.items()
            }
            without = (
                f"SELECT t.name FROM threefold.turns AS t WHERE t.name = ANY(%s) AND {each.format('feedback')} = 0"
            )
            lost = [f"lost reaction: {name}" for (name,) in db.execute(without, (sorted(reacted),)).fetchall()]
        return lost + [f"{count[0]} {what}" for what, count in found.items() if count and count[0]]


def run(kills: int, seconds: float, seed: int) -> dict[str, object]:
    server, began = Server(), time.monotonic()
    try:
        with server.admin() as db:
            # A killed process may leave half a page with the system, where the power may not fail.
            db.execute("ALTER SYSTEM SET full_page_writes = on")
            db.execute("SELECT pg_reload_conf()")
        with tempfile.TemporaryDirectory() as folder:
            acks = Path(folder) / "acknowledged"
            acks.touch()
            this = Round(server, acks, random.Random(seed))
            this.go(kills, seconds)
            result = this.check(1000)
    finally:
        server.close()
    took = round(time.monotonic() - began, 1)
    return {"kills": this.kills.total(), **this.kills, **result, "seed": seed, "seconds": took}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    result = run(given.kills, given.seconds, given.seed)
    sys.stdout.write(json.dumps(result) + "\n")
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
