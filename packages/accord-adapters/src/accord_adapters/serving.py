"""`adapted_agent`: an `accord.Agent` whose turns are the work of another framework."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

from accord import AccordError, Agent, Limits, Spans, Store, Turn, v1
from accord.agent.agent_capabilities import Accepted
from accord.arguments import wrong_type
from accord_adapters.failures import told
from accord_adapters.narration import Narration, Shown

StateT = TypeVar("StateT")

Work: TypeAlias = Callable[[Turn[StateT], Narration], Awaitable[str | None]]
"""Works on one prompt; returns a stop reason if it is not `end_turn`."""

_TURN: ContextVar[Turn[Any]] = ContextVar("accord_adapters.turn")


class ServeOptions(TypedDict, total=False):
    """What every `serve` takes beside the framework's own agent: how its work is shown, and options of `Agent`."""

    name: str
    """The agent's name; the framework's own name of it, or the framework's name, if left out."""
    kinds: Mapping[str, v1.ToolKind]
    """What kind of work each tool does, by the tool's name: `{"read_file": "read"}`. Editors show an icon for it."""
    context: int
    """How many tokens the model's context holds; clients show how full it is."""
    version: str
    title: str
    store: Store | str | Path
    """Where sessions are kept, with what the model knows of each. In memory if left out."""
    accepts: Collection[Accepted]
    """What prompts may hold beside text; if left out, all that the adapter can pass to the framework."""
    local: bool
    second_prompt: Literal["queue", "cancel_first"]
    remember: Literal["session", "agent"]
    versions: Sequence[Literal[1, 2]]
    cancel_grace: float
    unstable: bool
    debug: bool
    limits: Limits
    spans: Spans


def adapted_agent(
    work: Work[StateT],
    state: type[StateT],
    name: str,
    accepts: Collection[Accepted],
    options: ServeOptions,
    *,
    told_errors: tuple[type[BaseException], ...] = (),
) -> Agent[StateT]:
    """An agent that does this work for each prompt, and keeps a `state` with each session.

    `told_errors` are the framework's errors whose text is for the user; see `failures`.
    """
    of_agent: dict[str, Any] = {"accepts": accepts, **options}
    shown = Shown(kinds=of_agent.pop("kinds", {}), context=of_agent.pop("context", None))
    agent = Agent(of_agent.pop("name", name), state=state, **of_agent)

    @agent.on_prompt
    async def answer(turn: Turn[StateT]) -> str | None:
        token = _TURN.set(turn)
        try:
            async with Narration(turn, shown) as narration:
                return await work(turn, narration)
        except Exception as error:
            if (known := told(error, told_errors)) is None:
                raise
            raise known from error
        finally:
            _TURN.reset(token)

    return agent


def current_turn() -> Turn[Any]:
    """The turn that the calling tool works for: a framework's tool reaches the client's files and terminals by it.

    >>> async def read_file(path: str) -> str:
    ...     return await current_turn().client.read_text_file(path)

    Raises AccordError outside of a turn of an agent that `serve` made.
    """
    try:
        return _TURN.get()
    except LookupError:
        raise AccordError(
            "current_turn() was called outside of a turn: call it in a tool of an agent that serve() made"
        ) from None


def check_served(what: str, kind: str, value: object, expected: type[Any] | tuple[type[Any], ...]) -> None:
    """TypeError unless the framework's agent is of its class."""
    if not isinstance(value, expected):
        raise wrong_type(what, kind, value)
