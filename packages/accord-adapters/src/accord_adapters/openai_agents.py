"""Agents of the OpenAI Agents SDK (extra `openai-agents`): its stream as updates, its interruptions as questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack, cast

from agents.items import RunItem, ToolApprovalItem, ToolCallItem, ToolCallOutputItem
from msgspec import Struct, field

import agents
from accord import Agent, Turn
from accord.schema.base import Json
from accord_adapters.adapted_agent import Attachment, ServeOptions, adapted_agent, check_served, parts_of
from accord_adapters.narration import NO_RESULT, REFUSED, Narration, plain
from accord_adapters.remote_tool import Callee, RemoteTool, ToolOptions

FAILED = "The tool failed: "

TEXT = ("response.output_text.delta", "response.refusal.delta")
THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


SHOWN_ERRORS = (
    agents.InputGuardrailTripwireTriggered,
    agents.ModelBehaviorError,
    agents.ModelRefusalError,
    agents.OutputGuardrailTripwireTriggered,
)
"""Errors about the model's or the user's input; the SDK's other errors may contain texts of tools."""


class InputItems(Struct):
    """The items of the conversation with the model; stored with the session."""

    items: list[Json] = field(default_factory=list[Json])


def serve(
    agent: agents.Agent[Any],
    *,
    deps: Callable[[Turn[Any]], Any] | None = None,
    run_config: agents.RunConfig | None = None,
    max_turns: int = 100,
    **options: Unpack[ServeOptions],
) -> Agent[InputItems]:
    """Serve an agent of the OpenAI Agents SDK as an `accord.Agent`.

    `deps` makes the context of a run from its turn; `deps=lambda turn: turn` gives the tools the turn itself.
    `run_config` is passed to each run. `max_turns` is how often the model is asked for one prompt. A tool whose
    `failure_error_function` is `tool_error` is shown as failed, with the error. The other options are those of
    `ServeOptions`.
    """
    check_served("serve(agent)", "an agents.Agent", agent, agents.Agent)

    async def work(turn: Turn[InputItems], narration: Narration) -> str | None:
        run = _OpenAiRun(agent, turn, narration, None if deps is None else deps(turn), run_config, max_turns)
        try:
            await run.answer()
        except agents.MaxTurnsExceeded:
            return "max_turn_requests"
        return None

    return adapted_agent(
        work, InputItems, agent.name or "openai-agents", ["image", "embedded"], options, shown_errors=SHOWN_ERRORS
    )


def tool(agent: Callee, **options: Unpack[ToolOptions]) -> agents.FunctionTool:
    """An ACP agent as a tool for the OpenAI Agents SDK: `Agent(..., tools=[tool(accord.connect("gemini"))])`."""
    remote = RemoteTool(agent, **options)

    async def ask(task: str) -> str:
        return await remote(task)

    return agents.function_tool(
        ask, name_override=remote.name, description_override=remote.description, failure_error_function=tool_error
    )


def tool_error(_: agents.RunContextWrapper[Any], error: Exception) -> str:
    """Return an error of a tool as text for the model; `function_tool(failure_error_function=tool_error)` uses it.

    The SDK does not report which results are errors: the client sees those of this function as failed.
    """
    return f"{FAILED}{error or type(error).__name__}"


