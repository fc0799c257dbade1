"""Values of version 1 in version 2, and back, as far as the proposals say how.

    to_v2(value)                  to_v1(value)                  all_to_v1(value)
      a value of version 1          a value of version 2          the same, as a list: a whole message is a chunk for
      in version 2                  in version 1                  each block, a diff of two files is two diffs

Pure: each value is looked at by itself. What the other version cannot say is refused with a `ConversionError` that
names it; nothing is dropped in silence. A value that is not of a version (a string, a user's own message, an
`Unknown`) is the same in both, but an `Unknown` does not take on a meaning there.

**Promised.** `to_v1(to_v2(value)) == value`, wherever `to_v2` accepts the value, but for these:

| of version 1 | comes back as |
|---|---|
| `ToolCall` | `ToolCallProgress`: version 2 has one upsert for both |
| `LoadSessionResponse` | `ResumeSessionResponse`, which is the same on the wire |
| `PlanUpdate` of the plan `main` | `Plan` |
| `modes` and `models` of a session | gone where there were config options, which say the same; else an option |
| empty `config_options` of a session | None |
| `McpCapabilities.sse`, `nes`, `position_encoding`, `auth.logout` without methods | not offered |
| `ClientCapabilities` | without files and terminals; with what every client of version 2 shows |
| an unknown stop reason or word | refused |

**Needs context**, which a caller adds to the value first, or keeps:

| value | what it needs |
|---|---|
| message chunks without `message_id` | an id: version 2 names every message |
| `InitializeRequest` and its answer | `client_info`, `agent_info`; the version that is spoken there |
| `AgentCapabilities` of version 1 | load, list, resume and close; and `auth.logout`, if there are auth methods |
| `RequestPermissionRequest` | the title of its tool call, if it says none |
| `SetSessionModeRequest`, `CurrentModeUpdate` | which config option is the mode, and all options |
| `PromptResponse` | of version 1: it is an idle state update; of version 2: it is not said, the end of the turn is |
| state updates | the prompt: idle is its answer (or its error), the others are not said |
| whole messages | that no chunk of the message came before: version 1 cannot replace |
| `ToolCallContentChunk` | the content so far: version 1 replaces it |
| clearing a title, a name or raw values | a whole new tool call: version 1 has no null there |
"""

from __future__ import annotations

from typing import Any

from accord.schema.conversion import capabilities, sessions, tools, turns
from accord.schema.conversion.rows import DOWN, UP

TOPICS = (capabilities, sessions, tools, turns)
"""Each of these puts its steps beside the rows."""


def to_v2(value: Any) -> Any:
    """This value of version 1 in version 2.

    >>> from accord.schema import v1
    >>> to_v2(v1.Plan.of("Read", "Write")).plan.plan_id
    'main'
    """
    return UP.one(value)


def to_v1(value: Any) -> Any:
    """This value of version 2 in version 1, where it is one value.

    >>> from accord.schema import v2
    >>> to_v1(v2.AgentMessage.of(v2.MessageId("m"), "Hello"))
    AgentMessageChunk(content=TextContent(text='Hello'), message_id='m')
    """
    return DOWN.one(value)


def all_to_v1(value: Any) -> list[Any]:
    """Everything that this value of version 2 is in version 1, in order."""
    return DOWN.all(value)


__all__ = ["all_to_v1", "to_v1", "to_v2"]
