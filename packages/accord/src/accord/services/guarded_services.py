"""Guarded services: files and terminals of which each use needs permission, by the same rules, memory and user.

    fs/read_text_file, fs/write_text_file, terminal/create ─▶ PermissionQuestion ─▶ Permissions ─▶ the service
                                                                                               └─▶ a refusal

The agent's own question and the following use are one act, so the user is asked once. A use that the agent's own
question has just allowed needs no second question: the same text into the same file, the change of a part of it that
its diff showed, a change of a file that its question named without a diff, or the same command, also as `sh -c
COMMAND`. "Always" to the agent's question allows these uses until the session ends: this command, and any change of
these files. For any other use, this module asks a question, which names the file, the change or the whole command. Its
answer "always" applies to the session: for reading its files, for writing them, or for this command. A refusal names
its source, and what would allow the use.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Hashable, MutableMapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from accord.engine.handlers import Handlers
from accord.engine.peer import Context
from accord.errors import RequestError
from accord.project.confined import refuse_git
from accord.schema import v1
from accord.services.file_service import Files
from accord.services.permission_policy import PermissionPolicy, is_shell, typed_command
from accord.services.permission_question import Ask, Level, PermissionQuestion, level_of, refuse
from accord.services.permission_service import Permissions, RememberedAnswers
from accord.services.service import ServedSession, Service, SessionOf
from accord.services.terminal_service import Terminals
from accord.session import ToolCallState, updates

ALWAYS = "always"
OPTIONS = (
    v1.PermissionOption(v1.PermissionOptionId("once"), "Allow this", "allow_once"),
    v1.PermissionOption(v1.PermissionOptionId(ALWAYS), "Allow all of this kind in this session", "allow_always"),
    v1.PermissionOption(v1.PermissionOptionId("no"), "Refuse", "reject_once"),
)
GRANTS = 1_000
"""Exact uses that are remembered for a session, the newest."""
LONGEST_PATCH = 16 * 1024
"""Characters of a remembered change of a part of a file; a longer one is matched by the whole new text only."""

_SECRET = re.compile(r"[A-Z0-9_]+_(?:KEY|SECRET|TOKEN)")
"""Variables that contain secrets, by their names."""

Use: TypeAlias = tuple[Hashable, ...]
"""One exact use: a file to read, a text for a file, or a command."""


@dataclass(frozen=True)
class UseRequest:
    """A use that an agent requests, and the question to the user about it."""

    call: ToolCallState
    uses: Sequence[Use]
    """The same use in every form in which the agent's own question may have allowed it."""
    kind: Hashable
    """The uses that the answer "always" covers."""


