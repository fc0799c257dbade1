"""The actions of the keys and commands for sessions, their agents and their permissions."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Hashable, Sequence
from pathlib import Path

from accord import PermissionPolicy, Unknown, v1
from accord.extensions import Goals
from accord.printable import label
from accord.services import LEVELS, RememberedAnswer, covered
from accord_tools.configuration import last_sessions
from accord_tools.configuration.last_sessions import LastSession
from accord_tools.configuration.permission_rules import LEVEL_MEANS, DefaultLevel, answer_text, permission_rules
from accord_tools.configuration.trust import TrustedFile, TrustedFolder, distrust, is_folder_trusted
from accord_tools.presentation.quantities import ago, counted
from accord_tools.presentation.session_words import shortened_path
from accord_tools.tui.chat_conversation import Conversation
from accord_tools.tui.chat_storage import last_entries, new_worktree, session_entries
from accord_tools.tui.connection import AgentChoice, AgentConnection, RegistryChoice, install, registry_entries
from accord_tools.tui.pickers import Entry, Picker, VariablesScreen, mode_entries, model_entries, option_entries
from accord_tools.tui.questions import SCOPES, HeldAnswer, LoginAsked, PermissionAsked
from accord_tools.tui.rewind import RestoredFiles, RewindPoint, restore_files, rewind_points, rewound_session
from accord_tools.tui.shell import WORKTREE, ChatShell

FOLDER = 24
"""Letters of a folder that are shown."""


class SessionActions(ChatShell):
    """The actions for sessions and agents."""

    async def action_sessions(self) -> None:
        """Choose a session of the agent, to open or to delete it."""
        conversation = self.in_front
        remote = await conversation.connection.ready()
        is_here = {one.session.id: one for one in self.conversations if one.session is not None}
        entries = [
            it._replace(is_current=it.value in is_here)
            for it in await session_entries(conversation, self.conversations)
        ]
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
        if await self.confirmed("Delete this session for good?"):
            remote = await conversation.connection.ready()
            await remote.delete(session_id)
            choice = conversation.connection.choice
            last_sessions.forget(choice.program or choice.name, session_id)
            self.notify("Deleted", timeout=2)
            for one in list(self.conversations):
                if one.session is not None and one.session.id == session_id:
                    await self._close(one)

    async def action_resume(self, session_id: str = "") -> None:
        """Open a session again, by its id or the beginning of it."""
        if not session_id:
            await self.action_sessions()
            return

        conversation = self.in_front
        known = [
            it for it in await session_entries(conversation, self.conversations) if str(it.value).startswith(session_id)
        ]
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
        """Begin a new session, replacing this one."""
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
                f"A copy of {label(conversation.title, 60)}", "The agent knows the whole conversation.", "accent"
            )

    async def action_rewind(self) -> None:
        """Go back to before a message of the user, with or without the files."""
        before = self.in_front
        if self.session_in_front and before.is_busy:
            raise ValueError("the agent is working: stop it with esc, then go back")
        entries = [_rewind_entry(point, before) for point in rewind_points(before)]
        point: RewindPoint | None = await self.ask_for(Picker("Go back to before this message", entries))
        if point is None:
            return
        with_files: bool | None = False
        if point.files:
            names = _names(point.files, before)
            choices = [Entry("conversation only", False), Entry("conversation and files", True, names)]
            with_files = await self.ask_for(Picker("Go back with", choices))
        if with_files is None:
            return
        session = await rewound_session(before, point, self.setup(before))
        done = await self._restored(before, point) if with_files else None
        draft = "\n\n".join(it for it in (point.text, self.editor.text) if it)
        other = Conversation(before.connection, before.folder)
        self.add(other, opens=False)
        other.go_on_from(before, session, is_whole=point.cursor is None or bool(len(session.state)))
        self.opened(other)
        await self._close(before)
        self.set_draft(other, draft)
        other.note("Went back", _rewind_report(other, point, done), "good", "↶")

    async def _restored(self, conversation: Conversation, point: RewindPoint) -> RestoredFiles:
        """Restore the files; the user decides about those that others have changed since."""
        done = await restore_files(conversation, point)
        if not done.left:
            return done
        title = f"Somebody else has changed {counted(len(done.left), 'file')} since. Overwrite?"
        if not await self.confirmed(title, no=_names(done.left, conversation)):
            return done
        again = await restore_files(conversation, point, overwrite=True)
        restored = list(dict.fromkeys([*done.restored, *again.restored]))
        return RestoredFiles(restored, again.left, [it for it in again.unknown if it not in restored])

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
        is_first = not self.conversations
        choice, session = await self._chosen_agent("Start an agent", has_sessions=is_first and self.options.keeps)
        if choice is not None:
            self.begin(choice, first=is_first, session=session)
        elif not self.conversations:
            self.exit(0)

    async def action_compare(self, text: str = "") -> None:
        """Send a prompt to this agent and to another one, each in a new session."""
        before = self.in_front
        prompts = [it.text for it in before.state.messages if it.speaker == "user"]
        if not text and not prompts:
            raise ValueError("write the prompt after the command: /compare TEXT")
        choice, _ = await self._chosen_agent("Compare with")
        if choice is None:
            return
        if text:
            before.submit(text)
        self.begin(choice).submit(text or prompts[-1])

    async def _chosen_agent(
        self, title: str, *, has_sessions: bool = False
    ) -> tuple[AgentChoice | None, LastSession | None]:
        """Return the agent that the user chooses, or one of the last sessions; one of the registry is installed first.

        None if they leave.
        """
        here = "Agents on this machine"
        entries = [Entry(it.name, it, it.where, group=here) for it in self.options.agents]
        if has_sessions:
            entries += last_entries(self.options.agents)
        hints = [self.options.about, "accord agents add NAME -- COMMAND adds an agent"]
        picker = Picker(title, entries, "\n".join(it for it in hints if it))

        async def add_registry() -> None:
            found = await registry_entries(self.options.agents)
            if picker.is_attached:
                picker.set_entries([*entries, *found])

        if self.options.find_agent is not None:
            self.work_on(add_registry())
        chosen: AgentChoice | RegistryChoice | LastSession | None = await self.ask_for(picker)
        if isinstance(chosen, LastSession):
            return next(it for it in self.options.agents if it.program == chosen.program), chosen
        if not isinstance(chosen, RegistryChoice):
            return chosen, None
        if not chosen.is_installed:
            with self.suspend():
                install(chosen.name)
        assert self.options.find_agent is not None
        return await asyncio.to_thread(self.options.find_agent, chosen.name), None

    # The agent

    def action_stop(self) -> None:
        """Stop the agent; or leave the chosen block."""
        transcript = self.transcript
        if transcript is not None and transcript.cursor is not None:
            transcript.choose(None)
            transcript.go_to_end()
            self.editor.focus()
        elif self.front is not None and self.front.is_busy:
            self.work_on(self.front.stop())
        elif self.front is not None and (command := self.front.command) is not None and command.is_running:
            self.work_on(command.terminal.kill())

    async def action_steer(self, text: str = "") -> None:
        """Send a message into the running turn."""
        said = text or self.editor.take()
        if said.strip():
            await self.in_front.steer(said)

    async def action_next_level(self) -> None:
        """Raise the level that is allowed without a question; after the highest, begin again."""
        used = LEVELS[1:]
        level = self.in_front.connection.consent.level
        await self.action_set_level(used[(used.index(level) + 1) % len(used)] if level in used else used[0])

    async def action_set_level(self, level: str = "") -> None:
        """Choose the level that is allowed without a question."""
        consent = self.in_front.connection.consent
        entries = [Entry(it, it, LEVEL_MEANS[it], it == consent.level) for it in LEVELS]
        if (chosen := await self.choose_from("Without a question", entries, level)) is not None:
            consent.level = chosen
            self.in_front.tell()
            self.in_front.note(
                f"Without a question: {LEVEL_MEANS[chosen]}", "", "warning" if chosen == "auto" else "good"
            )

    async def action_next_mode(self) -> None:
        """Set the next mode."""
        session = self.session_in_front
        if not session.state.modes:
            raise ValueError("the agent offers no modes")
        ids: list[str | None] = [mode.id for mode in session.state.modes]
        place = ids.index(session.state.mode) if session.state.mode in ids else -1
        await session.set_mode(str(ids[(place + 1) % len(ids)]))

    async def action_set_mode(self, mode: str = "") -> None:
        """Set the mode, by its id or name."""
        session = self.session_in_front
        if (chosen := await self.choose_from("Mode", mode_entries(session.state), mode)) is not None:
            await session.set_mode(chosen)

    async def action_set_model(self, model: str = "") -> None:
        """Set the model, by its id or name."""
        session = self.session_in_front
        if (chosen := await self.choose_from("Model", model_entries(session.state), model)) is not None:
            await session.set_model(chosen)

    async def action_config(self) -> None:
        """Choose the model and every other option."""
        entries = option_entries(self.session_in_front)
        if not entries:
            raise ValueError("the agent offers no options")
        if (chosen := await self.ask_for(Picker("Options", entries))) is not None:
            await chosen()

    async def action_goal(self, goal: str = "") -> None:
        """Show the goal of the agent, set it, or have the agent pause, resume or clear it."""
        conversation = self.in_front
        session = self.session_in_front
        await conversation.connection.ready()
        goals = session.extension(Goals)
        offered = goals.actions
        if not offered:
            raise ValueError(f"{conversation.connection.name} knows no goals")
        if not goal:
            title = "No goal" if goals.goal is None else f"Goal: {label(goals.goal.objective, 300)}"
            conversation.note(title, f"The agent offers: {', '.join(offered)}.  /goal TEXT sets it.", "accent")
            return
        controls = {"pause": goals.pause, "resume": goals.resume, "clear": goals.clear}
        action = goal if goal in controls else "set"
        if action not in offered:
            raise ValueError(f"{conversation.connection.name} cannot {action} a goal; it offers {', '.join(offered)}")
        await (controls[action]() if action in controls else goals.set(goal))

    async def action_login(self) -> None:
        """Log in to the agent, then continue."""
        conversation = self.in_front
        for question in conversation.questions:
            if isinstance(question, LoginAsked):
                question.decline()
        remote = await conversation.connection.ready()
        methods = [it for it in remote.auth_methods if not isinstance(it, Unknown)]
        if not methods:
            raise ValueError(f"{conversation.connection.name} offers no login")
        entries = [Entry(it.name, it, it.description or "") for it in methods]
        method = await self.ask_for(Picker(f"Log in to {conversation.connection.name}", entries))
        if method is None:
            return
        env: dict[str, str] | None = {}
        if isinstance(method, v1.AuthMethodEnvVar) and (missing := method.missing(os.environ)):
            env = await self.ask_for(VariablesScreen(method, missing))
        if env is None:
            return
        at_terminal = isinstance(method, v1.AuthMethodTerminal) or "terminal-auth" in (method.meta or {})
        if at_terminal:
            with self.suspend():
                await remote.login(method.id)
        else:
            await remote.login(method.id, env=env)
        conversation.note("Logged in", style="good")
        if conversation.session is not None:
            conversation.adopt(conversation.session)
            return
        await conversation.open(**self.setup(conversation))
        self.opened(conversation)

    async def action_logout(self) -> None:
        """Log out of the agent."""
        remote = await self.in_front.connection.ready()
        await remote.logout()
        self.in_front.note("Logged out")

    async def action_restart(self) -> None:
        """Start the agent again, and open the session again if the agent can."""
        conversation = self.in_front
        connection = conversation.connection
        session, remote = conversation.session, connection.remote
        can = remote is not None and (remote.capabilities.sessions.load or remote.capabilities.sessions.resume)
        its_id = session.id if session is not None and can else None
        if len(connection.conversations) > 1:
            raise ValueError("close the other sessions of this agent first")
        await connection.close()
        self.connections.remove(connection)
        conversation.connection = self.started(connection.choice)
        conversation.connection.conversations.append(conversation)
        conversation.session = None
        conversation.note("Starting the agent again")
        await conversation.open(its_id, shows_past=False, **self.setup(conversation))

    # Permissions

    async def action_permissions(self) -> None:
        """Show all decisions without a question and their sources, and revoke them."""
        conversation = self.in_front
        connection = conversation.connection
        session_id = "" if conversation.session is None else conversation.session.id
        entries = _entries(connection, session_id)
        chosen = await self.ask_for(Picker("Permissions", entries, "enter: change, or ask again   esc: close"))
        match chosen:
            case None:
                return
            case HeldAnswer() | RememberedAnswer():
                await asyncio.to_thread(connection.answers.forget, chosen)
                conversation.note(f"Forgotten: {chosen.what}", style="good")
            case TrustedFile() | TrustedFolder():
                await asyncio.to_thread(distrust, chosen)
                conversation.note(f"You will be asked again whether you trust {chosen.path}", style="good")
            case PermissionPolicy():
                conversation.note("Change this rule in its file", chosen.source, "accent")
            case str() if chosen in LEVELS:
                await self.action_set_level()
            case _:
                connection.consent.revoke(session_id, chosen)
                conversation.note(f"You are asked again: {_allowance(chosen)}", style="good")

    async def action_answer_always(self, asked: PermissionAsked) -> None:
        """Let the user choose the scope of the answer to a question."""
        conversation = self.in_front
        answers = conversation.connection.answers
        question = asked.question
        entries = [
            Entry(f"{word} {where}", (allowed, scope), group=word)
            for word, allowed, option in (("Allow", True, question.allow), ("Reject", False, question.reject))
            if option is not None
            for scope, where in SCOPES.items()
        ]
        about = f"covers {question.tool_call.kind}: {label(covered(question), 60)}"
        chosen = await self.ask_for(Picker("Always", entries, about))
        if chosen is None:
            return
        if not asked.is_open:
            raise ValueError("the agent has withdrawn its question: nothing was saved")
        allowed, scope = chosen
        await asyncio.to_thread(answers.keep, question, scope, allowed=allowed)
        option = question.allow if allowed else question.reject
        word = "allowed" if allowed else "rejected"
        asked.answer(option, f"{word} {SCOPES[scope]}")


def _rewind_entry(point: RewindPoint, conversation: Conversation) -> Entry:
    when = ago(time.time() - point.sent_at) if point.sent_at else ""
    files = f"{counted(len(point.files), 'file')} changed since" if point.files else ""
    about = "  ".join(it for it in (when, files) if it)
    return Entry(point.text or "(no text)", point, about, preview=_names(point.files, conversation))


def _names(paths: Sequence[Path], conversation: Conversation) -> str:
    return ", ".join(label(shortened_path(str(path), str(conversation.folder)), 100) for path in paths)


def _rewind_report(conversation: Conversation, point: RewindPoint, done: RestoredFiles | None) -> str:
    """Describe a rewind, and where the previous session is."""
    lines = ["The session as it was stays in the list of sessions: ctrl+s"]
    if not len(conversation.state) and point.cursor is not None:
        lines.append("The agent knows the earlier conversation, but does not show it.")
    if done is None:
        lines += [f"Files stay as they are: {_names(point.files, conversation)}"] if point.files else []
        return "\n".join(lines)
    sections = {
        "As they were": done.restored,
        "Left, as somebody else has changed them": done.left,
        "Left, as the agent wrote them itself and cannot bring them back": done.unknown,
    }
    lines += [f"{what}: {_names(paths, conversation)}" for what, paths in sections.items() if paths]
    if (dropped_at := conversation.connection.files.changes.dropped_at) and point.sent_at <= dropped_at:
        lines.append("Changes that were made earlier are no longer known.")
    return "\n".join(lines)


def _entries(connection: AgentConnection, session_id: str) -> list[Entry]:
    """Return all decisions without a question: those that can be revoked first, then the level and the rules."""
    consent = connection.consent
    held = [
        *((_allowance(kind), kind) for kind in consent.always(session_id)),
        *((answer_text(it), it) for it in connection.answers.held(session_id)),
    ]
    level = DefaultLevel(consent.level, "shift+tab changes it")
    return [
        *(Entry(text, value, "until the session ends", group="In this session") for text, value in held),
        *(
            Entry(it.text, it.value, _end_of(it.about), group=it.source)
            for it in permission_rules(level, consent.policy, connection.answers)
        ),
    ]


def _allowance(kind: Hashable) -> str:
    """Describe what "always" covers in a session."""
    match kind:
        case "read":
            return "read files of the session's folders"
        case "write":
            return "write files of the session's folders"
        case ("run", str(line), str(folder)):
            return f"run {line}" if folder in ("", ".") else f"run in {folder}: {line}"
        case (str(verb), str(path)):
            return f"{verb} {path}"
        case _:
            return str(kind)


def _end_of(path: str) -> str:
    """Return the end of a path, which distinguishes folders."""
    return path if len(path) <= FOLDER else f"…{path[1 - FOLDER :]}"
