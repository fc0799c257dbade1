"""`Editor`: where prompts are written: history, completion, and what to do when `enter` is pressed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from accord_tools.tui.attachments import pasted_path
from accord_tools.tui.completion import NOTHING, Completion, Completions

NEW_LINE = ("ctrl+j", "shift+enter", "alt+enter")


class Editor(TextArea):
    """Where the user writes."""

    DEFAULT_CSS = """
    Editor { height: auto; min-height: 1; max-height: 10; border: none; padding: 0 1; scrollbar-size-vertical: 1;
             background: $surface; }
    Editor:focus { border: none; }
    Editor .text-area--cursor-line { background: $surface; }
    """

    class Submitted(Message):
        """A prompt is to be sent."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Completing(Message):
        """The list of completions has changed."""

    class Dropped(Message):
        """A file was dropped: its path was pasted."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class Edited(Message):
        """The text has changed."""

    def __init__(
        self,
        complete: Callable[[str], Completions],
        history: Sequence[str],
        offer: Callable[[events.Key | events.Paste], bool],
    ) -> None:
        """`offer` is asked about each key first, and returns whether somebody else takes it."""
        super().__init__(soft_wrap=True, compact=True, highlight_cursor_line=False, tab_behavior="focus")
        self.cursor_blink = False  # a timer that draws while nothing happens
        self._complete = complete
        self._offer = offer
        self.prompts = list(history)
        """Earlier prompts, the oldest first."""
        self._place: int | None = None
        """Where in the history the text is from; None for a text of its own."""
        self._unsent = ""
        self.found = NOTHING
        """What can be completed now."""
        self.chosen = 0
        """The entry of the list that is chosen."""

    # Text

    def set_text(self, text: str) -> None:
        """Replace the text, with the cursor at its end."""
        self.load_text(text)
        self.move_cursor(self.document.end)
        self._show(NOTHING)

    def take(self) -> str:
        """Take the text out."""
        text = self.text
        self.set_text("")
        self._place = None
        return text

    @property
    def before_cursor(self) -> str:
        """The text before the cursor."""
        row, column = self.cursor_location
        lines = [self.document.get_line(number) for number in range(row)]
        return "\n".join([*lines, self.document.get_line(row)[:column]])

    def remember(self, text: str) -> None:
        """Add a prompt to the history."""
        if text.strip() and self.prompts[-1:] != [text]:
            self.prompts.append(text)

    # Keys

    async def _on_key(self, event: events.Key) -> None:
        if self._offer(event) or self._handled(event):
            event.prevent_default()
            event.stop()
            return
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        self._offer(event)
        # Textual calls the method of the base class itself, unless the default is prevented.
        if (path := pasted_path(event.text)) is not None:
            event.prevent_default()
            event.stop()
            self.post_message(self.Dropped(path))

    def _handled(self, event: events.Key) -> bool:
        key = event.key
        if key in NEW_LINE:
            self.insert("\n")
            return True
        if key == "enter":
            self._enter()
            return True
        if key == "tab" and self.found.entries:
            self.accept(self.found.entries[self.chosen])
            return True
        if key == "escape" and self.found.entries:
            self._show(NOTHING)
            return True
        if key in ("up", "down"):
            return self._vertical(-1 if key == "up" else 1)
        return False

    def _enter(self) -> None:
        """Send; where a list is open whose first entry is not what was typed, take that entry first."""
        found = self.found
        if found.entries and not found.is_exact:
            self.accept(found.entries[self.chosen])
            return
        self._show(NOTHING)
        if self.text.strip():
            self.post_message(self.Submitted(self.take()))

    def _vertical(self, by: int) -> bool:
        """Move in the list, else in the history from the first or the last line."""
        if self.found.entries:
            self.chosen = (self.chosen + by) % len(self.found.entries)
            self.post_message(self.Completing())
            return True
        row = self.cursor_location[0]
        if (by < 0 and row > 0) or (by > 0 and row < self.document.line_count - 1):
            return False
        return self._browse(by)

    def _browse(self, by: int) -> bool:
        if self._place is None:
            if by > 0 or not self.prompts:
                return False
            self._unsent, self._place = self.text, len(self.prompts)
        place = self._place + by
        if place < 0:
            return True
        if place >= len(self.prompts):
            text, self._place = self._unsent, None
        else:
            text, self._place = self.prompts[place], place
        kept = self._place
        self.set_text(text)
        self._place = kept
        return True

    # Completion

    def on_text_area_changed(self, _: TextArea.Changed) -> None:
        self.post_message(self.Edited())

    def update_suggestion(self) -> None:
        """Look at what can be completed, in the same step as the edit, so that the next key meets the new list."""
        self._place = None
        self.refresh_completions()

    def refresh_completions(self) -> None:
        """Look again at what can be completed."""
        self._show(self._complete(self.before_cursor))

    def _show(self, found: Completions) -> None:
        if found.entries or self.found.entries:
            self.found, self.chosen = found, 0
            self.post_message(self.Completing())
        self.found = found

    def accept(self, entry: Completion) -> None:
        """Put an entry in the place of what was typed."""
        row, column = self.cursor_location
        self.replace(entry.text, (row, column - self.found.replaced), (row, column))
        self._show(self._complete(self.before_cursor) if entry.text.endswith("/") else NOTHING)
