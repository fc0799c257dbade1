"""An MCP server with the official package: over stdio, or with the argument `http` or `sse` on a free port.

Then the first line of its output is its URL.
"""

import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, Image, MCPServer, Resolve
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("offering")
DOT = bytes.fromhex("89504e470d0a1a0a")


class Colour(BaseModel):
    colour: str


@server.tool(title="Add two numbers", annotations=ToolAnnotations(read_only_hint=True))
def add(left: int, right: int) -> int:
    """The sum."""
    return left + right


@server.tool()
def fail() -> str:
    """Never works."""
    raise RuntimeError("out of paint")


@server.tool()
def picture() -> Image:
    """A picture of nothing."""
    return Image(data=DOT, format="png")


def which_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool()
def ask(answer: Annotated[ElicitationResult[Colour], Resolve(which_colour)]) -> str:
    """Asks the user for a colour."""
    return f"{answer.action}: {answer.data.colour if answer.action == 'accept' else 'none'}"


@server.tool()
async def grow(context: Context) -> str:
    """Offers one tool more."""
    server.add_tool(add, name="plus")
    await context.notify_tools_changed()
    return "grown"


@server.tool()
async def paint(context: Context) -> str:
    """Takes a while, and says how far it is."""
    await context.report_progress(1, 2)
    await context.report_progress(2, 2, "drying")
    return "painted"


@server.tool()
def where() -> str:
    """Where this process runs, and with which variable."""
    return f"{Path.cwd()} {os.environ.get('OFFERING', '')}"


@server.resource("note://today", title="Today", mime_type="text/plain")
def today() -> str:
    return "buy paint"


@server.prompt(title="Greet somebody")
def greet(name: str) -> str:
    return f"Say hello to {name}."


def main() -> None:
    if sys.argv[1:] == []:
        server.run()
        return
    app = server.streamable_http_app() if sys.argv[1] == "http" else server.sse_app()
    path = "mcp" if sys.argv[1] == "http" else "sse"
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/{path}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main()
