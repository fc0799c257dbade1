"""Commands that work: plans, slow work, and files and terminals of the client."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

from accord import PeerError, Tool, Turn
from accord.errors import NOT_FOUND
from accord.project.project import Project
from accord.project.roots import Roots
from accord_tools.demo.memory import pause
from accord_tools.demo.telling import number

STEPS = ("Look at what is there", "Think of something better", "Say so")
PAGE = "accord-demo.md"
FIRST_LINES = "# Written by Accord's built-in agent\n\nYou allowed it.\n"
SHOWN = 2_000
"""Characters of a file that an answer shows."""
LARGEST = 16 * 1024 * 1024
"""Bytes of a file that is read from the disk."""
HELLO = "echo 'Hello from a terminal that your client lends'"
PATIENCE = 60.0
"""Seconds for a command."""
SLOW_STEPS = 60
MOST_STEPS = 3_600
STEP_BEATS = 33
"""Pauses in one step of slow work: about a second."""


async def plan(turn: Turn) -> None:
    steps = await turn.plan(*STEPS)
    for step in STEPS:
        async with steps.step(step):
            await pause(turn, STEP_BEATS)
    await turn.say("That was a plan. Nothing was changed.")


async def slow(turn: Turn, text: str) -> None:
    steps, done = number(text, SLOW_STEPS, MOST_STEPS), 0
    await turn.say(f"This takes {steps:,} steps. Cancel me whenever you like. ")
    try:
        async with turn.tool("Take my time", kind="other") as tool:
            for done in range(1, steps + 1):
                await tool.text(f"Step {done} of {steps}.\n")
                await pause(turn, STEP_BEATS)
    except asyncio.CancelledError:
        await turn.say(f"I stopped at step {done}, and nothing is left of it.")  # still goes out, before the answer
        raise
    await turn.say("You let me finish.")


async def read(turn: Turn, name: str) -> None:
    if not name:
        await turn.say("Which file? `/read FILE`")
        return
    async with turn.tool(f"Read {name}", kind="read", locations=[name]) as tool:
        text = await file_text(turn, turn.cwd / name)
        if text is None:
            await tool.fail("There is no such file.")
            await turn.say(f"I find no file `{name}`.")
            return
        await tool.text(text[:SHOWN])
    await turn.say(f"`{name}` has {len(text.splitlines()):,} lines and {len(text):,} characters.")


async def edit(turn: Turn, name: str) -> None:
    """Create a page or add a line to it; the mode decides whether to ask first."""
    path = turn.cwd / (name or PAGE)
    async with turn.tool(f"Edit {name or PAGE}", kind="edit", locations=[path]) as tool:
        old = await file_text(turn, path)
        new = one_more_line(old)
        await tool.diff(path, old, new)
        said = await write(turn, tool, path, new)
    await turn.say(said)


async def write(turn: Turn, tool: Tool, path: Path, text: str) -> str:
    mode = turn.session.modes.current
    if mode == "explain":
        return "In the mode `explain` I change nothing. This is what I would write."
    if mode == "ask" and not await tool.ask():
        return "As you wish: I changed nothing."
    if turn.client.version == 1 and not turn.client.can_write_files:
        return "Your client lends me no files to write. This is what I would have written."
    await turn.files.write(path, text)
    return f"I wrote `{path.name}`."


async def run(turn: Turn, line: str) -> None:
    line = line or HELLO
    async with turn.tool(f"Run {line}", kind="execute", raw_input={"command": line}) as tool:
        said = await run_line(turn, tool, line)
    await turn.say(said)


async def run_line(turn: Turn, tool: Tool, line: str) -> str:
    mode = turn.session.modes.current
    if turn.client.version == 1 and not turn.client.can_run_commands:
        return f"Your client lends me no terminal. I would have run `{line}`."
    if mode == "explain":
        return f"In the mode `explain` I run nothing. I would run `{line}`."
    if mode == "ask" and not await tool.ask():
        return "As you wish: nothing was run."
    try:
        command, *arguments = shlex.split(line)
    except ValueError as error:
        await tool.fail(str(error))
        return f"I do not understand that command: {error}."
    return await run_in_terminal(tool, command, arguments)


async def run_in_terminal(tool: Tool, command: str, arguments: list[str]) -> str:
    async with tool.command([command, *arguments]) as running:
        result = await running.wait(PATIENCE)
    await tool.raw_output({"exitCode": result.exit_code, "signal": result.signal})
    shown = f" It said:\n```\n{result.output[:SHOWN].rstrip()}\n```" if result.output.strip() else ""
    if result.exit_code == 0:
        return f"It went well.{shown}"
    await tool.fail()
    return f"It {'took too long' if result.timed_out else f'ended with {result.signal or result.exit_code}'}.{shown}"


def one_more_line(text: str | None) -> str:
    if text is None:
        return FIRST_LINES
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}And once more.\n"


async def file_text(turn: Turn, path: Path) -> str | None:
    """A file's text: as the client has it if it lends files, else from the disk. None if there is no such file."""
    if not turn.client.can_read_files:
        return await asyncio.to_thread(text_on_disk, turn.session.roots, path)
    try:
        return await turn.client.read_text_file(path)
    except PeerError as error:
        if error.code == NOT_FOUND or await asyncio.to_thread(text_on_disk, turn.session.roots, path) is None:
            return None  # not every client says it with this code
        raise


def text_on_disk(roots: Roots, path: Path) -> str | None:
    try:
        return Project(roots).read(path, LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
