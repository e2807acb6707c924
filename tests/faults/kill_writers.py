"""Kill writers at random moments and count what survived. `python tests/faults/kill_writers.py --kills 500`

Several processes record, purge and embed in one store; each has several threads, so that commits are grouped. Each is
killed with SIGKILL at a random moment and replaced. A line in the acknowledgement file is written only after the call
returned. Afterwards, in both directions: what was acknowledged is there whole, and what is there is whole; what was
purged is in no file. Prints one JSON line; exits with 1 where anything was lost.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

import threefold
from threefold.errors import ThreefoldError
from threefold.testing.fakes import HashEmbedder

WRITERS, THREADS, USERS = 3, 3, 3
MODEL = HashEmbedder(16)
NOW = datetime(2026, 11, 29, tzinfo=UTC)
WORD = re.compile(rb"qz[a-p]{16}zq")


def word_of(name: str) -> str:
    """The one word that is in every text of a turn and nowhere else."""
    digits = hashlib.sha256(name.encode()).hexdigest()[:16]
    return "qz" + "".join(chr(97 + int(d, 16)) for d in digits) + "zq"


def bytes_of(name: str) -> bytes:
    size = int(hashlib.sha256(name.encode()).hexdigest()[-4:], 16) % 20_000
    return (word_of(name) + " ").encode() * (1 + size // 20)


def open_store(folder: Path, durable: bool = True, now: datetime = NOW) -> threefold.Threefold:
    return threefold.open(folder, embedder=MODEL, background=False, durable=durable, clock=lambda: now, ttl=None)


def write_until_killed(folder: Path, acks: Path, seed: str, durable: bool) -> None:
    """The life of a writer: threads that record and purge, one that embeds."""
    db = open_store(folder, durable)
    out = os.open(acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(what: str, name: str) -> None:
        os.write(out, f"{what} {name}\n".encode())

    def work(thread: int) -> None:
        rng = random.Random(f"{seed}/{thread}")
        mine: list[str] = []
        for n in range(10**9):
            name = f"{seed}.{thread}.{n}"
            if mine and rng.random() < 0.12:
                gone = mine.pop(rng.randrange(len(mine)))
                say("purging", gone)
                db.user(f"user{owner_of(gone)}").forget(conversation=f"c{gone.split('.')[0]}", turn=gone)
                say("purged", gone)
            user = db.user(f"user{owner_of(name)}")
            with user.turn(f"c{seed}", turn=name, title=f"about {word_of(name)}") as turn:
                turn.prompt(f"asked {word_of(name)}")
                turn.attach(("in.txt", bytes_of(name)), text=f"attached {word_of(name)}")
                turn.step("look", {"for": word_of(name)}, result=[word_of(name)])
                turn.answer(f"answered {word_of(name)}")
            say("recorded", name)
            mine.append(name)

    def embed() -> None:
        while True:
            db.embed_pending(limit=64)
            time.sleep(0.005)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)] + [threading.Thread(target=embed)]
    for thread in threads:
        thread.start()


def owner_of(name: str) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest()[:4], 16) % USERS


def start(folder: Path, acks: Path, seed: str, durable: bool) -> int:
    child = os.fork()
    if child == 0:
        try:
            write_until_killed(folder, acks, seed, durable)
        except BaseException as error:  # noqa: BLE001 - told to the parent
            with acks.open("a") as out:
                out.write(f"error {error!r}\n")
            os._exit(3)
        threading.Event().wait()
    return child


def kill_many(folder: Path, acks: Path, kills: int, seconds: float, rng: random.Random, durable: bool) -> int:
    """Kill and replace writers until enough were killed or the time is over; returns how many were."""
    ends = time.monotonic() + seconds
    running = [start(folder, acks, str(i), durable) for i in range(WRITERS)]
    done, born = 0, WRITERS
    while done < kills and time.monotonic() < ends:
        time.sleep(rng.choice([0.005, 0.03, 0.1, 0.2]) * rng.random() + 0.02)
        place = rng.randrange(WRITERS)
        os.kill(running[place], signal.SIGKILL)
        _, status = os.waitpid(running[place], 0)
        done += os.WIFSIGNALED(status)
        if rng.random() < 0.05:  # now and then all at once, so that the log is recovered from nothing
            for i in range(WRITERS):
                if i != place:
                    os.kill(running[i], signal.SIGKILL)
                    os.waitpid(running[i], 0)
                    done += 1
                    running[i] = start(folder, acks, str(born := born + 1), durable)
        running[place] = start(folder, acks, str(born := born + 1), durable)
    for child in running:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return done + WRITERS


def acknowledged(acks: Path) -> tuple[set[str], set[str], set[str], list[str]]:
    """Turns that were recorded, purged, and of which purging had begun; and errors."""
    said: dict[str, set[str]] = {"recorded": set(), "purged": set(), "purging": set()}
    errors = []
    for line in acks.read_text().splitlines():
        what, _, name = line.partition(" ")
        if what == "error":
            errors.append(name)
        else:
            said[what].add(name)
    return said["recorded"], said["purged"], said["purging"], errors


def check(folder: Path, acks: Path, sample: int, rng: random.Random) -> dict[str, object]:
    """Look from both sides; `problems` is empty where nothing was lost or left."""
    recorded, purged, purging, problems = acknowledged(acks)
    db = open_store(folder, now=NOW + timedelta(hours=1))  # the claims of the killed have ended
    db.expire()
    db.embed_pending()
    state = db.state(check=True)
    problems += [*state.problems]
    rows = state.counts["rows"]
    if (state.pending, state.failed, state.counts["vectors"]) != (0, 0, rows):
        problems.append(
            f"{state.pending} wait, {state.failed} failed, {state.counts['vectors']} vectors of {rows} rows"
        )
    visible = {e.turn: (user, e) for user in range(USERS) for e in everything(db.user(f"user{user}"))}
    problems += [f"lost: {name}" for name in recorded - purging - visible.keys()]
    problems += [f"still there: {name}" for name in purged & visible.keys()]
    for name in rng.sample(sorted(visible), min(sample, len(visible))):
        user, _ = visible[name]
        problems += not_whole(db, user, name)
    db.close()
    problems += dangling(folder)
    gone = {word_of(name).encode() for name in purging - visible.keys()}
    problems += [f"left in {place}: {word!r}" for place, word in words_in(folder) if word in gone]
    return {"recorded": len(recorded), "purged": len(purged), "visible": len(visible), "rows": rows,
            "problems": problems[:20]}  # fmt: skip


def everything(user: threefold.Handle):
    page = user.conv.turns(limit=1000)
    while page:
        yield from page
        page = user.conv.turns(limit=1000, after=page[-1])


def not_whole(db: threefold.Threefold, user: int, name: str) -> list[str]:
    """What of a visible turn is missing: log, rows, index, bytes."""
    handle, word = db.user(f"user{user}"), word_of(name)
    try:
        conversation = f"c{name.split('.', maxsplit=1)[0]}"
        (hit,) = handle.conv.search(word, lists=("lexical",), ranking=threefold.Ranking(learned=False))
        view = handle.conv.turn(hit.ref)
        bytes_ = handle.read(view.attachments[0].ref)
    except (ThreefoldError, ValueError, IndexError) as error:
        return [f"{name}: {error!r}"]
    seen = {
        "turn": (view.turn, view.conversation) == (name, conversation),
        "messages": [m.text for m in view.messages] == [f"asked {word}", f"answered {word}"],
        "step": [s.result for s in view.steps] == [[word]],
        "roles": set(hit.roles) == {"user", "attachment", "assistant"},
        "bytes": bytes_ == bytes_of(name),
    }
    return [f"{name}: {part}" for part, right in seen.items() if not right]


def dangling(folder: Path) -> list[str]:
    """Rows without index, queue or turn, files without bytes, and the like, asked of the database itself."""
    db = apsw.Connection(str(folder / "record.db"), flags=apsw.SQLITE_OPEN_READONLY)
    questions = {
        "rows without index": "SELECT count(*) FROM rows WHERE id NOT IN (SELECT doc FROM occurrences)",
        "index without rows": "SELECT count(*) FROM occurrences WHERE doc NOT IN (SELECT id FROM rows)",
        "rows without turn": "SELECT count(*) FROM rows WHERE turn NOT IN (SELECT id FROM turns)",
        "turns that lack rows":
            "SELECT count(*) FROM turns WHERE (SELECT count(*) FROM rows WHERE turn = turns.id) <> 3",
        "turns that lack files":
            "SELECT count(*) FROM turns WHERE (SELECT count(*) FROM files WHERE turn = turns.id) <> 1",
        "vectors without rows": "SELECT count(*) FROM vectors WHERE row NOT IN (SELECT id FROM rows)",
        "waiting without rows": "SELECT count(*) FROM waiting WHERE row NOT IN (SELECT id FROM rows)",
        "conversations that miscount":
            "SELECT count(*) FROM conversations AS c "
            "WHERE turns <> (SELECT count(*) FROM turns WHERE conversation = c.id)",
        "doomed": "SELECT count(*) FROM doomed",
    }  # fmt: skip
    found = [f"{n} {what}" for what, sql in questions.items() if (n := db.execute(sql).fetchone()[0])]
    kept = {path.name for path in (folder / "blobs").glob("*/*/*") if not path.name.endswith(".part")}
    digests = {digest for (digest,) in db.execute("SELECT DISTINCT digest FROM files")}
    db.close()
    return found + [f"no bytes of {digest}" for digest in digests - kept]


def words_in(folder: Path):
    """(file, word) of every unique word that stands in a file of the store; deflated logs are looked into."""
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for found in set(WORD.findall(data)):
                yield path.name, found


def run(folder: Path, kills: int, seconds: float, seed: int, durable: bool = True) -> dict[str, object]:
    rng = random.Random(seed)
    acks = folder.with_name("acknowledged")
    acks.touch()
    began = time.monotonic()
    done = kill_many(folder, acks, kills, seconds, rng, durable)
    orphans = Counter(path.suffix for path in (folder / "blobs").rglob("*.part"))
    result = check(folder, acks, 2000, rng)
    took = round(time.monotonic() - began, 1)
    return {"kills": done, **result, "unfinished_blobs": orphans[".part"], "seed": seed, "seconds": took}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--not-durable", action="store_true")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        result = run(Path(folder) / "store", given.kills, given.seconds, given.seed, not given.not_durable)
    sys.stdout.write(json.dumps(result) + "\n")
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
