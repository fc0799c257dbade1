"""The handlers of a proxy: which functions see which messages, in which version."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from accord.proxy.home import Side
from accord.proxy.hop import Hop
from accord.proxy.lending import Lent
from accord.schema.base import Notification, Request
from accord.schema.methods import row_for

log = logging.getLogger("accord")

Step: TypeAlias = Callable[[Any, Hop[Any]], Any]
"""Takes a message and its hop. Returns a message, which goes on; an answer; or None."""

ANY = 0
"""The version of messages that are of no version: an author's own classes."""


class Entry:
    """The functions for one message: filters, which see it first and in order, and at most one handler."""

    def __init__(self, message: type[Request[Any] | Notification]) -> None:
        row = row_for(message, "protocol")
        self.message = message
        self.params = row.params
        self.result = row.result
        self.suspends = False
        """Whether one of the functions is an `async def`."""
        self.immediate = issubclass(message, Notification) and message.__immediate__
        self.filters: list[Step] = []
        self.handler: Step | None = None

    @property
    def steps(self) -> list[Step]:
        """The functions in the order in which they are called."""
        return self.filters if self.handler is None else [*self.filters, self.handler]

    def add(self, function: Callable[..., Any], step: Step, *, is_filter: bool) -> None:
        """Add a step that calls this function of the author's."""
        self.suspends = self.suspends or inspect.iscoroutinefunction(function)
        if is_filter:
            self.filters.append(step)
        elif self.handler is not None:
            name = self.message.__name__
            raise ValueError(
                f"{name} from this side has a handler already; register one, or use proxy.prompts and others"
            )
        else:
            self.handler = step


class Registered:
    """The entries of a proxy."""

    def __init__(self, name: str) -> None:
        self.lent = Lent(name)
        """The MCP servers that the proxy lends."""
        self._entries: dict[tuple[Side, str, bool, int], Entry] = {}
        self._missed: set[tuple[Side, str, int]] = set()

    @property
    def is_empty(self) -> bool:
        """Whether no function sees any message."""
        return not self._entries

    def entry(self, side: Side, message: type[Request[Any] | Notification]) -> Entry:
        """The entry of a message from this side, made if there is none."""
        for version in versions_of(message):
            key = (side, message.__method__, issubclass(message, Request), version)
            made = self._entries.setdefault(key, Entry(message))
        return made  # pyright: ignore[reportPossiblyUnboundVariable]  # a message has at least one version

    def find(self, side: Side, method: str, *, is_request: bool, version: int) -> Entry | None:
        """The entry for a message that has arrived; None if no function sees it."""
        entries = self._entries
        found = entries.get((side, method, is_request, version)) or entries.get((side, method, is_request, ANY))
        if found is None and (side, method, is_request, 3 - version) in entries:
            self._tell_once(side, method, version)
        return found

    def _tell_once(self, side: Side, method: str, version: int) -> None:
        if (side, method, version) not in self._missed:
            self._missed.add((side, method, version))
            log.warning(
                "%s passes unseen: this connection has version %d of the protocol, and its handler is of version %d",
                method,
                version,
                3 - version,
            )


def versions_of(message: type[Request[Any] | Notification]) -> tuple[int, ...]:
    """The versions that a message class belongs to; some belong to both, and an author's own class to any."""
    if message.__module__.startswith("accord.schema.v2"):
        return (2,)
    if not message.__module__.startswith("accord.schema.v1"):
        return (ANY,)
    from accord.schema import v2  # loaded only for proxies, which have to know both

    return (1, 2) if getattr(v2, message.__name__, None) is message else (1,)


def with_hop(function: Callable[..., Any]) -> Step:
    """The function as a step, also if it takes only the message."""
    parameters = inspect.signature(function).parameters.values()
    positional = [it for it in parameters if it.kind in (it.POSITIONAL_ONLY, it.POSITIONAL_OR_KEYWORD)]
    takes_hop = len(positional) > 1 or any(it.kind is it.VAR_POSITIONAL for it in parameters)
    return function if takes_hop else lambda message, _: function(message)
