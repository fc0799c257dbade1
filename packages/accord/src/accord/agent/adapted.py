"""Handlers of version 1 that serve clients of version 2: their messages are converted, and so are their answers.

A message is adapted if version 2 has its method and each of its fields. Not adapted are `initialize`, and
`session/prompt`, whose answer is the end of a turn in one version and a receipt in the other.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from accord.engine.context import Context
from accord.engine.handlers import Handlers
from accord.engine.interceptors import Interceptors
from accord.errors import ConversionError, RequestError
from accord.schema import v1, v2
from accord.schema.base import Request
from accord.schema.conversion import to_v1, to_v2
from accord.schema.methods import methods

log = logging.getLogger("accord")

RENAMED = {v1.AuthenticateRequest.__method__: "auth/login", v1.LogoutRequest.__method__: "auth/logout"}
"""Methods that have another name in version 2."""

OF_ITS_OWN = (v1.InitializeRequest, v1.PromptRequest, v1.LoadSessionRequest)
"""The messages of version 1 whose handlers cannot serve version 2."""


def adapted(first: Handlers, *, warns: bool) -> Handlers:
    """These handlers for a client of version 2; with `warns`, the log names those that cannot serve it."""
    second = Handlers()
    second.raw.update(first.raw)
    second.others = first.others
    for (method, is_request), (message, handler) in first.typed.items():
        newer = _message_of(method, is_request=is_request)
        if newer is message or method.startswith("_"):
            second.typed[method, is_request] = (message, handler)
        elif newer is None or message in OF_ITS_OWN:
            if warns:
                log.info("the handler of %s serves clients of version 1 only", message.__name__)
        else:
            second.typed[newer.__method__, is_request] = (newer, _converting(handler))
    return second


def adapted_interceptors(interceptors: Interceptors) -> Interceptors:
    """What comes before the handlers, for a client of version 2."""
    return interceptors.converted(
        lambda message: _message_of(message.__method__, is_request=issubclass(message, Request)), in_version_1, to_v2
    )


def adapted_handler(message: Any, handler: Callable[..., Any]) -> tuple[Any, Callable[..., Any]]:
    """The handler of one message for a client of version 2; raises ValueError for one that cannot serve it."""
    first = Handlers()
    first.typed[message.__method__, issubclass(message, Request)] = message, handler
    for found in adapted(first, warns=False).typed.values():
        return found
    raise ValueError(f"{message.__name__} has no handler of version 1 in version 2 of the protocol")


def in_version_1(value: Any) -> Any:
    """A request of a client, or a part of one, in version 1; RequestError if version 1 cannot express it."""
    try:
        return to_v1(value)
    except ConversionError as error:
        raise RequestError.invalid_params(f"this agent does not support it: {error.reason}") from error


def prompt_in_version_1(request: v2.PromptRequest) -> v1.PromptRequest:
    """A prompt in version 1. Plain text, which most prompts are, is not converted field by field."""
    blocks = [_plain_text(block) or in_version_1(block) for block in request.prompt]
    return v1.PromptRequest(request.session_id, blocks, meta=request.meta)


def _plain_text(block: v2.ContentBlock) -> v1.TextContent | None:
    if isinstance(block, v2.TextContent) and block.annotations is None and block.meta is None:
        return v1.TextContent(block.text)
    return None


def _message_of(method: str, *, is_request: bool) -> type[Any] | None:
    """The class that version 2 has for this method of version 1."""
    name, table = RENAMED.get(method, method), methods(2)
    row = table.request(name) if is_request else table.notification(name)
    return None if row is None else row.message


def _converting(handler: Callable[..., Any]) -> Callable[..., Any]:
    takes_context = len(inspect.signature(handler).parameters) > 1

    async def handle(request: Request[Any], context: Context) -> Any:
        older = in_version_1(request)
        result = handler(older, context) if takes_context else handler(older)
        return to_v2(await result if inspect.isawaitable(result) else result)

    return handle
