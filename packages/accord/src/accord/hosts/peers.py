"""The other hosts as seen from this one: the connections to each, whether it answers, and TLS with it.

Each peer is asked for its health every fifth of a lease. After three fifths without an answer it counts as silent: open
requests to it are ended, and new ones are refused at once, until it answers again. A forwarded POST has no other
deadline, because it may have to wait while the agent is paused.

Its answer proves that it has the key, and reports its monotonic clock, for which requests to it are signed. So nothing
is sent to a process that merely has the address, and nothing depends on the wall clocks of the machines.

With TLS, a host proves with its certificate that it is reached at the address that the table of hosts names. With a CA
of the hosts' own, each side of a connection requires a certificate of that CA, so that no other program of the network
can connect.

Certificates are short-lived, and are renewed by replacing the files. So the files are checked with each beat, and
loaded again when they have changed; connections that are opened from then on use them. Files that are just being
written, or do not fit together, change nothing: the previous certificate stays in use.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from accord._internal.tasks import Tasks
from accord.errors import AccordError
from accord.hosts.host_table import BEATS, HostRow, HostTable, not_answering
from accord.hosts.signed_forward import BadSignature, SignedForward, Signer, forwarded_headers
from accord.http.client.client_socket import Broken, Response
from accord.http.client.connection_pool import ConnectionPool
from accord.http.server.cluster import HOP
from accord.http.server.serve import load_certificate, server_tls

log = logging.getLogger("accord.hosts")


class PeerTls:
    """The contexts for both sides of connections between hosts; raises AccordError if a file cannot be used."""

    def __init__(
        self, certificate: str | Path, key: str | Path | None = None, authority: str | Path | None = None
    ) -> None:
        self._certificate = certificate
        self._key = key
        self._authority = authority
        self.server = server_tls(certificate, key)
        """Accepts connections of other hosts."""
        self.client = ssl.create_default_context() if authority is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        """Opens connections to other hosts; trusts the system's CAs if no other is given."""
        self.client.minimum_version = ssl.TLSVersion.TLSv1_2
        if authority is not None:
            self.server.verify_mode = ssl.CERT_REQUIRED
        self._load(self.client)
        self._trust()
        self._loaded = self._stamps()

    def renew(self) -> None:
        """Load the files again if they have changed."""
        found = self._stamps()
        if found == self._loaded:
            return
        self._loaded = found
        try:
            # Into fresh contexts first: a certificate and a key that do not fit together must not replace others.
            for context in ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.server, self.client:
                self._load(context)
            self._trust()
        except AccordError as error:
            log.warning("%s; the certificate that was loaded before stays in use", error)
        else:
            log.info("the certificate for other hosts was loaded again: %s", self._certificate)

    def _load(self, context: ssl.SSLContext) -> None:
        load_certificate(context, self._certificate, self._key, passphrase=_no_passphrase)

    def _trust(self) -> None:
        if self._authority is None:
            return
        try:
            for context in self.server, self.client:
                context.load_verify_locations(self._authority)
        except OSError as error:
            reason = "not a PEM certificate" if isinstance(error, ssl.SSLError) else error.strerror
            raise AccordError(f"cannot use the CA certificate {self._authority}: {reason}") from error

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(Path(file)) for file in (self._certificate, self._key, self._authority) if file is not None]


def _no_passphrase() -> str:
    return ""  # a question at the terminal would stop this host


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


SILENT = 0.6
"""Leases of silence after which a peer is no longer asked."""

ENDING = 1.0
"""Seconds for the tasks of a peer to end."""

PATH = "/acp"
"""The endpoint of the peer port."""

HEALTH = "/healthz"

METRICS = "/metrics"

SESSIONS, DRAIN, UNDRAIN, END, REVOKE = "/sessions", "/drain", "/undrain", "/end", "/revoke"
"""The requests of an operator at the peer port. All but the first are POSTs."""

MOST_METRICS = 4 * 1024 * 1024
"""Bytes of the figures of one host."""

