"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from interop.model.replies import Asked, Json, Piece, Words, event, fresh


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
    reason, open_text = "end_turn", False
    for piece in pieces:
        if isinstance(piece, Words):
            if not open_text:
                yield event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
                open_text = True
            yield event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece.text}})
            continue
        reason = "tool_use"
        block: Json = {"type": "tool_use", "id": fresh("toolu"), "name": piece.name, "input": {}}
        yield event("content_block_start", {"index": 0, "content_block": block})
        partial = {"type": "input_json_delta", "partial_json": json.dumps(piece.arguments)}
        yield event("content_block_delta", {"index": 0, "delta": partial})
    yield event("content_block_stop", {"index": 0})
    yield event(
        "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 5}}
    )
    yield event("message_stop", {})


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