class _OpenAiRun:
    """The work on one prompt: the agent runs, and runs on after each question to the user."""

    def __init__(
        self,
        agent: agents.Agent[Any],
        turn: Turn[InputItems],
        narration: Narration,
        deps: Any,
        run_config: agents.RunConfig | None,
        max_turns: int,
    ) -> None:
        self._agent = agent
        self._state = turn.session.state
        self._prompt = turn.prompt
        self._narration = narration
        self._options: dict[str, Any] = {"context": deps, "run_config": run_config, "max_turns": max_turns}

    async def answer(self) -> None:
        user = {"role": "user", "content": [_content(part) for part in parts_of(self._prompt)]}
        given: Any = [*_with_results(self._state.items), user]
        before = list(given)
        said: list[RunItem] = []
        while True:
            run = agents.Runner.run_streamed(self._agent, given, **self._options)
            try:
                async for event in run.stream_events():
                    if isinstance(event, agents.RunItemStreamEvent):
                        said.append(event.item)
                        await self._keep(before, said)
                    await self._tell(event)
            finally:
                if not run.is_complete:
                    run.cancel()
                self._state.items = cast("list[Json]", plain(run.to_input_list()))
            if not run.interruptions:
                return
            given = await self._decided(run)

    async def _keep(self, before: list[Json], said: Sequence[RunItem]) -> None:
        """Store the conversation so far; the run itself has it only at its end."""
        known: list[Json] = []
        for item in said:
            if not isinstance(item, ToolApprovalItem) and (plainly := plain(item.to_input_item())) not in known:
                known.append(plainly)  # a run that continues after a question repeats some items
        self._state.items = [*before, *known]
        await self._narration.keep()

    async def _decided(self, run: agents.RunResultStreaming) -> agents.RunState[Any]:
        """Return the run to continue with, after asking the user about each call that needs approval."""
        state = run.to_state()
        for item in run.interruptions:
            call = cast("dict[str, Any]", plain(item.raw_item))
            call_id = str(call.get("call_id") or call.get("id"))
            if await self._narration.ask(call_id, item.name or "tool", call.get("arguments")):
                state.approve(item)
            else:
                state.reject(item, rejection_message=REFUSED)
        return state

    async def _tell(self, event: agents.StreamEvent) -> None:
        match event:
            case agents.RawResponsesStreamEvent(data=data) if data.type in TEXT:
                await self._narration.say(cast("Any", data).delta)
            case agents.RawResponsesStreamEvent(data=data) if data.type in THOUGHT:
                await self._narration.think(cast("Any", data).delta)
            case agents.RawResponsesStreamEvent(data=data) if data.type == "response.completed":
                await self._count(cast("Any", data).response.usage)
            case agents.RunItemStreamEvent(item=ToolCallItem() as item):
                await self._tell_call(cast("dict[str, Any]", plain(item.raw_item)))
            case agents.RunItemStreamEvent(item=ToolCallOutputItem() as item):
                output = item.output
                failed = isinstance(output, str) and (output.startswith(FAILED) or output == _hidden_error())
                await self._narration.tool_ends(item.call_id or "", output, failed=failed)
            case _:
                pass

    async def _tell_call(self, call: dict[str, Any]) -> None:
        """Show a call of a function, or of a tool that the provider runs, which is over when it is reported."""
        call_id = str(call.get("call_id") or call.get("id"))
        if "arguments" in call:
            await self._narration.tool_begins(call_id, str(call.get("name")), call["arguments"])
            return
        name = str(call.get("type")).removesuffix("_call")
        await self._narration.tool_begins(call_id, name, call.get("action") or call.get("queries"))
        if call.get("status") == "completed" and "call_id" not in call:
            await self._narration.tool_ends(call_id, call.get("results") or "")

    async def _count(self, used: Any) -> None:
        if used is not None:
            details = getattr(used, "output_tokens_details", None)
            thought = getattr(details, "reasoning_tokens", None) or None
            await self._narration.used(used.input_tokens, used.output_tokens, thought=thought)


def _hidden_error() -> str:
    """Return the model's text for an error of a tool without its own function for that."""
    return agents.default_tool_error_function(agents.RunContextWrapper(None), Exception())


def _with_results(items: Sequence[Json]) -> list[Json]:
    """Return these items, with a result for each call that has none: no provider accepts a conversation with an open
    call.
    """
    known = [cast("dict[str, Any]", it) for it in items]
    answered = {it.get("call_id") for it in known if it.get("type") == "function_call_output"}
    missing: list[Json] = [
        {"type": "function_call_output", "call_id": it["call_id"], "output": NO_RESULT}
        for it in known
        if it.get("type") == "function_call" and it["call_id"] not in answered
    ]
    return [*items, *missing]


def _content(part: str | Attachment) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    if part.is_image:
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    return {"type": "input_file", "file_data": part.url, "filename": (part.uri or "file").rpartition("/")[2]}
