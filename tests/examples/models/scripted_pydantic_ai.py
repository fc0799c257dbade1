"""The pydantic-ai example with a model that says what the prompt tells it to."""

import asyncio
import sys

from pydantic_ai.messages import ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel

sys.path.insert(0, sys.argv[1])
from pydantic_ai_agent import agent, thinker


async def answer(messages, info):
    parts = [part for message in messages for part in message.parts]
    asked = [part.content for part in parts if isinstance(part, UserPromptPart)]
    if isinstance(parts[-1], ToolReturnPart):
        yield f"The tool said: {parts[-1].content}"
    elif asked[-1] == "write":
        yield {0: DeltaToolCall("write_file", '{"path": "a.txt", ', tool_call_id="call-1")}
        yield {0: DeltaToolCall(json_args='"text": "new"}')}
    elif asked[-1] == "wait":
        yield "Waiting"
        await asyncio.Event().wait()
    else:
        yield {0: DeltaThinkingPart(content="Hm.")}
        for word in ("You", " said ", "/".join(asked)):
            yield word


with thinker.override(model=FunctionModel(stream_function=answer)):
    agent.run()
