"""`SharedConversation`: decides which of several clients, or their one agent, gets which message. PURE.

    client's request ──▶ our number ──▶ agent ──▶ answer ──▶ the client that asked, under its own id
    agent's update   ──▶ every client of the session, and its log
    agent's question ──▶ every controller of the session ──▶ the first answer wins; the others are told to stop asking

A session has one turn at a time: in version 1 further prompts wait here, in version 2 the agent orders them. Requests
that the agent makes of a client's own machine (files, terminals) are refused: no client offers them.

A client that opens a session which is already open gets its past from here: the log in the form of an agent's replay,
each message once and whole. So the agent does not notice, and a running turn continues. While the agent opens a
session, its updates are a replay for the one client that has asked.

If the first client only watches, an agent that supports watching is asked to watch, too: the session may run elsewhere,
such as at the owner's agent of the other version, and an observer must not end its turn. The agent opens it when the
first client wants to control it. Before it replays, it sends what the observers have not seen, and then that its watch
is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any, NamedTuple

from accord.engine.incoming_requests import session_of
from accord.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from accord.http.headers import MAKES_A_SESSION, OPENS_A_SESSION
from accord.http.server import shared_messages
from accord.http.server.shared_messages import CANCEL_REQUEST, REPLAY_COMPLETE
from accord.http.server.shared_session import AGENT, EarlyUpdates, SharedQuestions, SharedSession, Waiting
from accord.jsonrpc import wire_messages
from accord.jsonrpc.wire_messages import Malformed, NotificationFrame, RequestFrame, ResponseFrame, parse
from accord.schema import codec
from accord.schema.base import Json
from accord.schema.capabilities import Capabilities
from accord.trace.meaning import object_in

IDLE = {"sessionUpdate": "state_update", "state": "idle"}
"""The state of a session whose agent has not sent it."""

PROMPT, CANCEL, CLOSE, DELETE = "session/prompt", "session/cancel", "session/close", "session/delete"

FOR_ALL = frozenset({"session/list", "session/status", DELETE})
"""Requests about a session that a client may send without having opened it."""

OF_A_MACHINE = ("fs/", "terminal/")
"""The prefixes of methods with which an agent uses the machine of its client."""


class SharedRequest(NamedTuple):
    """A request of a client that the agent has not answered."""

    client: int
    call: RequestFrame
    session: str


class SharedConversation:
    """The clients and the sessions of one agent. Messages to send are appended to `out`, with their receivers."""

    def __init__(self) -> None:
        self.out: list[tuple[int, bytes]] = []
        self._clients: dict[int, bool] = {}
        """The attached clients, and whether each has been initialized."""
        self._shows: dict[int, frozenset[str]] = {}
        """Which of the updates of `ONLY_FOR` each client shows."""
        self._sessions: dict[str, SharedSession] = {}
        self._asked: dict[int, SharedRequest] = {}
        self._numbers = count(1)
        self._early = EarlyUpdates()
        self._initialized: ResponseFrame | None = None
        self._initializing: list[Waiting] = []
        self._version = 1
        self._questions = SharedQuestions(self._numbers, self.out)
        self._agent_watches = False
        """Whether the agent can watch sessions."""
        self._capabilities = Capabilities()
        """The capabilities of clients that were declared to the agent."""

    @property
    def version(self) -> int | None:
        """The version of the protocol that the agent speaks here, once it has answered."""
        return None if self._initialized is None else self._version

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running, with or without a client."""
        return any(session.is_busy for session in self._sessions.values())

    def _send(self, receiver: int, frame: bytes) -> None:
        self.out.append((receiver, frame))

    def _send_update(self, clients: Iterable[int], frame: bytes) -> None:
        """Send an update to those of these clients that show it."""
        tag = shared_messages.only_for(frame)
        self._send_all((it for it in clients if tag is None or tag in self._shows.get(it, ())), frame)

    def _send_all(self, clients: Iterable[int], frame: bytes) -> None:
        self.out += [(client, frame) for client in clients]

    def _all(self) -> list[int]:
        return [client for client, is_in in self._clients.items() if is_in]

    # Clients

    def joined(self, client: int) -> None:
        """A client has connected."""
        self._clients[client] = False

    def left(self, client: int) -> None:
        """Note that a client has ended its connection. Its turns continue."""
        self._clients.pop(client, None)
        self._shows.pop(client, None)
        self._questions.left(client)
        for session in self._sessions.values():
            session.clients.pop(client, None)

    def received(self, client: int, frame: bytes) -> None:
        """A client has sent this."""
        match parse(frame):
            case RequestFrame() as call:
                self._call(client, call)
            case NotificationFrame() as tell:
                self._tell(client, tell)
            case ResponseFrame() as answer:
                self._questions.answered(client, answer)
            case Malformed() as malformed:
                if (reply := malformed.reply()) is not None:
                    self._send(client, reply)

    def _call(self, client: int, call: RequestFrame) -> None:
        if call.method == "initialize":
            self._begin(client, call)
        elif not self._clients.get(client):
            self._send(client, wire_messages.encode_error(call.id, INVALID_REQUEST, "`initialize` must be sent first"))
        elif call.method in OPENS_A_SESSION:
            self._open(client, call)
        else:
            self._ask(client, call, "" if call.method in MAKES_A_SESSION else session_of(call.params) or "")

    def _ask(self, client: int, call: RequestFrame, named: str) -> None:
        session = self._sessions.get(named)
        if session is None or (call.method in FOR_ALL and not session.clients.get(client)):
            self._forward(client, call, named)
        elif session.clients.get(client, True) and call.method != CLOSE:
            problem = "this client has not opened the session, or only watches it: load it to control it"
            self._send(client, wire_messages.encode_error(call.id, INVALID_REQUEST, problem, {"reason": "watching"}))
        elif call.method == PROMPT and self._version == 1 and session.running is not None:
            session.prompts.append(Waiting(client, call))
        elif call.method == PROMPT:
            self._prompt(session, client, call)
        elif call.method == CLOSE and (session.clients.keys() - {client} or self._only_watches(session, client)):
            session.clients.pop(client, None)
            self._send(client, wire_messages.encode_response(call.id, b"{}"))
        else:
            self._forward(client, call, named)

    @staticmethod
    def _only_watches(session: SharedSession, client: int) -> bool:
        """Whether this client may not close a session: its turn may continue without a client."""
        return session.clients.get(client, False) and not session.is_watched

    def _forward(self, client: int, call: RequestFrame, session: str, params: bytes | None = None) -> int:
        number = next(self._numbers)
        self._asked[number] = SharedRequest(client, call, session)
        self._send(AGENT, wire_messages.encode_request(number, call.method, call.params if params is None else params))
        return number

    def _prompt(self, session: SharedSession, client: int, call: RequestFrame) -> None:
        number = self._forward(client, call, session.name)
        if session.running is None:
            session.running = number
        if self._version == 1:  # in version 2 the agent sends the user's prompt to all of them
            for update in shared_messages.user_messages(session.name, object_in(call.params)):
                self._tell_others(session, client, update)

    def _tell_others(self, session: SharedSession, client: int, update: bytes) -> None:
        session.note([update])
        self._send_all(session.clients.keys() - {client}, update)

    def _tell(self, client: int, tell: NotificationFrame) -> None:
        if tell.method == CANCEL_REQUEST:
            self._cancel_request(client, object_in(tell.params).get("requestId"))
            return
        session = self._sessions.get(session_of(tell.params) or "")
        if session is not None and session.clients.get(client, True):
            return  # it only watches
        if session is not None and tell.method == CANCEL:
            self._cancel_waiting(session)
        self._send(AGENT, wire_messages.encode_notification(tell.method, tell.params))

    def _cancel_waiting(self, session: SharedSession) -> None:
        for waiting in session.prompts:
            self._send(waiting.client, wire_messages.encode_response(waiting.call.id, b'{"stopReason":"cancelled"}'))
        session.prompts.clear()

    def _cancel_request(self, client: int, request_id: object) -> None:
        for number, asked in self._asked.items():
            if asked.client == client and asked.call.id == request_id:
                self._send(AGENT, shared_messages.cancel_request(number))

    def _begin(self, client: int, call: RequestFrame) -> None:
        self._shows[client] = shared_messages.shown_by(object_in(call.params))
        if self._initialized is not None:
            self._clients[client] = True
            self._send(client, shared_messages.answered(self._initialized, call.id))
            return
        self._initializing.append(Waiting(client, call))
        if len(self._initializing) == 1:
            params = shared_messages.shared_initialize(object_in(call.params))
            number = next(self._numbers)
            self._asked[number] = SharedRequest(client, call, "")
            self._capabilities = shared_messages.client_capabilities(params)
            self._send(AGENT, wire_messages.encode_request(number, call.method, params))

    def _began(self, answer: ResponseFrame) -> None:
        waiting, self._initializing = self._initializing, []
        self._agent_watches = shared_messages.announces_watching(answer)
        answer = shared_messages.announced(answer)
        if answer.error is None:
            self._initialized = answer
            self._version = shared_messages.version_in(object_in(answer.result))
        for client, call in waiting:
            if client in self._clients:
                self._clients[client] = answer.error is None
            self._send(client, shared_messages.answered(answer, call.id))

    # Opening

    def _open(self, client: int, call: RequestFrame) -> None:
        """A client asks to open a session."""
        params = object_in(call.params)
        named = session_of(call.params) or ""
        wants_replay = shared_messages.wants_replay(call.method, params)
        if wants_replay and not shared_messages.replays_from_start(call.method, params):
            problem = "Invalid params: a replay can only begin at the start"
            data: Json = {"path": "$.replayFrom"}
            self._send(client, wire_messages.encode_error(call.id, INVALID_PARAMS, problem, data))
            return
        session = self._sessions.get(named)
        if session is not None and session.clients.get(client):
            del session.clients[client]  # it has watched until now, and gets everything from the start again
            self._send(client, shared_messages.watch_over(named))
        if session is None:
            session = self._sessions[named] = SharedSession(named)
            self._open_at_agent(session, client, call, is_whole=wants_replay)
        elif session.opener is not None:
            session.openers.append(Waiting(client, call))
        elif session.is_watched and not shared_messages.watches(params):
            self._open_at_agent(session, client, call, is_whole=wants_replay)
        elif not wants_replay or session.log is not None:
            self._join(session, client, call, params)
        elif session.is_busy:  # the agent would end the turn
            session.openers.append(Waiting(client, call))
        else:
            self._open_at_agent(session, client, call, is_whole=True)

    def _open_at_agent(self, session: SharedSession, client: int, call: RequestFrame, *, is_whole: bool) -> None:
        session.opener = client
        session.replays_all = is_whole
        if not session.is_watched:  # otherwise when the agent reports that its watch is over
            session.begin_log(is_whole=is_whole)
        params = object_in(call.params)
        strips = shared_messages.watches(params) and not self._agent_watches
        self._forward(client, call, session.name, shared_messages.without_watching(params) if strips else None)

    def _watch_ended(self, session: SharedSession, frame: bytes) -> None:
        """Note that the agent no longer follows this session. If it does not open it instead, its observers are
        notified.
        """
        session.is_watched = False
        if not shared_messages.is_update(frame, shared_messages.HANDED_OVER):
            for client in session.clients:
                self._send(client, frame)
            session.clients.clear()
        if session.opener is not None:
            session.begin_log(is_whole=session.replays_all)
        elif not session.clients:
            del self._sessions[session.name]

    def _join(self, session: SharedSession, client: int, call: RequestFrame, params: dict[str, Any]) -> None:
        past, later = session.past(2 if self._version == 2 else 1, self._capabilities)
        if shared_messages.wants_replay(call.method, params):
            for update in past:
                self._send_update([client], update)
            if self._version == 2:  # session/load of version 1 ends with its answer
                self._send(client, shared_messages.update(session.name, {"sessionUpdate": REPLAY_COMPLETE}))
        if self._version == 2:  # schema, session/resume: the state comes before the answer
            self._send(client, session.state or shared_messages.update(session.name, IDLE))
        self._send(client, wire_messages.encode_response(call.id, codec.encode(session.result)))
        for update in later:
            self._send_update([client], update)
        self._enter(session, client, watches=shared_messages.watches(params))

    def _enter(self, session: SharedSession, client: int, *, watches: bool) -> None:
        if client in self._clients:
            session.clients[client] = watches
            if not watches:
                self._questions.joined(session.name, client)

    def _opened(self, client: int, call: RequestFrame, answer: ResponseFrame) -> None:
        """The agent has answered a request to open a session."""
        session = self._sessions.get(session_of(call.params) or "")
        if session is None:
            return  # it was deleted meanwhile
        session.opener = None
        if answer.error is None:
            watches = shared_messages.watches(object_in(call.params))
            session.is_watched = watches and self._agent_watches
            session.result = object_in(answer.result)
            self._enter(session, client, watches=watches)
        elif not session.clients:
            del self._sessions[session.name]
        self._again(session)

    def _made(self, client: int, named: str, answer: ResponseFrame) -> SharedSession:
        """The agent has made a session for this client."""
        session = self._sessions[named] = SharedSession(named)
        session.result = object_in(answer.result)
        session.result.pop("sessionId", None)
        self._enter(session, client, watches=False)
        return session

    def _again(self, session: SharedSession) -> None:
        """Check again the requests to open this session that have waited."""
        waiting = list(session.openers)
        session.openers.clear()
        for client, call in waiting:
            if client in self._clients:
                self._open(client, call)

    # The agent

    def from_agent(self, frame: bytes) -> None:
        """The agent has sent this."""
        match parse(frame):
            case NotificationFrame(method="session/update") as tell:
                self._update(session_of(tell.params) or "", tell, frame)
            case NotificationFrame() as tell if tell.method == CANCEL_REQUEST:
                self._questions.cancelled(object_in(tell.params).get("requestId"))
            case NotificationFrame():
                self._send_all(self._all(), frame)
            case RequestFrame() as call:
                self._question(call)
            case ResponseFrame(id=int(number)) as answer if number in self._asked:
                self._settle(number, self._asked.pop(number), answer)
            case _:
                pass

    def _session(self, named: str) -> SharedSession | None:
        """The session with this id, or that of a subagent with this id."""
        return self._sessions.get(named) or self._sessions.get(named.partition("/")[0])

    def _update(self, named: str, tell: NotificationFrame, frame: bytes) -> None:
        session = self._session(named)
        if session is None:
            self._early.add(named, frame)
            self._send_update(self._all(), frame)
            return
        if session.is_watched and shared_messages.ends_watching(frame):
            self._watch_ended(session, frame)
            return
        if not shared_messages.is_update(frame, REPLAY_COMPLETE):
            session.note([frame])
        self._send_update(session.receivers, frame)
        if shared_messages.may_change_answers(frame):
            session.changed(shared_messages.update_of(object_in(tell.params)))
        if self._version > 1 and (state := shared_messages.state_in(frame, session.name)) is not None:
            session.keep_state(frame, state)
            if state == "idle":
                self._turn_is_over(session)

    def _question(self, call: RequestFrame) -> None:
        session = self._session(session_of(call.params) or "")
        if call.method.startswith(OF_A_MACHINE):
            problem = "no client of a shared agent offers its files or terminals"
            self._send(AGENT, wire_messages.encode_error(call.id, METHOD_NOT_FOUND, problem))
        elif session is None:
            self._questions.ask(call, "", self._all())
        else:
            self._questions.ask(call, session.name, session.controllers)

    def _settle(self, number: int, asked: SharedRequest, answer: ResponseFrame) -> None:
        client, call, named = asked
        if call.method == "initialize":
            self._began(answer)
            return
        self._send(client, shared_messages.answered(answer, call.id))
        session = self._sessions.get(named)
        if call.method in OPENS_A_SESSION:
            self._opened(client, call, answer)
        elif call.method in MAKES_A_SESSION and answer.error is None:
            made = session_of(answer.result) or ""
            self._made(client, made, answer).note(self._early.take(made))
        elif (call.method in (CLOSE, DELETE)) if answer.error is None else shared_messages.says_gone(answer, named):
            self._drop(self._sessions.pop(named, None))
        elif session is not None and call.method == PROMPT:
            # In version 2 the answer only accepts the prompt.
            is_over = self._version == 1 or answer.error is not None
            # A retry of a finished prompt begins no turn. If this one does, the agent reports that it works.
            is_idle = session.state is not None and not session.works
            if session.running == number and (is_over or is_idle):
                self._turn_is_over(session)
        elif session is not None and (change := shared_messages.shared_change(call, answer)) is not None:
            session.changed(change)
            self._tell_others(session, client, shared_messages.update(named, change))

    def _drop(self, session: SharedSession | None) -> None:
        """A session was closed or deleted."""
        if session is not None:
            self._cancel_waiting(session)
            self._again(session)

    def _turn_is_over(self, session: SharedSession) -> None:
        session.running = None
        if session.prompts:
            self._prompt(session, *session.prompts.popleft())
        else:
            self._again(session)
