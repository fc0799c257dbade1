"""`OpenDocument`: a document of a suggestion session that the user edits, and `Suggestion`: what the agent suggests.

The document is the truth, and the agent's mirror follows it: each change is told before the request that comes after
it. A suggestion means one version of the document, so one that comes for an older version is rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from accord.client.suggestion_session import SuggestionSession
from accord.documents.edits import Edit, addressable, smallest_edit, with_edits
from accord.documents.text_document import TextDocument
from accord.documents.uris import key_of
from accord.errors import ProtocolError, StaleSuggestion
from accord.file_uris import path_of_uri
from accord.schema import v1
from accord.schema.base import Unknown


class OpenDocument:
    """A document that is open in a suggestion session; `Suggestions.open` gives it. Offsets are indexes of `text`."""

    def __init__(
        self, session: SuggestionSession, uri: str, language: str, text: str, forget: Callable[[OpenDocument], bool]
    ) -> None:
        self.uri: str = uri
        """The document's URI."""
        self.language: str = language
        """The language, such as `python`."""
        self._session = session
        self._text = TextDocument(text, session.encoding)
        self._version = 1
        self._forget = forget

    def __repr__(self) -> str:
        return f"OpenDocument({self.uri!r}, version={self.version})"

    @property
    def text(self) -> str:
        """The whole text, as the user sees it."""
        return self._text.text

    @property
    def version(self) -> int:
        """The number of the text; each change adds one."""
        return self._version

    @property
    def path(self) -> Path | None:
        """The path of the file; None for a document that is not a file."""
        return path_of_uri(self.uri)

    async def change(self, text: str) -> None:
        """Change the whole text; the agent is told the smallest change, or the text if it wants that."""
        edit = smallest_edit(self.text, text)
        if text != self.text:
            await self._edit(edit)

    async def edit(self, start: int, end: int, text: str) -> None:
        """Put this text in the place of what is between two offsets."""
        if not 0 <= start <= end <= len(self.text):
            raise ValueError(f"start and end must be in order, from 0 to {len(self.text)}; got {start} and {end}")
        await self._edit(addressable(self.text, Edit(start, end, text)))

    async def save(self) -> None:
        """Tell the agent that the document was saved, if it wants to know."""
        await self._session.tell("did_save", v1.DidSaveDocumentNotification(self._session.id, self.uri))

    async def focus(self, at: int, *, visible: tuple[int, int] | None = None) -> None:
        """Tell the agent that the user turned to the document, if it wants to know; `visible` is what they see."""
        seen = self._text.range(*(visible or (0, len(self.text))))
        position = self._text.position(at)
        told = v1.DidFocusDocumentNotification(self._session.id, self.uri, self.version, position, seen)
        await self._session.tell("did_focus", told)

    async def close(self) -> None:
        """Close the document: the agent forgets it."""
        if self._forget(self):
            await self._session.tell("did_close", v1.DidCloseDocumentNotification(self._session.id, self.uri))

    async def suggest(
        self,
        at: int,
        *,
        selection: tuple[int, int] | None = None,
        trigger: v1.NesTriggerKind = "automatic",
        context: v1.NesSuggestContext | None = None,
    ) -> list[Suggestion]:
        """Ask for suggestions for the cursor at this offset, the best first.

        A newer call in the same session ends this one, which then returns an empty list; so does one whose document
        changes before the answer comes. `trigger` is `automatic`, `diagnostic` or `manual`. Of `context`, only what the
        agent asked for is sent.
        """
        request = v1.SuggestNesRequest(
            self._session.id,
            self.uri,
            self.version,
            self._text.position(at),
            trigger,
            None if selection is None else self._text.range(*selection),
            self._session.wanted(context),
        )
        found = await self._session.ask(self, request)
        return [Suggestion(self._session, self, it, edits_in(self.uri, self._text, it)) for it in found]

    async def _edit(self, edit: Edit) -> None:
        told = None if self._session.wants_whole_texts else self._text.range(edit.start, edit.end)
        self._text.replace(*edit)
        self._version += 1
        change = v1.TextDocumentContentChangeEvent(self.text if told is None else edit.text, told)
        sent = v1.DidChangeDocumentNotification(self._session.id, self.uri, self.version, [change])
        await self._session.tell("did_change", sent)


class Suggestion:
    """Something that the agent suggests to do next; accept or reject each one that was shown."""

    def __init__(
        self, session: SuggestionSession, document: OpenDocument, value: v1.NesSuggestion, edits: list[Edit] | None
    ) -> None:
        self.value: v1.NesSuggestion = value
        """The suggestion as the agent sent it, such as `v1.NesEditSuggestion`."""
        self._session = session
        self._document = document
        self._version = document.version
        self._is_settled = False
        self._edits = edits

    def __repr__(self) -> str:
        return f"Suggestion({self.value!r})"

    @property
    def new_text(self) -> str | None:
        """The text of the document with the edits of this suggestion; None if it edits another document, or none."""
        return None if self._edits is None else with_edits(self._text_then(), self._edits)

    async def accept(self) -> str:
        """Do what is suggested, and tell the agent; returns the text of the document.

        An edit of the document is applied to it, and the agent is told of the change as of any other. What another kind
        of suggestion means is up to you. Raises `StaleSuggestion` if the document has changed since.
        """
        text = self.new_text
        self._settle()
        await self._session.send(v1.AcceptNesNotification(self._session.id, _id_of(self.value)))
        if text is not None:
            await self._document.change(text)
        return self._document.text

    async def reject(self, reason: v1.NesRejectReason = "rejected") -> None:
        """Tell the agent that the suggestion was not accepted, because it was `ignored`, for example.

        The reasons are `rejected`, `ignored`, `replaced` and `cancelled`.
        """
        self._settle()
        await self._session.send(v1.RejectNesNotification(self._session.id, _id_of(self.value), reason))

    def _text_then(self) -> str:
        if self._document.version != self._version:
            raise StaleSuggestion(
                f"the suggestion is for version {self._version} of {self._document.uri}, which has version "
                f"{self._document.version} now; ask for suggestions again"
            )
        return self._document.text

    def _settle(self) -> None:
        if self._is_settled:
            raise RuntimeError("this suggestion was accepted or rejected already")
        self._is_settled = True


def edits_in(uri: str, text: TextDocument, value: v1.NesSuggestion) -> list[Edit] | None:
    """The edits of a suggestion for the document with this URI and text; None for others. Raises ProtocolError."""
    if not isinstance(value, v1.NesEditSuggestion) or key_of(value.uri) != key_of(uri):
        return None
    try:
        edits = [Edit(*text.offsets(edit.range), edit.new_text) for edit in value.edits]
        with_edits(text.text, edits)
    except ValueError as error:
        raise ProtocolError(f"nes/suggest: a suggestion of the agent is invalid: {error}") from None
    return edits


def _id_of(value: v1.NesSuggestion) -> str:
    said = value.raw.get("id") if isinstance(value, Unknown) else value.id
    return said if isinstance(said, str) else ""
