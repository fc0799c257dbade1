"""Answers permission requests: by rules, by remembered answers, or by asking the user.

    session/request_permission ─▶ folded into its tool call ─▶ policy ─▶ level ─▶ remembered answers ─▶ ask ─▶ an option
                                                                  └────────┴───────────┴── the audit log ──┘

A refusal is answered with a reject option, because agents interpret `cancelled` as the end of the turn. The answer is
`cancelled` only if the turn was cancelled while the question was open, or if the agent offers no reject option.

"Always" answers are remembered in a file, by program, by folder and by subject. The file is JSON: `permissions.json` in
`$XDG_STATE_HOME/accord`, else in `~/.local/state/accord`.

    {"version": 2, "answers": [
      {"program": "/usr/bin/claude 0f3a…", "agent": "Claude Code", "folder": "/home/me/project",
       "kind": "execute", "what": "npm test", "allowed": true, "at": "2026-11-21T12:00:00+00:00"}]}

`program` identifies the agent (`Target.program`): the real path of its program with a digest of its command line, the
origin of its URL, or its module. `agent` is the name that the agent gives itself, for people to read; any program may
give itself any name. Files of version 1 have only that name, so their answers are ignored and the user is asked again.

`folder` is the session's folder, or `*` for an answer that applies in every folder.

Each change replaces the whole file, by one process at a time (a lock file beside it). The user may edit the file.

An answer covers little. An answer about a command applies to exactly this command. An answer about reading or editing
files applies to all files in the session's folders, if the tool call names its files. Any other answer applies to the
same kind and title.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Generator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import msgspec

from accord._internal.tasks import log
from accord.engine.handlers import Handlers
from accord.mistakes import check_handler, check_word, wrong_type
from accord.paths import locked, replace_file, state_folder, write_all
from accord.schema import codec, v1
from accord.services.permission_policy import Answer, PermissionPolicy, typed_command
from accord.services.permission_question import (
    LEVELS,
    Ask,
    Choice,
    Level,
    PermissionQuestion,
    level_of,
    must_be_judgeable,
    question_of,
    refuse,
    response_of,
)
from accord.services.service import OpenQuestions, ServedSession, Service, SessionOf, TurnCancelledError

if TYPE_CHECKING:
    from accord.schema import v2

EVERYWHERE = "*"
"""The folder of an answer that applies in every folder."""

_FILES: tuple[str, ...] = ("read", "search", "edit")


class RememberedAnswer(msgspec.Struct, frozen=True):
    """One answer in the file."""

    program: str
    folder: str
    kind: str
    what: str
    allowed: bool
    at: str
    agent: str = ""


VERSION = 2
"""The version of the file that is read and written."""


class _AnswersVersion(msgspec.Struct):
    version: int = 1


class _Document(msgspec.Struct):
    version: int = VERSION
    answers: list[RememberedAnswer] = []


class RememberedAnswers:
    """The file of remembered answers, read again for each question because another program may have changed it.

    remembered = accord.RememberedAnswers()           # the user's own file
    client = accord.Client(permissions=accord.Permissions(ask_me, remembered=remembered))
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = state_folder() / "permissions.json" if path is None else Path(path)
        """The file of the answers."""

    def recall(self, question: PermissionQuestion) -> bool | None:
        """Return the remembered answer to this question: allowed or not; None if there is none."""
        program, folder, kind, what = _key(question)
        found = {
            it.folder: it.allowed
            for it in self._read().answers
            if (it.program, it.kind, it.what) == (program, kind, what)
        }
        return found.get(folder, found.get(EVERYWHERE))

    def remember(self, question: PermissionQuestion, *, allowed: bool, everywhere: bool = False) -> None:
        """Remember an answer, replacing an earlier one: for the session's folder, or `everywhere`.

        An answer for a folder takes precedence there over one for everywhere.
        """
        program, folder, kind, what = _key(question)
        key = (program, EVERYWHERE if everywhere else folder, kind, what)
        with locked(self.path):
            others = [it for it in self._read(strict=True).answers if (it.program, it.folder, it.kind, it.what) != key]
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self._write([*others, RememberedAnswer(*key, allowed, now, question.session.agent)])

    def forget(self, answer: RememberedAnswer | None = None) -> None:
        """Forget one answer, or all."""
        with locked(self.path):
            if answer is not None:
                self._write([it for it in self._read(strict=True).answers if it != answer])
            else:
                self.path.unlink(missing_ok=True)

    def __iter__(self) -> Generator[RememberedAnswer]:
        yield from self._read().answers

    def _write(self, answers: list[RememberedAnswer]) -> None:
        document = _Document(answers=answers)
        replace_file(self.path, msgspec.json.format(msgspec.json.encode(document)) + b"\n")

    def _read(self, *, strict: bool = False) -> _Document:
        try:
            data = self.path.read_bytes()
            version = _read_version(data).version
            if version == 1:
                log.warning(
                    "%s has version 1, whose answers are tied to agents' names; they are ignored",
                    self.path,
                )
                return _Document()
            if version == VERSION:
                return _read_document(data)
        except FileNotFoundError:
            return _Document()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            if strict:  # a file that cannot be read must not be overwritten
                raise ValueError(f"{self.path} cannot be read: {error}") from error
            log.warning("cannot read %s (%s); no remembered answer applies", self.path, error)
            return _Document()
        if strict:
            raise ValueError(f"{self.path} has version {version}, but only version {VERSION} is supported")
        return _Document()


