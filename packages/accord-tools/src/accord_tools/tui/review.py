"""The review of all changes of files that the agent wrote through the chat: view each, keep it or undo it."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.screen import ModalScreen

from accord import AccordError
from accord.printable import label
from accord.services import AgentWrite, NotText, decode
from accord_tools.presentation.diffs import AROUND, FileDiff, Hunk, hunks, lines_of, without
from accord_tools.presentation.quantities import counted
from accord_tools.presentation.session_words import change_numbers, shortened_path
from accord_tools.presentation.styled_text import Paragraph
from accord_tools.tui.block import Look, drawn_diff
from accord_tools.tui.palette import palette_of
from accord_tools.tui.reader_screen import Page
from accord_tools.tui.widgets import Lines

if TYPE_CHECKING:
    from accord_tools.tui.chat_conversation import Conversation


_FOOT = (
    ("left, right", "file"),
    ("n, p", "part"),
    ("x", "undo part"),
    ("u", "undo file"),
    ("a", "accept"),
    ("esc", "close"),
)

_NOTHING = "   No change to review: the agent has written no file through the chat."
_NOTHING_LEFT = "   No change to review remains; esc goes back to the chat."


class ReviewedFile(NamedTuple):
    """The changes of one file."""

    old: Sequence[bytes]
    new: Sequence[bytes]
    hunks: Sequence[Hunk]
    is_new: bool


class ReviewScreen(ModalScreen[None]):
    """Shows one file at a time, and the parts of its changes: each part can be undone separately."""

    DEFAULT_CSS = """
    ReviewScreen { background: $background; }
    ReviewScreen > Lines { height: auto; }
    """
    BINDINGS: ClassVar[list[Any]] = [
        ("escape,q", "dismiss", "Close"),
        ("left,k", "step(-1)", "File before"),
        ("right,j", "step(1)", "Next file"),
        ("n,tab", "choose(1)", "Next part"),
        ("p,shift+tab", "choose(-1)", "Part before"),
        ("x", "undo_part", "Undo the part"),
        ("u", "undo", "Undo"),
        ("a", "accept", "Accept"),
    ]

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        self._conversation = conversation
        self._accepted: set[int] = set()
        self._place = 0
        self._problem = ""
        """Why an undo failed."""
        self._hunk = 0
        """The part of the change that is chosen."""

    def compose(self) -> ComposeResult:
        yield Lines(id="review-top")
        yield Page(self._diff)
        yield Lines(id="review-problem")
        yield Lines(id="review-foot")

    def on_mount(self) -> None:
        palette = palette_of(self)
        for lines in self.query(Lines):
            lines.use(palette)
        spans = [(f" {text}", style) for key, does in _FOOT for text, style in ((key, "accent"), (f"{does} ", "dim"))]
        self.query_one("#review-foot", Lines).show_row(tuple(spans))
        self._show()
        self.query_one(Page).focus()

    @property
    def files(self) -> list[Path]:
        """The changed files, in the order of their first change."""
        return list(dict.fromkeys(change.path for change in self._changes()))

    @property
    def _path(self) -> Path | None:
        """Return the file that is shown; None if none is left."""
        return next(iter(self.files[self._place : self._place + 1]), None)

    def _changes(self, path: Path | None = None) -> list[AgentWrite]:
        return [
            it
            for it in self._conversation.changes()
            if (path is None or it.path == path) and id(it) not in self._accepted
        ]

    def _show(self) -> None:
        files = self.files
        self._place = max(0, min(self._place, len(files) - 1))
        top: list[tuple[str, str]] = [(f" {counted(len(files), 'changed file')}  ", "bold accent")]
        for number, path in enumerate(files):
            top.append((f" {label(path.name, 30)} ", "chosen" if number == self._place else "dim"))
        self.query_one("#review-top", Lines).show_row(tuple(top))
        problem = self.query_one("#review-problem", Lines)
        problem.show([Paragraph([(self._problem, "bad")], ((" ", ""),))] if self._problem else [])
        self._problem = ""
        page = self.query_one(Page)
        page.draw()
        page.scroll_home(animate=False)

    def _diff(self, look: Look) -> Sequence[Paragraph]:
        if (path := self._path) is None:
            return [Paragraph([(_NOTHING_LEFT if self._conversation.connection.files.changes else _NOTHING, "dim")])]
        change = self._whole(path)
        try:
            shown = [
                paragraph
                for number, hunk in enumerate(change.hunks)
                for paragraph in self._part(path, change, number, hunk, look)
            ]
        except NotText:
            return [Paragraph([("   not text", "dim")])]
        added = sum(hunk.new_to - hunk.new_from for hunk in change.hunks)
        removed = sum(hunk.old_to - hunk.old_from for hunk in change.hunks)
        heading = Paragraph(
            [
                (label(shortened_path(str(path), str(self._conversation.folder)), 300), "bold"),
                ("  new file" if change.is_new else "", "dim"),
                *change_numbers(added, removed),
            ],
            ((" ", ""),),
        )
        return [heading, *shown]

    def _whole(self, path: Path) -> ReviewedFile:
        """Return all changes of a file as one."""
        changes = self._changes(path)
        before = changes[0].before
        old, new = lines_of(before or b""), lines_of(changes[-1].after)
        return ReviewedFile(old, new, hunks(old, new), before is None)

    def _part(self, path: Path, change: ReviewedFile, number: int, hunk: Hunk, look: Look) -> list[Paragraph]:
        """Return one part of a change, with its heading."""
        is_chosen = number == min(self._hunk, len(change.hunks) - 1)
        sign = "▸" if is_chosen else " "
        title = f"{sign} part {number + 1} of {len(change.hunks)}"
        start, new_start = max(0, hunk.old_from - AROUND), max(0, hunk.new_from - AROUND)
        old = decode(b"".join(change.old[start : hunk.old_to + AROUND]))
        new = decode(b"".join(change.new[new_start : hunk.new_to + AROUND]))
        lines = [line.moved(start, new_start) for line in FileDiff(None if change.is_new else old, new).lines]
        return [
            Paragraph(),
            Paragraph([(title, "bold accent" if is_chosen else "dim")], ((" ", ""),)),
            *drawn_diff(lines, str(path), look.width - 1),
        ]

    def action_choose(self, by: int) -> None:
        """Choose another part of the change."""
        if (path := self._path) is not None:
            self._hunk = max(0, min(len(self._whole(path).hunks) - 1, self._hunk + by))
            page = self.query_one(Page)
            page.draw()
            chosen = f"part {self._hunk + 1} of"
            row = next((place for place, line in enumerate(page.text.split("\n")) if chosen in line), 0)
            page.scroll_to(y=max(0, row - 1), animate=False)

    async def action_undo_part(self) -> None:
        """Undo the chosen part of the change."""
        if (path := self._path) is None:
            return
        change = self._whole(path)
        if len(change.hunks) <= 1:
            await self.action_undo()
            return
        place = min(self._hunk, len(change.hunks) - 1)
        content = without(change.old, change.new, change.hunks[place])
        files = self._conversation.connection.files
        await self._undo(f"part {place + 1} of {path.name}", [files.undo_part(self._changes(path)[-1], content)])

    async def _undo(self, what: str, steps: Iterable[Awaitable[object]]) -> None:
        """Undo something in steps, up to the first that fails, and show the rest."""
        try:
            for step in steps:
                await step
        except (AccordError, ValueError, OSError) as error:
            self._problem = label(str(error), 300)
        else:
            self._conversation.note(f"Undone: {what}", style="good")
        self._show()

    def action_step(self, by: int) -> None:
        """Go to another file."""
        self._place += by
        self._hunk = 0
        self._show()

    def action_accept(self) -> None:
        """Keep the changes of this file."""
        if (path := self._path) is not None:
            self._accepted |= {id(change) for change in self._changes(path)}
            self._show()

    async def action_undo(self) -> None:
        """Undo the changes of this file, the newest first."""
        if (path := self._path) is not None:
            files = self._conversation.connection.files
            await self._undo(path.name, (files.undo(change) for change in reversed(self._changes(path))))
