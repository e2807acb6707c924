"""A real server that speaks S3, on free ports of this machine and in a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

BUCKET, KEY, SECRET = "threefold", "a-key", "a-secret"
PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc",
         "filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc")  # fmt: skip


def program() -> str | None:
    """The server's program, installed beside this Python by the extra `test`."""
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed")


class S3Server:
    """`weed server` with one identity. What is kept outlives `stop` and `start`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        self._process: subprocess.Popen[bytes] | None = None
        identity = {"name": "test", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
        (folder / "data").mkdir(parents=True)
        (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        self.environment = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": f"http://127.0.0.1:{self._ports['s3.port']}",
        }

    def lead_to(self, environment: pytest.MonkeyPatch) -> None:
        """Let the usual variables lead here."""
        environment.delenv("AWS_SESSION_TOKEN", raising=False)
        for name, value in self.environment.items():
            environment.setenv(name, value)

    def start(self) -> None:
        command = [
            program() or "weed", f"-logdir={self._folder}", "server", f"-dir={self._folder / 'data'}",
            "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-master.volumeSizeLimitMB=64",
            "-volume.max=20", "-volume.preStopSeconds=0", "-filer", "-filer.localSocket=filer.sock",
            "-s3", f"-s3.config={self._folder / 's3.json'}", "-s3.localSocket=s3.sock",
            "-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0",
            *(f"-{name}={port}" for name, port in self._ports.items()),
        ]  # fmt: skip
        with (self._folder / "said").open("ab") as said:
            self._process = subprocess.Popen(
                command, cwd=self._folder, stdout=said, stderr=said, env=os.environ | {"HOME": str(self._folder)}
            )
        ends = time.monotonic() + 60
        while not self._answers():
            if time.monotonic() > ends or self._process.poll() is not None:
                self.stop()
                raise RuntimeError((self._folder / "said").read_text()[-2000:])
            time.sleep(0.1)

    def _answers(self) -> bool:
        """Whether the bucket takes an object."""
        try:
            store = S3Store(
                BUCKET,
                endpoint=self.environment["AWS_ENDPOINT"],
                access_key_id=KEY,
                secret_access_key=SECRET,
                region="us-east-1",
                client_options={"allow_http": True},
                retry_config={"max_retries": 0},
            )
            store.put("ready", b"yes")
        except (OSError, BaseError):
            return False
        return True

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        for port in self._ports.values():  # what it leaves where no option of its own says otherwise
            for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)


def free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
