"""A socket that only programs with our token can use: our program, started by another one, calls back on it.

An agent starts the shim of an MCP server, and a client under check starts the relay. Both must reach the process that
wrote their command line, and no other program may reach it. The rule is the same on all systems: `CallbackSocket` has
an address and, for each purpose, a token. The first line of a connection is its token, and a connection with a wrong
one is closed without an answer. The token travels in the environment, because other users may read arguments.

The address is a Unix socket in a folder that only the user can read. Where Python has no Unix sockets (Windows), it is
a port of 127.0.0.1, which every program of the machine can reach; there the token alone protects it.

A connection sends its token in its first bytes. Until then its place is not safe: a further connection replaces the one
that has been silent longest, so silent ones lock nobody out. Connections that have sent a token keep their places; each
token has at most `CONNECTIONS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import secrets
import shutil
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self, cast

from accord._internal.tasks import Tasks
from accord.callback_socket import callback_client
from accord.callback_socket.callback_client import TOKEN

__all__ = ["TOKEN", "CallbackSocket"]

CONNECTIONS = 64
"""Connections of one token that may be open at a time, and connections that have not sent their token yet."""

TOKEN_WITHIN = 10.0
"""Seconds within which a connection must send its token."""

LAST_STEPS = 2.0
"""Seconds in which the connections have to end."""

HAS_UNIX_SOCKETS = sys.platform != "win32"
"""Whether Python has Unix sockets here."""

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Serves one connection, which is closed when this returns."""

log = logging.getLogger("accord")


class CallbackSocket:
    """A listening socket for processes that got a command line from us; `limit` bounds the bytes of a line.

    It is made with its socket open, so that no connection comes too early. `async with` ends its connections and waits
    for them; with the `tasks` of an owner, `close` is enough.
    """

    def __init__(self, name: str, tasks: Tasks | None = None, *, limit: int) -> None:
        self._tasks = Tasks(asyncio.get_running_loop()) if tasks is None else tasks
        self._name, self._limit = name, limit
        self._served: dict[str, Serve] = {}
        self._open: set[asyncio.Task[None]] = set()
        self._silent: dict[asyncio.Task[None], None] = {}
        """Connections that have not sent their token, the oldest first."""
        self._counts: Counter[str] = Counter()
        """Connections of each token."""
        self._folder: str | None = None
        self._socket = self._unix() if HAS_UNIX_SOCKETS else self._loopback()
        self._socket.listen(CONNECTIONS)
        self._socket.setblocking(False)
        self._accepting = self._tasks.start(self._accept(), f"accord {name}")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        ending = {self._accepting, *self._open}
        self.close()
        await asyncio.wait(ending, timeout=LAST_STEPS)

    def add(self, serve: Serve) -> str:
        """A new token; connections that begin with it are served by this function."""
        token = secrets.token_urlsafe(32)
        self._served[token] = serve
        return token

    @property
    def address(self) -> str:
        """The address to connect to: a path, or a port where there are no Unix sockets."""
        name = self._socket.getsockname()
        return name if isinstance(name, str) else str(name[1])

    def command(self, script: str) -> list[str]:
        """The command that runs this script on a connection; it needs the token in the variable `TOKEN`."""
        return [sys.executable, "-I", "-S", callback_client.__file__, script, self.address]

    def close(self) -> None:
        """Close the socket, and end all connections."""
        for task in [self._accepting, *self._open]:
            task.cancel()
        self._socket.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _unix(self) -> socket.socket:
        assert sys.platform != "win32"
        self._folder = tempfile.mkdtemp(prefix="accord-socket-")  # mode 0700
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(Path(self._folder) / "socket"))
        return bound

    def _loopback(self) -> socket.socket:
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        return bound

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            link, _ = await loop.sock_accept(self._socket)
            if len(self._silent) >= CONNECTIONS:
                oldest = next(iter(self._silent))
                del self._silent[oldest]
                oldest.cancel()
            task = self._tasks.start(self._admit(link), f"accord {self._name} connection")
            if not task.done():
                self._open.add(task)
                self._silent[task] = None
                task.add_done_callback(self._forget)
            await asyncio.sleep(0)  # many may wait to be accepted: each gets to its first bytes before it is the oldest

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        self._silent.pop(task, None)

    async def _admit(self, link: socket.socket) -> None:
        try:
            reader, writer = await asyncio.open_connection(sock=link, limit=self._limit)
        except BaseException:
            link.close()
            raise
        token = None
        try:
            async with asyncio.timeout(TOKEN_WITHIN):
                token = self._meant(await reader.readline())
            if token is None:
                return
            self._counts[token] += 1
            self._silent.pop(cast("asyncio.Task[None]", asyncio.current_task()), None)
            if self._counts[token] <= CONNECTIONS:
                await self._served[token](reader, writer)
        except (OSError, ValueError, TimeoutError) as error:  # ValueError: a line is too long
            log.info("a connection of the %s has ended: %s", self._name, error or type(error).__name__)
        except Exception:  # a fault of the served program must not become ours
            log.exception("a connection of the %s has failed", self._name)
        finally:
            if token is not None:
                self._counts[token] -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _meant(self, line: bytes) -> str | None:
        said = line.strip()
        found = [token for token in self._served if hmac.compare_digest(token.encode(), said)]
        return found[0] if found else None
