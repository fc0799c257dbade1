"""Graphs of LangGraph and agents of LangChain (extra `langgraph`): streams as updates, interrupts as questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias, Unpack, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt
from msgspec import Struct

from accord import AccordError, Agent, Turn, v1
from accord_adapters.adapted_agent import Attachment, ServeOptions, adapted_agent, check_served, parts_of
from accord_adapters.narration import NO_RESULT, REFUSED, Narration, json_of
from accord_adapters.remote_tool import Callee, RemoteTool, ToolOptions

Graph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]

OnInterrupt: TypeAlias = Callable[[Turn[Any], Any], Awaitable[Any]]
"""Answers an interrupt: it takes the turn and the value of the interrupt, and returns the value to resume the graph
with.
"""


SHOWN_ERRORS = (GraphRecursionError,)
"""Errors of the limits that the author has set."""


class GraphValues(Struct):
    """The values of the graph's state, as LangGraph writes them; stored with the session."""

    form: str = ""
    data: bytes = b""


def serve(
    graph: Graph,
    *,
    config: RunnableConfig | None = None,
    on_interrupt: OnInterrupt | None = None,
    **options: Unpack[ServeOptions],
) -> Agent[GraphValues]:
    """Serve a compiled graph with a state of messages as an `accord.Agent`.

    A graph without a checkpointer gets one for each turn, and the values of its state are stored with the session. A
    graph with a checkpointer stores its own state, under the session's id. `config` is passed to each run.
    `on_interrupt` answers interrupts; without it, requests of LangChain's `HumanInTheLoopMiddleware` become requests
    for permission, and so does any other value, whose answer is True or False. The other options are those of
    `ServeOptions`.
    """
    check_served("serve(graph)", "a compiled graph of langgraph", graph, CompiledStateGraph)

    async def work(turn: Turn[GraphValues], narration: Narration) -> None:
        await _GraphRun(graph, dict(config or {}), on_interrupt, turn, narration).answer()

    return adapted_agent(
        work, GraphValues, graph.name or "langgraph", ["image", "audio", "embedded"], options, shown_errors=SHOWN_ERRORS
    )


def tool(agent: Callee, **options: Unpack[ToolOptions]) -> BaseTool:
    """An ACP agent as a tool for LangChain: `ToolNode([tool(accord.connect("gemini"))])`."""
    remote = RemoteTool(agent, **options)

    async def ask(task: str) -> str:
        try:
            return await remote(task)
        except AccordError as error:
            raise ToolException(str(error)) from error

    return StructuredTool.from_function(
        coroutine=ask, name=remote.name, description=remote.description, handle_tool_error=True
    )


