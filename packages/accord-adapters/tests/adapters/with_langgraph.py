"""A graph of LangGraph with a model and tools, and a model that follows a script."""

import asyncio
import json

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, messages_to_dict
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool as as_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

from accord_adapters import langgraph as adapter
from tests.adapters.script import READ, WRITTEN, Call, Refuse, Say, Script, Think, Wait, openai_error


class ScriptedModel(BaseChatModel):
    """Streams what the script says."""

    script: Script

    model_config = {"arbitrary_types_allowed": True}

    @property
    def _llm_type(self):
        return "scripted"

    def _generate(self, *_, **__):
        raise NotImplementedError

    def bind_tools(self, tools, **_):
        return self

    async def _astream(self, messages, stop=None, run_manager=None, **_):
        for place, step in enumerate(self.script.answer(json.dumps(messages_to_dict(messages), ensure_ascii=False))):
            match step:
                case Think(text):
                    content = [{"type": "reasoning", "reasoning": text, "index": 0}]
                    yield chunk(content=content)
                case Say(text):
                    yield chunk(content=[{"type": "text", "text": text, "index": 1}])
                case Call(name, arguments):
                    called = {"name": name, "args": json.dumps(arguments), "id": f"call_{place}", "index": 2}
                    yield chunk(content="", tool_call_chunks=[called])
                case Refuse():
                    raise openai_error(step)
                case Wait():
                    await asyncio.Event().wait()
        used = {"input_tokens": READ, "output_tokens": WRITTEN, "total_tokens": READ + WRITTEN}
        yield chunk(content="", usage_metadata=used, chunk_position="last")


def chunk(**fields):
    return ChatGenerationChunk(message=AIMessageChunk(**fields))


class Models:
    """Graphs with a model and tools in turns."""

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
        return adapter.serve(graph_of(self._script, tools), **options)

    tool = staticmethod(adapter.tool)


def graph_of(script, more=(), checkpointer=None):
    tools = [add, fail, publish, wait, write_todos, *(it if hasattr(it, "ainvoke") else as_tool(it) for it in more)]
    model = ScriptedModel(script=script)

    async def think(state):
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode(tools, handle_tool_errors=True))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile(checkpointer=checkpointer)


@as_tool
async def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


@as_tool
async def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@as_tool
async def publish(text: str) -> str:
    """Publish a text."""
    if not interrupt({"question": "Publish?"}):
        raise ValueError("The user does not allow this.")
    return f"Published {text}"


@as_tool
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""


@as_tool
async def write_todos(todos: list[dict[str, str]]) -> str:
    """Write down the steps."""
    return json.dumps(len(todos))
