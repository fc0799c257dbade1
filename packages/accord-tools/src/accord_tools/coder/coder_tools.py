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
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from accord import AccordError, AgentSkill, PeerError, Turn, updates, v1
from accord.agent.model_messages import ImagePart, ModelCall, ResultPart
from accord.mcp import McpTool
from accord.project.search import MOST_RESULTS, Found, find_files, find_lines
from accord_tools.coder.api_keys import without_secrets
from accord_tools.coder.model import ModelConversation, ToolSpec
from accord_tools.coder.tool_definition import REFUSED, Mode, ToolDefinition, ToolOutput, ToolUse

MOST_OUTPUT = 30_000
SHELL = ["cmd.exe", "/d", "/c"] if os.name == "nt" else ["sh", "-c"]


class RunCommand(Struct):
    command: Annotated[str, Meta(min_length=1, description="The command, for a shell, in the session's folder.")]
    timeout: Annotated[float, Meta(gt=0, le=3600, description="Seconds after which it is ended.")] = 120.0


async def run_command(use: ToolUse, asked: RunCommand) -> ToolOutput:
    async with use.turn.tool(asked.command, kind="execute") as tool:
        if use.asks_before("anything") and not await tool.ask():
            return REFUSED
        # A client that we share an environment with has our key, too, so its terminals are told the same.
        async with tool.command([*SHELL, asked.command], env=without_secrets()) as command:
            result = await command.wait(timeout=asked.timeout)
        if result.timed_out:
            ended = f"It was ended after {asked.timeout:g} s."
        elif result.signal is not None:
            ended = f"It was ended by {result.signal}."
        else:
            ended = f"Exit code {result.exit_code}."
        if result.exit_code != 0:
            await tool.fail()
    output = result.output
    if len(output) > MOST_OUTPUT:
        output = f"{output[: MOST_OUTPUT // 2]}\n[...]\n{output[-MOST_OUTPUT // 2 :]}"
    return ToolOutput(f"{output}\n{ended}".lstrip(), failed=result.exit_code != 0)


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
    return await _change(use, f"Write {asked.path}", asked.path, old, asked.content)


async def edit_file(use: ToolUse, asked: EditFile) -> ToolOutput:
    old = await use.turn.files.read(asked.path)
    count = old.count(asked.old)
    if count == 0:
        return ToolOutput(f"{asked.path} does not contain the old text. Read the file again.", failed=True)
    if count > 1 and not asked.all:
        return ToolOutput(
            f"{asked.path} contains the old text {count} times. Give more of the lines around it.", failed=True
        )
    return await _change(use, f"Edit {asked.path}", asked.path, old, old.replace(asked.old, asked.new))


async def _change(use: ToolUse, title: str, path: str, old: str | None, new: str) -> ToolOutput:
    async with use.turn.tool(title, kind="edit", locations=[path]) as tool:
        await tool.diff(path, old, new)
        if use.asks_before("files") and not await tool.ask(about="edit files"):
            return REFUSED
        if await text_of(use, path) != old:
            await tool.fail("the file has changed meanwhile")
            return ToolOutput(f"{path} has changed meanwhile. Read it again.", failed=True)
        await use.turn.files.write(path, new)
    return ToolOutput(f"{path} is written.")


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
    ToolDefinition(name="list_files", description="List files by name.", arguments=ListFiles, run=list_files),
    ToolDefinition(
        name="search_files",
        description="Find lines in files by a regular expression.",
        arguments=SearchFiles,
        run=search_files,
    ),
    ToolDefinition(
        name="run_command",
        description="Run a command in a shell and get its output and exit code. Do not start servers with it.",
        arguments=RunCommand,
        changes="anything",
        run=run_command,
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
        more: Sequence[ToolDefinition] = (),
        mcp: Sequence[McpTool] = (),
    ) -> None:
        self._turn = turn
        self._use = ToolUse(turn, mode)
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
            asks = self._use.asks_before("anything") and theirs.kind != "read"
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
