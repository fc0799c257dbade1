"""Agents of LlamaIndex (extra `llama-index`): events as updates, requests for input as questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack, cast

from llama_index.core.agent.workflow import (
    AgentOutput,
    AgentStream,
    AgentWorkflow,
    BaseWorkflowAgent,
    ToolCall,
    ToolCallResult,
)
from llama_index.core.base.llms.types import AudioBlock, ChatMessage, DocumentBlock, ImageBlock, TextBlock
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemory
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import HumanResponseEvent, InputRequiredEvent
from msgspec import Struct, field

from accord import Agent, Turn
from accord.schema.base import Json
from accord.trace.meaning import body_of
from accord_adapters.adapted_agent import Attachment, ServeOptions, adapted_agent, check_served, parts_of
from accord_adapters.narration import Narration
from accord_adapters.remote_tool import Callee, RemoteTool, ToolOptions

AnyAgent: TypeAlias = BaseWorkflowAgent | AgentWorkflow

OnInput: TypeAlias = Callable[[Turn[Any], InputRequiredEvent], Awaitable[str]]
"""Answers a request for input: it takes the turn and the event, and returns the `response` of the answer."""


class ChatMessages(Struct):
    """The messages of the conversation with the model; stored with the session."""

    messages: list[Json] = field(default_factory=list[Json])


def serve(agent: AnyAgent, *, on_input: OnInput | None = None, **options: Unpack[ServeOptions]) -> Agent[ChatMessages]:
    """Serve an agent of LlamaIndex, or a workflow of several, as an `accord.Agent`.

    `on_input` answers each `InputRequiredEvent`; without it, the user is asked for permission, and the response is
    `yes` or `no`. The other options are those of `ServeOptions`.
    """
    classes = (BaseWorkflowAgent, AgentWorkflow)
    check_served("serve(agent)", "a FunctionAgent, a ReActAgent or an AgentWorkflow", agent, classes)

    async def work(turn: Turn[ChatMessages], narration: Narration) -> None:
        await _LlamaRun(agent, on_input, turn, narration).answer()

    name = getattr(agent, "name", None) or "llama-index"
    return adapted_agent(work, ChatMessages, name, ["image", "audio", "embedded"], options)


def tool(agent: Callee, **options: Unpack[ToolOptions]) -> FunctionTool:
    """An ACP agent as a tool for LlamaIndex: `FunctionAgent(tools=[tool(accord.connect("gemini"))], ...)`."""
    remote = RemoteTool(agent, **options)

    async def ask(task: str) -> str:
        return await remote(task)

    return FunctionTool.from_defaults(async_fn=ask, name=remote.name, description=remote.description)


class SessionMemory(BaseMemory):
    """The messages of a session, all of them; the memories of LlamaIndex count tokens, and drop the oldest."""

    kept: list[ChatMessage] = Field(default_factory=list[ChatMessage])

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> SessionMemory:
        """An empty memory."""
        return cls(**kwargs)

    def get(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002, ARG002
        """The messages that the model is to see."""
        return list(self.kept)

    def get_all(self) -> list[ChatMessage]:
        """All messages."""
        return list(self.kept)

    def put(self, message: ChatMessage) -> None:
        """Add a message."""
        self.kept.append(message)

    def set(self, messages: list[ChatMessage]) -> None:
        """Replace all messages by these."""
        self.kept = list(messages)

    def reset(self) -> None:
        """Forget all messages."""
        self.kept = []


@dataclass
class _LlamaRun:
    """The work on one prompt."""

    agent: AnyAgent
    on_input: OnInput | None
    turn: Turn[ChatMessages]
    narration: Narration

    async def answer(self) -> None:
        kept = self.turn.session.state
        memory = SessionMemory(kept=[ChatMessage.model_validate(it) for it in kept.messages])
        said = ChatMessage(role="user", blocks=[_block(part) for part in parts_of(self.turn.prompt)])
        kept.messages = [it.model_dump(mode="json") for it in [*memory.kept, said]]
        await self.narration.keep()
        handler = self.agent.run(user_msg=said, memory=memory)
        try:
            async for event in handler.stream_events():
                if isinstance(event, InputRequiredEvent):
                    handler.ctx.send_event(await self._answered(event))
                else:
                    await self._tell(event)
            await handler
        finally:
            if not handler.is_done():
                await handler.cancel_run()
            kept.messages = [it.model_dump(mode="json") for it in memory.kept]

    async def _tell(self, event: object) -> None:
        tell = self.narration
        match event:
            case AgentStream():
                await tell.think(event.thinking_delta or "")
                await tell.say(event.delta)
            case AgentOutput():
                await self._count(event.raw)
            case ToolCall():
                await tell.tool_begins(event.tool_id, event.tool_name, cast("Any", event).tool_kwargs)
            case ToolCallResult():
                await tell.tool_ends(event.tool_id, event.tool_output.content, failed=event.tool_output.is_error)
            case _:
                pass

    async def _count(self, raw: object) -> None:
        """Report the usage of an answer, which each provider names differently."""
        used = body_of(body_of(raw).get("usage"))
        read = used.get("input_tokens", used.get("prompt_tokens"))
        written = used.get("output_tokens", used.get("completion_tokens"))
        if isinstance(read, int) and isinstance(written, int):
            await self.narration.used(read, written)

    async def _answered(self, event: InputRequiredEvent) -> HumanResponseEvent:
        """Return the answer to a request for input: it has the members of the request, by which its tool finds it."""
        members = dict(event.items())
        if self.on_input is not None:
            response = await self.on_input(self.turn, event)
        else:
            response = "yes" if await self._is_allowed(str(members.get("prefix", "Go on?"))) else "no"
        return HumanResponseEvent(**{**members, "response": response})

    async def _is_allowed(self, question: str) -> bool:
        if (call_id := self.narration.only_open_call) is not None:
            return await self.narration.ask(call_id)
        return bool(await self.turn.ask(question))


def _block(part: str | Attachment) -> Any:
    if isinstance(part, str):
        return TextBlock(text=part)
    kind = part.mime_type.partition("/")[0]
    if kind == "image":
        return ImageBlock(image=part.content, image_mimetype=part.mime_type)
    if kind == "audio":
        return AudioBlock(audio=part.content, format=part.mime_type.partition("/")[2])
    title = (part.uri or "file").rpartition("/")[2]
    return DocumentBlock(data=part.content, document_mimetype=part.mime_type, title=title)
