"""One session of a shared agent: its clients, log and prompts; how it is opened, and who answers questions. PURE.

A client that opens a session which is open already gets its past from here: the log, told as an agent tells its record,
each message once and whole. So the agent does not notice, and a running turn goes on. While the agent opens a session,
its updates are a replay for the one client that has asked.

If the first client only watches, an agent that can watch is asked to watch, too: the session may run elsewhere, such as
at the owner's agent of the other version, and an observer must not end its turn. The agent opens it when the first
client wants to control it. Before it replays, it tells what the observers have not seen, and then that its watch is
over.

A request of the agent goes to all controllers, and the first answer wins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from accord.errors import INVALID_PARAMS, AccordError
from accord.http.headers import session_of
from accord.http.server import shared_messages
from accord.http.server.shared_messages import members
from accord.jsonrpc import wire_messages
from accord.jsonrpc.wire_messages import RequestFrame, ResponseFrame
from accord.schema.base import Json
from accord.schema.capabilities import Capabilities
from accord.session.replay_scan import Version

MOST_LOG = 16 * 1024 * 1024
"""Bytes of a session's updates that are kept for clients that join; past it, the agent replays the session to them."""

MOST_EARLY, MOST_EARLY_BYTES = 1_000, 64 * 1024
"""Updates of unknown sessions that are kept, and the bytes of one of them."""

_TOLD_IN_RESULTS = {
    "current_mode_update": ("modes", "currentModeId"),
    "config_option_update": ("configOptions",),
    "available_commands_update": ("availableCommands",),
}
"""Updates whose values stand in the answer to the request that opens a session, too, and where."""


_APART = ("notice", "available_commands_update", "prompt_suggestions_update", "cursor_update")
"""The tags of updates that are not part of a conversation: clients that join get the last ones, and no notices."""


class Waiting(NamedTuple):
    """A request of a client that waits for its turn."""

    client: int
    call: RequestFrame


