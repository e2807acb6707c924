"""Kill processes that have doors open and count what survived. `python tests/faults/kill_doors.py STORE --kills 200`

Several processes send to a few conversations of one store, run their turns and watch them. Each is killed with SIGKILL
at a random moment and replaced. A line in the file of acknowledgements is written only when a submission was accepted,
and one when an agent begins with a turn. Afterwards one more door drains the lanes. Then: each submission that was
acknowledged is in exactly one recorded turn, with its files; no agent was given a turn twice; no lane is stuck. Prints
one JSON line; exits with 1 where that is not so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import threefold
from threefold import Door, Kernel
from threefold.errors import Conflict, ThreefoldError

PROCESSES, USERS, CONVERSATIONS = 3, 2, 2
SETTINGS: dict[str, Any] = {"lease": 1.5, "poll": 0.03, "look": 0.2, "lanes": 4, "user_lanes": 2}
KINDS = ("prompt", "followup", "followup", "prompt", "followup", "steer")


def open_store(store: str) -> threefold.Threefold:
    return threefold.open(store, embedder=None, background=False, durable=False, ttl=None)


def bytes_of(name: str) -> bytes:
    return (name + "\n").encode() * 100


class Notes:
    """Lines in a file that several processes write to; a line is there when `say` returns."""

    def __init__(self, path: Path) -> None:
        self._out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(self, *words: str) -> None:
        os.write(self._out, (" ".join(words) + "\n").encode())


async def live(store: str, notes: Notes, seed: str) -> None:
    """The life of a process: a door, people who send through it, a viewer."""
    rng = random.Random(seed)

    async def agent(run: Any):
        notes.say("ran", run.intent.id, str(os.getpid()))
        for piece in ("first ", "second ", "third"):
            await asyncio.sleep(rng.random() * 0.03)
            yield piece

    async def person(n: int) -> None:
        for number in range(10**9):
            name = f"{seed}.{n}.{number}"
            user, conversation = f"user{rng.randrange(USERS)}", f"c{rng.randrange(CONVERSATIONS)}"
            files = [("in.txt", bytes_of(name))] if number % 3 == 0 else []
            try:
                for _ in range(1 + (number % 5 == 0)):  # some again under their key, which changes nothing
                    kind = KINDS[number % len(KINDS)]
                    sent = await door.submit(name, user, conversation, kind, attachments=files, key=name)
            except Conflict:  # the lane is full
                await asyncio.sleep(0.05)
                continue
            notes.say("accepted", sent.submission, user, conversation, name)
            if rng.random() < 0.05:
                await door.cancel(user, conversation)
            await asyncio.sleep(rng.random() * 0.3)

    async def viewer(user: str) -> None:
        async for _ in door.events(user, "c0"):
            pass

    db = open_store(store)
    async with Kernel(db) as kernel:
        kernel.agents.register(agent)
        async with Door(kernel, **SETTINGS) as door:
            await asyncio.gather(*map(person, range(3)), *(viewer(f"user{n}") for n in range(USERS)))


def start(store: str, path: Path, seed: str) -> int:
    child = os.fork()
    if child == 0:
        notes = Notes(path)
        try:
            asyncio.run(live(store, notes, seed))
        except BaseException as error:  # noqa: BLE001 - told to the parent
            notes.say("error", repr(error))
        os._exit(3)
    return child


def kill_many(store: str, path: Path, kills: int, seconds: float, rng: random.Random) -> int:
    """Kill and replace processes until enough were killed or the time is over; returns how many were."""
    ends = time.monotonic() + seconds
    running = [start(store, path, str(n)) for n in range(PROCESSES)]
    done, born = 0, PROCESSES
    while done < kills and time.monotonic() < ends:
        time.sleep(0.1 + rng.random())
        place = rng.randrange(PROCESSES)
        os.kill(running[place], signal.SIGKILL)
        _, status = os.waitpid(running[place], 0)
        done += os.WIFSIGNALED(status)
        running[place] = start(store, path, str(born := born + 1))
    for child in running:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return done + PROCESSES


async def drain(db: threefold.Threefold, seconds: float) -> list[str]:
    """Let one more door run what is left; what is stuck after so long."""

    async def agent(run: Any) -> str:
        return "drained"

    async with Kernel(db) as kernel:
        kernel.agents.register(agent)
        async with Door(kernel, **SETTINGS) as door:
            ends = time.monotonic() + seconds
            while stuck := [
                f"stuck: {user} {conversation}: {view.turn} {view.next}"
                for user in (f"user{n}" for n in range(USERS))
                for conversation in (f"c{n}" for n in range(CONVERSATIONS))
                if (view := door.lane(user, conversation)).turn or view.waiting
            ]:
                if time.monotonic() > ends:
                    return stuck
                await asyncio.sleep(0.1)
    return []


def check(db: threefold.Threefold, path: Path) -> dict[str, Any]:
    """Look from both sides; `problems` is empty where nothing was lost or done twice."""
    db.expire()  # bytes that lanes had, and no record
    lines = [line.split(" ") for line in path.read_text().splitlines()]
    problems = [" ".join(line) for line in lines if line[0] == "error"]
    ran = {(turn, pid) for what, turn, *rest in lines if what == "ran" for pid in rest}
    problems += [f"ran twice: {turn}" for turn, n in Counter(turn for turn, _ in ran).items() if n > 1]
    found, statuses = Counter[tuple[str, ...]](), Counter[str]()
    for user in (db.user(f"user{n}") for n in range(USERS)):
        for entry in everything(user):
            view = user.conv.turn(f"conv:ar:conv_{entry.conversation}.turn_{entry.turn}.turn.log")
            statuses[view.status] += 1
            said = [message for message in view.messages if message.role == "user"]
            found.update((str(each.batch), user.scope.user, view.conversation, each.text) for each in said)
            try:
                kept = [user.read(card.ref) for card in view.attachments]
            except ThreefoldError as error:
                problems.append(f"{entry.turn}: {error}")
                continue
            expected = [bytes_of(each.text) for each in said if int(each.text.rpartition(".")[2]) % 3 == 0]
            if sorted(kept) != sorted(expected):
                problems.append(f"{entry.turn}: files are not those that were sent")
    accepted = {tuple(line[1:]) for line in lines if line[0] == "accepted"}
    problems += [f"lost: {each}" for each in accepted - found.keys()]
    problems += [f"recorded {n} times: {each}" for each, n in found.items() if n > 1]
    problems += [f"sent once, kept {n} times: {name}" for name, n in Counter(e[3] for e in found).items() if n > 1]
    problems += db.state(check=True).problems
    return {"accepted": len(accepted), "turns": dict(statuses), "problems": problems[:20]}


def everything(user: threefold.Handle) -> Any:
    page = user.conv.turns(limit=1000)
    while page:
        yield from page
        page = user.conv.turns(limit=1000, after=page[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("--notes", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    open_store(given.store).close()
    done = kill_many(given.store, given.notes, given.kills, given.seconds, random.Random(given.seed))
    with open_store(given.store) as db:
        stuck = asyncio.run(drain(db, 60))
        result = check(db, given.notes)
    result["problems"] += stuck
    sys.stdout.write(json.dumps({"kills": done, "seed": given.seed, **result}) + "\n")
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
