"""The tools of a turn: files, commands, search, plans and subagents of ours, and those of the session's MCP servers.

Files and commands are the client's where it lends them, else those of this machine.
"""

from __future__ import annotations

import asyncio
import base64
import mimetypes
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Annotated, Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Meta, Struct

from accord import AccordError, AgentSkill, CommandResult, PeerError, RemoteTerminal, Session, Turn, updates, v1
from accord.agent.model_messages import ImagePart, ModelCall, ResultPart
from accord.mcp import McpTool
from accord.project.search import MOST_RESULTS, Found, find_files, find_lines
from accord_tools.coder.model import ModelConversation, ToolSpec
from accord_tools.coder.open_model import ModelSettings
from accord_tools.coder.tool_definition import REFUSED, Mode, ToolDefinition, ToolOutput, ToolUse

MOST_OUTPUT = 30_000
SHELL = ["cmd.exe", "/d", "/c"] if os.name == "nt" else ["sh", "-c"]


class RunCommand(Struct):
    command: Annotated[str, Meta(min_length=1, description="The command, for a shell, in the session's folder.")]
    timeout: Annotated[float, Meta(gt=0, le=3600, description="Seconds after which it is ended.")] = 120.0
    background: Annotated[
        bool, Meta(description="Let it run on, such as a server or a long build; read_command tells what it prints.")
    ] = False


async def run_command(use: ToolUse, asked: RunCommand) -> ToolOutput:
    async with use.turn.tool(asked.command, kind="execute") as tool:
        if not await use.is_allowed(tool, "anything"):
            return REFUSED
        if asked.background:
            command = await BackgroundCommand.start(use, asked.command)
            await tool.terminal(command.terminal)
            return ToolOutput(
                f"It runs as number {command.number}, until the session ends. Read what it prints with read_command, "
                "end it with stop_command."
            )
        async with tool.command([*SHELL, asked.command], env=use.command_variables) as running:
            result = await running.wait(timeout=asked.timeout)
        ended = f"It was ended after {asked.timeout:g} s." if result.timed_out else how_ended(result)
        if result.exit_code != 0:
            await tool.fail()
    return ToolOutput(f"{shortened(result.output)}\n{ended}".lstrip(), failed=result.exit_code != 0)


def how_ended(result: CommandResult | v1.TerminalExitStatus | v1.WaitForTerminalExitResponse) -> str:
    """How a command ended, for the model."""
    return f"Exit code {result.exit_code}." if result.signal is None else f"It was ended by {result.signal}."


def shortened(output: str) -> str:
    """The output of a command, without the middle of a long one."""
    return (
        output if len(output) <= MOST_OUTPUT else f"{output[: MOST_OUTPUT // 2]}\n[...]\n{output[-MOST_OUTPUT // 2 :]}"
    )


MOST_BACKGROUND = 10
"""Commands that one session may have in the background."""
_OVERLAP = 200
"""Characters by which the end of what was read is found again, once the beginning of the output was dropped."""


class BackgroundCommand:
    """A command that runs on while the model does other things: in a terminal of the session, which ends it.

    The terminal is the client's where it lends terminals, else one of this machine.
    """

    def __init__(self, session: Session[ModelConversation], number: int, line: str, terminal: RemoteTerminal) -> None:
        self._session = session
        self.number = number
        self.line = line
        self.terminal = terminal
        self._read = ""

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
        """What it has printed since this was last called, and how it stands; waits so many seconds for its end."""
        if within:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self.terminal.wait()
        output = await self.terminal.output()
        text, known = output.output, self._read
        self._read = text
        if text.startswith(known):
            new = text[len(known) :]
        else:
            before, _, new = text.rpartition(known[-_OVERLAP:])
            new = new if before or new else f"[...]\n{text}"
        if output.exit_status is None:
            state = "It runs on."
        else:
            state = how_ended(output.exit_status)
            _background[self._session].pop(self.number, None)
            await self.terminal.__aexit__(None, None, None)
        return f"{shortened(new)}\n{state}".lstrip()


_background: WeakKeyDictionary[Session[ModelConversation], dict[int, BackgroundCommand]] = WeakKeyDictionary()


class ReadCommand(Struct):
    number: Annotated[int, Meta(description="The number that run_command gave it.")]
    wait: Annotated[float, Meta(ge=0, le=600, description="Seconds to wait for its end before it is read.")] = 1.0


class StopCommand(Struct):
    number: Annotated[int, Meta(description="The number that run_command gave it.")]


async def read_command(use: ToolUse, asked: ReadCommand) -> ToolOutput:
    command = _command(use, asked.number)
    async with use.turn.tool(f"Read the output of {command.line}", kind="read") as tool:
        news = await command.news(asked.wait)
        await tool.text(news)
        return ToolOutput(news)


