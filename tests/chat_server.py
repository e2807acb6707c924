"""A local server that speaks `/v1/chat/completions` and `/v1/messages`, and can be told to misbehave."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from threefold.model.chat import Reply

Deed = Callable[["Handler", Any], None]
Planned = Reply | str | Deed
_OPENAI_FINISH = {"stop": "stop", "tools": "tool_calls", "length": "length", "refused": "content_filter"}
_ANTHROPIC_FINISH = {"stop": "end_turn", "tools": "tool_use", "length": "max_tokens", "refused": "refusal"}


class Server(ThreadingHTTPServer):
    """Says what the user said last, or what is planned: a reply, a text, or a deed of its own.

    `bite` is how many bytes are sent at once, `pause` how long it waits before each, `line` how lines end. `ids`,
    `usage`, `done` say whether calls have ids, streams an account, and an end that is told. `hung_up` is set when a
    client closes its connection in the middle of an answer.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan: list[Planned] = []
        self.asked: list[Any] = []
        self.connections, self.open = 0, 0
        self.hung_up, self.answering = threading.Event(), threading.Event()
        self.bite, self.pause, self.line = 1 << 20, 0.0, "\n"
        self.ids = self.usage = self.done = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        self.open += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open -= 1
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what some tests are about."""


class Handler(BaseHTTPRequestHandler):
    """Keeps connections open, as real servers do."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        self.note({})
        self.say(200, {"data": [{"id": "words:8b"}, {"id": "other"}]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw.decode("utf-8"))
        self.note(body)
        planned = self.server.plan.pop(0) if self.server.plan else "You said: " + last_said(body)
        if callable(planned):
            planned(self, body)
            return
        reply = Reply(planned) if isinstance(planned, str) else planned
        if self.path.endswith("/messages"):
            speak = anthropic_events if body.get("stream") else anthropic_answer
        else:
            speak = openai_events if body.get("stream") else openai_answer
        answer = speak(reply, body, self.server)
        if body.get("stream"):
            self.stream(answer)
        else:
            self.say(200, answer)

    def note(self, body: Any) -> None:
        key = self.headers.get("Authorization") or self.headers.get("x-api-key")
        self.server.asked.append(
            {"path": self.path, "key": key, "version": self.headers.get("anthropic-version"), **body}
        )

    def say(self, status: int, answer: Any, **headers: str) -> None:
        """An answer at once."""
        data = answer if isinstance(answer, bytes) else json.dumps(answer, ensure_ascii=False).encode()
        self.begin(status, {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers})
        self.send(data)

    def stream(self, answer: str, cut: bool = False) -> None:
        """An answer in chunks; `cut` drops the connection instead of ending it."""
        self.begin(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        data = answer.replace("\n", self.server.line).encode()
        for start in range(0, len(data), self.server.bite):
            bite = data[start : start + self.server.bite]
            self.send(b"%x\r\n%s\r\n" % (len(bite), bite))
        if cut:
            self.drop()
        else:
            self.send(b"0\r\n\r\n")

    def begin(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.server.answering.set()

    def send(self, data: bytes) -> None:
        if self.server.pause and self.left_within(self.server.pause):
            raise ConnectionError
        try:
            self.wfile.write(data)
        except OSError:
            self.server.hung_up.set()
            raise

    def left_within(self, seconds: float) -> bool:
        """Whether the client closes its connection within that time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.connection], [], [], left)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                self.server.hung_up.set()
                return True
        return False

    def drop(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        pass


def last_said(body: Any) -> str:
    """The text of the last message, of either wire."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", str(block.get("content", ""))) for block in content or ())


def error(status: int, message: str = "", **headers: str) -> Deed:
    """A refusal."""
    return lambda handler, body: handler.say(status, {"error": {"message": message}}, **headers)


def raw(data: str, cut: bool = False) -> Deed:
    """A stream as it is written."""
    return lambda handler, body: handler.stream(data, cut)


def drop(handler: Handler, body: Any) -> None:
    """No answer at all."""
    handler.drop()


def sleep(handler: Handler, body: Any) -> None:
    """No answer, while the client is there."""
    handler.server.answering.set()
    handler.left_within(20)
    handler.close_connection = True


def event(data: Any, name: str = "") -> str:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


def openai_answer(reply: Reply, body: Any, server: Server) -> Any:
    calls = [{"function": {"name": c.name, "arguments": json.dumps(dict(c.arguments))}} for c in reply.calls]
    for call, given in zip(calls, reply.calls, strict=True):
        call.update({"id": given.id, "type": "function"} if server.ids else {})
    message = {"role": "assistant", "content": reply.text or None, **({"tool_calls": calls} if calls else {})}
    answer: dict[str, Any] = {"choices": [{"message": message, "finish_reason": _OPENAI_FINISH[reply.finish]}]}
    if server.usage:
        answer["usage"] = {"prompt_tokens": reply.usage.input, "completion_tokens": reply.usage.output}
    return answer


def openai_events(reply: Reply, body: Any, server: Server) -> str:
    deltas: list[Any] = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces(reply.text))]
    for index, call in enumerate(reply.calls):
        said = pieces(json.dumps(dict(call.arguments), ensure_ascii=False))
        first = {"index": index, "function": {"name": call.name, "arguments": ""}}
        first.update({"id": call.id, "type": "function"} if server.ids else {})
        deltas.append({"tool_calls": [first]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in said]
    events = [event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas]
    events.append(event({"choices": [{"index": 0, "delta": {}, "finish_reason": _OPENAI_FINISH[reply.finish]}]}))
    if server.usage and body.get("stream_options", {}).get("include_usage"):
        usage = {"prompt_tokens": reply.usage.input, "completion_tokens": reply.usage.output}
        events.append(event({"choices": [], "usage": usage}))
    return ": a comment\n\n" + "".join(events) + (event("[DONE]") if server.done else "")


def anthropic_answer(reply: Reply, body: Any, server: Server) -> Any:
    choice = body.get("tool_choice", {})
    wanted = choice.get("name") if choice.get("type") == "tool" else None
    blocks: list[Any] = [{"type": "text", "text": reply.text}] if reply.text else []
    if wanted and reply.text.startswith("{"):
        blocks = [{"type": "tool_use", "id": "toolu_0", "name": wanted, "input": json.loads(reply.text)}]
    blocks += [{"type": "tool_use", "id": c.id, "name": c.name, "input": dict(c.arguments)} for c in reply.calls]
    usage = {"input_tokens": reply.usage.input, "output_tokens": reply.usage.output}
    return {"type": "message", "content": blocks, "stop_reason": _ANTHROPIC_FINISH[reply.finish], "usage": usage}


def anthropic_events(reply: Reply, body: Any, server: Server) -> str:
    told: list[Any] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": reply.usage.input, "output_tokens": 1}}},
        {"type": "ping"},
    ]
    blocks: list[tuple[Any, list[Any]]] = []
    if reply.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(reply.text)]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for call in reply.calls:
        said = pieces(json.dumps(dict(call.arguments), ensure_ascii=False))
        begun = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        blocks.append((begun, [{"type": "input_json_delta", "partial_json": piece} for piece in said]))
    for index, (begun, deltas) in enumerate(blocks):
        told.append({"type": "content_block_start", "index": index, "content_block": begun})
        told += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        told.append({"type": "content_block_stop", "index": index})
    usage = {"output_tokens": reply.usage.output}
    told.append({"type": "message_delta", "delta": {"stop_reason": _ANTHROPIC_FINISH[reply.finish]}, "usage": usage})
    told += [{"type": "message_stop"}] if server.done else []
    return "".join(event(each, each["type"]) for each in told)


def pieces(text: str) -> list[str]:
    """Some characters at a time."""
    return [text[start : start + 4] for start in range(0, len(text), 4)]


@contextmanager
def serving() -> Iterator[Server]:
    """A server at work."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