class UsePermissions(Permissions):
    """Permissions that also decide about each use of lent files and terminals.

    `while_deciding` is entered while a decision is open, from the moment its request has arrived. `on_refused` is
    called with each request that a rule, or a remembered answer, has refused without a question, and with the reason.
    """

    def __init__(
        self,
        ask: Ask = refuse,
        *,
        level: Level = "ask",
        policy: PermissionPolicy | None = None,
        remembered: RememberedAnswers | None = None,
        while_deciding: Callable[[], AbstractContextManager[None]] = nullcontext,
        on_refused: Callable[[PermissionQuestion, str], object] | None = None,
    ) -> None:
        super().__init__(ask, level=level, policy=policy, remembered=remembered)
        self._on_refused = on_refused
        self._while_deciding = while_deciding
        self._memories: MutableMapping[ServedSession, _Memory] = WeakKeyDictionary()

    def deciding(self) -> ExitStack:
        """Return the context to close when the decision is made."""
        stack = ExitStack()
        stack.enter_context(self._while_deciding())
        return stack

    async def decide(self, question: PermissionQuestion) -> tuple[v1.PermissionOption | None, str]:
        """Decide as `Permissions` do, report a refusal of which no user knows, and remember the uses of the agent's
        own question.
        """
        option, by = await super().decide(question)
        if option is None or not option.kind.startswith("allow"):
            if self._on_refused and by != "user" and option is not None:
                self._on_refused(question, self.refusal(question, by))
        elif question.options is not OPTIONS:
            memory, uses = self._memory(question.session), await asyncio.to_thread(_uses, question)
            memory.granted.update(dict.fromkeys(uses))
            for old in list(memory.granted)[: max(0, len(memory.granted) - GRANTS)]:
                del memory.granted[old]
            if by == "user" and option.kind == "allow_always":
                memory.always.update(_lasting(question, uses))
        return option, by

    def turn_cancelled(self, session: ServedSession) -> None:
        """Refuse the questions that wait for the user, or for an earlier question."""
        self._memory(session).cancelled += 1
        super().turn_cancelled(session)

    async def require(self, session: ServedSession, request: UseRequest) -> None:
        """Return if the user or a rule allows this use; raises RequestError if not."""
        memory = self._memory(session)
        before = memory.cancelled
        async with memory.one_by_one:
            lasting = {request.kind, *request.uses}
            if any(kind in lasting or not lasting.isdisjoint(uses) for kind, uses in memory.always.items()):
                return
            if any(it in memory.granted for it in request.uses):
                for use in request.uses:
                    memory.granted.pop(use, None)
                return
            if memory.cancelled != before:
                raise RequestError.cancelled("the turn was cancelled")
            question = PermissionQuestion(session, request.call, OPTIONS)
            option, by = await self.decide(question)
            if option is None or not option.kind.startswith("allow"):
                raise RequestError.invalid_params(self.refusal(question, by), action=request.call.title[:200])
            if option.option_id == ALWAYS:
                memory.always[request.kind] = ()

    def granted_patches(self, session: ServedSession, path: str) -> list[_DiffPart]:
        """Return the changes of parts of files that the agent's own questions have shown, and that were allowed."""
        return [it for it in self._memory(session).granted if isinstance(it, _DiffPart) and it.path == path]

    def refusal(self, question: PermissionQuestion, by: str) -> str:
        """Describe why something was refused, and what would allow it."""
        policy = self.policy.source or "the permission policy"
        match by:
            case "user" if not self.asks_nobody:
                return "the user did not allow this"
            case "user" | "failure":
                return f"nobody was there to ask; a client of level {level_of(question)!r} allows this"
            case "remembered":
                return "the user has refused this before, and wanted that to hold"
            case _:
                return f"{by} of {policy} refuses this; change it there"

    def always(self, session_id: str) -> list[Hashable]:
        """Return the uses with the answer "always" in a session: `read`, `write`, or `("run", command, folder)`; also
        `("read", path)` and `("write", path)`, from the agent's own questions.
        """
        return [kind for memory in self._memories_of(session_id) for kind in memory.always]

    def revoke(self, session_id: str, kind: Hashable) -> None:
        """Ask again about something that was allowed always."""
        for memory in self._memories_of(session_id):
            memory.always.pop(kind, None)

    def _memories_of(self, session_id: str) -> list[_Memory]:
        return [memory for session, memory in self._memories.items() if session.id == session_id]

    async def release(self, session: ServedSession) -> None:
        """Forget the uses that were allowed in a session that has ended."""
        await super().release(session)
        self._memories.pop(session, None)

    def _memory(self, session: ServedSession) -> _Memory:
        return self._memories.setdefault(session, _Memory())


class _Memory:
    """The permissions of one session."""

    def __init__(self) -> None:
        self.one_by_one = asyncio.Lock()
        """A second use waits for the answer about the first, which may cover it."""
        self.granted: dict[Use, None] = {}
        self.always: dict[Hashable, Sequence[Use]] = {}
        """What an "always" covers, and for one of the agent's own questions, its exact uses."""
        self.cancelled = 0


