"""Which functions of a proxy's author get which messages, and in what order.

A step that returns a message passes it to the next one, and the last one's is sent on. Any other value ends the chain:
for a notification, None drops it; for a request, the value is the answer.

Each filter (prompts, updates, permissions) is a step that takes a whole message, and calls the author's function with
the relevant part.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, cast

import msgspec

from accord._internal.tasks import is_awaitable
from accord.mistakes import WrongReturn
from accord.proxy.chain_mcp import ProxyServers
from accord.schema import shared_updates as updates, v1, v2
from accord.schema.base import Notification, Request, Shape, Unknown
from accord.schema.methods import row_for, versions_of

log = logging.getLogger("accord")

Side: TypeAlias = Literal["client", "agent"]
"""The two neighbours of a proxy."""


def other(side: Side) -> Side:
    """The other side of a proxy."""
    return "agent" if side == "client" else "client"


OPENING_REQUESTS = (
    v1.NewSessionRequest,
    v1.LoadSessionRequest,
    v1.ResumeSessionRequest,
    v1.ForkSessionRequest,
    v2.NewSessionRequest,
    v2.ResumeSessionRequest,
    v2.ForkSessionRequest,
)
"""The requests that open a session, and may carry an addition to its system prompt."""


Step: TypeAlias = Callable[[Any, Any], Any]
"""Takes a message and its hop. Returns a message to pass on; an answer; or None."""


class MessageHandlers:
    """The functions for one message: filters, which see it first and in order, and at most one handler."""

    def __init__(self, message: type[Request[Any] | Notification]) -> None:
        row = row_for(message, "protocol")
        self.message = message
        self.params = row.params
        self.result = row.result
        self.suspends = False
        """Whether one of the functions is an `async def`, or runs in a thread."""
        self.immediate = issubclass(message, Notification) and message.__immediate__
        self.filters: list[Step] = []
        self.handler: Step | None = None

    @property
    def steps(self) -> list[Step]:
        """The functions in the order in which they are called."""
        return self.filters if self.handler is None else [*self.filters, self.handler]

    def add(self, step: Step, *, is_filter: bool, suspends: bool = False) -> None:
        """Add a step; whether it `suspends` is known before it is called."""
        self.suspends = self.suspends or suspends
        if is_filter:
            self.filters.append(step)
        elif self.handler is not None:
            name = self.message.__name__
            raise ValueError(
                f"{name} from this side has a handler already; register one, or use proxy.prompts and others"
            )
        else:
            self.handler = step


class ProxyHandlers:
    """The entries of a proxy."""

    def __init__(self, name: str) -> None:
        self.lent = ProxyServers(name)
        """The MCP servers that the proxy lends."""
        self._entries: dict[tuple[Side, str, bool, int], MessageHandlers] = {}
        self._missed: set[tuple[Side, str, int]] = set()

    @property
    def is_empty(self) -> bool:
        """Whether no function sees any message."""
        return not self._entries

    def entry(self, side: Side, message: type[Request[Any] | Notification]) -> MessageHandlers:
        """Return the entry of a message from this side, made if there is none."""
        made = MessageHandlers(message)
        for version in versions_of(message):
            key = (side, message.__method__, issubclass(message, Request), version)
            made = self._entries.setdefault(key, made)
        return made

    def find(self, side: Side, method: str, *, is_request: bool, version: int) -> MessageHandlers | None:
        """Return the entry for a message that has arrived; None if no function sees it."""
        entries = self._entries
        found = entries.get((side, method, is_request, version))
        if found is None and (side, method, is_request, 3 - version) in entries:
            self._warn_once(side, method, version)
        return found

    def _warn_once(self, side: Side, method: str, version: int) -> None:
        if (side, method, version) not in self._missed:
            self._missed.add((side, method, version))
            log.warning(
                "%s passes unseen: this connection has version %d of the protocol, and its handler is of version %d",
                method,
                version,
                3 - version,
            )


def run_steps(entry: MessageHandlers, message: Any, hop: Any) -> Any:
    """Call the steps of an entry; returns the result of the last one, or an awaitable of it."""
    steps = entry.steps
    value: Any = message
    for at, step in enumerate(steps):
        value = step(value, hop)
        if is_awaitable(value):
            return _run_on(steps[at + 1 :], value, hop)
        if not is_message(value):
            return value
    return value


async def _run_on(steps: list[Step], awaited: Awaitable[Any], hop: Any) -> Any:
    value = await awaited
    for step in steps:
        if not is_message(value):
            return value
        value = step(value, hop)
        if is_awaitable(value):
            value = await value
    return value


def is_message(value: Any) -> bool:
    """Whether a step has returned a message, which continues."""
    return isinstance(value, Request | Notification)


def prompt_filter(call: Step) -> Step:
    """Return a step with which the function changes the blocks of a prompt."""

    def finish(request: Any, blocks: Any) -> Any:
        if blocks is None or blocks is request.prompt:
            return request
        if isinstance(blocks, str) or not isinstance(blocks, list | tuple):
            raise TypeError(
                f"a function of proxy.prompts returns a list of content blocks, got {type(blocks).__name__}"
            )
        return msgspec.structs.replace(request, prompt=list(cast("list[Any]", blocks)))

    return _step(call, lambda request: request.prompt, finish)


def update_filter(call: Step, place: str) -> Step:
    """Return a step with which the function changes or drops an update; errors name the function's place."""

    def finish(notification: Any, update: Any) -> Any:
        old = notification.update
        if update is old:
            return notification
        if update is None:
            return None
        if not _is_update(update):
            raise WrongReturn(
                f"{place}, must return an update of a session, or None to drop it, got {type(update).__name__}; "
                "for other text, return v1.AgentMessageChunk.of(text)"
            )
        if isinstance(update, updates.ContentChunk) and update.message_id is None:  # part of the same message
            update = msgspec.structs.replace(update, message_id=getattr(old, "message_id", None))
            if update.message_id is None and isinstance(notification, v2.UpdateSessionNotification):
                name = type(update).__name__
                raise WrongReturn(
                    f"{place}, returned an update {name} without a message_id in place of {type(old).__name__}; "
                    f"in version 2, write {name}.of(text, message_id)"
                )
        return msgspec.structs.replace(notification, update=update)

    return _step(call, lambda notification: notification.update, finish)


def _is_update(value: Any) -> bool:
    return isinstance(value, Unknown) or (
        isinstance(value, Shape) and value.__struct_config__.tag_field == "sessionUpdate"
    )


def permission_filter(call: Step) -> Step:
    """Return a step with which the function answers a permission request."""

    def finish(request: Any, choice: Any) -> Any:
        return request if choice is None else _answer(request, choice)

    return _step(call, lambda request: request, finish)


def _answer(request: Any, choice: Any) -> Any:
    from accord.schema import v1, v2

    option = _option(request, choice)
    version = v1 if isinstance(request, v1.RequestPermissionRequest) else v2
    response: Any = version.RequestPermissionResponse
    if option is not None:
        return response.selected(option)
    return request if choice else response.cancelled()  # the user decides about requests that cannot be allowed once


def _option(request: Any, choice: Any) -> Any:
    """Return the option that a policy has chosen; None if the agent offers none of the kind."""
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


def _step(call: Step, part: Callable[[Any], Any], finish: Callable[[Any, Any], Any]) -> Step:
    def step(message: Any, hop: Any) -> Any:
        value = call(part(message), hop)
        return _later(message, value, finish) if is_awaitable(value) else finish(message, value)

    return step


async def _later(message: Any, value: Awaitable[Any], finish: Callable[[Any, Any], Any]) -> Any:
    return finish(message, await value)
