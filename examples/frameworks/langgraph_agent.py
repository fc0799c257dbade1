"""A LangGraph graph as an agent for every ACP client: text, thoughts, tools that ask, usage, cancel, resume.

pip install accord-adapters langgraph langchain langchain-openai
(from the source: pip install ./accord/packages/*, and the others by name)
MODEL=openai:gpt-5-mini python langgraph_agent.py
"""

import os
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, messages_from_dict, messages_to_dict
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from msgspec import Struct, field

import accord

CONTEXT = 200_000


@tool
async def read_file(path: str, config: RunnableConfig) -> str:
    """Read a text file of the project."""
    turn: accord.Turn = config["configurable"]["turn"]
    async with turn.tool(f"Read {path}", kind="read", locations=[path]) as call:
        try:
            return await turn.files.read(path)
        except accord.AccordError as error:
            await call.fail(str(error))
            return f"Error: {error}"


@tool
async def write_file(path: str, text: str, config: RunnableConfig) -> str:
    """Write a text file of the project, as a whole."""
    turn: accord.Turn = config["configurable"]["turn"]
    async with turn.tool(f"Write {path}", kind="edit", locations=[path]) as call:
        await call.diff(path, None, text)
        if not await call.ask():
            return "The user does not allow this."
        await turn.files.write(path, text)
        return "Written."


def graph_of(model: BaseChatModel) -> Any:
    """Model and tools in turns, until the model asks for no more tools."""
    tools = [read_file, write_file]
    thinker = model.bind_tools(tools)

    async def think(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [await thinker.ainvoke(state["messages"], config)]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile()


class Memory(Struct):
    """The conversation with the model; stored with the session, so that it can be resumed."""

    messages: list[dict[str, Any]] = field(default_factory=list)


def agent_of(model: BaseChatModel) -> accord.Agent:
    graph = graph_of(model)
    agent = accord.Agent("langgraph", state=Memory, store=os.environ.get("STORE"))

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        memory: Memory = turn.session.state
        before = [*messages_from_dict(memory.messages), HumanMessage(turn.text)]
        config = {"configurable": {"turn": turn}}
        async for mode, value in graph.astream({"messages": before}, config, stream_mode=["messages", "values"]):
            if mode == "values":
                memory.messages = messages_to_dict(value["messages"])
            elif isinstance(value[0], AIMessage):
                await tell(turn, value[0])

    return agent


async def tell(turn: accord.Turn, chunk: AIMessage) -> None:
    """A piece of what the model says, as it streams."""
    for block in chunk.content_blocks:
        if block["type"] == "text" and block["text"]:
            await turn.say(block["text"])
        elif block["type"] == "reasoning" and block.get("reasoning"):
            await turn.think(block["reasoning"])
    if usage := chunk.usage_metadata:
        await turn.usage(usage["total_tokens"], CONTEXT)


if __name__ == "__main__":
    from langchain.chat_models import init_chat_model

    agent_of(init_chat_model(os.environ["MODEL"])).run()
