"""Asks the user at a terminal: runs the dialogues, one at a time.

    with TerminalUser() as user:
        client = accord.Client(permissions=user.permit, elicitation=accord.Elicitation(user.fill, user.visit))

It reads and writes the controlling terminal itself, so that standard input and output stay free for a program's own
use, and reads without a thread, so that a question goes away at once when its turn is cancelled.

An agent may print a fake question, and ask the real one after the user has answered the fake. So input that was typed
before a question is shown is discarded. The frame of a real question is shown in reverse, which text
that went through `printable` cannot do.

Asks the user line by line: permissions, forms and links. Pure.

A dialogue is a generator: it yields text to show, is sent the line that the user typed (None for the end of input, such
as Ctrl-D), and returns the answer. So the same dialogue runs in a terminal, over a chat and in a test.

An agent's text is inside a `QuestionFrame`: it cannot move the cursor, change colours, hide text or imitate ours.

    ┌ An agent asks for permission
    │ agent     nice
    │ wants to  execute: clean up
    │ command   rm -rf build
    │ 1. allow once    “Yes”
    ├ 2 more options not shown; /more shows all
    └ Choose 1 to 8, y to allow once, n to reject once:

Each quoted line starts with our bar and is wrapped before the terminal would wrap it, so that no text can make a line
that looks like ours. Each text is cut, so that the start of the question stays on the screen. A line at the frame's
edge, where an agent's text cannot appear, counts the cut lines.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import webbrowser
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from itertools import islice
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypeVar

from accord.printable import columns, cut, label, printable, wrapped
from accord.schema import v1
from accord.services.elicitation_service import Filled, FormQuestion, LinkQuestion
from accord.services.file_service import FileChange
from accord.services.form_fields import Content, FormField, Value
from accord.services.permission_policy import repeats_command, typed_command
from accord.services.permission_question import Choice, PermissionQuestion
from accord.services.permission_service import covered
from accord.services.service import ServedSession

COLUMNS = 80
"""The width of a terminal that does not report one."""
LEAST_COLUMNS, LEAST_NAME = 30, 4

END = "└ "
"""The start of the prompt."""

MORE = "/more"
"""The command with which a user shows the cut text."""


class TextLimits(NamedTuple):
    """The amount of an agent's text that a question shows."""

    lines: int
    """The lines of one text."""
    items: int
    """Of one list, such as paths."""
    options: int
    choices: int
    characters: int
    """The characters of one text; the rest is not processed."""
    name: int
    """Columns of the name of an agent, an option or a choice."""


BRIEF = TextLimits(lines=5, items=3, options=8, choices=50, characters=4_000, name=56)
"""A permission question fits on a screen of 24 lines."""
FULL = TextLimits(lines=1_000, items=1_000, options=1_000, choices=1_000, characters=64_000, name=1_000)
"""The rest of the text, which `/more` shows."""


