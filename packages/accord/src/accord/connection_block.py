"""`ConnectionBlock`: what `accord.connect` returns: a connection that lives as long as an `async with` block.

`with accord.connect(...)` and `await accord.connect(...)` are what people write first. Python's own errors name the
methods that are missing; these name the line to write.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

HOW = "write `async with accord.connect(...) as remote:` inside an `async def`"


class ConnectionBlock(AbstractAsyncContextManager[T_co, None], Generic[T_co]):
    """A connection for an `async with` block: it begins when the block is entered and ends when it is left."""

    def __init__(self, inner: AbstractAsyncContextManager[T_co, bool | None]) -> None:
        self._inner = inner

    async def __aenter__(self) -> T_co:
        """Connect."""
        return await self._inner.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the connection."""
        await self._inner.__aexit__(kind, error, trace)

    if not TYPE_CHECKING:  # type checkers find these mistakes because the methods are missing

        def __enter__(self) -> NoReturn:
            raise TypeError(f"accord.connect() cannot be used in a plain `with`; {HOW}")

        def __exit__(self, *_: object) -> None:
            """Never called, but Python looks for it before it calls `__enter__`."""

        def __await__(self) -> NoReturn:
            raise TypeError(f"accord.connect() cannot be awaited; {HOW}")

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise AttributeError(f"accord.connect() is not connected yet, so it has no {name!r}; {HOW}")


def connection_block(function: Callable[P, AsyncGenerator[T]]) -> Callable[P, ConnectionBlock[T]]:
    """Make a function of a generator with one `yield`; what it returns connects in an `async with` block."""
    opening = asynccontextmanager(function)

    @functools.wraps(function)
    def connect(*args: P.args, **kwargs: P.kwargs) -> ConnectionBlock[T]:
        return ConnectionBlock(opening(*args, **kwargs))

    return connect
