"""`Link`: the connection to one component of a chain, and `Port`: one of the two ways to speak over it.

A link to an agent or a client has one port, *plain*. A link between a conductor and a proxy has a second one,
*wrapped*, for messages in envelopes. Ports are joined in pairs: messages that arrive by a port leave by its mate. So
the chain

    client ── proxy ── agent

is two pairs: (client, plain) with (proxy, plain), and (proxy, wrapped) with (agent, plain). See `switchboard`.

**Flow control.** A link whose output is above the high-water mark of its transport is full. While it is, links that
send to it may not be read, by the rule below. So a slow client slows the agent through all proxies, and memory is
limited by the mark of each link.

**When reading has to pause.** A link to a proxy carries both directions. Pausing it stops both. So if each link were
paused whenever a link that it writes to is full, two proxies could stop each other for ever:

    proxy 1 is not read, because proxy 2 is full        proxy 2 is not read, because proxy 1 is full
    proxy 2 does not read, because it is not read       proxy 1 does not read, because it is not read

**The rule.** Waiting bytes are counted by direction, and the direction towards the client goes first:

1. A link is not read while much of its output *towards the client* waits in a full link.
2. A link is not read while much of its output *towards the agent* waits in a full link, unless much waits for this link
   that goes towards the client. It can accept that only if its own output is read.

**Why it works.** By the first rule a component waits for the one before it, and the last of those is the client. So
those waits form no cycle. By the second rule a wait in the other direction yields to them. The price is memory:
messages towards the agent may wait past the mark while the client is slow, up to `MOST_AHEAD`. Past that the link is
not read, whatever waits for it: a client that asks and reads no answers would fill the memory otherwise. Two honest
peers do not stop each other by this, as in `engine.flow_control`: each keeps reading while its own output waits.

Envelopes, and the version in `initialize`: what a conductor reads of messages. PURE.

A proxy has one link, and two neighbours. Messages with its predecessor (towards the client) are plain. Messages with
its successor (towards the agent) are the params of `proxy/successor`:

    {"jsonrpc":"2.0","id":7,"method":"proxy/successor","params":{"method":"session/prompt","params":{...}}}

The id belongs to the envelope, so the answer has no envelope. `$/cancel_request` is always plain: an id is valid on its
own link only.

**The version.** The conductor answers for the chain, so it offers no more than it knows: the highest version at or
below the one that the client requests. Each component may choose a lower one in its answer, which nothing changes.
After `initialize` the conductor passes on bytes of any version.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Raw

from accord.errors import INTERNAL_ERROR, ConnectionClosed
from accord.jsonrpc import wire_messages
from accord.jsonrpc.frame_structure import RawOrNone, members_of, value_of
from accord.jsonrpc.line_frames import Oversized, RequestId
from accord.jsonrpc.wire_messages import encode_error
from accord.trace import IN, OUT, Direction
from accord.transports import HIGH_WATER, End, Transport

INITIALIZE = "initialize"


class Spelling(NamedTuple):
    """The names of the two methods of proxies: the present ones, or those of the Rust SDK before version 5."""

    initialize: str
    successor: str


TODAY = Spelling("proxy/initialize", "proxy/successor")
OLDER = Spelling("_proxy/initialize", "_proxy/successor")

HANDSHAKES = {spelling.initialize: spelling for spelling in (TODAY, OLDER)}
ENVELOPES = {spelling.successor: spelling for spelling in (TODAY, OLDER)}
PROXY_METHODS = frozenset((*HANDSHAKES, *ENVELOPES))
"""The methods that only a conductor and a proxy may use with each other."""


class Envelope(msgspec.Struct, gc=False):
    """The content of an envelope. Its `_meta` is for one hop, and is not passed on."""

    method: str
    params: RawOrNone = None


class BadEnvelope(ValueError):
    """The params of `proxy/successor` name no method."""


def open_envelope(params: Raw | None) -> Envelope:
    """Return the message in an envelope, with its params unchanged; raises BadEnvelope."""
    if params is None:
        raise BadEnvelope("proxy/successor needs params with the member 'method'")
    try:
        envelope = _decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError):
        envelope = _opened_with_care(bytes(params))
    if envelope.params is not None and bytes(memoryview(envelope.params)[:1]) == b"n":
        return Envelope(envelope.method)
    return envelope


def _opened_with_care(params: bytes) -> Envelope:
    """Like `open_envelope`, for text with halves of emoji or invalid UTF-8."""
    try:
        members = members_of(params)
        method = None if members is None or members.method is None else value_of(members.method)
    except (msgspec.DecodeError, ValueError):
        method, members = None, None
    if members is None or not isinstance(method, str):
        raise BadEnvelope("the member 'method' of proxy/successor must be a string")
    return Envelope(method, members.params)


def enveloped_notification(spelling: Spelling, method: str, params: bytes | Raw | None) -> bytes:
    """The frame of a notification in an envelope."""
    if params is None:
        return b"".join((_notification_head(spelling, method), b"}}"))
    return b"".join((_notification_head(spelling, method), b',"params":', params, b"}}"))


def enveloped_request(spelling: Spelling, request_id: RequestId, method: str, params: bytes | Raw | None) -> bytes:
    """The frame of a request in an envelope."""
    head = b'{"jsonrpc":"2.0","id":%b%b' % (msgspec.json.encode(request_id), _envelope_head(spelling, method))
    return b"".join((head, b"}}")) if params is None else b"".join((head, b',"params":', params, b"}}"))


@lru_cache(maxsize=512)
def _envelope_head(spelling: Spelling, method: str) -> bytes:
    return b',"method":"%b","params":{"method":%b' % (spelling.successor.encode(), _json(method))


@lru_cache(maxsize=512)
def _notification_head(spelling: Spelling, method: str) -> bytes:
    return b'{"jsonrpc":"2.0"' + _envelope_head(spelling, method)


def _json(text: str) -> bytes:
    return msgspec.json.encode(text.encode("utf-8", "replace").decode())


_decode = msgspec.json.Decoder(Envelope).decode


LOWEST, HIGHEST = 1, 2
"""The versions of the protocol whose `initialize` is known."""


class BadVersion(ValueError):
    """The params of `initialize` name no version of the protocol."""


def offered_params(params: Raw | None) -> bytes | Raw:
    """Return the params of `initialize` for the chain: unchanged, unless the client requests an unknown version.

    >>> bytes(offered_params(Raw(b'{"protocolVersion":7,"more":1}')))
    b'{"protocolVersion":2,"more":1}'
    """
    members = _members(params)
    asked = members.get("protocolVersion")
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 0:
        found = "nothing" if asked is None else msgspec.json.encode(asked).decode()[:40]
        raise BadVersion(f"protocolVersion must be a whole number of at least 0, got {found}")
    version = max(LOWEST, min(asked, HIGHEST))
    if version == asked and params is not None:
        return params
    return msgspec.json.encode({**members, "protocolVersion": version})


def version_in(value: Raw | bytes | None) -> int | None:
    """Return the version that the params or the result of `initialize` name; None if they name none."""
    try:
        version = _members(value).get("protocolVersion")
    except BadVersion:
        return None
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _members(value: Raw | bytes | None) -> dict[str, Any]:
    try:
        return {} if value is None else msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadVersion(f"the params of initialize cannot be read: {error}") from None


STDERR = 4_000
"""Characters of a component's standard error that an answer has at most, from its end."""


