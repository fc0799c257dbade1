"""`LiveSubagentV2`: a subagent of an agent that speaks version 2. Callers hold the same `RemoteSubagent`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord.client.subagents import LiveSubagent, MainSession, Subagents
from accord.dialects.v2_as_v1 import UpdateView
from accord.schema import v1
from accord.session import Message, Observer, ToolCallState


class LiveSubagentV2(LiveSubagent):
    """A subagent of version 2 while its session is open here; its updates are read in the words of version 1."""

    def __init__(self, table: Subagents, parent: MainSession | LiveSubagent, subagent_id: v1.SessionId) -> None:
        super().__init__(table, parent, subagent_id)
        self._view = UpdateView()
        self._replaced: tuple[Message, Message] | None = None
        """The message that the present update has replaced, before and after."""
        self._observers: list[Observer] = []
        self.state.on_replacement(self._was_replaced)

    def _take(self, update: Any, size: int) -> list[Any]:
        self._replaced = None
        self.state.add(update, size)
        shown: list[Any] = self._view.read(update, self.state, self._replaced)
        for each in shown or [None]:
            for observer in list(self._observers):
                observer(each)
        return shown

    def _was_replaced(self, before: Message, after: Message) -> None:
        self._replaced = before, after

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after every update, with the update as readers get it; the result stops that."""
        self._observers.append(observer)

        def end() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return end

    def fold(self, said: Any) -> ToolCallState:
        """Add what a permission request says of a tool call to `state`."""
        self.state.add(said)
        return self.state.tool_calls.get(said.tool_call_id) or ToolCallState(said.tool_call_id)
