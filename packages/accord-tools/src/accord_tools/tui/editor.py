"""`Editor`: for writing prompts: history, completion, and the action of `enter`.

Commands after `/` and files after `@` can be completed. The list is made in the same step as the key that opens it, so
a quick `enter` never takes the first entry of an earlier list. An exact name comes before all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from accord_tools.tui.attachments import pasted_path

MOST, FILES = 200, 50
"""Entries of the list, and files among them."""
SEARCHED = 20_000
"""Paths that are searched for letters with others between them."""

_COMMAND = re.compile(r"/([^\s/]*)$")
_MENTION = re.compile(r"(?<![\w@])@(\"[^\"\n]*|[^\s\"@]*)$")


class Completion(NamedTuple):
    """One entry: its text, its description, and the replacement for the typed text."""

    label: str
    about: str
    text: str


class Completions(NamedTuple):
    """The entries for the text before the cursor, and how much of it they replace."""

    entries: Sequence[Completion]
    replaced: int
    """How many characters before the cursor an entry replaces."""
    is_exact: bool = False
    """Whether the typed text is the first entry already."""


NOTHING = Completions((), 0)
_PARTS = (
    Completion("diff", "the changes of the working tree", "@diff "),
    Completion("out", "the output of the latest command with !", "@out "),
)


def completions(before: str, commands: Sequence[tuple[str, str]], paths: FileList) -> Completions:
    """Return the entries for the text before the cursor. `commands` are names and descriptions."""
    if "\n" not in before and (found := _COMMAND.fullmatch(before)) is not None:
        return _of_commands(found[1], commands)
    if (found := _MENTION.search(before)) is not None:
        typed = found[1].removeprefix('"')
        entries = [it for it in _PARTS if it.label.startswith(typed) and found[0][1:2] != '"']
        entries += [_of_path(path) for path in paths.matching(typed, FILES)]
        # An entry that was typed as a whole is sent at once; one of a folder continues.
        return Completions(entries, len(found[0]), bool(entries) and entries[0].text.rstrip() == found[0])
    return NOTHING


def _of_commands(typed: str, commands: Sequence[tuple[str, str]]) -> Completions:
    """Return the commands that fit: the exact name first, then those that begin with the text, then the others."""
    wanted = typed.casefold()
    names = [(name.casefold(), name, about) for name, about in commands]
    fitting = [it for it in names if wanted in it[0]]
    fitting.sort(key=lambda it: (it[0] != wanted) + (not it[0].startswith(wanted)))
    entries = [Completion(f"/{name}", about, f"/{name} ") for _, name, about in fitting[:MOST]]
    return Completions(entries, len(typed) + 1, bool(fitting) and fitting[0][0] == wanted)


def _of_path(path: str) -> Completion:
    written = f'@"{path}"' if re.search(r"\s", path) else f"@{path}"
    return Completion(path, "", written if path.endswith("/") else f"{written} ")


class FileList:
    """The files of a folder, for mentions.

    >>> FileList(["src/main.py", "docs/maintain.md", "setup.py"]).matching("main", 2)
    ['src/main.py', 'docs/maintain.md']
    """

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths = list(paths)
        self._folded = [path.casefold() for path in self._paths]

    def __len__(self) -> int:
        return len(self._paths)

    def matching(self, typed: str, most: int) -> list[str]:
        """Return the paths that fit the typed text best."""
        wanted = typed.casefold()
        found = [place for place, path in enumerate(self._folded) if wanted in path][: None if wanted else 50 * most]
        if len(found) < most and wanted:
            letters = re.compile(".*?".join(map(re.escape, wanted)))
            searched = enumerate(self._folded[:SEARCHED])
            found += [place for place, path in searched if wanted not in path and letters.search(path) is not None]
        return [self._paths[place] for place in sorted(found, key=lambda it: self._worth(it, wanted))[:most]]

    def _worth(self, place: int, wanted: str) -> tuple[int, int]:
        """Return a sort key: names with this beginning, names that contain it, paths that contain it, the rest."""
        path = self._folded[place]
        name = path.rstrip("/").rpartition("/")[2]
        kind = 0 if name.startswith(wanted) else 1 if wanted in name else 2 if wanted in path else 3
        return kind, len(path)


NEW_LINE = ("ctrl+j", "shift+enter", "alt+enter")


class Editor(TextArea):
    """Where the user writes."""

    DEFAULT_CSS = """
    Editor { height: auto; min-height: 1; max-height: 10; border: none; padding: 0 1; scrollbar-size-vertical: 1;
             background: $surface; }
    Editor:focus { border: none; }
    Editor .text-area--cursor-line { background: $surface; }
    """

    @dataclass
    class Submitted(Message):
        """A prompt is to be sent."""

        text: str

    class Completing(Message):
        """The list of completions has changed."""

    @dataclass
    class Dropped(Message):
        """A file was dropped: its path was pasted."""

        path: Path

    class Edited(Message):
        """The text has changed."""

    def __init__(
        self,
        complete: Callable[[str], Completions],
        history: Sequence[str],
        offer: Callable[[events.Key | events.Paste], bool],
    ) -> None:
        """`offer` is called with each key first, and returns whether something else takes it."""
        super().__init__(soft_wrap=True, compact=True, highlight_cursor_line=False, tab_behavior="focus")
        self.cursor_blink = False  # a timer that draws while nothing happens
        self._complete = complete
        self._offer = offer
        self.prompts = list(history)
        """Return earlier prompts, the oldest first."""
        self._place: int | None = None
        """The place in the history of the present text; None for a new text."""
        self._unsent = ""
        self.found = NOTHING
        """The completions for the text before the cursor."""
        self.chosen = 0
        """The entry of the list that is chosen."""
        self.suggestions: Sequence[str] = ()
        """The prompts that the agent suggests."""

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
        return self.get_text_range((0, 0), self.cursor_location)

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
        if key in ("tab", "right") and self._take_suggestion(key):
            return True
        if key == "escape" and self.found.entries:
            self._show(NOTHING)
            return True
        if key in ("up", "down"):
            return self._vertical(-1 if key == "up" else 1)
        return False

    def _enter(self) -> None:
        """Send; if a list is open whose first entry is not the typed text, insert that entry first."""
        found = self.found
        if found.entries and not found.is_exact:
            self.accept(found.entries[self.chosen])
            return
        self._show(NOTHING)
        if self.text.strip():
            self.post_message(self.Submitted(self.take()))

    def _take_suggestion(self, key: str) -> bool:
        """Put a suggestion into the empty editor; `tab` shows the next one."""
        if not self.suggestions or (self.text and (key != "tab" or self.text not in self.suggestions)):
            return False
        place = self.suggestions.index(self.text) + 1 if self.text else 0
        self.set_text(self.suggestions[place % len(self.suggestions)])
        return True

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
        """Look up completions, in the same step as the edit, so that the next key meets the new list."""
        self._place = None
        self.refresh_completions()

    def refresh_completions(self) -> None:
        """Look up completions again."""
        self._show(self._complete(self.before_cursor))

    def _show(self, found: Completions) -> None:
        if found.entries or self.found.entries:
            self.found, self.chosen = found, 0
            self.post_message(self.Completing())
        self.found = found

    def accept(self, entry: Completion) -> None:
        """Replace the typed text by an entry."""
        row, column = self.cursor_location
        self.replace(entry.text, (row, column - self.found.replaced), (row, column))
        self._show(self._complete(self.before_cursor) if entry.text.endswith("/") else NOTHING)
