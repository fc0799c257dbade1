"""Which block shows which entry of a session's timeline."""

from __future__ import annotations

from accord.state import Entry, ToolCallState
from accord.tui.block import Block
from accord.tui.message_block import AgentBlock, PromptBlock, ThoughtBlock
from accord.tui.tool_block import ToolBlock

_SPEAKERS: dict[str, type[AgentBlock | PromptBlock | ThoughtBlock]] = {
    "user": PromptBlock,
    "agent": AgentBlock,
    "thought": ThoughtBlock,
}


def block_of(entry: Entry) -> Block:
    """A block for this entry."""
    return ToolBlock(entry) if isinstance(entry, ToolCallState) else _SPEAKERS[entry.speaker](entry)


def is_same_kind(block: Block, entry: Entry) -> bool:
    """Whether a block can show this entry."""
    wanted = ToolBlock if isinstance(entry, ToolCallState) else _SPEAKERS[entry.speaker]
    return isinstance(block, wanted)