def _key(question: PermissionQuestion) -> tuple[str, str, str, str]:
    session, call = question.session, question.tool_call
    return session.program, os.path.realpath(session.cwd), call.kind, covered(question)


def covered(question: PermissionQuestion) -> str:
    """Return the scope of a remembered answer to this question."""
    command = question.command
    if command is not None:
        return typed_command(command)
    if question.tool_call.kind in _FILES and question.paths:
        roots = question.session.roots
        if all(path in roots for path in question.paths):
            return "any file of the session's folders"
    return question.tool_call.title


# Made at import: msgspec's first use of a class is not safe in two threads.
_read_version = msgspec.json.Decoder(_AnswersVersion).decode
_read_document = msgspec.json.Decoder(_Document).decode


class Permissions(Service):
    """Answers permission requests.

    `policy` answers first, then `level` allows without a question: by default reading in the session's folders, at
    "edit" also changing files there, and at "auto" everything. With `remembered`, an "always" option then applies to
    the same agent and folder. `ask(question)` answers the rest: it returns an option that the question offers, or its
    id, or True (allow, once if that is offered) or False (reject). Without `ask`, the rest is rejected. `audit` is a
    file to which each decision is appended as a line of JSON.

        async def ask(question: accord.PermissionQuestion) -> bool:
            return await my_window.yes_or_no(question.tool_call.title)

        policy = accord.PermissionPolicy.load("permissions.toml")
        client = accord.Client(permissions=accord.Permissions(ask, policy=policy))
    """

    def __init__(
        self,
        ask: Ask = refuse,
        *,
        level: Level = "ask",
        policy: PermissionPolicy | None = None,
        remembered: RememberedAnswers | None = None,
        audit: str | Path | None = None,
    ) -> None:
        check_handler("Permissions(ask)", ask)
        check_word("level", level, LEVELS)
        self.level: Level = level
        """The level that is allowed without a question; a change applies from the next request on."""
        if policy is not None and not isinstance(cast("object", policy), PermissionPolicy):
            raise wrong_type("Permissions(policy=...)", "a PermissionPolicy", policy, "use PermissionPolicy.load(path)")
        if remembered is not None and not isinstance(cast("object", remembered), RememberedAnswers):
            raise wrong_type("Permissions(remembered=...)", "a RememberedAnswers", remembered)
        self._ask = ask
        self.asks_nobody = ask is refuse
        """Whether `ask` asks no user, but refuses; set it for your own function that does so."""
        self.policy = policy or PermissionPolicy()
        """The rules that answer first."""
        self._remembered = remembered
        self._audit = None if audit is None else Path(audit)
        self._questions = OpenQuestions()
        self._judging: WeakKeyDictionary[ServedSession, asyncio.Lock] = WeakKeyDictionary()
        """Held while a session's question is judged: users are asked in the order of the agent's requests."""

    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Declare nothing: every client answers permission requests."""
        return capabilities

    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Handle `session/request_permission`."""

        # Not `async`: `deciding` begins where the request arrives, before any later message.
        @handlers.on(v1.RequestPermissionRequest)
        def answer(request: v1.RequestPermissionRequest) -> Awaitable[v1.RequestPermissionResponse]:
            return self._answered(request, session_of, self.deciding())

    def register_v2(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Handle `session/request_permission` of version 2."""
        from accord.schema import v2

        @handlers.on(v2.RequestPermissionRequest)
        def answer(request: v2.RequestPermissionRequest) -> Awaitable[v2.RequestPermissionResponse]:
            return self._answered_v2(request, session_of, self.deciding())

    def deciding(self) -> AbstractContextManager[Any]:
        """Return a context that is entered where a request arrives, and left when the decision is made."""
        return nullcontext()

    async def _answered(
        self, request: v1.RequestPermissionRequest, session_of: SessionOf, deciding: AbstractContextManager[Any]
    ) -> v1.RequestPermissionResponse:
        with deciding:
            session = session_of(request.session_id)
            call = session.fold(request.tool_call)
            return await self.answer(PermissionQuestion(session, call, request.options, meta=request.meta or {}))

    async def _answered_v2(
        self, request: v2.RequestPermissionRequest, session_of: SessionOf, deciding: AbstractContextManager[Any]
    ) -> v2.RequestPermissionResponse:
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

        Raises RequestError for a request that is too large to judge (see `permission_question`).
        """
        option, _ = await self.decide(question)
        response = v1.RequestPermissionResponse
        answer = response.cancelled() if option is None else response.selected(option)
        return msgspec.structs.replace(answer, meta=question.answer_meta or None)

    async def decide(self, question: PermissionQuestion) -> tuple[v1.PermissionOption | None, str]:
        """Decide as `answer` does; returns the option, None if the turn was cancelled, and the source of the decision.

        The source is `user`, `remembered`, `level ask`, `rule 2`, `default` or `failure`, as in the audit log.
        """
        must_be_judgeable(question.tool_call, question.options)
        try:
            option, by = await self._decided(question)
        except Exception:
            log.exception("the function that asks for permission failed; the request is rejected")
            option, by = question.reject, "failure"
        if self._audit is not None:
            await asyncio.to_thread(self._note, self._audit, question, option, by)
        return option, by

    async def _decided(self, question: PermissionQuestion) -> tuple[v1.PermissionOption | None, str]:
        async with self._judging.setdefault(question.session, asyncio.Lock()):
            answer, rule = await self._judged(question)
            if answer != "ask":
                return question.chosen(answer == "allow") or question.reject, rule
            # A rule that says "ask" overrides the level and remembered answers; they apply only if no rule fits.
            if rule == "default" and LEVELS.index(level_of(question)) <= LEVELS.index(self.level):
                return question.chosen(True) or question.reject, f"level {self.level}"
            if self._remembered is not None and rule == "default":
                held = await asyncio.to_thread(self._remembered.recall, question)
                if held is not None:
                    return question.chosen(held) or question.reject, "remembered"
        return await self._asked(question)

    async def _judged(self, question: PermissionQuestion) -> tuple[Answer, str]:
        """The answer of the rules. A thread looks files up and parses long commands, because both may take long."""
        call = question.tool_call
        if not self.policy.rules and not call.locations and not call.content:
            return self.policy.decide(question)

        def judge() -> tuple[Answer, str]:
            _ = question.paths  # cached for displays, which read it in the event loop
            return self.policy.decide(question)

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
