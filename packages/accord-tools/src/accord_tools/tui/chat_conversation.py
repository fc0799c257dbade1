"""`Conversation`: one session of the chat: its turns, its queued prompts, its questions and its notes.

It holds no widget. Widgets read it, and are called after each change. Turns run one at a time in a task of the
conversation; a prompt that is sent meanwhile waits in the queue, where the user may still change it.

A terminal is shown in the same way whoever runs its command: the chat, or the agent in one of two ways.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from accord import (
    AccordError,
    BudgetQuestion,
    Outcome,
    PeerError,
    RemoteSession,
    RemoteSubagent,
    Reply,
    Terminal,
    updates,
    v1,
)
from accord.errors import AUTH_REQUIRED
from accord.extensions import DisplayTerminals, Steering, notice_of
from accord.printable import printable
from accord.project.git import FolderNotTrusted
from accord.project.project import Project
from accord.services import AgentWrite, ending_of
from accord.session import Message, SessionState
from accord_tools.configuration.trust import is_folder_trusted
from accord_tools.presentation.session_words import SEVERITIES, prompt_title
from accord_tools.tui.attachments import mentioned, mentions_parts, sent_as
from accord_tools.tui.block import Block, CommandBlock, NoteBlock, SubagentBlock, TerminalView
from accord_tools.tui.connection import AgentConnection, explained
from accord_tools.tui.questions import BudgetAsked, Question
from accord_tools.tui.user_command import UserCommand

MOST_TERMINALS = 64
"""Commands that run here whose output is kept for a conversation, the newest."""
MOST_SUBAGENTS = 64
"""Subagents whose conversations are kept for drawing, the newest."""


T = TypeVar("T")

MOST_SUGGESTED, LONGEST_SUGGESTED = 9, 10_000
"""Suggested prompts that are offered, and characters of one."""

STOP_WITHIN = 10.0
"""Seconds that the agent has to end a turn that the user stops twice; then it is restarted."""

Status = Literal["starting", "login", "failed", "idle", "busy", "asks", "closed"]


class Note(NamedTuple):
    """A note of the chat in the conversation."""

    place: int
    """The index of the timeline's entry before which it is shown."""
    block: Block


class Prompt(NamedTuple):
    """A prompt that waits to be sent."""

    text: str
    files: tuple[Path, ...] = ()
    """The attached files."""


