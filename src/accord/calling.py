"""How a client's plain functions are called: in the event loop, or in a thread that waits for the loop.

A plain function that asks the user (for permission, or to fill in a form) may block. In a program of coroutines its
author would write an `async def`; a program without coroutines cannot. So `accord.sync` sets `elsewhere` in the context
of its event loops, and everything that a connection does inherits it. Code that calls such a function calls `adapted`
of it. Coroutine functions are never called elsewhere.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeAlias

from accord.tasks import is_awaitable

Caller: TypeAlias = "Callable[[Callable[..., Any], tuple[Any, ...]], Awaitable[Any]]"
"""Calls a function with these arguments in another thread, and gives what it returned."""

elsewhere: ContextVar[Caller | None] = ContextVar("accord_elsewhere", default=None)
"""What calls plain functions outside of this event loop; None where they are called in it."""


def adapted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it has to be called here: itself, or a coroutine function that has it called elsewhere."""
    call = elsewhere.get()
    if call is None or inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    async def called(*arguments: Any) -> Any:
        result = await call(function, arguments)
        return await result if is_awaitable(result) else result

    return called
