"""`ModelTurn`: asks the model, runs its tools, and asks it again, until it has nothing more to do.

The instructions come before the first question: how to work, the machine, and the project's own. When the context is
full, a summary replaces the conversation so far.
"""

from __future__ import annotations

import asyncio
import os
import platform
import threading
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from accord import AccordError, RequestError, Session, Turn, v1
from accord.agent.model_answer import ModelAnswer, ModelUsage, TextDelta
from accord.agent.model_messages import ModelMessage, TextPart, prompt_parts
from accord.printable import label
from accord.project.git import Git, top_folder
from accord.project.project import Project
from accord_tools.coder.coder_tools import TOOLS, delegate_tool, skill_text, use_skill
from accord_tools.coder.model import ModelConversation, ModelError, ModelRequest
from accord_tools.coder.open_model import ModelSettings, context_of, price_of
from accord_tools.coder.provider_client import Model, streamed_answer
from accord_tools.coder.tool_definition import Mode, ToolUse, mode_of
from accord_tools.configuration.trust import is_folder_trusted

FULL = 0.8
"""The part of the context from which on it is made shorter."""

WISH = (
    "Summarise this conversation for yourself, because only the summary will remain. Keep: what the user wants and has "
    "decided, what was found out, which files were read and changed and how, what failed, and what is left to do. "
    "Write no more than 800 words, and nothing but the summary."
)


