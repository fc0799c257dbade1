"""Runs the server: opens its socket, loads its certificate, and ends it on a signal (extra `http`).

`listener` handles the connections. TCP keep-alive detects clients that vanish without closing their connection.

The server decides itself when Python searches for cyclic garbage. Python examines all objects whenever their number has
grown by a quarter. With thousands of connections that takes seconds, in which the server does nothing else: clients
wait, and other hosts declare it dead. A connection leaves garbage only when it ends. So the server collects once as
many connections have ended as half of those that are open, or once there are many new objects that no open connection
explains. Young objects are collected as always.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from accord._internal.tasks import to_the_end
from accord.errors import AccordError
from accord.http.headers import offered
from accord.http.server.access import Access, is_loopback
from accord.http.server.agent_host import Hosted
from accord.http.server.app import App
from accord.http.server.asgi import Application
from accord.http.server.server_limits import Quotas, ServerLimits
from accord.installation import missing_extra
from accord.mistakes import wrong_type
from accord.program import on_signals

if TYPE_CHECKING:
    from accord.http.server.listener import Listener

GARBAGE_EVERY = 1.0
"""Seconds between two decisions."""

LEAST_ENDED = 500
"""Connections that must have ended."""

OF_A_CONNECTION = 2_000
"""Objects that an open connection explains. It has some 800, and half as many for its streams on other hosts."""

LEAST_NEW = 1_000_000
"""Objects that no connection explains; they take about 100 MB."""

NEVER = 2**31 - 1


class GarbagePolicy:
    """Decides when to collect garbage. PURE."""

    def __init__(self, server: App) -> None:
        self._server = server
        self._ended, self._open = server.ended, server.connections

    def is_due(self, new: int) -> bool:
        """Whether to collect now, when this many objects have become old since the last time."""
        ended = self._server.ended - self._ended
        opened = max(0, self._server.connections - self._open)
        is_much = ended >= max(LEAST_ENDED, self._server.connections // 2)
        return is_much or new - OF_A_CONNECTION * opened >= LEAST_NEW

    def collected(self) -> None:
        """Note that all garbage was collected."""
        self._ended, self._open = self._server.ended, self._server.connections


@contextmanager
def garbage_collected_for(server: App) -> Generator[None]:
    """Collect garbage in this process in the way that suits this server, during the block. Needs a running loop."""
    young, middle, old = gc.get_threshold()
    if not gc.isenabled() or not old:  # the program has its own way
        yield
        return
    gc.set_threshold(young, middle, NEVER)
    looking = asyncio.get_running_loop().create_task(_look(server, young * middle), name="accord http: garbage")
    try:
        yield
    finally:
        looking.cancel()
        gc.set_threshold(young, middle, old)


async def _look(server: App, of_a_pass: int) -> None:
    garbage = GarbagePolicy(server)
    while True:
        await asyncio.sleep(GARBAGE_EVERY)
        if garbage.is_due(gc.get_count()[2] * of_a_pass):
            gc.collect()
            garbage.collected()


GRACE = 10.0
"""Seconds that running prompts have to end when the server is shut down."""


class ClusterSettings(Protocol):
    """Makes an application one host of a service: `accord.Hosts`."""

    def joined(self, app: App) -> AbstractAsyncContextManager[None]:
        """Make this application one host of the service during the block."""
        ...


class Server:
    """A running server, which `serving` yields and `serve` hands to `on_ready`."""

    def __init__(self, app: App, url: str) -> None:
        self.app = app
        """The application, with its host and its limits."""
        self.url = url
        """The URL for clients."""


async def serve(
    hosted: Hosted | App,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    access: Access | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    limits: ServerLimits | None = None,
    quotas: Quotas | None = None,
    grace: float = GRACE,
    hosts: ClusterSettings | None = None,
    listening: socket.socket | None = None,
    on_ready: Callable[[Server], None] | None = None,
) -> None:
    """Serve an agent until SIGINT, SIGTERM or cancellation.

    The arguments are those of `serving`; `on_ready` is called with the server once clients can connect. At the first
    signal the server accepts no more connections, and running prompts have `grace` seconds to end. At the second signal
    it ends at once.

    Meanwhile the garbage collector of this process examines all objects only after many connections have ended, because
    nothing else runs during that. A program that has disabled it keeps it disabled.
    """
    ending = asyncio.Event()
    with ExitStack() as until_all_is_closed:
        async with serving(
            hosted,
            host=host,
            port=port,
            access=access,
            certificate=certificate,
            key=key,
            limits=limits,
            quotas=quotas,
            hosts=hosts,
            listening=listening,
        ) as server:
            until_all_is_closed.enter_context(
                on_signals(
                    (signal.SIGINT, signal.SIGTERM), lambda: server.app.hurry() if ending.is_set() else ending.set()
                )
            )
            if on_ready is not None:
                on_ready(server)
            with garbage_collected_for(server.app):
                await ending.wait()
            await server.app.close(grace)


@asynccontextmanager
async def serving(
    hosted: Hosted | App,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    access: Access | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    path: str = "/acp",
    limits: ServerLimits | None = None,
    quotas: Quotas | None = None,
    hosts: ClusterSettings | None = None,
    listening: socket.socket | None = None,
) -> AsyncGenerator[Server]:
    """Run a server during the block.

    async with accord.http.serving(agent) as server:
        print(server.url)

    `hosted` is an `Agent`, a command, or an `App`. With port 0 the system chooses a free port. A `host` other than the
    loopback requires an `access` with tokens, because clients of an agent can usually run programs on its machine.
    `certificate` and `key` are PEM files for https; the key may be in the certificate's file. `path` is the endpoint.
    `limits` sets sizes, counts and times, and `quotas` what each owner may use. With `hosts` (`accord.Hosts`) this
    server is one of several that share a service. `listening` is a listening socket to use instead of `host` and
    `port`.
    """
    app = (
        hosted
        if isinstance(hosted, App)
        else App(hosted, path=path, access=_access(host, access), limits=limits, quotas=quotas)
    )
    tls = None if certificate is None else server_tls(certificate, key)
    listening = listening or listening_socket(host, port)
    server = Server(app, url_of("http" if certificate is None else "https", host, listening, app.path))
    listener = listener_of(app, app.limits, listening, tls)
    async with AsyncExitStack() as stack:
        stack.callback(listening.close)  # if the other hosts cannot be joined
        if hosts is not None:
            await stack.enter_async_context(hosts.joined(app))
        await listener.start()
        try:
            yield server
        finally:
            await to_the_end(asyncio.create_task(_end(app, listener)))


@asynccontextmanager
async def serving_asgi(
    application: Application,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    limits: ServerLimits | None = None,
) -> AsyncGenerator[str]:
    """Run an ASGI application of your own on Accord's server during the block; yields its URL.

    async with accord.http.serving_asgi(application) as url:
        print(url)

    The application answers HTTP requests, and can only refuse WebSockets. It gets no `lifespan` events: end its streams
    within the block, or they are aborted after it. The other arguments are those of `serving`.
    """
    tls = None if certificate is None else server_tls(certificate, key)
    listening = listening_socket(host, port)
    listener = listener_of(application, limits or ServerLimits(), listening, tls)
    await listener.start()
    try:
        yield url_of("http" if tls is None else "https", host, listening, "")
    finally:
        await to_the_end(asyncio.create_task(listener.end()))


async def _end(app: App, listener: Listener) -> None:
    await app.close()
    await listener.end()


def listener_of(
    app: Application, limits: ServerLimits, listening: socket.socket, tls: ssl.SSLContext | None = None
) -> Listener:
    """A listener for this application on a socket; raises AccordError without the extra `http`."""
    try:
        from accord.http.server.listener import Listener
    except ImportError:
        listening.close()
        raise missing_extra("http", "serving over HTTP") from None
    return Listener(app, limits, listening, tls)


def _access(host: str, access: Access | None) -> Access:
    if not isinstance(cast("object", access), Access | None):
        raise wrong_type("access", "an Access", access, 'for a token, write Access(["token"])')
    if not is_loopback(host) and (access is None or access.is_open):
        raise AccordError(f"host {host} is not a loopback address: pass an 'access' with tokens")
    return access or Access(hosts=Access.loopback_names(host))


def server_tls(certificate: str | Path, key: str | Path | None) -> ssl.SSLContext:
    """The context of a server with this certificate; raises AccordError if it cannot be used."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # RFC 7540, 9.2: "MUST use TLS version 1.2 or higher", and none of the older ciphers.
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    tls.set_alpn_protocols(offered())
    load_certificate(tls, certificate, key)
    return tls


def load_certificate(
    tls: ssl.SSLContext,
    certificate: str | Path,
    key: str | Path | None,
    *,
    passphrase: Callable[[], str] | None = None,
) -> None:
    """Load a certificate into this context; raises AccordError. OpenSSL asks for a missing passphrase."""
    try:
        tls.load_cert_chain(certificate, key, passphrase)
    except (OSError, ssl.SSLError) as error:  # an SSLError is an OSError, but its text does not help users
        named = f"{certificate}{'' if key is None else f' and {key}'}"
        reason = (
            "not a PEM certificate with a matching private key" if isinstance(error, ssl.SSLError) else error.strerror
        )
        raise AccordError(f"cannot use the certificate {named}: {reason}") from error


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at this address; raises AccordError."""
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
            if hasattr(socket, option):  # accepted sockets inherit these options
                listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        listening.bind((host, port))
        listening.listen(256)  # so that clients can connect before the server's first step
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise AccordError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listening


def url_of(scheme: str, host: str, listening: socket.socket, path: str = "/acp") -> str:
    """The URL for clients of a socket that listens at this host."""
    port = listening.getsockname()[1]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{path}"
