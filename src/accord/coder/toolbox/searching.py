"""Tools that look for files and for text in them: with ripgrep where it is installed."""

from __future__ import annotations

import asyncio
import fnmatch
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from accord.coder.toolbox.definition import Given, ToolDefinition, ToolUse
from accord.coder.toolbox.places import place
from accord.transports.programs import program_file

MOST_RESULTS = 300
LARGEST_OUTPUT = 64 * 1024
LARGEST_FILE = 1024 * 1024
LONGEST_LINE = 400
PATIENCE = 60.0

SKIPPED = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
"""Folders that are not searched without ripgrep, which reads .gitignore."""

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
        folder = place(use, asked.folder)
        if program := program_file("rg"):
            names = await _output([program, "--files", "--hidden", "--glob", "!.git", "--sort", "path"], folder)
        else:
            names = await asyncio.to_thread(lambda: "\n".join(_walk(folder)))
        found = [name for name in names.splitlines() if _matches(name, asked.pattern)]
        await tool.text(_told(found, "files"))
        return Given(_told(found, "files"))


async def search(use: ToolUse, asked: Searching) -> Given:
    async with use.turn.tool(f"Search for {asked.pattern}", kind="search") as tool:
        folder = place(use, asked.folder)
        if program := program_file("rg"):
            options = ["--line-number", "--no-heading", "--color=never", "--hidden", "--glob=!.git", "--sort=path"]
            options += [f"--max-columns={LONGEST_LINE}", f"--glob={asked.files}", f"--regexp={asked.pattern}"]
            found = (await _output([program, *options, "."], folder)).splitlines()
        else:
            try:
                wanted = re.compile(asked.pattern)
            except re.error as error:
                return Given(f"This is no regular expression: {error}", failed=True)
            found = await asyncio.to_thread(lambda: list(_lines(folder, wanted, asked.files)))
        found = [line.removeprefix("./") for line in found]
        await tool.text(_told(found, "lines"))
        return Given(_told(found, "lines"))


async def _output(command: list[str], folder: Path) -> str:
    """What a program prints, up to a limit; it is ended then, and when the turn is cancelled."""
    running = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert running.stdout is not None
    printed = b""
    try:
        async with asyncio.timeout(PATIENCE):
            while len(printed) < LARGEST_OUTPUT and (more := await running.stdout.read(65536)):
                printed += more
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()
    return printed.decode(errors="replace")


def _walk(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(names):
            yield os.path.relpath(Path(parent, name), folder)


def _lines(folder: Path, wanted: re.Pattern[str], files: str) -> Iterator[str]:
    found = 0
    for name in _walk(folder):
        path = folder / name
        if not _matches(name, files) or not path.is_file() or path.stat().st_size > LARGEST_FILE:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if wanted.search(line[: 10 * LONGEST_LINE]):
                yield f"{name}:{number}:{line[:LONGEST_LINE]}"
                found += 1
                if found > MOST_RESULTS:
                    return


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(Path(name).name, pattern)


def _told(found: list[str], what: str) -> str:
    if not found:
        return "Nothing was found."
    told = "\n".join(found[:MOST_RESULTS])
    more = len(found) - MOST_RESULTS
    return f"{told}\n({more} more {what}; look for less)" if more > 0 else told


SEARCHING = (
    ToolDefinition(name="list_files", description="List files by name.", arguments=Listing, run=list_files),
    ToolDefinition(
        name="search_files", description="Find lines in files by a regular expression.", arguments=Searching, run=search
    ),
)
