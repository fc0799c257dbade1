"""`BlockList`: the blocks of a conversation, brought up to date with its state.

An entry of the timeline is a new value exactly if it has changed, so comparing identities finds the blocks to draw
again. The chat's own notes stand between the entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.state import Entry, ToolCallState
from accord_tools.tui.block import Block
from accord_tools.tui.message_block import AgentBlock, MessageBlock, PromptBlock, ThoughtBlock
from accord_tools.tui.tool_block import ToolBlock

if TYPE_CHECKING:
    from accord_tools.tui.conversation import Conversation

_SPEAKERS: dict[str, type[MessageBlock]] = {
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


class BlockList:
    """The blocks of one conversation, in order."""

    def __init__(self, conversation: Conversation) -> None:
        self.blocks: list[Block] = []
        self._conversation = conversation
        self._entries: tuple[Entry, ...] = ()
        self._of_entries: list[Block] = []
        self._forgotten = 0
        self._notes = 0
        """How many notes of the conversation are shown."""

    def sync(self) -> None:
        """Bring the blocks up to date with the state."""
        state = self._conversation.state
        entries, forgotten = state.timeline, state.forgotten
        if len(entries) + forgotten < len(self._entries) + self._forgotten:
            self._clear()
        if (dropped := min(forgotten - self._forgotten, len(self._of_entries))) > 0:
            self._drop(dropped)
        self._forgotten = forgotten
        if entries is not self._entries:
            for place, (old, new) in enumerate(zip(self._entries, entries, strict=False)):
                if old is not new:
                    self._update(place, new)
            for place in range(len(self._entries), len(entries)):
                self._add_notes(forgotten + place)
                block = block_of(entries[place])
                self.blocks.append(block)
                self._of_entries.append(block)
            self._entries = entries
        self._add_notes(None)
        for terminal_id in self._conversation.take_changed_terminals():
            self._terminal_changed(terminal_id)

    def _update(self, place: int, entry: Entry) -> None:
        block = self._of_entries[place]
        if is_same_kind(block, entry):
            block.update(entry)
            return
        other = block_of(entry)
        self.blocks[self.blocks.index(block)] = self._of_entries[place] = other

    def _add_notes(self, before: int | None) -> None:
        """Add the notes that came before an entry, or all."""
        notes = self._conversation.notes
        while self._notes < len(notes) and (before is None or notes[self._notes].place <= before):
            self.blocks.append(notes[self._notes].block)
            self._notes += 1

    def _drop(self, count: int) -> None:
        gone = set(map(id, self._of_entries[:count]))
        self.blocks = [block for block in self.blocks if id(block) not in gone]
        del self._of_entries[:count]
        self._entries = self._entries[count:]

    def _clear(self) -> None:
        self.blocks, self._of_entries, self._entries, self._notes, self._forgotten = [], [], (), 0, 0

    def _terminal_changed(self, terminal_id: str) -> None:
        for block in reversed(self._of_entries):
            if isinstance(block, ToolBlock) and block.shows_terminal(terminal_id):
                block.changed()
                return
