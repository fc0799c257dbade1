"""The handlers of a client for a connection of version 2.

Services and users register handlers for the messages of version 1. On a connection of version 2 each of them gets its
messages converted, and its results are converted back:

| registered for | in version 2 |
|---|---|
| a class of version 2, or of the user's own | the same |
| a class that both versions share | the same |
| `session/request_permission`, `elicitation/create`, ... | called with the converted request |
| `session/update` | called with each update in the words of version 1 |
| files and terminals | not called: agents of version 2 have their own |
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, cast

from msgspec import Raw

from accord.client.update_view import as_v1
from accord.engine.context import Context
from accord.engine.handlers import Handlers
from accord.engine.interceptors import Interceptors
from accord.errors import ConversionError, RequestError
from accord.schema import v1, v2
from accord.schema.base import Notification, Request
from accord.schema.conversion import to_v1, to_v2
from accord.schema.methods import methods

log = logging.getLogger("accord")


def as_v2(handlers: Handlers) -> Handlers:
    """Handlers for version 2, made of those that were registered for either version."""
    converted = Handlers()
    converted.raw, converted.others = dict(handlers.raw), handlers.others
    converted.interceptors = [interceptors_as_v2(it) for it in handlers.interceptors]
    _convert(handlers, converted)
    return converted


def _convert(handlers: Handlers, converted: Handlers) -> None:
    for (method, is_request), (message, handler) in handlers.typed.items():
        counterpart = _of_v2(method, is_request)
        if not message.__module__.startswith("accord.schema.v1") or message is counterpart:
            converted.typed[method, is_request] = message, handler
        elif counterpart is None:
            log.debug("%s is not called: version 2 has no %s", handler, method)
        elif is_request:
            converted.typed[method, True] = counterpart, _answering(handler)
        else:
            converted.typed[method, False] = counterpart, _told(handler)


def handler_as_v2(message: Any, handler: Callable[..., Any]) -> tuple[Any, Callable[..., Any]]:
    """The handler of one message for version 2; raises ValueError for a message that version 2 does not have."""
    handlers = Handlers()
    handlers.typed[message.__method__, issubclass(message, Request)] = message, handler
    converted = Handlers()
    _convert(handlers, converted)
    if not converted.typed:
        raise ValueError(f"{message.__name__}: version 2 of the protocol has no {message.__method__}")
    (found,) = converted.typed.values()
    return found


def interceptors_as_v2(interceptors: Interceptors) -> Interceptors:
    """What comes before the handlers, for version 2."""
    return interceptors.converted(
        lambda message: _of_v2(message.__method__, issubclass(message, Request)), _one_as_v1, to_v2
    )


def _one_as_v1(message: Any) -> Any:
    try:
        return to_v1(message)
    except ConversionError as error:
        raise RequestError.invalid_params(f"this client cannot take the message: {error}") from error


def on_update(handlers: Handlers, arrived: Callable[[Any, bytes | Raw], None]) -> Handlers:
    """These handlers, and `arrived` for each session update on its arrival."""
    handlers.on_arrival(v2.UpdateSessionNotification, arrived)
    return handlers


def _of_v2(method: str, is_request: bool) -> type[Request[Any] | Notification] | None:
    table = methods(2)
    row = table.request(method) if is_request else table.notification(method)
    return None if row is None else row.message


def _answering(handler: Callable[..., Any]) -> Callable[..., Any]:
    call = _with_context(handler)

    async def answer(request: Any, context: Context) -> Any:
        try:
            result = call(_request_as_v1(request), context)
            return to_v2(await result if inspect.isawaitable(result) else result)
        except asyncio.CancelledError:
            if (withdrawn := _WITHDRAWN.get(request.__method__)) is None:
                raise
            return withdrawn

    return answer


_WITHDRAWN: dict[str, Any] = {
    v2.RequestPermissionRequest.__method__: v2.RequestPermissionResponse.cancelled(),
    v2.CreateElicitationRequest.__method__: v2.ElicitationCancelAction(),
}
"""How a question to the user is answered that the agent has withdrawn."""


def _request_as_v1(request: Any) -> Any:
    try:
        return to_v1(request)
    except ConversionError as error:
        if isinstance(request, v2.RequestPermissionRequest):
            return _permission_as_v1(request)
        raise RequestError.invalid_params(f"this client cannot take the request: {error}") from error


def _permission_as_v1(request: v2.RequestPermissionRequest) -> v1.RequestPermissionRequest:
    """A question as one about a tool call, of which no more is known than the question's title."""
    subject = request.subject
    known = subject.tool_call.tool_call_id if isinstance(subject, v2.ToolCallPermissionSubject) else v1.ToolCallId("")
    options = [v1.PermissionOption(it.option_id, it.name, cast("Any", it.kind)) for it in request.options]
    return v1.RequestPermissionRequest(request.session_id, v1.ToolCallUpdate(known, request.title), options)


def _told(handler: Callable[..., Any]) -> Callable[..., Any]:
    call = _with_context(handler)

    async def told(notification: Any, context: Context) -> None:
        for each in _as_v1(notification):
            result = call(each, context)
            if inspect.isawaitable(result):
                await result

    return told


def _as_v1(notification: Any) -> list[Any]:
    if isinstance(notification, v2.UpdateSessionNotification):
        session_id = notification.session_id
        return [v1.SessionNotification(session_id, update) for update in as_v1(notification.update)]
    return as_v1(notification)


def _with_context(handler: Callable[..., Any]) -> Callable[[Any, Context], Any]:
    """A function of a message and its context, of a handler that may take the message alone."""
    parameters = inspect.signature(handler).parameters.values()
    positional = [it for it in parameters if it.kind in (it.POSITIONAL_ONLY, it.POSITIONAL_OR_KEYWORD)]
    takes_two = len(positional) > 1 or any(it.kind is it.VAR_POSITIONAL for it in parameters)
    return handler if takes_two else lambda message, _: handler(message)
