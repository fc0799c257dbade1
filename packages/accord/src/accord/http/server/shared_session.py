"""One session of a shared agent: its clients, log and prompts; and the routing of questions. PURE.

A request of the agent goes to all controllers, and the first answer wins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from accord.errors import AccordError
from accord.http.server import shared_messages
from accord.jsonrpc import wire_messages
from accord.jsonrpc.wire_messages import RequestFrame, ResponseFrame
from accord.schema.capabilities import Capabilities
from accord.session.replay_scan import Version

MOST_LOG = 16 * 1024 * 1024
"""Bytes of a session's updates that are kept for clients that join; past it, the agent replays the session to them."""

MOST_EARLY, MOST_EARLY_BYTES = 1_000, 64 * 1024
"""Updates of unknown sessions that are kept, and the bytes of one of them."""

_PLACES_IN_RESULTS = {
    "current_mode_update": ("modes", "currentModeId"),
    "config_option_update": ("configOptions",),
    "available_commands_update": ("availableCommands",),
}
"""Updates whose values are also in the answer to the request that opens a session, and where."""


_APART = ("notice", "available_commands_update", "prompt_suggestions_update", "cursor_update")
"""The tags of updates that are not part of a conversation: clients that join get the last ones, and no notices."""


class Waiting(NamedTuple):
    """A request of a client that waits for its turn."""

    client: int
    call: RequestFrame


class SharedSession(msgspec.Struct, eq=False):
    """A session that is open at the agent."""

    name: str
    clients: dict[int, bool] = {}
    """The clients that have opened it, and whether each may only watch."""
    result: dict[str, Any] = {}
    """The agent's answer to the request that opened it, with later changes, for clients that join."""
    opener: int | None = None
    """The client for which the agent opens it now."""
    openers: deque[Waiting] = msgspec.field(default_factory=deque[Any])
    """Requests to open it that wait until the agent has opened it, or its turn is over."""
    prompts: deque[Waiting] = msgspec.field(default_factory=deque[Any])
    """Prompts that wait until the running turn is over."""
    running: int | None = None
    """The number of the prompt whose turn is running."""
    state: bytes | None = None
    """The update with the latest state; None in version 1."""
    works: bool = False
    """Whether the agent works, by its latest report; agents of version 2 also work without a prompt."""
    is_watched: bool = False
    """Whether the agent itself only follows it, because no client has asked to control it."""
    replays_all: bool = False
    """Whether the agent was asked to replay it from its first update when it opens it again."""
    log: list[bytes] | None = []
    """All updates from the first; None if some are missing."""
    _size: int = 0

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

    def keep_state(self, frame: bytes, state: str) -> None:
        """Note the session's state from the agent."""
        self.state, self.works = frame, state != "idle"

    def changed(self, update: dict[str, Any]) -> None:
        """Note that an update has changed the answer to a client that joins."""
        *path, name = _PLACES_IN_RESULTS.get(str(update.get("sessionUpdate")), ("",))
        place = self.result
        for step in path:
            place = place.get(step)  # type: ignore[assignment]
        if isinstance(place, dict) and name in place and name in update:
            place[name] = update[name]

    def past(self, version: Version, capabilities: Capabilities) -> tuple[list[bytes], list[bytes]]:
        """Return the past for a client that joins, in the form of an agent's replay, and the updates after the answer.

        A log that cannot be folded, such as that of an agent with other ids of subagents, is sent unchanged.
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
        """Return the clients that get the agent's updates: all, or the one for which it replays the session."""
        return list(self.clients) if self.opener is None or self.is_watched else [self.opener]

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running or waits."""
        return self.running is not None or self.works or bool(self.prompts)


class EarlyUpdates:
    """Updates of sessions that the agent has not announced yet: it may send some before it answers `session/new`."""

    def __init__(self) -> None:
        self._updates: deque[tuple[str, bytes]] = deque(maxlen=MOST_EARLY)

    def add(self, session: str, update: bytes) -> None:
        """Keep an update of an unknown session."""
        if len(update) <= MOST_EARLY_BYTES:
            self._updates.append((session, update))

    def take(self, session: str) -> list[bytes]:
        """Remove and return the updates of a session."""
        found = [update for named, update in self._updates if named == session]
        if found:
            self._updates = deque((it for it in self._updates if it[0] != session), MOST_EARLY)
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
        """Note a question of the agent. If no client is connected, it waits for one."""
        number = next(self._numbers)
        self._open[number] = SharedQuestion(call, session)
        for client in clients:
            self._ask(number, client)

    def _ask(self, number: int, client: int) -> None:
        question = self._open[number]
        question.asked.add(client)
        self._out.append((client, wire_messages.encode_request(number, question.call.method, question.call.params)))

    def joined(self, session: str, client: int) -> None:
        """Send the open questions to a client that has opened this session."""
        for number, question in self._open.items():
            if question.session == session and client not in question.asked:
                self._ask(number, client)

    def left(self, client: int) -> None:
        """A client has left: others may answer, or the next one."""
        for question in self._open.values():
            question.asked.discard(client)

    def answered(self, client: int, answer: ResponseFrame) -> None:
        """Note a client's answer. An error counts only if no other client was asked."""
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
