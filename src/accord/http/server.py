"""Serving the application: a socket, TLS, and what ends it (extra `http`).

The connections are `listening`'s, which gives each to whoever speaks its protocol. TCP is told to look for
clients that have vanished without a word.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from accord.errors import AccordError
from accord.http.access import Access, is_loopback, names_of
from accord.http.asgi import App
from accord.http.hosting import Hosted
from accord.http.limits import Limits
from accord.transports.closing import to_the_end
from accord.transports.websocket import EXTRA_MISSING

if TYPE_CHECKING:
    from accord.http.listening import Listener

GRACE = 10.0
"""Seconds that prompts have to be answered when the server is told to end."""


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
    limits: Limits | None = None,
    grace: float = GRACE,
    on_ready: Callable[[Server], None] | None = None,
) -> None:
    """Serve an agent until this process is told to end (SIGINT or SIGTERM), or this is cancelled.

    The arguments are those of `serving`; `on_ready` is called once clients can come. Told to end, the server takes no
    more connections, and prompts that are being answered have `grace` seconds; told a second time, it ends at once.
    """
    ending = asyncio.Event()
    with _Signals() as told:
        async with serving(
            hosted, host=host, port=port, access=access, certificate=certificate, key=key, limits=limits
        ) as server:
            told.call(lambda: server.app.hurry() if ending.is_set() else ending.set())
            if on_ready is not None:
                on_ready(server)
            await ending.wait()
            await server.app.close(grace)


class _Signals:
    """What to do when this process is told to end; as before when the block is left."""

    numbers = (signal.SIGINT, signal.SIGTERM)

    def __enter__(self) -> Self:
        return self

    def call(self, do: Callable[[], None]) -> None:
        with suppress(NotImplementedError, RuntimeError):  # Windows, or a thread that is not the main one
            for number in self.numbers:
                asyncio.get_running_loop().add_signal_handler(number, do)

    def __exit__(self, *_: object) -> None:
        with suppress(NotImplementedError, RuntimeError):
            for number in self.numbers:
                asyncio.get_running_loop().remove_signal_handler(number)


@asynccontextmanager
async def serving(
    hosted: Hosted,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    access: Access | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    path: str = "/acp",
    limits: Limits | None = None,
) -> AsyncGenerator[Server]:
    """A server for as long as the block lasts; a port of 0 is any that is free.

    async with accord.http.serving(agent) as server:
        print(server.url)

    `hosted` is an `Agent`, a command, or an `App`. Off the loopback it wants an `access` with tokens: whoever reaches
    an agent can usually run programs here. `certificate` and `key` are PEM files, for https.
    """
    app = hosted if isinstance(hosted, App) else App(hosted, path=path, access=_access(host, access), limits=limits)
    tls = None if certificate is None else _tls(certificate, key)
    listening = _listen(host, port)
    scheme = "http" if certificate is None else "https"
    server = Server(app, f"{scheme}://{_address(host, listening)}{app.path}")
    listener = _listener(app, listening, tls)
    await listener.start()
    try:
        yield server
    finally:
        await to_the_end(asyncio.create_task(_end(app, listener)))


async def _end(app: App, listener: Listener) -> None:
    await app.close()
    await listener.end()


def _listener(app: App, listening: socket.socket, tls: ssl.SSLContext | None) -> Listener:
    try:
        from accord.http.listening import Listener
    except ImportError:
        listening.close()
        raise AccordError(EXTRA_MISSING) from None
    return Listener(app, listening, tls)


def _access(host: str, access: Access | None) -> Access:
    if not is_loopback(host) and (access is None or access.is_open):
        raise AccordError(f"{host} can be reached from elsewhere: serving there wants a token")
    return access or Access(hosts=names_of(host))


def _tls(certificate: str | Path, key: str | Path | None) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # RFC 7540, 9.2: "MUST use TLS version 1.2 or higher", and none of the older ciphers.
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    tls.set_alpn_protocols(["h2", "http/1.1"])
    try:
        tls.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:  # an SSLError is an OSError, whose text is of use to nobody
        named = f"{certificate}{'' if key is None else f' and {key}'}"
        reason = "it is no certificate with its key" if isinstance(error, ssl.SSLError) else error.strerror
        raise AccordError(f"cannot use the certificate {named}: {reason}") from error
    return tls


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
