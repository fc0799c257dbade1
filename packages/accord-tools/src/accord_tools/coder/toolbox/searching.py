"""Tools that look for files and for text in them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from accord.project.search import MOST_RESULTS, Found, find_files, find_lines
from accord_tools.coder.toolbox.definition import Given, ToolDefinition, ToolUse

Folder = Annotated[str, Meta(description="The folder to look in: absolute, or relative to the session's folder.")]


class Listing(Struct):
    pattern: Annotated[str, Meta(description="Which names: a pattern such as '*.py' or 'src/*/test_*.py'.")] = "*"
    folder: Folder = "."


class Searching(Struct):
    pattern: Annotated[str, Meta(min_length=1, description="A regular expression.")]
    folder: Folder = "."
    files: Annotated[str, Meta(description="Only in files with such names, such as '*.py'.")] = "*"


async def list_files(use: ToolUse, asked: Listing) -> Given:
    async with use.turn.tool(f"List {asked.pattern} in {asked.folder}", kind="search") as tool:
        found = await find_files(use.project, use.turn.session.resolve(asked.folder), asked.pattern)
        await tool.text(_told(found, "files"))
        return Given(_told(found, "files"))


async def search(use: ToolUse, asked: Searching) -> Given:
    async with use.turn.tool(f"Search for {asked.pattern}", kind="search") as tool:
        folder = use.turn.session.resolve(asked.folder)
        found = await find_lines(use.project, folder, asked.pattern, asked.files)
        await tool.text(_told(found, "lines"))
        return Given(_told(found, "lines"))


def _told(found: Found, what: str) -> str:
    lines = found.lines[:MOST_RESULTS] or ["Nothing was found."]
    more = [f"(there are more {what}; look for less)"] if len(found.lines) > MOST_RESULTS else []
    return "\n".join([*lines, *more, *([found.note] if found.note else [])])


SEARCHING = (
    ToolDefinition(name="list_files", description="List files by name.", arguments=Listing, run=list_files),
    ToolDefinition(
        name="search_files", description="Find lines in files by a regular expression.", arguments=Searching, run=search
    ),
)
