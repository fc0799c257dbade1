"""A permission request as rules and users see it, and the choice of one of the agent's options.

The agent chooses how many files a tool call names and how long its command is, and rules examine all of it. So each has
a limit, far above what a user could judge. A request above a limit is refused before any work is done for it.

In version 2 a question has its own title, and may be about a tool call, a command, an unknown subject, or none. Rules,
remembered answers and displays need a tool call. So a question without one gets a substitute: with the question's
title, and with the command as its input. It is never added to the session's state.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import msgspec

from accord.errors import RequestError
from accord.project.confined import LONGEST, is_unicode
from accord.schema import v1
from accord.schema.base import Json, JsonObject
from accord.services.service import ServedSession
from accord.session import ToolCallState, updates

if TYPE_CHECKING:
    from accord.schema import v2

FILES = 1000
"""Files that one permission request may name."""

LONGEST_NAME = 255
"""Bytes of one name in a path: the limit of Linux, macOS and Windows."""

LONGEST_TEXT = 128 * 1024
"""Bytes of a command or a title: the limit of Linux for a shell line."""

MOST_OPTIONS = 100
"""Answers that one permission request may offer."""


def must_be_judgeable(tool_call: ToolCallState, options: Sequence[v1.PermissionOption]) -> None:
    """Raise RequestError (-32602) for a request above a bound."""
    if len(options) > MOST_OPTIONS:
        raise _too_much("options", len(options), MOST_OPTIONS, "offer fewer")
    files = len(tool_call.locations) + sum(
        isinstance(part, updates.TextDiff) or len(list(_changed(part))) for part in tool_call.content
    )
    if files > FILES:
        raise _too_much("files", files, FILES, "ask about fewer files at once")
    for path in _named(tool_call):
        _must_be_a_path(path)
    for what, size in (
        ("bytes of the title", _size(tool_call.title)),
        ("bytes of the command", _command_size(tool_call)),
    ):
        if size > LONGEST_TEXT:
            raise _too_much(what, size, LONGEST_TEXT, "shorten it, for instance by a script in a file")


def paths_of(tool_call: ToolCallState, cwd: Path) -> tuple[Path, ...]:
    """Return the files that a tool call names, by their real paths."""
    folders: dict[str, str] = {}
    return tuple(dict.fromkeys(Path(_real(os.path.join(cwd, path), folders)) for path in _named(tool_call)))  # noqa: PTH118


def command_of(tool_call: ToolCallState) -> str | Sequence[str] | None:
    """The command of a tool call: a shell line, or a program and its arguments."""
    words = _command_words(tool_call)
    if isinstance(words, str):
        return words
    if words is not None:
        return [str(word) for word in words]
    return tool_call.title.strip("` ") or None if tool_call.kind == "execute" else None


def _command_words(tool_call: ToolCallState) -> str | list[Any] | None:
    given: Any = tool_call.raw_input
    if not isinstance(given, Mapping):
        return None
    fields = cast("Mapping[str, Any]", given)
    command = fields.get("command", fields.get("cmd"))
    if isinstance(command, str) and command:
        arguments = fields.get("args")
        return [command, *cast("list[Any]", arguments)] if isinstance(arguments, list) else command
    return cast("list[Any]", command) if isinstance(command, list) and command else None


def _command_size(tool_call: ToolCallState) -> int:
    words = _command_words(tool_call)
    if words is None or isinstance(words, str):
        return _size(words or "")
    return sum(1 + (_size(word) if isinstance(word, str) else len(repr(word))) for word in words)


def _named(tool_call: ToolCallState) -> Iterator[str]:
    for location in tool_call.locations:
        yield location.path
    for part in tool_call.content:
        if isinstance(part, updates.TextDiff):
            yield part.path
        else:
            yield from _changed(part)


def _changed(part: object) -> Iterator[str]:
    """Return the files that a diff of version 2 names; none for anything else."""
    changes: Sequence[object] = getattr(part, "changes", ())
    for change in changes:
        for name in ("old_path", "path"):
            if isinstance(path := getattr(change, name, None), str):
                yield path


def _must_be_a_path(path: str) -> None:
    if len(path) > LONGEST or _size(path) > LONGEST:
        raise _too_much("bytes of a path", _size(path), LONGEST, "name a shorter one", path=path[:200])
    if "\0" in path or not is_unicode(path):
        raise RequestError.invalid_params("path must be valid Unicode without null bytes", path=ascii(path)[:200])
    if len(path) > LONGEST_NAME and (longest := max(map(_size, path.split("/")))) > LONGEST_NAME:
        raise _too_much("bytes of a name in a path", longest, LONGEST_NAME, "name a shorter one", path=path[:200])


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _too_much(what: str, given: int, allowed: int, remedy: str, **data: str) -> RequestError:
    return RequestError.invalid_params(
        f"too many {what} in a permission request: {given}, at most {allowed} are allowed; {remedy}", **data
    )


def _real(path: str, folders: dict[str, str]) -> str:
    """Like `os.path.realpath`, but resolves a folder once for all of its files."""
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    real = os.path.join(folders[folder], name)  # noqa: PTH118
    return os.path.realpath(real) if os.path.islink(real) else real  # noqa: PTH114


Choice: TypeAlias = "v1.PermissionOption | str | bool | None"
"""An answer: an option or its id; True for allow (once, if that is offered); False or None for reject."""

Ask: TypeAlias = "Callable[[PermissionQuestion], Choice | Awaitable[Choice]]"
"""A function, async or not, that asks the user."""

Level = Literal["none", "ask", "edit", "auto"]
"""How much an agent may do before anyone is asked.

