"""Upserts: updates that create what they name, or change the fields that they carry.

In a patch field, left out, `null` and a value are three things: as it was, cleared, replaced. A list is replaced whole,
and an empty one clears like `null`. `_meta` alone is patched key by key: a key that is left out stays, `null` removes
it.

| upsert | named by | patch fields |
|---|---|---|
| `UserMessage`, `AgentMessage`, `AgentThought` | `messageId` | `content`, `_meta` |
| `ToolCallUpdate` | `toolCallId` | `title`, `kind`, `status`, `content`, `locations`, `rawInput`, `rawOutput`, `name`, `capabilities`, `_meta` |
| `TerminalUpdate` | `terminalId` | `command`, `cwd`, `output`, `exitStatus`, `size`, `capabilities`, `_meta` |
| `CompactionUpdate` | `compactionId` | `summary`, `error`, `_meta` |
| `SubagentUpdate` | `sessionId` | `title`, `description`, `capabilities`, `state`, `cwd`, `additionalDirectories`, `_meta` |
| `SessionMessage` | `messageId` | `senderSessionId`, `recipientSessionId`, `senderMessageId`, `recipientMessageId`, `content`, `_meta` |
| `SessionInfoUpdate` | the session | `title`, `updatedAt`, `_meta` |
| `UsageUpdate` | the session | `cost` |
"""  # noqa: E501

from __future__ import annotations

from accord.schema.base import Upsert

__all__ = ["Upsert"]
