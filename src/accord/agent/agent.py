"""`Agent`: what an author writes. It holds functions and nothing live; each connection is a `Service`."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from contextlib import aclosing
from typing import Any, TypeVar, cast, get_args

from accord.agent.content import Accepted, Accepts
from accord.agent.service import Service
from accord.agent.session import Session
from accord.agent.turn import Turn
from accord.agent.turns import SecondPrompt
from accord.handlers import Handlers
from accord.run import run
from accord.schema import v1
from accord.schema.base import Notification, Request
from accord.schema.v1.prompt import StopReason
from accord.transports.base import Transport
from accord.transports.stdio import StdioTransport

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

STOP_REASONS: tuple[str, ...] = get_args(StopReason)


class Agent:
    """An agent: functions that answer prompts, and what is known about it.

    agent = accord.Agent("echo", version="1.0.0")

    @agent.on_prompt
    async def echo(turn: accord.Turn) -> None:
        await turn.say(turn.text)

    agent.run()
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0",
        title: str | None = None,
        accepts: Collection[Accepted] = (),
        second_prompt: SecondPrompt = "queue",
        unstable: bool = False,
        debug: bool = False,
        cancel_grace: float = 5.0,
    ) -> None:
        self.info = v1.Implementation(name, version, title)
        self.second_prompt: SecondPrompt = second_prompt
        self.unstable = unstable
        self.debug = debug
        self.cancel_grace = cancel_grace
        """Seconds that a cancelled turn may take for its end before it is answered all the same."""
        self.handlers = Handlers()
        self._accepts = Accepts(accepts)
        self._on_prompt: Callable[[Turn], Any] | None = None
        self._on_session: Callable[[Session], Any] | None = None

    # What the author registers

    def on_prompt(self, function: FunctionT) -> FunctionT:
        """Answer prompts with this function, which takes the `Turn`.

        It may be an `async def`, a `def`, or an (asynchronous) generator of what to say. It returns nothing when all
        is said, or another stop reason than `end_turn`.
        """
        self._on_prompt = function
        return function

    def on_session(self, function: FunctionT) -> FunctionT:
        """Call this function with each `Session` that is opened, before the client has it."""
        self._on_session = function
        return function

    def on(self, message: type[Request[Any] | Notification]) -> Callable[[FunctionT], FunctionT]:
        """Handle this message of the protocol, or one of your own, in the low level's way: it goes before ours."""
        return self.handlers.on(message)

    def on_request(self, method: str) -> Callable[[FunctionT], FunctionT]:
        """Handle a request by its method, in plain JSON values."""
        return self.handlers.on_request(method)

    def on_notification(self, method: str) -> Callable[[FunctionT], FunctionT]:
        """Handle a notification by its method, in plain JSON values."""
        return self.handlers.on_notification(method)

    # Running

    async def serve(self, transport: Transport) -> None:
        """Serve one client over this transport, until the link ends."""
        await Service(self, transport).run()

    def run(self, *, uvloop: bool | None = None) -> None:
        """Serve the client that started this program, over standard input and output."""
        try:
            run(self._serve_standard_streams(), uvloop=uvloop)
        except KeyboardInterrupt:
            raise SystemExit(130) from None

    async def _serve_standard_streams(self) -> None:
        await self.serve(StdioTransport.standard())

    # What a service asks

    def declare(self) -> v1.AgentCapabilities:
        return v1.AgentCapabilities(
            prompt_capabilities=self._accepts.capabilities(),
            session_capabilities=v1.SessionCapabilities(
                close=v1.SessionCloseCapabilities(),
                additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
            ),
        )

    async def opened(self, session: Session) -> None:
        if self._on_session is not None:
            await _finished(self._on_session(session))

    async def answer(self, turn: Turn) -> str:
        """Let the author's function work on a prompt; the stop reason."""
        if self._on_prompt is None:
            raise TypeError("nobody answers prompts: decorate a function with @agent.on_prompt")
        return stop_reason(await spoken(turn, self._on_prompt(turn)))


async def spoken(turn: Turn, result: Any) -> Any:
    """Say what a generator yields; what another function returned."""
    if isinstance(result, AsyncGenerator):
        async with aclosing(cast("AsyncGenerator[Any]", result)) as parts:
            async for part in parts:
                await turn.say(part)
        return None
    if isinstance(result, Iterator):
        for part in cast("Iterator[Any]", result):
            await turn.say(part)
        return None
    return await _finished(result)


def stop_reason(result: Any) -> str:
    if result is None:
        return "end_turn"
    if result in STOP_REASONS:
        return str(result)
    raise TypeError(
        f"a function for prompts returned {result!r}; it may return nothing or one of {', '.join(STOP_REASONS)}. "
        "What the user should read is said with turn.say."
    )


async def _finished(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
