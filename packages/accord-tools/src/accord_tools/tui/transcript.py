"""`Transcript`: the conversation, drawn line by line from blocks. One widget, however long the conversation is.

    SessionState.timeline ─┐
    notes, questions      ─┴▶ BlockList.sync ─▶ draw: changed blocks in sight ─▶ render_line(y)

A change only requests a flush; flushes come one at a time, and rest at least three times as long as one takes with its
painting, so that drawing never takes more than a quarter of a core. Text that nobody can read, because half of the
screen passes between two flushes, is drawn seven times a second. Nothing is scheduled while nothing changes.

Only blocks in sight are drawn; the height of others is estimated. At the end of the conversation the rows are
counted from below, so an estimate above never moves what is in sight; elsewhere the first row in sight stays.

`BlockList` updates the blocks: an entry of the timeline is a new value exactly if it has changed, so comparing
identities finds the blocks to draw again. The chat's own notes are between the entries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Region, Size
from textual.message import Message as Event
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Label

from accord.session import Entry, ToolCallState
from accord_tools.pictures.terminal_graphics import NO_GRAPHICS, Graphics
from accord_tools.tui.bars import welcome
from accord_tools.tui.block import (
    AgentBlock,
    Block,
    Look,
    PromptBlock,
    ThoughtBlock,
    ToolBlock,
)
from accord_tools.tui.palette import Palette, all_rows, palette_of
from accord_tools.tui.picture_strips import Pictures, PictureStrip
from accord_tools.tui.widgets import Debounce, Redrawn

if TYPE_CHECKING:
    from accord_tools.tui.chat_conversation import Conversation

_SPEAKERS: dict[str, type[Block]] = {
    "user": PromptBlock,
    "agent": AgentBlock,
    "thought": ThoughtBlock,
}


def _kind_of(entry: Entry) -> Any:
    """The class of the block that shows an entry."""
    return ToolBlock if isinstance(entry, ToolCallState) else _SPEAKERS[entry.speaker]


class BlockList:
    """The blocks of one conversation, in order."""

    def __init__(self, conversation: Conversation) -> None:
        self.blocks: list[Block] = []
        self._conversation = conversation
        self._entries: tuple[Entry, ...] = ()
        self._of_entries: list[Block] = []
        self._forgotten = 0
        self._notes = 0
        """How many notes of the conversation are shown."""

    def sync(self) -> None:
        """Update the blocks to the state."""
        state = self._conversation.state
        entries, forgotten = state.timeline, state.forgotten
        if len(entries) + forgotten < len(self._entries) + self._forgotten:
            self._clear()
        if (dropped := min(forgotten - self._forgotten, len(self._of_entries))) > 0:
            self._drop(dropped)
        self._forgotten = forgotten
        if entries is not self._entries:
            for place, (old, new) in enumerate(zip(self._entries, entries, strict=False)):
                if old is not new:
                    self._update(place, new)
            for place in range(len(self._entries), len(entries)):
                self._add_notes(forgotten + place)
                block: Block = _kind_of(entries[place])(entries[place])
                self.blocks.append(block)
                self._of_entries.append(block)
            self._entries = entries
        self._add_notes(None)
        for terminal_id in self._conversation.take_changed_terminals():
            self._terminal_changed(terminal_id)

    def _update(self, place: int, entry: Entry) -> None:
        block = self._of_entries[place]
        if isinstance(block, _kind_of(entry)):
            block.update(entry)
        else:
            other = _kind_of(entry)(entry)
            self.blocks[self.blocks.index(block)] = self._of_entries[place] = other

    def _add_notes(self, before: int | None) -> None:
        """Add the notes that came before an entry, or all."""
        notes = self._conversation.notes
        while self._notes < len(notes) and (before is None or notes[self._notes].place <= before):
            self.blocks.append(notes[self._notes].block)
            self._notes += 1

    def _drop(self, count: int) -> None:
        gone = set(map(id, self._of_entries[:count]))
        self.blocks = [block for block in self.blocks if id(block) not in gone]
        del self._of_entries[:count]
        self._entries = self._entries[count:]

    def _clear(self) -> None:
        self.blocks, self._of_entries, self._entries, self._notes, self._forgotten = [], [], (), 0, 0

    def _terminal_changed(self, terminal_id: str) -> None:
        for block in reversed(self.blocks):
            if terminal_id in block.terminal_ids:
                block.changed()
                return


def _looks_like(old: Strip | None, new: Strip | None) -> bool:
    """Whether a row needs no drawing; an image is more than its cells."""
    return old is new or (old == new and not isinstance(new, PictureStrip))


FRAME, SKIMMED = 1 / 20, 1 / 7
"""Seconds between two flushes at least, and while half of the screen passes between them."""
SHARE = 3
"""How many times as long as a flush and its painting take the next one waits."""


class Transcript(Redrawn, ScrollView, can_focus=False):
    """The transcript of one conversation."""

    DEFAULT_CSS = """
    Transcript { overflow-y: scroll; overflow-x: hidden; scrollbar-size-vertical: 1; height: 1fr; }
    """

    def __init__(self, conversation: Conversation, *, is_ascii: bool = False, graphics: Graphics = NO_GRAPHICS) -> None:
        super().__init__()
        self.conversation = conversation
        self.flushes = 0
        """How often changes were drawn."""
        self.drawn = 0
        """How many blocks were drawn."""
        self._look = Look(Palette({}), 80, is_ascii=is_ascii, pictures=Pictures(graphics, self.mark))
        self._list = BlockList(conversation)
        self._starts: list[int] = [0]
        """The first row of each block, and at the end the number of all rows."""
        self.follows = True
        """Whether the end of the conversation is in sight and stays there."""
        self.cursor: Block | None = None
        """The block with the cursor."""
        self._sought = ""
        """The text that the user looks for."""
        self._hit = 0
        self._shown: tuple[float, list[Strip | None]] = 0.0, []
        """The place and the rows that were in sight at the last flush."""
        self._partial: list[Block] = []
        """Blocks of which only a part was drawn."""
        self._drawing = Debounce(self, self.flush)
        self._rest = FRAME
        self._end: Callable[[], None] = lambda: None

    # Life

    def on_mount(self) -> None:
        self._take_theme()
        self._end = self.conversation.on_change(self.mark)
        self.mark()

    def on_unmount(self) -> None:
        self._end()

    def _take_theme(self) -> None:
        conversation = self.conversation
        self._look.palette = palette_of(self)
        self._look.folder = str(conversation.folder)
        self._look.terminal = conversation.terminal

    def theme_changed(self) -> None:
        """Draw everything in another theme."""
        self._take_theme()
        self._redraw()

    def send_images_again(self) -> None:
        """Draw and send all images again."""
        self._look.pictures.clear()
        self._redraw()

    def on_resize(self, _: events.Resize) -> None:
        if self._width != self._look.width:
            self._look.width = self._width
            for block in self._blocks:
                block.resized()
        self.flush()

    @property
    def _blocks(self) -> list[Block]:
        return self._list.blocks

    @property
    def _width(self) -> int:
        return max(10, self.scrollable_content_region.width or self.size.width)

    # Changes

    def mark(self) -> None:
        """Request that changes be drawn soon."""
        if self.is_mounted:
            self._drawing.ask(self._rest)

    def flush(self) -> None:
        """Draw the changes."""
        self._drawing.cancel()
        if not self.size.height:
            return
        began = perf_counter()
        self.flushes += 1
        self._look.width = self._width
        for block in self._partial:
            block.changed()
        self._partial.clear()
        self._list.sync()
        if self.cursor not in self._blocks:
            self.cursor = None
        self._place()
        now = [self._strip_at(y + round(self.scroll_y)) for y in range(self.size.height)]
        (place, shown), self._shown = self._shown, (self.scroll_y, now)
        if self._blocks and place == self.scroll_y and len(shown) == len(now):
            pairs = enumerate(zip(shown, now, strict=True))
            rows = [Region(0, y, self.size.width, 1) for y, (old, new) in pairs if not _looks_like(old, new)]
        else:
            rows = [self.size.region]
        if rows:
            self.refresh(*rows)
        is_skimmed = abs(self.scroll_y - place) > self.size.height / 2
        self.call_after_refresh(self._painted, began, SKIMMED if is_skimmed else FRAME)

    def _painted(self, began: float, least: float) -> None:
        self._rest = max(least, SHARE * (perf_counter() - began))

    # Where everything is

    def _place(self) -> None:
        """Draw the blocks in sight, count the rows, and scroll to where the reader is."""
        height = self.size.height
        if self.follows:
            left, place = height, len(self._blocks)
            while place and left > 0:
                place -= 1
                left -= self._draw(self._blocks[place])
            self._count()
            target = max(0, self._starts[-1] - height)
        else:
            top = min(int(self.scroll_y), max(0, self._starts[-1] - 1))
            place = max(0, min(bisect_right(self._starts, top) - 1, len(self._blocks) - 1))
            offset = top - self._starts[place] if self._blocks else 0
            left, number = height + offset, place
            while number < len(self._blocks) and left > 0:
                left -= self._draw(self._blocks[number])
                number += 1
            self._count()
            offset = min(offset, max(0, self._blocks[place].height - 1)) if self._blocks else 0
            target = min(self._starts[place] + offset, max(0, self._starts[-1] - height))
        size = Size(self._width, max(self._starts[-1], 1))
        if size != self.virtual_size:
            self.set_reactive(cast("Any", Widget.virtual_size), size)  # without a new layout of the screen
            self.vertical_scrollbar.window_virtual_size = size.height
        if round(self.scroll_y) != target:
            self.scroll_to(y=target, animate=False, immediate=True, force=True)

    def _draw(self, block: Block) -> int:
        if not block.is_drawn:
            self.drawn += 1
            height = len(block.draw(self._look))
            if block.is_partial:
                self._partial.append(block)
                self.mark()
            return height
        return block.height

    def _count(self) -> None:
        self._starts = list(accumulate((block.height for block in self._blocks), initial=0))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) == round(new_value) or not self._blocks:
            return
        self.follows = round(new_value) >= self._starts[-1] - self.size.height
        top, bottom = round(new_value), round(new_value) + self.size.height
        first = max(0, bisect_right(self._starts, top) - 1)
        last = bisect_right(self._starts, bottom)
        if any(not block.is_drawn for block in self._blocks[first:last]):
            self.call_later(self.flush)

    def go_to_end(self) -> None:
        """Show the end of the conversation, and follow it."""
        self.follows = True
        self.flush()

    # Drawing

    def render_lines(self, crop: Region) -> list[Strip]:
        # Textual's own way makes several strips of each row, for borders and links, which are not here.
        background, filters = self.background_colors[1], self.get_line_filters()
        strips: list[Strip] = []
        for y in crop.line_range:
            source = self._strip_at(y + round(self.scroll_y))
            strip = self._shown_strip(y)
            for each in filters:
                strip = strip.apply_filter(each, background)
            strip = strip.crop_extend(crop.x, crop.right, self._look.palette.base)
            strips.append(source.over(strip) if crop.x == 0 and isinstance(source, PictureStrip) else strip)
        return strips

    def render_line(self, y: int) -> Strip:
        # Textual looks up here what the mouse selects; what is painted does not need the offsets.
        return self._shown_strip(y).apply_offsets(0, y + round(self.scroll_y))

    def _shown_strip(self, y: int) -> Strip:
        """Return a row of the screen, with hits and the selection highlighted."""
        row = y + round(self.scroll_y)
        strip = self._strip_at(row)
        if strip is None and not self._blocks:
            strip = self._welcome_strip(y)
        if strip is None:
            return Strip.blank(self.size.width, self._look.palette.base)
        if self._sought:
            strip = self._with_hits(strip)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(row)) is not None:
            strip = _selected(strip, span, self.screen.get_component_rich_style("screen--selection"))
        return strip

    def _strip_at(self, row: int) -> Strip | None:
        """Return the strip of a row of the conversation; None if there is none."""
        if row >= self._starts[-1]:
            return None
        place = bisect_right(self._starts, row) - 1
        strips = self._blocks[place].strips
        line = row - self._starts[place]
        return strips[line] if line < len(strips) else None

    def _welcome_strip(self, y: int) -> Strip | None:
        """Return a row of the text of an empty conversation."""
        rows = all_rows(welcome(self.conversation), self._width)
        row = y - max(0, (self.size.height - len(rows)) // 3)
        return self._look.palette.strip(rows[row][0], self._width) if 0 <= row < len(rows) else None

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        lines: list[str] = []
        for block in self._blocks:
            lines += [strip.text.rstrip() for strip in block.strips] if block.is_drawn else [""] * block.height
        return selection.extract("\n".join(lines)), "\n"

    @property
    def text(self) -> str:
        """Return the drawn text, without colours; blocks that were never in sight are left out."""
        return "\n".join(strip.text.rstrip() for block in self._blocks for strip in block.strips)

    # Folding, and the cursor

    def _redraw(self) -> None:
        for block in self._blocks:
            block.resized()
        self.flush()

    def toggle(self, kind: str) -> None:
        """Open all blocks of a kind, by a member of `Look`, or fold them."""
        setattr(self._look, kind, not getattr(self._look, kind))
        for block in self._blocks:
            block.is_open = None
        self._redraw()

    def move_cursor(self, by: int) -> None:
        """Move the block cursor up or down; the first time it goes to the last block."""
        if not self._blocks:
            return
        place = last = len(self._blocks) - 1
        if self.cursor in self._blocks:
            place = max(0, min(last, self._blocks.index(self.cursor) + by))
        self.choose(self._blocks[place])
        start, end = self._starts[place], self._starts[place + 1]
        self.scroll_to_region(
            Region(0, start, 1, min(end - start, self.size.height)), animate=False, immediate=True, force=True
        )

    def choose(self, block: Block | None) -> None:
        """Set the block cursor, or take it away."""
        for one in (self.cursor, block):
            if one is not None:
                one.is_chosen = one is block
                one.changed()
        self.cursor = block
        self.follows = self.follows and block is None
        self.flush()

    def toggle_block(self, block: Block) -> None:
        """Open a block, or fold it."""
        block.toggle(self._look)
        self.follows = False if block is not self._blocks[-1] else self.follows
        self.flush()

    def on_click(self, event: events.Click) -> None:
        if self.text_selection is not None or event.chain > 1:
            return
        row = event.y + round(self.scroll_y)
        if row < self._starts[-1] and self._blocks:
            self.toggle_block(self._blocks[bisect_right(self._starts, row) - 1])

    def find(self, text: str, by: int = 0) -> tuple[int, int]:
        """Highlight this text, and go to its last hit, or `by` hits from the present one; returns its number and the
        count.

        An empty text ends it.
        """
        is_new = text != self._sought
        self._sought = text
        wanted = text.casefold()
        hits = [
            (block, number)
            for block in self._blocks
            if wanted
            for number in range(block.copied().casefold().count(wanted))
        ]
        self._hit = len(hits) - 1 if is_new else (self._hit + by) % max(1, len(hits))
        if hits:
            self._go_to_hit(*hits[self._hit], wanted)
        self.refresh()
        return (self._hit + 1 if hits else 0), len(hits)

    def _go_to_hit(self, block: Block, number: int, wanted: str) -> None:
        """Scroll to a hit of a block; one that is folded, or broken over two rows, is where its block begins."""
        self.follows = False
        strips = block.draw(self._look)
        self._count()
        rows = [row for row, strip in enumerate(strips) for _ in range(strip.text.casefold().count(wanted))]
        row = self._starts[self._blocks.index(block)] + (rows[number] if number < len(rows) else 0)
        self.virtual_size = Size(self._width, max(self._starts[-1], 1))
        top = max(0, min(row - self.size.height // 2, self._starts[-1] - self.size.height))
        self.scroll_to(y=top, animate=False, immediate=True, force=True)

    def _with_hits(self, strip: Strip) -> Strip:
        """Return a strip with the hits highlighted."""
        wanted, text = self._sought.casefold(), strip.text.casefold()
        place = text.find(wanted) if len(text) == len(strip.text) else -1
        while place >= 0:
            start, end = cell_len(strip.text[:place]), cell_len(strip.text[: place + len(wanted)])
            strip = _selected(strip, (start, end), self._look.palette.style("reverse"))
            place = text.find(wanted, place + len(wanted))
        return strip


class FindBar(Horizontal):
    """For typing the text to find; hits are highlighted and counted with each letter."""

    DEFAULT_CSS = """
    FindBar { height: 1; display: none; }
    FindBar Input, FindBar Input:focus { border: none; height: 1; padding: 0; width: 1fr; background: $surface; }
    FindBar Label { padding: 0 1; }
    """

    @dataclass
    class Sought(Event):
        """Another text or hit is requested; no text ends it."""

        text: str
        by: int

    def compose(self) -> ComposeResult:
        yield Label("Find", id="find-label")
        yield Input(placeholder="up and down: other hits, esc: close")
        yield Label("", id="find-count")

    def open(self) -> None:
        """Show it, and have the user type."""
        self.display = True
        self.query_one(Input).focus()
        self._seek(0)

    def count(self, number: int, many: int) -> None:
        """Show which hit this is, of how many."""
        is_asked = bool(self.query_one(Input).value)
        self.query_one("#find-count", Label).update(f"{number} of {many}" if many else "no hit" if is_asked else "")

    def on_input_changed(self, _: Input.Changed) -> None:
        self._seek(0)

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            self.display = False
            self.post_message(self.Sought("", 0))
        elif event.key in ("up", "down", "enter"):
            self._seek(1 if event.key == "down" else -1)
        else:
            return
        event.stop()
        event.prevent_default()

    def _seek(self, by: int) -> None:
        self.post_message(self.Sought(self.query_one(Input).value, by))


def _selected(strip: Strip, span: tuple[int, int], style: Style) -> Strip:
    start, end = span
    end = strip.cell_length if end < 0 else end
    parts = [strip.crop(0, start), strip.crop(start, end).apply_style(style), strip.crop(end)]
    return Strip.join(parts)
