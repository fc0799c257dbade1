"""The tools of a turn: our own for files, commands, search, plans and subagents, and those of the session's MCP
servers.

Files and commands are the client's if it lends them, else those of this machine.
"""

from __future__ import annotations

import asyncio
import base64
import mimetypes
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

from msgspec import Meta, Struct

from accord import AccordError, AgentSkill, CommandResult, PeerError, RemoteTerminal, Session, Tool, Turn, updates, v1
from accord.agent.model_messages import ImagePart
from accord.project.search import MOST_RESULTS, Found, find_files, find_lines
from accord_tools.coder.model import ModelConversation
from accord_tools.coder.tool_definition import REFUSED, ToolDefinition, ToolOutput, ToolUse, tool

MOST_OUTPUT = 30_000
SHELL = ["cmd.exe", "/d", "/c"] if os.name == "nt" else ["sh", "-c"]


@tool("Run a command in a shell and get its output and exit code.", "anything")
async def run_command(
    use: ToolUse,
    command: Annotated[str, Meta(min_length=1, description="The command, for a shell, in the session's folder.")],
    timeout: Annotated[float, Meta(gt=0, le=3600, description="Seconds after which it is ended.")] = 120.0,  # noqa: ASYNC109
    background: Annotated[
        bool, Meta(description="Let it run on, such as a server or a long build; read_command tells what it prints.")
    ] = False,
) -> ToolOutput:
    async with use.turn.tool(command, kind="execute") as call:
        if not await use.is_allowed(call, "anything"):
            return REFUSED
        if background:
            started = await BackgroundCommand.start(use, command)
            await call.terminal(started.terminal)
            return ToolOutput(
                f"It runs as number {started.number}, until the session ends. Read what it prints with read_command, "
                "end it with stop_command."
            )
        async with call.command([*SHELL, command], env=use.command_variables) as running:
            result = await running.wait(timeout=timeout)
        ended = f"It was ended after {timeout:g} s." if result.timed_out else how_ended(result)
        if result.exit_code != 0:
            await call.fail()
    return ToolOutput(f"{shortened(result.output)}\n{ended}".lstrip(), failed=result.exit_code != 0)


def how_ended(result: CommandResult | v1.TerminalExitStatus | v1.WaitForTerminalExitResponse) -> str:
    """Describe how a command ended, for the model."""
    return f"Exit code {result.exit_code}." if result.signal is None else f"It was ended by {result.signal}."


def shortened(output: str) -> str:
    """The output of a command, without the middle of a long one."""
    return (
        output if len(output) <= MOST_OUTPUT else f"{output[: MOST_OUTPUT // 2]}\n[...]\n{output[-MOST_OUTPUT // 2 :]}"
    )


MOST_BACKGROUND = 10
"""Commands that one session may have in the background."""
_OVERLAP = 200
"""Characters by which the end of the text that was read is found again, once the beginning of the output was
dropped.
"""


@dataclass
class BackgroundCommand:
    """A command that runs on while the model does other things: in a terminal of the session, which ends it.

    The terminal is the client's if it lends terminals, else one of this machine.
    """

    session: Session[ModelConversation]
    number: int
    line: str
    terminal: RemoteTerminal
    read: str = ""
    """The part of its output that was read."""

    @classmethod
    async def start(cls, use: ToolUse, line: str) -> BackgroundCommand:
        """Start it; raises ValueError if there are too many."""
        session = use.turn.session
        commands = _background.setdefault(session, {})
        if len(commands) >= MOST_BACKGROUND:
            raise ValueError(f"{len(commands)} commands are in the background, the most; end one with stop_command")
        number = max(commands, default=0) + 1
        program, *arguments = SHELL
        terminal = session.client.terminal(program, [*arguments, line], env=use.command_variables)
        command = cls(session, number, line, await session.resources.enter_async_context(terminal))
        commands[number] = command
        return command

    async def news(self, within: float) -> str:
        """Return its output since the last call, and its status; waits this many seconds for its end."""
        if within:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self.terminal.wait()
        output = await self.terminal.output()
        text, known = output.output, self.read
        self.read = text
        if text.startswith(known):
            new = text[len(known) :]
        else:
            before, _, new = text.rpartition(known[-_OVERLAP:])
            new = new if before or new else f"[...]\n{text}"
        if output.exit_status is None:
            state = "It runs on."
        else:
            state = how_ended(output.exit_status)
            _background[self.session].pop(self.number, None)
            await self.terminal.__aexit__(None, None, None)
        return f"{shortened(new)}\n{state}".lstrip()


_background: WeakKeyDictionary[Session[ModelConversation], dict[int, BackgroundCommand]] = WeakKeyDictionary()


Number = Annotated[int, Meta(description="The number that run_command gave it.")]


@tool("Read what a command in the background has printed since you last read it, and whether it still runs.")
async def read_command(
    use: ToolUse,
    number: Number,
    wait: Annotated[float, Meta(ge=0, le=600, description="Seconds to wait for its end before it is read.")] = 1.0,
) -> ToolOutput:
    command = _command(use, number)
    async with use.turn.tool(f"Read the output of {command.line}", kind="read") as call:
        return await _shown(call, await command.news(wait))


