"""Gemini's generateContent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from interop.model.replies import Asked, Json, Piece, ToolCall, Words, data


def asked_of(body: Json) -> Asked:
    asked = Asked()
    for tool in body.get("tools", []):
        for it in tool.get("functionDeclarations", []):
            asked.tools[it["name"]] = it.get("parametersJsonSchema") or it.get("parameters") or {}
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionResponse" in part:
                asked.answered = True
            elif content.get("role", "user") == "user" and "text" in part:
                asked.said(part["text"])
    return asked


def stream(_: Json, pieces: Iterable[Piece]) -> Iterator[str]:
    for piece in pieces:
        yield data(part(piece))
    yield data({**part(Words("")), "usageMetadata": USAGE} | end())


def part(piece: Piece) -> Json:
    call = isinstance(piece, ToolCall)
    part: Json = {"functionCall": {"name": piece.name, "args": piece.arguments}} if call else {"text": piece.text}
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}], "modelVersion": "fake"}


def end() -> Json:
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}]}


USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


def whole(body: Json, pieces: Iterable[Piece]) -> Json:
    text = "".join(piece.text for piece in pieces if isinstance(piece, Words))
    if "responseJsonSchema" in json.dumps(body.get("generationConfig", {})):
        text = "{}"
    answer = part(Words(text))
    answer["candidates"][0]["finishReason"] = "STOP"
    return {**answer, "usageMetadata": USAGE}
