"""A model for agents that need one: a local server that speaks as the hosted ones do, and says what a script says.

It speaks OpenAI's chat completions and responses, Anthropic's messages and Gemini's generateContent, streaming and not.
Data's way: a request of any of them -> `Asked` (the user's last words, the tools on offer, whether a tool has answered)
-> `reply` decides, once for all of them -> pieces (words, or one call of a tool) -> the form of the one that asked.

The user's words decide: `EDIT path` calls a tool that writes this file, `STREAM` goes on and on until nobody listens any
more, anything else is answered with a sentence. Standard library only.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SENTENCE = "Hello from a model that is made of rules."
AFTERWARDS = "The file is written."
CONTENT = "Written by a model that is made of rules.\n"
TICKS, TICK_SECONDS = 1200, 0.05

Json = dict[str, Any]


@dataclass(frozen=True)
class Words:
    """A piece of text."""

    text: str


@dataclass(frozen=True)
class ToolCall:
    """A tool to be called."""

    name: str
    arguments: Json
    freeform: str | None = None
    """What a tool that takes text instead of JSON gets."""


Piece = Words | ToolCall


@dataclass
class Asked:
    """What a request of any kind comes down to."""

    text: str = ""
    tools: dict[str, Json] = field(default_factory=dict[str, Json])
    answered: bool = False
    """A tool has answered since the user's last words."""
    freeform: set[str] = field(default_factory=set[str])

    def said(self, text: str) -> None:
        if "EDIT " in text or "STREAM" in text or not self.text:
            self.text, self.answered = text, False
        elif not text.lstrip().startswith("<"):
            self.text, self.answered = text, False


def reply(asked: Asked) -> Iterator[Piece]:
    """What the model says."""
    wanted = re.search(r"EDIT (\S+)", asked.text)
    if wanted and not asked.answered and (call := writing(asked, wanted[1])):
        yield call
    elif wanted and asked.answered:
        yield from words(AFTERWARDS)
    elif "STREAM" in asked.text and asked.tools:
        for number in range(TICKS):
            time.sleep(TICK_SECONDS)
            yield Words(f"tick {number} ")
    else:
        yield from words(SENTENCE)


def words(text: str) -> Iterator[Piece]:
    yield from (Words(word) for word in re.findall(r"\S+\s*", text))


WRITERS: dict[str, tuple[str, str]] = {
    "Write": ("file_path", "content"),
    "write_file": ("file_path", "content"),
    "write": ("filePath", "content"),
}
"""Tools that write a file: what they call its path, and its text."""


def writing(asked: Asked, path: str) -> ToolCall | None:
    """A call that writes this file, with whichever tool the agent has for it."""
    patch = f"*** Begin Patch\n*** Add File: {path}\n+{CONTENT.strip()}\n*** End Patch"
    for name, (where, what) in WRITERS.items():
        if name in asked.tools:
            named = asked.tools[name].get("properties", {})
            return ToolCall(name, {where if where in named or "path" not in named else "path": path, what: CONTENT})
    if "apply_patch" in asked.tools:
        return ToolCall("apply_patch", {"input": patch, "patchText": patch}, freeform=patch)
    shell = f"printf '%s\\n' '{CONTENT.strip()}' > '{path}'"
    for name, arguments in {"exec_command": {"cmd": shell}, "shell": {"command": ["sh", "-c", shell]}}.items():
        if name in asked.tools:
            return ToolCall(name, arguments)
    return None


