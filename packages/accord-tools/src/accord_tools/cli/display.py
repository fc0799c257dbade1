"""A turn as text: the answer on standard output, the work beside it on standard error, in the order of arrival.

    updates ─▶ Display.show ─┬─▶ the answer ──────────▶ Output.put      standard output
                             ├─▶ thoughts, pictures ──▶ Output.aside    standard error
                             └─▶ Work ─▶ Lines ─▶ rows ─┘

A pipe or a file gets the answer unchanged. Only if both streams are one terminal does one affect the other: then each
kind of output is a *block* of its own, after a blank line, and the answer is wrapped between words.

Of images only PNG is drawn: its size can be read without decoding it. An image that would fill the screen or the
terminal's memory gets the placeholder.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Literal

from accord import updates, v1
from accord.printable import Printable, label, printable
from accord.session.placeholders import from_base64, placeholder, png_size
from accord.session.values import whole_part
from accord_tools.cli.console import CommandStreams, for_people, streams, width
from accord_tools.cli.output import Output
from accord_tools.cli.view import Opened, TurnView
from accord_tools.pictures.terminal_graphics import CellSize, fitted, iterm2, kitty
from accord_tools.presentation.appearance import Pictures
from accord_tools.presentation.spinner import Spinner
from accord_tools.presentation.styled_text import NARROW, Paragraph, WrappedStream, rows_of
from accord_tools.presentation.work_lines import SubagentWork, Work, line_of, said_of, thought_of, usage_lines

if TYPE_CHECKING:
    from accord import AccordError, Outcome, RemoteSession, Reply

MOST_BYTES = 4 * 1024 * 1024
MOST_PIXELS = 4096
"""Of each side."""
CELL = CellSize()
"""Pixels of a character, roughly: terminals differ, and a command does not ask them."""
ROWS = 20
"""Rows that an image may take."""


def drawn(image: v1.ImageContent, protocol: Pictures, columns: int) -> str | None:
    """Return the sequence that shows an image in at most this many columns; None if only the placeholder is
    possible.
    """
    data = from_base64(image.data) if len(image.data) <= MOST_BYTES else None
    size = None if data is None else png_size(data)
    if data is None or size is None or not 0 < max(size) <= MOST_PIXELS or min(size) == 0:
        return None
    wide, high = fitted(size, columns, ROWS, CELL)
    return kitty(data, wide, high) if protocol == "kitty" else iterm2(data, wide, high)


@asynccontextmanager
async def dialogue_view(folder: str) -> AsyncGenerator[Display]:
    """Show the turns of a dialogue, with their work, on the standard streams, which get a moment at the end."""
    output = Output(os.dup(1), os.dup(2))
    view = Display(output, streams(), folder, shows_work=True)
    try:
        yield view
    finally:
        view.stop()
        with suppress(TimeoutError):
            await asyncio.wait_for(output.flush(), 1.0)


Block = Literal["answer", "thought", "work", "note"]
NO_WIDTH = 1_000_000_000
TAIL = 10
"""Lines of the agent's standard error that follow an error."""
NAME = 40
"""Columns of an agent's name."""


