"""`Block`: a part of the transcript that is drawn separately; the blocks of messages, tool calls and notes.

A block caches the strips of its drawing, for one width and one look. Only a block that has changed is drawn again, and
one that was never in sight is not drawn at all: its height is estimated until then.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len
from textual.strip import Strip

from accord import RemoteSubagent, Terminal, Unknown, v1
from accord.printable import label
from accord.services import command_of, repeats_command, typed_command
from accord.session import Message, ToolCallState
from accord.session.placeholders import placeholder
from accord_tools.presentation.command_output import last_lines, output_lines, shortened, shown_output
from accord_tools.presentation.diffs import DiffLine, FileDiff, side_by_side, unified
from accord_tools.presentation.highlight import highlighted_line, language_of
from accord_tools.presentation.markdown import GrowingMarkdown
from accord_tools.presentation.quantities import counted
from accord_tools.presentation.session_words import TOOL_SIGNS, shortened_path, tool_title
from accord_tools.presentation.styled_text import Paragraph, Row, Span, clean, clean_lines, plain
from accord_tools.tui.palette import Palette, all_rows, rows_of
from accord_tools.tui.picture_strips import Pictures, PictureStrip


@dataclass(frozen=True)
class TerminalView:
    """The present state of a terminal, whoever runs its command."""

    text: str
    """The output so far."""
    ending: str | None
    """How the command ended, in words; None while it runs."""
    is_good: bool
    """Whether the command has not failed."""
    command: str | None
    """The command, if it is known."""


@dataclass
class Look:
    """The settings for drawing blocks."""

    palette: Palette
    width: int
    tools_open: bool = False
    """Whether tool calls show all of their output."""
    thoughts_open: bool = False
    """Whether thoughts are shown as a whole."""
    folder: str = ""
    """The session's folder, from which files are named."""
    terminal: Callable[[str], TerminalView | None] = field(default=lambda _: None)
    """Finds a terminal by its id."""
    is_ascii: bool = False
    """Whether the terminal shows ASCII only."""
    pictures: Pictures = field(default_factory=Pictures)
    """The images of the transcript."""


class Block:
    """A part of the transcript."""

    opens_with = ""
    """The member of `Look` that decides whether all of its kind are open."""

    def __init__(self, entry: Any = None) -> None:
        self.entry = entry
        """Its entry of the timeline, in its present state."""
        self.is_open: bool | None = None
        """Whether the user has opened or folded it; None for the default."""
        self.is_chosen = False
        """Whether the block cursor is on it."""
        self._strips: list[Strip] | None = None
        self._estimate = 1

    @property
    def gap(self) -> bool:
        """Whether a blank row precedes it."""
        return True

    @property
    def terminal_ids(self) -> Sequence[str]:
        """The terminals that are shown in it."""
        return ()

    @property
    def height(self) -> int:
        """Return how many rows it takes, approximately until it was drawn."""
        return self._estimate if self._strips is None else len(self._strips)

    @property
    def is_drawn(self) -> bool:
        """Whether its strips are known."""
        return self._strips is not None

    @property
    def strips(self) -> Sequence[Strip]:
        """Return its drawn strips."""
        return self._strips or ()

    def changed(self) -> None:
        """Mark it for redrawing; until then it keeps its height."""
        self._estimate = self.height
        self._strips = None

    def resized(self) -> None:
        """Mark it for redrawing in another width or look."""
        self.changed()

    @property
    def is_partial(self) -> bool:
        """Whether only a part could be drawn at once, so that it is drawn again."""
        return False

    def draw(self, look: Look) -> Sequence[Strip]:
        """Return its strips, drawn if they are not cached."""
        if self._strips is None:
            strips = self._drawn(look)
            if self.is_chosen:
                strips = [_marked(strip, look) for strip in strips]
            self._strips = [Strip.blank(look.width, look.palette.base), *strips] if self.gap and strips else strips
        return self._strips

    def _drawn(self, look: Look) -> list[Strip]:
        return look.palette.strips(all_rows(self.paragraphs(look), look.width), look.width)

    def content(self, blocks: Sequence[object], look: Look) -> list[Strip]:
        """Return content that is not text: words, and images once they are drawn."""
        return look.pictures.strips(blocks, look.width, look.palette, self.changed, is_ascii=look.is_ascii)

    def paragraphs(self, look: Look) -> list[Paragraph]:
        """The text of the block."""
        raise NotImplementedError

    def update(self, entry: Any) -> None:
        """Show this state of the block's entry."""
        self.entry = entry
        self.changed()

    def opened(self, look: Look) -> bool:
        """Whether it is open: as the user has chosen for it, or for all of its kind."""
        return getattr(look, self.opens_with, False) if self.is_open is None else self.is_open

    def toggle(self, look: Look) -> None:
        """Open it, or fold it."""
        self.is_open = not self.opened(look)
        self.changed()

    def copied(self) -> str:
        """Return the text for copying the block."""
        return ""


