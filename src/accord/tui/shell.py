"""`ChatShell`: the screen, what stands where, and what becomes of keys and prompts.

    keys.KEYS ──▶ bindings ──▶ actions (`*_actions`) ──▶ Conversation ──▶ RemoteSession
    Conversation.on_change ──▶ Transcript.mark (what is said)  and  ChatShell.mark (the lines around it)

The lines around the conversation are made again at most ten times a second, and once a second while an agent works.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from textual import events, on
from textual.app import App, ComposeResult
from textual.containers import Container
from textual.timer import Timer

from accord.configuration import last_sessions
from accord.errors import AccordError
from accord.pictures.asking import Graphics
from accord.schema import v1
from accord.tui import bars, keeping, keys, slash
from accord.tui.completion import NOTHING, Completions, FileList, completions
from accord.tui.connection import AgentChoice, AgentConnection, ConnectionOptions
from accord.tui.conversation import Conversation
from accord.tui.editor import Editor
from accord.tui.errors import explained
from accord.tui.folder_files import files_of
from accord.tui.line_widget import Lines
from accord.tui.palette import palette_of
from accord.tui.pickers import Entry, Picker
from accord.tui.pictures import forget_sent_images
from accord.tui.question_bar import QuestionBar
from accord.tui.rows import Paragraph, Row, Span
from accord.tui.transcript import Transcript

LISTED = 2_000
"""Sessions of an agent that are listed."""
SAVE = 1.0
"""Seconds after an edit until drafts are kept on disk."""
BARS = 0.1
"""Seconds between two looks at the lines around the conversation."""


@dataclass(frozen=True)
class ChatOptions:
    """How a chat begins."""

    folder: Path
    agents: Sequence[AgentChoice] = ()
    """The agents that the user may choose from."""
    prompt: str | None = None
    """What is sent first."""
    session_id: str | None = None
    """The session to open again."""
    continues: bool = False
    """Whether the latest session of the folder is opened again."""
    mode: str | None = None
    model: str | None = None
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    servers: Sequence[v1.McpServer] = ()
    connection: ConnectionOptions = field(default_factory=ConnectionOptions)
    theme: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other keys, by the names of actions."""
    bell: bool = True
    """Whether the bell rings when an agent asks or ends a turn while the user looks elsewhere."""
    is_ascii: bool = False
    is_coloured: bool = True
    graphics: Graphics = field(default_factory=Graphics)
    """How the terminal shows images."""
    typed: str = ""
    """What the user typed before the screen was there."""
    keeps: bool = True
    """Whether drafts and prompts are kept between runs."""


