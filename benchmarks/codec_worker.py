"""Times one side's way between JSON text and typed values; run by `benchmarks.codec` in each side's own interpreter.

Theirs is what the official Python SDK does with a line: `json.loads` and pydantic's `model_validate`; the other way
`model_dump` and `json.dumps`. Ours is `codec.decode` and `codec.encode`.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable

TEXT = "the quick brown fox jumps over the lazy dog "
PAYLOADS: dict[str, tuple[str, object]] = {
    "agent_message_chunk": (
        "SessionNotification",
        {
            "sessionId": "sess_0123456789abcdef",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": TEXT[:40]}},
        },
    ),
    "tool_call with a 2 KB diff": (
        "SessionNotification",
        {
            "sessionId": "sess_0123456789abcdef",
            "update": {
                "sessionUpdate": "tool_call",
                "toolCallId": "call_001",
                "title": "Edit a file",
                "kind": "edit",
                "status": "in_progress",
                "content": [
                    {
                        "type": "diff",
                        "path": "/home/me/file.txt",
                        "oldText": (TEXT * 24)[:1024],
                        "newText": (TEXT * 24)[:1024].upper(),
                    }
                ],
                "locations": [{"path": "/home/me/file.txt", "line": 12}],
            },
        },
    ),
    "prompt with a 100 KB resource": (
        "PromptRequest",
        {
            "sessionId": "sess_0123456789abcdef",
            "prompt": [
                {"type": "text", "text": "What is in here?"},
                {
                    "type": "resource",
                    "resource": {"uri": "file:///home/me/big.txt", "mimeType": "text/plain", "text": TEXT * 2300},
                },
            ],
        },
    ),
    "chunk read tolerantly": (
        "SessionNotification",
        {
            "sessionId": "sess_0123456789abcdef",
            "update": {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": TEXT[:40], "annotations": {"audience": ["user", 5]}},
            },
        },
    ),
}
SECONDS = 0.15


def ours(name: str, line: bytes) -> tuple[Callable[[], object], Callable[[], object]]:
    from accord.schema import codec, v1

    cls = getattr(v1, name)
    value = codec.decode(line, cls)
    return lambda: codec.decode(line, cls), lambda: codec.encode(value)


def theirs(name: str, line: bytes) -> tuple[Callable[[], object], Callable[[], object]]:
    cls = getattr(importlib.import_module("acp.schema"), name)
    value = cls.model_validate(json.loads(line))

    def encode() -> bytes:
        dumped = value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
        return (json.dumps(dumped, separators=(",", ":")) + "\n").encode()

    return lambda: cls.model_validate(json.loads(line)), encode


def microseconds(do: Callable[[], object]) -> float:
    """The best of several rounds: what is slower than that was something else on the machine."""
    rounds, best = 1, float("inf")
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        begun = time.process_time()
        for _ in range(rounds):
            do()
        took = time.process_time() - begun
        if took < 0.005:
            rounds *= 2
        else:
            best = min(best, took / rounds)
    return best * 1e6


def main() -> None:
    side = ours if sys.argv[1] == "ours" else theirs
    for label, (name, payload) in PAYLOADS.items():
        decode, encode = side(name, json.dumps(payload, separators=(",", ":")).encode())
        print(json.dumps({"payload": label, "decode": microseconds(decode), "encode": microseconds(encode)}))


if __name__ == "__main__":
    main()
