"""`accord.updates`: one set of classes for all events of a session, whichever version the agent speaks.

A client iterates over these:

    async for update in session.prompt("What is in here?"):
        match update:
            case updates.AgentMessageChunk(content=updates.TextContent(text)):
                print(text, end="")
            case updates.ToolCallUpdate(title=str(title)):
                print(f"[{title}]")

A `ToolCallUpdate` begins a tool call or changes it, and contains only the changes: an omitted field is `UNSET`, and
`session.state.tool_calls` has the whole. An agent that makes one by hand sends a `ToolCallProgress`. A plan without an
id, as in version 1, is the plan `main`.
"""

from accord.schema import content, shared_updates
from accord.schema.base import Unknown as Unknown, public_names
from accord.schema.content import *
from accord.schema.shared_updates import *

_NAMES = ["Unknown", *public_names({**vars(content), **vars(shared_updates)})]
__all__ = [name for name in _NAMES if name[0].isupper()]  # pyright: ignore[reportUnsupportedDunderAll]


def __dir__() -> list[str]:
    return __all__
