"""An agent of Pydantic AI, with the framework's own model for tests."""

import asyncio
import json

import pydantic_ai
from pydantic_ai.exceptions import ModelHTTPError, ToolFailed
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.tools import Tool

from accord_adapters import pydantic_ai as adapter
from tests.adapters.script import Call, Refuse, Say, Think, Wait


class Models:
    """A model that follows a script."""

    counts_tokens = False  # it guesses them
    kept_in_a_turn = ("I wait. ", "wait")
    keeps_the_conversation = True

    def __init__(self, script):
        self._script = script

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    async def _stream(self, messages, _):
        for place, step in enumerate(self._script.answer(ModelMessagesTypeAdapter.dump_json(messages).decode())):
            match step:
                case Think(text):
                    yield {place: DeltaThinkingPart(content=text)}
                case Say(text):
                    yield text
                case Call(name, arguments):
                    yield {place: DeltaToolCall(name, json.dumps(arguments), tool_call_id=f"call_{place}")}
                case Refuse():
                    raise ModelHTTPError(step.status, "fake", step.body)
                case Wait():
                    await asyncio.Event().wait()

    def served(self, tools=(), **options):
        agent = pydantic_ai.Agent(
            FunctionModel(stream_function=self._stream),
            tools=[add, fail, Tool(publish, requires_approval=True), wait, write_todos, *tools],
        )
        return adapter.serve(agent, **options)

    tool = staticmethod(adapter.tool)


def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


def fail(why: str) -> str:
    """Fail."""
    raise ToolFailed(why)


def publish(text: str) -> str:
    """Publish a text."""
    return f"Published {text}"


async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""


def write_todos(todos: list[dict[str, str]]) -> str:
    """Write down the steps."""
    return json.dumps(len(todos))