def _marked(strip: Strip, look: Look) -> Strip:
    """A strip of the block that the cursor is on."""
    mark = look.palette.strip((("▌", "accent"),), 1)
    marked = Strip.join([mark, strip.crop(1)])
    return strip.over(marked) if isinstance(strip, PictureStrip) else marked


class NoteBlock(Block):
    """A message of the chat itself: a notice, an error, how a question was answered."""

    def __init__(self, title: str, text: str = "", style: str = "dim", symbol: str = "•") -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._style = style
        self._symbol = symbol

    def paragraphs(self, look: Look) -> list[Paragraph]:
        first: Row = ((f" {self._symbol} ", self._style),)
        rest: Row = (("   ", ""),)
        shown = [Paragraph([(clean(self._title), self._style)], first, rest)]
        return shown + [it.under(rest) for it in (plain(self._text, "dim") if self._text else ())]

    def copied(self) -> str:
        return f"{self._title}\n{self._text}".strip()


LONG_THOUGHT = 20_000
"""Characters at the end of an open thought that are shown."""
LONG_PROMPT = 12
"""Rows of a longer prompt that are shown, unless it is opened."""
OPEN_PROMPT = 1_000
"""Rows of an open prompt that are shown."""


class MessageBlock(Block):
    """A message of the conversation."""

    entry: Message

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self._estimate = 2 + len(message.text) // 80

    def copied(self) -> str:
        return self.entry.text


class AgentBlock(MessageBlock):
    """A message of the agent, as Markdown. The final part is drawn once."""

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self._growing = GrowingMarkdown()
        self._final: list[Strip] = []
        self._ends: list[int] = []
        """The number of strips up to the end of each final paragraph."""
        self._was: list[Paragraph] = []
        """The final paragraphs that were drawn."""

    def resized(self) -> None:
        super().resized()
        self._final, self._ends, self._was = [], [], []

    def _drawn(self, look: Look) -> list[Strip]:
        growing, palette, width = self._growing, look.palette, look.width
        growing.update(self.entry.text)
        same = self._unchanged()
        del self._ends[same:], self._was[same:]
        del self._final[self._ends[-1] if self._ends else 0 :]
        for paragraph in growing.final[same:]:
            rows = [(row, paragraph.fill) for row in rows_of(_indented(paragraph), width)]
            self._final += palette.strips(rows, width)
            self._ends.append(len(self._final))
            self._was.append(paragraph)
        tail = [_indented(paragraph) for paragraph in growing.tail]
        if self.entry.refused:
            tail.append(Paragraph([("   refused: the agent goes on without it", "warning")]))
        strips = [*self._final, *palette.strips(all_rows(tail, width), width)]
        others = [block for block in self.entry.content if not isinstance(block, v1.TextContent)]
        return strips + self.content(others, look)

    @property
    def is_partial(self) -> bool:
        return self._growing.is_behind

    def _unchanged(self) -> int:
        """Return how many final paragraphs were drawn already. Only the newest can differ: a fence that was closed."""
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
    """A prompt of the user."""

    def paragraphs(self, look: Look) -> list[Paragraph]:
        first: Row = (("❯", "accent user"), (" ", "user"))
        rest: Row = (("  ", "user"),)
        source = self.entry.text.strip("\n")
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
            for block in self.entry.content
            if not isinstance(block, v1.TextContent)
        ]
        if self.entry.refused:
            shown.append(
                Paragraph([("refused: the agent goes on without it", "warning user")], rest, rest, fill="user")
            )
        return shown


