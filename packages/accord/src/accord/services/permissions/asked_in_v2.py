"""Permission requests of version 2 as the questions that rules and users answer. PURE.

In version 2 a question has a title of its own, and may be about a tool call, a command, something unknown, or nothing
that it names. Rules, remembered answers and displays look at a tool call. So a question about none gets one that stands
for it: with the question's title, and with the command as its input. It is never added to the session's state.
"""

from __future__ import annotations

from typing import Any, cast

from accord.errors import RequestError
from accord.schema import v1, v2
from accord.services.permissions.question import PermissionQuestion
from accord.services.permissions.subject import LONGEST_TEXT
from accord.services.service import ServedSession
from accord.session import ToolCallState

NO_TOOL_CALL = v1.ToolCallId("")
"""The id of a tool call that only stands for a question."""


def question_of(request: v2.RequestPermissionRequest, session: ServedSession) -> PermissionQuestion:
    """The question in this request; what it says of a tool call is applied first. Raises RequestError."""
    for what, text in (("title", request.title), ("description", request.description or "")):
        if len(text) > LONGEST_TEXT:
            raise RequestError.invalid_params(
                f"the {what} of a permission request has {len(text):,} characters, at most {LONGEST_TEXT:,} are allowed"
            )
    options = [v1.PermissionOption(it.option_id, it.name, cast("Any", it.kind)) for it in request.options]
    return PermissionQuestion(
        session,
        _tool_call(request, session),
        options,
        asked=request.title,
        description=request.description,
        subject=request.subject,
    )


def _tool_call(request: v2.RequestPermissionRequest, session: ServedSession) -> ToolCallState:
    match request.subject:
        case v2.ToolCallPermissionSubject(tool_call=said):
            return session.fold(cast("Any", said))
        case v2.CommandPermissionSubject(command=command, cwd=cwd, tool_call_id=call_id):
            raw = {"command": command, "cwd": cwd}
            return ToolCallState(call_id or NO_TOOL_CALL, request.title, "execute", raw_input=raw)
        case _:
            return ToolCallState(NO_TOOL_CALL, request.title)


def response_of(response: v1.RequestPermissionResponse) -> v2.RequestPermissionResponse:
    """The answer in the words of version 2."""
    outcome = response.outcome
    if isinstance(outcome, v1.SelectedPermissionOutcome):
        return v2.RequestPermissionResponse.selected(outcome.option_id)
    return v2.RequestPermissionResponse.cancelled()