class QuestionFrame:
    """Collects the lines of a question.

    >>> frame = QuestionFrame("An agent asks for permission", BRIEF, 40)
    >>> frame.text("command", "echo one\\necho two")
    >>> print(frame)
    ┌ An agent asks for permission
    │ command  echo one
    │          echo two
    """

    def __init__(self, heading: str, room: TextLimits, width: int) -> None:
        self.room = room
        self._width = max(width, LEAST_COLUMNS) - 1  # terminals differ in what they do at the last column
        self._lines: list[str] = []
        self._rows("┌", "  ", heading)

    def text(self, name: str, text: str) -> None:
        """Add a text of the agent, of any number of lines, after our name for it."""
        self._text(f"{name}  " if name else "", text, self.room.characters, self.room.lines)

    def whole(self, text: str, characters: int) -> None:
        """Add an agent's text of which no line may be hidden, such as a URL."""
        self._text("", text, characters, characters)

    def _text(self, start: str, text: str, characters: int, most: int) -> None:
        kept = text[:characters]
        lines = list(wrapped(printable(kept), self._inside - len(start)))
        shown = lines[:most]
        for number, line in enumerate(shown):
            self._lines.append(f"│ {start if number == 0 else ' ' * len(start)}{line}")
        left_out = len(text) - len(kept) + sum(len(line) + 1 for line in lines[len(shown) :])
        self.cut(left_out, "character")

    def item(self, start: str, theirs: str, end: str = "") -> None:
        """Add an item of a list: a text of the agent between two of ours, on one line unless all is shown."""
        room = min(self.room.name, self._inside - columns(start) - columns(end))
        if self.room is not FULL:
            self._lines.append(f"│ {start}{label(theirs, max(room, LEAST_NAME))}{end}")
            return
        kept = label(theirs, self.room.name)
        for number, line in enumerate(wrapped(kept, max(self._inside - columns(start) - columns(end), LEAST_NAME))):
            self._lines.append(f"│ {start if number == 0 else ' ' * columns(start)}{line}{end if number == 0 else ''}")

    def code(self, lines: Iterable[str], most: int) -> int:
        """Add lines of the agent that keep their blanks and are cut at the width; returns how many were added."""
        kept = list(islice(lines, most + 1))
        shown = kept if len(kept) <= most else kept[: most - 1]
        for line in shown:
            text = printable(line[: self.room.characters].replace("\n", " ")).expandtabs(4)
            rows = [cut(text, self._inside - 2)] if self.room is not FULL else wrapped(text, self._inside - 2)
            self._lines += [f"│   {row}" for row in rows]
        if len(shown) < len(kept):
            self.say(f"more lines not shown{f'; {MORE} shows all' if self.room is not FULL else ''}")
        return len(shown) + (len(shown) < len(kept))

    def texts(self, name: str, texts: Sequence[str]) -> None:
        """Add a list of the agent, as much of it as fits."""
        for number, text in enumerate(texts[: self.room.items]):
            self.item(f"{name}  " if number == 0 else " " * (len(name) + 2), text)
        self.cut(len(texts) - self.room.items, name.strip())

    def cut(self, number: int, what: str) -> None:
        """Add a line at the edge that counts the hidden lines."""
        if number > 0:
            hint = f"; {MORE} shows all" if self.room is not FULL else ""
            self.say(f"{number:,} more {what}{'' if number == 1 else 's'} not shown{hint}")

    def say(self, ours: str) -> None:
        """Add our text, at the edge."""
        self._rows("├", "│ ", ours)

    @property
    def rows(self) -> int:
        """Return how many rows it has so far."""
        return len(self._lines)

    def __str__(self) -> str:
        return "\n".join(self._lines)

    @property
    def _inside(self) -> int:
        return self._width - 2

    def _rows(self, edge: str, continued: str, ours: str) -> None:
        rows: Iterable[str] = wrapped(ours, self._inside)
        for number, row in enumerate(rows):
            self._lines.append(f"{f'{edge} ' if number == 0 else continued}{row}")


FormAnswer: TypeAlias = "Mapping[str, Any] | Literal[False] | None"

Permission: TypeAlias = "Generator[str, str | None, v1.PermissionOption | bool]"
KeptPermission: TypeAlias = "Generator[str, str | None, tuple[v1.PermissionOption | bool, bool]]"
Form: TypeAlias = "Generator[str, str | None, FormAnswer]"
Visit: TypeAlias = "Generator[str, str | None, bool | None]"

SHORT = 40
"""Columns of a value that is filled in already."""
LONGEST_URL = 4_000
"""Characters of a URL that are shown; browsers refuse longer ones."""
LONGEST_NUMBER = 9

DECLINE, CANCEL = "/decline", "/cancel"
DECLINED, LEFT_OUT = object(), object()

KINDS: dict[str, str] = {
    "allow_once": "allow once",
    "allow_always": "allow always",
    "reject_once": "reject once",
    "reject_always": "reject always",
}
"""The effect of an option in our words: its name comes from the agent, which may write anything."""
UNKNOWN_KIND = "unknown kind"
_KIND_COLUMNS = max(map(len, KINDS.values()))

SCREEN = 24
"""Rows of a screen on which a whole question fits."""
LEAST_CHANGED = 4
"""Rows of a change that are shown, however long the rest of the question is."""


def ask_permission(question: PermissionQuestion, width: int = COLUMNS) -> Permission:
    """Show the agent's request and read one of its options by number. The end of input rejects."""
    room, heading = BRIEF, _permission(question, BRIEF, width)
    while True:
        shown = min(len(question.options), room.options)
        line = yield f"{heading}{END}{_choices(question, shown)}"
        if line is None:
            return False
        answer, heading = line.strip().lower(), ""
        if answer == MORE:
            room, heading = FULL, _permission(question, FULL, width)
        elif (number := _number(answer, shown)) is not None:
            return question.options[number - 1]
        elif (answer in ("y", "yes") and question.allow is not None) or answer in ("n", "no"):
            return answer.startswith("y")
        else:
            heading = _problem(_wrong_key(question, line, shown), width)


