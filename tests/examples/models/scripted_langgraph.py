"""The LangGraph example with a model that says what the prompt tells it to."""

# ruff: noqa: ARG002  the methods are as the framework calls them
import asyncio
import sys

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

sys.path.insert(0, sys.argv[1])
from langgraph_agent import agent_of


def chunk(content, **fields):
    return ChatGenerationChunk(message=AIMessageChunk(content=content, **fields))


class Scripted(BaseChatModel):
    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=AIMessage("never"))])

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        asked = [message.content for message in messages if isinstance(message, HumanMessage)]
        if isinstance(messages[-1], ToolMessage):
            yield chunk(f"The tool said: {messages[-1].content}")
        elif asked[-1] == "write":
            call = {"name": "write_file", "args": '{"path": "a.txt", "text": "new"}', "id": "call-1", "index": 0}
            yield chunk("", tool_call_chunks=[call])
        elif asked[-1] == "wait":
            yield chunk("Waiting")
            await asyncio.Event().wait()
        else:
            yield chunk([{"type": "reasoning", "reasoning": "Hm."}])
            for word in ("You", " said ", "/".join(asked)):
                yield chunk([{"type": "text", "text": word}])
            usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
            yield chunk("", usage_metadata=usage)


agent_of(Scripted()).run()
