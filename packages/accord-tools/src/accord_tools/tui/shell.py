"""`ChatShell`: the layout of the screen, the agents and conversations, and how keys and commands are run.

key_bindings.KEYS ──▶ bindings ──▶ actions (`SessionActions`, `ChatApp`) ──▶ Conversation ──▶ RemoteSession
Conversation.on_change ──▶ Transcript.mark (what is said)  and  ChatShell.mark (the lines around it)

The lines around the conversation are made again at most ten times a second, and once every second: an agent's work is
shown in seconds. Changes within that second are then drawn again (`Redrawn`).
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.containers import Container, Horizontal

from accord import AccordError, RemoteSession, updates
from accord.printable import label
from accord.project.git import FolderNotTrusted
from accord_tools.configuration import last_sessions
from accord_tools.configuration.last_sessions import LastSession
from accord_tools.configuration.trust import is_folder_trusted, trust_folder
from accord_tools.tui import bars, chat_storage, key_bindings, slash
from accord_tools.tui.attachments import files_of
from accord_tools.tui.chat_conversation import Conversation
from accord_tools.tui.chat_settings import ChatOptions
from accord_tools.tui.chat_storage import program_of, session_entries, words_of
from accord_tools.tui.connection import AgentChoice, AgentConnection, explained
from accord_tools.tui.editor import NOTHING, Completions, Editor, FileList, completions
from accord_tools.tui.palette import AsciiFilter, palette_of
from accord_tools.tui.pickers import Entry, Picker
from accord_tools.tui.question_bar import QuestionBar
from accord_tools.tui.questions import LoginAsked
from accord_tools.tui.transcript import FindBar, Transcript
from accord_tools.tui.widgets import Debounce, Lines, Redrawn

WORKTREE = "In a new git worktree"

BARS = 0.1
"""Seconds between two checks of the lines around the conversation."""


class ChatShell(App[int]):
    """The terminal client without its actions."""

    CSS = """
    Screen { background: $background; }
    ModalScreen { background: $background 50%; }
    #middle { height: 1fr; }
    #conversations { width: 1fr; align-horizontal: center; }
    Transcript { max-width: 102; }
    #side { display: none; height: 100%; border-left: solid $panel; padding: 0 1; overflow: hidden; }
    #tabs, #work, #attached, #suggested, #extensions, #plan, #question, #list { height: auto; }
    #list { max-height: 8; }
    #foot { height: 1; }
    #top { height: 1; }
    #editor-box { height: auto; max-height: 12; border-top: solid $panel; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[Any]] = key_bindings.bindings()
    TITLE = "accord"

    def __init__(self, choice: AgentChoice | None, options: ChatOptions) -> None:
        super().__init__()
        key_bindings.keep_alt_digits()
        if options.is_ascii:
            self._filters.append(AsciiFilter())
        self.options = options
        self.conversations: list[Conversation] = []
        """The open conversations, in the order of their tabs."""
        self.connections: list[AgentConnection] = []
        """The agents that were started."""
        self.front: Conversation | None = None
        """The conversation that is shown."""
        self.plan_open = False
        self.sidebar = options.sidebar
        """Whether the sidebar is shown where there is room for it."""
        self._choice = choice
        self._paths: dict[Path, FileList] = {}
        self._bars = Debounce(self, self._show_bars)
        self._offered: list[updates.Command] = []
        """The agent's commands that the list of the editor was made with."""
        self.quit_asked = False
        """Whether the user has pressed the key that quits once."""
        self._works: set[asyncio.Task[Any]] = set()
        self._reported: dict[Conversation, object] = {}
        """The errors of conversations that were shown."""
        self._was_busy: set[Conversation] = set()
        self._inspected: dict[AgentConnection, str] = {}
        """The URLs of the running inspectors, by their subjects."""

    # The screen

    def compose(self) -> ComposeResult:
        yield Lines(id="top")
        yield Lines(id="tabs")
        with Horizontal(id="middle"):
            yield Container(id="conversations")
            yield Lines(id="side")
        yield Lines(id="extensions")
        yield Lines(id="plan")
        yield Lines(id="work")
        yield QuestionBar(self.options.clock)
        yield Lines(id="list")
        yield FindBar()
        yield Lines(id="attached")
        yield Lines(id="suggested")
        with Container(id="editor-box"):
            prompts = chat_storage.prompts() if self.options.keeps else ()
            yield Editor(self.complete, prompts, self.offer_to_question)
        yield Lines(id="foot")

    def complete(self, before: str) -> Completions:
        """Return the completions of this text."""
        conversation = self.front
        if conversation is None:
            return NOTHING
        commands = slash.offered_commands(slash.typed(conversation.state))
        return completions(before, commands, self._paths.get(conversation.folder, FileList()))

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
    def session_in_front(self) -> RemoteSession:
        """The session that is shown; raises ValueError while it is not open."""
        conversation = self.in_front
        if conversation.session is None:
            has_failed = conversation.error is not None
            raise ValueError("the session could not be opened" if has_failed else "the session is not open yet")
        return conversation.session

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
        for transcript in self.screen_stack[0].query(Transcript):
            transcript.send_images_again()

    def _take_theme(self) -> None:
        palette = palette_of(self.screen_stack[0])
        for lines in self.screen_stack[0].query(Lines):
            lines.use(palette)
        for transcript in self.screen_stack[0].query(Transcript):
            transcript.theme_changed()
        self._show_bars()

    # The lines around the conversation

    def mark(self) -> None:
        """Mark the lines around the conversation for redrawing."""
        if self.is_running:
            self._bars.ask(BARS)

    def _show_bars(self) -> None:
        self._bars.cancel()
        conversation = self.front
        if conversation is None or not self.screen_stack or not self.screen_stack[0].query("#top"):
            return
        width, lines = self.size.width, self._lines
        side = self._show_side(lines("#side"), conversation)
        lines("#top").show_row(bars.top(conversation, width, has_side=side))
        many = len(self.conversations) > 1
        lines("#tabs").show_row(bars.tabs(self.conversations, conversation, width) if many else None)
        lines("#extensions").show(bars.extensions(conversation.session, conversation.connection.shown_extensions))
        lines("#attached").show_row(bars.attached(conversation.attached))
        if conversation.returned:
            self.editor.set_text("\n\n".join(it for it in (conversation.returned, self.editor.text) if it))
            conversation.returned = ""
        self._show_suggestions(conversation)
        lines("#plan").show([] if side else bars.plan(conversation.state, is_open=self.plan_open))
        lines("#work").show_row(bars.work(conversation, asyncio.get_running_loop().time()))
        self._show_question(conversation)
        if (offered := slash.typed(conversation.state)) != self._offered:  # perhaps while one is typed
            self._offered = offered
            self.editor.refresh_completions()
        self._show_list()
        lines("#foot").show_row(bars.foot(width))
        self._report_ends()

    def _lines(self, name: str) -> Lines:
        return self.screen_stack[0].query_one(name, Lines)

    def _show_side(self, side: Lines, conversation: Conversation) -> bool:
        """Show the sidebar if there is room for it; returns whether it is shown."""
        width = bars.side_width(self.size.width) if self.sidebar else 0
        if width:
            side.styles.width = width
            side.show(bars.side(conversation, width - 3))
        side.display = bool(width)
        return bool(width)

    def _show_suggestions(self, conversation: Conversation) -> None:
        self.editor.suggestions = suggestions = () if conversation.questions else conversation.suggestions
        self._lines("#suggested").show_row(bars.suggested(suggestions, self.editor.text))

    def _show_question(self, conversation: Conversation) -> None:
        bar, editor, questions = self.bar, self.editor, conversation.questions
        is_new = bool(questions) and questions[0] is not bar.question
        bar.set(questions, is_editor_empty=not editor.text)
        if is_new and self.screen is self.screen_stack[0]:
            editor.focus()
        if is_new and not self.app_focus and self.options.bell:
            self.bell()

    def offer_to_question(self, event: events.Key | events.Paste) -> bool:
        """Whether the open question takes a key that came to the editor."""
        if isinstance(event, events.Key):
            return self.bar.take_key(event, is_editor_empty=not self.editor.text)
        self.bar.note_typing(event)
        return False

    def _look(self) -> None:
        self._show_bars()
        for widget in self.screen_stack[0].query(Redrawn).results(Redrawn) if self.screen_stack else ():
            widget.draw_again()
        for screen in self.screen_stack[-1:]:
            screen.check_idle()  # now it draws what it has not drawn yet

    def _report_ends(self) -> None:
        """Ring the bell when a turn has ended while the user is elsewhere."""
        busy = {one for one in self.conversations if one.is_busy}
        if self._was_busy - busy and not self.app_focus and self.options.bell:
            self.bell()
        self._was_busy = busy
        for one in self.conversations:
            if one.status in ("login", "failed") and one.error is not self._reported.get(one):
                self._reported[one] = one.error
                self.could_not_open(one)

    def _show_list(self) -> None:
        """Show the completions, the chosen one marked, and how many there are above and below."""
        found = self.editor.found.entries
        self._lines("#list").show(bars.completions(found, self.editor.chosen, self.size.width))

    def on_resize(self, _: events.Resize) -> None:
        self._show_bars()

    def on_mount(self) -> None:
        if self.options.theme in self.available_themes:
            self.theme = self.options.theme or self.theme
        for action, key in self.options.keys.items():
            self.bind(key, f"do('{action}')")
        self.theme_changed_signal.subscribe(self, lambda _: self._take_theme())
        self.app_resume_signal.subscribe(self, self._draw_images_again)  # pyright: ignore[reportUnknownMemberType]
        self._take_theme()
        self.set_interval(1.0, self._look)
        self.editor.focus()
        if self._choice is None:
            self.run_command("agents")
        else:
            self.begin(self._choice, first=True)

    # Agents and conversations

    def begin(self, choice: AgentChoice, *, first: bool = False, session: LastSession | None = None) -> Conversation:
        """Start an agent, and a conversation with it: a new one, or an earlier session."""
        folder, its_id = (self.options.folder, None) if session is None else (Path(session.folder), session.id)
        return self.add(Conversation(self.started(choice), folder), opens=True, first=first, session_id=its_id)

    def started(self, choice: AgentChoice) -> AgentConnection:
        """Start an agent."""
        connection = AgentConnection(choice, self.options.connection)
        connection.on_news = self.mark
        self.connections.append(connection)
        connection.start()
        return connection

    def add(
        self, conversation: Conversation, *, opens: bool, first: bool = False, session_id: str | None = None
    ) -> Conversation:
        """Show a conversation; `opens` opens its session too."""
        self.conversations.append(conversation)
        conversation.on_change(self.mark)
        conversation.after_turn = lambda: self._keep_words(conversation)
        conversation.ask_trust = self.ask_trust
        transcript = Transcript(conversation, is_ascii=self.options.is_ascii, graphics=self.options.graphics)
        self.screen_stack[0].query_one("#conversations").mount(transcript)
        self.show(conversation)
        if self.options.keeps and not conversation.draft:
            self.set_draft(conversation, chat_storage.draft(self.place_of(conversation)))
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
        if first and options.worktrees:
            conversation.note(WORKTREE, options.worktrees[0].described(), "accent")
        if first and options.prompt:
            conversation.submit(options.prompt)
        given = session_id or (options.session_id if first else None)
        if given is None and first and options.continues:
            given = await self.latest_session(conversation)
        await conversation.open(given, **self.setup(conversation))
        if (session := conversation.session) is None:
            return
        self.opened(conversation)
        if mode := (options.mode if first else None) or choice.mode:
            await session.set_mode(mode)
        if first and options.model:
            await session.set_model(options.model)
        for key, value in {**choice.config, **(options.config if first else {})}.items():
            is_switch = isinstance(session.state.option(key), updates.SessionConfigBoolean)
            await session.set_config(key, value in (True, "true") if is_switch else value)

    async def _index(self, folder: Path) -> None:
        self._paths[folder] = FileList(await asyncio.to_thread(files_of, folder, is_folder_trusted))

    async def ask_trust(self, error: FolderNotTrusted) -> bool:
        """Ask whether git may run in a folder, and remember a yes."""
        repository = error.repository
        title = f"Git has to run here. Trust {label(str(repository.root), 60)}?"
        if not await self.confirmed(title, yes="remembered for this folder"):
            return False
        await asyncio.to_thread(trust_folder, repository)
        for folder in self._paths:
            self.work_on(self._index(folder))
        return True

    def show(self, conversation: Conversation) -> None:
        """Show this conversation; the text of the editor stays with the previous one."""
        if self.front is not None and self.front is not conversation:
            self.front.draft = self.editor.text
        self.front = conversation
        for transcript in self.screen_stack[0].query(Transcript):
            transcript.display = transcript.conversation is conversation
        self.editor.set_text(conversation.draft)
        self._show_bars()

    def set_draft(self, conversation: Conversation, text: str) -> None:
        """Set the text of the editor for a conversation."""
        conversation.draft = text
        if conversation is self.front:
            self.editor.set_text(text)

    def place_of(self, conversation: Conversation) -> str:
        """Return the key under which the drafts of a conversation are stored."""
        return chat_storage.place_of(program_of(conversation), conversation.folder)

    def work_on(self, work: Any) -> None:
        """Run something in the background; an error of the agent is a note in the conversation."""

        async def guarded() -> None:
            conversation = self.front
            try:
                await work
            except (AccordError, ValueError, OSError) as error:
                self.complain(error, conversation)

        task = asyncio.create_task(guarded())
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    def run_command(self, action: str, argument: Any = "") -> None:
        """Run a command, with the user's text after its name; or the action that an answer needs, with its question."""
        method = getattr(self, f"action_{action}")
        takes = bool(inspect.signature(method).parameters)

        async def work() -> None:
            done = method(argument) if takes else method()
            if inspect.isawaitable(done):
                await done

        self.work_on(work())

    def action_do(self, name: str) -> None:
        """Run the action of a key. Actions that wait for the user run in a task: keys must reach the screen
        meanwhile.
        """
        done = getattr(self, f"action_{name}")()
        if inspect.isawaitable(done):
            self.work_on(done)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys of the chat while another screen is in front."""
        return not (action in ("do", "go_to") and len(self.screen_stack) > 1)

    async def ask_for(self, screen: Any) -> Any:
        """Show a screen, and wait for its result."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.push_screen(screen, lambda result: None if answer.done() else answer.set_result(result))
        return await answer

    def show_theme(self, name: str) -> None:
        """Show the colours of this theme."""
        self.theme = name

    async def confirmed(self, title: str, *, no: str = "", yes: str = "") -> bool:
        """Ask whether the user agrees; `no` and `yes` are shown beside the answers."""
        return bool(await self.ask_for(Picker(title, [Entry("no", False, no), Entry("yes", True, yes)])))

    async def choose_from(self, title: str, entries: list[Entry], given: str) -> Any:
        """Return the value of the entry that the user named, or chooses from a list; None if they leave."""
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
            conversation.note(*explained(error, conversation.connection), "bad")
        else:
            conversation.note(str(error), style="bad")

    def could_not_open(self, conversation: Conversation) -> None:
        """Show why a session could not be opened, or let the user log in."""
        if conversation.status == "login":
            self.work_on(self._offer_login(conversation))
        elif conversation.error is not None:
            self.complain(conversation.error, conversation)

    async def _offer_login(self, conversation: Conversation) -> None:
        if await conversation.ask(LoginAsked(conversation.connection.name)):
            self.run_command("login")

    # Arguments for opening sessions

    def setup(self, conversation: Conversation) -> dict[str, Any]:
        """Return the arguments for opening a session: the MCP servers that the agent supports."""
        remote, servers = conversation.connection.remote, self.options.servers
        usable = [it for it in servers if remote is None or remote.peer.capabilities.allow(it)]
        return {"mcp_servers": usable} if servers else {}

    def opened(self, conversation: Conversation) -> None:
        """Remember a session that was opened."""
        session = conversation.session
        if session is not None and self.options.keeps:
            self.work_on(asyncio.to_thread(last_sessions.remember, program_of(conversation), session.cwd, session.id))

    async def latest_session(self, conversation: Conversation) -> str | None:
        """Return the latest session of the folder; None if there is none."""
        entries = await session_entries(conversation, self.conversations, str(conversation.folder))
        return entries[0].value if entries else None

    def _keep_words(self, conversation: Conversation) -> None:
        """Store the first and last words of a session for the list of sessions."""
        words = words_of(conversation)
        if words is not None and self.options.keeps:
            self.work_on(asyncio.to_thread(chat_storage.keep_words, words))

    # The end

    async def on_unmount(self) -> None:
        for task in list(self._works):
            task.cancel()
        if self.options.keeps:
            if self.front is not None:
                self.front.draft = self.editor.text if self.screen_stack else self.front.draft
            for conversation in self.conversations:
                chat_storage.keep_draft(self.place_of(conversation), conversation.draft)
        with suppress(Exception):
            await asyncio.gather(*(connection.close() for connection in self.connections))