def ask_permission_and_scope(question: PermissionQuestion, width: int = COLUMNS) -> KeptPermission:
    """Ask as `ask_permission` does, and after an "always" whether it applies to later runs, too."""
    choice = yield from ask_permission(question, width)
    kind = choice.kind if isinstance(choice, v1.PermissionOption) else ""
    if kind not in ("allow_always", "reject_always"):
        return choice, False
    frame = QuestionFrame("Does this hold in later runs, too?", BRIEF, width)
    frame.item("agent     ", question.session.agent)
    frame.item("folder    ", str(question.session.cwd))
    frame.text("for     ", f"{question.tool_call.kind}: {covered(question)}")
    heading = f"{frame}\n"
    while True:
        line = yield f"{heading}{END}y: in later runs, too; n: only now: "
        answer = "n" if line is None else line.strip().lower()
        if answer in ("y", "yes", "n", "no"):
            return choice, answer.startswith("y")
        heading = _problem(f"{_typed(answer)} is not an answer; type y or n", width)


def _wrong_key(question: PermissionQuestion, line: str, shown: int) -> str:
    """Describe what was wrong with a line that is no answer."""
    choices = [f"1 to {shown}" if shown > 1 else "1"] if shown else []
    choices += ["y", "n"] if question.allow is not None else ["n"]
    typed = line.strip()
    if typed.isdecimal():
        problem = f"there is no option {_typed(typed)}"
    elif typed.lower() in ("y", "yes"):
        problem = "the agent offers no option that allows this"
    else:
        problem = f"{_typed(typed) if typed else 'an empty line'} is not an answer"
    return f"{problem}; type {', '.join(choices)} or {MORE}"


def _typed(text: str) -> str:
    return f"“{label(text, 20)}”"


def _permission(question: PermissionQuestion, room: TextLimits, width: int) -> str:
    call, command = question.tool_call, question.command
    frame = _frame("An agent asks for permission", question.session, room, width)
    if question.asked is not None and question.asked != call.title:
        frame.item("asks      ", question.asked)
    line = "" if command is None else typed_command(command)
    if line and repeats_command(call.title, line):
        frame.item("wants to  ", call.kind)
    else:
        frame.item(f"wants to  {label(call.kind, SHORT)}: ", call.title)
    if question.description:
        frame.text("says    ", question.description)
    frame.texts("file    ", [str(path) for path in question.paths])
    if line:
        frame.text("command ", line)
    _changes(frame, question, room)
    for number, option in enumerate(question.options[: room.options], 1):
        kind = KINDS.get(option.kind, UNKNOWN_KIND)
        frame.item(f"{number}. {kind:{_KIND_COLUMNS}}  “", option.name, "”")
    frame.cut(len(question.options) - room.options, "option")
    return f"\n{frame}\n"


def _changes(frame: QuestionFrame, question: PermissionQuestion, room: TextLimits) -> None:
    """The changes that the tool call would make, as far as a screen has room for them."""
    diffs = question.tool_call.diffs
    left = max(LEAST_CHANGED, SCREEN - 4 - frame.rows - min(len(question.options), room.options))
    for diff in diffs[: room.items]:
        change = FileChange(diff.old_text, diff.new_text)
        if len(diffs) == 1:
            frame.item("change    ", change.summary)
        else:
            frame.item("change    ", diff.path, f"  {change.summary}")
        left -= 1 + frame.code(change.lines(), left if room is not FULL else room.lines)
    frame.cut(len(diffs) - room.items, "change")


def _choices(question: PermissionQuestion, shown: int) -> str:
    """Return the prompt: the allowed input, and which options `y` and `n` stand for."""
    choices = f"Choose 1 to {shown}" if shown else "There are no options"
    for word, option in (("y", question.allow), ("n", question.reject)):
        if option is not None:
            choices += f", {word} to {KINDS[option.kind]}"
        elif word == "n":
            choices += ", n to refuse"
    return f"{choices}: "