| | reading in the session's folders | changing files there | commands, and all else |
|---|---|---|---|
| `none` | asked | asked | asked |
| `ask` | allowed | asked | asked |
| `edit` | allowed | allowed | asked |
| `auto` | allowed | allowed | allowed |
"""

LEVELS: tuple[Level, ...] = get_args(Level)

_READS = ("read", "search", "think")
_OWN = frozenset({".git", ".accord"})
"""Folders whose files determine what is executed later; at the level `edit`, changing one needs a question, too."""


@dataclass(frozen=True)
class PermissionQuestion:
    """A permission request: may the agent run this tool call?"""

    session: ServedSession
    """The session that the tool call belongs to."""
    tool_call: ToolCallState
    """The tool call, with all of its updates so far.

    An agent of version 2 may ask about a command, or by a title alone. Then this is a substitute: it has the question's
    title, and the command as its input, and is not in the session's state.
    """
    options: Sequence[v1.PermissionOption]
    """The answers that the agent offers."""
    asked: str | None = None
    """The question's own title, which agents of version 2 send; `title` is the text to show in either version."""
    description: str | None = None
    """More about the question; None from agents of version 1."""
    subject: v2.RequestPermissionSubject | None = None
    """The subject of the question, from an agent of version 2; None if it sends none, and from version 1."""
    meta: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """The `_meta` of the request."""
    answer_meta: JsonObject = field(default_factory=dict[str, Json])
    """The `_meta` of the answer: fill it in before you answer."""

    @property
    def title(self) -> str:
        """The question in one line: its own title, or that of its tool call."""
        return self.tool_call.title if self.asked is None else self.asked

    @property
    def allow(self) -> v1.PermissionOption | None:
        """The option that allows, once if that is offered."""
        return self.option("allow_once", "allow_always")

    @property
    def reject(self) -> v1.PermissionOption | None:
        """The option that rejects, once if that is offered."""
        return self.option("reject_once", "reject_always")

    def option(self, *kinds: v1.PermissionOptionKind) -> v1.PermissionOption | None:
        """The first option of the first of these kinds that is offered."""
        return next((option for kind in kinds for option in self.options if option.kind == kind), None)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The files that the tool call names, by their real paths."""
        return paths_of(self.tool_call, Path(self.session.cwd))

    @cached_property
    def command(self) -> str | Sequence[str] | None:
        """The command of the tool call: a shell line, or a program and its arguments."""
        return command_of(self.tool_call)

    def chosen(self, choice: Choice) -> v1.PermissionOption | None:
        """Return the option that a choice means; None if the agent offers none of that kind."""
        if choice is True:
            return self.allow
        if choice is False or choice is None:
            return self.reject
        option_id = choice.option_id if isinstance(choice, v1.PermissionOption) else choice
        for option in self.options:
            if option.option_id == option_id:
                return option
        offered = ", ".join(sorted(option.option_id for option in self.options))
        raise ValueError(f"option {option_id!r} was not offered; the agent offers {offered or 'none'}")


def level_of(question: PermissionQuestion) -> Level:
    """The lowest level that allows this without asking.

    A tool call that reads and names no files needs no level, because the client reads nothing for it.
    """
    call, roots = question.tool_call, question.session.roots
    if question.command is not None or not all(path in roots for path in question.paths):
        return "auto"
    if call.kind in _READS:
        return "ask"
    names = [roots.locate(path).names for path in question.paths]
    return "edit" if call.kind == "edit" and names and not any(map(_OWN.intersection, names)) else "auto"


def refuse(_: PermissionQuestion) -> bool:
    """Refuse everything that nobody has allowed before."""
    return False


NO_TOOL_CALL = v1.ToolCallId("")
"""The id of a substitute tool call."""


def question_of(request: v2.RequestPermissionRequest, session: ServedSession) -> PermissionQuestion:
    """Return the question in this request; its changes of a tool call are applied first. Raises RequestError."""
    for what, text in (("title", request.title), ("description", request.description or "")):
        if len(text) > LONGEST_TEXT:
            raise RequestError.invalid_params(
                f"the {what} of a permission request has {len(text):,} characters, at most {LONGEST_TEXT:,} are allowed"
            )
    options = [v1.PermissionOption(it.option_id, it.name, cast("Any", it.kind)) for it in request.options]
    return PermissionQuestion(
        session,
        _asked_tool_call(request, session),
        options,
        asked=request.title,
        description=request.description,
        subject=request.subject,
        meta=request.meta or {},
    )


def _asked_tool_call(request: v2.RequestPermissionRequest, session: ServedSession) -> ToolCallState:
    from accord.schema import v2

    match request.subject:
        case v2.ToolCallPermissionSubject(tool_call=said):
            return session.fold(cast("Any", said))
        case v2.CommandPermissionSubject(command=command, cwd=cwd, tool_call_id=call_id):
            raw = {"command": command, "cwd": cwd}
            return ToolCallState(call_id or NO_TOOL_CALL, request.title, "execute", raw_input=raw)
        case _:
            return ToolCallState(NO_TOOL_CALL, request.title)


def response_of(response: v1.RequestPermissionResponse) -> v2.RequestPermissionResponse:
    """The answer in the words of version 2."""
    from accord.schema import v2

    outcome = response.outcome
    if isinstance(outcome, v1.SelectedPermissionOutcome):
        answer = v2.RequestPermissionResponse.selected(outcome.option_id)
    else:
        answer = v2.RequestPermissionResponse.cancelled()
    return msgspec.structs.replace(answer, meta=response.meta)
