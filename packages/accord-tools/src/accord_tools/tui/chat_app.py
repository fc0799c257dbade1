"""`ChatApp`: the terminal client; and the actions for the screen: write, read, find, copy, review."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import tempfile
import webbrowser
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

from textual import events, on

from accord import TraceFile, v1
from accord.printable import label, printable
from accord.redaction import mask_urls
from accord_tools.presentation.session_words import usage_words
from accord_tools.tui import chat_storage, key_bindings, slash
from accord_tools.tui.attachments import clipboard_image, is_image
from accord_tools.tui.block import CommandBlock, ToolBlock
from accord_tools.tui.chat_settings import ChatOptions
from accord_tools.tui.chat_storage import export
from accord_tools.tui.connection import AgentChoice, AgentConnection
from accord_tools.tui.editor import Editor
from accord_tools.tui.pickers import Entry, FormScreen, Picker
from accord_tools.tui.question_bar import QuestionBar
from accord_tools.tui.questions import FormAsked, LinkAsked, Question
from accord_tools.tui.reader_screen import ReaderScreen, WireScreen
from accord_tools.tui.review import ReviewScreen
from accord_tools.tui.session_actions import SessionActions
from accord_tools.tui.settings_form import change_settings
from accord_tools.tui.transcript import FindBar, Transcript
from accord_tools.tui.widgets import Debounce

SAVE = 1.0
"""Seconds after an edit until drafts are stored on disk."""


class ChatApp(SessionActions):
    """The terminal client, with the actions that are not for sessions and agents."""

    def __init__(self, choice: AgentChoice | None, options: ChatOptions) -> None:
        super().__init__(choice, options)
        self._saving = Debounce(self, self._save_drafts)

    # Messages and files

    def action_export(self, file: str = "") -> None:
        """Write the conversation to a file."""
        conversation = self.in_front
        path = export(conversation, conversation.folder / (file or "conversation.md"))
        conversation.note(f"Written: {path}", style="good")

    def action_usage(self) -> None:
        """Show tokens and cost."""
        conversation = self.in_front
        last = None if conversation.last is None else conversation.last.usage
        lines = usage_words(last, conversation.state.usage)
        conversation.note("Usage", "\n".join(lines) or "the agent reports none", "accent")

    def action_about(self) -> None:
        """Show the agent's name and capabilities."""
        conversation = self.in_front
        remote, session = conversation.connection.remote, conversation.session
        lines = [f"command: {conversation.connection.choice.where}"] if conversation.connection.choice.where else []
        if remote is not None:
            info = remote.info
            lines.append(f"agent: {info.name} {info.version}" if info is not None else f"agent: {remote.name}")
            offers = remote.capabilities.sessions
            can = [name for name in ("load", "resume", "list", "fork", "close", "delete") if getattr(offers, name)]
            lines.append(f"protocol: version {remote.version};  sessions: {', '.join(can) or 'new ones only'}")
            takes = remote.capabilities.prompt
            kinds = [name for name in ("image", "audio", "embedded_context") if getattr(takes, name)]
            lines.append(f"takes: {', '.join(['text', 'links', *kinds]).replace('_', ' ')}")
        if session is not None:
            lines.append(f"session: {session.id} in {session.cwd}")
        conversation.note("About", printable("\n".join(lines)), "accent")

    async def action_set_theme(self, theme: str = "") -> None:
        """Choose the colours, for this chat; each is shown while it is marked."""
        before = self.theme
        entries = [Entry(name, name, "", name == before) for name in sorted(self.available_themes)]
        if theme:
            self.theme = await self.choose_from("Theme", entries, theme)
        else:
            chosen = await self.ask_for(Picker("Theme", entries, on_highlight=self.show_theme))
            self.theme = chosen or before

    async def action_settings(self) -> None:
        """Show all settings with their values and sources, and change them."""
        await change_settings(self)

    def action_wire(self) -> None:
        """Show the latest messages on the wire."""
        if self.front is not None:
            self.push_screen(WireScreen(self.front.connection))

    def action_trace(self, file: str = "") -> None:
        """Write the latest messages on the wire to a file."""
        conversation = self.in_front
        path = conversation.folder / (file or "wire.jsonl")
        trace = TraceFile(path, role="client")
        for event in list(conversation.connection.frames):
            trace(event)
        trace.close()
        conversation.note(f"Written: {path}", style="good")

    def action_help(self) -> None:
        """Show the keys and commands."""
        text = f"# Keys\n\n{key_bindings.table()}\n\n# Commands\n\n{slash.table()}\n"
        self.push_screen(ReaderScreen("Help", text))

    async def action_fill_in_form(self, question: FormAsked) -> None:
        """Fill in the form of a question."""
        answer = await self.ask_for(FormScreen(question.question))
        if answer is False:
            question.decline()
        elif answer is not None:
            question.answer(answer, "sent")

    async def action_open_link(self, question: LinkAsked) -> None:
        """Open the link that the user agreed to."""
        question.answer(True, "opened")
        await asyncio.to_thread(webbrowser.open, question.question.link.url)

    def action_show_question(self, question: Question) -> None:
        """Show the whole question."""
        self.push_screen(ReaderScreen.of_question(question, str(self.in_front.folder)))

    # Activity

    def action_mcp(self) -> None:
        """Show the MCP servers of the session, and whether the agent got them."""
        conversation = self.in_front
        remote = conversation.connection.remote
        lines: list[str] = []
        for server in self.options.servers:
            kind, where = _server(server)
            is_sent = remote is None or remote.peer.capabilities.allow(server)
            state = "given to the agent" if is_sent else f"not given: the agent does not support {kind}"
            name = label(str(getattr(server, "name", "")), 60)
            lines.append(f"{name}  {kind}  {label(where, 200)}\n  {state}")
        text = "\n".join(lines) or "none; start the chat with --mcp FILE to give the agent servers"
        conversation.note("MCP servers", printable(text), "accent")

    async def action_inspect(self) -> None:
        """Open the inspector on the messages between this agent and the chat."""
        conversation = self.in_front
        connection = conversation.connection
        url = self._inspected.get(connection)
        if url is None:
            ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self.work_on(self._inspect(connection, ready))
            url = self._inspected[connection] = await ready
        conversation.note("The inspector", f"{url}\nIt follows the session until the chat ends.", "accent")
        await asyncio.to_thread(webbrowser.open, url)

    async def _inspect(self, connection: AgentConnection, ready: asyncio.Future[str]) -> None:
        """Run the inspector until the chat ends, on a trace of this connection."""
        from accord_tools.inspector.inspector_app import inspecting
        from accord_tools.inspector.library import Library

        async with AsyncExitStack() as stack:
            try:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="accord-chat-")))
                path = folder / f"{Path(connection.choice.name).name or 'agent'}.jsonl"
                trace = TraceFile(path, role="client", peer=connection.name)
                stack.callback(trace.close)
                for event in list(connection.frames):
                    trace(event)
                connection.watchers.append(trace)
                stack.callback(connection.watchers.remove, trace)
                inspector = await stack.enter_async_context(inspecting(Library([path])))
            except BaseException as error:
                if not ready.done():
                    ready.set_exception(error)
                    return
                raise
            ready.set_result(inspector.url)
            await asyncio.Event().wait()

    # Reading

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
            transcript.toggle("tools_open")

    def action_thoughts(self) -> None:
        """Show or fold thoughts."""
        if (transcript := self.transcript) is not None:
            transcript.toggle("thoughts_open")

    def action_plan(self) -> None:
        """Show or fold the plan."""
        self.plan_open = not self.plan_open
        self.mark()

    def action_sidebar(self) -> None:
        """Show or hide the sidebar."""
        self.sidebar = not self.sidebar
        self.mark()

    def action_find(self) -> None:
        """Find in the conversation."""
        if self.transcript is not None:
            self.query_one(FindBar).open()

    @on(FindBar.Sought)
    def _on_sought(self, event: FindBar.Sought) -> None:
        transcript = self.transcript
        if transcript is None:
            return
        self.query_one(FindBar).count(*transcript.find(event.text, event.by))
        if not event.text and not self.query_one(FindBar).display:
            self.editor.focus()

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
        changes = conversation.changes()
        if not changes:
            raise ValueError("there is no change that can be undone: the agent has written no file through the chat")
        await conversation.connection.files.undo(changes[-1])
        conversation.note(f"Undone: {changes[-1].path}", style="good")

    # Writing

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
        """Copy the selection; else clear the editor; else quit the second time."""
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

    @on(Editor.Completing)
    def _on_completing(self) -> None:
        if self.screen_stack:
            self._show_list()

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
        elif self.front is not None:
            self._show_suggestions(self.front)

    def _save_drafts(self) -> None:
        """Store the drafts, so that they outlive a crash."""
        drafts = [(self.place_of(one), one.draft) for one in self.conversations]

        def save() -> None:
            for place, text in drafts:
                chat_storage.keep_draft(place, text)

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
            self.work_on(asyncio.to_thread(chat_storage.keep_prompt, text))
        found = slash.find(text, slash.typed(conversation.state))
        if found is not None:
            command, argument = found
            self.run_command(command.action, argument)
            return
        if text.startswith("!") and (line := text[1:].strip()):
            self.work_on(conversation.run_command(line))
            return
        if why := slash.mistyped(text, slash.typed(conversation.state)):
            self.editor.set_text(text)
            conversation.note(why, style="warning")
            return
        conversation.submit(text)
        transcript = self.transcript
        if transcript is not None:
            transcript.choose(None)
            transcript.go_to_end()

    def on_question_bar_wanted(self, event: QuestionBar.Wanted) -> None:
        """Run the action that an answer needs besides its key."""
        self.run_command(event.action, event.question)

    def action_say_instead(self) -> None:
        """Let the user write what the agent should do instead of the rejected action."""
        self.editor.placeholder = "What should the agent do instead?"

    def on_key(self, event: events.Key) -> None:
        """Handle keys of a chosen block, and between the editor and the question."""
        transcript = self.transcript
        if transcript is None or self.screen is not self.screen_stack[0]:
            return
        if event.key == "tab" and self.bar.take_tab(event):
            self.editor.focus()
            event.prevent_default()
        elif transcript.cursor is not None and self.focused is None:
            self._on_block_key(transcript, event)

    def _on_block_key(self, transcript: Transcript, event: events.Key) -> None:
        """Handle a key while a block is chosen; a text goes into the editor."""
        block = transcript.cursor
        assert block is not None
        if event.key in ("enter", "space"):
            transcript.toggle_block(block)
        elif event.key in ("up", "down"):
            transcript.move_cursor(-1 if event.key == "up" else 1)
        elif event.key == "k" and isinstance(block, ToolBlock | CommandBlock):
            self.work_on(self.in_front.kill_commands(block.terminal_ids))
        elif event.key == "y":
            self.copy_to_clipboard(block.copied())
            self.notify("Copied", timeout=2)
        elif event.is_printable and event.character:
            transcript.choose(None)
            self.editor.focus()
            self.editor.insert(event.character)


def _server(server: v1.McpServer) -> tuple[str, str]:
    """Describe how to reach a server."""
    if isinstance(server, v1.McpServerStdio):
        return "stdio", shlex.join([server.command, *server.args])
    kind = type(server).__name__.removeprefix("McpServer").lower()
    return kind, mask_urls(str(getattr(cast("Any", server), "url", "")))
