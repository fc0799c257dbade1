"""`StateFile`: a JSON file in the user's folder for state, which several programs may read and change at once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from accord.paths import locked, replace_file, state_folder

ContentT = TypeVar("ContentT")


class StateFile(Generic[ContentT]):
    """A file of this name with a `kind` in it.

    It is made at import, not in a function: msgspec's first use of a class is not safe in two threads.
    """

    def __init__(self, name: str, kind: type[ContentT]) -> None:
        self._name = name
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    @property
    def path(self) -> Path:
        """Return the file's path, which the environment decides."""
        return state_folder() / self._name

    def read(self) -> ContentT:
        """The content; an empty one if the file is missing or cannot be read."""
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            return self._decode(self.path.read_bytes())
        return self._kind()

    @contextmanager
    def changed(self) -> Generator[ContentT]:
        """The content, to be changed in this context and then written; raises OSError if that fails."""
        with locked(self.path):
            content = self.read()
            yield content
            replace_file(self.path, msgspec.json.format(msgspec.json.encode(content)) + b"\n")