def fill_in(question: FormQuestion, width: int = COLUMNS) -> Form:
    """Ask for each field of a form. `/decline` declines the form; `/cancel` and the end of input leave it."""
    frame = _frame("An agent asks you to fill in a form", question.session, BRIEF, width)
    frame.text("", question.message)
    if question.schema.title:
        frame.item("", question.schema.title)
    frame.say(f"{DECLINE} declines the form, {CANCEL} closes it")
    before = f"\n{frame}\n"
    content: Content = {}
    for field in question.fields:
        problem = question.problems.get(field.name)
        answer = yield from _field(field, question.content.get(field.name), before, problem, width)
        if answer is None or answer is DECLINED:
            return None if answer is None else False
        if answer is not LEFT_OUT:
            content[field.name] = answer
        before = ""
    return content


def _field(
    field: FormField, current: Value | None, before: str, problem: str | None, width: int
) -> Generator[str, str | None, Any]:
    """Ask for the value of one field; returns it, LEFT_OUT, DECLINED, or None if the user leaves the form."""
    right = current if current is not None and field.problem(current) is None else None
    heading = f"{before}{_described(field, BRIEF, width)}{_problem(problem, width)}"
    while True:
        line = yield f"{heading}{END}{_prompt(field, right)}"
        typed = "" if line is None else line.strip()
        if line is None or typed == CANCEL:
            return None
        if typed == DECLINE:
            return DECLINED
        if typed == MORE:
            heading = f"{_described(field, FULL, width)}"
            continue
        if not typed and right is not None:
            return right
        if not typed and not field.required:
            return LEFT_OUT
        try:
            return field.parse(line)
        except ValueError as error:
            heading = _problem(str(error), width)


def consider_link(question: LinkQuestion, width: int = COLUMNS) -> Visit:
    """Show the whole URL with its domain marked and its warnings, and ask for consent."""
    heading = _link(question, BRIEF, width)
    while True:
        line = yield f"{heading}{END}Open it? [y/n] "
        if line is None or line.strip() == CANCEL:
            return None
        answer = line.strip().lower()
        if answer in ("y", "yes", "n", "no", DECLINE):
            return answer.startswith("y")
        heading = _link(question, FULL, width) if answer == MORE else ""


def _link(question: LinkQuestion, room: TextLimits, width: int) -> str:
    before, domain, after = question.link.marked
    frame = _frame("An agent asks you to visit a page", question.session, room, width)
    frame.text("", question.message)
    frame.whole(f"{before}[{domain}]{after}", LONGEST_URL)
    frame.say(f"It leads to {printable(domain)}")
    for warning in question.link.warnings:
        frame.say(f"! {printable(warning)}")
    return f"\n{frame}\n"


def _described(field: FormField, room: TextLimits, width: int) -> str:
    optional = "" if field.required else " (optional)"
    frame = QuestionFrame("A field", room, width)
    frame.item("", field.title, optional)
    if field.schema.description:
        frame.text("", field.schema.description)
    choices = field.choices
    for number, choice in enumerate(choices[: room.choices], 1):
        described = f" - {choice.description}" if choice.description else ""
        frame.item(f"{number}. ", f"{choice.title}{described}")
    frame.cut(len(choices) - room.choices, "choice")
    if isinstance(field.schema, v1.MultiSelectPropertySchema):
        frame.say("several values are allowed, separated by commas")
    return f"{frame}\n"


def _problem(problem: str | None, width: int) -> str:
    """A line with the problem, cleaned: it may quote the agent, for instance its pattern."""
    return f"! {label(problem, max(width - 3, SHORT))}\n" if problem else ""


def _prompt(field: FormField, current: Value | None) -> str:
    """Return the prompt of a field; the value that an empty line means is in parentheses."""
    choice = "[y/n]" if isinstance(field.schema, v1.BooleanPropertySchema) else ""
    return f"{choice}{_written(current)}> "