class ThoughtBlock(MessageBlock):
    """The agent's reasoning: its last line, or all of it."""

    opens_with = "thoughts_open"

    def paragraphs(self, look: Look) -> list[Paragraph]:
        is_open = self.opened(look)
        sign = "▾" if is_open else "▸"
        text = self.entry.text.strip()
        if not is_open:
            end = text[-4 * look.width :].rpartition("\n")[2]
            return [Paragraph([(label(end, look.width * 2), "dim italic")], ((f" {sign} ", "dim"),), wrap="cut")]
        rest: Row = (("   ", ""),)
        hidden = text.count("\n", 0, max(0, len(text) - LONG_THOUGHT))
        shown = f"… {hidden:,} lines before\n{text[-LONG_THOUGHT:]}" if len(text) > LONG_THOUGHT else text
        lines = [Paragraph([(line, "dim italic")], rest, rest) for line in clean_lines(shown)]
        return [lines[0]._replace(first=((f" {sign} ", "dim"),)), *lines[1:]]


FOLDED_DIFF, FOLDED_TEXT, FOLDED_TERMINAL, FOLDED_FAILURE = 12, 3, 6, 12
ASKED_DIFF = 40
"""Rows of a diff that is not done yet: the user may be asked about it."""
"""Rows of each kind that a folded call shows."""
OPEN_ROWS = 600
"""Rows of each kind that an open call shows."""
COMMAND = 400
"""Characters of a title, and of a command, in a call's heading."""
MOST_PARTS = 50
"""Parts of a call's content that are shown."""
WIDE = 90
"""Columns above which diffs are shown side by side."""

_QUOTED = re.compile(r"\s*(?:```\w*\n|`)?(?:\$ )?(.*?)(?:\n?```|`)?\s*", re.DOTALL)
"""A text that is only a command, perhaps quoted as Markdown."""
_QUIET = ("read", "search", "fetch", "think")
"""Kinds of tools whose output is only shown on demand."""
_PATCH_HEADERS = ("diff --git ", "index ", "--- ", "+++ ", "new file mode ", "deleted file mode ")
_BLANK: Row = (("     ", ""),)
_BAD: Row = (("   ┃ ", "bad"),)
"""The prefix of rows in the output of a failed call."""


