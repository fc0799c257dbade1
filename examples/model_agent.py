"""An agent with a model, and one tool that asks for permission.

accord chat -- python examples/model_agent.py

Without a key a fake model answers, offline. With OPENAI_API_KEY it is a model of OpenAI, by the package `openai`.
OPENAI_BASE_URL and OPENAI_MODEL name another place and another model.
"""

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import accord

SYSTEM = {"role": "system", "content": "You keep the user's notes in notes.txt, with write_notes. Be brief."}
PARAMETERS = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
WRITE = {"name": "write_notes", "description": "Replace the text of notes.txt.", "parameters": PARAMETERS}

agent = accord.Agent("note-keeper", version="0.1.0")


@agent.on_prompt
async def reply(turn: accord.Turn) -> str | None:
    while True:
        messages = [SYSTEM, *await turn.session.messages_for("openai")]
        answer = await turn.stream_answer(await ask_model(messages))
        if not answer.calls:
            return answer.stop_reason
        for call in answer.calls:
            async with turn.tool("Write notes.txt", name=call.name, raw_input=call.input, kind="edit") as tool:
                if await tool.ask():  # a refusal marks the tool call as failed, and the model reads that
                    await turn.files.write("notes.txt", call.input.get("text", ""))
                    await tool.text("Written.")


async def ask_model(messages: list[Any]) -> Any:
    """The events of the model's answer, as they come."""
    if "OPENAI_API_KEY" not in os.environ:
        return fake_model(messages)
    from openai import AsyncOpenAI  # reads OPENAI_API_KEY and OPENAI_BASE_URL

    tools: Any = [{"type": "function", "function": WRITE}]
    name = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
    return await AsyncOpenAI().chat.completions.create(model=name, messages=messages, tools=tools, stream=True)


async def fake_model(messages: list[Any]) -> AsyncIterator[dict[str, Any]]:
    """A model that writes down what the user says, in the form of OpenAI's events."""
    *_, latest = messages
    if latest["role"] == "tool":
        yield {"choices": [{"delta": {"content": f"The tool says: {latest['content']}"}, "finish_reason": "stop"}]}
        return
    arguments = json.dumps({"text": latest["content"][0]["text"] + "\n"})
    call = {"index": 0, "id": "call-1", "function": {"name": "write_notes", "arguments": arguments}}
    yield {"choices": [{"delta": {"content": "I write it down. "}}]}
    yield {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}


if __name__ == "__main__":
    agent.run()
