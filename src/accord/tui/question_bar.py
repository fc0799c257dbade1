"""The open question above the editor, and the keys and clicks that answer it. `KeyOwner` says when it takes them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events
from textual.message import Message

from accord.presentation.styled_text import Paragraph, Row, Span
from accord.tui.chat_options import Clock
from accord.tui.key_owner import QUIET, KeyOwner
from accord.tui.line_widget import Lines
from accord.tui.palette import all_rows
from accord.tui.questions import Question
from accord.tui.soon import Soon

_TARGET = "answer:"
"""What the style of an answer begins with: the key follows, so that a click finds it. It has no colour."""


class QuestionBar(Lines):
    """The oldest open question of the conversation in front."""

    DEFAULT_CSS = """
    QuestionBar { height: auto; max-height: 8; }
    """

    class Wanted(Message):
        """An answer needs more than a key: this action of the chat."""

        def __init__(self, action: str, question: Question) -> None:
            super().__init__()
            self.action = action
            self.question = question

    def __init__(self, clock: Clock) -> None:
        super().__init__(id="question")
        self.question: Question | None = None
        self.keys = KeyOwner()
        """Who takes the keys."""
        self._clock = clock
        self._waiting = 0
        self._chosen = 0
        self._look = Soon(self, self._redraw)

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
        """Note that something came for the editor which is no key, such as a paste."""
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
        if not any(answer.key == key for answer in question.answers):
            return False
        action = question.press(key)
        if action:
            self.post_message(self.Wanted(action, question))
        return True
