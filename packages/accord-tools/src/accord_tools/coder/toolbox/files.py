"""Tools for files: read, write, and replace a piece of text. The client's files where it lends them."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from typing import Annotated

from msgspec import Meta, Struct

from accord import PeerError
from accord_tools.coder.conversation import Image
from accord_tools.coder.toolbox.definition import REFUSED, Given, ToolDefinition, ToolUse

MOST_LINES = 2000
LONGEST_LINE = 2000
LARGEST_PICTURE = 5 * 1024 * 1024

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")

FilePath = Annotated[str, Meta(description="The file: absolute, or relative to the session's folder.")]


class Reading(Struct):
    path: FilePath
    line: Annotated[int, Meta(ge=1, description="The first line to read, counted from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, le=MOST_LINES, description="How many lines to read.")] = MOST_LINES


class Writing(Struct):
    path: FilePath
    content: Annotated[str, Meta(description="The whole new text of the file.")]


class Replacing(Struct):
    path: FilePath
    old: Annotated[str, Meta(min_length=1, description="The text to replace, exactly as it is in the file.")]
    new: Annotated[str, Meta(description="The text to put in its place.")]
    all: Annotated[bool, Meta(description="Replace every occurrence; otherwise there must be exactly one.")] = False


async def read(use: ToolUse, asked: Reading) -> Given:
    since = f" from line {asked.line}" if asked.line > 1 else ""
    async with use.turn.tool(f"Read {asked.path}{since}", kind="read", locations=[asked.path]):
        kind = mimetypes.guess_type(asked.path)[0]
        if kind in PICTURES:
            path = use.turn.session.resolve(asked.path)
            data = await asyncio.to_thread(use.project.read, path, LARGEST_PICTURE)
            return Given(f"The picture {asked.path}:", images=[Image(base64.b64encode(data).decode(), kind)])
        text = await use.turn.files.read(asked.path, line=asked.line, limit=asked.limit)
        return Given(numbered(text, asked.line) or "(the file is empty)")


async def write(use: ToolUse, asked: Writing) -> Given:
    old = await text_of(use, asked.path)
    return await _change(use, f"Write {asked.path}", asked.path, old, asked.content)


async def replace(use: ToolUse, asked: Replacing) -> Given:
    old = await use.turn.files.read(asked.path)
    count = old.count(asked.old)
    if count == 0:
        return Given(f"{asked.path} does not contain the old text. Read the file again.", failed=True)
    if count > 1 and not asked.all:
        return Given(
            f"{asked.path} contains the old text {count} times. Give more of the lines around it.", failed=True
        )
    return await _change(use, f"Edit {asked.path}", asked.path, old, old.replace(asked.old, asked.new))


async def _change(use: ToolUse, title: str, path: str, old: str | None, new: str) -> Given:
    async with use.turn.tool(title, kind="edit", locations=[path]) as tool:
        await tool.diff(path, old, new)
        if use.asks_before("files") and not await tool.ask(about="edit files"):
            return REFUSED
        if await text_of(use, path) != old:
            await tool.fail("the file has changed meanwhile")
            return Given(f"{path} has changed meanwhile. Read it again.", failed=True)
        await use.turn.files.write(path, new)
    return Given(f"{path} is written.")


async def text_of(use: ToolUse, path: str) -> str | None:
    """The text of a file; None if there is none that can be read."""
    try:
        return await use.turn.files.read(path)
    except PeerError:
        return None


def numbered(text: str, first: int) -> str:
    """Text with the numbers of its lines, and long lines shortened."""
    return "\n".join(f"{number}\t{line[:LONGEST_LINE]}" for number, line in enumerate(text.splitlines(), first))


FILES = (
    ToolDefinition(
        name="read_file",
        description="Read a text file, with line numbers, or a picture.",
        arguments=Reading,
        run=read,
    ),
    ToolDefinition(
        name="write_file",
        description="Write a whole text file; it is created if it does not exist. To change a part, use edit_file.",
        arguments=Writing,
        changes="files",
        run=write,
    ),
    ToolDefinition(
        name="edit_file",
        description="Replace a piece of text in a file. Read the file first.",
        arguments=Replacing,
        changes="files",
        run=replace,
    ),
)
