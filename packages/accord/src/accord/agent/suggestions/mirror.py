"""`MirroredDocument`: a document that is open in the client, as the agent follows it. PURE.

A document is known by its session and its URI, whatever the spelling. A change that cannot be applied leaves a mirror
that is wrong, so the document is forgotten: its client opens it again, or sends it whole.
"""

from __future__ import annotations

import logging
from pathlib import Path

from accord.documents.positions import Encoding
from accord.documents.text_document import TextDocument
from accord.documents.uris import key_of
from accord.file_uris import path_of_uri
from accord.schema import v1

log = logging.getLogger("accord")


class MirroredDocument:
    """A document that is open in the client: its text, its version, and what it is called."""

    def __init__(self, uri: str, language: str, version: int, text: TextDocument) -> None:
        self.uri = uri
        """The document's URI, as the client writes it."""
        self.language = language
        """The language, such as `python`, as the client names it; empty if it did not say."""
        self.version = version
        """The number of the text: it grows with each change."""
        self._text = text

    def __repr__(self) -> str:
        return f"MirroredDocument({self.uri!r}, version={self.version})"

    @property
    def text(self) -> str:
        """The whole text."""
        return self._text.text

    @property
    def lines(self) -> list[str]:
        """The lines, without their endings."""
        return self._text.lines

    @property
    def path(self) -> Path | None:
        """The path of the file; None for a document that is not a file."""
        return path_of_uri(self.uri)


def positions_of(document: MirroredDocument) -> TextDocument:
    """The text of a document with its positions."""
    return document._text  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class Mirrors:
    """The open documents of one suggestion session."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding: Encoding = encoding
        self._documents: dict[str, MirroredDocument] = {}

    def find(self, uri: str) -> MirroredDocument | None:
        """The document with this URI, as it is now; it does not change later. None if it is not open."""
        return self._documents.get(key_of(uri))

    def opened(self, said: v1.DidOpenDocumentNotification) -> None:
        """Mirror a document that was opened."""
        self._put(said.uri, said.language_id, said.version, said.text)

    def changed(self, said: v1.DidChangeDocumentNotification) -> None:
        """Apply changes; a document for which that is impossible is forgotten."""
        if (problem := self._apply(said)) is not None:
            self._documents.pop(key_of(said.uri), None)
            log.warning("a document is no longer mirrored: %s", problem)

    def closed(self, said: v1.DidCloseDocumentNotification) -> None:
        """Forget a document that was closed."""
        self._documents.pop(key_of(said.uri), None)

    def _put(self, uri: str, language: str, version: int, text: str) -> None:
        document = MirroredDocument(uri, language, version, TextDocument(text, self._encoding))
        self._documents[key_of(uri)] = document

    def _apply(self, said: v1.DidChangeDocumentNotification) -> str | None:
        """Apply changes; returns why that is impossible, or None."""
        before = self.find(said.uri)
        if said.content_changes and said.content_changes[0].range is None:  # the whole text: nothing before it counts
            text = TextDocument("", self._encoding)
        elif before is None:
            return "a range of it changed, and it is not open"
        elif said.version <= before.version:
            return f"version {said.version} came after version {before.version}"
        else:
            text = positions_of(before).copy()
        try:
            text.apply(said.content_changes)
        except ValueError as error:
            return str(error)
        language = "" if before is None else before.language
        self._documents[key_of(said.uri)] = MirroredDocument(said.uri, language, said.version, text)
        return None
