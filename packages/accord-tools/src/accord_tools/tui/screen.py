"""`ChatScreen`: what stands where on the screen, and the lines around the conversation.

The lines are made again at most ten times a second, and once every second: an agent's work is told in seconds. What
has changed in that second is drawn again then (`redrawn`).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.containers import Container, Horizontal

from accord import RemoteSession, updates
from accord_tools.tui import bars, chat_storage, key_bindings, slash
from accord_tools.tui.chat_conversation import Conversation
from accord_tools.tui.chat_settings import ChatOptions
from accord_tools.tui.connection import AgentChoice, AgentConnection
from accord_tools.tui.editor import NOTHING, Completions, Editor, FileList
from accord_tools.tui.palette import AsciiFilter, palette_of
from accord_tools.tui.question_bar import QuestionBar
from accord_tools.tui.transcript import FindBar, Transcript
from accord_tools.tui.widgets import Debounce, Lines, Redrawn

BARS = 0.1
"""Seconds between two looks at the lines around the conversation."""


class ChatScreen(App[int]):
    """The terminal client without what it does."""

    CSS = """
    Screen { background: $background; }
    ModalScreen { background: $background 50%; }
    #middle { height: 1fr; }
    #conversations { width: 1fr; align-horizontal: center; }
    Transcript { max-width: 102; }
    #side { display: none; height: 100%; border-left: solid $panel; padding: 0 1; overflow: hidden; }
    #tabs, #work, #attached, #suggested, #told, #plan, #question, #list { height: auto; }
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
        """The URLs of the inspectors that run, by what they show."""

    # The screen

    def compose(self) -> ComposeResult:
        yield Lines(id="top")
        yield Lines(id="tabs")
        with Horizontal(id="middle"):
            yield Container(id="conversations")
            yield Lines(id="side")
        yield Lines(id="told")
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
        """What can be completed after this text."""
        return NOTHING

    def could_not_open(self, conversation: Conversation) -> None:
        """Say why a session could not be opened."""

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
        """Have the lines around the conversation made again soon."""
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
        lines("#told").show(bars.extensions(conversation.session, conversation.connection.shown_extensions))
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
        """Show the sidebar where there is room for it; returns whether it is shown."""
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
        """Ring the bell when a turn has ended and the user looks elsewhere."""
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
