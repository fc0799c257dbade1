"""`Sent`: a request that a handler sent, and awaits; `HeldAnswer`: an answer that waits for earlier messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Raw

from accord.engine.lanes import Inside, inside
from accord.errors import ConnectionClosed, PeerError
from accord.jsonrpc.messages import ErrorObject
from accord.proxy.failure import Failure
from accord.proxy.link import Link
from accord.schema import codec


class RawPeerError(PeerError):
    """The other side answered with an error, which can be passed on as it came."""

    def __init__(self, method: str, raw: bytes) -> None:
        error = codec.decode(raw, ErrorObject)
        super().__init__(method, error.code, error.message, error.data)
        self.raw = raw
        """The error as JSON."""


class Sent:
    """A request that a handler sent, until its answer is given to the handler."""

    def __init__(self, method: str, lane: str, link: Link) -> None:
        self.id = 0
        self.method = method
        self.lane = lane
        self.outcome: tuple[Raw | None, bytes | Raw | None] = None, None
        self.maker: Inside | None = (maker := inside.get())
        self._holding_up = None if maker is None else maker.holding_up
        self._link = link
        self._future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def wait(self) -> bytes:
        """The result as JSON; raises RawPeerError or ConnectionClosed. A cancelled caller cancels the request."""
        if self._holding_up is not None:
            self._holding_up.begins_to_wait(self)
        try:
            return await self._future
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            if self._holding_up is not None:
                self._holding_up.no_longer_waits(self)

    def cancel(self) -> None:
        """Tell the other side that the answer is no longer needed."""
        if self.id in self._link.asked:
            self._link.tell_cancel(self.id)

    def answered(self, result: Raw | None, error: bytes | Raw | None) -> None:
        self.outcome = result, error
        self.release()

    def failed(self, failure: Failure) -> None:
        self.fail(ConnectionClosed("closed", str(failure)))

    def release(self) -> None:
        result, error = self.outcome
        if self._future.done():
            return
        if error is None:
            self._future.set_result(b"null" if result is None else bytes(result))
        else:
            self.fail(RawPeerError(self.method, bytes(error)))

    def fail(self, error: Exception) -> None:
        if not self._future.done():
            self._future.set_exception(error)
            self._future.exception()  # mark as retrieved: no caller may be left to await it


class HeldAnswer:
    """An answer that is passed on when the messages before it have been."""

    def __init__(self, deliver: Callable[[], None]) -> None:
        self.maker: Inside | None = None
        self._deliver: Callable[[], None] | None = deliver

    def release(self) -> None:
        deliver, self._deliver = self._deliver, None
        if deliver is not None:
            deliver()

    def fail(self, error: Exception) -> None:  # noqa: ARG002
        self.release()
