"""The unanswered requests of one connection, in both directions, and the sessions that they open. PURE.

    client's request ──▶ refusal? ──▶ received ──┐
                                                 ├──▶ UnansweredRequest, by id
    agent's answer ────▶ sent ───────────────────┘ ──▶ StreamRoute: the session whose stream carries it
    agent's request ───▶ sent ──▶ its session, by id ──▶ answered (the client's answer)

Every transport of the server has one of these, and nothing else remembers a request. WebSockets have no streams, so
they need only `websocket_received` and `websocket_sent`. Most messages of an agent are updates: `websocket_sent`
recognizes them by their first bytes, and parses only the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from accord.engine.incoming_requests import session_of
from accord.errors import INVALID_REQUEST
from accord.http.headers import (
    CLOSES_A_SESSION,
    MAKES_A_SESSION,
    OPENS_A_SESSION,
    SESSION_ANSWERED_ON_CONNECTION,
)
from accord.http.server.server_limits import ServerLimits
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import (
    Malformed,
    Message,
    NotificationFrame,
    RequestFrame,
    ResponseFrame,
    encode_error,
    parse,
)

INITIALIZE = "initialize"
PROMPT = "session/prompt"
TELLING = MAKES_A_SESSION | OPENS_A_SESSION | CLOSES_A_SESSION | SESSION_ANSWERED_ON_CONNECTION | {INITIALIZE, PROMPT}
"""The methods whose answers say something about the connection or its sessions."""

NO_ANSWER = b'{"jsonrpc":"2.0","method":'


class UnansweredRequest(NamedTuple):
    """A request of the client that waits for its answer."""

    method: str
    """One of `TELLING`, or empty: a client may choose a name of megabytes, and not read its answer."""
    session: str | None
    """The session that it names."""
    opens: bool = False
    """Whether it counts as a session until it is answered."""


class StreamRoute(NamedTuple):
    """Where a message of the agent belongs."""

    session: str | None = None
    """The session whose stream carries it, or None for the connection's stream."""
    made: str | None = None
    """The session that this answer has opened."""
    closes: bool | None = None
    """Whether this answer ends its session; None if it is not the answer to a session's request."""
    opens_connection: bool = False
    """Whether it answers `initialize`."""


ON_THE_CONNECTION = StreamRoute()


