"""What the keys and commands for permissions do: where an "always" holds, and what was allowed always."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from accord.printable import label
from accord.services.permissions.remembered import EVERYWHERE, RememberedAnswer, covered
from accord.tui.connection import AgentConnection
from accord.tui.pickers import Entry, Picker
from accord.tui.questions import PermissionAsked
from accord.tui.scopes import SCOPES, HeldAnswer
from accord.tui.shell import ChatShell

FOLDER = 24
"""Letters of a folder that are shown."""


class PermissionActions(ChatShell):
    """The actions for permissions."""

    async def action_permissions(self) -> None:
        """Show what was allowed or rejected always, and revoke it."""
        conversation = self.in_front
        connection = conversation.connection
        session_id = "" if conversation.session is None else conversation.session.id
        entries = _entries(connection, session_id)
        if not entries:
            conversation.note(
                "Nothing was allowed always",
                'An "always" of yours is listed here. What an agent keeps by itself is not known here.',
                "accent",
            )
            return
        chosen = await self.ask_for(Picker("Permissions", entries, "enter: ask again from now on   esc: close"))
        if chosen is None:
            return
        if isinstance(chosen, RememberedAnswer | HeldAnswer):
            await self._forget(connection, chosen)
            conversation.note(f"Forgotten: {chosen.what}", "", "good", "✓")
        elif connection.consent is not None:
            connection.consent.revoke(session_id, chosen)
            conversation.note(f"You are asked again: {_allowance(chosen)}", "", "good", "✓")

    async def _forget(self, connection: AgentConnection, answer: RememberedAnswer | HeldAnswer) -> None:
        answers = connection.answers
        if answers is None:
            return
        if isinstance(answer, HeldAnswer):
            answers.release(answer)
        else:
            await asyncio.to_thread(answers.forget, answer)

    async def action_answer_always(self, asked: PermissionAsked) -> None:
        """Have the user choose where the answer to a question holds."""
        conversation = self.in_front
        answers = conversation.connection.answers
        if answers is None:
            return
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
            raise ValueError("the agent has withdrawn its question: nothing was kept")
        allowed, scope = chosen
        await asyncio.to_thread(answers.keep, question, scope, allowed=allowed)
        option = question.allow if allowed else question.reject
        word = "allowed" if allowed else "rejected"
        asked.answer(option, f"{word} {SCOPES[scope]}")


def _entries(connection: AgentConnection, session_id: str) -> list[Entry]:
    """What was allowed or rejected always."""
    entries: list[Entry] = []
    now, later = "In this session", "In later chats, too"
    if connection.consent is not None:
        entries += [
            Entry(_allowance(kind), kind, "until the session ends", group=now)
            for kind in connection.consent.always(session_id)
        ]
    if connection.answers is not None:
        held = connection.answers.held(session_id)
        entries += [Entry(_answer(it), it, "until the session ends", group=now) for it in held]
        entries += [Entry(_answer(it), it, _where(it), group=later) for it in connection.answers]
    return entries


def _answer(answer: RememberedAnswer | HeldAnswer) -> str:
    return f"{'allow' if answer.allowed else 'reject'} {answer.kind}: {answer.what}"


def _where(answer: RememberedAnswer) -> str:
    folder = "in every folder" if answer.folder == EVERYWHERE else _end_of(answer.folder)
    return f"{answer.agent}  {folder}"


def _allowance(kind: Hashable) -> str:
    """What "always" covers in a session, in words."""
    match kind:
        case "read":
            return "read files of the session's folders"
        case "write":
            return "write files of the session's folders"
        case ("run", str(line), str(folder)):
            return f"run {line}" if folder in ("", ".") else f"run in {folder}: {line}"
        case _:
            return str(kind)


def _end_of(path: str) -> str:
    """The end of a path, which tells folders apart."""
    return path if len(path) <= FOLDER else f"…{path[1 - FOLDER :]}"
