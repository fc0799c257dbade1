"""Serving the application: a socket, TLS, and hypercorn, which speaks HTTP/1.1, HTTP/2 and WebSocket (extra `http`).

What hypercorn 0.18 does not do well by itself is seen to here, and only here:

- A reader of an HTTP/2 stream that stopped reading does not stop the sender, and memory grows: `bounded_streams`.
- It says good-bye to an HTTP/2 connection after 1,000 requests, streams and all: raised to what is never reached.
- It does not wait for streams to end, or waits for ever: so all streams are ended before it is told to end.
- Its own pings keep a closed WebSocket for as long as their interval, and nobody minds their answers: not used.
- A client that vanished without a word is never noticed: TCP is told to look for it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from accord.errors import AccordError
from accord.http.access import LOOPBACK, Access, is_loopback
from accord.http.asgi import App
from accord.http.hosting import Hosted
from accord.transports.closing import to_the_end
from accord.transports.websocket import EXTRA_MISSING

NEVER = 2**31
ENDING = 5.0
"""Seconds that each step of ending may take."""

log = logging.getLogger("accord.http")


class Server:
    """A server that runs. `url` is where clients find it."""

    def __init__(self, app: App, url: str) -> None:
        self.app = app
        self.url = url


async def serve(
    hosted: Hosted,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    access: Access | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    on_ready: Callable[[Server], None] | None = None,
) -> None:
    """Serve an agent until this process is told to end (SIGINT or SIGTERM), or this is cancelled.

    The arguments are those of `serving`; `on_ready` is called once clients can come.
    """
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    async with serving(hosted, host=host, port=port, access=access, certificate=certificate, key=key) as server:
        with suppress(NotImplementedError, RuntimeError):  # Windows, or a thread that is not the main one
            for number in numbers:
                loop.add_signal_handler(number, ending.set)
        try:
            if on_ready is not None:
                on_ready(server)
            await ending.wait()
        finally:
            with suppress(NotImplementedError, RuntimeError):
                for number in numbers:
                    loop.remove_signal_handler(number)


@asynccontextmanager
async def serving(
    hosted: Hosted,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    access: Access | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    **options: Any,
) -> AsyncGenerator[Server]:
    """A server for as long as the block lasts; a port of 0 is any that is free.

    async with accord.http.serving(agent) as server:
        print(server.url)

    `hosted` is an `Agent`, a command, or an `App`. Off the loopback it wants an `access` with tokens: whoever reaches
    an agent can usually run programs here. `certificate` and `key` are PEM files, for https.
    """
    app = hosted if isinstance(hosted, App) else App(hosted, access=_access(host, access), **options)
    config = _config(certificate, key)
    listening = _listen(host, port)
    scheme = "http" if certificate is None else "https"
    server = Server(app, f"{scheme}://{_address(host, listening)}{app.path}")
    config.bind = [f"fd://{listening.detach()}"]  # hypercorn's from now on
    ending = asyncio.Event()
    running = asyncio.create_task(_run(app, config, ending), name=f"accord server {server.url}")
    try:
        yield server
    finally:
        await to_the_end(asyncio.create_task(_end(app, ending, running)))


async def _run(app: App, config: Any, ending: asyncio.Event) -> None:
    import hypercorn.asyncio

    await cast("Any", hypercorn.asyncio).serve(app, config, shutdown_trigger=ending.wait, mode="asgi")


async def _end(app: App, ending: asyncio.Event, running: asyncio.Task[None]) -> None:
    await app.close()
    ending.set()
    await asyncio.wait([running], timeout=ENDING)
    if not running.done():
        running.cancel()
    results = await asyncio.gather(running, return_exceptions=True)
    if isinstance(results[0], Exception):
        log.warning("the server ended with an error: %r", results[0])


def _access(host: str, access: Access | None) -> Access:
    if not is_loopback(host) and (access is None or access.is_open):
        raise AccordError(f"{host} can be reached from elsewhere: serving there wants a token")
    return access or Access(hosts=LOOPBACK)


def _config(certificate: str | Path | None, key: str | Path | None) -> Any:
    try:
        from hypercorn.config import Config
    except ImportError:
        raise AccordError(EXTRA_MISSING) from None
    bounded_streams()
    config = Config()
    config.accesslog = config.errorlog = None
    config.keep_alive_max_requests = NEVER
    config.h2_max_concurrent_streams = 1000
    config.include_server_header = False
    config.graceful_timeout = ENDING
    if certificate is not None:
        config.certfile = str(certificate)
        config.keyfile = str(key or certificate)
    return config


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            ("TCP_KEEPIDLE", 20),
            ("TCP_KEEPINTVL", 5),
            ("TCP_KEEPCNT", 4),
            ("TCP_USER_TIMEOUT", 60_000),
        ):
            if hasattr(socket, option):  # what is accepted here inherits them
                listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        listening.bind((host, port))
        listening.listen(256)  # so that nobody is refused between now and the server's first step
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise AccordError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listening


def _address(host: str, listening: socket.socket) -> str:
    port = listening.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bounded_streams() -> None:
    """Let hypercorn's HTTP/2 streams take no more than they can hold.

    Its buffer wakes the sender after every attempt to write, also one that wrote nothing because the reader's window is
    closed; so each such attempt lets in another message. This one wakes it when there is room.
    """
    from hypercorn.protocol import h2

    if getattr(h2.StreamBuffer, "wakes_when_there_is_room", False):
        return

    class BoundedBuffer(h2.StreamBuffer):
        wakes_when_there_is_room = True

        async def push(self, data: bytes) -> None:
            # Added before waiting: who sends is woken before this, and does not look again.
            if self._complete:
                raise h2.BufferCompleteError
            self.buffer.extend(data)
            await self._is_empty.clear()
            while len(self.buffer) >= h2.BUFFER_HIGH_WATER and not self._complete:
                await self._paused.clear()
                await self._paused.wait()

        async def pop(self, max_length: int) -> bytes:
            length = min(len(self.buffer), max_length)
            data = bytes(self.buffer[:length])
            del self.buffer[:length]
            if len(self.buffer) < h2.BUFFER_LOW_WATER:
                await self._paused.set()
            if not self.buffer:
                await self._is_empty.set()
            return data

    h2.StreamBuffer = BoundedBuffer  # type: ignore[misc]
