"""The dialects: how one session speaks in one version of the protocol (`Dialect`).

Sessions, turns and tools are the same in every version. Their updates reach the client through a dialect:

- what streams (`turn.say`, `turn.think`) is made from the dialect's classes, with no conversion;
- every other update may be a value of either version, and `fitted` gives what is sent in its place;
- states (working, waiting, idle) are updates in version 2, and nothing in version 1, where the answer to a prompt says
  that its turn has ended.

A dialect makes values and sends nothing, so it needs no connection.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from accord.schema import v1
from accord.schema.base import Json, JsonObject
from accord.session import SessionState
from accord.session.replay_scan import Version

Activity = Literal["running", "requires_action", "idle"]
"""A session's activity: it works, it waits for its user, or it is idle."""


ENDED = ("completed", "failed", "cancelled")
"""The statuses with which a tool call ends."""

Kind = Literal["tool_call", "terminal"]
"""The kinds of work that can run beside the turns, and be cancelled individually."""


class Failure(msgspec.Struct, frozen=True):
    """The error with which work ended, as the answer to a request would report it."""

    code: int
    message: str
    data: Json = None


class ActivityEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a stretch of work."""

    stop_reason: str
    usage: v1.Usage | None = None
    meta: JsonObject | None = None
    failure: Failure | None = None


class Background(msgspec.Struct, frozen=True):
    """One part of the background work: a tool call or a terminal."""

    kind: Kind
    id: str


FOLDED = {
    "compaction": "compactions",
    "subagent": "subagents",
    "session_message": "session_messages",
    "terminal": "terminals",
}
"""The fields of a session's state with the things that are replayed by their ids, by the kinds of `replay_scan`."""


def folded_fields(key: tuple[str, str], state: SessionState, update: type[Any]) -> dict[str, Any]:
    """Return the fields of the update that describes a thing's present state; an update's first field is the id."""
    found = getattr(state, FOLDED[key[0]])[key[1]]
    named, *others = update.__struct_fields__
    values: dict[str, Any] = {name: getattr(found, name) for name in others}
    return {named: key[1]} | {name: [*it] if it.__class__ is tuple else it for name, it in values.items()}


class Dialect(ABC):
    """How one session speaks in one version of the protocol."""

    version: ClassVar[Version]
    replaces_messages: ClassVar[bool]
    """Whether a message that was sent can be replaced or taken back."""
    commands_come_with_answers: ClassVar[bool]
    """Whether the answers that open sessions hold the commands, so that no update is needed after them."""

    tells_states: ClassVar[bool] = False
    """Whether a session's activity is sent as an update."""
    plain_state: Callable[[Activity, str | None], bytes]
    """If it is: returns the JSON of a `state` with only the activity and the stop reason, the most common form."""

    agent_chunk: type[Any]
    """The classes of chunks belong to the hot path, so each is one attribute away."""
    thought_chunk: type[Any]
    user_chunk: type[Any]
    sendable: frozenset[type[Any]]
    """The classes of updates that are sent unchanged; `fitted` converts all others."""

    @abstractmethod
    def fitted(self, update: Any) -> Sequence[Any]:
        """Return the updates to send for this one, in order; raises ConversionError if this version cannot
        express it.
        """

    @abstractmethod
    def message(self, message_id: v1.MessageId, blocks: Sequence[v1.ContentBlock]) -> Sequence[Any]:
        """The updates that make this the whole message with this id."""

    def note_tool_call(self, tool_call: v1.ToolCallUpdate) -> None:  # noqa: B027  (only a dialect with a memory needs it)
        """Note that the client got these details of a tool call from another message, such as a question."""

    # Updates that only some versions have; None means no update

    def state(
        self,
        activity: Activity,  # noqa: ARG002
        background: Sequence[Background] | None,  # noqa: ARG002
        end: ActivityEnd | None = None,  # noqa: ARG002
    ) -> Any | None:
        """Return the update with the session's activity.

        `background` is None as long as the session has never had any; `end` is the end of the previous work.
        """
        return None

    def terminal_begins(self, id: str, command: str, cwd: str) -> Any | None:  # noqa: A002, ARG002
        """Return the update that shows a command of the agent, which may be cancelled; None: it is shown as text."""
        return None

    def terminal_output(self, id: str, data: bytes, *, replaces: bool) -> Any | None:  # noqa: A002, ARG002
        """Return the update that adds output to a terminal, or `replaces` all of it."""
        return None

    def terminal_ended(self, id: str, status: v1.TerminalExitStatus) -> Any | None:  # noqa: A002, ARG002
        """Return the update with the end of a command."""
        return None

    def cancellable(self, kind: Kind, id: str, *, offered: bool) -> Any | None:  # noqa: A002, ARG002
        """Return the update that says whether the client may cancel this."""
        return None
