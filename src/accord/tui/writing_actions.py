"""What happens in the editor: completion, sending, drafts, earlier prompts, the user's own editor, quitting."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from textual import events, on

from accord.printable import label
from accord.tui import keeping, slash
from accord.tui.attachments import clipboard_image, is_image
from accord.tui.chat_options import ChatOptions
from accord.tui.completion import NOTHING, Completions, FileList, completions
from accord.tui.connection import AgentChoice
from accord.tui.editor import Editor
from accord.tui.line_widget import Lines
from accord.tui.pickers import Entry, Picker
from accord.tui.question_bar import QuestionBar
from accord.tui.shell import ChatShell
from accord.tui.soon import Soon
from accord.tui.tool_block import ToolBlock
from accord.tui.transcript import Transcript

SAVE = 1.0
"""Seconds after an edit until drafts are kept on disk."""


class WritingActions(ChatShell):
    """The actions of the editor."""

    def __init__(self, choice: AgentChoice | None, options: ChatOptions) -> None:
        super().__init__(choice, options)
        self._saving = Soon(self, self._save_drafts)

    def action_history(self) -> None:
        """Search in earlier prompts."""

        async def work() -> None:
            entries = [Entry(label(text, 200), text) for text in reversed(self.editor.prompts)]
            if (text := await self.ask_for(Picker("Earlier prompts", entries))) is not None:
                self.editor.set_text(text)

        self.work_on(work())

    def action_external_editor(self) -> None:
        """Write in the editor that the user has set."""
        command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        with tempfile.NamedTemporaryFile("w+", suffix=".md", delete=False, encoding="utf-8") as file:
            file.write(self.editor.text)
        path = Path(file.name)
        try:
            with self.suspend():
                subprocess.run([*command, str(path)], check=False)
            self.editor.set_text(path.read_text(encoding="utf-8").rstrip("\n"))
        except OSError as error:
            self.complain(error)
        finally:
            path.unlink(missing_ok=True)

    def action_unqueue(self) -> None:
        """Take the last attached file away, or the newest queued prompt back; without any, clear the line."""
        if self.front is not None and self.front.attached:
            self.front.attached.pop()
            self.mark()
            return
        text = self.front.unqueue() if self.front is not None and self.front.queue else None
        if text is None:
            self.editor.action_delete_to_start_of_line()
        else:
            self.editor.set_text("\n".join(it for it in (text, self.editor.text) if it))

    def action_image(self, file: str = "") -> None:
        """Attach a file to the next prompt; without a name, the image of the clipboard."""
        conversation = self.in_front
        path = (conversation.folder / Path(file.strip("'\"")).expanduser()) if file else clipboard_image()
        if not path.is_file():
            raise ValueError(f"there is no file {path}; write its path after the command: /image FILE")
        conversation.attach(path)

    def action_paste_image(self) -> None:
        """Attach the image of the clipboard to the next prompt."""
        self.run_command("image")

    @on(Editor.Dropped)
    def _on_dropped(self, event: Editor.Dropped) -> None:
        conversation = self.front
        if conversation is None:
            return
        if is_image(event.path):
            conversation.attach(event.path)
            return
        inside = event.path.is_relative_to(conversation.folder)
        name = str(event.path.relative_to(conversation.folder)) if inside else str(event.path)
        self.editor.insert((f'@"{name}" ' if " " in name else f"@{name} ") if inside else name)

    def action_clear_or_quit(self) -> None:
        """Copy what is selected; else clear the editor; else quit the second time."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        elif self.editor.text:
            self.editor.remember(self.editor.take())
            self.notify("Cleared; the up key brings it back", timeout=3)
        elif self.quit_asked:
            self.exit(0)
        else:
            self.quit_asked = True
            self.notify("Press ctrl+c again to quit", timeout=3)

    def action_leave(self) -> None:
        """Leave the chat."""
        self.exit(0)

    def complete(self, before: str) -> Completions:
        """What can be completed after this text."""
        conversation = self.front
        if conversation is None:
            return NOTHING
        commands = slash.offered_commands(conversation.state.commands)
        return completions(before, commands, self._paths.get(conversation.folder, FileList()))

    @on(Editor.Completing)
    def _on_completing(self) -> None:
        if not self.screen_stack:
            return
        self.screen_stack[0].query_one("#list", Lines).show(self._list())

    @on(Editor.Edited)
    def _on_edited(self) -> None:
        if not self.screen_stack:  # the chat is ending
            return
        self.quit_asked = False
        if self.front is not None:
            self.front.draft = self.editor.text
        if self.options.keeps:
            self._saving.ask(SAVE)
        if self.bar.question is not None:
            self.mark()

    def _save_drafts(self) -> None:
        """Keep what is written, so that it outlives a crash."""
        drafts = [(self.place_of(one), one.draft) for one in self.conversations]

        def save() -> None:
            for place, text in drafts:
                keeping.keep_draft(place, text)

        self.work_on(asyncio.to_thread(save))

    @on(Editor.Submitted)
    def _on_submitted(self, event: Editor.Submitted) -> None:
        self.send(event.text)

    def send(self, text: str) -> None:
        """Send a prompt, or run the command of ours that it calls."""
        conversation = self.front
        if conversation is None:
            return
        self.editor.remember(text)
        if self.options.keeps:
            self.work_on(asyncio.to_thread(keeping.keep_prompt, text))
        found = slash.find(text, conversation.state.commands)
        if found is not None:
            command, argument = found
            self.run_command(command.action, argument)
            return
        if why := slash.mistyped(text, conversation.state.commands):
            self.editor.set_text(text)
            conversation.note(why, "", "warning")
            return
        conversation.submit(text)
        transcript = self.transcript
        if transcript is not None:
            transcript.choose(None)
            transcript.go_to_end()

    def on_question_bar_wanted(self, event: QuestionBar.Wanted) -> None:
        """Do what an answer needs besides its key."""
        self.run_command(event.action, event.question)

    def action_say_instead(self) -> None:
        """Have the user say what the agent should do instead of what was rejected."""
        self.editor.placeholder = "What should the agent do instead?"

    def on_key(self, event: events.Key) -> None:
        """Keys of a chosen block, and between the editor and the question."""
        transcript = self.transcript
        if transcript is None or self.screen is not self.screen_stack[0]:
            return
        if event.key == "tab" and self.bar.take_tab(event):
            self.editor.focus()
            event.prevent_default()
        elif transcript.cursor is not None and self.focused is None:
            self._on_block_key(transcript, event)

    def _on_block_key(self, transcript: Transcript, event: events.Key) -> None:
        """A key while a block is chosen; a text goes into the editor."""
        block = transcript.cursor
        assert block is not None
        if event.key in ("enter", "space"):
            transcript.toggle_block(block)
        elif event.key in ("up", "down"):
            transcript.move_cursor(-1 if event.key == "up" else 1)
        elif event.key == "k" and isinstance(block, ToolBlock):
            self.work_on(self.in_front.kill_commands(block.terminal_ids))
        elif event.key == "y":
            self.copy_to_clipboard(block.copied())
            self.notify("Copied", timeout=2)
        elif event.is_printable and event.character:
            transcript.choose(None)
            self.editor.focus()
            self.editor.insert(event.character)
