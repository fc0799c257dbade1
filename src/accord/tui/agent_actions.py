"""What the keys and commands for the agent do: stop, steer, mode, model, options, login, restart."""

from __future__ import annotations

from accord.extensions import GOAL_ACTIONS, control_goal, goal_actions, goal_of
from accord.printable import label
from accord.schema import v1
from accord.schema.base import Unknown
from accord.tui.option_entries import option_entries
from accord.tui.pickers import Entry, Picker
from accord.tui.questions import LoginAsked
from accord.tui.shell import ChatShell


class AgentActions(ChatShell):
    """The actions for the agent."""

    def action_stop(self) -> None:
        """Stop the agent; or leave the chosen block."""
        transcript = self.transcript
        if transcript is not None and transcript.cursor is not None:
            transcript.choose(None)
            transcript.go_to_end()
            self.editor.focus()
        elif self.front is not None and self.front.is_busy:
            self.work_on(self.front.stop())

    async def action_steer(self, text: str = "") -> None:
        """Send a message into the running turn."""
        said = text or self.editor.take()
        if said.strip():
            await self.in_front.steer(said)

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
        state = session.state
        entries = [Entry(it.name, it.id, it.description or "", it.id == state.mode) for it in state.modes]
        if (chosen := await self.choose_from("Mode", entries, mode)) is not None:
            await session.set_mode(chosen)

    async def action_set_model(self, model: str = "") -> None:
        """Set the model, by its id or name."""
        session = self.session_in_front
        state = session.state
        entries = [Entry(it.name, it.model_id, it.description or "", it.model_id == state.model) for it in state.models]
        if (chosen := await self.choose_from("Model", entries, model)) is not None:
            await session.set_model(chosen)

    async def action_config(self) -> None:
        """Choose the model and every other option."""
        session = self.session_in_front
        entries = option_entries(session.state)
        if not entries:
            raise ValueError("the agent offers no options")
        chosen = await self.ask_for(Picker("Options", entries))
        if chosen is None:
            return
        option_id, value = chosen
        if option_id is None:
            await session.set_mode(value)
        elif option_id == "":
            await session.set_model(value)
        else:
            await session.set_config(option_id, value)

    async def action_goal(self, goal: str = "") -> None:
        """Show the goal of the agent, set it, or have the agent pause, resume or clear it."""
        conversation = self.in_front
        session = self.session_in_front
        remote = await conversation.connection.ready()
        offered = goal_actions(remote)
        if not offered:
            raise ValueError(f"{conversation.connection.name} knows no goals")
        if not goal:
            now = goal_of(session.state.meta)
            title = "No goal" if now is None else f"Goal: {label(now.objective, 300)}"
            conversation.note(title, f"The agent offers: {', '.join(offered)}.  /goal TEXT sets it.", "accent")
            return
        action = next((it for it in GOAL_ACTIONS if it == goal and it != "set"), "set")
        if action not in offered:
            raise ValueError(f"{conversation.connection.name} cannot {action} a goal; it offers {', '.join(offered)}")
        await control_goal(remote, session.id, action, goal if action == "set" else None)

    async def action_login(self) -> None:
        """Log in to the agent, then go on."""
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
        env = await self._variables(method) if isinstance(method, v1.AuthMethodEnvVar) else {}
        if env is None:
            return
        at_terminal = isinstance(method, v1.AuthMethodTerminal) or "terminal-auth" in (method.meta or {})
        if at_terminal:
            with self.suspend():
                await remote.login(method.id)
        else:
            await remote.login(method.id, env=env)
        conversation.note("Logged in", "", "good", "✓")
        if conversation.session is not None:
            conversation.adopt(conversation.session)
            return
        await conversation.open(**self.setup(conversation))
        self.opened(conversation)

    async def _variables(self, method: v1.AuthMethodEnvVar) -> dict[str, str] | None:
        """The variables of a login, which the user types; None if they leave."""
        from accord.client.login import missing_variables
        from accord.tui.login import VariablesScreen

        missing = missing_variables(method, {})
        if not missing:
            return {}
        given: dict[str, str] | None = await self.ask_for(VariablesScreen(method, missing))
        return given

    async def action_logout(self) -> None:
        """Log out of the agent."""
        remote = await self.in_front.connection.ready()
        await remote.logout()
        self.in_front.note("Logged out")

    async def action_restart(self) -> None:
        """Start the agent again, and open the session again if the agent can."""
        conversation = self.in_front
        connection = conversation.connection
        others = [one for one in connection.conversations if one is not conversation]
        session = conversation.session
        remote = connection.remote
        can = remote is not None and (remote.capabilities.sessions.load or remote.capabilities.sessions.resume)
        its_id = session.id if session is not None and can else None
        if others:
            raise ValueError("close the other sessions of this agent first")
        await connection.close()
        self.connections.remove(connection)
        again = type(connection)(connection.choice, connection.options)
        again.on_news = self.mark
        self.connections.append(again)
        again.start()
        conversation.connection = again
        again.conversations.append(conversation)
        conversation.session = None
        conversation.note("Starting the agent again")
        await conversation.open(its_id, shows_past=False, **self.setup(conversation))