async def compact(
    session: Session[ModelConversation], model: Model, name: str, conversation: ModelConversation
) -> None:
    """Let the model summarise the conversation, and replace it by the summary; the latest prompt stays."""
    latest = conversation.messages[-1]
    is_prompt = latest.role == "user" and any(isinstance(part, TextPart) for part in latest.parts)
    earlier = conversation.messages[:-1] if is_prompt else conversation.messages
    before = f"The conversation so far, in short:\n{conversation.summary}" if conversation.summary else ""
    async with session.compaction() as compaction:
        question = ModelRequest(model=name, system=f"You are a coding agent.\n\n{before}", messages=_with_wish(earlier))
        summary = ""
        async with aclosing(model.answer(question)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    await compaction.summary(event.text)
                elif isinstance(event, ModelAnswer):
                    summary = event.text
    if summary:
        conversation.replace(summary)
        if is_prompt:
            conversation.messages.append(latest)
        await session.save()


def _with_wish(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Return the messages and the request; no two messages of the user are adjacent."""
    last = messages[-1]
    if last.role == "assistant":
        return [*messages, ModelMessage("user", [TextPart(WISH)])]
    return [*messages[:-1], ModelMessage("user", [*last.parts, TextPart(WISH)])]


NAMES = ("AGENTS.md", "CLAUDE.md")
"""Files with a project's instructions; the first one in a folder counts."""

MOST = 40_000
"""Characters of a project's instructions that are read."""

HOW = """\
You are a coding agent. You work in the user's project with the tools that you have.

- Look before you act: read the files that you are about to change, and the code around them.
- Make the smallest change that does the whole task. Follow the style of the project.
- After a change, run the project's own checks or tests if there are any, and repair what you broke.
- For a task of several steps, show a plan first with show_plan and keep it up to date.
- If a tool fails, read why and try something else. Do not repeat a call that was refused.
- Be brief. Say at the end what you changed and what you could not do. Do not invent results."""

PLAN_MODE = "You are in plan mode: only read, then answer with a plan. Change nothing."


async def instructions(session: Session[ModelConversation], mode: Mode) -> str:
    """The system prompt of a turn."""
    asked = session.system_prompt
    parts = [HOW if asked is None else asked.applied_to(HOW)]
    parts.append(f"Folder: {session.cwd}\nSystem: {platform.system()} {platform.machine()}\nDate: {date.today()}")  # noqa: DTZ011
    if mode.only_reads:
        parts.append(PLAN_MODE)
    if session.state.folder is None:
        halt = threading.Event()
        try:
            session.state.folder = await asyncio.to_thread(folder_in_words, session.cwd, halt.is_set)
        finally:
            halt.set()
    parts += [session.state.folder] if session.state.folder else []
    parts += await asyncio.to_thread(_of_project, session.cwd)
    if session.skills:
        skills = "\n".join(f"- {skill.name}: {skill.description}" for skill in session.skills)
        parts.append(f"Skills: before a task that one is for, read it with use_skill.\n{skills}")
    if summary := session.state.summary:
        parts.append(f"The conversation so far, in short:\n{summary}")
    return "\n\n".join(parts)


MOST_LISTED = 100
"""Files and folders that the listing names, and changed files that git names."""


def folder_in_words(folder: Path, stopped: Callable[[], bool]) -> str:
    """Describe a folder, two levels deep, and how its working tree differs from the last commit."""
    parts: list[str] = []
    counts: dict[str, int] = {}
    with suppress(OSError, ValueError):  # a folder that is gone, or cannot be read
        for name in Project([folder]).walk(folder, stopped=stopped):
            *above, _ = name.split("/")
            place = f"{'/'.join(above[:2])}/" if above else name
            counts[place] = counts.get(place, 0) + 1
    lines = [f"{it} (files: {count:,})" if it.endswith("/") else it for it, count in counts.items()]
    if lines:
        parts.append(_listed("Files when this session began:", lines))
    with suppress(AccordError, OSError, ValueError):  # no repository, or one that is not trusted
        git = Git(folder, is_folder_trusted)
        where = "no branch" if git.branch is None else f"branch {git.branch}"
        changed = [*git.diff("--name-only", "-z").split("\0")[:-1], *git.new_files()]
        parts.append(_listed(f"Git then: {where}; files changed since the last commit: {len(changed):,}.", changed))
    return "\n\n".join(parts)


def _listed(title: str, lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - MOST_LISTED:,} more"] if len(lines) > MOST_LISTED else []
    return "\n".join([title, *(label(it, 200) for it in lines[:MOST_LISTED]), *more])


def _of_project(folder: Path) -> list[str]:
    """Return the instructions of a folder and of those above it, up to the top of the working tree; the
    nearest last.
    """
    cwd = Path(os.path.realpath(folder))
    top = top_folder(cwd) or cwd
    folders = [cwd, *(place for place in cwd.parents if place.is_relative_to(top))]
    project = Project([top])
    return [text for folder in reversed(folders) if (text := _of_folder(project, folder)) is not None]


def _of_folder(project: Project, folder: Path) -> str | None:
    for name in NAMES:
        with suppress(OSError, ValueError):  # none, or no file of this project: a link out of it, a pipe, a device
            text = project.read(folder / name, 4 * MOST, cut=True).decode("utf-8", "replace")
            return f"Instructions of {folder / name}:\n{text[:MOST]}"
    return None


MOST_ROUNDS = 200
"""The most requests to the model in one turn."""

CANCELLED = "The user cancelled this."

EFFORT = "effort"
"""The option with which the user chooses how long the model thinks."""

DEFAULT_EFFORT = "default"

CHANGING = {"write_file", "edit_file"}
"""The tools that change files."""

LOST = "The agent ended while this ran; it may have been done or not."


@dataclass
class ModelTurn:
    """The conversation of one turn with the model."""

    turn: Turn[ModelConversation]
    model: Model
    settings: ModelSettings
    name: str
    """The model's name."""
    hidden: Callable[[str], str] = str
    """Masks secrets in a text for the user."""
    total: ModelUsage = field(default_factory=ModelUsage)
    used: set[str] = field(default_factory=set[str])
    """The names of the tools that have run for the model."""

    def suggestions(self, stop_reason: str | None) -> list[str]:
        """Return prompts that the user may want to send after this turn, without the model, which would cost as much as
        a turn.
        """
        if stop_reason in ("max_tokens", "max_turn_requests"):
            return ["Go on"]
        if not self.used & CHANGING:
            return []
        return [*([] if "run_command" in self.used else ["Run the tests"]), "Review what you have changed"]

    @property
    def _mode(self) -> Mode:
        return mode_of(self.turn.session.modes.current)

    async def answer(self, prompt: Sequence[v1.ContentBlock]) -> str | None:
        """Answer the prompt; returns why it stopped, if not because all is done."""
        conversation = self.turn.session.state
        conversation.close_calls(LOST)  # of a turn that a crash has ended
        skills = [TextPart(await skill_text(skill)) for skill in self.turn.skills]
        conversation.add("user", *skills, *prompt_parts(prompt))
        try:
            return await self._rounds(self.turn, conversation, delegate=True)
        except asyncio.CancelledError:
            conversation.close_calls(CANCELLED)
            raise
        except ModelError as error:
            raise public_error(error, self.hidden) from error
        finally:
            self.turn.tokens(self.total.input, self.total.output, thought=self.total.thought)

    async def _rounds(
        self, turn: Turn[ModelConversation], conversation: ModelConversation, *, delegate: bool
    ) -> str | None:
        for _ in range(MOST_ROUNDS):
            if delegate:
                await self._take_more(conversation)
            if len(conversation.messages) > 1 and conversation.used > FULL * self._context:
                await compact(turn.session, self.model, self.name, conversation)
            tools = await self._tools(turn, delegate=delegate)
            question = ModelRequest(
                model=self.name,
                system=await instructions(turn.session, self._mode),
                messages=conversation.messages,
                tools=tools.specs,
                effort=_effort(turn),
            )
            finished = await streamed_answer(self.model, question, conversation, turn.say, turn.think)
            conversation.add("assistant", *finished.parts)
            await self._count(turn, conversation, finished.usage)
            if finished.stop_reason == "refusal":
                return "refusal"
            calls = finished.calls
            if delegate:
                await turn.session.save()  # a crash loses at most the round that is running
            for call in calls:
                result = await tools.use(call)
                self.used |= set() if result.failed else {call.name}
                conversation.add("user", result)
                if delegate:
                    await turn.session.save()
            if not calls and not (delegate and await self._take_more(conversation)):
                return finished.stop_reason
        return "max_turn_requests"

    @property
    def _context(self) -> int:
        return context_of(self.settings, self.name)

    async def _take_more(self, conversation: ModelConversation) -> bool:
        """Take the prompts that the user has sent meanwhile."""
        taken = False
        async for more in self.turn.prompts():
            conversation.add("user", *prompt_parts(more.prompt))
            taken = True
        return taken

    async def _tools(self, turn: Turn[ModelConversation], *, delegate: bool) -> ToolUse:
        more = [delegate_tool(self._delegated)] if delegate else []
        more += [use_skill] if turn.session.skills else []
        mcp = await turn.session.mcp.tools() if turn.session.mcp_servers else []
        return ToolUse(turn, self._mode, self.settings, [*TOOLS, *more], mcp)

    async def _delegated(self, subagent: Turn[ModelConversation], task: str) -> str:
        """Run a task as a subagent, in a conversation of its own; returns its last message."""
        conversation = ModelConversation()
        conversation.add("user", TextPart(task))
        await self._rounds(subagent, conversation, delegate=False)
        return conversation.messages[-1].text

    async def _count(self, turn: Turn[ModelConversation], conversation: ModelConversation, usage: ModelUsage) -> None:
        total = self.total
        thought = (total.thought or 0) + usage.thought if usage.thought is not None else total.thought
        self.total = ModelUsage(total.input + usage.input, total.output + usage.output, thought)
        conversation.used = usage.input + usage.output
        conversation.read += usage.input
        conversation.written += usage.output
        cost = None
        if (price := price_of(self.settings, self.name)) is not None:
            read, written = price
            conversation.cost += (usage.input * read + usage.output * written) / 1_000_000
            cost = conversation.cost
        await turn.usage(conversation.used, self._context, cost)


def _effort(turn: Turn[ModelConversation]) -> str | None:
    chosen = turn.session.config[EFFORT]
    return chosen if isinstance(chosen, str) and chosen != DEFAULT_EFFORT else None


def public_error(error: ModelError, hidden: Callable[[str], str]) -> RequestError:
    """Return the client's text for an error of the model; `hidden` masks secrets in it."""
    return RequestError.internal(hidden(str(error)), reason=error.trouble)