class ToolBlock(Block):
    """A tool call."""

    opens_with = "tools_open"
    entry: ToolCallState

    def __init__(self, call: ToolCallState) -> None:
        super().__init__(call)
        self._diffs: dict[int, tuple[object, FileDiff]] = {}
        self._estimate = 3

    @property
    def terminal_ids(self) -> Sequence[str]:
        return [part.terminal_id for part in self.entry.content if isinstance(part, v1.Terminal)]

    @property
    def _command(self) -> str:
        """The command, as a person would type it; empty for a call that runs none."""
        command = command_of(self.entry)
        return "" if command is None else typed_command(command)

    def copied(self) -> str:
        parts = [self.entry.title, self.entry.text, *(diff.new_text for diff in self.entry.diffs)]
        return "\n".join(part for part in parts if part)

    def _drawn(self, look: Look) -> list[Strip]:
        content = [part.content for part in self.entry.content if isinstance(part, v1.Content)]
        return super()._drawn(look) + self.content([it for it in content if isinstance(it, v1.ImageContent)], look)

    def paragraphs(self, look: Look) -> list[Paragraph]:
        call = self.entry
        is_open = self.opened(look)
        shown = [self._heading(look, is_open=is_open)]
        if is_open and call.raw_input is not None and command_of(call) is None:
            shown += _part([Paragraph([(line, "dim")]) for line in _json(call.raw_input)], OPEN_ROWS)
        for number, part in enumerate(call.content[:MOST_PARTS]):
            match part:
                case v1.Diff():
                    shown += self._diff(number, part, look, is_open=is_open)
                case v1.Terminal(terminal_id=terminal_id):
                    shown += _terminal(look.terminal(terminal_id), is_open=is_open)
                case v1.Content(content=v1.TextContent(text=text)):
                    shown += self._text(text, is_open=is_open)
                case v1.Content(content=v1.ImageContent()):
                    pass
                case v1.Content(content=content):
                    shown.append(Paragraph([(placeholder(content), "dim")]).under(_BLANK))
                case v1.SessionReference(session_id=session_id):
                    shown.append(Paragraph([(f"[session {label(session_id, 60)}]", "dim")]).under(_BLANK))
                case Unknown(tag=tag):
                    shown.append(Paragraph([(f"[content of an unknown type: {label(tag, 60)}]", "dim")]).under(_BLANK))
                case _:  # a diff of version 2, whose classes are loaded with its first update
                    shown += _patch(part, look, OPEN_ROWS if is_open else FOLDED_DIFF)
        if (more := len(call.content) - MOST_PARTS) > 0:
            shown.append(Paragraph([(f"… {more:,} more parts", "dim")]).under(_BLANK))
        return shown

    def _heading(self, look: Look, *, is_open: bool) -> Paragraph:
        call = self.entry
        status, why = call.outcome(lambda terminal_id: _failure(look.terminal(terminal_id)))
        sign, style = TOOL_SIGNS.get(status, ("•", "dim"))
        title, line = tool_title(call, COMMAND), self._command
        title = label(line, COMMAND) if line and repeats_command(call.title, line) else title
        spans: list[Span] = [(title, "dim" if call.refused else "bad" if status == "failed" else "")]
        if line and label(line, COMMAND) != title:
            spans.append((f"  $ {label(line, COMMAND)}", "accent"))
        place = self._place(look)
        if place and place not in title:
            spans.append((f"  {place}", "dim"))
        if status in ("failed", "cancelled", "paused"):
            spans.append((f"  {status}{f', {why}' if why else ''}", style))
        if not is_open and (more := self._hidden()):
            spans.append((f"  {more}", "dim"))
        return Paragraph(spans, ((f" {sign} ", style),), (("   ", ""),))

    def _hidden(self) -> str:
        """Describe what a folded call hides, in a word."""
        if self.entry.kind in _QUIET and self.entry.status != "failed" and (text := self.entry.text):
            lines = text.strip("\n").count("\n") + 1
            return counted(lines, "line")
        return ""

    def _place(self, look: Look) -> str:
        """The file that it is about."""
        if not self.entry.locations or self.entry.diffs:
            return ""
        first = self.entry.locations[0]
        path = shortened_path(first.path, look.folder)
        line = f":{first.line}" if first.line else ""
        more = f" and {len(self.entry.locations) - 1} more" if len(self.entry.locations) > 1 else ""
        return f"{label(path, 100)}{line}{more}"

    def _text(self, text: str, *, is_open: bool) -> list[Paragraph]:
        failed, said = self.entry.status == "failed", _QUOTED.fullmatch(text)
        if said is not None and said[1] == self._command:
            return []
        if not is_open and self.entry.kind in _QUIET and not failed:
            return []
        if failed and not is_open:
            text, before = last_lines(text.strip("\n"), FOLDED_FAILURE)
            return [line.under(_BAD) for line in (*_before(before), *shown_output(text, FOLDED_FAILURE))]
        return [line.under(_BLANK) for line in shown_output(text, OPEN_ROWS if is_open else FOLDED_TEXT)]

    def _diff(self, number: int, diff: v1.Diff, look: Look, *, is_open: bool) -> list[Paragraph]:
        known = self._diffs.get(number)
        if known is None or known[0] is not diff:
            known = self._diffs[number] = (diff, FileDiff(diff.old_text, diff.new_text))
        change = known[1]
        path = label(shortened_path(diff.path, look.folder), 200)
        heading = Paragraph([(path, "bold"), *change.summary], (("   ± ", "dim"),), _BLANK)
        most = OPEN_ROWS if is_open else FOLDED_DIFF if self.entry.is_finished else ASKED_DIFF
        drawn = drawn_diff(change.lines, diff.path, look.width - 5, most + 1)
        return [heading, *_part(drawn, most, len(change.lines))]


SUBAGENT_TEXT = 20_000
"""Characters at the end of a subagent's text that are shown."""


def subagent_call(subagent: RemoteSubagent) -> ToolCallState:
    """Describe a subagent as a tool call: its text, what it does now, and how it ended."""
    title = ": ".join(it for it in (subagent.title or subagent.id, subagent.description) if it)
    is_idle, failed = subagent.status == "idle", subagent.error is not None or subagent.stop_reason == "error"
    ended = "failed" if failed else "cancelled" if subagent.stop_reason == "cancelled" else "completed"
    running = [it.title for it in subagent.state.tool_calls.values() if not it.is_finished and not is_idle]
    error = [] if subagent.error is None else [subagent.error.message]
    text = "\n".join(filter(None, [subagent.text[-SUBAGENT_TEXT:].strip(), *running[-1:], *error]))
    content = [v1.Content(v1.TextContent(text))] if text else []
    return ToolCallState(
        v1.ToolCallId(subagent.id), f"subagent {title}", "other", ended if is_idle else "in_progress", content
    )