@tool("End a command in the background.")
async def stop_command(use: ToolUse, number: Number) -> ToolOutput:
    command = _command(use, number)
    async with use.turn.tool(f"End {command.line}", kind="execute", raw_input={"number": number}) as call:
        await command.terminal.kill()
        await command.terminal.wait()
        return await _shown(call, await command.news(0))


async def _shown(call: Tool, text: str) -> ToolOutput:
    """Show the user the model's view."""
    await call.text(text)
    return ToolOutput(text)


def _command(use: ToolUse, number: int) -> BackgroundCommand:
    commands = _background.get(use.turn.session, {})
    if number not in commands:
        known = ", ".join(f"{it.number} ({it.line[:80]})" for it in commands.values()) or "none"
        raise ValueError(f"no command in the background has the number {number}; there are: {known}")
    return commands[number]


def delegate_tool(work: Callable[[Turn[ModelConversation], str], Awaitable[str]]) -> ToolDefinition:
    """Return the tool; `work` runs a task as a turn of its own, and returns its report."""

    @tool("Give a self-contained part of the work to a subagent, such as a search through many files.")
    async def delegate(
        use: ToolUse,
        title: Annotated[str, Meta(min_length=1, description="What the subagent does, in a few words.")],
        task: Annotated[str, Meta(min_length=1, description="All that it needs to know, and what it shall report.")],
    ) -> ToolOutput:
        async with use.turn.subagent(title, task, cancellable=True) as subagent:
            report = await work(subagent, task)
            return ToolOutput(report or "It reports nothing.")
        return ToolOutput("The user has cancelled it.", failed=True)

    return delegate


@tool("Read a skill: how to do a kind of task here.")
async def use_skill(use: ToolUse, name: Annotated[str, Meta(description="The name of the skill.")]) -> ToolOutput:
    skills = use.turn.session.skills
    skill = next((it for it in skills if it.name == name), None)
    if skill is None:
        return ToolOutput(f"There is no skill {name!r}; there are: {', '.join(it.name for it in skills)}", True)
    async with use.turn.tool(f"Read the skill {skill.name}", kind="read"):
        return ToolOutput(await skill_text(skill))


async def skill_text(skill: AgentSkill) -> str:
    """The text of a skill for the model."""
    text = await asyncio.to_thread(skill.read)
    return f"The skill {skill.name}, whose files are in {skill.path}:\n\n{text}"


MOST_LINES = 2000
LONGEST_LINE = 2000
LARGEST_PICTURE = 5 * 1024 * 1024

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")

FilePath = Annotated[str, Meta(description="The file: absolute, or relative to the session's folder.")]


class EditFile(Struct):
    path: FilePath
    old: Annotated[str, Meta(min_length=1, description="The text to replace, exactly as it is in the file.")]
    new: Annotated[str, Meta(description="The text to put in its place.")]
    all: Annotated[bool, Meta(description="Replace every occurrence; otherwise there must be exactly one.")] = False


@tool("Read a text file, with line numbers, or a picture.")
async def read_file(
    use: ToolUse,
    path: FilePath,
    line: Annotated[int, Meta(ge=1, description="The first line to read, counted from 1.")] = 1,
    limit: Annotated[int, Meta(ge=1, le=MOST_LINES, description="How many lines to read.")] = MOST_LINES,
) -> ToolOutput:
    since = f" from line {line}" if line > 1 else ""
    async with use.turn.tool(f"Read {path}{since}", kind="read", locations=[path]):
        kind = mimetypes.guess_type(path)[0]
        if kind in PICTURES:
            data = await asyncio.to_thread(use.project.read, use.turn.session.resolve(path), LARGEST_PICTURE)
            return ToolOutput(f"The picture {path}:", images=[ImagePart(base64.b64encode(data).decode(), kind)])
        text = await use.turn.files.read(path, line=line, limit=limit)
        return ToolOutput(numbered(text, line) or "(the file is empty)")


@tool("Write a whole text file; it is created if it does not exist. To change a part, use edit_file.", "files")
async def write_file(
    use: ToolUse, path: FilePath, content: Annotated[str, Meta(description="The whole new text of the file.")]
) -> ToolOutput:
    return await _change(use, "Write", [FileChange(path, await text_of(use, path), content)])


@tool("Make several edits, in one or more files: all of them, or none. Read the files first.", "files")
async def edit_files(
    use: ToolUse,
    edits: Annotated[
        list[EditFile],
        Meta(min_length=1, max_length=100, description="In this order; each sees what those before it have changed."),
    ],
) -> ToolOutput:
    changes: dict[str, FileChange] = {}
    for edit in edits:
        path = str(PurePath(use.turn.session.resolve(edit.path)))
        change = changes.get(path) or FileChange(edit.path, text := await use.turn.files.read(path), text)
        count = change.new.count(edit.old)
        if count == 0 or (count > 1 and not edit.all):
            problem = "does not contain the old text. Read the file again" if count == 0 else AMBIGUOUS.format(count)
            nothing = " Nothing was changed." if len(edits) > 1 else ""
            return ToolOutput(f"{edit.path} {problem}: {edit.old[:80]!r}.{nothing}", failed=True)
        changes[path] = change._replace(new=change.new.replace(edit.old, edit.new))
    return await _change(use, "Edit", list(changes.values()))


