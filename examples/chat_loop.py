"""A coding agent on any OpenAI-compatible API: text as it streams, thoughts, tools that ask first, usage, resume.

OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=qwen3 OPENAI_API_KEY=none python examples/chat_loop.py
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import accord

BASE_URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
CONTEXT = int(os.environ.get("OPENAI_CONTEXT", "128000"))
MOST_ROUNDS = 50
PATIENCE = 600.0
"""Seconds for one answer."""
SYSTEM = "You are a coding agent. Work in the folder {cwd}, with the tools that you have. Be brief."

Json = dict[str, Any]


agent = accord.Agent("chat-loop", store=os.environ.get("CHAT_LOOP_STORE"))


@agent.on_prompt
async def reply(turn: accord.Turn) -> str | None:
    for _ in range(MOST_ROUNDS):
        system = {"role": "system", "content": SYSTEM.format(cwd=turn.cwd)}
        messages = [system, *await turn.session.messages_for("openai")]
        options = {"stream": True, "stream_options": {"include_usage": True}}
        body = {"model": MODEL, "messages": messages, "tools": TOOLS, **options}
        async with asyncio.timeout(PATIENCE):
            lines = lines_of_answer(f"{BASE_URL}/chat/completions", json.dumps(body).encode())
            answer = await turn.stream_answer(lines, context=CONTEXT)
        if not answer.calls:
            return answer.stop_reason
        for call in answer.calls:
            await use_tool(turn, call)
    return "max_turn_requests"


# Tools. What a tool call shows as its raw output is what the model reads of it.


async def use_tool(turn: accord.Turn, call: accord.ModelCall) -> None:
    """Do what the model wants, and give it what came of it, errors included."""
    kind, do = DO.get(call.name, ("other", unknown))
    async with turn.tool(call.name, name=call.name, kind=kind, raw_input=call.input) as tool:
        try:
            await tool.raw_output(await do(turn, tool, **call.input))
        except (accord.AccordError, OSError, TypeError, ValueError) as error:
            await tool.raw_output(f"Error: {error}")
            await tool.fail()


async def unknown(_: accord.Turn, tool: accord.Tool, **__: Any) -> str:
    raise ValueError(f"there is no tool {tool.title!r}; there are: {', '.join(DO)}")


async def read_file(turn: accord.Turn, tool: accord.Tool, path: str) -> str:
    await tool.retitle(f"Read {path}")
    return await turn.files.read(path)


async def write_file(turn: accord.Turn, tool: accord.Tool, path: str, text: str) -> str:
    await tool.retitle(f"Write {path}")
    try:
        old = await turn.files.read(path)
    except (accord.PeerError, OSError):
        old = None
    await tool.diff(path, old, text)
    if not await tool.ask():
        return REFUSED
    await turn.files.write(path, text)
    return "Written."


async def run(_: accord.Turn, tool: accord.Tool, command: str) -> str:
    await tool.retitle(command)
    if not await tool.ask():
        return REFUSED
    async with tool.command(["sh", "-c", command]) as running:
        result = await running.wait(timeout=120)
    return f"{result.output}\n[exit code {result.exit_code}]"


REFUSED = "The user does not allow this."


def tool_schema(name: str, description: str, *parameters: str) -> Json:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


DO: dict[str, tuple[accord.v1.ToolKind, Callable[..., Awaitable[str]]]] = {
    "read_file": ("read", read_file),
    "write_file": ("edit", write_file),
    "run": ("execute", run),
}
TOOLS = [
    tool_schema("read_file", "Read a text file", "path"),
    tool_schema("write_file", "Write a text file, as a whole", "path", "text"),
    tool_schema("run", "Run a shell command", "command"),
]


# The API: server-sent events over HTTP, with the standard library alone


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
