"""The interface to the other hosts of a service, if there are any. `accord.hosts` implements it.

A single server has none: the application then checks one attribute, which is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from accord.http.headers import CONNECTION_ID
from accord.http.server.access import Access, Observer, owner_of
from accord.http.server.access_log import AccessRecord
from accord.http.server.asgi import Receive, Scope
from accord.http.server.http_connection import Responder
from accord.http.server.request_body import RequestBody
from accord.http.server.validation import Headers, Refusal
from accord.transports import End, Transport

FORWARDED = "accord.forwarded"
"""The ASGI extension with the `Signed` of a request that a peer has forwarded. Its signature was verified."""


class Signed(NamedTuple):
    """The owner of a forwarded request, and the host that forwarded it."""

    owner: str
    sender: str
    observes: bool = False
    """Whether the owner's token may only watch."""
    digest: str | None = None
    """The SHA-256 of its body, in hexadecimal digits."""


HOP = "accord-hop"
"""The header with the signature of a forwarded request."""

FORWARDABLE = frozenset({"POST", "GET", "DELETE"})
"""The methods of the endpoint. Any other is refused without looking for the connection."""


class ForwardedRequest(NamedTuple):
    """A request to forward, and the way to answer it."""

    method: str
    headers: Headers
    body: bytes
    owner: str
    responder: Responder
    receive: Receive

    @property
    def observes(self) -> bool:
        """Whether its token may only watch."""
        return self.responder.record.observes


class OtherHost(Protocol):
    """Another host of this service."""

    id: str

    async def forward(self, request: ForwardedRequest) -> None:
        """Answer this request as that host does; raises Refusal if it does not answer."""
        ...

    async def opens(self, request: ForwardedRequest) -> bool:
        """Let that host answer this `initialize`; returns False if it cannot, so that another one should."""
        ...

    async def relay(self, link: Transport, owner: str) -> End | None:
        """Serve this WebSocket with an agent of that host; returns how it ended, None if the client ended first."""
        ...


class OpenSession(NamedTuple):
    """A session that is open on a connection."""

    id: str
    owner: str
    connection: str
    """The id of its connection."""
    is_running: bool
    """Whether a prompt of its connection is being answered."""


class Cluster(Protocol):
    """The other hosts of this service."""

    def new_id(self) -> str:
        """The id of a new connection of this host."""
        ...

    async def host_of(self, connection: str) -> OtherHost | None:
        """Return the host of this connection, or None if it is this one; raises Refusal if it cannot be reached."""
        ...

    def places(self, *, is_socket: bool = False) -> Sequence[OtherHost]:
        """Return the hosts that should open a new connection, the best first; empty if this one should."""
        ...

    async def place_of_owner(self, owner: str) -> OtherHost | None:
        """Return the host with the shared agent of this owner, or None if it is this one; raises Refusal."""
        ...

    @property
    def id(self) -> str:
        """The id of this host."""
        ...

    @property
    def address(self) -> str:
        """The address at which the other hosts reach this one, as `host:port`."""
        ...

    @property
    def living(self) -> int:
        """Return how many hosts the service has, including this one."""
        ...

    @property
    def is_draining(self) -> bool:
        """Whether this host opens no more connections."""
        ...

    @property
    def problem(self) -> str:
        """Return why a balancer should send no new clients to this host; empty if it may."""
        ...

    async def metrics(self) -> Sequence[str]:
        """Return the metrics of the other processes of this machine, as far as they answer."""
        ...

    async def drain(self, state: Literal["draining", "live"] = "draining") -> None:
        """Notify the other hosts that this one opens no more connections, or does again; does nothing after `leave`."""
        ...

    async def leave(self) -> None:
        """End the streams that pass through this host, and notify the others that it has gone; idempotent."""
        ...


def note_user(record: AccessRecord, scope: Scope, headers: Headers, access: Access) -> None:
    """Note the sender of a request: the owner in a peer's signature, or that of the token. Raises Refusal."""
    if (signed := signature_of(scope)) is not None:
        record.user, record.observes = signed.owner, signed.observes
        return
    if HOP in headers:
        raise Refusal(400, "Accord-Hop is for requests between hosts, at their peer port")
    user = access.user(headers)
    record.user, record.observes = owner_of(user), isinstance(user, Observer)


async def forward_request(
    cluster: Cluster, scope: Scope, headers: Headers, body: RequestBody, responder: Responder, receive: Receive
) -> bool:
    """Answer a request for a connection of another host; returns False if this host has it. Raises Refusal.

    A request that was forwarded once is never forwarded again.
    """
    record = responder.record
    connection = headers.get(CONNECTION_ID)
    if not connection or record.method not in FORWARDABLE or is_forwarded(scope):
        return False
    if (other := await cluster.host_of(connection)) is None:
        return False
    record.connection = connection
    sent = await body.read() if record.method == "POST" else b""
    await body.held_during(
        other.forward(ForwardedRequest(record.method, headers, sent, record.user, responder, receive))
    )
    return True


async def open_on_other_host(cluster: Cluster, scope: Scope, request: ForwardedRequest, *, is_shared: bool) -> bool:
    """Let another host open a connection, if one should; returns False if this host should. Raises Refusal."""
    if is_forwarded(scope):
        return False
    if is_shared:
        holder = await cluster.place_of_owner(request.owner)
        if holder is not None and not await holder.opens(request):
            raise Refusal(503, "the host with the agent of this owner does not answer; try again", retry_after=1)
        return holder is not None
    for other in cluster.places():
        if await other.opens(request):
            return True
    return False


async def place_of_socket(cluster: Cluster | None, scope: Scope, owner: str, *, is_shared: bool) -> OtherHost | None:
    """Return the other host that should serve this WebSocket, or None if this one should; raises Refusal."""
    if cluster is None or is_forwarded(scope):
        return None
    if is_shared:
        return await cluster.place_of_owner(owner)
    return next(iter(cluster.places(is_socket=True)), None)


def is_forwarded(scope: Scope) -> bool:
    """Whether another host has forwarded this request, and has counted it."""
    return signature_of(scope) is not None


def signature_of(scope: Scope) -> Signed | None:
    """Return the owner and the host of a forwarded request; None if it came from a client."""
    signed: Signed | None = scope.get("extensions", {}).get(FORWARDED)
    return signed
