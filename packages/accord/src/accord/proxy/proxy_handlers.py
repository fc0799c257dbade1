"""The handlers of a proxy: which functions see which messages, and how they are called.

A step that returns a message passes it to the next one, and the last one's is sent on. Any other value ends the way:
for a notification, None drops it; for a request, the value is the answer.

Each filter (prompts, updates, permissions) is a step that takes a whole message, and calls the author's function with
the part that it is about.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

import msgspec

from accord._internal.tasks import is_awaitable
from accord.proxy.chain_mcp import ProxyServers
from accord.proxy.hop import Hop, Side
from accord.schema import v1, v2
from accord.schema.base import Notification, Request
from accord.schema.methods import row_for

log = logging.getLogger("accord")

Step: TypeAlias = Callable[[Any, Hop[Any]], Any]
"""Takes a message and its hop. Returns a message, which goes on; an answer; or None."""

ANY = 0
"""The version of messages that are of no version: an author's own classes."""


class MessageHandlers:
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
        """The entry of a message from this side, made if there is none."""
        for version in versions_of(message):
            key = (side, message.__method__, issubclass(message, Request), version)
            made = self._entries.setdefault(key, MessageHandlers(message))
        return made  # pyright: ignore[reportPossiblyUnboundVariable]  # a message has at least one version

    def find(self, side: Side, method: str, *, is_request: bool, version: int) -> MessageHandlers | None:
        """The entry for a message that has arrived; None if no function sees it."""
        entries = self._entries
        found = entries.get((side, method, is_request, version)) or entries.get((side, method, is_request, ANY))
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


def run_steps(entry: MessageHandlers, message: Any, hop: Hop[Any]) -> Any:
    """Call the steps of an entry; returns what the last one returned, or an awaitable of it."""
    steps = entry.steps
    value: Any = message
    for at, step in enumerate(steps):
        value = step(value, hop)
        if is_awaitable(value):
            return _run_on(steps[at + 1 :], value, hop)
        if not is_message(value):
            return value
    return value


async def _run_on(steps: list[Step], awaited: Awaitable[Any], hop: Hop[Any]) -> Any:
    value = await awaited
    for step in steps:
        if not is_message(value):
            return value
        value = step(value, hop)
        if is_awaitable(value):
            value = await value
    return value


def is_message(value: Any) -> bool:
    """Whether a step has returned a message, which goes on."""
    return isinstance(value, Request | Notification)


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


OPENING = (
    v1.NewSessionRequest,
    v1.LoadSessionRequest,
    v1.ResumeSessionRequest,
    v1.ForkSessionRequest,
    v2.NewSessionRequest,
    v2.ResumeSessionRequest,
    v2.ForkSessionRequest,
)
"""The requests that may carry an addition to the system prompt."""


class Instructions:
    """One text for the agent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._block = f"<instructions>\n{text}\n</instructions>"

    def register(self, handlers: ProxyHandlers) -> None:
        """Add the steps that the instructions need."""
        for request in OPENING:
            handlers.entry("client", request).add(self._on_opening, self._on_opening, is_filter=True)
        for prompt in (v1.PromptRequest, v2.PromptRequest):
            handlers.entry("client", prompt).add(self._on_prompt, self._on_prompt, is_filter=True)
        for update in (v1.SessionNotification, v2.UpdateSessionNotification):
            handlers.entry("agent", update).add(self._on_update, self._on_update, is_filter=True)

    def _on_opening(self, request: Any, hop: Hop[Any]) -> Any:
        if not hop.appends_to_system_prompt:
            return request
        given = request.system_prompt
        ours = hop.text(self._text)
        if given is None:
            given = (v1 if hop.version == 1 else v2).SystemPrompt("append", [ours])
        else:
            given = msgspec.structs.replace(given, content=[*given.content, ours])
        return msgspec.structs.replace(request, system_prompt=given)

    def _on_prompt(self, request: Any, hop: Hop[Any]) -> Any:
        if hop.appends_to_system_prompt or not hop.is_first(self):
            return request
        return msgspec.structs.replace(request, prompt=[hop.text(self._block), *request.prompt])

    def _on_update(self, notification: Any, _: Hop[Any]) -> Any:
        update = notification.update
        if isinstance(update, v1.UserMessageChunk | v2.UserMessageChunk):
            content = self._without(update.content)
            if content is update.content:
                return notification
            if content is None:
                return None
            return msgspec.structs.replace(notification, update=msgspec.structs.replace(update, content=content))
        if isinstance(update, v2.UserMessage) and isinstance(update.content, list):
            kept = [block for block in map(self._without, update.content) if block is not None]
            return msgspec.structs.replace(notification, update=msgspec.structs.replace(update, content=kept))
        return notification

    def _without(self, block: Any) -> Any:
        """A block of the user's message without the instructions; None if nothing else is in it."""
        text = getattr(block, "text", None)
        if not isinstance(text, str) or not text.startswith(self._block):
            return block
        rest = text.removeprefix(self._block).lstrip("\n")
        return msgspec.structs.replace(block, text=rest) if rest else None
