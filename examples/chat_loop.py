"""A coding agent on any OpenAI-compatible API: text as it streams, thoughts, tools that ask first, usage, resume.

OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=qwen3 OPENAI_API_KEY=none python examples/chat_loop.py
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

import accord

BASE_URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
CONTEXT = int(os.environ.get("OPENAI_CONTEXT", "128000"))
MOST_ROUNDS = 50
PATIENCE = 600.0
"""Seconds for one answer."""
SYSTEM = "You are a coding agent. Work in the folder {cwd}, with the tools that you have. Be brief."

Json = dict[str, Any]


class Conversation(Struct):
    """The conversation with the model; stored with the session, so that it can be resumed."""

    messages: list[Json] = field(default_factory=list[Json])


agent = accord.Agent("chat-loop", state=Conversation, store=os.environ.get("CHAT_LOOP_STORE"))


@agent.on_prompt
async def reply(turn: accord.Turn) -> str | None:
    messages: list[Json] = turn.session.state.messages
    if not messages:
        messages.append({"role": "system", "content": SYSTEM.format(cwd=turn.cwd)})
    messages.append({"role": "user", "content": turn.text})
    for _ in range(MOST_ROUNDS):
        said, why = await ask_model(turn, messages)
        calls: list[Json] = said.get("tool_calls", [])
        # A round is stored when it is complete, so that a cancel leaves no call without a result.
        messages += [said, *[await use_tool(turn, call) for call in calls]]
        if not calls:
            return {"length": "max_tokens", "content_filter": "refusal"}.get(why)
    return "max_turn_requests"


async def ask_model(turn: accord.Turn, messages: list[Json]) -> tuple[Json, str]:
    """One answer of the model, told as it streams: the message, and why it ended."""
    body = {"model": MODEL, "messages": messages, "tools": TOOLS, "stream": True}
    text, calls, why = "", dict[int, Json](), ""
    answer = events(f"{BASE_URL}/chat/completions", {**body, "stream_options": {"include_usage": True}})
    async with asyncio.timeout(PATIENCE), aclosing(answer):
        async for event in answer:
            if usage := event.get("usage"):
                await turn.usage(usage["total_tokens"], CONTEXT)
            for choice in event.get("choices", []):
                delta, why = choice["delta"], choice.get("finish_reason") or why
                if thought := delta.get("reasoning_content") or delta.get("reasoning"):
                    await turn.think(thought)
                if piece := delta.get("content"):
                    text += piece
                    await turn.say(piece)
                add_parts(calls, delta.get("tool_calls") or [])
    said: Json = {"role": "assistant", "content": text}
    return (said | {"tool_calls": list(calls.values())} if calls else said), why


def add_parts(calls: dict[int, Json], parts: list[Json]) -> None:
    """A tool call comes in parts: its id and name first, then its arguments piece by piece."""
    for part in parts:
        new = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = calls.setdefault(part.get("index", 0), new)
        call["id"] = part.get("id") or call["id"]
        for key in ("name", "arguments"):
            call["function"][key] += part.get("function", {}).get(key) or ""


# Tools


async def use_tool(turn: accord.Turn, call: Json) -> Json:
    """Do what the model wants, and give it what came of it, errors included."""
    try:
        wanted = json.loads(call["function"]["arguments"] or "{}")
        result = await DO[call["function"]["name"]](turn, **wanted)
    except (accord.AccordError, KeyError, TypeError, ValueError) as error:
        result = f"Error: {error}"
    return {"role": "tool", "tool_call_id": call["id"], "content": result}


async def read_file(turn: accord.Turn, path: str) -> str:
    async with turn.tool(f"Read {path}", kind="read", locations=[path]):
        return await turn.files.read(path)


async def write_file(turn: accord.Turn, path: str, text: str) -> str:
    async with turn.tool(f"Write {path}", kind="edit", locations=[path]) as tool:
        try:
            old = await turn.files.read(path)
        except accord.PeerError:
            old = None
        await tool.diff(path, old, text)
        if not await tool.ask():
            return "The user does not allow this."
        await turn.files.write(path, text)
        return "Written."


async def run(turn: accord.Turn, command: str) -> str:
    async with turn.tool(command, kind="execute") as tool:
        if not await tool.ask():
            return "The user does not allow this."
        async with tool.command(["sh", "-c", command]) as running:
            result = await running.wait(timeout=120)
        return f"{result.output}\n[exit code {result.exit_code}]"


def tool(name: str, description: str, *parameters: str) -> Json:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


DO: dict[str, Callable[..., Awaitable[str]]] = {"read_file": read_file, "write_file": write_file, "run": run}
TOOLS = [
    tool("read_file", "Read a text file", "path"),
    tool("write_file", "Write a text file, as a whole", "path", "text"),
    tool("run", "Run a shell command", "command"),
]


# The API: server-sent events over HTTP, with the standard library alone


async def events(url: str, body: Json) -> AsyncGenerator[Json]:
    """What the API sends, event by event."""
    async with aclosing(lines_of_answer(url, json.dumps(body).encode())) as lines:
        async for line in lines:
            if line.startswith(b"data:") and (data := line[5:].strip()) != b"[DONE]":
                yield json.loads(data)


async def lines_of_answer(url: str, body: bytes) -> AsyncGenerator[bytes]:
    """POST, and read the answer's body line by line."""
    place = urlsplit(url)
    port, secure = place.port or (443 if place.scheme == "https" else 80), place.scheme == "https"
    reader, writer = await asyncio.open_connection(place.hostname, port, ssl=secure or None, limit=2**24)
    try:
        headers = {
            "Host": place.netloc,
            "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}",
            "Content-Type": "application/json",
            "Content-Length": len(body),
            "Connection": "close",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"POST {place.path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        status, *fields = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        if status.split()[1] != "200":
            raise accord.RequestError.internal(
                f"the model API answered {status}", body=(await reader.read(2000)).decode()
            )
        chunked = any(name.lower().startswith("transfer-encoding: chunked") for name in fields)
        rest = b""
        async for piece in pieces(reader, chunked=chunked):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line
        yield rest
    finally:
        writer.close()


async def pieces(reader: asyncio.StreamReader, *, chunked: bool) -> AsyncGenerator[bytes]:
    while not chunked and (piece := await reader.read(65536)):
        yield piece
    while chunked and (size := int((await reader.readline()).split(b";")[0], 16)):
        yield await reader.readexactly(size)
        await reader.readline()


if __name__ == "__main__":
    agent.run()
