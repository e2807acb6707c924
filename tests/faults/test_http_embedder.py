"""A server of embeddings that lies, is busy, is gone, wants a key: told, never mixed up, never waited for long.

Always a real server on this machine, never a stand-in for the client.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from email.utils import formatdate
from typing import Any

import numpy as np
import pytest
from embedding_server import Answer, Server, serving

import threefold
from threefold.embedders import endpoint
from threefold.embedders.http import HttpEmbedder
from threefold.errors import InvalidInput, ThreefoldError, Unavailable
from threefold.testing.fakes import Clock, HashEmbedder

KEY = "sk-very-secret-4711"
TEXTS = ["river boat", "mountain hut", "river bridge"]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def data(*items: tuple[Any, Any]) -> Answer:
    return 200, {}, {"data": [{"index": index, "embedding": embedding} for index, embedding in items]}


def say(status: int, message: str = "", **headers: str) -> Callable[[Any], Answer]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda body: (status, names, {"error": {"message": message}})


def right(vectors: np.ndarray, texts: list[str] = TEXTS) -> bool:
    return bool(np.allclose(vectors, HashEmbedder(vectors.shape[1]).embed(texts), atol=1e-6))


def test_the_dimensions_are_read_from_the_first_answer(server: Server) -> None:
    embedder = HttpEmbedder(server.url, "words")
    assert embedder.dimensions == 0
    assert right(embedder.embed(TEXTS))
    assert (embedder.dimensions, embedder.name) == (48, "words")
    assert "dimensions" not in server.asked[0]


def test_dimensions_can_be_asked_for_and_are_part_of_the_name(server: Server) -> None:
    embedder = HttpEmbedder(server.url, "words", dimensions=24)
    assert (embedder.dimensions, embedder.name) == (24, "words@24")
    assert right(embedder.embed(TEXTS))
    assert server.asked[0]["dimensions"] == 24
    server.plan = [lambda body: server.usual({**body, "dimensions": 48})]
    with pytest.raises(ThreefoldError, match="48 dimensions, not 24 as asked for"):
        embedder.embed(TEXTS)


def test_a_model_exchanged_behind_the_same_name_is_noticed(server: Server) -> None:
    embedder = HttpEmbedder(server.url, "words")
    embedder.embed(TEXTS)
    server.dimensions = 32
    with pytest.raises(ThreefoldError, match="32 dimensions, not 48 as before"):
        embedder.embed(TEXTS)


@pytest.mark.parametrize(
    "answer",
    [
        data((0, [1.0, 0]), (1, [0, 1.0])),
        data((0, [1.0, 0]), (1, [0, 1.0]), (1, [1.0, 1.0])),
        data((0, [1.0, 0]), (1, [0, 1.0]), (2, [1.0, 1.0]), (3, [1.0, 1.0])),
        data((1, [1.0, 0]), (2, [0, 1.0]), (3, [1.0, 1.0])),
        data((0, [1.0, 0]), (1, [0, 1.0]), (None, [1.0, 1.0])),
        data((0, [1.0, 0]), (1, [0, 1.0]), (-1, [1.0, 1.0])),
        data((0, [1.0, 0]), (1, [0, 1.0]), (2, [1.0])),
        data((0, [1.0, 0]), (1, [0, 1.0]), (2, None)),
        data((0, [1.0, 0]), (1, [0, 1.0]), (2, ["a", "b"])),
        data((0, [1.0, 0]), (1, [0, 1.0]), (2, [float("nan"), 1.0])),
        data((0, [1.0, 0]), (1, [0, 1.0]), (2, [1e999, 1.0])),
        data((0, []), (1, []), (2, [])),
        data((0, 1.0), (1, 1.0), (2, 1.0)),
        data((0, "??"), (1, "??"), (2, "??")),
        (200, {}, {"data": "nothing"}),
        (200, {}, {"data": [1, 2, 3]}),
        (200, {}, [1, 2]),
        (200, {}, b"<html>a proxy's page</html>"),
        (200, {}, b""),
        (200, {}, b"\xff\xfe"),
    ],
)
def test_an_answer_that_is_not_one_vector_for_each_text_is_refused(server: Server, answer: Answer) -> None:
    server.plan = [lambda body: answer] * 9
    with pytest.raises(ThreefoldError, match=server.url):
        HttpEmbedder(server.url, "words").embed(TEXTS)


def test_vectors_in_base64_are_read_too(server: Server) -> None:
    import base64

    def packed(body: Any) -> Answer:
        vectors = HashEmbedder(48).embed(body["input"]).astype("<f4")
        return data(*[(i, base64.b64encode(v.tobytes()).decode()) for i, v in enumerate(vectors)])

    server.plan = [packed]
    assert right(HttpEmbedder(server.url, "words").embed(TEXTS))


def test_batches_have_a_bound_on_items_and_on_characters(server: Server) -> None:
    embedder = HttpEmbedder(server.url, "words", batch=4, batch_characters=100)
    texts = [f"{word} {i}" for i, word in enumerate(["short", "w" * 60, "v" * 90, "tea"] * 5)]
    assert right(embedder.embed(texts), texts)
    assert max(len(asked["input"]) for asked in server.asked) <= 4
    assert max(sum(map(len, asked["input"])) for asked in server.asked) <= 100
    assert [text for asked in server.asked for text in asked["input"]] == texts


def test_one_connection_serves_many_calls(server: Server) -> None:
    embedder = HttpEmbedder(server.url, "words")
    for _ in range(20):
        embedder.embed(TEXTS)
    assert server.connections == 1


def test_a_kept_connection_that_the_server_closed_is_no_failure(server: Server) -> None:
    embedder = HttpEmbedder(server.url, "words", attempts=1)
    server.plan = [lambda body: (200, {"Connection": "close"}, server.usual(body)[2]), lambda body: None]
    for _ in range(3):
        assert right(embedder.embed(TEXTS))

    def hang_up(body: Any) -> Answer:
        raise ConnectionError

    server.plan = [hang_up]
    assert right(embedder.embed(TEXTS))


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_busy_servers_are_asked_again(server: Server, status: int) -> None:
    server.plan = [say(status, "try later")] * 2
    assert right(HttpEmbedder(server.url, "words").embed(TEXTS))
    assert len(server.asked) == 3


@pytest.mark.parametrize("after", ["1", "1.0", "date"])
def test_the_server_says_how_long_to_wait(server: Server, after: str) -> None:
    server.plan = [say(429, Retry_After=formatdate(time.time() + 2, usegmt=True) if after == "date" else after)]
    started = time.monotonic()
    assert right(HttpEmbedder(server.url, "words").embed(TEXTS))
    assert time.monotonic() - started > 0.9


def test_a_wait_that_is_too_long_is_told_and_kept_to(server: Server) -> None:
    server.plan = [say(429, "quota", Retry_After="200")]
    embedder = HttpEmbedder(server.url, "words")
    started = time.monotonic()
    with pytest.raises(Unavailable, match=r"answered 429 \(quota\)"):
        embedder.embed(TEXTS)
    with pytest.raises(Unavailable, match=r"not asked again for (200|199) s"):
        embedder.embed(TEXTS)
    assert time.monotonic() - started < 5
    assert len(server.asked) == 1


def test_a_server_that_is_gone_is_not_waited_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        embedder = HttpEmbedder(url, "words", attempts=2)
        with pytest.raises(Unavailable, match="see that the server runs"):
            embedder.embed(TEXTS)
        with pytest.raises(Unavailable, match="not asked again"):
            embedder.embed(TEXTS)
    monkeypatch.setattr(endpoint.time, "monotonic", lambda: 1e9)
    with pytest.raises(Unavailable, match="cannot be reached"):
        embedder.embed(TEXTS)


def test_a_server_that_never_answers_is_left(server: Server) -> None:
    def sleep(body: Any) -> Answer | None:
        time.sleep(3)
        return None

    server.plan = [sleep]
    started = time.monotonic()
    with pytest.raises(Unavailable, match="TimeoutError"):
        HttpEmbedder(server.url, "words", seconds=0.3).embed(TEXTS)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("status", "key", "mend"),
    [
        (401, None, "give embedder_key"),
        (401, KEY, "check embedder_key"),
        (403, KEY, "check embedder_key"),
        (404, KEY, "the server has the model"),
        (405, KEY, "answered 405"),
    ],
)
def test_refusals_name_the_mend_and_never_the_key(
    server: Server, status: int, key: str | None, mend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.plan = [say(status, f"bad key {key} for model words")]
    embedder = HttpEmbedder(server.url, "words", key)
    with pytest.raises(InvalidInput, match=mend) as caught:
        embedder.embed(TEXTS)
    assert KEY not in f"{caught.value!r} {caught.value.__cause__!r} {embedder!r} {capsys.readouterr()}"
    assert server.asked[0]["key"] == (f"Bearer {key}" if key else None)


def test_a_moved_server_does_not_get_the_key_elsewhere(server: Server) -> None:
    server.plan = [say(307, Location="http://other.example/v1/embeddings?token=1")]
    with pytest.raises(InvalidInput, match=r"has moved to http://other\.example/v1/embeddings; give that"):
        HttpEmbedder(server.url, "words", KEY).embed(TEXTS)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "http://",
        "localhost:11434",
        "http://u:p@host/v1",
        "http://host:port/v1",
        "http://h/ä",
        f"http://{'ä' * 70}/",
    ],
)
def test_malformed_addresses_are_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(InvalidInput, match="embedder url") as caught:
        HttpEmbedder(url, "words")
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "two words", "line\nend", "ключ"])
def test_malformed_keys_are_refused_without_repeating_them(key: str) -> None:
    with pytest.raises(InvalidInput, match="embedder_key") as caught:
        HttpEmbedder("http://host/v1", "words", key)
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "path"),
    [("", "/v1/embeddings"), ("/", "/v1/embeddings"), ("/v1/", "/v1/embeddings"), ("/api/embeddings?v=2", None)],
)
def test_addresses_are_completed(server: Server, given: str, path: str | None) -> None:
    base = server.url.removesuffix("/v1")
    embedder = HttpEmbedder(base + given, "words")
    assert right(embedder.embed(TEXTS))
    assert server.asked[0]["path"] == (path or given)
    assert embedder.place == base + (path or given).partition("?")[0]


def test_a_text_that_is_too_long_for_the_server_is_halved(server: Server) -> None:
    server.limit = 700
    embedder = HttpEmbedder(server.url, "words")
    long = "the weather was mild " * 60 + "volcano"
    vectors = embedder.embed(["river boat", long, "mountain hut"])
    assert right(vectors[[0, 2]], ["river boat", "mountain hut"])
    assert all(len(text) <= 700 for text in server.asked[-1]["input"])
    assert vectors[1] @ embedder.embed(["volcano"])[0] > 0
    server.asked.clear()
    embedder.embed([f"message {i}" for i in range(64)])
    assert len(server.asked) == 1  # one that was too long makes the batches of others no smaller
    server.limit = 3
    with pytest.raises(InvalidInput, match="context length"):
        embedder.embed(["river boat"])


def test_a_server_that_takes_fewer_texts_gets_fewer(server: Server) -> None:
    def few(body: Any) -> Answer | None:
        return None if len(body["input"]) <= 8 else say(413, "batch size > maximum allowed batch size 8")(body)

    server.plan = [few] * 999
    texts = [f"message {i}" for i in range(60)]
    embedder = HttpEmbedder(server.url, "words")
    assert right(embedder.embed(texts), texts)
    server.asked.clear()
    assert right(embedder.embed(texts), texts)
    assert max(len(asked["input"]) for asked in server.asked) <= 8


def test_other_refusals_of_a_text_are_told_at_once(server: Server) -> None:
    server.plan = [say(422, "the input is offensive")]
    with pytest.raises(InvalidInput, match="offensive"):
        HttpEmbedder(server.url, "words").embed(TEXTS)
    assert len(server.asked) == 1


def test_a_store_goes_on_without_its_server_and_catches_up(server: Server, clock: Clock) -> None:
    settings = {"embedder": server.url, "embedder_model": "words", "embedder_key": KEY}
    with threefold.open(":memory:", **settings, background=False, clock=clock) as db:
        assert KEY not in repr(db.config)
        server.plan = [say(401)] + [say(503)] * 8
        with db.user("alice").turn("trip") as turn:
            turn.prompt("river boat")
            turn.answer("mountain hut")
        done = db.embed_pending()
        assert (done.embedded, done.failed) == (0, 2)
        assert len(server.asked) == 1  # neither row by row nor again at once
        found = db.user("alice").conv.search("river")
        assert (found.mode, len(found)) == ("lexical", 1)
        assert "check embedder_key" in found.warnings[0]
        assert KEY not in found.warnings[0] + str(db.state().last_failure)
        server.plan = []
        db.embedder._endpoint._paused = None
        clock.advance(timedelta(hours=1))
        assert db.embed_pending().embedded == 2
        assert db.user("alice").conv.search("river").mode == "hybrid"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"embedder": "gpt"}, "'gpt' is unknown; give 'bundled', 'onnx', 'multilingual', http"),
        ({"embedder": "ftp://u:p@host"}, "ftp://… is unknown"),
        ({"embedder": "http://host/v1"}, "embedder_model must name a model"),
        ({"embedder": "http://host/v1", "embedder_model": "m", "embedder_dimensions": 0}, "embedder_dimensions 0"),
        ({"embedder": "bundled", "embedder_key": "k"}, "embedder_key: not for embedder 'bundled'"),
        ({"embedder": None, "embedder_model": "m"}, "embedder_model: not for"),
        ({"embedder": 3}, "lacks name"),
        ({"embedder": "onnx", "embedder_model": "/nowhere"}, "tokenizer.json|pip install"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidInput, Unavailable), match=message):
        threefold.open(":memory:", **settings)
