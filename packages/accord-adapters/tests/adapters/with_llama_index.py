"""An agent of LlamaIndex, with a model that follows a script."""

import asyncio
import json

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import FunctionTool, ToolSelection
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent

from accord_adapters import llama_index as adapter
from tests.adapters.script import READ, WRITTEN, Call, Refuse, Say, Script, Think, Wait, openai_error


class ScriptedModel(FunctionCallingLLM):
    """Streams what the script says."""

    script: Script

    model_config = {"arbitrary_types_allowed": True}

    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True)

    def _prepare_chat_with_tools(self, *_, **__):
        raise NotImplementedError

    def chat(self, *_, **__):
        raise NotImplementedError

    achat = complete = acomplete = stream_chat = astream_chat = stream_complete = astream_complete = chat

    def get_tool_calls_from_response(self, response, **_):
        return [
            ToolSelection(tool_id=it["id"], tool_name=it["name"], tool_kwargs=it["arguments"])
            for it in response.message.additional_kwargs.get("tool_calls", [])
        ]

    async def astream_chat_with_tools(self, tools, chat_history=None, **_):
        asked = json.dumps([it.model_dump(mode="json") for it in chat_history], ensure_ascii=False)
        return self._stream(self.script.answer(asked))

    async def _stream(self, steps):
        text, calls = "", []
        for place, step in enumerate(steps):
            delta, more = "", {}
            match step:
                case Think(words):
                    more = {"thinking_delta": words}
                case Say(words):
                    text, delta = text + words, words
                case Call(name, arguments):
                    calls.append({"id": f"call_{place}", "name": name, "arguments": arguments})
                case Refuse():
                    raise openai_error(step)
                case Wait():
                    await asyncio.Event().wait()
            said = ChatMessage(role="assistant", content=text, additional_kwargs={"tool_calls": list(calls)})
            usage = {"usage": {"prompt_tokens": READ, "completion_tokens": WRITTEN}}
            yield ChatResponse(message=said, delta=delta, raw=usage, additional_kwargs=more)


class Models:
    """Agents with a model that follows a script."""

    counts_tokens = True
    kept_in_a_turn = ("Wait for me",)
    keeps_the_conversation = True

    def __init__(self, script):
        self._script = script

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def served(self, tools=(), **options):
        agent = FunctionAgent(
            tools=[add, fail, publish, wait, write_todos, *tools], llm=ScriptedModel(script=self._script)
        )
        return adapter.serve(agent, **options)

    tool = staticmethod(adapter.tool)


async def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


async def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


async def publish_it(ctx: Context, text: str) -> str:
    """Publish a text."""
    question = InputRequiredEvent(prefix=f"Publish {text}?", user_name="me")
    answer = await ctx.wait_for_event(
        HumanResponseEvent, waiter_event=question, waiter_id=text, requirements={"user_name": "me"}
    )
    if answer.response != "yes":
        raise ValueError("The user does not allow this.")
    return f"Published {text}"


publish = FunctionTool.from_defaults(async_fn=publish_it, name="publish")


async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""


async def write_todos(todos: list[dict[str, str]]) -> str:
    """Write down the steps."""
    return json.dumps(len(todos))
