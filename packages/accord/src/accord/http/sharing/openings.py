"""`Openings`: how clients of a shared agent open sessions: at the agent, or beside those who have opened them. PURE.

A client that opens a session which is open already gets its log from here. So the agent does not notice, and a running
turn goes on. While the agent opens a session, its updates are a replay for the one client that has asked.

If the first client only watches, an agent that can watch is asked to watch, too: the session may run elsewhere, such as
at the owner's agent of the other version, and an observer must not end its turn. The agent opens it when the first
client wants to control it. Before it replays, it tells what the observers have not seen, and then that its watch is
over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord.http.headers import session_of
from accord.http.sharing import frames
from accord.http.sharing.frames import members
from accord.http.sharing.questions import Questions
from accord.http.sharing.session import SharedSession, Waiting
from accord.jsonrpc import wire_messages
from accord.jsonrpc.wire_messages import RequestFrame, ResponseFrame

MAKES = frozenset({"session/new", "session/fork"})
OPENS = frozenset({"session/load", "session/resume"})


class Openings:
    """Opens sessions for clients. `clients` and `sessions` are those of the conversation."""

    def __init__(
        self,
        clients: dict[int, bool],
        sessions: dict[str, SharedSession],
        questions: Questions,
        forward: Callable[[int, RequestFrame, str, bytes | None], int],
        send: Callable[[int, bytes], None],
    ) -> None:
        self._clients = clients
        self._sessions = sessions
        self._questions = questions
        self._forward = forward
        self._send = send
        self.agent_watches = False
        """Whether the agent can watch sessions."""

    def open(self, client: int, call: RequestFrame) -> None:
        """A client asks to open a session."""
        params = members(call.params)
        named = session_of(call.params) or ""
        wants_replay = frames.wants_replay(call.method, params)
        session = self._sessions.get(named)
        if session is not None and session.clients.get(client):
            del session.clients[client]  # it has watched until now, and is told all from the start again
            self._send(client, frames.watch_over(named))
        if session is None:
            session = self._sessions[named] = SharedSession(named)
            self._open_at_agent(session, client, call, is_whole=wants_replay)
        elif session.opener is not None:
            session.openers.append(Waiting(client, call))
        elif session.is_watched and not frames.watches(params):
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
        strips = frames.watches(params) and not self.agent_watches
        self._forward(client, call, session.name, frames.without_watching(params) if strips else None)

    def watch_ended(self, session: SharedSession, frame: bytes) -> None:
        """The agent follows this session no more. If it does not open it instead, its observers are told."""
        session.is_watched = False
        if frames.update_of(frames.params_of(frame)).get("sessionUpdate") != frames.HANDED_OVER:
            for client in session.clients:
                self._send(client, frame)
            session.clients.clear()
        if session.opener is not None:
            session.begin_log(is_whole=session.replays_all)
        elif not session.clients:
            del self._sessions[session.name]

    def _join(self, session: SharedSession, client: int, call: RequestFrame, params: dict[str, Any]) -> None:
        if frames.wants_replay(call.method, params):
            for update in session.log or ():
                self._send(client, update)
        self._send(client, wire_messages.encode_response(call.id, frames.written(session.result)))
        self._enter(session, client, watches=frames.watches(params))

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
            watches = frames.watches(members(call.params))
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
