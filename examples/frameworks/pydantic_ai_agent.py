"""A pydantic-ai agent as an agent for every ACP client: text, thoughts, tools that ask, usage, cancel, resume.

pip install accord-adapters pydantic-ai-slim[anthropic]
(from the source: pip install ./accord/packages/*, and the others by name)
MODEL=anthropic:claude-sonnet-4-5 python pydantic_ai_agent.py        (MODEL=test needs no key)
"""

import os

import pydantic_ai
from msgspec import Struct
from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.run import AgentRunResultEvent

import accord

CONTEXT = 200_000

thinker = pydantic_ai.Agent(
    os.environ.get("MODEL", "test"),
    deps_type=accord.Turn,
    instructions="You are a coding agent. Use your tools, and be brief.",
)


@thinker.tool
async def read_file(run: RunContext[accord.Turn], path: str) -> str:
    """Read a text file of the project."""
    async with run.deps.tool(f"Read {path}", kind="read", locations=[path]) as tool:
        try:
            return await run.deps.client.read_text_file(path)
        except accord.AccordError as error:
            await tool.fail(str(error))
            return f"Error: {error}"


@thinker.tool
async def write_file(run: RunContext[accord.Turn], path: str, text: str) -> str:
    """Write a text file of the project, as a whole."""
    async with run.deps.tool(f"Write {path}", kind="edit", locations=[path]) as tool:
        await tool.diff(path, None, text)
        if not await tool.ask():
            return "The user does not allow this."
        await run.deps.client.write_text_file(path, text)
        return "Written."


class Memory(Struct):
    """The conversation with the model; stored with the session, so that it can be resumed."""

    messages: bytes = b"[]"


agent = accord.Agent("pydantic-ai", state=Memory, store=os.environ.get("STORE"))


@agent.on_prompt
async def reply(turn: accord.Turn) -> None:
    memory: Memory = turn.session.state
    history = ModelMessagesTypeAdapter.validate_json(memory.messages)
    async with thinker.run_stream_events(turn.text, message_history=history, deps=turn) as events:
        async for event in events:
            match event:
                case (
                    PartStartEvent(part=TextPart(content=text))
                    | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
                ) if text:
                    await turn.say(text)
                case (
                    PartStartEvent(part=ThinkingPart(content=thought))
                    | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thought))
                ) if thought:
                    await turn.think(thought)
                case AgentRunResultEvent(result=result):
                    memory.messages = result.all_messages_json()
                    await turn.usage(result.usage.input_tokens + result.usage.output_tokens, CONTEXT)
                case _:
                    pass


if __name__ == "__main__":
    agent.run()
