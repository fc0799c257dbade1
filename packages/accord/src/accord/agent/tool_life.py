"""`ToolLife`: a tool call that outlives its turn, or that the client may cancel by itself.

    async with turn.tool("Watch the files", background=True, cancellable=True) as tool: ...

Both need more than the tool call's own updates. Background work is listed in every state of the session, from after
its announcement until after its last update. A cancellable tool call offers its cancelling to the client, and its block
then ends as if it had been left: the code after it goes on, and `tool.is_cancelled` is true.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Final

from accord.agent.activity import SessionActivity
from accord.agent.cancellations import Cancellations
from accord.dialects.dialect import Background

TOOL_CALL: Final = "tool_call"


class ToolLife:
    """What a tool call is to its session, beside its updates."""

    def __init__(
        self, activity: SessionActivity, cancels: Cancellations, *, in_background: bool, cancellable: bool
    ) -> None:
        self.is_cancelled = False
        """Whether the client has cancelled the tool call."""
        self._activity = activity
        self._cancels = cancels
        self._in_background = in_background
        self._cancellable = cancellable
        self._task: asyncio.Task[object] | None = None
        self._open = ExitStack()
        self._tool_call_id = ""

    def begins(self, tool_call_id: str) -> None:
        """The client knows the tool call now."""
        self._tool_call_id = tool_call_id
        if self._cancellable:
            self._task = asyncio.current_task()
            self._cancels.offer(TOOL_CALL, tool_call_id, self._cancel)
            self._activity.tell_cancellable(TOOL_CALL, tool_call_id, offered=True)
        if self._in_background:
            self._open.enter_context(self._activity.beside_turns(Background(TOOL_CALL, tool_call_id)))

    def stops(self) -> None:
        """Its block has ended: it can no longer be cancelled."""
        if self._cancellable:
            self._cancels.withdraw(TOOL_CALL, self._tool_call_id)
            self._task = None

    def ends(self) -> None:
        """Its last update was sent."""
        if self._cancellable:
            self._activity.tell_cancellable(TOOL_CALL, self._tool_call_id, offered=False)
        self._open.close()

    def takes(self, error: type[BaseException] | None) -> bool:
        """Whether this error is only how the client's cancelling reached the block."""
        task = asyncio.current_task()
        if not self.is_cancelled or task is None or error is None or not issubclass(error, asyncio.CancelledError):
            return False
        return task.uncancel() == 0  # else something has cancelled more than this tool call

    def _cancel(self) -> None:
        if self._task is not None and not self.is_cancelled:
            self.is_cancelled = True
            self._task.cancel()
