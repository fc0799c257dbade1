"""Pydantic AI (extra `pydantic-ai`): its agents as ACP agents, and ACP agents as its tools and its models.

As a model, an agent keeps the conversation in its session, while Pydantic AI sends all messages with each request. So
`AcpModel` remembers the conversation of each session: a request that continues one sends only the new part there, and
any other, such as one that was edited or comes from a file, begins a session with all of it in one prompt.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

import pydantic_ai
from msgspec import Struct
from pydantic_ai import messages as of
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import ModelAPIError, ToolFailed, UnexpectedModelBehavior, UsageLimitExceeded, UserError
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.run import AgentRunResultEvent
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.usage import RequestUsage

from accord import AccordError, Agent, RemoteSession, Reply, Turn, updates, v1
from accord.printable import fenced
from accord_adapters.adapted_agent import ServeOptions, adapted_agent, check_served, parts_of
from accord_adapters.narration import Narration, plain
from accord_adapters.remote_tool import Callee, RemoteTool, ToolOptions

SHOWN_ERRORS = (ModelAPIError, UnexpectedModelBehavior, UsageLimitExceeded)
"""Errors of the provider and of the limits that the author has set."""


class PydanticMessages(Struct):
    """The messages of the conversation with the model, as Pydantic AI writes them; stored with the session."""

    messages: str = "[]"


def serve(
    agent: AbstractAgent[Any, Any],
    *,
    deps: Callable[[Turn[Any]], Any] | None = None,
    **options: Unpack[ServeOptions],
) -> Agent[PydanticMessages]:
    """Serve an agent of Pydantic AI as an `accord.Agent`.

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


MOST_SESSIONS = 64
"""Conversations of a model that can be continued without repeating them, the newest."""


def model(agent: Callee, *, name: str = "acp-agent", cwd: str | Path | None = None) -> AcpModel:
    """Return an ACP agent as a model for Pydantic AI: `Agent(model(accord.connect("gemini")), output_type=...)`.

    `name` is the model's name, and `cwd` the folder of the sessions. The ACP agent uses its own tools; it cannot call
    those of Pydantic AI. Its permissions are those of the `Client` that it is connected with.
    """
    return AcpModel(agent, name=name, cwd=cwd)


