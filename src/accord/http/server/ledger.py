"""What a connection has open: its sessions, of which it may have so many, and the prompts being answered. PURE.

    hear  ──▶ a session more, if there may be one; a prompt that is owed its answer
    said  ──▶ an answer: the session is open, or closed; the prompt is done

What an agent sends is mostly updates. Those are told apart by how they begin, and only the rest is read.
"""

from __future__ import annotations

from collections.abc import Callable

from accord.errors import INVALID_REQUEST
from accord.http.headers import session_of
from accord.http.server.limits import ServerLimits
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Answer, Call, Malformed, Message, error_answer, parse

MAKES_A_SESSION = frozenset({"session/new", "session/fork"})
OPENS_A_SESSION = frozenset({"session/load", "session/resume"})
CLOSES_A_SESSION = frozenset({"session/close", "session/delete"})
PROMPT = "session/prompt"
COUNTED = MAKES_A_SESSION | OPENS_A_SESSION | CLOSES_A_SESSION | {PROMPT}

NO_ANSWER = b'{"jsonrpc":"2.0","method":'


class Ledger:
    """The sessions and the prompts of one connection.

    >>> ledger = Ledger(sessions=1)
    >>> ask = b'{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}'
    >>> ledger.hear(parse(ask % 1))
    >>> ledger.hear(parse(ask % 2))
    b'{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"a connection has at most 1 sessions: close one"}}'
    """

    def __init__(self, sessions: int, requests: int = ServerLimits().requests) -> None:
        self._most = sessions
        self._most_requests = requests
        self._open: set[str] = set()
        self._opening: dict[RequestId, str | None] = {}
        self._closing: dict[RequestId, str] = {}
        self._prompts: set[RequestId] = set()
        self.on_idle: Callable[[], None] | None = None
        """Called when the last prompt has its answer."""

    @property
    def is_busy(self) -> bool:
        """Whether a prompt is being answered."""
        return bool(self._prompts)

    @property
    def sessions(self) -> int:
        """The sessions that are open, and those that somebody waits for."""
        return len(self._open) + len(self._opening)

    def hear(self, message: Message | Malformed) -> bytes | None:
        """The client sends this: what to answer instead of handing it on, if it would open one session too many."""
        if not isinstance(message, Call) or message.method not in COUNTED:
            return None
        if message.id not in self._prompts and len(self._prompts) + len(self._closing) >= self._most_requests:
            problem = f"{self._most_requests:,} requests of this connection wait for their answers: ask again later"
            return error_answer(message.id, INVALID_REQUEST, problem)
        if self._may(message):
            return None
        return error_answer(message.id, INVALID_REQUEST, f"a connection has at most {self._most:,} sessions: close one")

    def _may(self, call: Call) -> bool:
        method = call.method
        if method == PROMPT:
            self._prompts.add(call.id)
        elif method in CLOSES_A_SESSION:
            self._closing[call.id] = session_of(call.params) or ""
        elif method in MAKES_A_SESSION or method in OPENS_A_SESSION:
            session = session_of(call.params) if method in OPENS_A_SESSION else None
            if session in self._open or call.id in self._opening:
                return True
            if self.sessions >= self._most:
                return False
            self._opening[call.id] = session
        return True

    def said(self, frame: bytes) -> None:
        """The agent sends this."""
        if frame.startswith(NO_ANSWER) or not (self._prompts or self._opening or self._closing):
            return
        message = parse(frame)
        if not isinstance(message, Answer) or message.id is None:
            return
        went_well = message.error is None
        if message.id in self._prompts:
            self._prompts.discard(message.id)
            if not self._prompts and self.on_idle is not None:
                self.on_idle()
        if message.id in self._closing:
            session = self._closing.pop(message.id)
            if went_well:
                self._open.discard(session)
        if message.id in self._opening:
            named = self._opening.pop(message.id) or session_of(message.result)
            if went_well and named is not None:
                self._open.add(named)
