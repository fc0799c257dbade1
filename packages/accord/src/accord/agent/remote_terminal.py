"""A command that the client runs for the agent.

The terminal is released whatever happens: after an error, after a cancel, and also after a cancel that comes while the
client is creating it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import msgspec

from accord.agent.asks import Asks
from accord.agent.connected_client import SessionClient
from accord.errors import AccordError
from accord.schema import v1

log = logging.getLogger("accord")

PATIENCE = 5.0
"""Seconds that a client may take to create or release a terminal that is no longer needed."""


class CommandResult(msgspec.Struct, frozen=True):
    """How a command went."""

    output: str
    """The output of the command, stdout and stderr together."""
    exit_code: int | None
    """Its exit code; None if a signal ended it."""
    signal: str | None = None
    """The name of the signal that ended it; None if it exited by itself."""
    timed_out: bool = False
    """Whether it was killed for taking too long."""
    truncated: bool = False
    """Whether the beginning of the output was dropped."""


class RemoteTerminal:
    """A command that the client runs for us, from `async with` to its end."""

    def __init__(self, session: SessionClient, asks: Asks, request: v1.CreateTerminalRequest) -> None:
        self.is_released = False
        """Whether the client has been told to release it."""
        self._before_release: list[Callable[[], Awaitable[None]]] = []
        self._session = session
        self._asks = asks
        self._request = request
        self._id: v1.TerminalId | None = None

    @property
    def id(self) -> v1.TerminalId:
        """The client's id of the terminal."""
        if self._id is None:
            raise RuntimeError("the terminal exists only inside its `async with` block")
        return self._id

    async def output(self) -> v1.TerminalOutputResponse:
        """The output so far, and how the command ended if it has."""
        return await self._asks.request(v1.TerminalOutputRequest(self._session.session_id, self.id))

    async def wait(self) -> v1.WaitForTerminalExitResponse:
        """Wait until the command ends."""
        return await self._asks.request(v1.WaitForTerminalExitRequest(self._session.session_id, self.id))

    async def kill(self) -> None:
        """End the command. Its output can still be read."""
        await self._asks.request(v1.KillTerminalRequest(self._session.session_id, self.id))

    async def run_out(self, timeout: float | None = None) -> CommandResult:  # noqa: ASYNC109
        """Wait until the command ends, or kill it after `timeout` seconds; returns its output and exit code."""
        # terminals, Building a Timeout: wait and timer race; then kill, read the output, release.
        status: v1.WaitForTerminalExitResponse | v1.TerminalExitStatus | None = None
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                status = await self.wait()
        except TimeoutError:
            timed_out = True
            await self.kill()
        output = await self.output()
        # terminals: the status is optional in the output, and some clients tell it only where it was waited for.
        status = output.exit_status or status or v1.TerminalExitStatus()
        return CommandResult(output.output, status.exit_code, status.signal, timed_out, output.truncated)

    async def __aenter__(self) -> Self:
        if not self._session.client.lends("terminal"):
            self._session.client.capabilities.require("terminal", self._request.__method__)
        creating = self._session.errands.start(self._create(), "accord terminal/create")
        try:
            await asyncio.shield(creating)
        except asyncio.CancelledError:
            # The client may have created it before the cancellation arrives; nothing else would release it.
            await self._given_up(creating)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_released:
            self.is_released = True
            releasing = self._session.errands.start(self._release(), "accord terminal/release")
            await asyncio.wait([releasing], timeout=PATIENCE)

    async def _create(self) -> None:
        self._id = (await self._session.asks.request(self._request)).terminal_id

    async def _given_up(self, creating: asyncio.Task[None]) -> None:
        self._session.errands.start(self._release_after(creating), "accord terminal/release")

    async def _release_after(self, creating: asyncio.Task[None]) -> None:
        await asyncio.wait([creating], timeout=PATIENCE)
        if creating.done() and not creating.cancelled() and creating.exception() is None:
            await self._release()

    async def _release(self) -> None:
        # terminals, Executing Commands: the agent must release a terminal that it no longer needs.
        self.is_released = True
        for call in self._before_release:
            await call()
        try:
            await self._session.asks.request(v1.ReleaseTerminalRequest(self._session.session_id, self.id))
        except AccordError as error:
            log.info("releasing the terminal %s failed: %s", self.id, error)


def before_release(terminal: RemoteTerminal, call: Callable[[], Awaitable[None]]) -> None:
    """Call this before the terminal is released: something still needs its output."""
    terminal._before_release.append(call)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
