"""Handlers of version 1 on a connection of version 2, of an agent or a client.

Authors and services register handlers for the messages of version 1. On a connection of version 2 their messages are
converted, and their results are converted back:

| registered for | in version 2 |
|---|---|
| a class of version 2, or of the user's own | the same |
| a class that both versions share | the same |
| a request | called with the converted request; refused if version 1 cannot express it |
| a notification, such as `session/update` | called with each message of version 1 that it takes, or as it came |
| `initialize`, `session/prompt` | not called: the handlers of version 2 answer them |
| a method that version 2 does not have, such as those of files and terminals | not called |
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, cast

from accord.engine.handlers import Handlers, Interceptors, with_context
from accord.engine.peer import Context
from accord.errors import ConversionError, RequestError
from accord.schema import v1, v2
from accord.schema.base import Notification, Request
from accord.schema.conversion import all_to_v1, to_v1, to_v2
from accord.schema.methods import methods

log = logging.getLogger("accord")

Side: TypeAlias = Literal["agent", "client"]
"""The side that handles the messages, for the errors that refuse them."""

_RENAMED = {v1.AuthenticateRequest.__method__: "auth/login", v1.LogoutRequest.__method__: "auth/logout"}
"""Methods that have another name in version 2."""

_ANSWERED_BY_V2 = (v1.InitializeRequest, v1.PromptRequest, v1.LoadSessionRequest)
"""The requests of version 1 whose handlers cannot serve version 2: their answers have another meaning there."""

_WITHDRAWN: dict[str, Any] = {
    v2.RequestPermissionRequest.__method__: v2.RequestPermissionResponse.cancelled(),
    v2.CreateElicitationRequest.__method__: v2.ElicitationCancelAction(),
}
"""The answers to questions that the agent has withdrawn."""


def handlers_on_v2(handlers: Handlers, side: Side, *, level: int = logging.DEBUG) -> Handlers:
    """Return handlers for version 2, made of those for either version; `level` logs those that are not called there."""
    converted = Handlers()
    converted.others = handlers.others
    converted.interceptors = [interceptors_on_v2(it, side) for it in handlers.interceptors]
    for key, (message, handler) in handlers.by_method.items():
        if message is None:
            converted.by_method[key] = None, handler
            continue
        counterpart = _counterpart(message)
        if counterpart is None:
            log.log(level, "the handler of %s is called in version 1 only", message.__name__)
        else:
            is_request = issubclass(counterpart, Request)
            same = counterpart is message
            served = handler if same else _answering(handler, side) if is_request else _notified(handler)
            converted.by_method[counterpart.__method__, is_request] = counterpart, served
    return converted


def handler_on_v2(message: Any, handler: Callable[..., Any], side: Side) -> tuple[Any, Callable[..., Any]]:
    """Return the handler of one message for version 2; raises ValueError for a message that it cannot serve there."""
    handlers = Handlers()
    handlers.by_method[message.__method__, issubclass(message, Request)] = message, handler
    for found in handlers_on_v2(handlers, side).by_method.values():
        return found
    raise ValueError(f"{message.__name__}: version 2 of the protocol has no {message.__method__}")


def interceptors_on_v2(interceptors: Interceptors, side: Side) -> Interceptors:
    """Return the interceptors for version 2."""
    return interceptors.converted(_counterpart, lambda message: in_v1(message, side), to_v2)


def in_v1(message: Any, side: Side) -> Any:
    """A message or a part of one in version 1; raises RequestError if version 1 cannot express it."""
    try:
        return to_v1(message)
    except ConversionError as error:
        raise RequestError.invalid_params(f"this {side} does not support it: {error.reason}") from error


def _counterpart(message: type[Request[Any] | Notification]) -> type[Request[Any] | Notification] | None:
    """Return the class that version 2 has for a message; None if its handler is not called there."""
    if not message.__module__.startswith("accord.schema.v1"):
        return message
    if message in _ANSWERED_BY_V2:
        return None
    table, method = methods(2), _RENAMED.get(message.__method__, message.__method__)
    row = table.request(method) if issubclass(message, Request) else table.notification(method)
    return None if row is None else row.message


def _answering(handler: Callable[..., Any], side: Side) -> Callable[..., Any]:
    call = with_context(handler)

    async def answer(request: Any, context: Context) -> Any:
        try:
            result = call(_request_in_v1(request, side), context)
            return to_v2(await result if inspect.isawaitable(result) else result)
        except asyncio.CancelledError:
            if (withdrawn := _WITHDRAWN.get(request.__method__)) is None:
                raise
            return withdrawn

    return answer


def _request_in_v1(request: Any, side: Side) -> Any:
    try:
        return in_v1(request, side)
    except RequestError:
        if not isinstance(request, v2.RequestPermissionRequest):
            raise
        # A question as one about a tool call of which only the question's title is known.
        subject = request.subject
        known = subject.tool_call.tool_call_id if isinstance(subject, v2.ToolCallPermissionSubject) else ""
        call = v1.ToolCallUpdate(v1.ToolCallId(known), request.title)
        options = [v1.PermissionOption(it.option_id, it.name, cast("Any", it.kind)) for it in request.options]
        return v1.RequestPermissionRequest(request.session_id, call, options)


def _notified(handler: Callable[..., Any]) -> Callable[..., Any]:
    call = with_context(handler)

    async def notify(notification: Any, context: Context) -> None:
        for each in _notifications_in_v1(notification):
            result = call(each, context)
            if inspect.isawaitable(result):
                await result

    return notify


def _notifications_in_v1(notification: Any) -> list[Any]:
    if isinstance(notification, v2.UpdateSessionNotification):
        session_id = notification.session_id
        return [v1.SessionNotification(session_id, update) for update in _all_in_v1(notification.update)]
    return _all_in_v1(notification)


def _all_in_v1(value: Any) -> list[Any]:
    """Return this value in types of version 1; the value itself if version 1 has none for it."""
    try:
        return all_to_v1(value)
    except ConversionError:
        return [value]
