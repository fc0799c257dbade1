"""A proxy that keeps a diary of a session in Markdown: what the user asked, and what the agent answered and did.

accord conduct "python recorder.py diary.md" "gemini --acp"
"""

import sys
from pathlib import Path
from typing import Any

import accord
from accord import v1, v2

DIARY = Path(sys.argv[1] if len(sys.argv) > 1 else "diary.md")

proxy = accord.Proxy("recorder", version="1.0")


def note(text: str) -> None:
    with DIARY.open("a", encoding="utf-8") as diary:
        diary.write(text)


@proxy.prompts
def asked(prompt: list[Any], hop: accord.sync.Hop[Any]) -> None:
    text = "\n".join(block.text for block in prompt if isinstance(block, v1.TextContent | v2.TextContent))
    note(f"\n\n## {hop.session_id}\n\n> {text}\n\n")


@proxy.updates
def answered(update: Any) -> Any:
    if isinstance(update, v1.AgentMessageChunk | v2.AgentMessageChunk):
        note(getattr(update.content, "text", "(a block that is no text)"))
    elif isinstance(update, v1.ToolCall):
        note(f"\n\n- {update.title}\n\n")
    return update


if __name__ == "__main__":
    proxy.run()