async def stop_command(use: ToolUse, asked: StopCommand) -> ToolOutput:
    command = _command(use, asked.number)
    async with use.turn.tool(f"End {command.line}", kind="execute", raw_input={"number": asked.number}) as tool:
        await command.terminal.kill()
        await command.terminal.wait()
        news = await command.news(0)
        await tool.text(news)
        return ToolOutput(news)


def _command(use: ToolUse, number: int) -> BackgroundCommand:
    commands = _background.get(use.turn.session, {})
    if number not in commands:
        known = ", ".join(f"{it.number} ({it.line[:80]})" for it in commands.values()) or "none"
        raise ValueError(f"no command in the background has the number {number}; there are: {known}")
    return commands[number]


class Delegation(Struct):
    title: Annotated[str, Meta(min_length=1, description="What the subagent does, in a few words.")]
    task: Annotated[str, Meta(min_length=1, description="All that it needs to know, and what it shall report.")]


def delegate_tool(work: Callable[[Turn[ModelConversation], str], Awaitable[str]]) -> ToolDefinition:
    """The tool; `work` does a task as a turn of its own, and returns what is reported."""

    async def run(use: ToolUse, asked: Delegation) -> ToolOutput:
        async with use.turn.subagent(asked.title, asked.task, cancellable=True) as subagent:
            report = await work(subagent, asked.task)
            return ToolOutput(report or "It reports nothing.")
        return ToolOutput("The user has cancelled it.", failed=True)

    return ToolDefinition(
        name="delegate",
        description="Give a self-contained part of the work to a subagent, such as a search through many files.",
        arguments=Delegation,
        run=run,
    )


class UseSkill(Struct):
    name: Annotated[str, Meta(description="The name of the skill.")]


async def use_skill(use: ToolUse, asked: UseSkill) -> ToolOutput:
    skills = use.turn.session.skills
    skill = next((it for it in skills if it.name == asked.name), None)
    if skill is None:
        return ToolOutput(f"There is no skill {asked.name!r}; there are: {', '.join(it.name for it in skills)}", True)
    async with use.turn.tool(f"Read the skill {skill.name}", kind="read"):
        return ToolOutput(await skill_text(skill))


async def skill_text(skill: AgentSkill) -> str:
    """What the model reads of a skill."""
    text = await asyncio.to_thread(skill.read)
    return f"The skill {skill.name}, whose files are in {skill.path}:\n\n{text}"


USE_SKILL = ToolDefinition(
    name="use_skill",
    description="Read a skill: how to do a kind of task here.",
    arguments=UseSkill,
    run=use_skill,
)
"""Offered in sessions that have skills."""

MOST_LINES = 2000
LONGEST_LINE = 2000
LARGEST_PICTURE = 5 * 1024 * 1024

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")

FilePath = Annotated[str, Meta(description="The file: absolute, or relative to the session's folder.")]