async def edit_file(use: ToolUse, **edit: Any) -> ToolOutput:
    return await edit_files.run(use, [EditFile(**edit)])


AMBIGUOUS = "contains the old text {} times. Give more of the lines around it"


class FileChange(NamedTuple):
    """The text of a file before and after a change; before it is None if there was no file."""

    path: str
    old: str | None
    new: str


async def _change(use: ToolUse, verb: str, changes: Sequence[FileChange]) -> ToolOutput:
    paths = [it.path for it in changes]
    names = ", ".join(paths)
    async with use.turn.tool(f"{verb} {names}", kind="edit", locations=paths) as call:
        for change in changes:
            await call.diff(*change)
        if not await use.is_allowed(call, "files", paths, about="edit files"):
            return REFUSED
        for path, old, _ in changes:
            if await text_of(use, path) != old:
                await call.fail("the file has changed meanwhile")
                return ToolOutput(f"{path} has changed meanwhile. Read it again.", failed=True)
        for number, change in enumerate(changes):
            try:
                await use.turn.files.write(change.path, change.new)
            except (AccordError, OSError) as error:
                await call.fail(str(error))
                left = await _put_back(use, changes[:number])
                state = f"These are changed already: {', '.join(left)}" if left else "Nothing was changed"
                return ToolOutput(f"{change.path} cannot be written: {error}. {state}.", failed=True)
    return ToolOutput(f"{names} {'is' if len(changes) == 1 else 'are'} written.")


async def _put_back(use: ToolUse, written: Sequence[FileChange]) -> list[str]:
    """Write the old texts again; returns the files that cannot be."""
    left: list[str] = []
    for change in written:
        try:
            await use.turn.files.write(change.path, change.old or "")
        except (AccordError, OSError):
            left.append(change.path)
    return left


async def text_of(use: ToolUse, path: str) -> str | None:
    """Return the text of a file; None if there is none that can be read."""
    try:
        return await use.turn.files.read(path)
    except PeerError:
        return None


def numbered(text: str, first: int) -> str:
    """Return text with the numbers of its lines, and long lines shortened."""
    return "\n".join(f"{number}\t{line[:LONGEST_LINE]}" for number, line in enumerate(text.splitlines(), first))


class PlanStep(Struct):
    text: Annotated[str, Meta(min_length=1, description="What is done, in a few words.")]
    status: Literal["pending", "in_progress", "completed"] = "pending"


@tool("Show the user the steps of a longer task, and again whenever the status of a step changes.")
async def show_plan(
    use: ToolUse,
    steps: Annotated[list[PlanStep], Meta(description="All steps, in order, each with how it stands.")],
) -> ToolOutput:
    entries = [updates.PlanEntry(step.text, priority="medium", status=step.status) for step in steps]
    await use.turn.plan(*entries)
    return ToolOutput("The plan is shown.")


Folder = Annotated[str, Meta(description="The folder to look in: absolute, or relative to the session's folder.")]


@tool("List files by name.")
async def list_files(
    use: ToolUse,
    pattern: Annotated[str, Meta(description="Which names: a pattern such as '*.py' or 'src/*/test_*.py'.")] = "*",
    folder: Folder = ".",
) -> ToolOutput:
    async with use.turn.tool(f"List {pattern} in {folder}", kind="search") as call:
        found = await find_files(use.project, use.turn.session.resolve(folder), pattern)
        return await _shown(call, _listed(found, "files"))


@tool("Find lines in files by a regular expression.")
async def search_files(
    use: ToolUse,
    pattern: Annotated[str, Meta(min_length=1, description="A regular expression.")],
    folder: Folder = ".",
    files: Annotated[str, Meta(description="Only in files with such names, such as '*.py'.")] = "*",
) -> ToolOutput:
    async with use.turn.tool(f"Search for {pattern}", kind="search") as call:
        found = await find_lines(use.project, use.turn.session.resolve(folder), pattern, files)
        return await _shown(call, _listed(found, "lines"))


def _listed(found: Found, what: str) -> str:
    lines = found.lines[:MOST_RESULTS] or ["Nothing was found."]
    more = [f"(there are more {what}; look for less)"] if len(found.lines) > MOST_RESULTS else []
    return "\n".join([*lines, *more, *([found.note] if found.note else [])])


EDIT_FILE = "Replace a piece of text in a file. Read the file first."

TOOLS: Sequence[ToolDefinition] = (
    *(read_file, write_file, ToolDefinition("edit_file", EDIT_FILE, EditFile, "files", edit_file), edit_files),
    *(list_files, search_files, run_command, read_command, stop_command, show_plan),
)
"""Our own tools; each turn adds `delegate`, those of MCP servers, and `use_skill` in a session that has skills."""