def _written(value: Value | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "(yes)" if value else "(no)"
    return f"({label(', '.join(value) if isinstance(value, list) else str(value), SHORT)})"


def _frame(heading: str, session: ServedSession | None, room: TextLimits, width: int) -> QuestionFrame:
    """Return the frame of a question, with the agent's name; during a login there is no session."""
    frame = QuestionFrame(heading, room, width)
    if session is not None:
        frame.item("agent     ", session.agent)
    return frame


def _number(answer: str, most: int) -> int | None:
    is_number = answer.isdecimal() and len(answer) <= LONGEST_NUMBER
    return int(answer) if is_number and 1 <= int(answer) <= most else None


AnswerT = TypeVar("AnswerT")

_EDGES = re.compile("^[┌│├└]", re.MULTILINE)
_IN_REVERSE = "\x1b[7m\\g<0>\x1b[27m"


class TerminalUser:
    """Asks the user at the terminal.

    `open_link` opens a link that the user agreed to visit. `while_asking` is entered while a question is open: a
    program that prints an agent's text at the same terminal holds it back until the question is answered. With `keep`,
    the user is asked whether an "always" applies to later runs, too, and `keep` is called with the question if it does.
    """

    def __init__(
        self,
        path: str = "/dev/tty",
        *,
        open_link: Callable[[str], Awaitable[object] | object] | None = None,
        while_asking: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
        keep: Callable[[PermissionQuestion], object] | None = None,
    ) -> None:
        self._fd = os.open(path, os.O_RDWR | getattr(os, "O_NOCTTY", 0))
        if sys.platform != "win32":  # which has no such file to open
            os.set_blocking(self._fd, False)
        self._open_link = open_link or open_in_browser
        self._while_asking = while_asking
        self._keep = keep
        self._edge = _IN_REVERSE if os.environ.get("TERM", "dumb") != "dumb" else "\\g<0>"
        self._turn = asyncio.Lock()
        self._typed = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the terminal."""
        os.close(self._fd)

    async def permit(self, question: PermissionQuestion) -> Choice:
        """The function for `Client(permissions=...)`."""
        if self._keep is None:
            return await self._run(ask_permission(question, self._columns()))
        choice, is_kept = await self._run(ask_permission_and_scope(question, self._columns()))
        if is_kept:
            self._keep(question)
        return choice

    async def fill(self, question: FormQuestion) -> Filled:
        """The function for `Elicitation(fill=...)`."""
        return await self._run(fill_in(question, self._columns()))

    async def visit(self, question: LinkQuestion) -> bool | None:
        """The function for `Elicitation(visit=...)`: opens the link once the user has agreed."""
        agreed = await self._run(consider_link(question, self._columns()))
        if agreed:
            opening = self._open_link(question.link.url)
            if isinstance(opening, Awaitable):
                await opening
        return agreed

    async def _run(self, dialogue: Generator[str, str | None, AnswerT]) -> AnswerT:
        async with self._turn, self._while_asking():
            self._forget_typed()
            try:
                prompt = next(dialogue)
                while True:
                    await self._show(prompt)
                    prompt = dialogue.send(await self._line())
            except StopIteration as end:
                answer: AnswerT = end.value
                return answer
            except BaseException:
                await asyncio.shield(self._show("\n"))  # the next output starts on a line of its own
                raise

    def _forget_typed(self) -> None:
        """Discard input that was typed before this question was shown."""
        assert sys.platform != "win32"
        import termios  # exists on every platform that has a terminal to open

        self._typed = b""
        with suppress(termios.error):
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._fd).columns or COLUMNS
        except OSError:
            return COLUMNS

    async def _show(self, text: str) -> None:
        rest = _EDGES.sub(self._edge, text).encode(errors="replace")
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                await self._ready(asyncio.get_running_loop().add_writer, asyncio.get_running_loop().remove_writer)

    async def _line(self) -> str | None:
        """Read a line, without its newline; None at the end of input."""
        while b"\n" not in self._typed:
            await self._ready(asyncio.get_running_loop().add_reader, asyncio.get_running_loop().remove_reader)
            try:
                chunk = os.read(self._fd, 4096)
            except BlockingIOError:
                continue
            except OSError:  # the terminal is gone
                return None
            if not chunk:
                return None
            self._typed += chunk
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(errors="replace")

    async def _ready(self, watch: Callable[..., Any], unwatch: Callable[[int], Any]) -> None:
        ready = asyncio.Event()
        watch(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            unwatch(self._fd)


async def open_in_browser(url: str) -> None:
    """Open a URL in the user's browser, out of our sight. Without a browser the URL is still on the screen."""
    await asyncio.to_thread(webbrowser.open, url)
