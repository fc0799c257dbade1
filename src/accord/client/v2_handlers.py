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

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any, Protocol

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


class Arrivals(Protocol):
    """What takes session updates on arrival."""

    def arrived(self, notification: Any, params: bytes | Raw) -> None: ...


def as_v2(handlers: Handlers, sessions: Arrivals) -> Handlers:
    """Handlers for version 2, made of those that were registered for version 1; updates go to `sessions` first."""
    converted = Handlers()
    converted.raw, converted.others = handlers.raw, handlers.others
    # The first of them belong to single sessions, whose handlers are converted when they are registered.
    converted.interceptors = [handlers.interceptors[0], *map(interceptors_as_v2, handlers.interceptors[1:])]
    _convert(handlers, converted)
    converted.on_arrival(v2.UpdateSessionNotification, sessions.arrived)
    return converted


def _convert(handlers: Handlers, converted: Handlers) -> None:
    for (method, is_request), (message, handler) in handlers.typed.items():
        if not message.__module__.startswith("accord.schema.v1") or message is _of_v2(method, is_request):
            converted.typed[method, is_request] = message, handler
            continue
        counterpart = _of_v2(method, is_request)
        if counterpart is None:
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
    """What comes before the handlers, for version 2: each function gets messages of its class, converted."""
    converted = Interceptors()
    for message, functions in interceptors.all_before():
        counterpart = _of_v2(message.__method__, issubclass(message, Request))
        is_ours = message is not counterpart and message.__module__.startswith("accord.schema.v1")
        if is_ours and counterpart is None:
            continue
        for function in functions:
            converted.before(
                counterpart if is_ours and counterpart is not None else message,
                functools.partial(_before, function) if is_ours else function,
            )
    return converted


async def _before(function: Callable[[Any, Context], Any], message: Any, context: Context) -> Any:
    """Ask a function of version 1 about a message; what it says is converted back."""
    try:
        converted = to_v1(message)
    except ConversionError as error:
        raise RequestError.invalid_params(f"this client cannot take the message: {error}") from error
    said = function(converted, context)
    said = await said if inspect.isawaitable(said) else said
    return said if said is None or said is True else to_v2(said)


def _of_v2(method: str, is_request: bool) -> type[Request[Any] | Notification] | None:
    table = methods(2)
    row = table.request(method) if is_request else table.notification(method)
    return None if row is None else row.message


def _answering(handler: Callable[..., Any]) -> Callable[..., Any]:
    call = _with_context(handler)

    async def answer(request: Any, context: Context) -> Any:
        try:
            converted = to_v1(request)
        except ConversionError as error:
            raise RequestError.invalid_params(f"this client cannot take the request: {error}") from error
        result = call(converted, context)
        return to_v2(await result if inspect.isawaitable(result) else result)

    return answer


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
