"""`ChatShell`: the agents and conversations of the chat, and how its keys and commands are run.

keys.KEYS ──▶ bindings ──▶ actions (`*_actions`) ──▶ Conversation ──▶ RemoteSession
Conversation.on_change ──▶ Transcript.mark (what is said)  and  ChatScreen.mark (the lines around it)
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from pathlib import Path
from typing import Any

from accord import AccordError, updates
from accord.printable import label
from accord.project.git import FolderNotTrusted
from accord_tools.configuration import last_sessions
from accord_tools.configuration.last_sessions import LastSession
from accord_tools.configuration.trust import is_folder_trusted, trust_folder
from accord_tools.tui import chat_storage
from accord_tools.tui.attachments import files_of
from accord_tools.tui.chat_conversation import Conversation
from accord_tools.tui.chat_storage import program_of, session_entries, words_of
from accord_tools.tui.connection import AgentChoice, AgentConnection, explained
from accord_tools.tui.editor import FileList
from accord_tools.tui.pickers import Entry, Picker
from accord_tools.tui.questions import LoginAsked
from accord_tools.tui.screen import ChatScreen
from accord_tools.tui.transcript import Transcript

WORKTREE = "In a new git worktree"


class ChatShell(ChatScreen):
    """The terminal client without its actions."""

    def on_mount(self) -> None:
        if self.options.theme in self.available_themes:
            self.theme = self.options.theme or self.theme
        for action, key in self.options.keys.items():
            self.bind(key, f"do('{action}')")
        self.theme_changed_signal.subscribe(self, lambda _: self._take_theme())
        self.app_resume_signal.subscribe(self, self._draw_images_again)  # pyright: ignore[reportUnknownMemberType]
        self._take_theme()
        self.set_interval(1.0, self._look)
        self.editor.focus()
        if self._choice is None:
            self.run_command("agents")
        else:
            self.begin(self._choice, first=True)

    # Agents and conversations

    def begin(self, choice: AgentChoice, *, first: bool = False, session: LastSession | None = None) -> Conversation:
        """Start an agent, and a conversation with it: a new one, or an earlier session."""
        folder, its_id = (self.options.folder, None) if session is None else (Path(session.folder), session.id)
        return self.add(Conversation(self.started(choice), folder), opens=True, first=first, session_id=its_id)

    def started(self, choice: AgentChoice) -> AgentConnection:
        """Start an agent."""
        connection = AgentConnection(choice, self.options.connection)
        connection.on_news = self.mark
        self.connections.append(connection)
        connection.start()
        return connection

    def add(
        self, conversation: Conversation, *, opens: bool, first: bool = False, session_id: str | None = None
    ) -> Conversation:
        """Show a conversation; `opens` opens its session too."""
        self.conversations.append(conversation)
        conversation.on_change(self.mark)
        conversation.after_turn = lambda: self._keep_words(conversation)
        conversation.ask_trust = self.ask_trust
        transcript = Transcript(conversation, is_ascii=self.options.is_ascii, graphics=self.options.graphics)
        self.screen_stack[0].query_one("#conversations").mount(transcript)
        self.show(conversation)
        if self.options.keeps and not conversation.draft:
            self.set_draft(conversation, chat_storage.draft(self.place_of(conversation)))
        if first and self.options.typed:
            self.set_draft(conversation, f"{conversation.draft}{self.options.typed}")
        if opens:
            self.work_on(self._open(conversation, first=first, session_id=session_id))
        if conversation.folder not in self._paths:
            self._paths[conversation.folder] = FileList()
            self.work_on(self._index(conversation.folder))
        return conversation

    async def _open(self, conversation: Conversation, *, first: bool, session_id: str | None) -> None:
        options = self.options
        choice = conversation.connection.choice
        if first and options.worktrees:
            conversation.note(WORKTREE, options.worktrees[0].described(), "accent")
        if first and options.prompt:
            conversation.submit(options.prompt)
        given = session_id or (options.session_id if first else None)
        if given is None and first and options.continues:
            given = await self.latest_session(conversation)
        await conversation.open(given, **self.setup(conversation))
        if (session := conversation.session) is None:
            return
        self.opened(conversation)
        if mode := (options.mode if first else None) or choice.mode:
            await session.set_mode(mode)
        if first and options.model:
            await session.set_model(options.model)
        for key, value in {**choice.config, **(options.config if first else {})}.items():
            is_switch = isinstance(session.state.option(key), updates.SessionConfigBoolean)
            await session.set_config(key, value in (True, "true") if is_switch else value)

    async def _index(self, folder: Path) -> None:
        self._paths[folder] = FileList(await asyncio.to_thread(files_of, folder, is_folder_trusted))

    async def ask_trust(self, error: FolderNotTrusted) -> bool:
        """Ask whether git may run in a folder, and remember a yes."""
        repository = error.repository
        title = f"Git has to run here. Trust {label(str(repository.root), 60)}?"
        if not await self.confirmed(title, yes="remembered for this folder"):
            return False
        await asyncio.to_thread(trust_folder, repository)
        for folder in self._paths:
            self.work_on(self._index(folder))
        return True

    def show(self, conversation: Conversation) -> None:
        """Show this conversation; what stands in the editor stays with the one before."""
        if self.front is not None and self.front is not conversation:
            self.front.draft = self.editor.text
        self.front = conversation
        for transcript in self.screen_stack[0].query(Transcript):
            transcript.display = transcript.conversation is conversation
        self.editor.set_text(conversation.draft)
        self._show_bars()

    def set_draft(self, conversation: Conversation, text: str) -> None:
        """Set what stands in the editor for a conversation."""
        conversation.draft = text
        if conversation is self.front:
            self.editor.set_text(text)

    def place_of(self, conversation: Conversation) -> str:
        """What the drafts of a conversation are kept by."""
        return chat_storage.place_of(program_of(conversation), conversation.folder)

    def work_on(self, work: Any) -> None:
        """Run something beside the screen; an error of the agent is a note in the conversation."""

        async def guarded() -> None:
            conversation = self.front
            try:
                await work
            except (AccordError, ValueError, OSError) as error:
                self.complain(error, conversation)

        task = asyncio.create_task(guarded())
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    def run_command(self, action: str, argument: Any = "") -> None:
        """Run a command, with what the user wrote after its name; or what an answer needs, with its question."""
        method = getattr(self, f"action_{action}")
        takes = bool(inspect.signature(method).parameters)

        async def work() -> None:
            done = method(argument) if takes else method()
            if inspect.isawaitable(done):
                await done

        self.work_on(work())

    def action_do(self, name: str) -> None:
        """Run what a key stands for. What waits for the user runs in a task: keys must reach the screen meanwhile."""
        done = getattr(self, f"action_{name}")()
        if inspect.isawaitable(done):
            self.work_on(done)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keep the keys of the chat from acting while another screen is in front."""
        return not (action in ("do", "go_to") and len(self.screen_stack) > 1)

    async def ask_for(self, screen: Any) -> Any:
        """Show a screen, and wait for its result."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.push_screen(screen, lambda result: None if answer.done() else answer.set_result(result))
        return await answer

    def show_theme(self, name: str) -> None:
        """Show the colours of this theme."""
        self.theme = name

    async def confirmed(self, title: str, *, no: str = "", yes: str = "") -> bool:
        """Whether the user says yes; `no` and `yes` stand beside the answers."""
        return bool(await self.ask_for(Picker(title, [Entry("no", False, no), Entry("yes", True, yes)])))

    async def choose_from(self, title: str, entries: list[Entry], given: str) -> Any:
        """The value of the entry that the user named, or chooses from a list; None if they leave."""
        if not entries:
            raise ValueError(f"the agent offers no choice of a {title.lower()}")
        if not given:
            return await self.ask_for(Picker(title, entries))
        wanted = given.casefold()
        found = [it for it in entries if wanted in (str(it.value).casefold(), it.label.casefold())]
        found = found or [it for it in entries if wanted in f"{it.value} {it.label}".casefold()]
        if len(found) != 1:
            what = "none fits" if not found else f"{len(found)} fit"
            offered = ", ".join(it.label for it in entries)
            raise ValueError(f"{title.lower()} {given!r}: {what}; the agent offers {offered}")
        return found[0].value

    def complain(self, error: Exception, conversation: Conversation | None = None) -> None:
        """Show an error in a conversation."""
        conversation = conversation or self.front
        if conversation is None:
            self.notify(str(error), severity="error", markup=False)
        elif isinstance(error, AccordError):
            conversation.note(*explained(error, conversation.connection), "bad", "✗")
        else:
            conversation.note(str(error), "", "bad", "✗")

    def could_not_open(self, conversation: Conversation) -> None:
        """Say why a session could not be opened, or have the user log in."""
        if conversation.status == "login":
            self.work_on(self._offer_login(conversation))
        elif conversation.error is not None:
            self.complain(conversation.error, conversation)

    async def _offer_login(self, conversation: Conversation) -> None:
        if await conversation.ask(LoginAsked(conversation.connection.name)):
            self.run_command("login")

    # What sessions are opened with

    def setup(self, conversation: Conversation) -> dict[str, Any]:
        """What a session is opened with: the MCP servers that the agent supports."""
        remote, servers = conversation.connection.remote, self.options.servers
        usable = [it for it in servers if remote is None or remote.peer.capabilities.allow(it)]
        return {"mcp_servers": usable} if servers else {}

    def opened(self, conversation: Conversation) -> None:
        """Remember a session that was opened."""
        session = conversation.session
        if session is not None and self.options.keeps:
            self.work_on(asyncio.to_thread(last_sessions.remember, program_of(conversation), session.cwd, session.id))

    async def latest_session(self, conversation: Conversation) -> str | None:
        """The latest session of the folder; None if there is none."""
        entries = await session_entries(conversation, self.conversations, str(conversation.folder))
        return entries[0].value if entries else None

    def _keep_words(self, conversation: Conversation) -> None:
        """Keep the first and last words of a session for the list of sessions."""
        words = words_of(conversation)
        if words is not None and self.options.keeps:
            self.work_on(asyncio.to_thread(chat_storage.keep_words, words))

    # The end

    async def on_unmount(self) -> None:
        for task in list(self._works):
            task.cancel()
        if self.options.keeps:
            if self.front is not None:
                self.front.draft = self.editor.text if self.screen_stack else self.front.draft
            for conversation in self.conversations:
                chat_storage.keep_draft(self.place_of(conversation), conversation.draft)
        with suppress(Exception):
            await asyncio.gather(*(connection.close() for connection in self.connections))
