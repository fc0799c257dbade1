"""The review of all changes of files that the agent wrote through the chat: look at each, keep it or undo it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.screen import ModalScreen

from accord.printable import label
from accord.services.files.encoding import NotText, decode
from accord.services.files.journal import Change
from accord.tui.block import Look
from accord.tui.diffs import counts, diff_lines
from accord.tui.line_widget import Lines
from accord.tui.palette import palette_of
from accord.tui.reader import Page
from accord.tui.rows import Paragraph
from accord.tui.tool_block import drawn_diff

if TYPE_CHECKING:
    from accord.tui.conversation import Conversation


class ReviewScreen(ModalScreen[None]):
    """One file at a time: left and right go to another one, u undoes the changes of the file, a accepts them."""

    DEFAULT_CSS = """
    ReviewScreen { background: $background; }
    ReviewScreen > Lines { height: auto; }
    """
    BINDINGS: ClassVar[list[Any]] = [
        ("escape,q", "dismiss", "Close"),
        ("left,k", "step(-1)", "File before"),
        ("right,j", "step(1)", "Next file"),
        ("u", "undo", "Undo"),
        ("a", "accept", "Accept"),
    ]

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        self._conversation = conversation
        self._accepted: set[int] = set()
        self._place = 0

    def compose(self) -> ComposeResult:
        yield Lines(id="review-top")
        yield Page(self._diff)
        yield Lines(id="review-foot")

    def on_mount(self) -> None:
        palette = palette_of(self)
        for lines in self.query(Lines):
            lines.use(palette)
        self.query_one("#review-foot", Lines).show_row(
            (
                (" left, right", "accent"),
                (" file  ", "dim"),
                ("u", "accent"),
                (" undo  ", "dim"),
                ("a", "accent"),
                (" accept  ", "dim"),
                ("esc", "accent"),
                (" close", "dim"),
            )
        )
        self._show()
        self.query_one(Page).focus()

    @property
    def files(self) -> list[Path]:
        """The changed files, in the order of their first change."""
        return list(dict.fromkeys(change.path for change in self._changes()))

    def _changes(self, path: Path | None = None) -> list[Change]:
        session = self._conversation.session
        return [
            it
            for it in self._conversation.connection.files.changes
            if (path is None or it.path == path)
            and id(it) not in self._accepted
            and (session is None or it.session_id in ("", session.id))
        ]

    def _show(self) -> None:
        files = self.files
        self._place = max(0, min(self._place, len(files) - 1))
        top: list[tuple[str, str]] = [(f" {len(files)} changed file{'' if len(files) == 1 else 's'}  ", "bold accent")]
        for number, path in enumerate(files):
            top.append((f" {label(path.name, 30)} ", "chosen" if number == self._place else "dim"))
        self.query_one("#review-top", Lines).show_row(tuple(top))
        page = self.query_one(Page)
        page.draw()
        page.scroll_home(animate=False)

    def _diff(self, look: Look) -> Sequence[Paragraph]:
        files = self.files
        if not files:
            return [Paragraph([("   No change to review: the agent has written no file through the chat.", "dim")])]
        path = files[min(self._place, len(files) - 1)]
        changes = self._changes(path)
        try:
            old = None if changes[0].before is None else decode(changes[0].before)
            new = decode(changes[-1].after)
        except NotText:
            return [Paragraph([("   not text", "dim")])]
        lines = diff_lines(old, new)
        added, removed = counts(lines)
        heading = Paragraph(
            [
                (label(str(path), 300), "bold"),
                ("  new file" if old is None else "", "dim"),
                (f"  +{added:,}", "good"),
                (f"  -{removed:,}", "bad"),
            ],
            ((" ", ""),),
        )
        return [heading, Paragraph(), *drawn_diff(lines, str(path), look.width - 1)]

    def action_step(self, by: int) -> None:
        """Go to another file."""
        self._place += by
        self._show()

    def action_accept(self) -> None:
        """Keep the changes of this file."""
        files = self.files
        if files:
            self._accepted |= {id(change) for change in self._changes(files[self._place])}
            self._show()

    async def action_undo(self) -> None:
        """Undo the changes of this file, the newest first."""
        files = self.files
        if not files:
            return
        path = files[self._place]
        for change in reversed(self._changes(path)):
            try:
                await self._conversation.connection.files.undo(change)
            except (ValueError, OSError) as error:
                self.notify(str(error), severity="error", markup=False)
                break
        else:
            self._conversation.note(f"Undone: {path.name}", "", "good", "✓")
        self._show()
