"""`SuggestionRequest`: what an author's function holds while it looks for suggestions. PURE."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from accord.agent.suggestions.mirror import MirroredDocument, positions_of
from accord.documents.edits import Edit, addressable, line_edits
from accord.documents.text_document import TextDocument
from accord.documents.uris import uri_of
from accord.schema import v1
from accord.schema.base import Unknown
from accord.schema.v1_nes import NesTriggerKind

SHOWN_BY: dict[type, str] = {
    v1.NesJumpSuggestion: "jump",
    v1.NesRenameSuggestion: "rename",
    v1.NesSearchAndReplaceSuggestion: "search_and_replace",
}
"""The suggestions that only some clients show, by their capability; every client shows edits."""


class SuggestionRequest:
    """A request for suggestions: the document as the user sees it, where they are in it, and what to answer with.

    Offsets are indexes of `document.text`, whatever the client counts in. The document does not change while you work.
    """

    def __init__(
        self,
        asked: v1.SuggestNesRequest,
        document: MirroredDocument,
        folder: Path | None,
        client: v1.ClientNesCapabilities,
        new_id: Callable[[], str],
    ) -> None:
        self.document = document
        """The document: `text`, `lines`, `language`, `version`, `uri` and `path`."""
        self.offset: int = positions_of(document).offset(asked.position)
        """Where the cursor is."""
        self.selection: tuple[int, int] | None = (
            None if asked.selection is None else positions_of(document).offsets(asked.selection)
        )
        """Where the selection starts and ends; None if nothing is selected."""
        self.trigger: NesTriggerKind = asked.trigger_kind
        """Why the client asks: `automatic` (the user types or moves), `diagnostic` or `manual`."""
        self.context: v1.NesSuggestContext = asked.context or v1.NesSuggestContext()
        """What the client sent along; only what `@agent.on_suggest(context=...)` asked for."""
        self.meta: dict[str, object] = asked.meta or {}
        """The `_meta` of the request."""
        self._folder = folder
        self._client = client
        self._new_id = new_id

    def __repr__(self) -> str:
        return f"SuggestionRequest({self.document.uri!r}, offset={self.offset})"

    def shows(self, kind: str) -> bool:
        """Whether the client shows suggestions of this kind: `edit`, `jump`, `rename` or `search_and_replace`."""
        if kind not in ("edit", *SHOWN_BY.values()):
            raise ValueError(f"kind must be edit, {', '.join(SHOWN_BY.values())}; got {kind!r}")
        return kind == "edit" or getattr(self._client, kind) is not None

    def edit(self, new_text: str, *, cursor: int | None = None) -> v1.NesEditSuggestion | None:
        """Suggest that the document becomes this text, by the smallest edits of its lines; None if it is that already.

        `cursor` is the offset in the new text where the cursor goes.
        """
        return self._edit(line_edits(self.document.text, new_text), new_text, cursor)

    def replace(self, start: int, end: int, text: str) -> v1.NesEditSuggestion | None:
        """Suggest this text in the place of what is between two offsets; None if it is the same text."""
        old = self.document.text
        if not 0 <= start <= end <= len(old):
            raise ValueError(f"start and end must be in order, from 0 to {len(old)}; got {start} and {end}")
        if old[start:end] == text:
            return None
        return self._edit([addressable(old, Edit(start, end, text))], "", None)

    def jump(self, file: str | Path | None = None, *, line: int) -> v1.NesJumpSuggestion | None:
        """Suggest to go to a line, counted from 1, of this document or of another file; None if the client cannot."""
        if line < 1:
            raise ValueError(f"line must be at least 1, got {line}")
        if not self.shows("jump"):
            return None
        return v1.NesJumpSuggestion(self._new_id(), self._uri(file), v1.Position(line - 1, 0))

    def rename(self, offset: int, new_name: str) -> v1.NesRenameSuggestion | None:
        """Suggest another name for what is at this offset of the document; None if the client cannot."""
        if not self.shows("rename"):
            return None
        position = positions_of(self.document).position(offset)
        return v1.NesRenameSuggestion(self._new_id(), self.document.uri, position, new_name)

    def search(
        self, search: str, replace: str, *, file: str | Path | None = None, is_regex: bool = False
    ) -> v1.NesSearchAndReplaceSuggestion | None:
        """Suggest to search and replace in this document, in a file or in a folder; None if the client cannot."""
        if not self.shows("search_and_replace"):
            return None
        return v1.NesSearchAndReplaceSuggestion(self._new_id(), self._uri(file), search, replace, is_regex or None)

    def _edit(self, edits: list[Edit], new_text: str, cursor: int | None) -> v1.NesEditSuggestion | None:
        if not edits:
            return None
        text = positions_of(self.document)
        told = [v1.NesTextEdit(text.range(edit.start, edit.end), edit.text) for edit in edits]
        position = None if cursor is None else TextDocument(new_text, text.encoding).position(cursor)
        return v1.NesEditSuggestion(self._new_id(), self.document.uri, told, position)

    def _uri(self, file: str | Path | None) -> str:
        return self.document.uri if file is None else uri_of(file, self._folder)


def is_shown(suggestion: v1.NesSuggestion, client: v1.ClientNesCapabilities) -> bool:
    """Whether a client shows this suggestion."""
    if isinstance(suggestion, Unknown):
        return False
    kind = SHOWN_BY.get(suggestion.__class__)
    return kind is None or getattr(client, kind) is not None
