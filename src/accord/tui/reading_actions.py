"""What the keys and commands for reading do: scroll, choose a block, fold, find, copy, review changes."""

from __future__ import annotations

from accord.tui.login import LineScreen
from accord.tui.review import ReviewScreen
from accord.tui.shell import ChatShell


class ReadingActions(ChatShell):
    """The actions of reading."""

    def action_end(self) -> None:
        """Go to the end of the conversation."""
        if (transcript := self.transcript) is not None:
            transcript.choose(None)
            transcript.go_to_end()

    def action_previous_block(self) -> None:
        """Choose the block above."""
        self._choose_block(-1)

    def action_next_block(self) -> None:
        """Choose the block below."""
        self._choose_block(1)

    def _choose_block(self, by: int) -> None:
        if (transcript := self.transcript) is not None:
            transcript.move_cursor(by)
            self.set_focus(None)

    def action_tools(self) -> None:
        """Show or fold the output of all tools."""
        if (transcript := self.transcript) is not None:
            transcript.toggle_tools()

    def action_thoughts(self) -> None:
        """Show or fold thoughts."""
        if (transcript := self.transcript) is not None:
            transcript.toggle_thoughts()

    def action_plan(self) -> None:
        """Show or fold the plan."""
        self.plan_open = not self.plan_open
        self.mark()

    async def action_find(self) -> None:
        """Find in the conversation."""
        transcript = self.transcript
        text = await self.ask_for(LineScreen("Find in the conversation"))
        if transcript is not None and text:
            found = transcript.find(text)
            self.notify(f"{found} found" if found else "Not found", timeout=2, markup=False)
            if found:
                self.set_focus(None)

    def action_copy_answer(self) -> None:
        """Copy the last answer."""
        answers = [it.text for it in self.in_front.state.messages if it.speaker == "agent"]
        if answers:
            self.copy_to_clipboard(answers[-1])
            self.notify("Copied the last answer", timeout=2)

    async def action_review(self) -> None:
        """Review all changes of files."""
        await self.ask_for(ReviewScreen(self.in_front))

    async def action_undo(self) -> None:
        """Undo the last change of a file."""
        conversation = self.in_front
        changes = [
            it
            for it in conversation.connection.files.changes
            if conversation.session is not None and it.session_id in ("", conversation.session.id)
        ]
        if not changes:
            raise ValueError("there is no change that can be undone: the agent has written no file through the chat")
        await conversation.connection.files.undo(changes[-1])
        conversation.note(f"Undone: {changes[-1].path}", "", "good", "✓")
