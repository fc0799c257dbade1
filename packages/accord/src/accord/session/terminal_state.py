"""Terminals of version 2: commands that the agent runs itself, and the output that it reports. PURE.

Output comes in chunks of bytes, each encoded in base64 separately. A chunk may end inside a character. So the bytes are
stored, and the text is decoded as far as its characters are complete.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import io

from msgspec import UNSET

from accord.schema import shared_updates as updates
from accord.schema.base import JsonObject
from accord.session.values import WEIGHT, patched_meta

_UTF_8 = codecs.getincrementaldecoder("utf-8")


class TerminalState:
    """A terminal of the agent, after all of its updates so far; None means unknown."""

    __slots__ = (
        "_decoded",
        "_decoder",
        "_output",
        "_text",
        "capabilities",
        "command",
        "cwd",
        "exit_status",
        "forgotten",
        "id",
        "meta",
        "size",
    )

    def __init__(self, terminal_id: updates.TerminalId) -> None:
        self.id = terminal_id
        """Its id, which the agent gave."""
        self.command: str | None = None
        """The command that runs in it."""
        self.cwd: str | None = None
        """The folder in which the command runs."""
        self.exit_status: updates.TerminalExitStatus | None = None
        """How the command ended; None while it runs."""
        self.size: updates.TerminalSize | None = None
        """Its columns and rows."""
        self.capabilities: updates.TerminalCapabilities | None = None
        """The client's present actions on it."""
        self.meta: JsonObject | None = None
        """Its `_meta`."""
        self.forgotten = 0
        """How many of the first bytes of its output were dropped because of the state's limit."""
        self._output = bytearray()
        self._decoder: codecs.IncrementalDecoder = _UTF_8("replace")
        self._decoded = 0
        """How many bytes of the output the decoder has seen."""
        self._text = io.StringIO()

    def __repr__(self) -> str:
        state = "running" if self.exit_status is None else "ended"
        return f"TerminalState({self.id!r}, command={self.command!r}, {len(self._output)} bytes, {state})"

    @property
    def output(self) -> bytes:
        """The output so far, as bytes. It is untrusted: it may contain control codes for a terminal."""
        return bytes(self._output)

    @property
    def text(self) -> str:
        """The output so far, as text; a character whose end has not arrived is left out until the command ends.

        Bytes that are not UTF-8 become U+FFFD. The text is untrusted: it may contain control codes for a terminal.
        """
        if self._decoded < len(self._output):
            self._text.write(self._decoder.decode(self._output[self._decoded :]))
            self._decoded = len(self._output)
        rest = "" if self.exit_status is None or not self._decoder.getstate()[0] else "�"
        return self._text.getvalue() + rest

    @property
    def can_cancel(self) -> bool:
        """Whether the agent offers to cancel the command."""
        return self.capabilities is not None and self.capabilities.cancel is not None

    @property
    def weight(self) -> int:
        """The approximate size in bytes."""
        return WEIGHT + len(self._output) + len(self.command or "") + (0 if self.meta is None else len(repr(self.meta)))

    def update(self, update: updates.TerminalUpdate) -> bool:
        """Apply an update: omitted fields stay, and cleared ones become None.

        Returns False if its output is not base64; the output then stays as it was.
        """
        for name in ("command", "cwd", "exit_status", "size", "capabilities"):
            if (value := getattr(update, name)) is not UNSET:
                setattr(self, name, value)
        self.meta = patched_meta(self.meta, update.meta)
        if update.output is UNSET:
            return True
        output = b"" if update.output is None else _decoded(update.output.data)
        if output is None:
            return False
        self._output = bytearray(output)
        self.forgotten = 0
        self._start_text()
        return True

    def add(self, data: str) -> bool:
        """Append output, encoded in base64; returns False, and appends nothing, if it is not base64."""
        output = _decoded(data)
        if output is None:
            return False
        self._output += output
        return True

    def shrink(self, most: int) -> None:
        """Drop the first bytes of the output, so that at most this many stay."""
        if (excess := len(self._output) - most) > 0:
            del self._output[:excess]
            self.forgotten += excess
            self._start_text()

    def _start_text(self) -> None:
        self._decoder = _UTF_8("replace")
        self._decoded = 0
        self._text = io.StringIO()


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