class UnansweredRequests:
    """The unanswered requests of one connection, and its open sessions.

    `sessions` and `requests` are the most open sessions and unanswered requests.

    >>> calls = UnansweredRequests(sessions=1)
    >>> ask = b'{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}'
    >>> calls.websocket_received(ask % 1)
    >>> calls.websocket_received(ask % 2)
    b'{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"a connection has at most 1 sessions: close one"}}'
    """

    def __init__(self, sessions: int = ServerLimits().sessions, requests: int = ServerLimits().requests) -> None:
        self._most_sessions = sessions
        self._most_requests = requests
        self._theirs: dict[RequestId, UnansweredRequest] = {}
        """The client's requests that wait for an answer."""
        self._ours: dict[RequestId, str | None] = {}
        """The agent's requests that wait for an answer, oldest first, and the session of each."""
        self._open: set[str] = set()
        self._opening = self._prompts = 0
        """How many of the client's requests open a session, and how many are prompts."""
        self.on_idle: Callable[[], None] | None = None
        """Called when the last prompt was answered."""

    @property
    def is_busy(self) -> bool:
        """Whether a prompt is being answered."""
        return self._prompts > 0

    @property
    def sessions(self) -> int:
        """Return how many sessions are open or being opened."""
        return len(self._open) + self._opening

    @property
    def open_sessions(self) -> frozenset[str]:
        """The ids of the open sessions."""
        return frozenset(self._open)

    @property
    def unanswered(self) -> int:
        """Return how many requests of the client wait for an answer."""
        return len(self._theirs)

    # Messages of the client

    def has_room_for(self, call: RequestFrame) -> bool:
        """Whether one more request may wait for its answer."""
        return call.id in self._theirs or len(self._theirs) < self._most_requests

    def refusal(self, call: RequestFrame, session: str | None) -> bytes | None:
        """The error to answer this request with, if it would open one session too many."""
        if not self._opens(call.method, session) or self.sessions < self._most_sessions:
            return None
        problem = f"a connection has at most {self._most_sessions:,} sessions: close one"
        return encode_error(call.id, INVALID_REQUEST, problem)

    def _opens(self, method: str, session: str | None) -> bool:
        return method in MAKES_A_SESSION or (method in OPENS_A_SESSION and session not in self._open)

    def received(self, call: RequestFrame, session: str | None, *, is_refused: bool = False) -> None:
        """Remember a request of the client, which names this session; one that `is_refused` opens nothing."""
        self._forget(call.id)
        method = call.method if call.method in TELLING else ""
        asked = UnansweredRequest(method, session, opens=not is_refused and self._opens(method, session))
        self._theirs[call.id] = asked
        self._opening += asked.opens
        self._prompts += asked.method == PROMPT

    def _forget(self, request_id: RequestId) -> UnansweredRequest | None:
        asked = self._theirs.pop(request_id, None)
        if asked is not None:
            self._opening -= asked.opens
            self._prompts -= asked.method == PROMPT
        return asked

    def session_of_ours(self, request_id: RequestId | None) -> str | None:
        """The session of an agent's request that the client has not answered."""
        return None if request_id is None else self._ours.get(request_id)

    def answered(self, request_id: RequestId | None) -> None:
        """Note that the client has answered this request of the agent."""
        if request_id is not None:
            self._ours.pop(request_id, None)

    # Messages of the agent

    def sent(self, message: Message | Malformed) -> StreamRoute:
        """Note a message of the agent; returns where it belongs."""
        match message:
            case ResponseFrame():
                return self._settle(message)
            case RequestFrame() | NotificationFrame():
                session = session_of(message.params)
                if isinstance(message, RequestFrame):
                    self._ask(message.id, session)
                return StreamRoute(session)
            case _:  # malformed: its reader reports that
                return ON_THE_CONNECTION

    def _ask(self, request_id: RequestId, session: str | None) -> None:
        self._ours[request_id] = session
        if len(self._ours) > self._most_requests:  # an answer to the oldest is still delivered, its header unchecked
            del self._ours[next(iter(self._ours))]

    def _settle(self, answer: ResponseFrame) -> StreamRoute:
        went_well = answer.error is None
        made = session_of(answer.result) if went_well else None
        asked = None if answer.id is None else self._forget(answer.id)
        if asked is None:
            return StreamRoute(made=made)
        closes = went_well and asked.method in CLOSES_A_SESSION
        if asked.method == PROMPT and not self._prompts and self.on_idle is not None:
            self.on_idle()
        if closes and asked.session is not None:
            self._open.discard(asked.session)
        if asked.opens and went_well:
            named = asked.session if asked.method in OPENS_A_SESSION else None  # a fork names the session it copies
            self._open.update(filter(None, [named or made]))
        if asked.session is None or asked.method in SESSION_ANSWERED_ON_CONNECTION:
            return StreamRoute(made=made, opens_connection=asked.method == INITIALIZE)
        return StreamRoute(asked.session, made, closes)

    # WebSockets

    def websocket_received(self, frame: bytes) -> bytes | None:
        """Note a message of a WebSocket's client; returns the error to answer instead if it would exceed a limit."""
        call = parse(frame)
        if not isinstance(call, RequestFrame):
            return None
        if not self.has_room_for(call):
            problem = f"{self._most_requests:,} requests of this connection are unanswered: try again later"
            return encode_error(call.id, INVALID_REQUEST, problem)
        names = call.method in OPENS_A_SESSION or call.method in CLOSES_A_SESSION
        session = session_of(call.params) if names else None
        if (refusal := self.refusal(call, session)) is None:
            self.received(call, session)
        return refusal

    def websocket_sent(self, frame: bytes) -> None:
        """Note a message of the agent to a WebSocket's client."""
        if self._theirs and not frame.startswith(NO_ANSWER) and isinstance(message := parse(frame), ResponseFrame):
            self._settle(message)