class ChatShell(App[int]):
    """The terminal client without its actions."""

    CSS = """
    Screen { layers: base over; background: $background; }
    #conversations { height: 1fr; }
    #tabs, #work, #queue, #plan, #question, #list { height: auto; }
    #list { max-height: 8; }
    #foot { height: 1; }
    #top { height: 1; }
    #editor-box { height: auto; max-height: 12; border-top: solid $panel; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[Any]] = keys.bindings()
    TITLE = "accord"

    def __init__(self, choice: AgentChoice | None, options: ChatOptions) -> None:
        super().__init__()
        self.options = options
        self.conversations: list[Conversation] = []
        """The open conversations, in the order of their tabs."""
        self.connections: list[AgentConnection] = []
        """The agents that were started."""
        self.front: Conversation | None = None
        """The conversation that is shown."""
        self.plan_open = False
        self._choice = choice
        self._paths: dict[Path, FileList] = {}
        self._bars: Timer | None = None
        self._second: Timer | None = None
        self._saving: Timer | None = None
        self.quit_asked = False
        """Whether the user has pressed the key that quits once."""
        self._works: set[asyncio.Task[Any]] = set()
        self._asked: object = None
        self._reported: dict[Conversation, object] = {}
        """The errors of conversations that were shown."""
        self._was_busy: set[Conversation] = set()

    # The screen

    def compose(self) -> ComposeResult:
        yield Lines(id="top")
        yield Lines(id="tabs")
        yield Container(id="conversations")
        yield Lines(id="plan")
        yield Lines(id="work")
        yield QuestionBar()
        yield Lines(id="list")
        with Container(id="editor-box"):
            yield Editor(self._complete, keeping.prompts() if self.options.keeps else ())
        yield Lines(id="foot")

    def on_mount(self) -> None:
        if self.options.theme in self.available_themes:
            self.theme = self.options.theme or self.theme
        for action, key in self.options.keys.items():
            self.bind(key, f"do('{action}')")
        self.theme_changed_signal.subscribe(self, lambda _: self._take_theme())
        self.app_resume_signal.subscribe(self, self._draw_images_again)  # pyright: ignore[reportUnknownMemberType]
        self._take_theme()
        self.editor.focus()
        if self._choice is None:
            self.run_command("agents")
        else:
            self.begin(self._choice, first=True)

    @property
    def is_coloured(self) -> bool:
        """Whether colours are shown."""
        return self.options.is_coloured

    @property
    def editor(self) -> Editor:
        """Where the user writes."""
        return self.screen_stack[0].query_one(Editor)

    @property
    def in_front(self) -> Conversation:
        """The conversation that is shown; raises ValueError if there is none."""
        if self.front is None:
            raise ValueError("start an agent first: ctrl+a")
        return self.front

    @property
    def bar(self) -> QuestionBar:
        """The open question."""
        return self.screen_stack[0].query_one(QuestionBar)

    def transcript_of(self, conversation: Conversation) -> Transcript | None:
        """The transcript of a conversation."""
        found = (it for it in self.screen_stack[0].query(Transcript) if it.conversation is conversation)
        return next(found, None)

    @property
    def transcript(self) -> Transcript | None:
        """The transcript in front."""
        return None if self.front is None else self.transcript_of(self.front)

    def _draw_images_again(self, _: object) -> None:
        """Send images again after another program had the terminal, which may have lost them."""
        forget_sent_images()
        for transcript in self.screen_stack[0].query(Transcript):
            transcript.theme_changed()

    def _take_theme(self) -> None:
        palette = palette_of(self.screen_stack[0])
        for lines in self.screen_stack[0].query(Lines):
            lines.use(palette)
        for transcript in self.screen_stack[0].query(Transcript):
            transcript.theme_changed()
        self._show_bars()

    # Agents and conversations

    def begin(self, choice: AgentChoice, *, first: bool = False) -> Conversation:
        """Start an agent, and a conversation with it."""
        connection = AgentConnection(choice, self.options.connection)
        connection.on_news = self.mark
        self.connections.append(connection)
        connection.start()
        return self.add(Conversation(connection, self.options.folder), opens=True, first=first)

    def add(
        self, conversation: Conversation, *, opens: bool, first: bool = False, session_id: str | None = None
    ) -> Conversation:
        """Show a conversation; `opens` opens its session too."""
        self.conversations.append(conversation)
        conversation.on_change(self.mark)
        transcript = Transcript(conversation, is_ascii=self.options.is_ascii, graphics=self.options.graphics)
        self.screen_stack[0].query_one("#conversations").mount(transcript)
        self.show(conversation)
        if self.options.keeps and not conversation.draft:
            self.set_draft(conversation, keeping.draft(self.place_of(conversation)))
        if first and self.options.typed:
            self.set_draft(conversation, f"{conversation.draft}{self.options.typed}")
        if opens:
            self.work_on(self._open(conversation, first=first, session_id=session_id))
        if conversation.folder not in self._paths:
            self._paths[conversation.folder] = FileList()
            self.work_on(self._index(conversation.folder))
        return conversation

    async def _open(self, conversation: Conversation, *, first: bool, session_id: str | None) -> None:
        options = self.options
        choice = conversation.connection.choice
        if first and options.prompt:
            conversation.submit(options.prompt)
        given = options.session_id if first else session_id
        if first and options.continues:
            given = await self.latest_session(conversation)
        await conversation.open(given, **self.setup(conversation))
        if conversation.session is None:
            return
        self.opened(conversation)
        mode = (options.mode if first else None) or choice.mode
        config = {**choice.config, **(options.config if first else {})}
        model = options.model if first else None
        await self.set_all(conversation, mode, model, config)

    async def _index(self, folder: Path) -> None:
        self._paths[folder] = FileList(await asyncio.to_thread(files_of, folder))

    def show(self, conversation: Conversation) -> None:
        """Show this conversation; what stands in the editor stays with the one before."""
        if self.front is not None and self.front is not conversation:
            self.front.draft = self.editor.text
        self.front = conversation
        for transcript in self.screen_stack[0].query(Transcript):
            transcript.display = transcript.conversation is conversation
        self.editor.set_text(conversation.draft)
        self._show_bars()

    def set_draft(self, conversation: Conversation, text: str) -> None:
        """Set what stands in the editor for a conversation."""
        conversation.draft = text
        if conversation is self.front:
            self.editor.set_text(text)

    def place_of(self, conversation: Conversation) -> str:
        """What the drafts of a conversation are kept by."""
        choice = conversation.connection.choice
        return keeping.place_of(choice.program or choice.name, conversation.folder)

    def work_on(self, work: Any) -> None:
        """Run something beside the screen; an error of the agent is a note in the conversation."""

        async def guarded() -> None:
            conversation = self.front
            try:
                await work
            except (AccordError, ValueError, OSError) as error:
                self.complain(error, conversation)

        task = asyncio.create_task(guarded())
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    def run_command(self, action: str, argument: str = "") -> None:
        """Run a command, with what the user wrote after its name."""
        method = getattr(self, f"action_{action}")
        takes = bool(inspect.signature(method).parameters)

        async def work() -> None:
            done = method(argument) if takes else method()
            if inspect.isawaitable(done):
                await done

        self.work_on(work())

    def action_do(self, name: str) -> None:
        """Run what a key stands for. What waits for the user runs in a task: keys must reach the screen meanwhile."""
        done = getattr(self, f"action_{name}")()
        if inspect.isawaitable(done):
            self.work_on(done)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keep the keys of the chat from acting while another screen is in front."""
        return not (action in ("do", "go_to") and len(self.screen_stack) > 1)

    async def ask_for(self, screen: Any) -> Any:
        """Show a screen, and wait for its result."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.push_screen(screen, lambda result: None if answer.done() else answer.set_result(result))
        return await answer

    async def choose_from(self, title: str, entries: list[Entry], given: str) -> Any:
        """The value of the entry that the user named, or chooses from a list; None if they leave."""
        if not entries:
            raise ValueError(f"the agent offers no choice of a {title.lower()}")
        if not given:
            return await self.ask_for(Picker(title, entries))
        wanted = given.casefold()
        found = [it for it in entries if wanted in (str(it.value).casefold(), it.label.casefold())]
        found = found or [it for it in entries if wanted in f"{it.value} {it.label}".casefold()]
        if len(found) != 1:
            what = "none fits" if not found else f"{len(found)} fit"
            offered = ", ".join(it.label for it in entries)
            raise ValueError(f"{title.lower()} {given!r}: {what}; the agent offers {offered}")
        return found[0].value

    def complain(self, error: Exception, conversation: Conversation | None = None) -> None:
        """Show an error in a conversation."""
        conversation = conversation or self.front
        if conversation is None:
            self.notify(str(error), severity="error", markup=False)
        elif isinstance(error, AccordError):
            conversation.note(*explained(error, conversation.connection), "bad", "✗")
        else:
            conversation.note(str(error), "", "bad", "✗")

    # What sessions are opened with

    def setup(self, conversation: Conversation) -> dict[str, Any]:
        """What a session is opened with: the MCP servers that the agent supports."""
        remote = conversation.connection.remote
        if remote is None or not self.options.servers:
            return {"mcp_servers": list(self.options.servers)} if self.options.servers else {}
        usable = [it for it in self.options.servers if remote.peer.capabilities.allow(it)]
        return {"mcp_servers": usable}

    def opened(self, conversation: Conversation) -> None:
        """Remember a session that was opened."""
        session, choice = conversation.session, conversation.connection.choice
        if session is not None and self.options.keeps:
            program = choice.program or choice.name
            self.work_on(asyncio.to_thread(last_sessions.remember, program, session.cwd, session.id))

    async def latest_session(self, conversation: Conversation) -> str | None:
        """The latest session of the folder; None if there is none."""
        entries = await self.listed(conversation, str(conversation.folder))
        return entries[0].value if entries else None

    async def listed(self, conversation: Conversation, folder: str | None = None) -> list[Entry]:
        """The sessions that the agent lists, the latest first; of one that lists none, those that we opened."""
        remote = await conversation.connection.ready()
        choice = conversation.connection.choice
        if not remote.capabilities.sessions.list:
            ours = last_sessions.last_sessions(choice.program or choice.name, folder)
            return [Entry(it.id, it.id, f"{it.at[:16].replace('T', ' ')}  {it.folder}") for it in ours]
        found: list[tuple[str, Entry]] = []
        async for info in remote.sessions(folder):
            when = (info.updated_at or "")[:16].replace("T", " ")
            about = f"{when}  {info.cwd}  {info.session_id}"
            found.append((info.updated_at or "", Entry(info.title or info.session_id, info.session_id, about)))
            if len(found) == LISTED:
                break
        return [entry for _, entry in sorted(found, key=lambda it: it[0], reverse=True)]

    async def set_all(
        self, conversation: Conversation, mode: str | None, model: str | None, config: Mapping[str, str | bool]
    ) -> None:
        """Set what the user gave on the command line or for the agent's name."""
        session = conversation.session
        if session is None:
            return
        if mode is not None:
            await session.set_mode(mode)
        if model is not None:
            await session.set_model(model)
        for key, value in config.items():
            is_switch = isinstance(session.state.option(key), v1.SessionConfigBoolean)
            await session.set_config(key, value in (True, "true") if is_switch else value)

    # The lines around the conversation

    def mark(self) -> None:
        """Have the lines around the conversation made again soon."""
        if self._bars is None and self.is_running:
            self._bars = self.set_timer(BARS, self._show_bars)

    def _show_bars(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
        conversation = self.front
        screen = self.screen_stack[0] if self.screen_stack else None
        if conversation is None or screen is None or not screen.query("#top"):
            return
        width = self.size.width
        screen.query_one("#top", Lines).show_row(bars.top(conversation, width))
        many = len(self.conversations) > 1
        screen.query_one("#tabs", Lines).show_row(bars.tabs(self.conversations, conversation, width) if many else None)
        screen.query_one("#plan", Lines).show(bars.plan(conversation.state, is_open=self.plan_open))
        now = asyncio.get_running_loop().time()
        screen.query_one("#work", Lines).show_row(bars.work(conversation, now))
        self._show_question(conversation)
        screen.query_one("#list", Lines).show(self._list())
        screen.query_one("#foot", Lines).show_row(bars.foot(width))
        self._follow_time()
        self._report_ends()

    def _show_question(self, conversation: Conversation) -> None:
        bar, editor = self.bar, self.editor
        questions = conversation.questions
        is_new = bool(questions) and questions[0] is not self._asked
        self._asked = questions[0] if questions else None
        takes = not editor.text
        bar.set(questions, takes_keys=takes or bar.has_focus)
        if is_new and takes and self.screen is self.screen_stack[0]:
            bar.focus()
        if is_new and not self.app_focus and self.options.bell:
            self.bell()
        if not questions and bar.has_focus:
            editor.focus()

    def _follow_time(self) -> None:
        """Count the seconds while an agent works, and only then."""
        is_busy = any(one.busy_since is not None for one in self.conversations)
        if is_busy and self._second is None:
            self._second = self.set_interval(1.0, self._show_bars)
        elif not is_busy and self._second is not None:
            self._second.stop()
            self._second = None

    def _report_ends(self) -> None:
        """Ring the bell when a turn has ended and the user looks elsewhere."""
        busy = {one for one in self.conversations if one.is_busy}
        if self._was_busy - busy and not self.app_focus and self.options.bell:
            self.bell()
        self._was_busy = busy
        for one in self.conversations:
            if one.status == "login" and one.error is not self._reported.get(one):
                self._reported[one] = one.error
                self.run_command("login")
            elif one.status == "failed" and one.error is not None and one.error is not self._reported.get(one):
                self._reported[one] = one.error
                self.complain(one.error, one)

    def _list(self) -> list[Paragraph]:
        """The completions below the question, the chosen one marked."""
        editor = self.editor
        lines: list[Paragraph] = []
        for number, entry in enumerate(editor.found.entries):
            style = "chosen" if number == editor.chosen else ""
            spans: list[Span] = [(f" {entry.label} ", style)]
            spans += [(f"  {entry.about}", "dim")] if entry.about else []
            lines.append(Paragraph(spans, ((" ", ""),), wrap="cut"))
        return lines

    @property
    def row_of_top(self) -> Row:
        """The line above the conversation."""
        return () if self.front is None else bars.top(self.front, self.size.width)

    def on_resize(self, _: events.Resize) -> None:
        self._show_bars()

    # The editor

    def _complete(self, before: str) -> Completions:
        conversation = self.front
        if conversation is None:
            return NOTHING
        commands = slash.offered_commands(conversation.state.commands)
        return completions(before, commands, self._paths.get(conversation.folder, FileList()))

    @on(Editor.Completing)
    def _on_completing(self) -> None:
        self.screen_stack[0].query_one("#list", Lines).show(self._list())

    @on(Editor.Edited)
    def _on_edited(self) -> None:
        self.quit_asked = False
        if self.front is not None:
            self.front.draft = self.editor.text
        if self.options.keeps and self._saving is None:
            self._saving = self.set_timer(SAVE, self._save_drafts)
        if self.bar.question is not None:
            self.mark()

    def _save_drafts(self) -> None:
        """Keep what is written, so that it outlives a crash."""
        self._saving = None
        drafts = [(self.place_of(one), one.draft) for one in self.conversations]

        def save() -> None:
            for place, text in drafts:
                keeping.keep_draft(place, text)

        self.work_on(asyncio.to_thread(save))

    @on(Editor.Submitted)
    def _on_submitted(self, event: Editor.Submitted) -> None:
        self.send(event.text)

    def send(self, text: str) -> None:
        """Send a prompt, or run the command of ours that it calls."""
        conversation = self.front
        if conversation is None:
            return
        self.editor.remember(text)
        if self.options.keeps:
            self.work_on(asyncio.to_thread(keeping.keep_prompt, text))
        found = slash.find(text, conversation.state.commands)
        if found is not None:
            command, argument = found
            self.run_command(command.action, argument)
            return
        conversation.submit(text)
        transcript = self.transcript
        if transcript is not None:
            transcript.choose(None)
            transcript.go_to_end()

    @on(QuestionBar.Typed)
    def _on_typed(self, event: QuestionBar.Typed) -> None:
        self.editor.focus()
        self.editor.insert(event.character)

    @on(QuestionBar.Rejected)
    def _on_rejected(self) -> None:
        self.editor.focus()
        self.editor.placeholder = "What should the agent do instead?"

    def on_key(self, event: events.Key) -> None:
        """Keys of a chosen block, and between the editor and the question."""
        transcript = self.transcript
        if transcript is None or self.screen is not self.screen_stack[0]:
            return
        if event.key == "tab" and self.bar.question is not None:
            (self.editor if self.bar.has_focus else self.bar).focus()
            event.prevent_default()
        elif transcript.cursor is not None and self.focused is None:
            self._on_block_key(transcript, event)

    def _on_block_key(self, transcript: Transcript, event: events.Key) -> None:
        """A key while a block is chosen; a text goes into the editor."""
        block = transcript.cursor
        assert block is not None
        if event.key in ("enter", "space"):
            transcript.toggle_block(block)
        elif event.key in ("up", "down"):
            transcript.move_cursor(-1 if event.key == "up" else 1)
        elif event.key == "y":
            self.copy_to_clipboard(block.copied())
            self.notify("Copied", timeout=2)
        elif event.is_printable and event.character:
            transcript.choose(None)
            self.editor.focus()
            self.editor.insert(event.character)

    # The end

    async def on_unmount(self) -> None:
        for task in list(self._works):
            task.cancel()
        if self.options.keeps:
            if self.front is not None:
                self.front.draft = self.editor.text if self.screen_stack else self.front.draft
            for conversation in self.conversations:
                keeping.keep_draft(self.place_of(conversation), conversation.draft)
        with suppress(Exception):
            await asyncio.gather(*(connection.close() for connection in self.connections))
