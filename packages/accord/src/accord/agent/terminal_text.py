"""A terminal of the agent's own machine, shown as text: its client has no terminals and could not show it by its id.

The text is read again and again while the command runs, and a last time before the terminal is released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from accord.agent.connected_client import SessionClient
from accord.errors import AccordError
from accord.printable import fenced
from accord.schema import v1

PAUSE = 0.1
"""Seconds between two looks at the output of a running command."""


class TerminalText:
    """What a terminal shows, as content of a tool call; `on_growth` is called with how much longer it has become."""

    def __init__(self, session: SessionClient, terminal_id: v1.TerminalId, on_growth: Callable[[int], None]) -> None:
        self._session = session
        self._request = v1.TerminalOutputRequest(session.session_id, terminal_id)
        self._on_growth = on_growth
        self._output = ""
        self._following: asyncio.Task[None] | None = None

    @property
    def content(self) -> v1.Content:
        """The output so far, in a block that Markdown leaves as it is."""
        return v1.Content.of(fenced(self._output))

    async def begin(self) -> None:
        """Read the output now, and again while the command runs; raises what the request raises."""
        if not await self._read():
            self._following = self._session.errands.start(self._follow(), "accord terminal output")

    async def end(self) -> None:
        """Read the output for the last time."""
        if self._following is not None:
            self._following.cancel()
            self._following = None
            with suppress(AccordError):  # the terminal was released
                await self._read()

    async def _follow(self) -> None:
        with suppress(AccordError):
            while not await self._read():  # noqa: ASYNC110 (a terminal tells nothing by itself)
                await asyncio.sleep(PAUSE)

    async def _read(self) -> bool:
        """Read the output; returns whether the command has ended."""
        response = await self._session.asks.request(self._request)
        before, self._output = self._output, response.output
        if self._output != before:
            self._on_growth(len(self._output) - len(before))
        return response.exit_status is not None
