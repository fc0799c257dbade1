"""The client's queued POSTs, and the JSON-RPC answers for POSTs that were refused.

Posting ──▶ its lane ──▶ waits for `initialize` ──▶ POST ──▶ refused ──▶ instead_of
"""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from accord.errors import INTERNAL_ERROR, INVALID_REQUEST, DecodeError
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Answer, Call, Malformed, Message, Tell, error_answer, parse
from accord.schema import codec, v1

Parsed: TypeAlias = Message | Malformed

INTERNAL_FROM = 500
"""The lowest status that means an error of the server."""


class Opening:
    """One `initialize`, and the messages that wait for its result."""

    def __init__(self) -> None:
        self.succeeded = False
        self.waiting: list[Parsed] = []
        self._is_settled = asyncio.Event()

    def settle(self, *, succeeded: bool) -> list[Parsed]:
        """Set the result; returns the messages that waited."""
        self.succeeded = succeeded
        self._is_settled.set()
        waiting, self.waiting = self.waiting, []
        return waiting

    def hold(self, message: Parsed) -> None:
        """Note a message that is sent after it."""
        if not self._is_settled.is_set():
            self.waiting.append(message)

    async def has_succeeded(self) -> bool:
        """Wait for the result: whether it opened the connection."""
        await self._is_settled.wait()
        return self.succeeded


class Posting:
    """A frame that waits to be posted, its parsed message, and its `initialize`."""

    __slots__ = ("frame", "is_substitute", "message", "opening", "session")

    def __init__(
        self, frame: bytes, message: Parsed, session: str | None, opening: Opening, *, is_substitute: bool = False
    ) -> None:
        self.frame = frame
        self.message = message
        self.session = session
        self.opening = opening
        self.is_substitute = is_substitute
        """Whether this replaces an answer that was refused."""


def opens(message: Parsed) -> bool:
    """Whether this message is `initialize`, which opens a connection."""
    return isinstance(message, Call) and message.method == "initialize"


def unsent_answer(message: Parsed, why: str) -> bytes | None:
    """The error that answers a message that cannot be posted; None for one without an answer."""
    if isinstance(message, Malformed):
        return message.reply()
    return error_answer(message.id, INVALID_REQUEST, f"Invalid request: {why}") if isinstance(message, Call) else None


def instead_of(message: Parsed, status: int, body: bytes, why: str) -> bytes | None:
    """The error that answers a refused message: for its sender, or, if it was an answer itself, for the server."""
    if isinstance(message, Malformed) and not message.answerable:
        return None
    if isinstance(message, Answer):
        return error_answer(message.id, INTERNAL_ERROR, f"the answer could not be sent: {why}")
    asked = message.id if isinstance(message, Call | Malformed) else None
    told = parse(body)
    if isinstance(told, Answer) and told.error is not None and told.id == asked:
        return body
    return error_answer(asked, INTERNAL_ERROR if status >= INTERNAL_FROM else INVALID_REQUEST, why)


def cancelled_by(message: Tell) -> RequestId | None:
    """The id of the request that this `$/cancel_request` cancels, or None."""
    try:
        return codec.decode(
            b"{}" if message.params is None else message.params, v1.CancelRequestNotification
        ).request_id
    except DecodeError:
        return None
