"""What the store uses of a connection of asyncpg, which brings no types of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = "Mapping[str, Any]"


class Connection(Protocol):
    """A connection to the database."""

    async def execute(self, statement: str, *values: Any) -> str:
        """Run a statement."""
        ...

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        """All rows of a statement."""
        ...

    async def fetchrow(self, statement: str, *values: Any) -> Row | None:
        """The first row of a statement."""
        ...

    async def fetchval(self, statement: str, *values: Any) -> Any:
        """The first value of the first row."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[object]:
        """A transaction around what is run within."""
        ...

    def is_closed(self) -> bool:
        """Whether it is of no use any more."""
        ...

    def terminate(self) -> None:
        """End it at once."""
        ...