class Display(TurnView):
    """Shows one turn.

    `shows_work` is whether anything but the answer is shown; `details` adds changes and outputs. Quiet, only errors and
    refusals are shown beside the answer. Without `shows_answer`, the answer comes as data.
    """

    shows_subagents = True

    def __init__(
        self,
        output: Output,
        streams: CommandStreams,
        folder: str,
        *,
        shows_work: bool,
        details: bool = False,
        is_quiet: bool = False,
        shows_answer: bool = True,
    ) -> None:
        super().__init__()
        self._shows_answer = shows_answer
        self._output = output
        self._streams = streams
        self._shows_work = shows_work
        self._is_quiet = is_quiet

        def work(is_cancelled: Callable[[v1.ToolCallId], bool] = lambda _: False) -> Work:
            failure_of = self.failed_commands.ending
            return Work(folder, details=details, failure_of=failure_of, is_cancelled=is_cancelled)

        self._session: RemoteSession | None = None
        self._work = work(self._was_cancelled)
        self._subagents = SubagentWork(work, details=details)
        self._answer = WrappedStream() if streams.together and streams.answer.moves else None
        self._cleaned = Printable()
        self._thought = WrappedStream(indent="  ")
        self._cleaned_thought = Printable()
        self._half = ""
        self._block: Block | None = None
        self._is_marked = False
        """Whether the row is the one in which the user types a prompt."""
        self._newlines = 2
        """How many newlines the terminal's text ends with; two make a blank line."""
        self._ends_line = True
        """Whether the answer on standard output ends its line."""
        self._spinner = Spinner(output.aside, streams.aside, lambda: width(2), self._is_at_start, self._flush_word)
        self._shown_agent_lines = False
        self._may_spin = streams.may_spin and shows_work

    # The turn

    def waiting(self, text: str) -> None:
        """Show what is being waited for, while nothing else comes."""
        self._spinner.text = text
        self._spinner.start()

    async def opened(self, opened: Opened) -> None:
        """Show the notices that came before the prompt."""
        for notice in opened.session.state.notices if self._shows_work else ():
            for line in self._work.lines(notice):
                self.line(line)

    async def prompted(self, session: RemoteSession) -> None:
        """Show that the agent works."""
        self._session, self._is_marked = session, False
        self.waiting(f"waiting for {label(session.agent, NAME)}")

    def _was_cancelled(self, tool_call_id: v1.ToolCallId) -> bool:
        call = None if self._session is None else self._session.state.tool_calls.get(tool_call_id)
        return call is not None and call.status == "cancelled"

    async def follow(self, reply: Reply) -> None:
        """Show the updates of a turn until its end."""
        async for subagent, update in reply.with_subagents():
            if subagent is None:
                await self._show(update)
            elif self._shows_work:
                for line in self._subagents.lines(subagent, update):
                    self.line(line)
                await self._output.room()

    async def _show(self, update: updates.Update) -> None:
        """Show an update of the turn."""
        await self.question_order.may_show()
        if (said := said_of(update)) is not None:
            self._say(said)
        elif (thought := thought_of(update)) is not None:
            self._think(thought)
        elif self._shows_work:
            for line in (*self._work.lines(update), *self._subagents.ended(update)):
                self.line(line)
            self._spinner.text = self._work.running or self._spinner.text
        self.question_order.was_shown(update)
        await self._output.room()

    def line(self, line: Paragraph, block: Block = "work") -> None:
        """Show a line beside the answer."""
        if line.is_passing and self._may_spin and self._spinner.is_able:
            self._spinner.text = line.text.strip()
            return
        self._begin(block)
        look = self._streams.aside
        columns = width(2) if look.is_terminal else NO_WIDTH
        for row in rows_of(line if columns >= NARROW else line._replace(wrap="whole"), columns):
            self._aside(f"{look.row(row)}\n")

    def note(self, text: str) -> None:
        """Show our line, whether or not the work is shown."""
        for line in for_people(text).split("\n"):
            self.line(line_of((line.expandtabs(4), "")), "note")

    def summary(self, *groups: Iterable[Paragraph]) -> None:
        """Show the written files, and the session where the work is shown, each after a blank line."""
        if self._is_quiet:
            return
        for group in groups if self._shows_work else groups[:1]:
            lines = list(group)
            if lines and self._streams.aside.is_terminal and self._newlines < 2:
                self._aside("\n")
            for line in lines:
                self.line(line)

    def interrupted(self) -> None:
        """Show that the agent was asked to stop, below the terminal's own ^C."""
        if not self._streams.aside.is_terminal:
            return
        self._aside("\n")
        self.note("stopping the agent; press Ctrl-C again to end it at once")

    def stop(self) -> None:
        """Take the spinner away, because the command ends."""
        self._spinner.stop()

    @property
    def is_asking(self) -> bool:
        """Whether a question to the user is open."""
        return self._output.is_held

    def _tail(self, note: str, error: str) -> None:
        """Show a note of an error: the last lines of the agent's standard error, unless the error contains them."""
        heading, *lines = printable(note).split("\n")
        if self._shown_agent_lines or (len(lines) == 1 and lines[0].strip() in printable(error)):
            return
        more = len(lines) - TAIL
        heading = f"{heading.removesuffix(':')}{f' ({more} more with --stderr)' if more > 0 else ''}:"
        self.line(line_of((heading, "bold")))
        for line in lines[-TAIL:]:
            self.line(line_of((line.expandtabs(4), "dim"), wrap="crop"))

    def agent_line(self, text: str) -> None:
        """Show a line of the agent's standard error: unchanged in a pipe or a file."""
        self._shown_agent_lines = True
        is_terminal = self._streams.aside.is_terminal
        self.line(line_of((printable(text).expandtabs(4) if is_terminal else text, "dim")))

    def data(self, value: object) -> None:
        """Print the answer as data: JSON on one line."""
        self._begin("answer")
        self._out(json.dumps(value, ensure_ascii=False) + "\n")

    async def ended(self, session: RemoteSession, outcome: Outcome) -> None:
        """End the turn, and show its usage."""
        await self._finish()
        if self._shows_work:
            for line in usage_lines(outcome.usage, session.state.usage):
                self.line(line)

    async def failed(self, error: AccordError) -> None:
        """End the turn, and show the details of the error; its text is for the command's last line."""
        await self._finish()
        for note in getattr(error, "__notes__", ()):
            self._tail(note, str(error))

    async def _finish(self) -> None:
        """Finish the current line: the next output begins a new one."""
        self._spinner.stop()
        self._end_answer()
        self._end_thought()
        if self._shows_work:
            for line in self._work.rest():
                self.line(line)
        self.question_order.over()
        await self._output.room()

    @asynccontextmanager
    async def asking(self) -> AsyncGenerator[None]:
        """During a question: earlier output is shown first, and nothing is printed over the question."""
        await self.question_order.wait()
        text = self._spinner.text
        self._spinner.stop()
        self._end_rows()
        try:
            async with self._output.held():
                yield
        finally:
            self._newlines, self._block = 1, None
            self.waiting(text)

    def mark_prompt(self) -> None:
        """Begin the row in which the user types a prompt, at a terminal."""
        if self._streams.aside.is_terminal and sys.stdin is not None and sys.stdin.isatty():
            self._end_rows()
            self._aside("> ")
            self._newlines, self._block, self._is_marked = 1, None, True  # the user ends the row

    # Blocks

    def _begin(self, block: Block) -> None:
        """Begin a block of this kind: after a blank line where the answer and the work are on one terminal."""
        if self._is_marked:  # the user's row has no line end yet
            self._is_marked = False
            self._aside("\n")
        if self._block != block:
            before, self._block = self._block, block
            self._end_rows()
            apart = self._streams.together and (block == "answer" or before in ("answer", "note", None))
            if apart and self._newlines < 2:
                self._aside("\n")
        self._spinner.clear()

    def _end_rows(self) -> None:
        """End the row that the cursor is in."""
        self._end_thought()
        if self._streams.together:
            self._end_answer()

    def _end_answer(self) -> None:
        if self._half:
            self._put(self._half)
            self._half = ""
        if self._answer is not None:
            self._out(self._answer.add(self._cleaned.rest(), width(1)) + self._answer.rest(width(1)))
            self._answer.end_line()
        if not self._ends_line:
            self._out("\n")

    def _end_thought(self) -> None:
        rest = self._thought.add(self._cleaned_thought.rest(), self._aside_width)
        rest += self._thought.rest(self._aside_width)
        ends = "" if self._thought.is_at_start and not rest else "\n"
        if rest or ends:
            self._aside(self._streams.aside.painted("dim", rest) + ends)
        self._thought.end_line()

    def _is_at_start(self) -> bool:
        """Whether the spinner has a row of its own, and the terminal accepts output."""
        is_free = self._thought.is_at_start and (self._ends_line or not self._streams.together)
        return is_free and self._may_spin and self._output.unwritten == 0

    # Messages of the agent

    def _say(self, said: v1.ContentBlock) -> None:
        if not self._shows_answer:
            return
        if isinstance(said, v1.TextContent):
            text, self._half = whole_part(self._half, said.text)
            if text:
                self._put(text)
        elif self._shows_work:
            self._picture(said)

    def _put(self, text: str) -> None:
        """Write text of the answer: unchanged into a pipe or a file, wrapped on a terminal."""
        if not self._streams.together:
            self._out(text)
            return
        if self._block != "answer":
            text = text.lstrip("\n")  # there is a blank line already
        if not text:
            return
        self._begin("answer")
        self._out(text if self._answer is None else self._answer.add(self._cleaned.add(text), width(1)))

    def _flush_word(self) -> None:
        """Show an incomplete word, because nothing has come for a moment."""
        if self._answer is not None:
            self._out(self._answer.rest(width(1)))

    def _out(self, text: str) -> None:
        if not text:
            return
        self._spinner.clear()
        self._ends_line = text.endswith("\n")
        self._count(text)
        self._output.put(text.encode("utf-8", "replace"))

    def _think(self, text: str) -> None:
        if not self._shows_work or not text:
            return
        look = self._streams.aside
        if self._block != "thought":
            text = text.lstrip("\n")
            self._begin("thought")
            self._aside(look.painted("dim", "~ "))
            self._thought.begin(2)
        self._spinner.clear()
        shown = self._thought.add(self._cleaned_thought.add(text), self._aside_width)
        self._aside(look.painted("dim", shown))

    def _picture(self, block: v1.ContentBlock) -> None:
        look = self._streams.aside
        protocol = look.pictures
        picture = None
        if protocol is not None and isinstance(block, v1.ImageContent):
            picture = drawn(block, protocol, self._aside_width)
        if picture is None:
            self.line(line_of((placeholder(block), "dim")))
            return
        self._begin("work")
        self._aside(f"{picture}\n")

    # Where it goes

    def _aside(self, text: str) -> None:
        if text:
            self._spinner.clear()
            self._count(text)
            self._output.aside(text.encode("utf-8", "replace"))

    def _count(self, text: str) -> None:
        ended = len(text) - len(text.rstrip("\n"))
        self._newlines = min(2, self._newlines + ended if ended == len(text) else ended)

    @property
    def _aside_width(self) -> int:
        return width(2) if self._streams.aside.is_terminal else NO_WIDTH
