"""A plain loop of chat completions with a model and functions of Python as its tools (extra `agent`)."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import msgspec

from accord import Agent, RequestError, Turn
from accord.agent.model_messages import ImagePart, ModelCall, ResultPart, TextPart
from accord.mistakes import check_callable, check_text, check_word
from accord_adapters.adapted_agent import ServeOptions, adapted_agent, images_only, parts_of
from accord_adapters.narration import REFUSED, Narration
from accord_adapters.remote_tool import Callee, RemoteTool, ToolOptions
from accord_tools.coder.model import Json, ModelConversation, ModelError, ModelRequest, ToolSpec
from accord_tools.coder.open_model import ModelSettings, OpenModels
from accord_tools.coder.provider_client import Model, streamed_answer
from accord_tools.coder.tool_definition import fields_of, schema_of


class FunctionTool:
    """A function that a model may call, by its name, docstring and annotations. A plain `def` runs in a thread."""

    def __init__(self, function: Callable[..., Any]) -> None:
        check_callable("serve(tools=...)", function)
        self.name: str = function.__name__
        self._function = function
        self._arguments = msgspec.defstruct(self.name, _fields(function), forbid_unknown_fields=True)

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model knows it."""
        return ToolSpec(self.name, inspect.getdoc(self._function) or "", schema_of(self._arguments))

    async def call(self, arguments: str) -> object:
        """Call the function with arguments in JSON; raises `msgspec.ValidationError` if they do not fit."""
        given: Any = msgspec.json.decode(arguments or "{}", type=self._arguments)
        named: Json = {name: getattr(given, name) for name in self._arguments.__struct_fields__}
        if inspect.iscoroutinefunction(self._function):
            return await self._function(**named)
        return await asyncio.to_thread(self._function, **named)


def _fields(function: Callable[..., Any]) -> list[tuple[str, Any] | tuple[str, Any, Any]]:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(
                f"serve(tools=...): {function.__name__}() has the parameter {parameter}, which a model cannot name; "
                "give each parameter a name of its own"
            )
    return sorted(fields_of(function), key=len)  # a struct has its required fields first


MOST_ROUNDS = 100
"""The most requests to the model in one turn."""

CANCELLED = "The user cancelled this."
LOST = "The agent ended while this ran; it may have been done or not."


def serve(
    model: str,
    *,
    tools: Sequence[Callable[..., Any]] = (),
    ask_before: Collection[str] = (),
    instructions: str = "You are a helpful assistant.",
    base_url: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    **options: Unpack[ServeOptions],
) -> Agent[ModelConversation]:
    """Serve a model behind chat completions as an `accord.Agent`, with functions as its tools.

    `tools` are functions with annotations and a docstring, `async` or not. `ask_before` names those for which the user
    is asked. `base_url` and `api_key` locate the model; without them the environment variables `OPENAI_BASE_URL` and
    `OPENAI_API_KEY` do. The other options are those of `ServeOptions`.
    """
    check_text("serve(model)", model)
    known = {it.name: it for it in map(FunctionTool, tools)}
    for name in ask_before:
        check_word("ask_before", name, known)
    key = api_key or os.environ.get("OPENAI_API_KEY") or ""
    models = OpenModels(ModelSettings(api="openai", base_url=base_url, key=key, headers=headers or {}))

    async def work(turn: Turn[ModelConversation], narration: Narration) -> str | None:
        models.keep_for(turn.session)
        return await _Loop(model, instructions, known, ask_before, turn, narration).answer(await models.get())

    return adapted_agent(work, ModelConversation, "chat", ["image", "embedded"], options)


def tool(agent: Callee, **options: Unpack[ToolOptions]) -> Callable[[str], Any]:
    """An ACP agent as a tool for the loop: `serve(..., tools=[tool(accord.connect("gemini"))])`."""
    remote = RemoteTool(agent, **options)

    async def ask(task: str) -> str:
        return await remote(task)

    ask.__name__, ask.__doc__ = remote.name, remote.description
    return ask


@dataclass
class _Loop:
    """Asks the model, runs its tools, and asks it again, until it has nothing more to do."""

    model: str
    instructions: str
    tools: Mapping[str, FunctionTool]
    ask_before: Collection[str]
    turn: Turn[ModelConversation]
    narration: Narration

    async def answer(self, model: Model) -> str | None:
        conversation = self.turn.session.state
        conversation.close_calls(LOST)  # of a turn that a crash has ended
        for part in images_only(parts_of(self.turn.prompt)):
            conversation.add("user", TextPart(part) if isinstance(part, str) else ImagePart(part.data, part.mime_type))
        try:
            return await self._rounds(model, conversation)
        except asyncio.CancelledError:
            conversation.close_calls(CANCELLED)
            raise
        except ModelError as error:
            raise RequestError.internal(str(error), reason=error.trouble) from error

    async def _rounds(self, model: Model, conversation: ModelConversation) -> str | None:
        for _ in range(MOST_ROUNDS):
            specs = [it.spec for it in self.tools.values()]
            question = ModelRequest(
                model=self.model, system=self.instructions, messages=conversation.messages, tools=specs
            )
            tell = self.narration
            finished = await streamed_answer(model, question, conversation, tell.say, tell.think)
            conversation.add("assistant", *finished.parts)
            await tell.used(finished.usage.input, finished.usage.output, thought=finished.usage.thought)
            await self.turn.session.save()  # a crash loses at most the round that is running
            if not finished.calls:
                return finished.stop_reason
            for call in finished.calls:
                conversation.add("user", await self._used(call))
                await self.turn.session.save()
        return "max_turn_requests"

    async def _used(self, call: ModelCall) -> ResultPart:
        """Run the model's tool call; the model gets any error, and may try something else."""
        await self.narration.tool_begins(call.id, call.name, call.arguments)
        if call.name in self.ask_before and not await self.narration.ask(call.id, call.name, call.arguments):
            return await self._ended(call, REFUSED, failed=True)
        if (found := self.tools.get(call.name)) is None:
            known = ", ".join(self.tools) or "none"
            return await self._ended(call, f"There is no tool {call.name!r}; there are: {known}", failed=True)
        try:
            output = await found.call(call.arguments)
        except Exception as error:  # whatever a function of the author raises
            return await self._ended(call, f"It failed: {error or type(error).__name__}", failed=True)
        return await self._ended(call, output)

    async def _ended(self, call: ModelCall, output: object, *, failed: bool = False) -> ResultPart:
        text = await self.narration.tool_ends(call.id, output, failed=failed)
        return ResultPart(call.id, text, failed)