class SharedSession:
    """A session that is open at the agent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clients: dict[int, bool] = {}
        """The clients that have opened it, and whether each may only watch."""
        self.result: dict[str, Any] = {}
        """The agent's answer to the request that opened it, with later changes, for clients that join."""
        self.opener: int | None = None
        """The client for which the agent opens it now."""
        self.openers: deque[Waiting] = deque()
        """Requests to open it that wait until the agent has opened it, or its turn is over."""
        self.prompts: deque[Waiting] = deque()
        """Prompts that wait until the running turn is over."""
        self.running: int | None = None
        """The number of the prompt whose turn is running."""
        self.state: bytes | None = None
        """The update that told the state last; None in version 1."""
        self.works = False
        """Whether the agent works, as it said last; agents of version 2 also work without a prompt."""
        self.is_watched = False
        """Whether the agent itself only follows it, because no client has asked to control it."""
        self.replays_all = False
        """Whether the agent was asked to replay it from its first update when it opens it again."""
        self.log: list[bytes] | None = []
        """All updates from the first; None if some are missing."""
        self._size = 0

    def note(self, updates: Iterable[bytes]) -> None:
        """Keep these updates for clients that join; its states are not part of its past."""
        for update in updates:
            if shared_messages.state_in(update, self.name) is not None:
                continue
            self._size += len(update)
            if self.log is None or self._size > MOST_LOG:
                self.log = None
                return
            self.log.append(update)

    def told_state(self, frame: bytes, state: str) -> None:
        """The agent has told the session's state."""
        self.state, self.works = frame, state != "idle"

    def changed(self, update: dict[str, Any]) -> None:
        """An update has changed what the answer to a client that joins says."""
        *path, name = _TOLD_IN_RESULTS.get(str(update.get("sessionUpdate")), ("",))
        place = self.result
        for step in path:
            place = place.get(step)  # type: ignore[assignment]
        if isinstance(place, dict) and name in place and name in update:
            place[name] = update[name]

    def past(self, version: Version, capabilities: Capabilities) -> tuple[list[bytes], list[bytes]]:
        """What a client that joins is told of the past, as an agent's own replay tells it, and after the answer.

        A log that cannot be folded, such as that of an agent with other ids of subagents, is told as it is.
        """
        log = self.log or []
        apart = {tag: [frame for frame in log if shared_messages.is_update(frame, tag)] for tag in _APART}
        commands, suggestions = apart["available_commands_update"][-1:], apart["prompt_suggestions_update"][-1:]
        left_out = {frame for frames in apart.values() for frame in frames}
        rest = [frame for frame in log if frame not in left_out]
        try:
            past = shared_messages.replayed(self.name, rest, version, capabilities)
        except AccordError:
            past = rest
        return [*past, *apart["cursor_update"]], [*(commands if version == 1 else ()), *suggestions]

    def begin_log(self, *, is_whole: bool) -> None:
        """The agent opens the session, and replays it from its first update if `is_whole`."""
        self.log = [] if is_whole else None
        self._size = 0

    @property
    def controllers(self) -> list[int]:
        """The clients that may do more than watch."""
        return [client for client, watches in self.clients.items() if not watches]

    @property
    def receivers(self) -> list[int]:
        """The clients that get what the agent tells: all, or the one for which it replays the session."""
        return list(self.clients) if self.opener is None or self.is_watched else [self.opener]

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running or waits."""
        return self.running is not None or self.works or bool(self.prompts)


class EarlyUpdates:
    """Updates of sessions that the agent has not announced yet: it may tell some before it answers `session/new`."""

    def __init__(self) -> None:
        self._kept: deque[tuple[str, bytes]] = deque(maxlen=MOST_EARLY)

    def add(self, session: str, update: bytes) -> None:
        """Keep an update of an unknown session."""
        if len(update) <= MOST_EARLY_BYTES:
            self._kept.append((session, update))

    def take(self, session: str) -> list[bytes]:
        """The updates of a session, which are forgotten here."""
        found = [update for named, update in self._kept if named == session]
        if found:
            self._kept = deque((it for it in self._kept if it[0] != session), MOST_EARLY)
        return found


AGENT = 0
"""The agent, as a receiver of messages; clients have numbers from 1."""


class SharedQuestion:
    """A request of the agent that has no answer yet."""

    def __init__(self, call: RequestFrame, session: str) -> None:
        self.call = call
        self.session = session
        self.asked: set[int] = set()
        """The clients that may still answer."""


class SharedQuestions:
    """The open questions of one agent, by the numbers under which clients know them."""

    def __init__(self, numbers: Iterator[int], out: list[tuple[int, bytes]]) -> None:
        self._numbers = numbers
        self._out = out
        self._open: dict[int, SharedQuestion] = {}

    def ask(self, call: RequestFrame, session: str, clients: Sequence[int]) -> None:
        """The agent asks this. If no client is there, it waits for one."""
        number = next(self._numbers)
        self._open[number] = SharedQuestion(call, session)
        for client in clients:
            self._ask(number, client)

    def _ask(self, number: int, client: int) -> None:
        question = self._open[number]
        question.asked.add(client)
        self._out.append((client, wire_messages.encode_request(number, question.call.method, question.call.params)))

    def joined(self, session: str, client: int) -> None:
        """A client has opened this session: it is asked what is open."""
        for number, question in self._open.items():
            if question.session == session and client not in question.asked:
                self._ask(number, client)

    def left(self, client: int) -> None:
        """A client has left: others may answer, or the next one."""
        for question in self._open.values():
            question.asked.discard(client)

    def answered(self, client: int, answer: ResponseFrame) -> None:
        """A client has answered. An error counts only if no other client is asked."""
        number = answer.id if isinstance(answer.id, int) else -1
        question = self._open.get(number)
        if question is None or client not in question.asked:
            return
        question.asked.discard(client)
        if answer.error is not None and question.asked:
            return
        del self._open[number]
        self._out.append((AGENT, shared_messages.answered(answer, question.call.id)))
        self._out += [(other, shared_messages.cancel_request(number)) for other in question.asked]

    def cancelled(self, request_id: object) -> None:
        """The agent waits for this answer no more; clients answer that they have stopped asking."""
        for number, question in self._open.items():
            if question.call.id == request_id:
                self._out += [(client, shared_messages.cancel_request(number)) for client in question.asked]


MAKES = frozenset({"session/new", "session/fork"})
OPENS = frozenset({"session/load", "session/resume"})


class SharedOpens:
    """Opens sessions for clients. `clients` and `sessions` are those of the conversation."""

    def __init__(
        self,
        clients: dict[int, bool],
        sessions: dict[str, SharedSession],
        questions: SharedQuestions,
        forward: Callable[[int, RequestFrame, str, bytes | None], int],
        send: Callable[[int, bytes], None],
        send_update: Callable[[Iterable[int], bytes], None],
    ) -> None:
        self._clients = clients
        self._sessions = sessions
        self._questions = questions
        self._forward = forward
        self._send = send
        self._send_update = send_update
        self.agent_watches = False
        """Whether the agent can watch sessions."""
        self.version: Version = 1
        self.capabilities = Capabilities()
        """What the agent was told that its clients can do."""

    def open(self, client: int, call: RequestFrame) -> None:
        """A client asks to open a session."""
        params = members(call.params)
        named = session_of(call.params) or ""
        wants_replay = shared_messages.wants_replay(call.method, params)
        if wants_replay and not shared_messages.replays_from_start(call.method, params):
            problem = "Invalid params: a replay can only begin at the start"
            data: Json = {"path": "$.replayFrom"}
            self._send(client, wire_messages.encode_error(call.id, INVALID_PARAMS, problem, data))
            return
        session = self._sessions.get(named)
        if session is not None and session.clients.get(client):
            del session.clients[client]  # it has watched until now, and is told all from the start again
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
        if not session.is_watched:  # else when the agent says that its watch is over
            session.begin_log(is_whole=is_whole)
        params = members(call.params)
        strips = shared_messages.watches(params) and not self.agent_watches
        self._forward(client, call, session.name, shared_messages.without_watching(params) if strips else None)

    def watch_ended(self, session: SharedSession, frame: bytes) -> None:
        """The agent follows this session no more. If it does not open it instead, its observers are told."""
        session.is_watched = False
        if (
            shared_messages.update_of(shared_messages.params_of(frame)).get("sessionUpdate")
            != shared_messages.HANDED_OVER
        ):
            for client in session.clients:
                self._send(client, frame)
            session.clients.clear()
        if session.opener is not None:
            session.begin_log(is_whole=session.replays_all)
        elif not session.clients:
            del self._sessions[session.name]

    def _join(self, session: SharedSession, client: int, call: RequestFrame, params: dict[str, Any]) -> None:
        past, later = session.past(self.version, self.capabilities)
        if shared_messages.wants_replay(call.method, params):
            for update in past:
                self._send_update([client], update)
            if self.version == 2:  # session/load of version 1 ends with its answer
                self._send(client, shared_messages.replay_complete(session.name))
        if self.version == 2:  # schema, session/resume: the state comes before the answer
            self._send(client, session.state or shared_messages.idle(session.name))
        self._send(client, wire_messages.encode_response(call.id, shared_messages.written(session.result)))
        for update in later:
            self._send_update([client], update)
        self._enter(session, client, watches=shared_messages.watches(params))

    def _enter(self, session: SharedSession, client: int, *, watches: bool) -> None:
        if client in self._clients:
            session.clients[client] = watches
            if not watches:
                self._questions.joined(session.name, client)

    def opened(self, client: int, call: RequestFrame, answer: ResponseFrame) -> None:
        """The agent has answered a request to open a session."""
        session = self._sessions.get(session_of(call.params) or "")
        if session is None:
            return  # it was deleted meanwhile
        session.opener = None
        if answer.error is None:
            watches = shared_messages.watches(members(call.params))
            session.is_watched = watches and self.agent_watches
            session.result = members(answer.result)
            self._enter(session, client, watches=watches)
        elif not session.clients:
            del self._sessions[session.name]
        self.again(session)

    def made(self, client: int, named: str, answer: ResponseFrame) -> SharedSession:
        """The agent has made a session for this client."""
        session = self._sessions[named] = SharedSession(named)
        session.result = members(answer.result)
        session.result.pop("sessionId", None)
        self._enter(session, client, watches=False)
        return session

    def again(self, session: SharedSession) -> None:
        """Look again at the requests to open this session that have waited."""
        waiting = list(session.openers)
        session.openers.clear()
        for client, call in waiting:
            if client in self._clients:
                self.open(client, call)
