"""OpenAI's responses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from interop.model.replies import Asked, Json, Piece, ToolCall, event, fresh, text_of


def asked_of(body: Json) -> Asked:
    asked = Asked()
    for tool in body.get("tools", []):
        if tool["type"] == "namespace":  # the tools of one MCP server
            for inner in tool["tools"]:
                full = f"{tool['name']}__{inner['name']}"
                asked.tools[full] = inner.get("parameters", {})
                asked.namespaces[full] = (tool["name"], inner["name"])
        elif "name" in tool:
            asked.tools[tool["name"]] = tool.get("parameters", {})
            asked.freeform |= {tool["name"]} if tool["type"] == "custom" else set()
    said = body["input"]
    for item in [{"role": "user", "content": said}] if isinstance(said, str) else said:
        if item.get("role") == "user":
            asked.said(text_of(item["content"]))
        elif str(item.get("type", "")).endswith("_output"):
            asked.answered = True
    return asked


def stream(body: Json, pieces: Iterable[Piece]) -> Iterator[str]:
    asked = asked_of(body)
    head: Json = {
        "id": fresh("resp"),
        "object": "response",
        "created_at": 1,
        "model": body.get("model", "fake"),
        "output": [],
    }
    yield event("response.created", {"response": {**head, "status": "in_progress"}})
    message: Json = {"type": "message", "id": fresh("msg"), "role": "assistant", "status": "in_progress"}
    output: list[Json] = []
    text = ""
    for piece in pieces:
        if isinstance(piece, ToolCall):
            output.append(call(piece, asked))
            yield event("response.output_item.added", {"output_index": 0, "item": output[-1]})
            yield event("response.output_item.done", {"output_index": 0, "item": output[-1]})
            continue
        if not text:
            yield event("response.output_item.added", {"output_index": 0, "item": {**message, "content": []}})
        text += piece.text
        place = {"item_id": message["id"], "output_index": 0, "content_index": 0}
        yield event("response.output_text.delta", {**place, "delta": piece.text})
    if text:
        spoken: list[Json] = [{"type": "output_text", "text": text, "annotations": []}]
        item = {**message, "status": "completed", "content": spoken}
        output.append(item)
        yield event("response.output_item.done", {"output_index": 0, "item": item})
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield event("response.completed", {"response": {**head, "status": "completed", "output": output, "usage": usage}})


def call(piece: ToolCall, asked: Asked) -> Json:
    space, name = asked.namespaces.get(piece.name, (None, piece.name))
    head = {"id": fresh("item"), "call_id": fresh("call"), "name": name, "status": "completed"}
    if space is not None:
        head["namespace"] = space
    if piece.name in asked.freeform:
        return {**head, "type": "custom_tool_call", "input": piece.freeform or ""}
    return {**head, "type": "function_call", "arguments": json.dumps(piece.arguments)}
