"""The open question above the editor, and the keys that answer it.

It takes the keys only while the editor is empty, so that words which were being written are not taken for an answer,
and only once it has been painted.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from accord.printable import label
from accord.tui.line_widget import Lines
from accord.tui.questions import FormAsked, LinkAsked, PermissionAsked, Question
from accord.tui.rows import Paragraph, Row, Span


class QuestionBar(Lines, can_focus=True):
    """The oldest open question of the conversation in front."""

    DEFAULT_CSS = """
    QuestionBar { height: auto; max-height: 8; }
    """

    class Typed(Message):
        """A key that is no answer: it belongs to the editor."""

        def __init__(self, character: str) -> None:
            super().__init__()
            self.character = character

    class Rejected(Message):
        """The user has rejected, and wants to say what to do instead."""

    class FormWanted(Message):
        """The user wants to fill in the form."""

        def __init__(self, question: FormAsked) -> None:
            super().__init__()
            self.question = question

    class LinkAgreed(Message):
        """The user agreed to visit a link."""

        def __init__(self, question: LinkAsked) -> None:
            super().__init__()
            self.question = question

    class MoreWanted(Message):
        """The user wants to see all of what is asked."""

        def __init__(self, question: Question) -> None:
            super().__init__()
            self.question = question

    class AlwaysWanted(Message):
        """The user wants to choose where the answer holds."""

        def __init__(self, question: PermissionAsked) -> None:
            super().__init__()
            self.question = question

    def __init__(self) -> None:
        super().__init__(id="question")
        self.question: Question | None = None
        self._waiting = 0
        self._chosen = 0
        self.is_armed = False
        """Whether it takes keys: its question has been painted."""
        self._is_passing = False
        """Whether the user has begun to type a text: the keys up to the change of focus belong to it, too."""

    def on_focus(self) -> None:
        self._is_passing = False

    def set(self, questions: Sequence[Question], *, takes_keys: bool) -> None:
        """Show the first of these questions."""
        question = questions[0] if questions else None
        if question is not self.question:
            self.question, self._chosen, self.is_armed = question, 0, False
            self.call_after_refresh(self._arm, question)
        self._waiting = len(questions) - 1
        self._redraw(takes_keys=takes_keys)

    def _arm(self, question: Question | None) -> None:
        self.is_armed = question is self.question

    def _redraw(self, *, takes_keys: bool) -> None:
        question = self.question
        if question is None:
            self.show([])
            return
        more = f"  (and {self._waiting} more)" if self._waiting else ""
        first: Row = ((" ? ", "warning"),)
        shown = [Paragraph([(question.title, "bold"), (more, "dim")], first, (("   ", ""),))]
        shown.append(Paragraph(self._answers(question), (("   ", ""),), (("   ", ""),), "groups"))
        if not takes_keys:
            shown.append(Paragraph([("   press tab, or empty the editor, to answer", "dim")]))
        self.show(shown)

    def _answers(self, question: Question) -> list[Span]:
        if isinstance(question, PermissionAsked):
            spans: list[Span] = []
            for number, (key, option) in enumerate(question.options):
                style = "chosen" if number == self._chosen else ""
                spans += [(f" {key} ", f"accent {style}".strip()), (f"{label(option.name, 40)} ", style), ("  ", "")]
            spans += [
                ("A ", "accent"),
                ("always, and where", "dim"),
                ("  ", ""),
                ("r ", "accent"),
                ("reject and say why", "dim"),
                ("  ", ""),
                ("d ", "accent"),
                ("show all", "dim"),
            ]
            return spans
        if isinstance(question, FormAsked):
            return [("enter ", "accent"), ("fill in the form   ", ""), ("n ", "accent"), ("decline", "")]
        link: list[Span] = []
        if isinstance(question, LinkAsked):
            link = [(question.question.link.domain, "link"), ("   ", "")]
        return [*link, ("y ", "accent"), ("open it in the browser   ", ""), ("n ", "accent"), ("decline", "")]

    def on_key(self, event: events.Key) -> None:
        question = self.question
        if event.key in ("escape", "tab"):
            return
        is_open = question is not None and question.is_open
        if is_open and not self.is_armed:
            return
        if question is not None and is_open and not self._is_passing and self._answered(question, event):
            event.stop()
            event.prevent_default()
        elif event.is_printable and event.character:
            event.stop()
            self._is_passing = True
            self.post_message(self.Typed(event.character))

    def _answered(self, question: Question, event: events.Key) -> bool:
        character = event.character or ""
        if isinstance(question, PermissionAsked):
            return self._permission(question, event.key, character)
        if isinstance(question, FormAsked):
            if event.key == "enter" or character == "y":
                self.post_message(self.FormWanted(question))
            elif character == "n":
                question.answer(False, "declined")
            return event.key == "enter" or character in ("y", "n")
        if isinstance(question, LinkAsked):
            if event.key == "enter" or character == "y":
                self.post_message(self.LinkAgreed(question))
            elif character == "n":
                question.answer(False, "declined")
            return event.key == "enter" or character in ("y", "n")
        return False

    def _permission(self, question: PermissionAsked, key: str, character: str) -> bool:
        options = question.options
        if key in ("left", "right", "up", "down") and options:
            self._chosen = (self._chosen + (1 if key in ("right", "down") else -1)) % len(options)
            self._redraw(takes_keys=True)
            return True
        if key == "enter" and options:
            question.choose(options[self._chosen][1])
            return True
        by_key = dict(options)
        if character in by_key:
            question.choose(by_key[character])
            return True
        if character.isdecimal() and 0 < int(character) <= len(options):
            question.choose(options[int(character) - 1][1])
            return True
        if character == "r":
            question.reject()
            self.post_message(self.Rejected())
            return True
        if character == "A":
            self.post_message(self.AlwaysWanted(question))
            return True
        if character == "d":
            self.post_message(self.MoreWanted(question))
            return True
        return False
