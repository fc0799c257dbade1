"""`ToolCallTracker`: the tool calls of an agent by its own ids, and the updates that tell of them."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from accord.compat.acp import schema as s
from accord.compat.acp.helpers import text_block, tool_content

__all__ = ["UNSET", "ToolCallTracker", "TrackedToolCallView"]


class _Unset:
    """Stands for an argument that was not given."""


UNSET: Final = _Unset()

FIELDS = ("title", "kind", "status", "content", "locations", "raw_input", "raw_output")


@dataclass(frozen=True, kw_only=True)
class TrackedToolCallView:
    """A tool call as it is now; it does not change any more."""

    tool_call_id: str
    title: str | None = None
    kind: Any = None
    status: Any = None
    content: tuple[Any, ...] | None = None
    locations: tuple[Any, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None


def view_of(cls: Any, tool_call_id: str, values: dict[str, Any]) -> Any:
    """An unchangeable view of a tool call with these fields; an empty list is None."""
    frozen = {
        name: (tuple(value) or None) if name in ("content", "locations") and value is not None else value
        for name, value in copied(values).items()
    }
    return cls(tool_call_id=tool_call_id, **frozen)


def copied(values: dict[str, Any]) -> dict[str, Any]:
    """These fields; the models in their lists are copies."""
    return {
        name: copy.deepcopy(list(value)) if name in ("content", "locations") and value is not None else value
        for name, value in values.items()
    }


class ToolCallTracker:
    """Keeps the tool calls of a session, and makes the updates that announce and change them."""

    def __init__(self, *, id_factory: Callable[[], str] | None = None) -> None:
        self._new_id = id_factory or (lambda: uuid.uuid4().hex)
        self._ids: dict[str, str] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        self._texts: dict[str, str] = {}

    def start(
        self,
        external_id: str,
        *,
        title: str,
        kind: Any = None,
        status: Any = "in_progress",
        content: Sequence[Any] | None = None,
        locations: Sequence[Any] | None = None,
        raw_input: Any = None,
        raw_output: Any = None,
    ) -> s.ToolCallStart:
        """Keep a tool call under the agent's own id; the update that announces it."""
        given = (title, kind, status, content, locations, raw_input, raw_output)
        self._ids[external_id] = self._new_id()
        self._calls[external_id] = copied(dict(zip(FIELDS, given, strict=True)))
        self._texts.pop(external_id, None)
        return s.ToolCallStart(tool_call_id=self._ids[external_id], **copied(self._calls[external_id]))

    def progress(
        self,
        external_id: str,
        *,
        title: Any = UNSET,
        kind: Any = UNSET,
        status: Any = UNSET,
        content: Any = UNSET,
        locations: Any = UNSET,
        raw_input: Any = UNSET,
        raw_output: Any = UNSET,
    ) -> s.ToolCallProgress:
        """Change a tool call; the update that tells of the change."""
        call = self._call(external_id)
        given = (title, kind, status, content, locations, raw_input, raw_output)
        changes = {name: value for name, value in zip(FIELDS, given, strict=True) if value is not UNSET}
        call.update(copied(changes))
        return s.ToolCallProgress(tool_call_id=self._ids[external_id], **copied(changes))

    def append_stream_text(
        self, external_id: str, text: str, *, title: Any = UNSET, status: Any = UNSET
    ) -> s.ToolCallProgress:
        """Add text to the content of a tool call; the update with the whole text so far."""
        self._call(external_id)
        self._texts[external_id] = self._texts.get(external_id, "") + text
        content = [tool_content(text_block(self._texts[external_id]))]
        return self.progress(external_id, title=title, status=status, content=content)

    def forget(self, external_id: str) -> None:
        """Keep this tool call no longer."""
        for kept in (self._ids, self._calls, self._texts):
            kept.pop(external_id, None)

    def view(self, external_id: str) -> TrackedToolCallView:
        """A tool call as it is now."""
        made: TrackedToolCallView = view_of(
            TrackedToolCallView, self._ids.get(external_id, ""), self._call(external_id)
        )
        return made

    def tool_call_model(self, external_id: str) -> s.ToolCallUpdate:
        """A tool call as a permission request shows it."""
        call = copied(self._call(external_id))
        return s.ToolCallUpdate(tool_call_id=self._ids[external_id], **call)

    def _call(self, external_id: str) -> dict[str, Any]:
        try:
            return self._calls[external_id]
        except KeyError:
            raise KeyError(f"no tool call has the id {external_id!r}: call start first") from None
