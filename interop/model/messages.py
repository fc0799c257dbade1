"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from interop.model.replies import Asked, Json, Piece, Thinking, ToolCall, Words, event, fresh


def asked_of(body: Json) -> Asked:
    asked = Asked(tools={it["name"]: it.get("input_schema", {}) for it in body.get("tools", [])})
    for message in body["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "user":
            for part in parts:
                if part["type"] == "text":
                    asked.said(part["text"])
                elif part["type"] == "tool_result":
                    asked.answered = True
    return asked


def stream(body: Json, pieces: Iterable[Piece]) -> Iterator[str]:
    yield event("message_start", {"message": {**head(body), "content": [], "stop_reason": None}})
    reason, index, kind = "end_turn", -1, ""
    for piece in pieces:
        if not isinstance(piece, Words | Thinking) or kind != type(piece).__name__:
            if index >= 0:
                yield event("content_block_stop", {"index": index})
            index, kind = index + 1, type(piece).__name__
            yield event("content_block_start", {"index": index, "content_block": begun(piece)})
        if isinstance(piece, ToolCall):
            reason = "tool_use"
        yield event("content_block_delta", {"index": index, "delta": delta(piece)})
    if index >= 0:
        yield event("content_block_stop", {"index": index})
    yield event(
        "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 5}}
    )
    yield event("message_stop", {})


def begun(piece: Piece) -> Json:
    """A content block as it begins."""
    if isinstance(piece, Words):
        return {"type": "text", "text": ""}
    if isinstance(piece, Thinking):
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "tool_use", "id": fresh("toolu"), "name": piece.name, "input": {}}


def delta(piece: Piece) -> Json:
    """What a piece adds to its content block."""
    if isinstance(piece, Words):
        return {"type": "text_delta", "text": piece.text}
    if isinstance(piece, Thinking):
        return {"type": "thinking_delta", "thinking": piece.text}
    return {"type": "input_json_delta", "partial_json": json.dumps(piece.arguments)}


def head(body: Json) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 1}
    return {
        "id": fresh("msg"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "fake"),
        "usage": usage,
    }


def whole(body: Json, pieces: Iterable[Piece]) -> Json:
    text = "".join(piece.text for piece in pieces if isinstance(piece, Words))
    content = [{"type": "text", "text": text}]
    return {**head(body), "content": content, "stop_reason": "end_turn", "stop_sequence": None}
