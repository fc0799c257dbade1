"""A hostile agent over standard streams, or a hostile proxy that lets nobody through.

python -m tests.attack.hostiles.agents KIND SECONDS
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
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