class _GraphRun:
    """The work on one prompt: the graph runs until it neither has a node to run nor an interrupt to answer."""

    def __init__(
        self,
        graph: Graph,
        config: dict[str, Any],
        on_interrupt: OnInterrupt | None,
        turn: Turn[GraphValues],
        narration: Narration,
    ) -> None:
        self._keeps_itself = bool(cast("Any", graph).checkpointer)
        self._graph: Graph = graph if self._keeps_itself else graph.copy(update={"checkpointer": InMemorySaver()})
        configurable = {"thread_id": turn.session.id, **config.get("configurable", {})}
        self._config = cast("RunnableConfig", {**config, "configurable": configurable})
        self._on_interrupt = on_interrupt
        self._turn = turn
        self._narration = narration
        self._seen: set[str] = set()
        """The ids of messages that need not be shown: of earlier turns, and those that an inner graph has shown
        already.
        """

    async def answer(self) -> None:
        given = await self._first_input()
        try:
            while given is not None:
                interrupts = await self._stream(given)
                given = Command(resume=await self._answers(interrupts)) if interrupts else None
        finally:
            if not self._keeps_itself:
                self._put((await self._graph.aget_state(self._config)).values)

    async def _first_input(self) -> Any:
        values = await self._values()
        before: list[BaseMessage] = values.get("messages", [])
        self._seen |= {it.id for it in before if it.id}
        said = [*_missing_results(before), HumanMessage(_content_of(self._turn.prompt))]
        # A checkpointer of the author has the messages of earlier turns already.
        return {"messages": said} if self._keeps_itself else {**values, "messages": [*before, *said]}

    async def _values(self) -> dict[str, Any]:
        if self._keeps_itself:
            return cast("dict[str, Any]", (await self._graph.aget_state(self._config)).values or {})
        kept = self._turn.session.state
        return InMemorySaver().serde.loads_typed((kept.form, kept.data)) if kept.form else {}

    def _put(self, values: Mapping[str, Any]) -> None:
        if values:
            kept = self._turn.session.state
            kept.form, kept.data = InMemorySaver().serde.dumps_typed(dict(values))

    async def _stream(self, given: Any) -> Sequence[Interrupt]:
        """Run the graph, and show its work; returns the interrupts that it waits for."""
        interrupts: dict[str, Interrupt] = {}
        modes = ["messages", "updates", "checkpoints"]
        stream = cast("Any", self._graph).astream(given, self._config, stream_mode=modes, subgraphs=True)
        async for inside, mode, value in stream:
            if mode == "messages":
                await self._tell_chunk(value[0])
                continue
            if mode == "checkpoints":
                if not inside and not self._keeps_itself:
                    self._put(value["values"])
                    await self._narration.keep()
                continue
            for node, update in cast("dict[str, Any]", value).items():
                if node == "__interrupt__":
                    interrupts |= {it.id: it for it in update}
                elif isinstance(update, Mapping):
                    await self._tell_messages(cast("Mapping[str, Any]", update).get("messages"))
        return list(interrupts.values())

    async def _tell_chunk(self, chunk: BaseMessage) -> None:
        if not isinstance(chunk, AIMessage):
            return
        for block in chunk.content_blocks:
            if block["type"] == "text":
                await self._narration.say(block["text"])
            elif block["type"] == "reasoning":
                await self._narration.think(block.get("reasoning", ""))

    async def _tell_messages(self, messages: object) -> None:
        """Show the calls, results and usage of messages that a node has added."""
        for message in cast("list[object]", messages if isinstance(messages, list) else [messages]):
            if not isinstance(message, BaseMessage) or message.id in self._seen:
                continue
            if message.id:
                self._seen.add(message.id)
            if isinstance(message, AIMessage):
                await self._tell_answer(message)
            elif isinstance(message, ToolMessage):
                text = message.text or message.content
                await self._narration.tool_ends(message.tool_call_id, text, failed=message.status == "error")

    async def _tell_answer(self, message: AIMessage) -> None:
        if used := message.usage_metadata:
            thought = used.get("output_token_details", {}).get("reasoning")
            await self._narration.used(used["input_tokens"], used["output_tokens"], thought=thought)
        for call in message.tool_calls:
            await self._narration.tool_begins(call["id"] or call["name"], call["name"], call["args"])

    async def _answers(self, interrupts: Sequence[Interrupt]) -> dict[str, Any]:
        """Return the value to resume the graph with, for each interrupt."""
        if self._on_interrupt is not None:
            return {it.id: await self._on_interrupt(self._turn, it.value) for it in interrupts}
        return {it.id: await answer_to(it.value, self._narration) for it in interrupts}


def _missing_results(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return results for the calls of the last answer that have none: no provider accepts a conversation with an open
    call.
    """
    calls: dict[str, None] = {}
    for message in messages:
        if isinstance(message, AIMessage):
            calls |= {call["id"]: None for call in message.tool_calls if call["id"]}
        elif isinstance(message, ToolMessage):
            calls.pop(message.tool_call_id, None)
    return [ToolMessage(NO_RESULT, tool_call_id=call_id, status="error") for call_id in calls]


def _content_of(prompt: Sequence[v1.ContentBlock]) -> Any:
    """A prompt as the content of a message."""
    parts = parts_of(prompt)
    if all(isinstance(part, str) for part in parts):
        return "".join(cast("list[str]", parts))
    return [{"type": "text", "text": part} if isinstance(part, str) else _block(part) for part in parts]


def _block(attachment: Attachment) -> dict[str, str]:
    kind = attachment.mime_type.partition("/")[0]
    return {
        "type": kind if kind in ("image", "audio") else "file",
        "base64": attachment.data,
        "mime_type": attachment.mime_type,
    }


# Interrupts of LangGraph as questions to the user, for the forms that its own middleware and examples use.


async def answer_to(value: Any, narration: Narration) -> Any:
    """Return the value to resume the graph with, after asking the user."""
    requests = cast("dict[str, Any]", value).get("action_requests") if isinstance(value, dict) else None
    if isinstance(requests, list):
        actions = cast("list[dict[str, Any]]", requests)
        decided = [await _decided(action, place, narration) for place, action in enumerate(actions)]
        return {"decisions": [{"type": "approve"} if it else {"type": "reject", "message": REFUSED} for it in decided]}
    if (call_id := narration.only_open_call) is not None:
        return await narration.ask(call_id)
    return bool(await narration.turn.ask(_title(cast("object", value))))


async def _decided(request: dict[str, Any], place: int, narration: Narration) -> bool:
    """Ask the user whether this action, which the client knows as a tool call, is allowed."""
    name = str(request.get("name", request.get("action", "tool")))
    arguments = json_of(request.get("args"))
    call_id = narration.open_call(name, arguments)
    return await narration.ask(call_id or f"{name} {place}", name, arguments)


def _title(value: object) -> str:
    """Return the question for the user: the text of the interrupt, or its question."""
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        value = given.get("question") or given.get("description") or given.get("message") or str(given)
    return str(value)