class ComponentFailure(msgspec.Struct, frozen=True):
    """The component that ended, and why."""

    component: str
    """Its place and its name: `proxy 1 (house-rules)`."""
    reason: str
    """One of the words of `ConnectionClosed.reason`."""
    text: str
    """A description on one line, for people."""
    exit_code: int | None = None
    stderr: str = ""

    @classmethod
    def of(cls, component: str, error: ConnectionClosed) -> ComponentFailure:
        """Return the failure of a component whose link ended like this."""
        text = str(error).replace("the agent's process", "its process").replace("the agent closed", "it closed")
        return cls(component, error.reason, " ".join(text.split()), error.exit_code, error.stderr)

    def __str__(self) -> str:
        return f"{self.component}: {self.text}"

    def answer(self, request_id: RequestId, method: str) -> bytes:
        """The frame that answers a request which needed the component."""
        data: dict[str, Any] = {"component": self.component, "reason": self.reason, "method": method}
        if self.exit_code is not None:
            data["exitCode"] = self.exit_code
        if self.stderr.strip():
            data["stderr"] = self.stderr[-STDERR:]
        return encode_error(request_id, INTERNAL_ERROR, str(self), data)


MUCH = HIGH_WATER // 4
"""Bytes of one direction that are much, in a link that is full."""

MOST_AHEAD = 16 * 1024 * 1024
"""Bytes towards the agent that may wait for a component while their sender does not read its answers."""

MOST_WAITING = 256 * 1024 * 1024
"""Bytes that may wait for one component; one that does not read them counts as stuck."""


class QueuedBytes(NamedTuple):
    """Bytes of output: those to the client, those to the agent, and answers of our own."""

    inwards: int = 0
    outwards: int = 0
    own: int = 0

    @property
    def size(self) -> int:
        return self.inwards + self.outwards + self.own


