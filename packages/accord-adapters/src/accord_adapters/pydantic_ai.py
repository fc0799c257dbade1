"""Agents of Pydantic AI (extra `pydantic-ai`): its events as updates, its approvals as questions to the user."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import pydantic_ai
from msgspec import Struct
from pydantic_ai import messages as of
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import ModelAPIError, ToolFailed, UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.run import AgentRunResultEvent
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext

from accord import AccordError, Agent, Turn, v1
from accord.printable import fenced
from accord_adapters.adapted_agent import ServeOptions, adapted_agent, check_served, parts_of
from accord_adapters.narration import Narration, plain
from accord_adapters.remote_tool import Callee, RemoteTool, ToolOptions

SHOWN_ERRORS = (ModelAPIError, UnexpectedModelBehavior, UsageLimitExceeded)
"""Errors of the provider and of the limits that the author has set."""


class PydanticMessages(Struct):
    """The messages of the conversation with the model, as Pydantic AI writes them; kept with the session."""

    messages: str = "[]"


def serve(
    agent: AbstractAgent[Any, Any],
    *,
    deps: Callable[[Turn[Any]], Any] | None = None,
    **options: Unpack[ServeOptions],
) -> Agent[PydanticMessages]:
    """An agent of Pydantic AI as an `accord.Agent`.

    `deps` makes the dependencies of a run from its turn; `deps=lambda turn: turn` gives the tools the turn itself.
    The other options are those of `ServeOptions`.
    """
    check_served("serve(agent)", "an agent of pydantic_ai", agent, AbstractAgent)

    async def work(turn: Turn[PydanticMessages], narration: Narration) -> None:
        await _PydanticRun(agent, turn, narration).answer(None if deps is None else deps(turn))

    name = agent.name or "pydantic-ai"
    return adapted_agent(
        work, PydanticMessages, name, ["image", "audio", "embedded"], options, shown_errors=SHOWN_ERRORS
    )


def tool(agent: Callee, **options: Unpack[ToolOptions]) -> pydantic_ai.Tool[Any]:
    """An ACP agent as a tool for Pydantic AI: `Agent(..., tools=[tool(accord.connect("gemini"))])`."""
    remote = RemoteTool(agent, **options)

    async def ask(task: str) -> str:
        try:
            return await remote(task)
        except AccordError as error:
            raise ToolFailed(str(error)) from error

    return pydantic_ai.Tool(ask, name=remote.name, description=remote.description, takes_ctx=False)


class _PydanticRun:
    """One run of the agent: the work on one prompt."""

    def __init__(
        self,
        agent: AbstractAgent[Any, Any],
        turn: Turn[PydanticMessages],
        narration: Narration,
    ) -> None:
        self._agent = agent
        self._turn = turn
        self._narration = narration
        self._counted = 0

    async def answer(self, deps: Any) -> None:
        # A turn that was cancelled, or ended by a crash, may have left calls without results.
        history = of.repair_messages(of.ModelMessagesTypeAdapter.validate_json(self._turn.session.state.messages))
        started = False
        async with self._agent.run_stream_events(
            _user_content(self._turn.prompt),
            message_history=history,
            deps=deps,
            capabilities=[HandleDeferredToolCalls(handler=self._approve)],
        ) as events:
            try:
                async for event in events:
                    started = True
                    if isinstance(event, of.FunctionToolCallEvent | of.FunctionToolResultEvent):
                        self._keep(events.all_messages())
                        await self._narration.keep()
                    await self._tell(event)
                    if isinstance(event, of.PartEndEvent | of.ToolResultEvent):
                        await self._count(events.all_messages(), len(history))
            finally:
                if started:
                    messages = events.all_messages()
                    self._keep(messages)
                    await self._count(messages, len(history))

    def _keep(self, messages: list[of.ModelMessage]) -> None:
        self._turn.session.state.messages = of.ModelMessagesTypeAdapter.dump_json(messages).decode()

    async def _tell(self, event: of.AgentStreamEvent | AgentRunResultEvent[Any]) -> None:
        tell = self._narration
        match event:
            case of.PartStartEvent(part=of.TextPart(content=text)):
                await tell.say(text)
            case of.PartDeltaEvent(delta=of.TextPartDelta(content_delta=text)):
                await tell.say(text)
            case of.PartStartEvent(part=of.ThinkingPart(content=text)):
                await tell.think(text)
            case of.PartDeltaEvent(delta=of.ThinkingPartDelta(content_delta=text)):
                await tell.think(text or "")
            case of.PartEndEvent(part=of.NativeToolCallPart() as part):
                await tell.tool_begins(part.tool_call_id, part.tool_name, part.args)
            case of.PartStartEvent(part=of.NativeToolReturnPart() as part):
                await tell.tool_ends(part.tool_call_id, part.content, failed=part.outcome != "success")
            case of.FunctionToolCallEvent(part=part):
                await tell.tool_begins(part.tool_call_id, part.tool_name, part.args)
            case of.FunctionToolResultEvent(part=part):
                await tell.tool_ends(part.tool_call_id, part.content, failed=part.outcome != "success")
            case AgentRunResultEvent(result=result) if not isinstance(result.output, str):
                await tell.say(_shown(result.output))
            case _:
                pass

    async def _approve(self, _: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        answers = {
            call.tool_call_id: await self._narration.ask(call.tool_call_id, call.tool_name, call.args)
            for call in requests.approvals
        }
        return requests.build_results(approvals=answers)

    async def _count(self, messages: Sequence[of.ModelMessage], before: int) -> None:
        """Tell the usage of each answer of the model once it is complete."""
        answers = [it for it in messages[before:] if isinstance(it, of.ModelResponse)]
        for answer in answers[self._counted :]:
            usage = answer.usage
            await self._narration.used(usage.input_tokens, usage.output_tokens)
        self._counted = len(answers)


def _user_content(prompt: Sequence[v1.ContentBlock]) -> list[of.UserContent]:
    return [
        part if isinstance(part, str) else of.BinaryContent(part.content, media_type=part.mime_type)
        for part in parts_of(prompt)
    ]


def _shown(output: object) -> str:
    """A result that is not text, as a code block of JSON."""
    return fenced(json.dumps(plain(output), indent=2, ensure_ascii=False))
