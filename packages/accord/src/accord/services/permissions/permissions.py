"""Answers permission requests: by rules, by remembered answers, or by asking the user.

    session/request_permission ─▶ folded into its tool call ─▶ policy ─▶ remembered answers ─▶ ask ─▶ an option
                                                                  └──────────┴── the audit log ──┘

A refusal is answered with a reject option, because agents take `cancelled` for the end of the turn. The answer is
`cancelled` only if the turn was cancelled while the question was open, or if the agent offers no reject option.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from accord._internal.tasks import log
from accord.arguments import wrong_type
from accord.engine.handlers import Handlers
from accord.mistakes import check_handler
from accord.schema import codec, v1
from accord.services.files.atomic import write_all
from accord.services.permissions.policy import Answer, PermissionPolicy
from accord.services.permissions.question import Ask, Choice, PermissionQuestion, refuse
from accord.services.permissions.remembered import RememberedAnswers
from accord.services.permissions.subject import must_be_judgeable
from accord.services.questions import OpenQuestions, TurnCancelledError
from accord.services.service import ServedSession, Service, SessionOf

if TYPE_CHECKING:
    from accord.schema import v2


class Permissions(Service):
    """Answers permission requests.

    `policy` answers first. With `remembered`, an option that says "always" then holds for the same agent and folder.
    `ask(question)` answers the rest: it returns an option that the question offers, or its id, or True (allow, once if
    that is offered) or False (reject). Without `ask`, the rest is rejected. `audit` is a file to which each decision is
    appended as a line of JSON.

        async def ask(question: accord.PermissionQuestion) -> bool:
            return await my_window.yes_or_no(question.tool_call.title)

        policy = accord.PermissionPolicy.load("permissions.toml")
        client = accord.Client(permissions=accord.Permissions(ask, policy=policy))
    """

    def __init__(
        self,
        ask: Ask = refuse,
        *,
        policy: PermissionPolicy | None = None,
        remembered: RememberedAnswers | None = None,
        audit: str | Path | None = None,
    ) -> None:
        check_handler("Permissions(ask)", ask)
        if policy is not None and not isinstance(cast("object", policy), PermissionPolicy):
            raise wrong_type("Permissions(policy=...)", "a PermissionPolicy", policy, "use PermissionPolicy.load(path)")
        if remembered is not None and not isinstance(cast("object", remembered), RememberedAnswers):
            raise wrong_type("Permissions(remembered=...)", "a RememberedAnswers", remembered)
        self._ask = ask
        self._policy = policy or PermissionPolicy()
        self._remembered = remembered
        self._audit = None if audit is None else Path(audit)
        self._questions = OpenQuestions()
        self._judging: WeakKeyDictionary[ServedSession, asyncio.Lock] = WeakKeyDictionary()
        """Held while a session's question is judged: users are asked in the order in which the agent has asked."""

    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Declares nothing: every client answers permission requests."""
        return capabilities

    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Handle `session/request_permission`."""

        @handlers.on(v1.RequestPermissionRequest)
        async def answer(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
            session = session_of(request.session_id)
            question = PermissionQuestion(session, session.fold(request.tool_call), request.options)
            return await self.answer(question)

    def register_v2(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Handle `session/request_permission` of version 2."""
        from accord.schema import v2

        # Not `async`: `deciding` begins where the request arrives, before anything that comes after it.
        @handlers.on(v2.RequestPermissionRequest)
        def answer(request: v2.RequestPermissionRequest) -> Awaitable[v2.RequestPermissionResponse]:
            return self._answered_v2(request, session_of, self.deciding())

    def deciding(self) -> AbstractContextManager[Any]:
        """A context for one decision, entered by the caller of `answer` in version 2."""
        return nullcontext()

    async def _answered_v2(
        self, request: v2.RequestPermissionRequest, session_of: SessionOf, deciding: AbstractContextManager[Any]
    ) -> v2.RequestPermissionResponse:
        from accord.services.permissions.asked_in_v2 import question_of, response_of

        with deciding:
            try:
                return response_of(await self.answer(question_of(request, session_of(request.session_id))))
            except asyncio.CancelledError:
                # prompt-lifecycle, Cancellation: the agent withdraws its question, and is answered all the same.
                return response_of(v1.RequestPermissionResponse.cancelled())

    def turn_cancelled(self, session: ServedSession) -> None:
        """Answer the open questions of the session with `cancelled`."""
        self._questions.cancel(session)

    async def release(self, session: ServedSession) -> None:
        """Cancel the open questions of a session that has ended."""
        self.turn_cancelled(session)

    async def answer(self, question: PermissionQuestion) -> v1.RequestPermissionResponse:
        """Decide, and append the decision to the audit log.

        Raises RequestError for a request that is too large to judge (see `subject`).
        """
        must_be_judgeable(question.tool_call, question.options)
        try:
            option, by = await self._decided(question)
        except Exception:
            log.exception("the function that asks for permission failed; the request is rejected")
            option, by = question.reject, "failure"
        if self._audit is not None:
            await asyncio.to_thread(self._note, self._audit, question, option, by)
        return (
            v1.RequestPermissionResponse.cancelled()
            if option is None
            else v1.RequestPermissionResponse.selected(option)
        )

    async def _decided(self, question: PermissionQuestion) -> tuple[v1.PermissionOption | None, str]:
        async with self._judging.setdefault(question.session, asyncio.Lock()):
            answer, rule = await self._judged(question)
            if answer != "ask":
                return question.chosen(answer == "allow") or question.reject, rule
            # A rule that says "ask" overrides remembered answers; they hold only if no rule fits.
            if self._remembered is not None and rule == "default":
                held = await asyncio.to_thread(self._remembered.recall, question)
                if held is not None:
                    return question.chosen(held) or question.reject, "remembered"
        return await self._asked(question)

    async def _judged(self, question: PermissionQuestion) -> tuple[Answer, str]:
        """The answer of the rules. A thread looks files up and parses long commands, because both may take long."""
        call = question.tool_call
        if not self._policy.rules and not call.locations and not call.content:
            return self._policy.decide(question)

        def judge() -> tuple[Answer, str]:
            _ = question.paths  # cached for displays, which read it in the event loop
            return self._policy.decide(question)

        return await asyncio.to_thread(judge)

    async def _asked(self, question: PermissionQuestion) -> tuple[v1.PermissionOption | None, str]:
        try:
            choice: Choice = await self._questions.ask(question.session, self._ask, question)
        except TurnCancelledError:
            return None, "cancelled"
        option = question.chosen(choice) or question.reject
        if self._remembered is not None and option is not None and option.kind.endswith("_always"):
            await self._remember(self._remembered, question, allowed=option.kind == "allow_always")
        return option, "user"

    async def _remember(self, remembered: RememberedAnswers, question: PermissionQuestion, *, allowed: bool) -> None:
        try:
            await asyncio.to_thread(remembered.remember, question, allowed=allowed)
        except (OSError, ValueError) as error:
            log.warning("cannot remember the answer: %s", error)

    def _note(self, audit: Path, question: PermissionQuestion, option: v1.PermissionOption | None, by: str) -> None:
        session, call = question.session, question.tool_call
        line = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "agent": session.agent,
            "session": session.id,
            "folder": str(session.cwd),
            "toolCall": call.id,
            "kind": call.kind,
            "title": call.title,
            "command": question.command,
            "paths": [str(path) for path in question.paths],
            "answer": "cancelled" if option is None else option.kind,
            "option": None if option is None else option.option_id,
            "by": by,
        }
        try:
            _append(audit, codec.encode(line) + b"\n")
        except OSError as error:
            log.warning("cannot write the decision to the audit log %s: %s", audit, error)


def _append(path: Path, line: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        write_all(fd, line)
    finally:
        os.close(fd)
