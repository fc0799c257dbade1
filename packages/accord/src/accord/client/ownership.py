"""Connections without a block: who ends them, when `accord.open` was not followed by `close`.

    RemoteSession ──▶ RemoteAgent ──▶ what the loop holds        what the loop holds refers to faces only weakly

A turn that runs refers to its session's face, because its caller may hold nothing but the Reply.

So when no caller refers to the RemoteAgent or a session of it, the RemoteAgent is collected, and its finalizer ends the
connection with a ResourceWarning. The end of the program does the same for all that are left: it runs their event loop
once more if that is still possible. If it is not, asyncio has cancelled everything, which kills the agent's processes.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import warnings
import weakref
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from accord.client.remote_agent import RemoteAgent, ended_by

EXIT_WITHIN = 15.0
"""Seconds that the end of the program waits for one connection."""


async def kept_open(block: AbstractAsyncContextManager[RemoteAgent, Any]) -> RemoteAgent:
    """Enter this block; the RemoteAgent's `close`, its finalizer or the end of the program leaves it."""
    remote = await block.__aenter__()
    connection = _Open(block, remote.name)
    finalizer = weakref.finalize(remote, connection.abandon)
    finalizer.atexit = False  # `_end_all` waits for the end, which a finalizer cannot
    ended_by(remote, connection.end)
    return remote


class _Open:
    """A connection that was opened and not closed yet."""

    def __init__(self, block: AbstractAsyncContextManager[RemoteAgent, Any], name: str) -> None:
        self._block = block
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._ending: asyncio.Task[Any] | None = None
        _open.add(self)

    async def end(self) -> None:
        """Leave the block, once."""
        _open.discard(self)
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._block.__aexit__(None, None, None))
        await asyncio.shield(self._ending)

    def abandon(self) -> None:
        """End because no caller refers to the RemoteAgent any more."""
        if self in _open and self._process == os.getpid():
            self._warn()
            with suppress(RuntimeError):  # the loop is closed, and with it the connection
                self._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self.end()))

    def end_at_exit(self) -> None:
        """End because the program ends."""
        if self._process != os.getpid():
            return
        self._warn()
        if self._loop.is_closed():
            return
        ending = asyncio.wait_for(self.end(), EXIT_WITHIN)
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(ending, self._loop).result(EXIT_WITHIN)
        else:
            self._loop.run_until_complete(ending)

    def _warn(self) -> None:
        _open.discard(self)
        warnings.warn(f"{self._name}: call `await remote.close()` after `accord.open`", ResourceWarning, stacklevel=2)


_open: set[_Open] = set()


@atexit.register
def _end_all() -> None:
    for connection in list(_open):
        with suppress(Exception):
            connection.end_at_exit()
