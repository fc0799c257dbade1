"""ACP agents as a model of LLM (https://llm.datasette.io): `llm -m acp -o agent gemini "What is in here?"`.

LLM finds its plug-ins by entry points of the group `llm`, so an adapter for it needs nothing but Accord's client. The
agent uses its own tools: it may read in the folder, and `-o allow edit` lets it change files there as well.
"""

# pyright: basic, reportMissingImports=false
# LLM is not installed where types are checked.

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import llm
import pydantic
from llm.parts import AttachmentPart, TextPart

import accord
from accord import v1


class AcpModel(llm.Model):
    """An agent as a model. Each prompt is a session of its own, which gets the whole conversation."""

    model_id = "acp"
    can_stream = True
    attachment_types = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})

    class Options(llm.Options):
        agent: str = pydantic.Field(default="gemini", description="The agent: its name, its command or its URL")
        folder: str = pydantic.Field(default=".", description="The folder that the agent works in")
        allow: Literal["none", "ask", "edit", "auto"] = pydantic.Field(
            default="ask", description="What the agent may do there; all else is refused"
        )

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:  # noqa: ARG002
        options = prompt.options
        client = accord.Client("llm-acp", permissions=accord.Permissions(level=options.allow))
        with accord.sync.connect(options.agent, client, unstable=True) as remote:
            reply = remote.new_session(Path(options.folder).resolve()).prompt(_blocks(prompt.messages))
            yield from reply.iter_text()
            if (used := reply.outcome().usage) is not None:
                response.set_usage(input=used.input_tokens, output=used.output_tokens)


def _blocks(messages: list[Any]) -> list[str | v1.ContentBlock]:
    """A conversation as one prompt, which names who has said what if there was more than the last message."""
    blocks: list[str | v1.ContentBlock] = []
    for message in messages:
        if len(messages) > 1:
            blocks.append(f"\n[{message.role}]\n")
        for part in message.parts:
            match part:
                case TextPart(text=text):
                    blocks.append(text)
                case AttachmentPart(attachment=llm.Attachment() as image):
                    blocks.append(v1.ImageContent(image.base64_content(), image.resolve_type()))
                case _:
                    pass
    return blocks


@llm.hookimpl
def register_models(register: Any) -> None:
    register(AcpModel())
