"""The server: which API a request is for, and its answer over HTTP."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast

from interop.model import chat, gemini, messages, responses
from interop.model.replies import Asked, Json, Piece, reply


@dataclass(frozen=True)
class Api:
    """One way to ask: which paths, what was asked, and how the answer looks, streamed and whole."""

    path: re.Pattern[str]
    asked: Callable[[Json], Asked]
    stream: Callable[[Json, Iterable[Piece]], Iterator[str]]
    whole: Callable[[Json, Iterable[Piece]], Json]

    def streams(self, path: str, body: Mapping[str, Any]) -> bool:
        return "streamGenerateContent" in path or bool(body.get("stream"))


APIS = (
    Api(re.compile(r"/chat/completions$"), chat.asked_of, chat.stream, chat.whole),
    Api(re.compile(r"/responses$"), responses.asked_of, responses.stream, chat.whole),
    Api(re.compile(r"/messages$"), messages.asked_of, messages.stream, messages.whole),
    Api(re.compile(r":(stream)?[gG]enerateContent$"), gemini.asked_of, gemini.stream, gemini.whole),
)


@dataclass(frozen=True)
class Refused:
    """What a reply is when the provider refuses the request: an HTTP status, and the error as JSON."""

    status: int
    body: Json


SMALL: dict[str, Json] = {
    r"/count_tokens$": {"input_tokens": 10},
    r":countTokens$": {"totalTokens": 10},
    r"/models$": {"object": "list", "data": [{"id": "fake", "object": "model", "created": 1, "owned_by": "nobody"}]},
}
"""Short answers to what agents ask beside."""


def named(path: str, body: Json) -> str:
    """The model that a request asks for: in its body, or in its path as Gemini has it."""
    in_path = re.search(r"/models/([^/:]+):", path)
    return in_path[1] if in_path else str(body.get("model", ""))


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    @property
    def model(self) -> ModelServer:
        return cast("ModelServer", self.server)

    def end_headers(self) -> None:
        for name, value in self.model.headers().items():
            self.send_header(name, value)
        super().end_headers()

    def do_GET(self) -> None:
        self.answer_small({})

    def handle(self) -> None:
        """Serve the requests of a connection until it ends; an agent that is stopped leaves without reading on."""
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True
            self.model.note("the agent has left", None)

    def finish(self) -> None:
        with suppress(ConnectionError):  # what was not sent yet, to an agent that has left
            super().finish()

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length) if length else self.read_chunks()
        body = json.loads(raw or b"{}")
        path = self.path.split("?")[0]
        for api in APIS:
            if api.path.search(path):
                asked = api.asked(body)
                self.model.bodies.append(body)
                self.model.note(path, asked)
                self.model.asked.append((named(path, body), asked.text))
                said = self.model.reply(asked)
                if isinstance(said, Refused):
                    self.answer(said.status, said.body)
                elif api.streams(path, body):
                    self.answer_stream(api.stream(body, said))
                else:
                    self.answer(200, api.whole(body, said))
                return
        self.answer_small(body)

    def read_chunks(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return b""
        whole = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def answer_small(self, _: Json) -> None:
        path = self.path.split("?")[0]
        for pattern, value in SMALL.items():
            if re.search(pattern, path):
                return self.answer(200, value)
        self.model.note(f"404 {path}", None)
        return self.answer(404, {"error": {"message": f"no {path} here", "type": "not_found"}})

    def answer(self, status: int, value: Json) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_stream(self, events: Iterator[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for text in events:
                self.wfile.write(text.encode())
                self.wfile.flush()
        except OSError:
            self.model.note("the agent has left", None)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


class ModelServer(ThreadingHTTPServer):
    """The server: `with ModelServer() as model: ... model.url`."""

    daemon_threads = True

    def __init__(
        self,
        log: str | None = None,
        reply: Callable[[Asked], Iterable[Piece] | Refused] = reply,
        headers: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.log = log
        self.reply = reply
        """What the model says."""
        self.headers = headers
        """The headers that each answer has beside its own."""
        self.bodies: list[Json] = []
        """The body of each request, as it came."""
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.notes: list[str] = []
        self.asked: list[tuple[str, str]] = []
        """The model that each request names, and the user's last words in it."""

    def note(self, path: str, asked: Asked | None) -> None:
        """Remember what was asked, for when something goes wrong."""
        more = "" if asked is None else f" {asked.text[-120:]!r}, {sorted(asked.tools)}, answered {asked.answered}"
        self.notes.append(path + more)
        if self.log:
            with open(self.log, "a") as log:  # noqa: PTH123
                log.write(path + more + "\n")

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


if __name__ == "__main__":
    with ModelServer(sys.argv[1] if len(sys.argv) > 1 else "/dev/stderr") as model:
        print(model.url, flush=True)
        sys.stdin.read()
