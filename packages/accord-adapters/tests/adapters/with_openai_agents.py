"""An agent of the OpenAI Agents SDK, with a model that follows a script."""

import asyncio
import json

from agents.models.interface import Model
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningSummaryTextDeltaEvent,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

import agents
from accord_adapters import openai_agents as adapter
from tests.adapters.script import READ, WRITTEN, Call, Refuse, Say, Think, Wait, openai_error

agents.set_tracing_disabled(True)


class ScriptedModel(Model):
    """Streams what the script says, in the events of the Responses API."""

    def __init__(self, script):
        self._script = script
        self._calls = 0

    async def get_response(self, *_, **__):
        raise NotImplementedError

    async def stream_response(self, system_instructions, input, *_, **__):  # noqa: A002
        output = []
        text = ""
        for step in self._script.answer(json.dumps(input, ensure_ascii=False)):
            match step:
                case Think(words):
                    yield ResponseReasoningSummaryTextDeltaEvent(
                        type="response.reasoning_summary_text.delta", delta=words, **PLACE, summary_index=0
                    )
                case Say(words):
                    text += words
                    yield ResponseTextDeltaEvent(
                        type="response.output_text.delta", delta=words, **PLACE, content_index=0, logprobs=[]
                    )
                case Call(name, arguments):
                    self._calls += 1
                    call = ResponseFunctionToolCall(
                        type="function_call", call_id=f"c{self._calls}", name=name, arguments=json.dumps(arguments)
                    )
                    output.append(call)
                case Refuse():
                    raise openai_error(step)
                case Wait():
                    await asyncio.Event().wait()
        if text:
            said = ResponseOutputText(type="output_text", text=text, annotations=[])
            message = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[said]
            )
            output.insert(0, message)
        yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=response_of(output))


PLACE = {"item_id": "i", "output_index": 0, "sequence_number": 0}


def response_of(output):
    return Response(
        id="r",
        created_at=0,
        model="fake",
        object="response",
        output=output,
        parallel_tool_calls=False,
        tool_choice="auto",
        tools=[],
        usage=ResponseUsage(
            input_tokens=READ,
            output_tokens=WRITTEN,
            total_tokens=READ + WRITTEN,
            input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
            output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        ),
    )


class Models:
    """Agents with a model that follows a script."""

    counts_tokens = True
    kept_in_a_turn = ("I wait. ", "wait")
    keeps_the_conversation = True

    def __init__(self, script):
        self._script = script

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def served(self, tools=(), **options):
        more = [it if isinstance(it, agents.FunctionTool) else agents.function_tool(it) for it in tools]
        own = [add, fail, publish, wait, write_todos]
        agent = agents.Agent("scripted", model=ScriptedModel(self._script), tools=[*own, *more])
        return adapter.serve(agent, **options)

    tool = staticmethod(adapter.tool)


@agents.function_tool
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


@agents.function_tool(failure_error_function=adapter.tool_error)
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@agents.function_tool(needs_approval=True)
def publish(text: str) -> str:
    """Publish a text."""
    return f"Published {text}"


@agents.function_tool
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""


@agents.function_tool(strict_mode=False)
def write_todos(todos: list[dict[str, str]]) -> str:
    """Write down the steps."""
    return json.dumps(len(todos))