T = TypeVar("T")

log = logging.getLogger("accord.hosts")


class PeerHost:
    """Another host, and the connections to it."""

    def __init__(
        self,
        host: HostRow,
        lease: float,
        tls: ssl.SSLContext | None,
        signer: Signer,
        on_silent: Callable[[str], None],
    ) -> None:
        self.host = host
        self._signer = signer
        self._ahead = 0.0
        """Seconds that its clock is ahead of ours; late by the time that its last answer took."""
        self._knows_clock = asyncio.Event()
        self.tls = tls
        """Opens connections to its peer port, if that speaks TLS."""
        self.requests = self._requests(PATH)
        self._questions = self._requests(HEALTH)
        self.silent = asyncio.Event()
        """Set while the peer does not answer, and for ever once it has ended."""
        self._lease = lease
        self._on_silent = on_silent
        self._loop = asyncio.get_running_loop()
        self._answered = self._loop.time()
        self._under_way: set[asyncio.Timeout] = set()
        """The requests that are cancelled when the peer no longer answers. A task for each that waits for that would
        cost more.
        """
        self._problem = ""
        """The reason why it does not answer, if that was logged."""

    def _requests(self, path: str) -> ConnectionPool:
        scheme = "http" if self.tls is None else "https"
        return ConnectionPool(f"{scheme}://{self.host.address}{path}", tls=self.tls, http2=False)

    @property
    def answers(self) -> bool:
        """Whether requests can be sent to it."""
        return not self.silent.is_set()

    async def watch(self) -> None:
        """Ask for its health until cancelled."""
        try:
            while True:
                if problem := await self.ask():
                    self._no_answer(problem)
                await asyncio.sleep(self._lease / BEATS)
        finally:
            self._break_off()

    def _break_off(self) -> None:
        self.silent.set()
        for patience in self._under_way:
            if not patience.expired():  # cancelled requests may take a while to end
                patience.reschedule(self._loop.time())
        self._on_silent(self.host.id)

    async def ask(self) -> str:
        """Ask for its health and its clock; returns why it does not answer, empty if it does."""
        question = self._signer.forward(self.host.id, 0.0)
        problem = ""
        try:
            answer = await self._answer_text(self._questions, HEALTH, question, 1024)
            self._ahead = self._signer.verify_clock(answer, question) - time.monotonic()
            self._knows_clock.set()
        except BadSignature:  # another process may have the address by now
            problem = "another process answers there, or a host with another key or of another version"
        except Broken as broken:
            # asyncio's server closes a connection without the alert that would reject its certificate.
            maybe = "; it may not accept the certificate of this host" if broken.was_sent and self.tls else ""
            problem = f"{broken}{maybe}"
        except TimeoutError:
            problem = "it did not answer in time"
        if not problem:
            self._answered = self._loop.time()
            self._problem = ""
            self.silent.clear()
        return problem

    def _no_answer(self, problem: str) -> None:
        if self._loop.time() - self._answered > SILENT * self._lease:
            self._note(problem)
            self._break_off()

    async def metrics(self) -> str:
        """Fetch its metrics as text; empty if it does not answer."""
        asking = self._requests(METRICS)
        try:
            return await self._answer_text(asking, METRICS, self._forward(), MOST_METRICS)
        except (Broken, TimeoutError):
            return ""
        finally:
            with suppress(Broken):
                await asking.close()

    async def administer(self, path: str, query: str = "", owner: str = "") -> str:
        """Return its answer to a command of an operator, after `ask`; raises Broken or TimeoutError."""
        target = f"{path}?{query}" if query else path
        asking = self._requests(target)
        try:
            method = "GET" if path == SESSIONS else "POST"
            return await self._answer_text(asking, target, self._forward(owner), MOST_METRICS, method)
        finally:
            with suppress(Broken):
                await asking.close()

    async def _answer_text(
        self, asking: ConnectionPool, target: str, question: SignedForward, most: int, method: str = "GET"
    ) -> str:
        """Return the text of its answer; raises Broken or TimeoutError."""
        signature = self._signer.sign(question, method, target, {})
        async with asyncio.timeout(self._lease * 2 / BEATS):
            response = await asking.request(method, [(HOP, signature)])
            body = await response.body(most)
        return body.decode("utf-8", "replace") if response.status == 200 else ""

    def _note(self, problem: str) -> None:
        """Log a problem once, when it begins."""
        if problem != self._problem:
            self._problem = problem
            log.warning("host %s (%s) does not answer: %s", self.host.id, self.host.name, problem)

    async def unless_silent(self, work: Awaitable[T]) -> T:
        """Await this, but cancel it when the peer no longer answers; raises Refusal (503), also for Broken."""
        try:
            async with asyncio.timeout(None if self.answers else 0) as patience:
                self._under_way.add(patience)
                try:
                    return await work
                finally:
                    self._under_way.discard(patience)
        except TimeoutError:
            raise not_answering() from None
        except Broken as broken:
            raise not_answering() from broken

    async def request(
        self, method: str, headers: Mapping[str, str], owner: str, body: bytes, *, observes: bool
    ) -> Response:
        """Send a request and wait for the headers of the answer; raises Refusal if the peer does not answer."""
        signature = await self.signature(method, headers, owner, body, observes=observes)
        sent = [*forwarded_headers(headers).items(), (HOP, signature)]
        return await self.unless_silent(self.requests.request(method, sent, body))

    async def signature(
        self, method: str, headers: Mapping[str, str], owner: str, body: bytes = b"", *, observes: bool = False
    ) -> str:
        """Sign a request to its endpoint, once its clock is known; raises Refusal if the peer does not answer."""
        if not self.answers:
            raise not_answering()
        if not self._knows_clock.is_set():
            await self.unless_silent(self._knows_clock.wait())
        return self._signer.sign(self._forward(owner, body, observes=observes), method, PATH, headers)

    def _forward(self, owner: str = "", body: bytes = b"", *, observes: bool = False) -> SignedForward:
        return self._signer.forward(self.host.id, time.monotonic() + self._ahead, owner, body, observes=observes)

    async def close(self) -> None:
        """Close the connections."""
        await self.requests.close()
        await self._questions.close()