class Guarded(Service):
    """One of Accord's services, each use of which needs permission."""

    def __init__(self, lent: Files | Terminals, consent: UsePermissions) -> None:
        self._lent = lent
        self._consent = consent

    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Declare the service."""
        return self._lent.declare(capabilities)

    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Register the service's handlers; those that use something ask first."""
        self._lent.register(handlers, session_of)
        for message, wanted in self._uses():
            entry = handlers.by_method.get((message.__method__, True))
            if entry is not None:
                handlers.on(message)(self._guarded(entry[1], wanted, session_of))

    def turn_cancelled(self, session: ServedSession) -> None:
        """Pass the cancellation on."""
        self._lent.turn_cancelled(session)

    async def release(self, session: ServedSession) -> None:
        """Release the service's data of the session."""
        await self._lent.release(session)

    def _uses(self) -> Sequence[tuple[type[Any], Callable[[ServedSession, Any], Awaitable[UseRequest | None]]]]:
        if isinstance(self._lent, Files):
            return [(v1.ReadTextFileRequest, _reading), (v1.WriteTextFileRequest, self._writing)]
        return [(v1.CreateTerminalRequest, _running)]

    def _guarded(
        self,
        handle: Callable[..., Any],
        wanted: Callable[[ServedSession, Any], Awaitable[UseRequest | None]],
        session_of: SessionOf,
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        takes_context = len(inspect.signature(handle).parameters) > 1

        async def decided(message: Any, context: Context, deciding: ExitStack) -> Any:
            with deciding:
                session = session_of(message.session_id)
                request = await wanted(session, message)
                if request is not None:
                    await self._consent.require(session, request)
            return await (handle(message, context) if takes_context else handle(message))

        def guarded(message: Any, context: Context) -> Awaitable[Any]:
            return decided(message, context, self._consent.deciding())

        return guarded

    async def _writing(self, session: ServedSession, message: v1.WriteTextFileRequest) -> UseRequest:
        path = await asyncio.to_thread(_real, session, message.path)
        for name in session.roots.locate(path).names:
            refuse_git(name, Path(path))  # the service refuses it anyway, so there is nothing to allow
        assert isinstance(self._lent, Files)
        try:
            old = await self._lent.read(session, message.path)
        except RequestError:  # a new file, or one that is not text
            old = None
        diff = updates.TextDiff(path, message.content, old)
        call = ToolCallState(v1.ToolCallId("write"), f"write {_short(session, path)}", "edit", content=(diff,))
        patches = [] if old is None else _making(self._consent.granted_patches(session, path), old, message.content)
        return UseRequest(call, [_written(path, message.content), *patches, ("write", path)], "write")


async def _reading(session: ServedSession, message: v1.ReadTextFileRequest) -> UseRequest | None:
    path = await asyncio.to_thread(_real, session, message.path)
    if not await asyncio.to_thread(os.path.exists, path):
        return None  # the service reports it, and there is nothing to allow
    place = updates.ToolCallLocation(path)
    call = ToolCallState(v1.ToolCallId("read"), f"read {_short(session, path)}", "read", locations=(place,))
    return UseRequest(call, [("read", path)], "read")


async def _running(session: ServedSession, message: v1.CreateTerminalRequest) -> UseRequest:
    # A variable can change what a program does (PATH, LD_PRELOAD), so it is a part of the judged command. One that
    # only hides a secret from the command is not.
    variables = [f"{it.name}={it.value}" for it in message.env if it.value or not _SECRET.fullmatch(it.name)]
    words = [*(["env", *variables] if variables else []), message.command, *message.args]
    line = typed_command(message.command if len(words) == 1 else words)
    folder = "" if message.cwd is None else _short(session, await asyncio.to_thread(_real, session, message.cwd))
    call = ToolCallState(
        v1.ToolCallId("run"),
        f"run in {folder}: {line}" if folder not in ("", ".") else f"run {line}",
        "execute",
        raw_input={"command": message.command} if len(words) == 1 else {"command": words[0], "args": words[1:]},
    )
    use: Use = ("line", line) if len(words) == 1 or is_shell(words) else ("words", *words)
    return UseRequest(call, [use], ("run", line, folder))


class _DiffPart(NamedTuple):
    """A change of a part of a file, as a diff shows it."""

    path: str
    old: str
    new: str


def _making(patches: Sequence[_DiffPart], old: str, new: str) -> list[_DiffPart]:
    """Return those of these changes that turn one text into the other: one alone, or all in their order."""
    for patch in patches:
        if patch.old in old and new == old.replace(patch.old, patch.new, 1):
            return [patch]
    text = old
    for patch in patches:
        text = text.replace(patch.old, patch.new, 1)
    return list(patches) if patches and text == new else []


def _uses(question: PermissionQuestion) -> list[Use]:
    """Return the exact uses that an agent's own question asks for."""
    call, session = question.tool_call, question.session
    uses: list[Use] = []
    for diff in call.diffs:
        with suppress(RequestError):  # outside of the session's folders: it cannot be a lent file
            path = _real(session, diff.path)
            uses.append(_written(path, diff.new_text))
            if diff.old_text and len(diff.old_text) + len(diff.new_text) <= LONGEST_PATCH:
                uses.append(_DiffPart(path, diff.old_text, diff.new_text))
    if call.kind == "read":
        uses += [("read", str(path)) for path in question.paths]
    elif call.kind == "edit" and not call.diffs:
        uses += [("write", str(path)) for path in question.paths]
    if question.command is not None:
        uses += _command(question.command)
    return uses


def _lasting(question: PermissionQuestion, uses: Sequence[Use]) -> dict[Hashable, Sequence[Use]]:
    """Return what "always" covers as the answer to an agent's own question: its command, and each of its files."""
    lasting: dict[Hashable, Sequence[Use]] = {it[:2]: [it[:2]] for it in uses if it[0] in ("read", "write")}
    if question.command is not None:
        lasting["run", typed_command(question.command), ""] = [it for it in uses if it[0] in ("line", "words")]
    return lasting


def _written(path: str, text: str) -> Use:
    return "write", path, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _command(command: str | Sequence[str]) -> list[Use]:
    """Return a command as a line for a shell, and as words that no shell reads.

    Two lines are the same only letter by letter: `echo ';' x` and `echo ; x` have the same words.
    """
    line = typed_command(command)
    try:
        words = shlex.split(line)
    except ValueError:
        words = []
    return [("line", line), ("words", *words)]


def _real(session: ServedSession, path: str) -> str:
    """Return the real path; raises RequestError for a path outside the session's folders, before the user is asked."""
    return os.path.realpath(session.roots.locate(path).path)


def _short(session: ServedSession, path: str) -> str:
    folder = Path(os.path.realpath(session.cwd))
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(folder) else path