class AcpModel(Model[None]):
    """An ACP agent as a model of Pydantic AI; `model` makes it."""

    def __init__(self, agent: Callee, *, name: str, cwd: str | Path | None) -> None:
        super().__init__(profile=ModelProfile(supports_tools=False, default_structured_output_mode="prompted"))
        self._agent = RemoteTool(agent, name=name, cwd=cwd)
        self._sessions: dict[str, RemoteSession] = {}
        """Sessions that wait for their next prompt, by their conversations."""

    @property
    def model_name(self) -> str:
        """The given name."""
        return self._agent.name

    @property
    def system(self) -> str:
        """The name in place of a provider."""
        return "acp"

    async def request(
        self,
        messages: list[of.ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> of.ModelResponse:
        """Ask the agent, and wait for the end of its turn."""
        async with self.request_stream(messages, model_settings, model_request_parameters) as answer:
            async for _ in answer:
                pass
        return answer.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[of.ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002
    ) -> AsyncGenerator[AcpAnswer]:
        """Ask the agent, and stream its turn; leaving the block earlier cancels the turn."""
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        if parameters.function_tools:
            names = ", ".join(it.name for it in parameters.function_tools)
            raise UserError(f"an ACP agent uses its own tools and cannot call these: {names}; leave them out")
        sent_count = max((at + 1 for at, it in enumerate(messages) if isinstance(it, of.ModelResponse)), default=0)
        instructions = "\n\n".join(it.content for it in self._get_instruction_parts(messages, parameters) or ())
        try:
            session = self._sessions.pop(_key(messages[:sent_count]), None)
            if session is None or not session.is_open:
                session, sent_count = await self._agent.new_session(), 0
            blocks = [
                block for message in messages[sent_count:] for block in _blocks(message, names_speaker=sent_count == 0)
            ]
            async with session.prompt([*([instructions] if instructions else []), *blocks]) as reply:
                answer = AcpAnswer(parameters, reply, self.model_name)
                yield answer
            if reply.done and not reply.cancelled:
                self._sessions[_key([*messages, answer.get()])] = session
                for old in list(self._sessions)[:-MOST_SESSIONS]:
                    await self._sessions.pop(old).close()
            else:
                await session.close()
        except AccordError as error:
            raise ModelAPIError(self.model_name, str(error)) from error


@dataclass
class AcpAnswer(StreamedResponse):
    """A turn of an ACP agent as the answer of a model: its text and its thoughts."""

    _reply: Reply
    _name: str
    _began: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def _get_event_iterator(self) -> AsyncIterator[of.ModelResponseStreamEvent]:
        parts = self._parts_manager
        async for update in self._reply:
            match update:
                case updates.AgentMessageChunk(content=updates.TextContent(text)):
                    for event in parts.handle_text_delta(vendor_part_id="text", content=text):
                        yield event
                case updates.AgentThoughtChunk(content=updates.TextContent(text)):
                    for event in parts.handle_thinking_delta(vendor_part_id="thought", content=text):
                        yield event
                case _:
                    pass
        outcome = await self._reply
        self.finish_reason = _FINISHES.get(outcome.stop_reason, "stop")
        if (used := outcome.usage) is not None:
            self._usage = RequestUsage(input_tokens=used.input_tokens, output_tokens=used.output_tokens)

    async def close_stream(self) -> None:
        """Cancel the turn."""
        self._reply.request_cancel()

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def provider_name(self) -> str:
        """The name in place of a provider."""
        return "acp"

    @property
    def provider_url(self) -> None:
        """An ACP agent has none."""

    @property
    def timestamp(self) -> datetime:
        """When the prompt was sent."""
        return self._began


_FINISHES: dict[str, of.FinishReason] = {
    "max_tokens": "length",
    "max_turn_requests": "length",
    "refusal": "content_filter",
    "cancelled": "error",
}


def _blocks(message: of.ModelMessage, *, names_speaker: bool) -> list[str | v1.ContentBlock]:
    """Return a message as blocks of a prompt; a whole conversation in one prompt names the speakers."""
    if isinstance(message, of.ModelResponse):
        said = "".join(part.content for part in message.parts if isinstance(part, of.TextPart))
        return [f"\nYou have answered:\n{said}\n"] if names_speaker else [said]
    return [block for part in message.parts for block in _part_blocks(part)]


def _part_blocks(part: of.ModelRequestPart) -> list[str | v1.ContentBlock]:
    if isinstance(part, of.UserPromptPart):
        return [part.content] if isinstance(part.content, str) else [_block(it) for it in part.content]
    respond: Any = getattr(part, "model_response", None)  # the problem of the previous answer
    if respond is not None:
        return [str(respond())]
    content: Any = getattr(part, "content", "")
    return [content if isinstance(content, str) else json.dumps(plain(content), ensure_ascii=False)]


def _block(content: Any) -> str | v1.ContentBlock:
    """Return the user's content as a block of a prompt."""
    if isinstance(content, str):
        return content
    if isinstance(content, of.BinaryContent):
        kind, data = content.media_type, base64.b64encode(content.data).decode()
        if kind.startswith("image/"):
            return v1.ImageContent(data, kind)
        if kind.startswith("audio/"):
            return v1.AudioContent(data, kind)
        return v1.EmbeddedResource(v1.BlobResourceContents(data, f"file:///{content.identifier}", mime_type=kind))
    url: str | None = getattr(content, "url", None)
    if url is not None:
        return v1.ResourceLink(url.rpartition("/")[2] or url, url)
    return str(getattr(content, "content", ""))


def _key(messages: Sequence[of.ModelMessage]) -> str:
    """Return the key of a conversation: all of its text."""
    said = [[repr(block) for block in _blocks(message, names_speaker=True)] for message in messages]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


@dataclass
class _PydanticRun:
    """One run of the agent: the work on one prompt."""

    agent: AbstractAgent[Any, Any]
    turn: Turn[PydanticMessages]
    narration: Narration
    counted: int = 0
    """How many answers were reported with their usage."""

    async def answer(self, deps: Any) -> None:
        # A turn that was cancelled, or ended by a crash, may have left calls without results.
        history = of.repair_messages(of.ModelMessagesTypeAdapter.validate_json(self.turn.session.state.messages))
        started = False
        async with self.agent.run_stream_events(
            _user_content(self.turn.prompt),
            message_history=history,
            deps=deps,
            capabilities=[HandleDeferredToolCalls(handler=self._approve)],
        ) as events:
            try:
                async for event in events:
                    started = True
                    if isinstance(event, of.FunctionToolCallEvent | of.FunctionToolResultEvent):
                        self._keep(events.all_messages())
                        await self.narration.keep()
                    await self._tell(event)
                    if isinstance(event, of.PartEndEvent | of.ToolResultEvent):
                        await self._count(events.all_messages(), len(history))
            finally:
                if started:
                    messages = events.all_messages()
                    self._keep(messages)
                    await self._count(messages, len(history))

    def _keep(self, messages: list[of.ModelMessage]) -> None:
        self.turn.session.state.messages = of.ModelMessagesTypeAdapter.dump_json(messages).decode()

    async def _tell(self, event: of.AgentStreamEvent | AgentRunResultEvent[Any]) -> None:
        tell = self.narration
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
            call.tool_call_id: await self.narration.ask(call.tool_call_id, call.tool_name, call.args)
            for call in requests.approvals
        }
        return requests.build_results(approvals=answers)

    async def _count(self, messages: Sequence[of.ModelMessage], before: int) -> None:
        """Report the usage of each answer of the model once it is complete."""
        answers = [it for it in messages[before:] if isinstance(it, of.ModelResponse)]
        for answer in answers[self.counted :]:
            usage = answer.usage
            await self.narration.used(usage.input_tokens, usage.output_tokens)
        self.counted = len(answers)


def _user_content(prompt: Sequence[v1.ContentBlock]) -> list[of.UserContent]:
    return [
        part if isinstance(part, str) else of.BinaryContent(part.content, media_type=part.mime_type)
        for part in parts_of(prompt)
    ]


def _shown(output: object) -> str:
    """A result that is not text, as a code block of JSON."""
    return fenced(json.dumps(plain(output), indent=2, ensure_ascii=False))
