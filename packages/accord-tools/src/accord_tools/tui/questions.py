"""The questions of agents, from their arrival until the user has answered them.

Each is shown in the conversation in its place, and above the editor while it is open. It stays until it is answered or
its turn is cancelled, whatever happens to its tool call meanwhile.

`ScopedAnswers` has the user's answers that apply to more than one question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from accord import BudgetQuestion, FormQuestion, LinkQuestion, PermissionQuestion, RememberedAnswers, ServedSession, v1
from accord.printable import label
from accord.services import RememberedAnswer, covered, repeats_command, typed_command
from accord_tools.presentation.diffs import FileDiff
from accord_tools.presentation.session_words import shortened_path
from accord_tools.presentation.styled_text import Paragraph, Row, clean, plain
from accord_tools.tui.block import COMMAND, Block, Look, drawn_diff

Scope: TypeAlias = Literal["session", "folder", "everywhere"]

SCOPES: dict[Scope, str] = {
    "session": "in this session",
    "folder": "in this folder, also in later chats",
    "everywhere": "in every folder, also in later chats",
}
"""The scopes of an answer, in words."""


class HeldAnswer(NamedTuple):
    """An answer that applies until its session ends."""

    session_id: str
    kind: str
    what: str
    allowed: bool


class ScopedAnswers(RememberedAnswers):
    """Answers for a session, which are stored here, and for a folder or everywhere, which are in the user's file.

    An agent's "always" option goes into the file only if `remembers` is true: the agent stores it itself.
    """

    def __init__(self, path: str | Path | None = None, *, remembers: bool = False) -> None:
        super().__init__(path)
        self._remembers = remembers
        self._held: dict[tuple[str, str, str], bool] = {}

    def keep(self, question: PermissionQuestion, scope: Scope, *, allowed: bool) -> None:
        """Store this answer in a scope. Raises OSError or ValueError if it cannot be written."""
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
        """Return the answers that apply in a session."""
        return (HeldAnswer(*place, allowed) for place, allowed in self._held.items() if place[0] == session_id)

    def forget(self, answer: HeldAnswer | RememberedAnswer | None = None) -> None:
        """Delete an answer, wherever it is stored."""
        if isinstance(answer, HeldAnswer):
            self._held.pop((answer.session_id, answer.kind, answer.what), None)
        else:
            super().forget(answer)


def _place(session: ServedSession, question: PermissionQuestion) -> tuple[str, str, str]:
    return session.id, question.tool_call.kind, covered(question)


KINDS = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "N"}
"""The key of each kind of option."""
DIFF_ROWS = 40
"""Rows of each diff that are shown in the conversation."""


class Answer(NamedTuple):
    """One possible answer to a question."""

    key: str
    label: str
    value: Any = None
    said: str = ""
    """The answer in words; empty for an entry that needs a further step."""
    action: str = ""
    """The action of the chat that it needs."""
    is_option: bool = True
    """Whether it is one of the ways that the agent offers."""


_DECLINE = Answer("n", "decline", False, "declined")


class Question:
    """A question of an agent."""

    def __init__(self, title: str, *answers: Answer) -> None:
        self.title = title
        """The question in one line."""
        self.answers = answers
        """The possible answers."""
        self.said: str | None = None
        """The answer in words; None while it is open."""
        self._answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.block: Block = QuestionBlock(self)
        """Its block in the conversation."""

    @property
    def is_open(self) -> bool:
        """Whether it waits for an answer."""
        return not self._answer.done()

    def answer(self, value: Any, said: str) -> None:
        """Answer it; does nothing if it was already answered."""
        if self.is_open:
            self.said = said
            self._answer.set_result(value)
            self.block.changed()

    def decline(self) -> None:
        """Decline the question for the user."""
        self.answer(False, "declined")

    def press(self, key: str) -> str | None:
        """Give the answer with this key; returns the chat's action that it needs, None if there is no such key."""
        answer = next((it for it in self.answers if it.key == key), None)
        if answer is None:
            return None
        if answer.said:
            self.answer(answer.value, answer.said)
        return answer.action

    async def wait(self) -> Any:
        """Wait for the answer. Cancelling this withdraws the question."""
        try:
            return await self._answer
        finally:
            if self.said is None:
                self.said = "withdrawn"
            self.block.changed()

    def paragraphs(self, look: Look, most: int | None = DIFF_ROWS) -> list[Paragraph]:
        """Return its subject, below its title; at most this many rows of a diff."""
        return []


ASKS = {
    "execute": "Allow this command?",
    "edit": "Allow this edit?",
    "delete": "Allow this deletion?",
    "move": "Allow this move?",
    "read": "Allow reading this?",
    "search": "Allow this search?",
    "fetch": "Allow this fetch?",
}
"""How each kind of tool call is asked about; its title is above the question."""


