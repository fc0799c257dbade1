"""What the keys and commands for sessions do: list, open, fork, close, delete, and other agents."""

from __future__ import annotations

import asyncio
from pathlib import Path

from accord.configuration import last_sessions
from accord.configuration.trust import is_folder_trusted
from accord.printable import label
from accord.tui.connection import AgentChoice
from accord.tui.conversation import Conversation
from accord.tui.pickers import Entry, Picker
from accord.tui.registry_agents import RegistryChoice, install, registry_entries
from accord.tui.shell import WORKTREE, ChatShell
from accord.tui.worktrees import new_worktree


class SessionActions(ChatShell):
    """The actions for sessions."""

    async def action_sessions(self) -> None:
        """Choose a session of the agent, to open or to delete it."""
        conversation = self.in_front
        remote = await conversation.connection.ready()
        is_here = {one.session.id: one for one in self.conversations if one.session is not None}
        entries = [it._replace(is_current=it.value in is_here) for it in await self.listed(conversation)]
        entries = entries or [
            Entry(one.title, its_id, "open here", one is conversation) for its_id, one in is_here.items()
        ]
        can_delete = remote.capabilities.sessions.delete
        hint = "enter: open" + ("   delete: delete for good" if can_delete else "")
        answer = await self.ask_for(
            Picker("Sessions", entries, hint, keys=("delete",) if can_delete else ("ctrl+nothing",))
        )
        if answer is None:
            return
        key, session_id = answer
        if key == "delete":
            await self._delete(conversation, session_id)
        elif (open_one := is_here.get(session_id)) is not None:
            self.show(open_one)
        else:
            await self.action_resume(session_id)

    async def _delete(self, conversation: Conversation, session_id: str) -> None:
        sure = await self.ask_for(Picker("Delete this session for good?", [Entry("no", False), Entry("yes", True)]))
        if sure:
            remote = await conversation.connection.ready()
            await remote.delete(session_id)
            choice = conversation.connection.choice
            last_sessions.forget(choice.program or choice.name, session_id)
            self.notify("Deleted", timeout=2)
            for one in list(self.conversations):
                if one.session is not None and one.session.id == session_id:
                    await self._close(one)

    async def action_resume(self, session_id: str = "") -> None:
        """Open a session again, by its id or the start of it."""
        if not session_id:
            await self.action_sessions()
            return

        conversation = self.in_front
        known = [it for it in await self.listed(conversation) if str(it.value).startswith(session_id)]
        if len(known) > 1 and session_id not in [it.value for it in known]:
            raise ValueError(f"several sessions have an id that starts with {session_id!r}")
        chosen = session_id if not known or session_id in [it.value for it in known] else known[0].value
        folder = conversation.folder
        remote = await conversation.connection.ready()
        if remote.capabilities.sessions.list:
            async for info in remote.sessions():
                if info.session_id == chosen:
                    folder = Path(info.cwd)
                    break
        other = Conversation(conversation.connection, folder)
        self.add(other, opens=True, session_id=chosen)

    def action_new_session(self) -> None:
        """Begin a new session with this agent."""
        self.add(Conversation(self.in_front.connection, self.in_front.folder), opens=True)

    async def action_worktree(self, name: str = "") -> None:
        """Begin a new session with this agent in a new git worktree."""
        before = self.in_front
        made = await before.with_trust(lambda: new_worktree(before.folder, is_folder_trusted, name))
        self.options.worktrees.append(made)
        other = Conversation(before.connection, made.folder)
        self.add(other, opens=True)
        other.note(WORKTREE, made.described(), "accent")

    async def action_clear_session(self) -> None:
        """Begin a new session in the place of this one."""
        before = self.in_front
        self.action_new_session()
        await self._close(before)

    async def action_fork(self) -> None:
        """Copy this session."""
        conversation = self.in_front
        session = await self.session_in_front.fork()
        other = Conversation(conversation.connection, conversation.folder)
        self.add(other, opens=False)
        other.adopt(session)
        self.opened(other)
        if not len(other.state):  # most agents send no past of a copy
            other.note(
                f"A copy of {label(conversation.title, 60)}", "The agent knows all that was said there.", "accent"
            )

    async def action_close_session(self) -> None:
        """Close this session; without another one, leave the chat."""
        if len(self.conversations) <= 1:
            self.exit(0)
        else:
            await self._close(self.in_front)

    async def _close(self, conversation: Conversation) -> None:
        place = self.conversations.index(conversation)
        self.conversations.remove(conversation)
        transcript = self.transcript_of(conversation)
        if self.front is conversation and self.conversations:
            self.front = None
            self.show(self.conversations[max(0, place - 1)])
        await conversation.close()
        if transcript is not None:
            await transcript.remove()
        connection = conversation.connection
        if not connection.conversations:
            await connection.close()
            self.connections.remove(connection)

    async def action_delete_session(self) -> None:
        """Delete this session for good."""
        conversation = self.in_front
        if conversation.session is not None:
            await self._delete(conversation, conversation.session.id)

    async def action_set_title(self, title: str = "") -> None:
        """Set the title of this session."""
        if not title:
            raise ValueError("write the title after the command: /title TITLE")
        await self.session_in_front.set_title(title)
        self.mark()

    def action_next_session(self) -> None:
        """Show the next session."""
        self._step(1)

    def action_previous_session(self) -> None:
        """Show the session before."""
        self._step(-1)

    def _step(self, by: int) -> None:
        if self.front in self.conversations:
            place = self.conversations.index(self.front) + by
            self.show(self.conversations[place % len(self.conversations)])

    def action_go_to(self, number: int) -> None:
        """Show the session with this number."""
        if 0 < number <= len(self.conversations):
            self.show(self.conversations[number - 1])

    async def action_agents(self) -> None:
        """Start another agent."""
        choice = await self._chosen_agent("Start an agent")
        if choice is not None:
            self.begin(choice, first=not self.conversations)
        elif not self.conversations:
            self.exit(0)

    async def action_compare(self, text: str = "") -> None:
        """Send a prompt to this agent and to another one, each in a session of its own."""
        before = self.in_front
        prompts = [it.text for it in before.state.messages if it.speaker == "user"]
        if not text and not prompts:
            raise ValueError("write the prompt after the command: /compare TEXT")
        choice = await self._chosen_agent("Compare with")
        if choice is None:
            return
        if text:
            before.submit(text)
        self.begin(choice).submit(text or prompts[-1])

    async def _chosen_agent(self, title: str) -> AgentChoice | None:
        """The agent that the user chooses; one of the registry is installed first. None if they leave."""
        entries = [Entry(it.name, it, it.where) for it in self.options.agents]
        picker = Picker(title, entries, "accord agents add NAME -- COMMAND adds one")

        async def add_registry() -> None:
            found = await registry_entries(self.options.agents)
            if picker.is_attached:
                picker.set_entries([*entries, *found])

        if self.options.find_agent is not None:
            self.work_on(add_registry())
        chosen: AgentChoice | RegistryChoice | None = await self.ask_for(picker)
        if not isinstance(chosen, RegistryChoice):
            return chosen
        if not chosen.is_installed:
            with self.suspend():
                install(chosen.name)
        assert self.options.find_agent is not None
        return await asyncio.to_thread(self.options.find_agent, chosen.name)
