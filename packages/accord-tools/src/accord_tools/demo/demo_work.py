"""Commands that work: plans, files, terminals, work in the background, subagents, and tools of MCP servers."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any, cast

from accord import McpServerError, PeerError, Tool, Turn
from accord.errors import NOT_FOUND
from accord.mcp import McpTool
from accord.schema.base import Json
from accord_tools.demo.demo_messages import number
from accord_tools.demo.demo_talk import folder, pause, words_so_far

STEPS = ("Look at what is there", "Think of something better", "Say so")
PAGE = "accord-demo.md"
FIRST_LINES = "# Written by Accord's built-in agent\n\nYou allowed it.\n"
SHOWN = 2_000
"""Characters of a file that an answer shows."""
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
        try:
            text = await file_text(turn, turn.cwd / name)
        except PeerError as error:
            await tool.fail(error.message)
            await turn.say(f"I cannot read `{name}`: {error.message}.")
            return
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
    """Return a file's text; None if there is no such file."""
    try:
        return await turn.files.read(path)
    except PeerError as error:
        if error.code == NOT_FOUND or not await asyncio.to_thread(path.is_file):
            return None  # not every client reports it with this code
        raise


WATCH_STEPS = 5


async def watch(turn: Turn, text: str) -> None:
    steps = number(text, WATCH_STEPS, MOST_STEPS)
    turn.session.start(_watch(turn, steps))
    await turn.say(f"I watch in the background for {steps:,} steps. Go on, or cancel it alone.")


async def _watch(turn: Turn, steps: int) -> None:
    async with turn.tool("Watch", kind="other", background=True, cancellable=True) as tool:
        for done in range(1, steps + 1):
            await tool.text(f"Step {done} of {steps}: nothing happens.\n")
            await pause(turn, STEP_BEATS)
    async with turn.session.work() as report:
        await report.say("You cancelled my watch." if tool.is_cancelled else "My watch is over: nothing has happened.")


DESIGN = "# Design\n\n- [x] Think\n- [ ] Write it down\n"
"""A plan in Markdown."""

SHORT_BEATS = 8
"""Pauses in one step."""


async def subagent(turn: Turn) -> None:
    """Let a subagent list the folder."""
    async with turn.subagent("Look around", "What is in this folder?", cancellable=True) as looking:
        async with looking.tool("List the folder", kind="search") as tool:
            await pause(turn, SHORT_BEATS)
            await tool.text(folder(turn.cwd))
        await looking.say(folder(turn.cwd))
        await pause(turn, SHORT_BEATS)
        await looking.report("I have looked around.")
    await turn.say("You stopped my subagent." if looking.was_cancelled else "My subagent has looked around for me.")


async def compact(turn: Turn) -> None:
    """Replace the conversation by a summary, as a model would do with its context."""
    words = await words_so_far(turn)
    async with turn.session.compaction() as compaction:
        await pause(turn, SHORT_BEATS)
        await compaction.summary(f"You and I have said {words:,} words. ")
        await compaction.summary("That is all that I remember of them.")
    if compaction.is_shown:
        await turn.say("I made a summary of what we said. You still see all of it.")
    else:
        await turn.say("Your client shows no compactions; mine would have made a summary of what we said.")


async def plans(turn: Turn) -> None:
    """Show two plans beside each other, one of them as a document."""
    design = await turn.plan_document(DESIGN, id="design")
    steps = await turn.plan("Read the design", "Build it", id="work")
    for step in "Read the design", "Build it":
        async with steps.step(step):
            await pause(turn, SHORT_BEATS)
    await design.remove()
    await turn.say("Those were two plans: a design in Markdown, which I took away, and the steps of my work.")


async def tools(turn: Turn) -> None:
    mcp = turn.session.mcp
    offered = [
        f"- `{tool.qualified_name}` {_arguments(tool)} {tool.description}".rstrip() for tool in await mcp.tools()
    ]
    read = [f"- `{resource.uri}` of {resource.server}" for resource in await mcp.resources()]
    filled = [f"- `{prompt.qualified_name}` {prompt.description}".rstrip() for prompt in await mcp.prompts()]
    missing = [f"- {failure.server}: {failure.problem}" for failure in await mcp.failures()]
    parts = {"Tools": offered, "Resources": read, "Prompts": filled, "Not there": missing}
    shown = [line for name, lines in parts.items() if lines for line in (f"{name}:", *lines)]
    none = "Your client gave this session no MCP servers." if not len(mcp) else "Its MCP servers offer nothing."
    await turn.say("\n".join(shown) or none)


async def call(turn: Turn, line: str) -> None:
    name, _, given = line.partition(" ")
    arguments = arguments_of(given)
    if not name or arguments is None:
        await turn.say(
            'Which tool, and with which arguments? `/call SERVER/TOOL {"name": "value"}`, or `name=value ...`'
        )
        return
    try:
        result = await turn.session.mcp.call(turn, name, arguments, ask=turn.session.modes.current != "auto")
    except McpServerError as error:
        await turn.say(f"{error}.")
        return
    await turn.say(f"It {'failed' if result.failed else 'gave'}: {result.text or 'no text'}")


def arguments_of(text: str) -> dict[str, Json] | None:
    """Return arguments as a JSON object, or as `name=value` with JSON values or plain words; None if they are
    neither.
    """
    if text.lstrip().startswith("{"):
        try:
            return cast("dict[str, Json]", json.loads(text))
        except ValueError:
            return None
    pairs = [pair.partition("=") for pair in text.split()]
    return {name: _value(value) for name, _, value in pairs} if all(equals for _, equals, _ in pairs) else None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _arguments(tool: McpTool) -> str:
    properties = cast("dict[str, Json]", tool.input_schema.get("properties") or {})
    return f"({', '.join(properties)})"
