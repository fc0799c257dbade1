"""Turns: messages, plans, permissions, errors, and how a turn ends."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from accord.schema import codec, v1, v2
from accord.schema.conversion.carrying import Several
from accord.schema.conversion.rows import DOWN, UP

MAIN_PLAN = v2.PlanId("main")
"""plan-variants: the id of version 1's one plan."""

# message-updates: a whole message is a chunk for each of its blocks, if there are any

_CHUNKS: dict[type, type] = {
    v2.UserMessage: v1.UserMessageChunk,
    v2.AgentMessage: v1.AgentMessageChunk,
    v2.AgentThought: v1.AgentThoughtChunk,
}


@DOWN.step(*_CHUNKS)
def _message(value: v2.UserMessage | v2.AgentMessage | v2.AgentThought) -> Several:
    what = type(value).__name__
    if not value.content or value.meta is None:
        DOWN.refuse(what, "only adding content can be said there")
    return Several(DOWN.carry(value, _CHUNKS[type(value)], content=block) for block in DOWN.one(value.content))


@DOWN.step(v2.UpdateSessionNotification)
def _notification(value: v2.UpdateSessionNotification) -> Several:
    return Several(DOWN.carry(value, v1.SessionNotification, update=update) for update in DOWN.all(value.update))


# plan-variants: version 1's one plan is the plan `main`


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


# permission-requests: the question's title is the tool call's in version 1


@UP.step(v1.RequestPermissionRequest)
def _permission_up(value: v1.RequestPermissionRequest) -> Any:
    if value.tool_call.title is None:
        UP.refuse("RequestPermissionRequest", "the question needs a title: give its tool call the one that it has")
    subject = v2.ToolCallPermissionSubject(UP.one(value.tool_call))
    return UP.carry(
        value, v2.RequestPermissionRequest, used=("tool_call",), title=value.tool_call.title, subject=subject
    )


@DOWN.step(v2.RequestPermissionRequest)
def _permission_down(value: v2.RequestPermissionRequest) -> Any:
    if not isinstance(value.subject, v2.ToolCallPermissionSubject) or value.subject.meta is not None:
        DOWN.refuse("RequestPermissionRequest.subject", "a question is about a tool call there")
    tool_call = value.subject.tool_call
    if tool_call.title not in (UNSET, value.title):
        DOWN.refuse("RequestPermissionRequest.title", "a question has the title of its tool call there")
    return DOWN.carry(
        value,
        v1.RequestPermissionRequest,
        used=("title", "subject"),
        tool_call=DOWN.one(replace(tool_call, title=value.title)),
    )


# prompt: what ends a turn is the answer to its prompt in version 1, an idle state update in version 2


@UP.step(v1.PromptResponse)
def _end_up(value: v1.PromptResponse) -> v2.SessionStateUpdate:
    return v2.SessionStateUpdate("idle", value.stop_reason, value.usage, meta=value.meta)


@DOWN.step(v2.SessionStateUpdate)
def _end_down(value: v2.SessionStateUpdate) -> Any:
    if value.state != "idle":
        DOWN.refuse("SessionStateUpdate", f"it has no message for the state {value.state}")
    if value.stop_reason == "error" and value.error is not None:
        if (value.background, value.usage, value.meta) != (None, None, None):
            DOWN.refuse("SessionStateUpdate", "an error is all that a prompt is answered with there")
        return DOWN.one(value.error)
    if value.stop_reason is None:
        DOWN.refuse("SessionStateUpdate", "it ends no turn")
    return DOWN.carry(value, v1.PromptResponse, used=("state",))


@UP.step(v1.Error)
def _error_up(value: v1.Error) -> v2.Error:
    data = None if value.data is None else codec.convert(value.data, v2.ErrorData)
    return v2.Error(value.code, value.message, data)


@DOWN.step(v2.Error)
def _error_down(value: v2.Error) -> v1.Error:
    return v1.Error(value.code, value.message, codec.plain(value.data))
