"""`PermissionBroker`: asks for permission to run a tool call that a `ToolCallTracker` keeps."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from accord.compat.acp import schema as s
from accord.compat.acp.contrib.tool_calls import ToolCallTracker
from accord.compat.acp.helpers import text_block, tool_content

__all__ = ["PermissionBroker", "default_permission_options"]


class PermissionBrokerError(ValueError):
    """A permission cannot be asked for with what was given."""


class MissingToolCallError(PermissionBrokerError):
    """No tool call was given, and there is no tracker to find one in."""


class MissingPermissionOptionsError(PermissionBrokerError):
    """There are no options to choose from."""


def default_permission_options() -> tuple[s.PermissionOption, s.PermissionOption, s.PermissionOption]:
    """Approve once, approve always, reject once."""
    return (
        s.PermissionOption(option_id="approve", name="Approve", kind="allow_once"),
        s.PermissionOption(option_id="approve_for_session", name="Approve for session", kind="allow_always"),
        s.PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
    )


class PermissionBroker:
    """Asks for permission in one session, through a function that sends the request."""

    def __init__(
        self,
        session_id: str,
        requester: Callable[[Any], Awaitable[Any]],
        *,
        tracker: ToolCallTracker | None = None,
        default_options: Sequence[Any] | None = None,
    ) -> None:
        self._session_id = session_id
        self._requester = requester
        self._tracker = tracker
        self._options = copy.deepcopy(list(default_options or default_permission_options()))

    async def request_for(
        self,
        external_id: str,
        *,
        description: str | None = None,
        options: Sequence[Any] | None = None,
        content: Sequence[Any] | None = None,
        tool_call: Any | None = None,
    ) -> Any:
        """Ask for permission to run a tool call; `description` is added to what the user is shown of it."""
        if tool_call is None and self._tracker is None:
            raise MissingToolCallError("tool_call is required: this PermissionBroker has no ToolCallTracker")
        shown = tool_call.model_copy(deep=True) if tool_call is not None else self._tracked(external_id)
        if content is not None:
            shown.content = copy.deepcopy(list(content))
        if description:
            shown.content = [*(shown.content or []), tool_content(text_block(description))]
        offered = copy.deepcopy(list(options or self._options))
        if not offered:
            raise MissingPermissionOptionsError("options is empty: give at least one PermissionOption")
        request = s.RequestPermissionRequest(session_id=self._session_id, tool_call=shown, options=offered)
        return await self._requester(request)

    def _tracked(self, external_id: str) -> Any:
        assert self._tracker is not None
        return self._tracker.tool_call_model(external_id)
