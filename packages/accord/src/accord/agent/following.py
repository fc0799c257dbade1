"""`Following`: the updates that a watcher is sent for the entries of a record, one after the other. PURE.

An entry was made in the version of the protocol that its writer's client speaks. A watcher of the same version gets it
as it is, byte for byte. For one of the other version the entry is converted. What has no counterpart is left out:

| entry | watcher | is told |
|---|---|---|
| a tool call of version 1 | version 2 | what was added to it, as the dialect of version 2 tells it |
| an update of a tool call of version 2 | version 1 | the whole tool call, because version 1 replaces lists |
| output of a terminal | version 1 | nothing; the tool call that shows the terminal has its text |
| a message that replaces an earlier one | version 1 | nothing: version 1 cannot replace one |
| what the client did not declare (plans with ids, subagents, compaction) | version 1 | nothing |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from accord.agent.record import encoded_update
from accord.agent.replay import needs, tags
from accord.agent.subagent_updates import belongs_to, opened
from accord.capabilities import Capabilities
from accord.dialects import v1_replay
from accord.errors import ConversionError
from accord.schema import v1
from accord.schema.base import Unknown
from accord.session import SessionState
from accord.session.replay_scan import Version, read, update_in

ROOM = 4 * 1024 * 1024
"""Bytes of a session's present that are kept to tell a watcher of version 1 what happens in one of version 2."""


class Translation(Protocol):
    """Turns updates of one version into those of the other, in order."""

    def seen(self, update: Any) -> None:
        """The watcher knows of this update already."""
        ...

    def told(self, update: Any) -> Sequence[Any]:
        """What is sent for this update."""
        ...


class Following:
    """What one watcher is sent of one session."""

    def __init__(self, session_id: str, version: Version, capabilities: Capabilities) -> None:
        self._session_id = session_id
        self._version: Version = version
        self._capabilities = capabilities
        self._translations: dict[str | None, Translation] = {}

    def seen(self, kept: bytes) -> None:
        """Take note of an entry that the watcher knows already."""
        subagent, entry = opened(kept)
        if update_in(entry)[0] != self._version and not isinstance(update := read(entry), Unknown):
            self._translation(subagent).seen(update)

    def told(self, kept: bytes) -> Iterator[tuple[str, bytes]]:
        """The updates for the next entry, as JSON, each with the id of its session."""
        subagent, entry = opened(kept)
        if subagent is not None and not self._tells_of(subagent):
            return
        session_id = self._session_id if subagent is None else subagent
        version, encoded = update_in(entry)
        update = read(entry)
        if version == self._version:
            if self._fits(update):
                yield session_id, encoded
        elif isinstance(update, Unknown):
            # An unknown update of one version may have a meaning in the other, which its sender did not mean.
            if update.tag not in tags(self._version):
                yield session_id, encoded
        else:
            for converted in self._converted(subagent, update):
                if self._fits(converted):
                    yield session_id, encoded_update(converted)

    def _tells_of(self, subagent: str) -> bool:
        if not belongs_to(subagent, self._session_id):
            return False  # the session is a fork, and the subagent its source's
        return self._version != 1 or self._capabilities.has(needs()[v1.SubagentUpdate])

    def _fits(self, update: Any) -> bool:
        needed = needs().get(update.__class__) if self._version == 1 else None
        return needed is None or self._capabilities.has(needed)

    def _converted(self, subagent: str | None, update: Any) -> Sequence[Any]:
        try:
            return self._translation(subagent).told(update)
        except ConversionError:
            return ()

    def _translation(self, subagent: str | None) -> Translation:
        if subagent not in self._translations:
            self._translations[subagent] = _ToFirst() if self._version == 1 else _ToSecond()
        return self._translations[subagent]


class _ToFirst:
    """Updates of version 2 for a watcher of version 1."""

    def __init__(self) -> None:
        self._state = SessionState(ROOM)
        self._messages: set[str] = set()
        """The ids of the messages that the watcher has."""

    def seen(self, update: Any) -> None:
        self._state.add(update)
        if (message_id := getattr(update, "message_id", None)) is not None:
            self._messages.add(message_id)

    def told(self, update: Any) -> Sequence[Any]:
        from accord.schema.conversion import all_to_v1

        tag: str = update.__struct_config__.tag
        tool_call_id = getattr(update, "tool_call_id", None)
        was_known = tool_call_id in self._state.tool_calls
        is_repeated = tag in _WHOLE and update.message_id in self._messages
        self.seen(update)
        if tool_call_id is not None:
            return self._tool_call(tool_call_id, was_known=was_known)
        return () if is_repeated or tag in _OF_TERMINALS else all_to_v1(update)

    def _tool_call(self, tool_call_id: v1.ToolCallId, *, was_known: bool) -> Sequence[Any]:
        call = self._state.tool_calls.get(tool_call_id)
        if call is None:
            return ()
        whole = v1_replay.tool_call(call, self._state)
        if not was_known:
            return (whole,)
        return (v1.ToolCallProgress(**{name: getattr(whole, name) for name in whole.__struct_fields__}),)


_WHOLE = frozenset(("user_message", "agent_message", "agent_thought"))
_OF_TERMINALS = frozenset(("terminal_update", "terminal_output_chunk"))


class _ToSecond:
    """Updates of version 1 for a watcher of version 2."""

    def __init__(self) -> None:
        from accord.dialects.v2_dialect import V2Dialect  # loads the types of version 2

        self._dialect = V2Dialect()

    def seen(self, update: Any) -> None:
        if isinstance(update, v1.ToolCall | v1.ToolCallProgress):  # the only updates that need a memory
            self.told(update)

    def told(self, update: Any) -> Sequence[Any]:
        return self._dialect.fitted(update)
