"""The open question above the editor, and the keys and clicks that answer it. `KeyOwner` decides when it takes them.

A letter of a sentence must not allow anything. An agent chooses when it asks, and a question may appear while the user
is typing. So one rule decides, for every question: it takes keys and clicks once no key has come for half a second,
counted from when it was painted. An earlier key belongs to the editor, and the half second begins again. A text in the
editor keeps the keys there; emptying the editor returns them, after the same half second. Tab gives the keys to the
other side.

The times are those at which the events came, not those at which they were handled: a chat that was busy must not take
an earlier key for an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich.cells import cell_len
from textual import events
from textual.message import Message

from accord_tools.presentation.styled_text import Paragraph, Row, Span
from accord_tools.tui.chat_settings import Clock
from accord_tools.tui.palette import all_rows
from accord_tools.tui.questions import Question
from accord_tools.tui.widgets import Debounce, Lines

Owner: TypeAlias = Literal["question", "editor"]

QUIET = 0.5
"""Seconds without a key, after a question was painted, until the question takes keys."""


class KeyOwner:
    """Decides who takes the keys."""

    def __init__(self) -> None:
        self._question: object = None
        self._quiet_since: float | None = None
        """When the latest key came, or the question was painted; None while it is not painted."""
        self._is_editor_empty = True
        self._wanted: Owner | None = None
        """The side that the user has chosen with tab."""

    def ask(self, question: object) -> None:
        """Set the question that is shown now; None if there is none."""
        if question is not self._question:
            self._question, self._quiet_since, self._wanted = question, None, None

    def paint(self, question: object, now: float) -> None:
        """Note that this question has been painted."""
        if question is self._question and self._quiet_since is None:
            self._quiet_since = now

    def edit(self, *, is_empty: bool) -> None:
        """Note whether the editor is empty."""
        if is_empty and not self._is_editor_empty:
            self._wanted = None
        self._is_editor_empty = is_empty

    def tab(self, now: float) -> None:
        """Give the keys to the editor if the question has them, else to the question."""
        if self.is_painted:
            self._wanted = "editor" if self.side == "question" else "question"
            self._quiet_since = now

    def key(self, now: float) -> Owner:
        """Return who takes a key that came at this time; one for the editor starts the half second again."""
        owner = self.owner(now)
        if owner == "editor":
            self.typed(now)
        return owner

    def typed(self, now: float) -> None:
        """Note a key for the editor, including one that the question does not use."""
        if self._quiet_since is not None:
            self._quiet_since = max(now, self._quiet_since)
        if self._wanted == "question":
            self._wanted = None

    @property
    def is_painted(self) -> bool:
        """Whether the question has been painted."""
        return self._quiet_since is not None

    @property
    def side(self) -> Owner:
        """Return who takes the keys after a quiet moment."""
        if self._question is None:
            return "editor"
        return self._wanted or ("question" if self._is_editor_empty else "editor")

    def is_quiet(self, now: float) -> bool:
        """Whether no key has come for long enough since the question was painted: then it takes clicks."""
        return self._question is not None and self._quiet_since is not None and now - self._quiet_since >= QUIET

    def owner(self, now: float) -> Owner:
        """Return who takes a key that comes now."""
        return self.side if self.is_quiet(now) else "editor"


_TARGET = "answer:"
"""The beginning of the style of an answer: the key follows, so that a click finds it. It has no colour."""


class QuestionBar(Lines):
    """The oldest open question of the conversation in front."""

    DEFAULT_CSS = """
    QuestionBar { height: auto; max-height: 8; }
    """

    @dataclass
    class Wanted(Message):
        """An answer needs more than a key: this action of the chat."""

        action: str
        question: Question

    def __init__(self, clock: Clock) -> None:
        super().__init__(id="question")
        self.question: Question | None = None
        self.keys = KeyOwner()
        """Decides who takes the keys."""
        self._clock = clock
        self._waiting = 0
        self._chosen = 0
        self._look = Debounce(self, self._redraw)

    def set(self, questions: Sequence[Question], *, is_editor_empty: bool) -> None:
        """Show the first of these questions."""
        question = questions[0] if questions else None
        if question is not self.question:
            self.question, self._chosen = question, 0
            self.keys.ask(question)
            self.call_after_refresh(self._painted, question)
        self.keys.edit(is_empty=is_editor_empty)
        self._waiting = len(questions) - 1
        self._redraw()

    def _painted(self, question: Question | None) -> None:
        self.keys.paint(question, self._now)
        self._redraw()

    @property
    def _now(self) -> float:
        return self._clock(Message())

    @property
    def takes_keys(self) -> bool:
        """Whether a key that comes now is an answer."""
        return self.keys.owner(self._now) == "question"

    # Drawing

    def _redraw(self) -> None:
        question = self.question
        if question is None:
            self.show([])
            return
        is_ready = self.takes_keys
        more = f"  (and {self._waiting} more)" if self._waiting else ""
        first: Row = ((" ? " if is_ready else " … ", "warning"),)
        shown = [Paragraph([(question.title, "bold"), (more, "dim")], first, (("   ", ""),))]
        shown.append(Paragraph(self._answers(question, is_ready=is_ready), (("   ", ""),), (("   ", ""),), "groups"))
        if self.keys.side == "editor":
            shown.append(Paragraph([("   press tab, or empty the editor, to answer", "dim")]))
        elif not is_ready:
            self._look.ask(QUIET / 2)  # the half second may begin again meanwhile
        self.show(shown)

    def _answers(self, question: Question, *, is_ready: bool) -> list[Span]:
        spans: list[Span] = []
        for number, answer in enumerate(question.answers):
            target = f"{_TARGET}{answer.key}"
            chosen = "chosen " if is_ready and number == self._chosen else ""
            faded = "" if is_ready and answer.is_option else "dim "
            spans += [("  ", "")] if spans else []
            spans += [(f" {answer.key} ", f"{'accent ' if is_ready else 'dim '}{chosen}{target}")]
            spans += [(f"{answer.label} ", f"{chosen or faded}{target}")]
        return spans

    # Answers

    def take_key(self, event: events.Key, *, is_editor_empty: bool) -> bool:
        """Answer the question by a key that came to the editor; returns False if the key is the editor's."""
        question = self.question
        if question is None or not question.is_open:
            return False
        now = self._clock(event)
        self.keys.edit(is_empty=is_editor_empty)
        if event.key in ("escape", "tab"):
            return False
        is_taken = self.keys.key(now) == "question" and self._answered(question, event)
        if not is_taken:
            self.keys.typed(now)
        self._redraw()
        return is_taken

    def take_tab(self, event: events.Key) -> bool:
        """Give the keys to the question, or back to the editor; returns False if no question is open."""
        if self.question is None:
            return False
        self.keys.tab(self._clock(event))
        self._redraw()
        return True

    def note_typing(self, event: Message) -> None:
        """Note input for the editor that is no key, such as a paste."""
        self.keys.typed(self._clock(event))

    def on_click(self, event: events.Click) -> None:
        """Answer by a click on an answer."""
        question, rows = self.question, all_rows(self._paragraphs, max(1, self.size.width))
        if question is None or not question.is_open or not self.keys.is_quiet(self._clock(event)):
            return
        column = event.x
        for text, style in rows[event.y][0] if 0 <= event.y < len(rows) else ():
            column -= cell_len(text)
            if column < 0:
                if _TARGET in style:
                    self._choose(question, style.rpartition(_TARGET)[2])
                return

    def _answered(self, question: Question, event: events.Key) -> bool:
        options = [it for it in question.answers if it.is_option]
        key, character = event.key, event.character or ""
        if key in ("left", "right", "up", "down") and options:
            self._chosen = (self._chosen + (1 if key in ("right", "down") else -1)) % len(options)
            return True
        if key == "enter" and options:
            character = options[self._chosen].key
        elif character.isdecimal() and 0 < int(character) <= len(options):
            character = options[int(character) - 1].key
        return self._choose(question, character)

    def _choose(self, question: Question, key: str) -> bool:
        """Give this answer; returns False if there is none with this key."""
        action = question.press(key)
        if action:
            self.post_message(self.Wanted(action, question))
        return action is not None