class SubagentBlock(ToolBlock):
    """A subagent, drawn as a tool call."""

    def __init__(self, subagent: RemoteSubagent) -> None:
        super().__init__(subagent_call(subagent))
        self._subagent: RemoteSubagent | None = subagent

    def settle(self) -> None:
        """Keep the present state, and no longer the subagent's conversation."""
        if self._subagent is not None:
            self.update(subagent_call(self._subagent))
            self._subagent = None

    def paragraphs(self, look: Look) -> list[Paragraph]:
        if self._subagent is not None:
            self.entry = subagent_call(self._subagent)
        return super().paragraphs(look)

    def _text(self, text: str, *, is_open: bool) -> list[Paragraph]:
        text, before = last_lines(text, OPEN_ROWS if is_open else FOLDED_TERMINAL)
        return [line.under(_BLANK) for line in (*_before(before), *shown_output(text, OPEN_ROWS))]


def drawn_diff(lines: Sequence[DiffLine], path: str, width: int, most: int = OPEN_ROWS) -> list[Paragraph]:
    """The first lines of a diff for this many columns, its unchanged lines in the colours of the file's language."""
    language = language_of(path)
    coloured = [
        line._replace(spans=highlighted_line(line.spans[0][0], language)) if line.sign == " " and line.spans else line
        for line in lines[:most]
    ]
    is_mixed = any(line.sign == "-" for line in lines)
    return side_by_side(coloured, width, cell_len) if width >= WIDE and is_mixed else unified(coloured)


def _part(lines: Sequence[Paragraph], most: int, count: int = 0) -> list[Paragraph]:
    """Return some of these lines, indented, and how many more there are; `count` if not all are given."""
    return [line.under(_BLANK) for line in shortened(lines, most, count)]


def _patch(diff: Any, look: Look, most: int) -> list[Paragraph]:
    """Return a diff of version 2: the kind of change of each file, and the lines of its patch."""
    first: Row = (("   ± ", "dim"),)
    done = [line.replace(f" {look.folder}{os.sep}", " ") if look.folder else line for line in diff.summary[:most]]
    shown = [Paragraph([(label(line, 300), "bold")], first, _BLANK) for line in done]
    if diff.patch is None:
        return shown
    lines = [line for line in diff.patch.text[: most * 2_000].split("\n") if not line.startswith(_PATCH_HEADERS)]
    fills = {"+": "added", "-": "removed"}
    text = "\n".join(lines).rstrip("\n")
    return [*shown, *_part([it._replace(fill=fills.get(it.text[:1], "")) for it in plain(text, wrap="fold")], most)]


def _failure(terminal: TerminalView | None) -> str | None:
    """Describe how a command failed; None for another one."""
    return None if terminal is None or terminal.is_good else terminal.ending


def _terminal(terminal: TerminalView | None, *, is_open: bool) -> list[Paragraph]:
    if terminal is None:
        return []
    folded, bar = (FOLDED_TERMINAL, _BLANK) if terminal.is_good else (FOLDED_FAILURE, _BAD)
    text, before = last_lines(terminal.text, OPEN_ROWS if is_open else folded)
    shown = [*_before(before), *output_lines(text, OPEN_ROWS)]
    if terminal.ending is not None:
        shown.append(Paragraph([(terminal.ending, "dim" if terminal.is_good else "bad")]))
    return [line.under(bar) for line in shown]


def _before(count: int) -> list[Paragraph]:
    """Return a line for this many omitted lines."""
    return [Paragraph([(f"… {count:,} lines before", "dim")])] if count else []


class CommandBlock(Block):
    """A command of the user, with its output."""

    opens_with = "tools_open"

    def __init__(self, command: str, terminal: Terminal) -> None:
        super().__init__()
        self._command = command
        self._terminal = terminal

    @property
    def terminal_ids(self) -> Sequence[str]:
        return [self._terminal.id]

    def paragraphs(self, look: Look) -> list[Paragraph]:
        terminal = look.terminal(self._terminal.id)
        runs = terminal is not None and terminal.ending is None
        hint = [("  esc stops it", "dim")] if runs else []
        lines = plain(self._command, "accent")
        first = lines[0]._replace(spans=[*lines[0].spans, *hint], first=((" ! ", "accent"),), rest=(("   ", ""),))
        return [first, *(it.under((("   ", ""),)) for it in lines[1:]), *_terminal(terminal, is_open=self.opened(look))]

    def copied(self) -> str:
        return f"{self._command}\n{self._terminal.text}".rstrip()


def _json(value: Any) -> Iterator[str]:
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    for paragraph in plain(text[:20_000]):
        yield paragraph.text
