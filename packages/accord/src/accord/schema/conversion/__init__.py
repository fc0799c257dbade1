"""Converts values of version 1 to version 2, and back, as far as the proposals say how.

| function | converts |
|---|---|
| `to_v2(value)` | a value of version 1 to version 2 |
| `to_v1(value)` | a value of version 2 to version 1 |
| `all_to_v1(value)` | the same, to a list: a message becomes a chunk for each block, a diff of two files two diffs |

Pure: each value is converted by itself. A value that the other version cannot express is refused with a
`ConversionError` that names it; nothing is dropped silently. A value that belongs to no version (a string, a message of
the user's own, an `Unknown`) stays the same. An `Unknown` whose tag has a meaning in the other version is refused.

**The promise.** `to_v1(to_v2(value)) == value` wherever `to_v2` accepts the value, with these exceptions:

| of version 1 | comes back as |
|---|---|
| `ToolCall` | `ToolCallProgress`: version 2 has one upsert for both |
| `LoadSessionResponse` | `ResumeSessionResponse`, which is the same on the wire |
| `PlanUpdate` of the plan `main` | `Plan` |
| `modes` and `models` of a session | dropped if there are config options, which mean the same; else a config option |
| empty `config_options` of a session | None |
| `McpCapabilities.sse`, `nes`, `position_encoding`, `auth.logout` without methods | not offered |
| `ClientCapabilities` | without files and terminals; with all that every client of version 2 can display |
| an unknown stop reason or word | refused |

**Context.** Some values need facts that they do not hold. The caller adds them to the value, or keeps them:

| value | what it needs |
|---|---|
| message chunks without `message_id` | an id: in version 2 every message has one |
| `InitializeRequest` and its answer | `client_info`, `agent_info`, and the other version's number |
| `AgentCapabilities` of version 1 | load, list, resume and close; and `auth.logout` if there are auth methods |
| `RequestPermissionRequest` | the title of its tool call, if it has none |
| `SetSessionModeRequest`, `CurrentModeUpdate` | the config option that is the mode, and all options |
| `PromptResponse` | version 1: becomes an idle state update; version 2: has no counterpart, the end of the turn has |
| state updates | the prompt: an idle update becomes its answer or its error, the others have no counterpart |
| whole messages | no earlier chunk of the message: version 1 cannot replace content |
| `ToolCallContentChunk` | the content so far: version 1 replaces it |
| clearing a title, a name or raw values | a whole new tool call: version 1 has no null for them |
"""

from __future__ import annotations

from typing import Any

from accord.schema.conversion import capabilities, sessions, tools, turns
from accord.schema.conversion.rows import DOWN, UP

TOPICS = (capabilities, sessions, tools, turns)
"""The modules whose conversions are more than a row of the table."""


def to_v2(value: Any) -> Any:
    """Convert a value of version 1 to version 2.

    >>> from accord.schema import v1
    >>> to_v2(v1.Plan.of("Read", "Write")).plan.plan_id
    'main'
    """
    return UP.one(value)


def to_v1(value: Any) -> Any:
    """Convert a value of version 2 to one value of version 1.

    >>> from accord.schema import v2
    >>> to_v1(v2.AgentMessage.of(v2.MessageId("m"), "Hello"))
    AgentMessageChunk(content=TextContent(text='Hello'), message_id='m')
    """
    return DOWN.one(value)


def all_to_v1(value: Any) -> list[Any]:
    """Convert a value of version 2 to the values of version 1 that it takes, in order."""
    return DOWN.all(value)


__all__ = ["all_to_v1", "to_v1", "to_v2"]
