"""Asking the user line by line: permissions, forms and links. Pure.

A dialogue is a generator: it yields what to show, is sent the line that the user typed (None for the end of input, as
Ctrl-D makes it), and returns the answer. So the same dialogue runs in a terminal, over a chat and in a test.

What comes from an agent is shown without control characters: it cannot move the cursor, change colours or hide text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Generator, Mapping
from typing import Any, Literal, TypeAlias

from accord.host.elicitation import FormQuestion, LinkQuestion
from accord.host.form import Content, Field, Value
from accord.host.question import PermissionQuestion
from accord.schema import v1

FormAnswer: TypeAlias = "Mapping[str, Any] | Literal[False] | None"

Permission: TypeAlias = "Generator[str, str | None, v1.PermissionOption | bool]"
Form: TypeAlias = "Generator[str, str | None, FormAnswer]"
Visit: TypeAlias = "Generator[str, str | None, bool | None]"

LONGEST = 4_000
"""Characters of a text of the agent's that are shown at most."""

DECLINE, CANCEL = "/decline", "/cancel"
DECLINED, LEFT_OUT = object(), object()


def plain(text: str, *, lines: bool = False) -> str:
    """A text of the agent's as it can be shown: nothing in it acts on a terminal.

    >>> plain("red \\x1b[31malert\\x07")
    'red �[31malert�'
    """
    shown = "".join(it if it.isprintable() or (lines and it == "\n") or it == "\t" else _hidden(it) for it in text)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def _hidden(character: str) -> str:
    return " " if character in "\r\n" or unicodedata.category(character) == "Zs" else "\N{REPLACEMENT CHARACTER}"


def ask_permission(question: PermissionQuestion) -> Permission:
    """Shows what the agent wants to do, and takes one of its options by number; the end of input rejects."""
    call = question.tool_call
    shown = [f"\n{plain(question.session.agent)} asks to {call.kind}: {plain(call.title)}"]
    command = question.command
    if command is not None:
        shown.append(f"  $ {plain(command if isinstance(command, str) else ' '.join(command))}")
    shown += [f"  {plain(str(path))}" for path in question.paths]
    shown += [f"  {number}. {plain(option.name)}" for number, option in enumerate(question.options, 1)]
    heading = "\n".join(shown) + "\n"
    while True:
        line = yield f"{heading}Choose 1 to {len(question.options)}: "
        if line is None:
            return False
        answer = line.strip().lower()
        if answer.isdecimal() and 1 <= int(answer) <= len(question.options):
            return question.options[int(answer) - 1]
        if answer in ("y", "yes", "n", "no"):
            return answer.startswith("y")
        heading = ""


def fill_in(question: FormQuestion) -> Form:
    """Goes through a form's fields. `/decline` says no, `/cancel` and the end of input go away."""
    heading = f"\n{plain(question.message, lines=True)}\n({DECLINE} to say no, {CANCEL} to leave)\n"
    if question.schema.title:
        heading += f"{plain(question.schema.title)}\n"
    content: Content = {}
    for field in question.fields:
        problem = question.problems.get(field.name)
        heading += _described(field) + (f"  ! {problem}\n" if problem else "")
        answer = yield from _field(field, question.content.get(field.name), heading)
        if answer is None or answer is DECLINED:
            return None if answer is None else False
        if answer is not LEFT_OUT:
            content[field.name] = answer
        heading = ""
    return content


def _field(field: Field, current: Value | None, heading: str) -> Generator[str, str | None, Any]:
    """The value of one field, or that it is left out, or that the user declined (or, None, left)."""
    right = current if current is not None and field.problem(current) is None else None
    while True:
        line = yield f"{heading}{_prompt(field, right)}"
        typed = "" if line is None else line.strip()
        if line is None or typed == CANCEL:
            return None
        if typed == DECLINE:
            return DECLINED
        if not typed and right is not None:
            return right
        if not typed and not field.required:
            return LEFT_OUT
        try:
            return field.parse(line)
        except ValueError as error:
            heading = f"  ! {error}\n"


def consider_link(question: LinkQuestion) -> Visit:
    """Shows the whole URL, its domain marked and with its warnings, and asks for consent."""
    before, domain, behind = question.link.marked
    shown = [
        f"\n{plain(question.message, lines=True)}",
        f"  {before}[{domain}]{behind}",
        f"  It leads to {question.link.domain}",
    ]
    shown += [f"  ! {warning}" for warning in question.link.warnings]
    heading = "\n".join(shown) + "\n"
    while True:
        line = yield f"{heading}Open it? [y/n] "
        if line is None or line.strip() == CANCEL:
            return None
        if (answer := line.strip().lower()) in ("y", "yes", "n", "no", DECLINE):
            return answer.startswith("y")
        heading = ""


def _described(field: Field) -> str:
    title = plain(field.title) + ("" if field.required else " (optional)")
    lines = [title, *([f"  {plain(field.schema.description)}"] if field.schema.description else [])]
    for number, choice in enumerate(field.choices, 1):
        described = f" - {plain(choice.description)}" if choice.description else ""
        lines.append(f"  {number}. {plain(choice.title)}{described}")
    if isinstance(field.schema, v1.MultiSelectPropertySchema):
        lines.append("  several, with commas between")
    return "\n".join(lines) + "\n"


def _prompt(field: Field, current: Value | None) -> str:
    """What an empty line means stands in parentheses."""
    choice = "[y/n]" if isinstance(field.schema, v1.BooleanPropertySchema) else ""
    return f"{choice}{_written(current)}> "


def _written(value: Value | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "(yes)" if value else "(no)"
    return f"({plain(', '.join(value) if isinstance(value, list) else str(value))})"
