"""`Context`: what a handler can use beside its message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from accord.engine.incoming_request import IncomingRequest
from accord.engine.peer import Peer
from accord.jsonrpc.line_frames import RequestId


class Context:
    """What a handler can use beside its message: the peer, and the state of the request."""

    __slots__ = ("_request", "peer")

    def __init__(self, peer: Peer, request: IncomingRequest | None = None) -> None:
        self.peer = peer
        """The peer that sent the message."""
        self._request = request

    @property
    def request_id(self) -> RequestId | None:
        """The request's id on the wire; None for a notification."""
        return None if self._request is None else self._request.id

    @property
    def cancelled(self) -> bool:
        """Whether the peer has cancelled the request."""
        return self._request is not None and self._request.cancelled

    async def wait_for_room(self) -> None:
        """Wait while the peer does not read, before making an answer that may be large."""
        await self.peer.connection.wait_for_room()

    def answer(self, result: Any) -> None:
        """Answer now. The handler may go on; what it returns or raises is no longer sent."""
        self._of_request().owner.answer_now(self._of_request(), result)

    def failure(self, error: BaseException) -> tuple[int, str, Any]:
        """The code, message and data with which the request would be answered if the handler raised this error.

        It is for handlers that have answered already and tell of a later error in another message. Details that are not
        for the peer are logged.
        """
        return self._of_request().owner.failure(self._of_request(), error)

    def on_cancel(self, do: Callable[[], None]) -> None:
        """Call this when the peer cancels the request, instead of cancelling the handler's task."""
        self._of_request().on_cancel = do

    def after_response(self, do: Callable[..., Awaitable[Any] | None], *arguments: Any) -> None:
        """Call this when the answer has been sent: what it sends comes after the answer."""
        self._of_request().after(lambda: do(*arguments))

    def _of_request(self) -> IncomingRequest:
        if self._request is None:
            raise TypeError("a notification has no answer: answer, on_cancel and after_response are for requests")
        return self._request
