"""What the keys of the editor do: earlier prompts, the user's own editor, clearing, quitting."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from accord.printable import label
from accord.tui.pickers import Entry, Picker
from accord.tui.shell import ChatShell


class WritingActions(ChatShell):
    """The actions of the editor."""

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
        """Take the newest queued prompt back into the editor; without one, clear the line."""
        text = self.front.unqueue() if self.front is not None and self.front.queue else None
        if text is None:
            self.editor.action_delete_to_start_of_line()
        else:
            self.editor.set_text("\n".join(it for it in (text, self.editor.text) if it))

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