class ReadFile(Struct):
    path: FilePath
    line: Annotated[int, Meta(ge=1, description="The first line to read, counted from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, le=MOST_LINES, description="How many lines to read.")] = MOST_LINES


class WriteFile(Struct):
    path: FilePath
    content: Annotated[str, Meta(description="The whole new text of the file.")]


class EditFile(Struct):
    path: FilePath
    old: Annotated[str, Meta(min_length=1, description="The text to replace, exactly as it is in the file.")]
    new: Annotated[str, Meta(description="The text to put in its place.")]
    all: Annotated[bool, Meta(description="Replace every occurrence; otherwise there must be exactly one.")] = False


class EditFiles(Struct):
    edits: Annotated[
        list[EditFile],
        Meta(min_length=1, max_length=100, description="In this order; each sees what those before it have changed."),
    ]


async def read_file(use: ToolUse, asked: ReadFile) -> ToolOutput:
    since = f" from line {asked.line}" if asked.line > 1 else ""
    async with use.turn.tool(f"Read {asked.path}{since}", kind="read", locations=[asked.path]):
        kind = mimetypes.guess_type(asked.path)[0]
        if kind in PICTURES:
            path = use.turn.session.resolve(asked.path)
            data = await asyncio.to_thread(use.project.read, path, LARGEST_PICTURE)
            return ToolOutput(f"The picture {asked.path}:", images=[ImagePart(base64.b64encode(data).decode(), kind)])
        text = await use.turn.files.read(asked.path, line=asked.line, limit=asked.limit)
        return ToolOutput(numbered(text, asked.line) or "(the file is empty)")


async def write_file(use: ToolUse, asked: WriteFile) -> ToolOutput:
    old = await text_of(use, asked.path)
    return await _change(use, "Write", [FileChange(asked.path, old, asked.content)])


async def edit_file(use: ToolUse, asked: EditFile) -> ToolOutput:
    return await edit_files(use, EditFiles([asked]))


async def edit_files(use: ToolUse, asked: EditFiles) -> ToolOutput:
    """Make all of the edits, or none; each sees what those before it have changed."""
    changes: dict[str, FileChange] = {}
    for edit in asked.edits:
        path = str(PurePath(use.turn.session.resolve(edit.path)))
        change = changes.get(path) or FileChange(edit.path, text := await use.turn.files.read(path), text)
        count = change.new.count(edit.old)
        if count == 0 or (count > 1 and not edit.all):
            problem = "does not contain the old text. Read the file again" if count == 0 else AMBIGUOUS.format(count)
            nothing = " Nothing was changed." if len(asked.edits) > 1 else ""
            return ToolOutput(f"{edit.path} {problem}: {edit.old[:80]!r}.{nothing}", failed=True)
        changes[path] = change._replace(new=change.new.replace(edit.old, edit.new))
    return await _change(use, "Edit", list(changes.values()))


AMBIGUOUS = "contains the old text {} times. Give more of the lines around it"


class FileChange(NamedTuple):
    """The text of a file before and after a change; before it is None if there was no file."""

    path: str
    old: str | None
    new: str


async def _change(use: ToolUse, verb: str, changes: Sequence[FileChange]) -> ToolOutput:
    paths = [it.path for it in changes]
    names = ", ".join(paths)
    async with use.turn.tool(f"{verb} {names}", kind="edit", locations=paths) as tool:
        for change in changes:
            await tool.diff(*change)
        if not await use.is_allowed(tool, "files", paths, about="edit files"):
            return REFUSED
        for path, old, _ in changes:
            if await text_of(use, path) != old:
                await tool.fail("the file has changed meanwhile")
                return ToolOutput(f"{path} has changed meanwhile. Read it again.", failed=True)
        for number, change in enumerate(changes):
            try:
                await use.turn.files.write(change.path, change.new)
            except (AccordError, OSError) as error:
                await tool.fail(str(error))
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
    """The text of a file; None if there is none that can be read."""
    try:
        return await use.turn.files.read(path)
    except PeerError:
        return None


def numbered(text: str, first: int) -> str:
    """Text with the numbers of its lines, and long lines shortened."""
    return "\n".join(f"{number}\t{line[:LONGEST_LINE]}" for number, line in enumerate(text.splitlines(), first))


class PlanStep(Struct):
    text: Annotated[str, Meta(min_length=1, description="What is done, in a few words.")]
    status: Literal["pending", "in_progress", "completed"] = "pending"


class ShowPlan(Struct):
    steps: Annotated[list[PlanStep], Meta(description="All steps, in order, each with how it stands.")]


async def show_plan(use: ToolUse, asked: ShowPlan) -> ToolOutput:
    entries = [updates.PlanEntry(step.text, priority="medium", status=step.status) for step in asked.steps]
    await use.turn.plan(*entries)
    return ToolOutput("The plan is shown.")


Folder = Annotated[str, Meta(description="The folder to look in: absolute, or relative to the session's folder.")]


class ListFiles(Struct):
    pattern: Annotated[str, Meta(description="Which names: a pattern such as '*.py' or 'src/*/test_*.py'.")] = "*"
    folder: Folder = "."


class SearchFiles(Struct):
    pattern: Annotated[str, Meta(min_length=1, description="A regular expression.")]
    folder: Folder = "."
    files: Annotated[str, Meta(description="Only in files with such names, such as '*.py'.")] = "*"


async def list_files(use: ToolUse, asked: ListFiles) -> ToolOutput:
    async with use.turn.tool(f"List {asked.pattern} in {asked.folder}", kind="search") as tool:
        found = await find_files(use.project, use.turn.session.resolve(asked.folder), asked.pattern)
        await tool.text(_shown(found, "files"))
        return ToolOutput(_shown(found, "files"))


async def search_files(use: ToolUse, asked: SearchFiles) -> ToolOutput:
    async with use.turn.tool(f"Search for {asked.pattern}", kind="search") as tool:
        folder = use.turn.session.resolve(asked.folder)
        found = await find_lines(use.project, folder, asked.pattern, asked.files)
        await tool.text(_shown(found, "lines"))
        return ToolOutput(_shown(found, "lines"))


def _shown(found: Found, what: str) -> str:
    lines = found.lines[:MOST_RESULTS] or ["Nothing was found."]
    more = [f"(there are more {what}; look for less)"] if len(found.lines) > MOST_RESULTS else []
    return "\n".join([*lines, *more, *([found.note] if found.note else [])])


TOOLS: Sequence[ToolDefinition] = (
    ToolDefinition(
        name="read_file",
        description="Read a text file, with line numbers, or a picture.",
        arguments=ReadFile,
        run=read_file,
    ),
    ToolDefinition(
        name="write_file",
        description="Write a whole text file; it is created if it does not exist. To change a part, use edit_file.",
        arguments=WriteFile,
        changes="files",
        run=write_file,
    ),
    ToolDefinition(
        name="edit_file",
        description="Replace a piece of text in a file. Read the file first.",
        arguments=EditFile,
        changes="files",
        run=edit_file,
    ),
    ToolDefinition(
        name="edit_files",
        description="Make several edits, in one or more files: all of them, or none. Read the files first.",
        arguments=EditFiles,
        changes="files",
        run=edit_files,
    ),
    ToolDefinition(name="list_files", description="List files by name.", arguments=ListFiles, run=list_files),
    ToolDefinition(
        name="search_files",
        description="Find lines in files by a regular expression.",
        arguments=SearchFiles,
        run=search_files,
    ),
    ToolDefinition(
        name="run_command",
        description="Run a command in a shell and get its output and exit code.",
        arguments=RunCommand,
        changes="anything",
        run=run_command,
    ),
    ToolDefinition(
        name="read_command",
        description="Read what a command in the background has printed since you last read it, and how it stands.",
        arguments=ReadCommand,
        run=read_command,
    ),
    ToolDefinition(
        name="stop_command", description="End a command in the background.", arguments=StopCommand, run=stop_command
    ),
    ToolDefinition(
        name="show_plan",
        description="Show the user the steps of a longer task, and again whenever the status of a step changes.",
        arguments=ShowPlan,
        run=show_plan,
    ),
)
"""Our own tools; each turn adds `delegate` and those of MCP servers."""

LONGEST_NAME = 64
"""Characters of a tool's name that all providers take."""


class ToolSet:
    """The tools of one turn."""

    def __init__(
        self,
        turn: Turn[ModelConversation],
        mode: Mode,
        settings: ModelSettings,
        more: Sequence[ToolDefinition] = (),
        mcp: Sequence[McpTool] = (),
    ) -> None:
        self._turn = turn
        self._use = ToolUse(turn, mode, settings)
        ours = [tool for tool in (*TOOLS, *more) if tool.changes == "nothing" or not mode.only_reads]
        self._ours = {tool.name: tool for tool in ours}
        self._mcp = _named(tool for tool in mcp if tool.kind == "read" or not mode.only_reads)

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools as a model knows them."""
        theirs = [ToolSpec(name, tool.description, dict(tool.input_schema)) for name, tool in self._mcp.items()]
        return [*(tool.spec for tool in self._ours.values()), *theirs]

    async def use(self, call: ModelCall) -> ResultPart:
        """Do what the model wants; what goes wrong is told to the model, which may try something else."""
        try:
            given = await self._used(call)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            given = ToolOutput(f"The arguments do not fit: {error}", failed=True)
        except (AccordError, OSError, ValueError, TimeoutError) as error:
            given = ToolOutput(f"It failed: {error or type(error).__name__}", failed=True)
        return ResultPart(call.id, given.text, given.failed, given.images)

    async def _used(self, call: ModelCall) -> ToolOutput:
        if tool := self._ours.get(call.name):
            return await tool.run(self._use, msgspec.json.decode(call.arguments or "{}", type=tool.arguments))
        if theirs := self._mcp.get(call.name):
            arguments = msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
            asks = self._use.mode.asks_before("anything") and theirs.kind != "read"
            result = await self._turn.session.mcp.call(self._turn, theirs, arguments, ask=asks)
            images = [ImagePart(it.data, it.mime_type) for it in result.content if isinstance(it, v1.ImageContent)]
            return ToolOutput(result.text or "(nothing)", result.failed, images)
        known = ", ".join([*self._ours, *self._mcp])
        return ToolOutput(f"There is no tool {call.name!r} in this mode; there are: {known}", failed=True)


def _named(tools: Iterable[McpTool]) -> dict[str, McpTool]:
    """Tools of MCP servers by names that providers allow, each once."""
    named: dict[str, McpTool] = {}
    for tool in tools:
        plain = re.sub(r"[^a-zA-Z0-9_-]", "_", f"{tool.server}__{tool.name}")[:LONGEST_NAME]
        name, number = plain, 1
        while name in named:
            number += 1
            name = f"{plain[: LONGEST_NAME - 4]}_{number}"
        named[name] = tool
    return named
