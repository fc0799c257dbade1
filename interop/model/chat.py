"""OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from interop.model.replies import Asked, Json, Piece, Thinking, ToolCall, Words, data, fresh, text_of


def asked_of(body: Json) -> Asked:
    asked = Asked(tools={it["function"]["name"]: it["function"].get("parameters", {}) for it in body.get("tools", [])})
    for message in body["messages"]:
        if message["role"] == "user":
            asked.said(text_of(message["content"]))
        elif message["role"] == "tool":
            asked.answered = True
    return asked


def stream(body: Json, pieces: Iterable[Piece]) -> Iterator[str]:
    reason, begun = "stop", head(body)
    for piece in pieces:
        if isinstance(piece, Words):
            delta: Json = {"role": "assistant", "content": piece.text}
        elif isinstance(piece, Thinking):
            delta = {"role": "assistant", "reasoning_content": piece.text}
        else:
            reason = "tool_calls"
            called = {"name": piece.name, "arguments": json.dumps(piece.arguments)}
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": fresh("call"), "type": "function", "function": called}],
            }
        yield data(chunk(begun, delta, None))
    yield data({**chunk(begun, {}, reason), "usage": USAGE})
    yield "data: [DONE]\n\n"


def chunk(begun: Json, delta: Json, reason: str | None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {**begun, "object": "chat.completion.chunk", "choices": [choice]}


def head(body: Json) -> Json:
    return {"id": fresh("chatcmpl"), "created": 1, "model": body.get("model", "fake")}


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def whole(body: Json, pieces: Iterable[Piece]) -> Json:
    message: Json = {"role": "assistant", "content": ""}
    for piece in pieces:
        if isinstance(piece, Words):
            message["content"] += piece.text
        elif isinstance(piece, ToolCall):
            called = {"name": piece.name, "arguments": json.dumps(piece.arguments)}
            message["tool_calls"] = [{"id": fresh("call"), "type": "function", "function": called}]
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {**head(body), "object": "chat.completion", "choices": [choice], "usage": USAGE}
