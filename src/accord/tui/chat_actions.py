"""What the other keys and commands do: export, usage, themes, the wire, help, and the answers to questions."""

from __future__ import annotations

import asyncio
import webbrowser

from accord.printable import printable
from accord.trace import TraceFile
from accord.tui import keys, slash
from accord.tui.export import export
from accord.tui.pickers import Entry, FormScreen
from accord.tui.questions import FormAsked, LinkAsked, Question
from accord.tui.reader import ReaderScreen
from accord.tui.shell import ChatShell
from accord.tui.wire import WireScreen


class ChatActions(ChatShell):
    """The other actions."""

    def action_export(self, file: str = "") -> None:
        """Write the conversation to a file."""
        conversation = self.in_front
        path = export(conversation, conversation.folder / (file or "conversation.md"))
        conversation.note(f"Written: {path}", "", "good", "✓")

    def action_usage(self) -> None:
        """Show tokens and cost."""
        conversation = self.in_front
        lines: list[str] = []
        usage = conversation.state.usage
        if usage is not None:
            lines.append(f"context: {usage.used:,} of {usage.size:,} tokens")
            if usage.cost is not None:
                lines.append(f"cost: {usage.cost.amount:.4f} {usage.cost.currency}")
        last = conversation.last.usage if conversation.last is not None else None
        if last is not None:
            lines.append(f"last turn: {last.input_tokens:,} tokens in, {last.output_tokens:,} out")
        conversation.note("Usage", "\n".join(lines) or "the agent reports none", "accent")

    def action_about(self) -> None:
        """Show what the agent is and offers."""
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
        """Choose the colours."""
        entries = [Entry(name, name, "", name == self.theme) for name in sorted(self.available_themes)]
        if (chosen := await self.choose_from("Theme", entries, theme)) is not None:
            self.theme = chosen

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
        conversation.note(f"Written: {path}", "", "good", "✓")

    def action_help(self) -> None:
        """Show the keys and commands."""
        text = f"# Keys\n\n{keys.table()}\n\n# Commands\n\n{slash.table()}\n"
        self.push_screen(ReaderScreen("Help", text))

    async def action_fill_in_form(self, question: FormAsked) -> None:
        """Fill in the form of a question."""
        answer = await self.ask_for(FormScreen(question.question))
        if answer is False:
            question.decline()
        elif answer is not None:
            question.accept(answer)

    async def action_open_link(self, question: LinkAsked) -> None:
        """Open the link that the user agreed to."""
        question.answer(True, "opened")
        await asyncio.to_thread(webbrowser.open, question.question.link.url)

    def action_show_question(self, question: Question) -> None:
        """Show all of what is asked."""
        self.push_screen(ReaderScreen.of_question(question, str(self.in_front.folder)))
