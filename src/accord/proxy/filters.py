"""The usual handlers of proxies, for both versions: prompts, updates, permissions.

Each filter is a step that takes a whole message, and calls the author's function with the part that it is about.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from accord.proxy.hop import Hop
from accord.proxy.registered import Step, with_hop
from accord.tasks import is_awaitable


def prompt_filter(function: Callable[..., Any]) -> Step:
    """A step that lets the function change the blocks of a prompt."""

    def finish(request: Any, blocks: Any) -> Any:
        if blocks is None or blocks is request.prompt:
            return request
        if isinstance(blocks, str) or not isinstance(blocks, list | tuple):
            raise TypeError(
                f"a function of proxy.prompts returns a list of content blocks, got {type(blocks).__name__}"
            )
        return msgspec.structs.replace(request, prompt=list(cast("list[Any]", blocks)))

    return _step(function, lambda request: request.prompt, finish)


def update_filter(function: Callable[..., Any]) -> Step:
    """A step that lets the function change or drop an update."""

    def finish(notification: Any, update: Any) -> Any:
        if update is notification.update:
            return notification
        return None if update is None else msgspec.structs.replace(notification, update=update)

    return _step(function, lambda notification: notification.update, finish)


def permission_filter(function: Callable[..., Any]) -> Step:
    """A step that lets the function answer a permission request."""

    def finish(request: Any, choice: Any) -> Any:
        return request if choice is None else _answer(request, choice)

    return _step(function, lambda request: request, finish)


def _answer(request: Any, choice: Any) -> Any:
    from accord.schema import v1, v2

    option = _option(request, choice)
    version = v1 if isinstance(request, v1.RequestPermissionRequest) else v2
    response: Any = version.RequestPermissionResponse
    if option is not None:
        return response.selected(option)
    return request if choice else response.cancelled()  # what cannot be allowed once is the user's to decide


def _option(request: Any, choice: Any) -> Any:
    """The option that a policy has chosen; None if the agent offers nothing of the kind."""
    if not isinstance(choice, bool):
        wanted = getattr(choice, "option_id", choice)
        found = [option for option in request.options if option.option_id == wanted]
        if not found:
            offered = ", ".join(option.option_id for option in request.options)
            raise ValueError(f"a function of proxy.permissions chose {wanted!r}; the options are {offered}")
        return found[0]
    for kind in ("allow_once",) if choice else ("reject_once", "reject_always"):
        for option in request.options:
            if option.kind == kind:
                return option
    return None


def _step(function: Callable[..., Any], part: Callable[[Any], Any], finish: Callable[[Any, Any], Any]) -> Step:
    call = with_hop(function)

    def step(message: Any, hop: Hop[Any]) -> Any:
        value = call(part(message), hop)
        return _later(message, value, finish) if is_awaitable(value) else finish(message, value)

    return step


async def _later(message: Any, value: Awaitable[Any], finish: Callable[[Any, Any], Any]) -> Any:
    return finish(message, await value)