class Conversation:
    """One session of the chat."""

    def __init__(self, connection: AgentConnection, folder: Path) -> None:
        self.connection = connection
        self.folder = folder
        self.session: RemoteSession | None = None
        self.state = SessionState()
        self.notes: list[Note] = []
        """The chat's own notes, and the questions, in order."""
        self.questions: list[Question] = []
        """The open questions, the oldest first."""
        self.queue: list[Prompt] = []
        """Prompts that wait for the end of the turn."""
        self.command: UserCommand | None = None
        """The latest command of the user."""
        self.attached: list[Path] = []
        """The files for the next prompt."""
        self.error: AccordError | None = None
        """Why the session could not be opened."""
        self.draft = ""
        """The text of the editor while another conversation is in front."""
        self.returned = ""
        """Queued prompts that return to the editor, because the turn before them failed or was stopped."""
        self.busy_since: float | None = None
        self.last: Outcome | None = None
        """How the latest turn ended."""
        self.after_turn: Callable[[], object] = lambda: None
        """Called when a turn has ended."""
        self.ask_trust: Callable[[FolderNotTrusted], Awaitable[bool]] = _no_trust
        """Asks the user whether git may run in a folder, and remembers a yes."""
        self.is_whole = False
        """Whether the transcript begins where the session does."""
        self._earlier: list[str] = []
        """The ids of the sessions from which this conversation was rewound."""
        self._sent: list[tuple[int, float]] = []
        """When prompts were sent, and how many entries the timeline had before."""
        self._observers: list[Callable[[], object]] = []
        self._turns: asyncio.Task[None] | None = None
        self._reply: Reply | None = None
        self._lent: dict[str, Terminal] = {}
        """The commands that run here, for the agent or the user, by the ids of their terminals."""
        self._display = DisplayTerminals()
        """The commands that the agent runs and reports in `_meta`."""
        self._changed_terminals: set[str] = set()
        self._notices = 0
        self._subagents: dict[str, SubagentBlock] = {}
        """What shows the newest subagents, by their ids."""
        self._old_suggestions: object = None
        """The suggestions of before the latest prompt, which are not shown any more."""
        connection.conversations.append(self)

    # Suggestions

    @property
    def suggestions(self) -> list[str]:
        """The texts of the prompts that the agent suggests now, the likeliest first; none while it works."""
        offered = self.state.suggestions
        if self.is_busy or self.queue or offered is self._old_suggestions:
            return []
        return [text for it in offered[:MOST_SUGGESTED] if (text := _suggested_text(it)).strip()]

    def _suggested_parts(self, text: str) -> list[v1.ContentBlock]:
        """Return the content of a suggested prompt besides its text, if this text is one."""
        found = (it for it in self.state.suggestions if _suggested_text(it) == text)
        return [block for block in next(found, _NO_PROMPT).prompt if not isinstance(block, v1.TextContent)]

    # Changes

    def on_change(self, observer: Callable[[], object]) -> Callable[[], None]:
        """Call this after every change; call the result once to stop it. It must be quick."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def tell(self) -> None:
        """Notify the observers of a change."""
        for observer in list(self._observers):
            observer()

    def _updated(self, update: object) -> None:
        self._changed_terminals.update(self._display.fold(update))
        if self.state.terminals and isinstance(changed := getattr(update, "terminal_id", None), str):
            self._changed_terminals.add(changed)
        self._show_notices()
        self._show_notice(notice_of(self.connection.shown_extensions, update))
        if isinstance(update, updates.SubagentUpdate) and self.session is not None:
            self._show_subagent(self.session, update.session_id)
        self.tell()

    def _show_subagent(self, owner: RemoteSession | RemoteSubagent, its_id: v1.SessionId) -> None:
        """Show that a subagent of this session or subagent has begun, or has changed."""
        if (block := self._subagents.get(its_id)) is not None:
            block.changed()
        elif (subagent := owner.subagents.get(its_id)) is not None:
            block = self._subagents[its_id] = SubagentBlock(subagent)
            if len(self._subagents) > MOST_SUBAGENTS:
                self._subagents.pop(next(iter(self._subagents))).settle()
            self._add(block)

            def changed(update: object) -> None:
                block.changed()
                if isinstance(update, updates.SubagentUpdate):
                    self._show_subagent(subagent, update.session_id)
                self.tell()

            subagent.on_change(changed)

    def _show_notice(self, notice: updates.Notice | None) -> None:
        if notice is not None:
            self.note(notice.title, notice.description or "", SEVERITIES.get(notice.severity, "accent"))

    def _show_notices(self) -> None:
        for notice in self.state.notices[self._notices :]:
            self._show_notice(notice)
        self._notices = len(self.state.notices)

    def note(self, title: str, text: str = "", style: str = "dim", symbol: str = "") -> None:
        """Show a note in the conversation."""
        self._add(NoteBlock(title, text, style, symbol or _SYMBOLS.get(style, "•")))

    def _add(self, block: Block) -> None:
        self.notes.append(Note(len(self.state), block))
        self.tell()

    # Status

    @property
    def title(self) -> str:
        """The session's title, or a substitute: the user's first request, or the folder."""
        asked = next((it.text for it in self.state.messages if it.speaker == "user"), "")
        return self.state.title or prompt_title(asked) or self.folder.name or str(self.folder)

    @property
    def status(self) -> Status:
        """The activity of the conversation."""
        if self.error is not None:
            is_login = isinstance(self.error, PeerError) and self.error.code == AUTH_REQUIRED
            return "login" if is_login else "failed"
        if self.session is None:
            return "starting"
        if self.questions:
            return "asks"
        if not self.session.is_open:
            return "closed"
        return "busy" if self.is_busy else "idle"

    @property
    def is_busy(self) -> bool:
        """Whether the agent works on a prompt, or on its own."""
        at_work = self.session is not None and self.state.activity not in (None, "idle")
        return self._reply is not None or at_work

    # Opening

    async def open(self, session_id: str | None = None, *, shows_past: bool = True, **setup: Any) -> None:
        """Open a new session, or one that the agent knows: by loading it where its past is wanted."""
        self.error = None
        self.tell()
        try:
            remote = await self.connection.ready()
            if session_id is None:
                session, self.is_whole = await remote.new_session(self.folder, **setup), True
            else:
                offers = remote.capabilities.sessions
                loads = offers.load and (shows_past or not offers.resume)
                reopen = remote.load if loads else remote.resume
                session, self.is_whole = await reopen(session_id, self.folder, **setup), loads
        except AccordError as error:
            self.error = error
            self.tell()
            return
        self.adopt(session)

    def adopt(self, session: RemoteSession) -> None:
        """Show this session from now on."""
        self.error = None
        self.session, self.state, self.folder = session, session.state, session.cwd
        self._notices, self._subagents = 0, {}
        session.state.on_change(self._updated)
        self._show_notices()
        self.tell()
        self._next()

    def go_on_from(self, before: Conversation, session: RemoteSession, *, is_whole: bool) -> None:
        """Show this session, which contains the beginning of another conversation."""
        self.is_whole = is_whole
        self._earlier = [*before._earlier, *([before.session.id] if before.session is not None else [])]
        self.adopt(session)
        times = [before.sent_at(place) for place in before.prompt_places()]
        self._sent = list(zip(self.prompt_places(), times, strict=False))

    # Changes, and their times

    def changes(self) -> list[AgentWrite]:
        """Return the agent's writes through the chat in this conversation, the oldest first."""
        session = self.session
        known = ("", *self._earlier, *([session.id] if session is not None else []))
        return [it for it in self.connection.files.changes if session is None or it.session_id in known]

    def sent_at(self, place: int) -> float:
        """Return when the message at this place of the timeline was sent; 0 if it was before the session was opened
        here.
        """
        return next((at for first, at in reversed(self._sent) if first <= place), 0.0)

    def prompt_places(self) -> list[int]:
        """The places of the user's messages in the timeline."""
        state = self.state
        entries = enumerate(state.timeline, state.forgotten)
        return [place for place, entry in entries if isinstance(entry, Message) and entry.speaker == "user"]

    # Turns

    def submit(self, text: str) -> bool:
        """Send a prompt, or queue it while the agent works; returns whether it was sent at once."""
        self.queue.append(Prompt(text, tuple(self.attached)))
        self.attached.clear()
        waits = self.is_busy or self.session is None
        self.tell()
        self._next()
        return not waits

    def unqueue(self) -> str | None:
        """Take the newest prompt out of the queue, to change it."""
        prompt = self.queue.pop() if self.queue else None
        if prompt is not None:
            self.attached[:0] = prompt.files
        self.tell()
        return None if prompt is None else prompt.text

    def attach(self, path: Path) -> None:
        """Send a file with the next prompt."""
        if path not in self.attached:
            self.attached.append(path)
        remote = self.connection.remote
        if remote is not None and (said := sent_as(path, Project([self.folder]), remote.capabilities.prompt)):
            self.note(f"{path.name}: {said}", style="warning")
        self.tell()

    def _next(self) -> None:
        if self.session is not None and self.queue and self._turns is None:
            self._turns = asyncio.create_task(self._run_turns(self.session), name=f"turns of {self.session.id}")

    async def _run_turns(self, session: RemoteSession) -> None:
        try:
            while self.queue:
                await self._turn(session, self.queue.pop(0))
        finally:
            self._turns = None
            self.tell()

    async def _turn(self, session: RemoteSession, prompt: Prompt) -> None:
        self.busy_since = asyncio.get_running_loop().time()
        self._sent.append((len(self.state), time.time()))
        try:
            parts = [*self._suggested_parts(prompt.text), *await self._parts(session, prompt.text)]
            self._old_suggestions = self.state.suggestions
            given = self.connection.options.budget
            budget = None if given is None else replace(given, ask=self._may_spend)
            reply = self._reply = session.prompt(prompt.text, *prompt.files, *parts, mentions=True, budget=budget)
            self.tell()
            outcome = self.last = await reply
            self._show_notice(notice_of(self.connection.shown_extensions, outcome))
            if budget is not None and (limit := outcome.exceeded) is not None:
                most = budget.limits[limit]
                self.note(
                    f"Stopped by {limit} = {most:g}",
                    "A prompt continues the session; /settings changes the limit.",
                    "warning",
                )
            elif (said := _ENDINGS.get(outcome.stop_reason)) is not None:
                self.note(said, style="warning")
            elif outcome.stop_reason not in ("end_turn", "unknown"):
                self.note(f"The turn ended: {outcome.stop_reason}", style="warning")
        except AccordError as error:
            self._failed(error, prompt)
        except ValueError as error:
            self.note("The prompt could not be sent.", str(error), "bad")
            self.returned = prompt.text
            self.attached += prompt.files
        finally:
            self._reply = None
            self.busy_since = None
            self.tell()
            self.after_turn()

    async def _parts(self, session: RemoteSession, text: str) -> Sequence[v1.ContentBlock]:
        """Return the mentions in a prompt besides whole files."""
        remote = self.connection.remote
        if remote is None or not mentions_parts(text):
            return ()
        takes = remote.capabilities.prompt
        output = None if self.command is None else self.command.part
        return await self.with_trust(lambda: mentioned(text, session.cwd, takes, is_folder_trusted, output))

    async def with_trust(self, work: Callable[[], T]) -> T:
        """Run something in a thread that may use git; if the folder is not trusted yet, the user is asked before."""
        while True:
            try:
                return await asyncio.to_thread(work)
            except FolderNotTrusted as error:
                if not await self.ask_trust(error):
                    raise ValueError("git did not run, because you do not trust this folder") from error

    def _failed(self, error: AccordError, prompt: Prompt) -> None:
        if isinstance(error, PeerError) and error.code == AUTH_REQUIRED:
            self.queue.insert(0, prompt)  # it is sent again after the login
            self.error = error
        else:
            title, about = explained(error, self.connection)
            self.note(title, about, "bad")
            self._return_queue()

    def _return_queue(self) -> None:
        """Return the queued prompts to the editor, in their order."""
        waiting, self.queue[:] = list(self.queue), []
        if waiting:
            self.returned = "\n\n".join(it for it in (self.returned, *(one.text for one in waiting)) if it)
            self.attached += [path for it in waiting for path in it.files]

    async def stop(self) -> None:
        """Ask the agent to stop, and take the queue back; the second time the agent is restarted if it does not."""
        self._return_queue()
        if self._reply is not None and self._reply.cancelled:
            reply = self._reply
            self.note("The agent has ten seconds to stop; then it is restarted.", style="warning")
            with suppress(AccordError):
                await reply.cancel(within=STOP_WITHIN)
            return
        if self._reply is not None:
            self._reply.request_cancel()
        elif self.session is not None:
            with suppress(AccordError):
                await self.session.cancel()
        self.tell()

    @property
    def is_stopping(self) -> bool:
        """Whether the agent was asked to stop."""
        return self._reply is not None and self._reply.cancelled

    async def steer(self, text: str) -> bool:
        """Send a message into the running turn; returns False if the agent cannot take it, so that it is queued."""
        steering = None if self.session is None else self.session.extension(Steering)
        if steering is None or not self.is_busy or steering.offer is None:
            self.submit(text)
            return False
        self._sent.append((len(self.state), time.time()))
        try:
            outcome = await steering.steer(text)
        except AccordError:
            outcome = "failed"
        if outcome in ("failed", "promptRequired"):
            self.submit(text)
            return False
        self.note("Sent into the running turn", text, "accent", "↪")
        return True

    async def _may_spend(self, question: BudgetQuestion) -> bool:
        return bool(await self.ask(BudgetAsked(question)))

    # Questions

    async def ask(self, question: Question) -> Any:
        """Ask the user; returns the answer. The question disappears if this is cancelled."""
        self.questions.append(question)
        self._add(question.block)
        try:
            return await question.wait()
        finally:
            self.questions.remove(question)
            self.tell()

    # Commands of the user

    async def run_command(self, line: str) -> None:
        """Run a command of the user, in the folder to which the one before has gone."""
        before = self.command
        if before is not None and before.is_running:
            raise ValueError(f"{before.line} still runs: esc stops it")
        self.command = command = UserCommand(line, self.folder if before is None else before.folder)
        its_id = command.terminal.id
        self.add_terminal(command.terminal)
        self._add(CommandBlock(line, command.terminal))
        await command.run(lambda: self.terminal_changed(its_id))

    # Terminals

    def add_terminal(self, terminal: Terminal) -> None:
        """Show the output of a command that runs here."""
        self._lent[terminal.id] = terminal
        for old in list(self._lent)[:-MOST_TERMINALS]:
            del self._lent[old]

    def terminal_changed(self, terminal_id: str) -> None:
        """Note that a terminal has more output, or has ended."""
        self._changed_terminals.add(terminal_id)
        self.tell()

    def take_changed_terminals(self) -> Sequence[str]:
        """The terminals that have changed since the last call."""
        changed, self._changed_terminals = list(self._changed_terminals), set()
        return changed

    def terminal(self, terminal_id: str) -> TerminalView | None:
        """Return a terminal's present state, whoever runs it."""
        if (lent := self._lent.get(terminal_id)) is not None:
            return _terminal_view(lent.text, lent.exit_status, " ".join(lent.command))
        if (display := self._display.get(terminal_id)) is not None:
            return _terminal_view(display.text, display if display.has_ended else None, None)
        terminal: Any = self.state.terminals.get(v1.TerminalId(terminal_id))
        return None if terminal is None else _terminal_view(terminal.text, terminal.exit_status, terminal.command)

    async def kill_commands(self, terminal_ids: Sequence[str]) -> None:
        """End those of these commands that run here for the agent."""
        running = [it for it in self._lent.values() if it.id in terminal_ids and it.exit_status is None]
        if not running:
            raise ValueError(
                "no command of this block runs in the chat; only esc stops a command that the agent runs itself"
            )
        for terminal in running:
            await terminal.kill()

    # The end

    async def close(self) -> None:
        """Close the session; the agent continues."""
        if self.command is not None and self.command.is_running:
            await self.command.terminal.release()
        if self._turns is not None:
            self._turns.cancel()
        for question in list(self.questions):
            question.answer(None, "withdrawn")
        if self.session is not None and self.session.is_open:
            with suppress(AccordError):
                await self.session.close()
        self.connection.conversations.remove(self)


def _terminal_view(text: str, status: Any, command: str | None) -> TerminalView:
    """Return a terminal whose command has ended with this status; None while it runs."""
    code, signal = getattr(status, "exit_code", None), getattr(status, "signal", None)
    ending = None if status is None else ending_of(code, signal)
    return TerminalView(text, ending, code in (None, 0) and not signal, command)


_SYMBOLS = {"good": "✓", "bad": "✗"}
_NO_PROMPT = updates.PromptSuggestion([])


def _suggested_text(suggestion: updates.PromptSuggestion) -> str:
    """Return the text of a suggested prompt for the editor; an agent wrote it."""
    blocks = (block.text for block in suggestion.prompt if isinstance(block, v1.TextContent))
    return printable("".join(blocks)[:LONGEST_SUGGESTED])


async def _no_trust(_: FolderNotTrusted) -> bool:
    return False


_ENDINGS = {
    "cancelled": "Stopped.",
    "max_tokens": "The answer reached the most tokens that the agent allows.",
    "max_turn_requests": "The turn reached the most requests that the agent allows.",
    "refusal": "The agent refused; it continues without this prompt and what followed.",
}