def text_of(content: Any) -> str:
    """The text in a message's content, whichever form it has."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if isinstance(part.get("text"), str))


# OpenAI, chat completions


def asked_of_chat(body: Json) -> Asked:
    asked = Asked(tools={it["function"]["name"]: it["function"].get("parameters", {}) for it in body.get("tools", [])})
    for message in body["messages"]:
        if message["role"] == "user":
            asked.said(text_of(message["content"]))
        elif message["role"] == "tool":
            asked.answered = True
    return asked


def chat_stream(body: Json, pieces: Iterable[Piece]) -> Iterator[str]:
    reason = "stop"
    for piece in pieces:
        if isinstance(piece, Words):
            delta: Json = {"role": "assistant", "content": piece.text}
        else:
            reason = "tool_calls"
            called = {"name": piece.name, "arguments": json.dumps(piece.arguments)}
            delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": called}]}
        yield data(chat_chunk(body, delta, None))
    yield data({**chat_chunk(body, {}, reason), "usage": USAGE_OF_CHAT})
    yield "data: [DONE]\n\n"


def chat_chunk(body: Json, delta: Json, reason: str | None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {**chat_head(body), "object": "chat.completion.chunk", "choices": [choice]}


def chat_head(body: Json) -> Json:
    return {"id": "chatcmpl-1", "created": 1, "model": body.get("model", "fake")}


USAGE_OF_CHAT = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chat_whole(body: Json, pieces: Iterable[Piece]) -> Json:
    message: Json = {"role": "assistant", "content": ""}
    for piece in pieces:
        if isinstance(piece, Words):
            message["content"] += piece.text
        else:
            called = {"name": piece.name, "arguments": json.dumps(piece.arguments)}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": called}]
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {**chat_head(body), "object": "chat.completion", "choices": [choice], "usage": USAGE_OF_CHAT}


# OpenAI, responses


def asked_of_responses(body: Json) -> Asked:
    asked = Asked()
    for tool in body.get("tools", []):
        if "name" in tool:
            asked.tools[tool["name"]] = tool.get("parameters", {})
            asked.freeform |= {tool["name"]} if tool["type"] == "custom" else set()
    said = body["input"]
    for item in [{"role": "user", "content": said}] if isinstance(said, str) else said:
        if item.get("role") == "user":
            asked.said(text_of(item["content"]))
        elif str(item.get("type", "")).endswith("_output"):
            asked.answered = True
    return asked


def responses_stream(body: Json, pieces: Iterable[Piece]) -> Iterator[str]:
    asked = asked_of_responses(body)
    head: Json = {"id": "resp_1", "object": "response", "created_at": 1, "model": body.get("model", "fake"), "output": []}
    yield event("response.created", {"response": {**head, "status": "in_progress"}})
    output: list[Json] = []
    text = ""
    for piece in pieces:
        if isinstance(piece, ToolCall):
            output.append(item := responses_call(piece, freeform=piece.name in asked.freeform))
            yield event("response.output_item.added", {"output_index": 0, "item": item})
            yield event("response.output_item.done", {"output_index": 0, "item": item})
            continue
        if not text:
            begun = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
            yield event("response.output_item.added", {"output_index": 0, "item": begun})
        text += piece.text
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        yield event("response.output_text.delta", {**place, "delta": piece.text})
    if text:
        spoken = [{"type": "output_text", "text": text, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": spoken}
        output.append(item)
        yield event("response.output_item.done", {"output_index": 0, "item": item})
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield event("response.completed", {"response": {**head, "status": "completed", "output": output, "usage": usage}})


def responses_call(piece: ToolCall, *, freeform: bool) -> Json:
    head = {"id": "item_1", "call_id": "call_1", "name": piece.name, "status": "completed"}
    if freeform:
        return {**head, "type": "custom_tool_call", "input": piece.freeform or ""}
    return {**head, "type": "function_call", "arguments": json.dumps(piece.arguments)}


# Anthropic, messages


def asked_of_messages(body: Json) -> Asked:
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


def messages_stream(body: Json, pieces: Iterable[Piece]) -> Iterator[str]:
    yield event("message_start", {"message": {**messages_head(body), "content": [], "stop_reason": None}})
    reason, open_text = "end_turn", False
    for piece in pieces:
        if isinstance(piece, Words):
            if not open_text:
                yield event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
                open_text = True
            yield event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece.text}})
            continue
        reason = "tool_use"
        block = {"type": "tool_use", "id": f"toolu_{time.monotonic_ns()}", "name": piece.name, "input": {}}
        yield event("content_block_start", {"index": 0, "content_block": block})
        partial = {"type": "input_json_delta", "partial_json": json.dumps(piece.arguments)}
        yield event("content_block_delta", {"index": 0, "delta": partial})
    yield event("content_block_stop", {"index": 0})
    yield event("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 5}})
    yield event("message_stop", {})


def messages_head(body: Json) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 1}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "fake"), "usage": usage}


def messages_whole(body: Json, pieces: Iterable[Piece]) -> Json:
    text = "".join(piece.text for piece in pieces if isinstance(piece, Words))
    content = [{"type": "text", "text": text}]
    return {**messages_head(body), "content": content, "stop_reason": "end_turn", "stop_sequence": None}


# Gemini


def asked_of_gemini(body: Json) -> Asked:
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


def gemini_stream(_: Json, pieces: Iterable[Piece]) -> Iterator[str]:
    for piece in pieces:
        yield data(gemini_part(piece))
    yield data({**gemini_part(Words("")), "usageMetadata": USAGE_OF_GEMINI} | gemini_end())


def gemini_part(piece: Piece) -> Json:
    call = isinstance(piece, ToolCall)
    part: Json = {"functionCall": {"name": piece.name, "args": piece.arguments}} if call else {"text": piece.text}
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}], "modelVersion": "fake"}


def gemini_end() -> Json:
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}]}


USAGE_OF_GEMINI = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


def gemini_whole(body: Json, pieces: Iterable[Piece]) -> Json:
    text = "".join(piece.text for piece in pieces if isinstance(piece, Words))
    if "responseJsonSchema" in json.dumps(body.get("generationConfig", {})):
        text = "{}"
    answer = gemini_part(Words(text))
    answer["candidates"][0]["finishReason"] = "STOP"
    return {**answer, "usageMetadata": USAGE_OF_GEMINI}


# The server


def data(value: Json) -> str:
    return f"data: {json.dumps(value)}\n\n"


def event(kind: str, value: Json) -> str:
    return f"event: {kind}\n{data({'type': kind, **value})}"


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
    Api(re.compile(r"/chat/completions$"), asked_of_chat, chat_stream, chat_whole),
    Api(re.compile(r"/responses$"), asked_of_responses, responses_stream, chat_whole),
    Api(re.compile(r"/messages$"), asked_of_messages, messages_stream, messages_whole),
    Api(re.compile(r":(stream)?[gG]enerateContent$"), asked_of_gemini, gemini_stream, gemini_whole),
)
SMALL: dict[str, Json] = {
    r"/count_tokens$": {"input_tokens": 10},
    r":countTokens$": {"totalTokens": 10},
    r"/models$": {"object": "list", "data": [{"id": "fake", "object": "model", "created": 1, "owned_by": "nobody"}]},
}
"""Short answers to what agents ask beside."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_GET(self) -> None:
        self.answer_small({})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length) if length else self.read_chunks()
        body = json.loads(raw or b"{}")
        path = self.path.split("?")[0]
        for api in APIS:
            if api.path.search(path):
                asked = api.asked(body)
                self.server.note(path, asked)
                if api.streams(path, body):
                    self.answer_stream(api.stream(body, reply(asked)))
                else:
                    self.answer(200, api.whole(body, reply(asked)))
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
        self.server.note(f"404 {path}", None)
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
            self.server.note("nobody listens any more", None)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


class ModelServer(ThreadingHTTPServer):
    """The server: `with ModelServer() as model: ... model.url`."""

    daemon_threads = True

    def __init__(self, log: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.log = log
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.notes: list[str] = []

    def note(self, path: str, asked: Asked | None) -> None:
        """Remember what was asked, for when something goes wrong."""
        more = "" if asked is None else f" {asked.text[-120:]!r}, {sorted(asked.tools)}, answered {asked.answered}"
        self.notes.append(path + more)
        if self.log:
            with open(self.log, "a") as log:  # noqa: PTH123
                log.write(path + more + "\n")

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


if __name__ == "__main__":
    with ModelServer(sys.argv[1] if len(sys.argv) > 1 else "/dev/stderr") as model:
        print(model.url, flush=True)
        sys.stdin.read()
