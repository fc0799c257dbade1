"""Turns: messages, plans, permissions, errors, and the end of a turn."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from accord.schema import codec, v1, v2
from accord.schema.conversion.carrying import Several
from accord.schema.conversion.rows import DOWN, UP

MAIN_PLAN = v2.PlanId("main")
"""plan-variants: the id of the only plan of version 1."""

# message-updates: a whole message becomes a chunk for each of its blocks

_CHUNKS: dict[type, type] = {
    v2.UserMessage: v1.UserMessageChunk,
    v2.AgentMessage: v1.AgentMessageChunk,
    v2.AgentThought: v1.AgentThoughtChunk,
}


@DOWN.step(*_CHUNKS)
def _message(value: v2.UserMessage | v2.AgentMessage | v2.AgentThought) -> Several:
    what = type(value).__name__
    if not value.content or value.meta is None:
        DOWN.refuse(what, "only content can be added to a message: it cannot be replaced or cleared")
    return Several(DOWN.carry(value, _CHUNKS[value.__class__], content=block) for block in DOWN.one(value.content))


@DOWN.step(v2.UpdateSessionNotification)
def _notification(value: v2.UpdateSessionNotification) -> Several:
    return Several(DOWN.carry(value, v1.SessionNotification, update=update) for update in DOWN.all(value.update))


# plan-variants: the only plan of version 1 is the plan `main` of version 2


@UP.step(v1.Plan)
def _plan_up(value: v1.Plan) -> v2.PlanUpdate:
    return v2.PlanUpdate(v2.PlanItems(MAIN_PLAN, UP.one(value.entries)), meta=value.meta)


@DOWN.step(v2.PlanUpdate)
def _plan_down(value: v2.PlanUpdate) -> Any:
    match value.plan:
        case v2.PlanItems(plan_id="main", meta=None) as plan:
            return DOWN.carry(value, v1.Plan, used=("plan",), entries=DOWN.one(plan.entries))
        case _:
            return DOWN.carry(value, v1.PlanUpdate)


# permission-requests: in version 1 the title of the question is the title of its tool call


@UP.step(v1.RequestPermissionRequest)
def _permission_up(value: v1.RequestPermissionRequest) -> Any:
    if value.tool_call.title is None:
        UP.refuse("RequestPermissionRequest", "it needs a title: set the title of its tool call")
    subject = v2.ToolCallPermissionSubject(UP.one(value.tool_call))
    return UP.carry(
        value, v2.RequestPermissionRequest, used=("tool_call",), title=value.tool_call.title, subject=subject
    )


@DOWN.step(v2.RequestPermissionRequest)
def _permission_down(value: v2.RequestPermissionRequest) -> Any:
    if not isinstance(value.subject, v2.ToolCallPermissionSubject) or value.subject.meta is not None:
        DOWN.refuse("RequestPermissionRequest.subject", "the subject must be a tool call without _meta")
    tool_call = value.subject.tool_call
    if tool_call.title not in (UNSET, value.title):
        DOWN.refuse("RequestPermissionRequest.title", "the title must be that of its tool call")
    return DOWN.carry(
        value,
        v1.RequestPermissionRequest,
        used=("title", "subject"),
        tool_call=DOWN.one(replace(tool_call, title=value.title)),
    )


# prompt: a turn ends with the answer to its prompt in version 1, with an idle state update in version 2


@UP.step(v1.PromptResponse)
def _end_up(value: v1.PromptResponse) -> v2.SessionStateUpdate:
    return v2.SessionStateUpdate("idle", value.stop_reason, value.usage, meta=value.meta)


@DOWN.step(v2.SessionStateUpdate)
def _end_down(value: v2.SessionStateUpdate) -> Any:
    if value.state != "idle":
        DOWN.refuse("SessionStateUpdate", f"it has no message for the state {value.state!r}")
    if value.stop_reason == "error" and value.error is not None:
        if (value.background, value.usage, value.meta) != (None, None, None):
            DOWN.refuse(
                "SessionStateUpdate",
                "an error is the whole answer to a prompt: background, usage and _meta cannot be sent with it",
            )
        return DOWN.one(value.error)
    if value.stop_reason is None:
        DOWN.refuse("SessionStateUpdate", "it has no stop reason, so it does not end a turn")
    return DOWN.carry(value, v1.PromptResponse, used=("state",))


@UP.step(v1.Error)
def _error_up(value: v1.Error) -> v2.Error:
    data = None if value.data is None else codec.convert(value.data, v2.ErrorData)
    return v2.Error(value.code, value.message, data)


@DOWN.step(v2.Error)
def _error_down(value: v2.Error) -> v1.Error:
    return v1.Error(value.code, value.message, codec.plain(value.data))