class OutputBacklog:
    """The output of one link that its transport has not written, newest last."""

    __slots__ = ("_parts", "sum")

    def __init__(self) -> None:
        self.sum = QueuedBytes()
        """The waiting bytes, in sum."""
        self._parts: deque[QueuedBytes] = deque()

    def sent(self, part: QueuedBytes, unsent: int) -> None:
        """Note that this was passed to the transport, in which `unsent` bytes wait now."""
        self._parts.append(part)
        self._add(part, 1)
        self.written(unsent)

    def written(self, unsent: int) -> None:
        """The transport has written all but `unsent` bytes: forget the oldest parts."""
        if not unsent:
            self._parts.clear()
            self.sum = QueuedBytes()
        while self._parts and self.sum.size - self._parts[0].size >= unsent:
            self._add(self._parts.popleft(), -1)

    def _add(self, part: QueuedBytes, sign: int) -> None:
        old = self.sum
        self.sum = QueuedBytes(
            old.inwards + sign * part.inwards, old.outwards + sign * part.outwards, old.own + sign * part.own
        )


CANCEL_REQUEST = "$/cancel_request"


class Board(Protocol):
    """The owner of links, which they notify: the switchboard."""

    def receive(self, link: Link, frames: Sequence[bytes | Oversized]) -> None:
        """Take the frames that have arrived on this link."""
        ...

    def put(self, link: Link, frame: bytes, direction: Direction | None = None) -> None:
        """Put this frame in a link's output. `direction` is its way; None for a message of our own."""
        ...

    def balance(self) -> None:
        """Decide again which links are read."""
        ...

    def ended(self, link: Link, end: End) -> None:
        """A link has ended."""
        ...


class AwaitedRequest(Protocol):
    """A request that went out over a link, until its answer arrives."""

    method: str

    def answered(self, result: Raw | None, error: bytes | Raw | None) -> None:
        """The answer: a result, or an error as JSON."""
        ...

    def failed(self, failure: ComponentFailure) -> None:
        """Note that no answer comes: the component has ended."""
        ...


class ArrivedRequest(Protocol):
    """A request that arrived over a link, until it is answered."""

    def cancel(self) -> None:
        """The side that sent the request no longer wants the answer."""
        ...


Interception = Callable[[RequestId | None, str, Any], bool]
"""Handles a message that arrived by a port: id, method, params. Returns False to pass it; a notification has no id."""


class Port:
    """One of the two channels of a link: plain, or in envelopes."""

    __slots__ = ("direction", "intercept", "link", "mate", "wrapped")

    def __init__(self, link: Link, direction: Direction, *, wrapped: bool = False) -> None:
        self.link = link
        self.wrapped = wrapped
        self.direction: Direction = direction
        """Where a message that arrives by this port is going: `out` to the agent, `in` to the client."""
        self.mate: Port | None = None
        """Where it leaves; None if nothing may arrive by this port."""
        self.intercept: Interception | None = None

    def notification_frame(self, method: str, params: bytes | Raw | None) -> bytes:
        """Return the frame of a notification that leaves by this port."""
        if self.wrapped:
            return enveloped_notification(self.link.spelling, method, params)
        return wire_messages.encode_notification(method, params)

    def request_frame(self, request_id: int, method: str, params: bytes | Raw | None) -> bytes:
        """Return the frame of a request that leaves by this port."""
        if self.wrapped:
            return enveloped_request(self.link.spelling, request_id, method, params)
        if method == INITIALIZE and self.link.is_proxy:
            method = self.link.spelling.initialize
        return wire_messages.encode_request(request_id, method, params)


def join(nearer: Port, further: Port) -> None:
    """Join two ports; `nearer` is on the client's side."""
    nearer.mate, further.mate = further, nearer


