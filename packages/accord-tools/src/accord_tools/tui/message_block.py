"""The blocks of messages: what the user sent, what the agent says, what it thinks."""

from __future__ import annotations

from textual.strip import Strip

from accord import v1
from accord.printable import label
from accord.session import Entry, Message
from accord.session.placeholders import placeholder
from accord_tools.presentation.markdown import GrowingMarkdown
from accord_tools.presentation.styled_text import Paragraph, Row, clean_lines, plain
from accord_tools.tui.block import Block, Look
from accord_tools.tui.palette import all_rows, rows_of

THOUGHT_ROWS = 1
"""Rows of a folded thought."""
LONG_THOUGHT = 20_000
"""Characters at the end of an open thought that are shown."""
LONG_PROMPT = 12
"""Rows of a prompt that are shown of a longer one, unless it is opened."""
OPEN_PROMPT = 1_000
"""Rows of an open prompt that are shown."""


class MessageBlock(Block):
    """A message of the conversation."""

    def __init__(self, message: Message) -> None:
        super().__init__()
        self._message = message
        self.estimate(len(message.text), 80)

    def update(self, entry: Entry) -> None:
        assert isinstance(entry, Message)
        self._message = entry
        self.changed()

    def copied(self) -> str:
        return self._message.text


class AgentBlock(MessageBlock):
    """A message of the agent, as Markdown. What is final is drawn once."""

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self._growing = GrowingMarkdown()
        self._final: list[Strip] = []
        self._ends: list[int] = []
        """For each final paragraph, how many strips there are up to its end."""
        self._was: list[Paragraph] = []
        """The final paragraphs that were drawn."""

    def resized(self) -> None:
        super().resized()
        self._final, self._ends, self._was = [], [], []

    def _drawn(self, look: Look) -> list[Strip]:
        growing, palette, width = self._growing, look.palette, look.width
        growing.update(self._message.text)
        same = self._unchanged()
        del self._ends[same:], self._was[same:]
        del self._final[self._ends[-1] if self._ends else 0 :]
        for paragraph in growing.final[same:]:
            rows = [(row, paragraph.fill) for row in rows_of(_indented(paragraph), width)]
            self._final += palette.strips(rows, width)
            self._ends.append(len(self._final))
            self._was.append(paragraph)
        tail = [_indented(paragraph) for paragraph in growing.tail]
        if self._message.refused:
            tail.append(Paragraph([("   refused: the agent goes on without it", "warning")]))
        strips = [*self._final, *palette.strips(all_rows(tail, width), width)]
        others = [block for block in self._message.content if not isinstance(block, v1.TextContent)]
        return strips + self.content(others, look)

    @property
    def is_partial(self) -> bool:
        return self._growing.is_behind

    def _unchanged(self) -> int:
        """How many final paragraphs are those that were drawn. Only the newest can differ: a fence that was closed."""
        final, was = self._growing.final, self._was
        same = min(len(final), len(was))
        if same and final[0] is not was[0]:
            return 0
        while same and final[same - 1] is not was[same - 1]:
            same -= 1
        return same


def _indented(paragraph: Paragraph) -> Paragraph:
    return paragraph.under(((" ", ""),))


class PromptBlock(MessageBlock):
    """What the user sent."""

    def paragraphs(self, look: Look) -> list[Paragraph]:
        first: Row = (("❯", "accent user"), (" ", "user"))
        rest: Row = (("  ", "user"),)
        source = self._message.text.strip("\n")
        most = OPEN_PROMPT if self.is_open else LONG_PROMPT
        text = plain("\n".join(source.split("\n", most + 1)[: most + 1]), "user")
        cut = source.count("\n") + 1 - most
        if cut > 1:
            text = [*text[:most], Paragraph([(f"… {cut:,} more lines", "dim user")])]
        shown = [
            line._replace(first=rest if number else first, rest=rest, fill="user") for number, line in enumerate(text)
        ]
        shown += [
            Paragraph([(placeholder(block, look.folder), "dim user")], rest, rest, fill="user")
            for block in self._message.content
            if not isinstance(block, v1.TextContent)
        ]
        if self._message.refused:
            shown.append(
                Paragraph([("refused: the agent goes on without it", "warning user")], rest, rest, fill="user")
            )
        return shown

    def toggle(self, look: Look) -> None:
        self.is_open = not self.is_open
        self.changed()


class ThoughtBlock(MessageBlock):
    """What the agent thinks aloud: its last line, or all of it."""

    def paragraphs(self, look: Look) -> list[Paragraph]:
        is_open = look.thoughts_open if self.is_open is None else self.is_open
        sign = "▾" if is_open else "▸"
        text = self._message.text.strip()
        if not is_open:
            end = text[-4 * look.width :].rpartition("\n")[2]
            return [Paragraph([(label(end, look.width * 2), "dim italic")], ((f" {sign} ", "dim"),), wrap="cut")]
        rest: Row = (("   ", ""),)
        hidden = text.count("\n", 0, max(0, len(text) - LONG_THOUGHT))
        shown = f"… {hidden:,} lines before\n{text[-LONG_THOUGHT:]}" if len(text) > LONG_THOUGHT else text
        lines = [Paragraph([(line, "dim italic")], rest, rest) for line in clean_lines(shown)]
        return [lines[0]._replace(first=((f" {sign} ", "dim"),)), *lines[1:]]

    def toggle(self, look: Look) -> None:
        self.is_open = not (look.thoughts_open if self.is_open is None else self.is_open)
        self.changed()