class PermissionAsked(Question):
    """Asks for permission: one of several options. `is_below` is whether its tool call is shown right above it."""

    def __init__(self, question: PermissionQuestion, *, is_below: bool = False) -> None:
        reject = question.reject
        said = "rejected" if reject is None else label(reject.name, 100)
        call, command = question.tool_call, question.command
        self._command = "" if command is None else typed_command(command)
        its_kind = ASKS.get("execute" if command is not None else call.kind)
        has_title = question.asked is None or repeats_command(question.asked, self._command or call.title)
        super().__init__(
            (its_kind if has_title else None) or label(question.title, 300) or "May the agent do this?",
            *(Answer(key, label(it.name, 40), it, _said(it, question)) for key, it in _keyed(question.options)),
            Answer("A", "always, and where", action="answer_always", is_option=False),
            Answer("r", "reject and say why", reject, said, "say_instead", is_option=False),
            Answer("d", "show all", action="show_question", is_option=False),
        )
        self.question = question
        self._is_below = is_below

    def paragraphs(self, look: Look, most: int | None = DIFF_ROWS) -> list[Paragraph]:
        question, call, line = self.question, self.question.tool_call, self._command
        is_below = self._is_below and most is not None
        shown = plain(question.description[:5_000]) if question.description else []
        if not line and not is_below and self.title != label(call.title, 300) and not call.diffs:
            shown.append(Paragraph([(label(call.title, 300), "")]))
        if line and not (is_below and label(line, COMMAND) == line):
            lines = plain(line[:20_000], "accent", wrap="fold")
            signs: list[Row] = [(("$ ", "dim"),), *[(("  ", "dim"),)] * len(lines)]
            shown += [it.under(sign, (("  ", "dim"),)) for sign, it in zip(signs, lines, strict=False)]
        for diff in () if is_below else call.diffs:
            change = FileDiff(diff.old_text, diff.new_text)
            name = label(shortened_path(diff.path, look.folder), 200)
            shown.append(Paragraph([(name, "bold"), *change.summary]))
            drawn = drawn_diff(change.lines, diff.path, look.width - 6)
            shown += drawn[:most]
            if most is not None and len(drawn) > most:
                shown.append(Paragraph([(f"… {len(drawn) - most:,} more lines; d shows all", "dim")]))
        if not line and not call.diffs and not is_below:
            places = [label(shortened_path(place.path, look.folder), 200) for place in call.locations[:5]]
            shown += [Paragraph([(place, "dim")]) for place in places if place not in call.title]
        return shown


def _said(option: v1.PermissionOption, question: PermissionQuestion) -> str:
    """Return an answer in words; an "always" says whether it also allows what the chat itself would ask about."""
    name, kind = label(option.name, 100), question.tool_call.kind
    if option.kind != "allow_always":
        return name
    is_ours = question.command is not None or (kind in ("read", "edit") and question.paths)
    return f"{name}: /permissions revokes it here" if is_ours else f"{name}: only the agent knows this"


class FormAsked(Question):
    """Asks for values in a form."""

    def __init__(self, question: FormQuestion) -> None:
        title = label(question.message, 300) or "The agent asks for values"
        super().__init__(title, Answer("y", "fill in the form", action="fill_in_form"), _DECLINE)
        self.question = question


class LinkAsked(Question):
    """Asks the user to visit a URL."""

    def __init__(self, question: LinkQuestion) -> None:
        title = label(question.message, 300) or "The agent asks you to visit a page"
        where = f"open {label(question.link.domain, 60)} in the browser"
        super().__init__(title, Answer("y", where, action="open_link"), _DECLINE)
        self.question = question

    def paragraphs(self, look: Look, most: int | None = DIFF_ROWS) -> list[Paragraph]:
        link = self.question.link
        shown = [Paragraph([(clean(link.url), "link")], wrap="fold")]
        return shown + [Paragraph([(clean(warning), "warning")]) for warning in link.warnings]


class LoginAsked(Question):
    """Asks whether the user wants to log in, because the agent refuses to work without it."""

    def __init__(self, name: str) -> None:
        title = f"{label(name, 60)} wants you to log in"
        super().__init__(title, Answer("y", "log in", True, "log in"), Answer("n", "not now", False, "declined"))


class BudgetAsked(Question):
    """Asks whether a turn may continue past a limit that it is close to."""

    def __init__(self, question: BudgetQuestion) -> None:
        super().__init__(
            f"The turn has used {question}: may it continue?",
            Answer("y", "go on, as much again", True, "goes on"),
            Answer("n", "stop now", False, "stopped"),
        )

    def paragraphs(self, look: Look, most: int | None = DIFF_ROWS) -> list[Paragraph]:
        return [Paragraph([("The agent works on. The limit waits a minute for your answer.", "dim")])]


class QuestionBlock(Block):
    """A question in its place in the conversation."""

    @property
    def gap(self) -> bool:
        """Whether a blank row precedes it: an answered one belongs to the block above it."""
        return self._question.said is None

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question

    def paragraphs(self, look: Look) -> list[Paragraph]:
        question = self._question
        if question.said is not None:
            first: Row = ((" ? ", "dim"),)
            return [Paragraph([(question.title, "dim"), (f"  {question.said}", "accent")], first, (("   ", ""),))]
        bar: Row = ((" ┃ ", "warning"),)  # its title is in the bar above the editor
        return [it.under(bar) for it in question.paragraphs(look)]

    def copied(self) -> str:
        return self._question.title


def _keyed(options: Sequence[v1.PermissionOption]) -> Iterator[tuple[str, v1.PermissionOption]]:
    """Return the options by their keys: those of their kinds, and numbers if a kind occurs twice."""
    used: set[str] = set()
    for number, option in enumerate(options[:9], 1):
        key = KINDS.get(option.kind, "")
        key = key if key and key not in used else str(number)
        used.add(key)
        yield key, option
