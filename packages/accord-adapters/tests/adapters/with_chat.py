"""The plain loop of chat completions, with a model behind HTTP."""

import asyncio
import json

from interop.model.replies import Thinking, ToolCall, Words
from interop.model.server import ModelServer, Refused

from accord_adapters import chat
from tests.adapters.script import Call, Refuse, Say, Think, Wait


class Models:
    """A server for each test."""

    counts_tokens = True
    kept_in_a_turn = ("I wait. ", "wait")
    keeps_the_conversation = True

    def __init__(self, script):
        self._script = script
        self._server = ModelServer(reply=self._reply)

    def _reply(self, _):
        steps = self._script.answer(self._server.bodies[-1])
        if isinstance(steps[0], Refuse):
            return Refused(steps[0].status, steps[0].body)
        return self._said(steps)

    def _said(self, steps):
        for step in steps:
            match step:
                case Think(text):
                    yield Thinking(text)
                case Say(text):
                    yield Words(text)
                case Call(name, arguments):
                    yield ToolCall(name, arguments)
                case Wait():
                    self._script.over.wait()

    def __enter__(self):
        self._server.__enter__()
        return self

    def __exit__(self, *_):
        self._server.__exit__()

    def served(self, tools=(), **options):
        return chat.serve(
            "fake",
            tools=[add, fail, publish, wait, write_todos, *tools],
            ask_before=["publish"],
            base_url=f"{self._server.url}/v1",
            api_key="none",
            **options,
        )

    tool = staticmethod(chat.tool)


def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


async def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


async def publish(text: str) -> str:
    """Publish a text."""
    return f"Published {text}"


async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""


async def write_todos(todos: list[dict[str, str]]) -> str:
    """Write down the steps."""
    return json.dumps(len(todos))
