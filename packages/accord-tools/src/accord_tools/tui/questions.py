"""The questions of agents, from their arrival until the user has answered them.

Each stands in the conversation in its place, and above the editor while it is open. It stays until it is answered or
its turn is cancelled, whatever the tool call that it is about does meanwhile.

`ScopedAnswers` has the user's answers that hold for longer than one question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from accord import BudgetQuestion, FormQuestion, LinkQuestion, PermissionQuestion, RememberedAnswers, ServedSession, v1
from accord.printable import label
from accord.services import covered
from accord_tools.presentation.diffs import FileDiff
from accord_tools.presentation.session_words import shortened_path
from accord_tools.presentation.styled_text import Paragraph, Row, clean, plain
from accord_tools.tui.block import Block, Look, drawn_diff

Scope: TypeAlias = Literal["session", "folder", "everywhere"]

SCOPES: dict[Scope, str] = {
    "session": "in this session",
    "folder": "in this folder, also in later chats",
    "everywhere": "in every folder, also in later chats",
}
"""Where an answer may hold, in words."""


class HeldAnswer(NamedTuple):
    """An answer that holds until its session ends."""

    session_id: str
    kind: str
    what: str
    allowed: bool


class ScopedAnswers(RememberedAnswers):
    """Answers for a session, which are kept here, and for a folder or everywhere, which are kept in the user's file.

    An "always" that an agent offers goes into the file only if `remembers` says so: the agent keeps it by itself.
    """

    def __init__(self, path: str | Path | None = None, *, remembers: bool = False) -> None:
        super().__init__(path)
        self._remembers = remembers
        self._held: dict[tuple[str, str, str], bool] = {}

    def keep(self, question: PermissionQuestion, scope: Scope, *, allowed: bool) -> None:
        """Let this answer hold in a scope. Raises OSError or ValueError if it cannot be written."""
        if scope == "session":
            self._held[_place(question.session, question)] = allowed
        else:
            super().remember(question, allowed=allowed, everywhere=scope == "everywhere")

    def recall(self, question: PermissionQuestion) -> bool | None:
        held = self._held.get(_place(question.session, question))
        return super().recall(question) if held is None else held

    def remember(self, question: PermissionQuestion, *, allowed: bool, everywhere: bool = False) -> None:
        if self._remembers:
            super().remember(question, allowed=allowed, everywhere=everywhere)

    def held(self, session_id: str) -> Iterator[HeldAnswer]:
        """The answers that hold in a session."""
        for (name, kind, what), allowed in self._held.items():
            if name == session_id:
                yield HeldAnswer(name, kind, what, allowed)

    def release(self, answer: HeldAnswer) -> None:
        """Forget an answer that holds in a session."""
        self._held.pop((answer.session_id, answer.kind, answer.what), None)


def _place(session: ServedSession, question: PermissionQuestion) -> tuple[str, str, str]:
    return session.id, question.tool_call.kind, covered(question)


KINDS = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "N"}
"""The key of each kind of option."""
DIFF_ROWS = 40
"""Rows of each diff that stand in the conversation."""


class Answer(NamedTuple):
    """One way to answer a question."""

    key: str
    label: str
    is_option: bool = True
    """Whether it answers by itself; else it shows or asks more first."""


class Question:
    """A question of an agent."""

    answers: Sequence[Answer] = ()
    """The ways to answer it."""

    def __init__(self, title: str) -> None:
        self.title = title
        """The question in one line."""
        self.said: str | None = None
        """How it was answered, in words; None while it is open."""
        self._answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.block: Block = QuestionBlock(self)
        """How it is shown in the conversation."""

    @property
    def is_open(self) -> bool:
        """Whether it waits for an answer."""
        return not self._answer.done()

    def answer(self, value: Any, said: str) -> None:
        """Answer it; does nothing if it was answered."""
        if self.is_open:
            self.said = said
            self._answer.set_result(value)
            self.block.changed()

    def decline(self) -> str:
        """Answer that the user does not want to."""
        self.answer(False, "declined")
        return ""

    def press(self, key: str) -> str:
        """Give the answer with this key; returns the action of the chat that it needs, or an empty text."""
        raise NotImplementedError

    async def wait(self) -> Any:
        """Wait for the answer. Cancelling this withdraws the question."""
        try:
            return await self._answer
        finally:
            if self.said is None:
                self.said = "withdrawn"
            self.block.changed()

    def paragraphs(self, look: Look, most: int | None = DIFF_ROWS) -> list[Paragraph]:
        """What it is about, below its title; at most so many rows of a diff."""
        return []


class PermissionAsked(Question):
    """Asks for permission: one of several options."""

    def __init__(self, question: PermissionQuestion) -> None:
        super().__init__(label(question.title, 300) or "May the agent do this?")
        self.question = question
        self._options = _keyed(question.options)
        """The options, by the keys that choose them."""
        self.answers = [
            *(Answer(key, label(option.name, 40)) for key, option in self._options.items()),
            Answer("A", "always, and where", is_option=False),
            Answer("r", "reject and say why", is_option=False),
            Answer("d", "show all", is_option=False),
        ]

    @property
    def _is_shown_above(self) -> bool:
        """Whether the tool call stands in the conversation, with its changes."""
        return self.question.session.tool_call(self.question.tool_call.id) is not None

    def press(self, key: str) -> str:
        if (option := self._options.get(key)) is not None:
            self.answer(option, label(option.name, 100))
            return ""
        if key == "r":
            option = self.question.reject
            self.answer(option, "rejected" if option is None else label(option.name, 100))
        return {"A": "answer_always", "r": "say_instead", "d": "show_question"}[key]

    def paragraphs(self, look: Look, most: int | None = DIFF_ROWS) -> list[Paragraph]:
        question = self.question
        shown: list[Paragraph] = []
        if question.description:
            shown += plain(question.description[:5_000])
        command = question.command
        if command is not None:
            line = command if isinstance(command, str) else " ".join(command)
            lines = plain(line[:20_000], "accent", wrap="fold")
            shown += [
                it.under((("$ " if number == 0 else "  ", "dim"),), (("  ", "dim"),)) for number, it in enumerate(lines)
            ]
        for diff in question.tool_call.diffs if most is None or not self._is_shown_above else ():
            change = FileDiff(diff.old_text, diff.new_text)
            name = label(shortened_path(diff.path, look.folder), 200)
            shown.append(Paragraph([(name, "bold"), *change.summary]))
            drawn = drawn_diff(change.lines, diff.path, look.width - 6)
            shown += drawn[:most]
            if most is not None and len(drawn) > most:
                shown.append(Paragraph([(f"… {len(drawn) - most:,} more lines; d shows all", "dim")]))
        if command is None and not question.tool_call.diffs:
            shown += [
                Paragraph([(label(shortened_path(place.path, look.folder), 200), "dim")])
                for place in question.tool_call.locations[:5]
            ]
        return shown


class FormAsked(Question):
    """Asks for values in a form."""

    answers = (Answer("y", "fill in the form"), Answer("n", "decline"))

    def __init__(self, question: FormQuestion) -> None:
        super().__init__(label(question.message, 300) or "The agent asks for values")
        self.question = question

    def press(self, key: str) -> str:
        return "fill_in_form" if key == "y" else self.decline()

    def accept(self, content: Mapping[str, Any]) -> None:
        """Answer with these values."""
        self.answer(content, "sent")


class LinkAsked(Question):
    """Asks the user to visit a URL."""

    def __init__(self, question: LinkQuestion) -> None:
        super().__init__(label(question.message, 300) or "The agent asks you to visit a page")
        self.question = question
        self.answers = (
            Answer("y", f"open {label(question.link.domain, 60)} in the browser"),
            Answer("n", "decline"),
        )

    def press(self, key: str) -> str:
        return "open_link" if key == "y" else self.decline()

    def paragraphs(self, look: Look, most: int | None = DIFF_ROWS) -> list[Paragraph]:
        link = self.question.link
        shown = [Paragraph([(clean(link.url), "link")], wrap="fold")]
        return shown + [Paragraph([(clean(warning), "warning")]) for warning in link.warnings]


class LoginAsked(Question):
    """Asks whether the user wants to log in, because the agent refuses to work before."""

    answers = (Answer("y", "log in"), Answer("n", "not now"))

    def __init__(self, name: str) -> None:
        super().__init__(f"{label(name, 60)} wants you to log in")

    def press(self, key: str) -> str:
        if key == "n":
            return self.decline()
        self.answer(True, "log in")
        return ""


class BudgetAsked(Question):
    """Asks whether a turn may go on past a limit that it comes near to."""

    answers = (Answer("y", "go on, as much again"), Answer("n", "stop now"))

    def __init__(self, question: BudgetQuestion) -> None:
        super().__init__(f"The turn has used {question}: may it go on past that?")

    def press(self, key: str) -> str:
        self.answer(key == "y", "goes on" if key == "y" else "stopped")
        return ""

    def paragraphs(self, look: Look, most: int | None = DIFF_ROWS) -> list[Paragraph]:
        return [Paragraph([("The agent works on; without an answer it is stopped at the limit.", "dim")])]


class QuestionBlock(Block):
    """A question in its place in the conversation."""

    @property
    def gap(self) -> bool:
        """Whether a blank row stands before it: an answered one belongs to what is above it."""
        return self._question.said is None

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question

    def paragraphs(self, look: Look) -> list[Paragraph]:
        question = self._question
        if question.said is not None:
            first: Row = ((" ? ", "dim"),)
            return [Paragraph([(question.title, "dim"), (f"  {question.said}", "accent")], first, (("   ", ""),))]
        bar: Row = (("┃  ", "warning"),)
        shown = [Paragraph([(question.title, "bold warning")], ((" ? ", "warning"),), bar)]
        return shown + [it.under(bar) for it in question.paragraphs(look)]

    def copied(self) -> str:
        return self._question.title


def _keyed(options: Sequence[v1.PermissionOption]) -> dict[str, v1.PermissionOption]:
    """The options by their keys: those of their kinds, and numbers where a kind comes twice."""
    keyed: dict[str, v1.PermissionOption] = {}
    for number, option in enumerate(options[:9], 1):
        key = KINDS.get(option.kind, "")
        keyed[key if key and key not in keyed else str(number)] = option
    return keyed