class PeerHosts:
    """The peers in the latest view."""

    def __init__(self, peer_of: Callable[[HostRow], PeerHost]) -> None:
        self._peer_of = peer_of
        self._peers: dict[str, PeerHost] = {}
        self._tasks = Tasks(asyncio.get_running_loop())
        self._watching: dict[str, asyncio.Task[None]] = {}

    def follow(self, view: HostTable, me: str) -> None:
        """Watch the hosts of this view, and drop those that have ended."""
        living = {host.id: host for host in view.hosts.values() if host.id != me and not host.is_over}
        for host in living.values():
            if host.id not in self._peers:
                self._begin(host)
            else:
                self._peers[host.id].host = host
        for gone in self._peers.keys() - living.keys():
            self._watching.pop(gone).cancel()
            self._tasks.start(self._peers.pop(gone).close(), "accord hosts: leave a peer")

    def _begin(self, host: HostRow) -> None:
        peer = self._peers[host.id] = self._peer_of(host)
        self._watching[host.id] = self._tasks.start(peer.watch(), f"accord hosts: watch {host.id}")

    def get(self, host: str) -> PeerHost | None:
        """The peer with this id, if it has not ended."""
        return self._peers.get(host)

    def all(self) -> list[PeerHost]:
        """The peers that have not ended."""
        return list(self._peers.values())

    def ready(self) -> list[PeerHost]:
        """The peers that open new connections."""
        return [peer for peer in self._peers.values() if peer.answers and peer.host.state == "live"]

    async def close(self) -> None:
        """Stop watching, and close all connections."""
        for task in self._watching.values():
            task.cancel()
        await self._tasks.end(ENDING)
        await asyncio.gather(*(peer.close() for peer in self._peers.values()))