class Link:
    """The connection to one component, or to the client."""

    def __init__(
        self,
        board: Board,
        transport: Transport,
        name: str,
        *,
        is_proxy: bool = False,
        is_component: bool = True,
        has_successor: bool = False,
    ) -> None:
        self.name = name
        self.transport = transport
        self.is_proxy = is_proxy
        """Whether the component is our proxy, which has a successor and gets `proxy/initialize`."""
        self.is_component = is_component
        """Whether it is a component, and not the side that we serve."""
        self.has_successor = has_successor
        """Whether our client treats us as a proxy, and gives us a successor."""
        self.plain = Port(self, IN if is_component else OUT)
        self.wrapped = Port(self, OUT if is_component else IN, wrapped=True)
        self.spelling: Spelling = TODAY
        self.awaited: dict[RequestId, AwaitedRequest] = {}
        """The requests that were sent over this link and have no answer yet."""
        self.unanswered: dict[Hashable, ArrivedRequest] = {}
        """The requests that arrived over this link and have no answer yet."""
        self.waiting: list[bytes] = []
        """Frames for the next write."""
        self.inwards = self.outwards = self.own = 0
        """Their bytes, by direction."""
        self.backlog = OutputBacklog()
        """The bytes that the transport has not written."""
        self.failure: ComponentFailure | None = None
        """Why requests over this link fail; None while it is open."""
        self.is_full = False
        self.printed = ""
        """The first line that the component printed instead of a message."""
        self.on_settled: Callable[[], None] | None = None
        """Called when the last request that arrived is answered."""
        self.is_busy: Callable[[], bool] | None = None
        """Whether this side is busy enough with what it has read."""
        self._board = board
        self._is_open = False
        self._is_held = False

    async def open(self) -> None:
        """Open the connection, and send the waiting frames; raises ConnectionClosed."""
        await self.transport.start(self)
        self._is_open = True
        if self._is_held:
            self.transport.pause_reading()
        self.is_full = False
        self.flush()
        self._board.balance()

    def put(self, frame: bytes, direction: Direction | None = None) -> None:
        """Send this frame, together with others of the same step."""
        self._board.put(self, frame, direction)

    def send_cancel(self, request_id: int) -> None:
        """Cancel our request. A cancellation is never in an envelope."""
        self.put(wire_messages.encode_notification(CANCEL_REQUEST, b'{"requestId":%d}' % request_id))

    def flush(self) -> None:
        """Send the frames that wait."""
        if self.failure is not None:
            self.waiting.clear()
            return
        if not self._is_open:
            if not self.is_full and self.inwards + self.outwards > HIGH_WATER:
                self.paused()
            return
        frames, self.waiting = self.waiting, []
        self.transport.send(frames)
        if (unsent := self.transport.unsent) or self.backlog.sum.size:
            self.backlog.sent(QueuedBytes(self.inwards, self.outwards, self.own), unsent)
        self.inwards = self.outwards = self.own = 0
        if self.is_full:
            self._board.balance()

    @property
    def stuck(self) -> QueuedBytes:
        """Return the bytes that wait in this link, if it is full; nothing otherwise."""
        if not self.is_full or self.failure is not None:
            return QueuedBytes()
        if not self._is_open:
            return QueuedBytes(self.inwards, self.outwards, self.own)
        self.backlog.written(self.transport.unsent)
        return self.backlog.sum

    def fail(self, failure: ComponentFailure) -> None:
        """Fail this link: every request over it is answered with this failure, now and later."""
        self.failure = failure
        for awaited in list(self.awaited.values()):
            awaited.failed(failure)
        self.awaited.clear()
        for unanswered in list(self.unanswered.values()):
            unanswered.cancel()
        self.unanswered.clear()
        self.settled()
        self.resumed()
        self.waiting.clear()

    def claim(self, key: Hashable) -> bool:
        """Note that a request is being answered; returns False if it was before."""
        if self.unanswered.pop(key, None) is None:
            return False
        self.settled()
        return True

    def settled(self) -> None:
        if not self.unanswered and self.on_settled is not None:
            self.on_settled()

    # Flow control

    def must_wait(self) -> bool:
        """Whether the rule above forbids reading this link now."""
        for port in (self.plain, self.wrapped):
            if port.mate is None:
                continue
            there = port.mate.link.stuck
            if port.direction == IN and there.inwards > MUCH:
                return True
            if port.direction == OUT and there.outwards > (MUCH if self.stuck.inwards <= MUCH else MOST_AHEAD):
                return True
        if self.is_busy is not None and self.is_busy():
            return True
        return self.stuck.own > MUCH  # it sends requests that must be refused, and does not read the refusals

    def hold(self, *, must_wait: bool) -> None:
        """Stop reading this link, or read it again."""
        if must_wait != self._is_held:
            self._is_held = must_wait
            if self._is_open and self.failure is None:
                (self.transport.pause_reading if must_wait else self.transport.resume_reading)()

    # The transport's callbacks

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        """Handle frames; the transport calls this."""
        self._board.receive(self, frames)

    def paused(self) -> None:
        """Note that the output is full; the transport calls this."""
        self.is_full = True
        self._board.balance()

    def resumed(self) -> None:
        """Note that the output has room again; the transport calls this."""
        self.is_full = False
        self._board.balance()

    def ended(self, end: End) -> None:
        """Note that the link has ended; the transport calls this once."""
        self._board.ended(self, end)
