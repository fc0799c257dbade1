"""A hostile agent over standard streams, or a hostile proxy that lets nobody through.

python -m tests.attack.hostiles.agents KIND SECONDS
"""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.attack.attackers.payloads import SHAPES
from tests.attack.hostiles import LATEST, Allowance

Json = dict[str, Any]

LONG = 200_000
EVIL_PATTERNS = ["^" + "a?" * 30 + "a" * 30 + "$", "^" + "(?:a|a)" * 30 + "b$", "^(a+)+$", "^(?:a|aa)+$", "(" * 5_000]


def update(content: Json, session: str = "s") -> Json:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": content}}


def text(characters: str) -> Json:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": characters}}


def text_of_tool(number: int, characters: str) -> Json:
    return tool(number, {"type": "content", "content": {"type": "text", "text": characters}})


def tool(number: int, *content: Json) -> Json:
    call = {"toolCallId": f"t{number % 50}", "title": "x", "kind": "execute", "status": "in_progress"}
    return update({"sessionUpdate": "tool_call", **call, "content": list(content)})


def image(data: bytes, kind: str = "image/png") -> Json:
    content = {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": kind}
    return update({"sessionUpdate": "agent_message_chunk", "content": content})


def png(width: int, height: int, rows: int) -> bytes:
    """A black image of this size, with so many rows of it."""
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))]
    parts += [(b"IDAT", zlib.compress(bytes((1 + 3 * width) * rows))), (b"IEND", b"")]
    framed = (struct.pack(">I", len(it)) + name + it + struct.pack(">I", zlib.crc32(name + it)) for name, it in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def diff(number: int, old: str, new: str) -> Json:
    return tool(number, {"type": "diff", "path": "/tmp/a\x1b[2J.py", "oldText": old, "newText": new})


HARD_MARKDOWN = (
    *("> " * 500 + "deep\n", "- " * 500 + "deep\n", "[" * 3_000, "![](" * 1_000, "*a **b " * 1_000, "`" * 3_000),
    *("|" + "a|" * 500 + "\n|" + "-|" * 500 + "\n", "<!--" * 1_000, "&amp" * 1_000, "\n```x\n" * 500, "_" * 3_001),
    *("\n[a]: <b>" * 500, "e" + "\u0301" * 3_000, "\u202e\u2066\u200d" * 1_000, "\n\n" * 2_000, "\t" * 3_000),
)
ESCAPES = (
    *(
        "\x1b[31m" * 1_000,
        "\x1b[" + "1;" * 3_000 + "m",
        "\x1b[999999999C",
        "\x1b[2J\x1b[3J\x1b[H",
        "\x1bP" + "q" * 3_000,
    ),
    *("\x1b]0;title\x07", "\x1b]52;c;eA==\x07", "\x1b]8;;file:///\x1b\\", "\x9b2J\x90\x9d", "\r\b\x7f\x00" * 1_000),
)
CODE = ["\n".join(f"{number * step % 97} x" for number in range(4_000)) for step in (1, 7, 31)]
PICTURES = (
    png(60_000, 60_000, 1),
    png(5_000, 5_000, 5_000),
    png(1, 60_000, 60_000),
    png(8, 8, 2)[:-20],
    b"GIF89a\xff\xff",
)


def request(number: int, method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {"sessionId": "s", **params}}


def permission(number: int, title: str, **more: Any) -> Json:
    options = [{"optionId": "a", "name": "Allow", "kind": "allow_once"}]
    call = {"toolCallId": str(number), "title": title, "kind": "read", **more}
    return request(number, "session/request_permission", {"toolCall": call, "options": options})


def form(number: int, properties: Json) -> Json:
    schema = {"type": "object", "properties": properties}
    return request(number, "elicitation/create", {"mode": "form", "message": "?", "requestedSchema": schema})


def choices(number: int) -> Json:
    names = [f"choice {reached}" for reached in range(number)]
    return {"type": "array", "items": {"type": "string", "enum": names}, "default": names}


def endless(make: Callable[[int], Json]) -> Iterator[Json]:
    number = 100
    while True:
        number += 1
        yield make(number)


def once(*messages: Json) -> Iterator[Json]:
    yield from messages


UPDATES: dict[str, Callable[[], Iterator[Json]]] = {
    "text": lambda: endless(lambda _: update(text("x" * 1_000))),
    "tool calls": lambda: endless(
        lambda n: update({"sessionUpdate": "tool_call", "toolCallId": f"t{n}", "title": "x" * 1_000})
    ),
    "unknown updates": lambda: endless(lambda _: update({"sessionUpdate": "_unknown", "a": "x" * 1_000})),
    "other sessions": lambda: endless(lambda n: update(text("x" * 1_000), f"other {n}")),
    "markdown": lambda: endless(lambda n: update(text(HARD_MARKDOWN[n % len(HARD_MARKDOWN)]))),
    "thoughts": lambda: endless(
        lambda n: update({**text(HARD_MARKDOWN[n % len(HARD_MARKDOWN)]), "sessionUpdate": "agent_thought_chunk"})
    ),
    "escapes": lambda: endless(lambda n: text_of_tool(n, ESCAPES[n % len(ESCAPES)] * (1 + n % 7))),
    "images": lambda: endless(lambda n: image(PICTURES[n % len(PICTURES)])),
    "diffs": lambda: endless(lambda n: diff(n, CODE[n % 3], CODE[(n + 1) % 3])),
    "plans": lambda: endless(
        lambda _: update(
            {"sessionUpdate": "plan", "entries": [{"content": "x", "priority": "high", "status": "pending"}] * 500}
        )
    ),
    "unread answers": lambda: endless(lambda n: {"jsonrpc": "2.0", "id": n, "method": "m" * LONG, "params": {}}),
    "open questions": lambda: endless(lambda n: permission(n, "forever", rawInput={"x": "x" * LONG})),
    "answered questions": lambda: endless(lambda n: permission(n, "x" * 200)),
    "terminals": lambda: endless(lambda n: request(n, "terminal/create", {"command": "/bin/sleep", "args": ["30"]})),
    "reads": lambda: endless(lambda n: request(n, "fs/read_text_file", {"path": "/tmp/none"})),
    "forms": lambda: endless(lambda n: form(n, {"name": {"type": "string", "title": "x" * 500}})),
    "evil patterns": lambda: once(
        *(
            form(n, {"x": {"type": "string", "pattern": pattern, "default": "a" * 40}})
            for n, pattern in enumerate(EVIL_PATTERNS, 100)
        )
    ),
    "choices": lambda: once(form(100, {"x": choices(8_000)}), form(101, {"x": choices(20_000)})),
    "locations": lambda: once(permission(100, "x", locations=[{"path": f"/tmp/a/b/{n}"} for n in range(100_000)])),
    "commands": lambda: once(
        update(
            {
                "sessionUpdate": "available_commands_update",
                "availableCommands": [{"name": f"c{n}", "description": "x"} for n in range(50_000)],
            }
        )
    ),
}
"""What an agent sends while it is prompted, as messages."""


def junk_lines() -> Iterator[bytes]:
    while True:
        yield random.randbytes(random.randrange(2_000)) + b"\n"


def bytes_one_by_one() -> Iterator[bytes]:
    for byte in json.dumps(update(text("x" * 3_000))).encode() + b"\n":
        yield bytes([byte])


def endless_line() -> Iterator[bytes]:
    while True:
        yield b"x" * 1_000_000


def shape(name: str) -> Callable[[], Iterator[bytes]]:
    return lambda: iter([SHAPES[name]() + b"\n"])


BYTES: dict[str, Callable[[], Iterator[bytes]]] = {
    "junk": junk_lines,
    "bytes one by one": bytes_one_by_one,
    "an endless line": endless_line,
    **{f"json: {name}": shape(name) for name in SHAPES},
}
"""What an agent sends while it is prompted, as bytes."""

ENDINGS = ("it dies", "it never begins", "it closes its output", "it does not end")
"""What an agent does besides."""

KINDS = (*UPDATES, *BYTES, *ENDINGS)


class Agent:
    """Answers as far as it has to, and then does what its kind says."""

    def __init__(self, kind: str, seconds: float) -> None:
        self._kind = kind
        self._allowance = Allowance(seconds)

    def run(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            match message.get("method"):
                case "initialize" | "proxy/initialize" if self._kind != "it never begins":
                    self._answer(message, {"protocolVersion": 1, "agentCapabilities": {}})
                case "session/new":
                    self._answer(message, {"sessionId": "s"})
                case "session/prompt":
                    self._attack()
                    self._answer(message, {"stopReason": "end_turn"})

    def _attack(self) -> None:
        if self._kind in UPDATES:
            for message in UPDATES[self._kind]():
                if not self._write(json.dumps(message).encode() + b"\n"):
                    return
        for data in BYTES.get(self._kind, lambda: iter(()))():
            if not self._write(data):
                return
        match self._kind:
            case "it dies":
                os.kill(os.getpid(), signal.SIGKILL)
            case "it closes its output":
                os.close(1)
                time.sleep(LATEST)
            case "it does not end":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(LATEST)

    def _answer(self, message: Json, result: Json) -> None:
        self._write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")

    def _write(self, data: bytes) -> bool:
        rest = data
        while rest:
            rest = rest[os.write(1, rest) :]
        return self._allowance.take(len(data))


if __name__ == "__main__":
    kind, seconds = sys.argv[1:]
    threading.Timer(float(seconds) + LATEST, os._exit, [0]).start()
    Agent(kind, float(seconds)).run()
    os._exit(0)
