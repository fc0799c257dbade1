"""What a client posts: messages that wait for their turn, and what is made of a refusal.

Posting ──▶ its lane ──▶ the `initialize` that it waits for ──▶ POST ──▶ refused ──▶ instead_of
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
"""The status from which on a refusal is the server's fault."""


class Opening:
    """One `initialize`: what waits for it, until it is known whether it has opened the link."""

    def __init__(self) -> None:
        self.succeeded = False
        self.waiting: list[Parsed] = []
        self._is_settled = asyncio.Event()

    def settle(self, *, succeeded: bool) -> list[Parsed]:
        """It is known now; gives what has waited."""
        self.succeeded = succeeded
        self._is_settled.set()
        waiting, self.waiting = self.waiting, []
        return waiting

    def hold(self, message: Parsed) -> None:
        """This is sent behind it."""
        if not self._is_settled.is_set():
            self.waiting.append(message)

    async def has_succeeded(self) -> bool:
        """Whether it has opened the link; waits until that is known."""
        await self._is_settled.wait()
        return self.succeeded


class Posting:
    """A frame that waits to be posted, what it is, and the `initialize` that it waits for or is."""

    __slots__ = ("frame", "is_substitute", "message", "opening", "session")

    def __init__(
        self, frame: bytes, message: Parsed, session: str | None, opening: Opening, *, is_substitute: bool = False
    ) -> None:
        self.frame = frame
        self.message = message
        self.session = session
        self.opening = opening
        self.is_substitute = is_substitute
        """Whether this stands for an answer that was refused."""


def opens(message: Parsed) -> bool:
    """Whether this opens a connection."""
    return isinstance(message, Call) and message.method == "initialize"


def unsent_answer(message: Parsed, why: str) -> bytes | None:
    """The answer to what cannot be posted, if it is to have one."""
    if isinstance(message, Malformed):
        return message.reply()
    return error_answer(message.id, INVALID_REQUEST, f"Invalid request: {why}") if isinstance(message, Call) else None


def instead_of(message: Parsed, status: int, body: bytes, why: str) -> bytes | None:
    """The answer that a refused message has: to its sender, or, where it was an answer itself, to who waits for it."""
    if isinstance(message, Malformed) and not message.answerable:
        return None
    if isinstance(message, Answer):
        return error_answer(message.id, INTERNAL_ERROR, f"the answer could not be sent: {why}")
    asked = message.id if isinstance(message, Call) else None
    told = parse(body)
    if isinstance(told, Answer) and told.error is not None and told.id == asked:
        return body
    return error_answer(asked, INTERNAL_ERROR if status >= INTERNAL_FROM else INVALID_REQUEST, why)


def cancelled_by(message: Tell) -> RequestId | None:
    """The request that this `$/cancel_request` is about."""
    try:
        return codec.decode(
            b"{}" if message.params is None else message.params, v1.CancelRequestNotification
        ).request_id
    except DecodeError:
        return None
