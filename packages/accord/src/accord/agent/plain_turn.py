"""What plain functions of an agent hold: the turn, its tool calls, the session and so on, without `async`.

    @agent.on_prompt
    def reply(turn: accord.sync.Turn) -> None:
        with turn.tool("Add up", kind="think") as tool:
            tool.text(str(2 + 2))
        turn.say("Done.")

Each has the members of the class with `async` of the same name, and an `AuthorThread` by which it reaches the event
loop. `tools/sync_faces.py` writes them, and nothing above the line that says so.
"""

# pyright: reportIncompatibleVariableOverride=false, reportPrivateUsage=false
# ruff: noqa: A002

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, ExitStack
from copy import copy
from functools import partial, wraps
from os import PathLike
from pathlib import Path, PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload
from weakref import WeakKeyDictionary

from accord._internal.endpoint import Endpoint
from accord._internal.tasks import in_thread, name_of
from accord.agent import (
    authentication,
    plan,
    remote_client,
    session,
    session_config,
    session_mcp,
    subagent,
    tool,
    tool_command,
    turn,
    turn_files,
    user_questions,
)
from accord.agent.author_thread import AuthorThread, Face, held_of
from accord.agent.form_schema import Content
from accord.agent.remote_client import CommandResult
from accord.agent.session import ClientSystemPrompt, StateT
from accord.agent.session_config import SlashCommand, Values
from accord.agent.tool import Location
from accord.agent.turn import AddedPrompt
from accord.agent.user_questions import Decision, Elicited, Offered
from accord.engine.handlers import MessageT
from accord.engine.interceptors import Registration
from accord.errors import McpServerError
from accord.mcp import mcp_server
from accord.mcp.catalog import McpMessage, McpPrompt, McpResource, McpResult, McpTool
from accord.mistakes import WrongReturn, check_callable, place_of, shown
from accord.project.confined import Roots
from accord.schema import v1
from accord.schema.base import Json, Notification, Request
from accord.schema.capabilities import Capabilities
from accord.session import SessionState, updates

if TYPE_CHECKING:
    from accord.agent.model_answer import ModelAnswer, ModelStream
    from accord.agent.model_messages import Api
    from accord.agent.skills import AgentSkill
    from accord.schema import v2

ResultT = TypeVar("ResultT")
T = TypeVar("T")


class Task(Face[asyncio.Task[T]]):
    """A function that runs in another thread; `turn.start(...)` and `session.start(...)` make it."""

    def result(self) -> T:
        """Wait until it has ended; returns what it returned, or raises its error."""
        return self._portal.wait(lambda: self._held)

    def cancel(self) -> None:
        """Raise `asyncio.CancelledError` in the function, at what it next asks of its turn or session."""
        self._portal.read(self._held.cancel)

    def done(self) -> bool:
        """Whether it has ended."""
        return self._held.done()


def call_plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """This function as an `async` one, which calls it in a thread with the face of its first argument."""

    @wraps(function)
    async def called(*arguments: Any) -> Any:
        thread = AuthorThread()
        given = tuple(_face_of(thread, it) for it in arguments)
        return await thread.run(partial(_call, function, given), f"accord {name_of(function)}")

    called.__annotations__ = {}  # those of the function are not what this one takes
    return called


def _face_of(thread: AuthorThread, held: Any) -> Any:
    if isinstance(held, turn.Turn):
        return Turn(thread, held)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(held, session.Session):
        return Session(thread, held)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return Login(thread, held) if isinstance(held, authentication.Login) else held


def _call(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """In the thread: call the function, and say what a generator yields; give what another function returned."""
    result: Any = function(*given)
    if isinstance(result, Iterator) and isinstance(given[0], Turn):
        said = cast("Iterator[Any]", result)
        try:
            for part in said:
                given[0].say(part)
        finally:
            if isinstance(said, Generator):
                cast("Generator[Any]", said).close()
        return None
    if isinstance(result, Awaitable | AsyncIterator):
        if isinstance(result, Coroutine):
            result.close()
        returned = shown(cast("object", result))
        raise WrongReturn(
            f"{place_of(function)}, is a plain function, and returned {returned}; write `async def`, or put "
            "@functools.wraps(...) on a function that wraps an `async` one"
        )
    return cast("object", result)


def started(function: Callable[..., T], arguments: tuple[Any, ...]) -> Callable[[], Coroutine[Any, Any, T]]:
    """Begins to call this function in a thread, from the event loop."""
    check_callable("start()", function)
    return lambda: AuthorThread().run(partial(function, *arguments), f"accord {name_of(function)}")


def read_in_threads(stream: ModelStream) -> AsyncIterable[Any]:
    """These events, for the event loop, which must not wait for them itself."""
    return stream if isinstance(stream, AsyncIterable) else _events_of(stream)


async def _events_of(stream: Iterable[Any]) -> AsyncGenerator[Any]:
    ended = object()
    following = in_thread(partial(next, iter(stream), ended))
    try:
        while (event := await following()) is not ended:
            yield event
    finally:
        if (close := getattr(stream, "close", None)) is not None:
            close()


def registration_of(portal: AuthorThread, held: Registration[MessageT]) -> Registration[MessageT]:
    """Registers the handler in the event loop, and removes it there."""
    register: Callable[[Callable[..., Any]], object] = cast("Any", held)

    def registered(handler: Callable[..., Any]) -> Callable[[], None]:
        portal.read(lambda: register(handler))
        return lambda: portal.read(held.remove)

    return Registration(registered)


_resources: WeakKeyDictionary[Any, ExitStack] = WeakKeyDictionary()


def resources_of(portal: AuthorThread, held: session.Session[Any]) -> ExitStack:
    """What is closed when this session is."""

    def find() -> ExitStack:
        if held not in _resources:
            _resources[held] = stack = ExitStack()
            held.resources.push_async_callback(in_thread(stack.close))
        return _resources[held]

    return portal.read(find)


# Generated by tools/sync_faces.py from here to the end; do not edit.


class ElicitedUrl(Face[user_questions.ElicitedUrl]):
    """What came of sending the user to a URL; it is true if they agreed to go.

    What they do there, only the page knows.
    """

    @property
    def action(self) -> str:
        """`accept`, `decline` or `cancel`; `unavailable` where the client cannot send its user anywhere."""
        return self._held.action

    @property
    def id(self) -> v1.ElicitationId:
        """The id that the client knows the visit by."""
        return self._held.id

    @property
    def meta(self) -> dict[str, Json]:
        """The `_meta` of the client's answer."""
        return self._held.meta

    @property
    def accepted(self) -> bool:
        """Whether the user agreed to go there: it has begun, and is not done."""
        return self._portal.read(lambda: self._held.accepted)

    def complete(self) -> None:
        """Tell the client that what the user was sent there for is done."""
        self._portal.wait(self._held.complete)


class Elicits(Face[user_questions.Elicits]):
    """What asks the user for input: the base of `Turn`, `Tool` and `Login`."""

    @overload
    def elicit(
        self, message: str, form: type[T], *, fallback: T | None = None, meta: dict[str, Json] | None = None
    ) -> Elicited[T]: ...

    @overload
    def elicit(
        self,
        message: str,
        form: v1.ElicitationSchema,
        *,
        fallback: Content | None = None,
        meta: dict[str, Json] | None = None,
    ) -> Elicited[Content]: ...

    def elicit(
        self, message: str, form: Any, *, fallback: Any = None, meta: dict[str, Json] | None = None
    ) -> Elicited[Any]:
        """Ask the user to fill in a form: what a class holds, or an `ElicitationSchema`.

        It is for nothing secret: what the user types passes through the client, and often through a model. `meta` is
        the request's `_meta`.
        """
        return self._portal.wait(lambda: self._held.elicit(message, form, fallback=fallback, meta=meta))

    def elicit_url(self, message: str, url: str, *, meta: dict[str, Json] | None = None) -> ElicitedUrl:
        """Ask the user to visit a URL: for what must not pass through the client, such as logging in.

        Put no secret into the URL: everyone who sees it can open it. `meta` is the request's `_meta`.
        """
        held = self._portal.wait(lambda: self._held.elicit_url(message, url, meta=meta))
        return ElicitedUrl(self._portal, held)


class SentMessage(Face[turn.SentMessage]):
    """A message of the agent that can be replaced later."""

    @property
    def id(self) -> updates.MessageId:
        """The message's id; with version 1, that of the latest message."""
        return self._held.id

    def replace(self, *content: str | v1.ContentBlock, meta: dict[str, Json] | None = None) -> None:
        """Say this in its place; `meta` is the message's `_meta`."""
        self._portal.wait(lambda: self._held.replace(*content, meta=meta))

    def clear(self) -> bool:
        """Take back what it says. False, and nothing sent, with version 1, where what was said stays."""
        return self._portal.wait(self._held.clear)


class TurnPlan(Face[plan.TurnPlan]):
    """What the agent means to do, step by step."""

    @property
    def id(self) -> updates.PlanId:
        """The plan's id among the plans of the session."""
        return self._held.id

    @property
    def entries(self) -> list[updates.PlanEntry]:
        """The steps as they are now."""
        return self._held.entries

    def start(self, step: int | str) -> None:
        """This step, by its place or its words, is being worked on."""
        self._portal.wait(lambda: self._held.start(step))

    def done(self, step: int | str) -> None:
        """This step is done."""
        self._portal.wait(lambda: self._held.done(step))

    def mark(self, step: int | str, status: updates.PlanEntryStatus) -> None:
        """Give a step, by its place or its words, this status: `pending`, `in_progress`, `completed` or `cancelled`."""
        self._portal.wait(lambda: self._held.mark(step, status))

    def add(self, *entries: str | updates.PlanEntry) -> None:
        """More steps, at the end."""
        self._portal.wait(lambda: self._held.add(*entries))

    def step(self, step: int | str) -> AbstractContextManager[None]:
        """This step, from its beginning to its end; one that fails stays begun."""
        return self._portal.block(lambda: self._held.step(step))

    def send(self) -> None:
        """Send the whole plan to the client."""
        self._portal.wait(self._held.send)

    def remove(self) -> None:
        """Take the plan away, because it no longer applies."""
        self._portal.wait(self._held.remove)


class PlanDocument(Face[plan.PlanDocument]):
    """A plan as Markdown, given as text or in a file; `turn.plan_document(...)` makes it."""

    @property
    def id(self) -> updates.PlanId:
        """The plan's id among the plans of the session."""
        return self._held.id

    def replace(self, content: str | PurePath) -> None:
        """Show this in its place: text is Markdown, a `Path` is a file with Markdown, which is read now."""
        self._portal.wait(lambda: self._held.replace(content))

    def remove(self) -> None:
        """Take the plan away, because it no longer applies."""
        self._portal.wait(self._held.remove)


class RemoteTerminal(Face[remote_client.RemoteTerminal]):
    """A command that the client runs for us, from `with` to its end."""

    @property
    def is_released(self) -> bool:
        """Whether the client has been told to release it."""
        return self._held.is_released

    @property
    def id(self) -> v1.TerminalId:
        """The client's id of the terminal."""
        return self._portal.read(lambda: self._held.id)

    def output(self) -> v1.TerminalOutputResponse:
        """The output so far, and how the command ended if it has."""
        return self._portal.wait(self._held.output)

    def wait(self) -> v1.WaitForTerminalExitResponse:
        """Wait until the command ends."""
        return self._portal.wait(self._held.wait)

    def kill(self) -> None:
        """End the command. Its output can still be read."""
        self._portal.wait(self._held.kill)

    def run_out(self, timeout: float | None = None) -> CommandResult:
        """Wait until the command ends, or kill it after `timeout` seconds; returns its output and exit code."""
        return self._portal.wait(lambda: self._held.run_out(timeout))

    def __enter__(self) -> Self:
        self._portal.wait(self._held.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal.wait(lambda: self._held.__aexit__(kind, error, trace))


class ClientLink(Face[remote_client.ClientLink]):
    """The client: what it declared, and any message to it."""

    @property
    def info(self) -> v1.Implementation | None:
        """Its name and version, where it told them."""
        return self._portal.read(lambda: self._held.info)

    @property
    def meta(self) -> dict[str, Json]:
        """The `_meta` of its `initialize`, where clients announce extensions; empty if it had none."""
        return self._portal.read(lambda: copy(self._held.meta))

    @property
    def version(self) -> int:
        """The version of the protocol that it speaks: 1 or 2."""
        return self._portal.read(lambda: self._held.version)

    @property
    def capabilities(self) -> Capabilities:
        """What it declared, by name: `client.capabilities.has("session.notices")`."""
        return self._portal.read(lambda: self._held.capabilities)

    @property
    def can_read_files(self) -> bool:
        """Whether it lends files to read, or `Agent(local=...)` stands in."""
        return self._portal.read(lambda: self._held.can_read_files)

    @property
    def can_write_files(self) -> bool:
        """Whether files can be written."""
        return self._portal.read(lambda: self._held.can_write_files)

    @property
    def can_run_commands(self) -> bool:
        """Whether commands can be run."""
        return self._portal.read(lambda: self._held.can_run_commands)

    def request(self, request: Request[ResultT], *, force: bool = False) -> ResultT:
        """Any request."""
        return self._portal.wait(lambda: self._held.request(request, force=force))

    def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Any notification."""
        self._portal.wait(lambda: self._held.notify(notification, force=force))

    def request_raw(self, method: str, params: Json = None) -> Json:
        """Any request, in plain JSON values."""
        return self._portal.wait(lambda: self._held.request_raw(method, params))

    def notify_raw(self, method: str, params: Json = None) -> None:
        """Any notification, in plain JSON values."""
        self._portal.wait(lambda: self._held.notify_raw(method, params))


class RemoteClient(ClientLink):
    """The client, as one session uses it."""

    _held: remote_client.RemoteClient

    def read_text_file(
        self,
        path: str | PathLike[str],
        *,
        line: int | None = None,
        limit: int | None = None,
        meta: dict[str, Json] | None = None,
    ) -> str:
        """A file's text as the editor has it, or `limit` lines of it from `line` (1-based) on."""
        return self._portal.wait(lambda: self._held.read_text_file(path, line=line, limit=limit, meta=meta))

    def write_text_file(self, path: str | PathLike[str], content: str, *, meta: dict[str, Json] | None = None) -> None:
        """Write a file through the editor; it is created where it is missing."""
        self._portal.wait(lambda: self._held.write_text_file(path, content, meta=meta))

    def terminal(
        self,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        output_byte_limit: int | None = None,
        meta: dict[str, Json] | None = None,
    ) -> RemoteTerminal:
        """A command that the client runs, as a context manager that releases the terminal at its end."""
        held = self._portal.read(
            lambda: self._held.terminal(command, args, env=env, cwd=cwd, output_byte_limit=output_byte_limit, meta=meta)
        )
        return RemoteTerminal(self._portal, held)

    def run(
        self,
        command: str,
        args: Sequence[str] = (),
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        output_byte_limit: int | None = None,
        meta: dict[str, Json] | None = None,
    ) -> CommandResult:
        """Run a command to its end, or kill it after `timeout` seconds; its output either way."""
        return self._portal.wait(
            lambda: self._held.run(
                command, args, timeout=timeout, env=env, cwd=cwd, output_byte_limit=output_byte_limit, meta=meta
            )
        )


class TurnFiles(Face[turn_files.TurnFiles]):
    """The files of a session, as one turn reads and writes them."""

    def read(self, path: str | PathLike[str], *, line: int | None = None, limit: int | None = None) -> str:
        """A file's text, or `limit` lines of it from `line` (1-based) on.

        A relative path starts at `cwd`. Raises PeerError for a file that does not exist, cannot be read, or is outside
        the session's folders.
        """
        return self._portal.wait(lambda: self._held.read(path, line=line, limit=limit))

    def write(self, path: str | PathLike[str], text: str) -> None:
        """Write a file; it is created where it is missing. Raises PeerError as `read` does."""
        self._portal.wait(lambda: self._held.write(path, text))


class ToolCommand(Face[tool_command.ToolCommand]):
    """A command that a tool call runs and shows; `tool.command(...)` makes it."""

    @property
    def command(self) -> list[str]:
        """The program and its arguments."""
        return self._held.command

    def wait(self, timeout: float | None = None) -> CommandResult:
        """Wait until the command ends, or kill it after `timeout` seconds; its output and exit code either way."""
        return self._portal.wait(lambda: self._held.wait(timeout))

    def output(self) -> str:
        """The output so far, stdout and stderr together."""
        return self._portal.wait(self._held.output)

    def kill(self) -> None:
        """End the command and everything that it started. Its output can still be read."""
        self._portal.wait(self._held.kill)

    def __enter__(self) -> Self:
        self._portal.wait(self._held.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal.wait(lambda: self._held.__aexit__(kind, error, trace))


class Tool(Elicits):
    """One tool call; `turn.tool(...)` makes it."""

    _held: tool.Tool

    @property
    def id(self) -> v1.ToolCallId:
        """The tool call's id, which the client knows as well."""
        return self._held.id

    @property
    def title(self) -> str:
        """What the user reads; `retitle` changes it."""
        return self._held.title

    @property
    def kind(self) -> updates.ToolKind | None:
        """What kind of work it is, such as `edit` or `execute`."""
        return self._held.kind

    @property
    def status(self) -> updates.ToolCallStatus:
        """How it stands for the client."""
        return self._held.status

    @property
    def is_cancelled(self) -> bool:
        """Whether the client has cancelled this tool call alone, which `turn.tool(cancellable=True)` lets it do."""
        return self._portal.read(lambda: self._held.is_cancelled)

    def text(self, text: str) -> None:
        """More text of its output."""
        self._portal.wait(lambda: self._held.text(text))

    def content(self, *content: str | updates.ContentBlock | updates.ToolCallContent) -> None:
        """More content: text, an image, a diff and so on."""
        self._portal.wait(lambda: self._held.content(*content))

    def diff(self, path: str | PathLike[str], old: str | None, new: str | None) -> None:
        """A file's change, by its whole text before (None for a new file) and after (None for a deleted file)."""
        self._portal.wait(lambda: self._held.diff(path, old, new))

    def terminal(self, terminal: RemoteTerminal | updates.TerminalId) -> None:
        """Show this terminal's output as it grows: by its id, or as text to a client that has no terminals."""
        self._portal.wait(lambda: self._held.terminal(held_of(terminal)))

    def command(
        self, command: Sequence[str], *, cwd: str | PathLike[str] | None = None, env: Mapping[str, str] | None = None
    ) -> ToolCommand:
        """Run a command and show its output here, as a context manager that ends it."""
        held = self._portal.read(lambda: self._held.command(command, cwd=cwd, env=env))
        return ToolCommand(self._portal, held)

    def clear(self) -> None:
        """Take back all content so far."""
        self._portal.wait(self._held.clear)

    def locations(self, *locations: Location) -> None:
        """The files that it works on now."""
        self._portal.wait(lambda: self._held.locations(*locations))

    def raw_input(self, value: Json) -> None:
        """What the model gave it, as plain JSON values."""
        self._portal.wait(lambda: self._held.raw_input(value))

    def raw_output(self, value: Json) -> None:
        """What it gives the model, as plain JSON values."""
        self._portal.wait(lambda: self._held.raw_output(value))

    def set_meta(self, meta: dict[str, Json]) -> None:
        """Change its `_meta`: each name that is given, and no other."""
        self._portal.wait(lambda: self._held.set_meta(meta))

    def retitle(self, title: str) -> None:
        """Say better what it does."""
        self._portal.wait(lambda: self._held.retitle(title))

    def ask(self, *options: Offered, about: str | None = None, meta: dict[str, Json] | None = None) -> Decision:
        """Ask the user whether it may run; a refusal marks it failed.

        Without options: allow once, always, and reject once. An "always" is remembered for the same kind and title, or
        `about` in the title's place, and not asked for again. `meta` is the request's `_meta`; that of the answer is
        in the decision.
        """
        return self._portal.wait(lambda: self._held.ask(*options, about=about, meta=meta))

    def start(self) -> None:
        """It runs; only needed after `pause`, and where it should be said before the block waits for anything."""
        self._portal.wait(self._held.start)

    def pause(self) -> None:
        """It stands still until `start` is called; version 1 has no word for that, and says `in_progress`."""
        self._portal.wait(self._held.pause)

    def fail(self, reason: str | None = None) -> None:
        """It did not work."""
        self._portal.wait(lambda: self._held.fail(reason))

    def __enter__(self) -> Self:
        self._portal.wait(self._held.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal.wait(lambda: self._held.__aexit__(kind, error, trace))


class RunningCompaction(Face[session.RunningCompaction]):
    """A compaction of the agent's context, from its beginning to its end; `session.compaction()` makes it."""

    @property
    def id(self) -> updates.CompactionId:
        """The compaction's id, which the client knows as well."""
        return self._held.id

    @property
    def is_shown(self) -> bool:
        """Whether the client shows compactions; it is told nothing otherwise."""
        return self._held.is_shown

    @property
    def status(self) -> updates.CompactionStatus:
        """How it stands: `in_progress`, `completed`, `failed` or `cancelled`."""
        return self._held.status

    def summary(self, content: str | v1.ContentBlock) -> None:
        """Show the next part of the summary: text, in Markdown, or any other content."""
        self._portal.wait(lambda: self._held.summary(content))

    def fail(self, reason: str) -> None:
        """End it as failed, for this reason, which the user reads."""
        self._portal.wait(lambda: self._held.fail(reason))

    def __enter__(self) -> Self:
        self._portal.wait(self._held.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal.wait(lambda: self._held.__aexit__(kind, error, trace))


class Commands(Face[session_config.Commands]):
    """A session's commands; changing them tells the client."""

    @property
    def skills(self) -> Sequence[AgentSkill]:
        """The skills that are offered beside the commands."""
        return self._held.skills

    @property
    def shows_skills(self) -> bool:
        """Whether the client shows skills as such, which only version 2 has."""
        return self._portal.read(lambda: self._held.shows_skills)

    def add(
        self,
        name: str,
        description: str,
        function: Callable[..., Any],
        *,
        hint: str | None = None,
        meta: dict[str, Json] | None = None,
    ) -> None:
        """Offer this command in this session too; the client is told."""
        self._portal.wait(lambda: self._held.add(name, description, function, hint=hint, meta=meta))

    def remove(self, name: str) -> None:
        """Stop offering this command in this session; the client is told."""
        self._portal.wait(lambda: self._held.remove(name))

    def __iter__(self) -> Iterator[SlashCommand]:
        return iter(self._portal.read(lambda: list(self._held)))

    def __len__(self) -> int:
        return self._portal.read(self._held.__len__)

    def __contains__(self, name: str) -> bool:
        return self._portal.read(lambda: self._held.__contains__(name))


class Config(Face[session_config.Config]):
    """A session's config options: `session.config["model"]`.

    A change is sent to the client, except where the answer to a request of the client will contain it.
    """

    def select(
        self,
        option_id: str,
        name: str,
        values: Values,
        *,
        value: str | None = None,
        category: str | None = None,
        description: str | None = None,
    ) -> None:
        """Offer a choice of several values; the first is chosen unless `value` names another.

        Calling it again for the same option offers other values. Clients show options in the order in which they were
        offered, so offer the most important first. `category` is one of the protocol's, or a word of your own that
        begins with an underscore.
        """
        self._portal.wait(
            lambda: self._held.select(option_id, name, values, value=value, category=category, description=description)
        )

    def switch(
        self,
        option_id: str,
        name: str,
        *,
        value: bool | None = None,
        category: str | None = None,
        description: str | None = None,
    ) -> None:
        """Offer an option to turn on and off; it is off unless `value` is True.

        A client that does not support boolean options does not see it, and its value stays as it is.
        """
        self._portal.wait(
            lambda: self._held.switch(option_id, name, value=value, category=category, description=description)
        )

    def remove(self, option_id: str) -> None:
        """Stop offering this option."""
        self._portal.wait(lambda: self._held.remove(option_id))

    def __getitem__(self, option_id: str) -> str | bool:
        """The current value."""
        return self._portal.read(lambda: self._held.__getitem__(option_id))

    def __contains__(self, option_id: str) -> bool:
        return self._portal.read(lambda: self._held.__contains__(option_id))

    def __iter__(self) -> Iterator[str]:
        return iter(self._portal.read(lambda: list(self._held)))

    def values(self) -> dict[str, str | bool]:
        """The value of every option."""
        return self._portal.read(self._held.values)

    def set(self, option_id: str, value: str | bool) -> None:
        """Choose this value for the agent; the client is told."""
        self._portal.wait(lambda: self._held.set(option_id, value))


class Choice(Face[session_config.Choice]):
    """The first config option of one category, which older clients know by a name of its own."""

    def offer(self, values: Values, *, current: str | None = None, name: str | None = None) -> None:
        """Offer these values, by heading if there are many; the first is chosen unless `current` names another.

        `name` is what clients show above them.
        """
        self._portal.wait(lambda: self._held.offer(values, current=current, name=name))

    @property
    def current(self) -> str | None:
        """The id of the current value; None if the session offers none."""
        return self._portal.read(lambda: self._held.current)

    def set(self, value_id: str) -> None:
        """Choose this value for the agent; the client is told."""
        self._portal.wait(lambda: self._held.set(value_id))


class Modes(Choice):
    """A session's modes: the config option of category `mode`, under its older name."""

    _held: session_config.Modes


class Models(Choice):
    """A session's models: the config option of category `model`, which older clients know as `models`."""

    _held: session_config.Models


class McpServers(Face[mcp_server.McpServers]):
    """The tools, resources and prompts of a session's MCP servers, and ways to use them.

    A server that cannot be reached is left out, and `on_failure` is called with its error once. A server that dies is
    restarted when it is needed next.
    """

    def __len__(self) -> int:
        return self._portal.read(self._held.__len__)

    def start(self) -> None:
        """Begin to connect all servers in the background; otherwise they are connected when first needed."""
        self._portal.read(self._held.start)

    def tools(self) -> list[McpTool]:
        """The tools of all servers now."""
        return self._portal.wait(self._held.tools)

    def resources(self) -> list[McpResource]:
        """The resources of all servers now."""
        return self._portal.wait(self._held.resources)

    def prompts(self) -> list[McpPrompt]:
        """The prompts of all servers now."""
        return self._portal.wait(self._held.prompts)

    def failures(self) -> list[McpServerError]:
        """The errors of servers that cannot be reached; waits for those that are still connecting."""
        return self._portal.wait(self._held.failures)

    def tool(self, name: str) -> McpTool:
        """The tool of this name: `server/tool`, or `tool` if only one server has it; raises McpServerError."""
        return self._portal.wait(lambda: self._held.tool(name))

    def read(self, resource: McpResource) -> list[v1.EmbeddedResource]:
        """Read the contents of a resource."""
        return self._portal.wait(lambda: self._held.read(resource))

    def prompt(self, prompt: McpPrompt, arguments: dict[str, str] | None = None) -> list[McpMessage]:
        """Have a prompt filled in by its server."""
        return self._portal.wait(lambda: self._held.prompt(prompt, arguments))


class SessionServers(McpServers):
    """What a session's MCP servers offer, and ways to use it."""

    _held: session_mcp.SessionServers

    def call(
        self,
        turn: Turn,
        tool: McpTool | str,
        arguments: dict[str, Json] | None = None,
        *,
        ask: bool = False,
        timeout: float | None = None,
    ) -> McpResult:
        """Call a tool, as a tool call that the client sees; with `ask` only if the user allows it.

        A tool that fails says so in its result. McpServerError if there is no such tool, or its server is not there.
        """
        return self._portal.wait(lambda: self._held.call(held_of(turn), tool, arguments, ask=ask, timeout=timeout))

    def tell_failures(self) -> None:
        """Tell the user now what could not be told when it happened."""
        self._portal.wait(self._held.tell_failures)


class Login(Elicits):
    """A user logging in; what a function registered with `@agent.login` holds."""

    _held: authentication.Login

    @property
    def method_id(self) -> str:
        """The id of the login that the user has chosen."""
        return self._held.method_id


class Session(Face[session.Session[StateT]], Generic[StateT]):
    """One conversation: its id and folders, what it offers to choose from, and what it tells the client.

    Its type argument is the type of `state`: `Session[Notes]` for an `Agent(state=Notes)`.
    """

    @property
    def id(self) -> v1.SessionId:
        """The session's id, which the client knows as well."""
        return self._held.id

    @property
    def cwd(self) -> Path:
        """The folder that it works in, and the base of relative paths."""
        return self._held.cwd

    @property
    def roots(self) -> Roots:
        """Where its files and commands should stay: `cwd` and the additional directories."""
        return self._held.roots

    @property
    def mcp_servers(self) -> tuple[v1.McpServer, ...]:
        """The MCP servers that the client gave to this session."""
        return self._held.mcp_servers

    @property
    def meta(self) -> dict[str, Json]:
        """The `_meta` of the request that opened it."""
        return self._held.meta

    @property
    def answer_meta(self) -> dict[str, Json]:
        """What the `_meta` of the answer that opens it will hold: fill it in `@agent.on_session`."""
        return self._held.answer_meta

    @property
    def system_prompt(self) -> ClientSystemPrompt | None:
        """What the client wants added to your system prompt, or in its place; None if it said nothing this time."""
        return self._held.system_prompt

    @property
    def state(self) -> StateT:
        """Whatever you want to keep for this session: while it is open, or with `Agent(state=...)` in the store."""
        return self._held.state

    @state.setter
    def state(self, value: StateT) -> None:
        self._held.state = value

    @property
    def client(self) -> RemoteClient:
        """The client, between turns; what `turn.client` is asked ends with its turn."""
        return RemoteClient(self._portal, self._held.client)

    @property
    def config(self) -> Config:
        """The options that the user chooses from."""
        return Config(self._portal, self._held.config)

    @property
    def commands(self) -> Commands:
        """The slash commands."""
        return Commands(self._portal, self._held.commands)

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self._portal.read(lambda: self._held.agent)

    @property
    def program(self) -> str:
        """The module of the agent's code, and the agent's name: remembered answers are kept under it."""
        return self._portal.read(lambda: self._held.program)

    @property
    def modes(self) -> Modes:
        """The ways of working that the user chooses from."""
        held = self._portal.read(lambda: self._held.modes)
        return Modes(self._portal, held)

    @property
    def models(self) -> Models:
        """The models that the user chooses from."""
        held = self._portal.read(lambda: self._held.models)
        return Models(self._portal, held)

    @property
    def resources(self) -> ExitStack:
        """Closed when the session is, in a thread: `session.resources.enter_context(...)`."""
        return resources_of(self._portal, self._held)

    @property
    def title(self) -> str | None:
        """What the session is about, as it is listed."""
        return self._portal.read(lambda: self._held.title)

    def set_title(self, title: str | None) -> None:
        """Give the session a title, or take it away."""
        self._portal.wait(lambda: self._held.set_title(title))

    @property
    def info_meta(self) -> dict[str, Json] | None:
        """The `_meta` that the session has in lists."""
        return self._portal.read(lambda: copy(self._held.info_meta))

    def set_info_meta(self, meta: dict[str, Json] | None) -> None:
        """Give the session this `_meta` in lists, or take it away, and tell the client."""
        self._portal.wait(lambda: self._held.set_info_meta(meta))

    @property
    def mcp(self) -> SessionServers:
        """The MCP servers that the client gave to this session.

        They are connected when something is first asked of them, or already by `session.mcp.start()`.
        """
        held = self._portal.read(lambda: self._held.mcp)
        return SessionServers(self._portal, held)

    def provider(self, provider_id: str) -> Endpoint | None:
        """Where the models of this provider are reached now; None while the client has it disabled.

        A turn keeps the endpoint that it began with: see `turn.provider`.
        """
        return self._portal.read(lambda: self._held.provider(provider_id))

    def resolve(self, path: str | PathLike[str]) -> str:
        """This path as an absolute one; a relative path starts at `cwd`."""
        return self._portal.read(lambda: self._held.resolve(path))

    def history(self) -> SessionState:
        """Everything that was said and done in this session so far, also before it was loaded.

        It is read from the store each time, so a long session takes no memory between two calls: call it once a turn,
        for the messages that a model is to see.
        """
        return self._portal.wait(self._held.history)

    def messages_for(self, api: Api) -> list[Any]:
        """The conversation so far as messages for a model, as plain dicts that a request of this API takes."""
        return self._portal.wait(lambda: self._held.messages_for(api))

    def send(self, update: updates.Update) -> None:
        """Tell the client something, in a turn or between two.

        Usually a shorter way is there: `turn.say`, `turn.plan`, `session.set_title` and the like.
        """
        self._portal.wait(lambda: self._held.send(update))

    def notice(
        self,
        title: str,
        description: str | None = None,
        *,
        severity: str = "info",
        fallback: bool = False,
        meta: dict[str, Json] | None = None,
    ) -> bool:
        """Tell the user something beside the conversation, in a turn or between two.

        False, and nothing sent, if the client shows no notices; with `fallback` the agent then says it as a message.
        """
        return self._portal.wait(
            lambda: self._held.notice(title, description, severity=severity, fallback=fallback, meta=meta)
        )

    def suggest(self, *prompts: str | v1.ContentBlock | Sequence[str | v1.ContentBlock]) -> bool:
        """Suggest what the user may want to send next, the likeliest first; they replace the suggestions before."""
        return self._portal.wait(lambda: self._held.suggest(*prompts))

    @property
    def skills(self) -> Sequence[AgentSkill]:
        """The skills of `Agent(skills=...)` that it offers."""
        return self._portal.read(lambda: self._held.skills)

    @property
    def offers_suggestions(self) -> bool:
        """Whether the client offers the user what `suggest` sends."""
        return self._portal.read(lambda: self._held.offers_suggestions)

    def compaction(self) -> RunningCompaction:
        """A compaction of the agent's context, as a context manager, in a turn or between two."""
        held = self._portal.read(self._held.compaction)
        return RunningCompaction(self._portal, held)

    def on(self, message: type[MessageT]) -> Registration[MessageT]:
        """Handle this message of the client in this session only, until `remove` is called or the session is closed."""
        held = self._portal.read(lambda: self._held.on(message))
        return registration_of(self._portal, held)

    def start(self, function: Callable[..., T], *arguments: Any) -> Task[T]:
        """Call this function in another thread beside the turns, until it is done or the session is closed.

        A tool call of its own needs `turn.tool(..., background=True)`; to speak, begin work with `session.work`.
        """
        work = started(function, arguments)
        return Task(self._portal, self._portal.read(lambda: self._held.start(work())))

    def work(self) -> AbstractContextManager[Turn[StateT]]:
        """Begin to work without a prompt: a context manager that gives a `Turn` whose prompt is empty."""
        return self._portal.block(self._held.work, lambda held: Turn(self._portal, held))

    @property
    def background(self) -> Sequence[v2.BackgroundWork]:
        """What runs beside the turns as the client sees it: tool calls with `background=True`, and their terminals."""
        return self._portal.read(lambda: self._held.background)

    def save(self) -> None:
        """Keep `state` as it is now. It happens by itself at the end of a turn, and when the session is closed."""
        self._portal.wait(self._held.save)


class Turn(Elicits, Generic[StateT]):
    """One prompt being worked on."""

    _held: turn.Turn[StateT]

    @property
    def session(self) -> Session[StateT]:
        """The session, which outlasts the turn."""
        return Session(self._portal, self._held.session)

    @property
    def prompt(self) -> list[v1.ContentBlock]:
        """The prompt as it came: blocks of text, links, images and so on."""
        return self._held.prompt

    @property
    def command(self) -> str | None:
        """The slash command that the prompt calls, if it calls one that there is."""
        return self._held.command

    @property
    def arguments(self) -> str:
        """The text after the command's name."""
        return self._held.arguments

    @property
    def meta(self) -> dict[str, Json]:
        """The `_meta` of the prompt."""
        return self._held.meta

    @property
    def answer_meta(self) -> dict[str, Json]:
        """What the answer's `_meta` will hold."""
        return self._held.answer_meta

    @property
    def client(self) -> RemoteClient:
        """What the client lends: files and terminals."""
        return RemoteClient(self._portal, self._held.client)

    @property
    def text(self) -> str:
        """The prompt's text."""
        return self._portal.read(lambda: self._held.text)

    @property
    def cwd(self) -> Path:
        """The session's folder."""
        return self._portal.read(lambda: self._held.cwd)

    @property
    def files(self) -> TurnFiles:
        """The session's files: the client's where it lends them, else those of this machine inside its folders."""
        held = self._portal.read(lambda: self._held.files)
        return TurnFiles(self._portal, held)

    @property
    def skills(self) -> Sequence[AgentSkill]:
        """The skills that the prompt names, by `/name` at its beginning or by blocks; `read` gives their text."""
        return self._portal.read(lambda: self._held.skills)

    def prompts(self) -> Generator[AddedPrompt]:
        """The prompts that the user has sent since the turn began, with `Agent(second_prompt="steer")`."""
        return self._portal.iterate(self._held.prompts)

    def say(self, content: str | v1.ContentBlock, meta: dict[str, Json] | None = None) -> None:
        """Say something to the user: text, in Markdown, or any other content.

        What is said with nothing between is one message. `meta` is the `_meta` of this part of it.
        """
        self._portal.wait(lambda: self._held.say(content, meta))

    def message(self, *content: str | v1.ContentBlock, meta: dict[str, Json] | None = None) -> SentMessage:
        """Say this as a separate message, with this `_meta`; what is returned replaces it or takes it back."""
        held = self._portal.wait(lambda: self._held.message(*content, meta=meta))
        return SentMessage(self._portal, held)

    def think(self, content: str | v1.ContentBlock, *, meta: dict[str, Json] | None = None) -> None:
        """Show a thought: text, or any other content, with this `_meta`."""
        self._portal.wait(lambda: self._held.think(content, meta=meta))

    def stream_answer(self, stream: ModelStream, *, context: int | None = None) -> ModelAnswer:
        """Say what a model answers, as it streams, and return the whole answer, with the tools that it calls.

        `stream` has the events of OpenAI's chat completions, OpenAI's responses or Anthropic's messages: objects of
        their packages, dicts, or lines of server-sent events. It is read in threads, and closed at the end.
        """
        return self._portal.wait(lambda: self._held.stream_answer(read_in_threads(stream), context=context))

    def say_as_user(self, content: str | v1.ContentBlock, *, meta: dict[str, Json] | None = None) -> None:
        """Say something in the user's name, with this `_meta`."""
        self._portal.wait(lambda: self._held.say_as_user(content, meta=meta))

    def end_message(self) -> None:
        """What is said next is another message."""
        self._portal.read(self._held.end_message)

    def notice(
        self, title: str, description: str | None = None, *, severity: str = "info", meta: dict[str, Json] | None = None
    ) -> bool:
        """Tell the user something beside the conversation. False, and nothing sent, if the client shows no notices."""
        return self._portal.wait(lambda: self._held.notice(title, description, severity=severity, meta=meta))

    def send(self, update: updates.Update) -> None:
        """Send an update of any kind, such as one that has no method here."""
        self._portal.wait(lambda: self._held.send(update))

    def plan(
        self, *steps: str | updates.PlanEntry, id: str | None = None, meta: dict[str, Json] | None = None
    ) -> TurnPlan:
        """Show what you mean to do; what is returned marks its steps.

        A plan with an `id` stands beside the others of the session. A client that takes one plan gets the steps of all.
        `meta` is the `_meta` of each update of the plan.
        """
        held = self._portal.wait(lambda: self._held.plan(*steps, id=id, meta=meta))
        return TurnPlan(self._portal, held)

    def plan_document(
        self, content: str | PurePath, *, id: str | None = None, meta: dict[str, Json] | None = None
    ) -> PlanDocument:
        """Show a plan as a document: Markdown, as text or in a file. What is returned replaces or removes it.

        A file is read now, and named to the client. A client that takes one plan gets the list items as steps.
        `meta` is the `_meta` of each update of the plan.
        """
        held = self._portal.wait(lambda: self._held.plan_document(content, id=id, meta=meta))
        return PlanDocument(self._portal, held)

    def tool(
        self,
        title: str,
        *,
        kind: updates.ToolKind | None = None,
        name: str | None = None,
        id: str | None = None,
        locations: Sequence[Location] = (),
        raw_input: Json = None,
        background: bool = False,
        cancellable: bool = False,
        meta: dict[str, Json] | None = None,
    ) -> Tool:
        """A tool call, as a context manager."""
        held = self._portal.read(
            lambda: self._held.tool(
                title,
                kind=kind,
                name=name,
                id=id,
                locations=locations,
                raw_input=raw_input,
                background=background,
                cancellable=cancellable,
                meta=meta,
            )
        )
        return Tool(self._portal, held)

    def ask(
        self,
        title: str,
        *options: Offered,
        kind: updates.ToolKind | None = None,
        about: str | None = None,
        meta: dict[str, Json] | None = None,
    ) -> Decision:
        """Ask the user's permission for something that is not a tool call; see `Tool.ask`."""
        return self._portal.wait(lambda: self._held.ask(title, *options, kind=kind, about=about, meta=meta))

    def subagent(
        self,
        title: str,
        prompt: str | v1.ContentBlock | None = None,
        *,
        description: str | None = None,
        cancellable: bool = False,
        meta: dict[str, Json] | None = None,
    ) -> Subagent[StateT]:
        """A subagent, as a context manager: a turn in a session of its own, which the user can follow."""
        held = self._portal.read(
            lambda: self._held.subagent(title, prompt, description=description, cancellable=cancellable, meta=meta)
        )
        return Subagent(self._portal, held)

    def usage(
        self,
        used: int,
        size: int | None,
        cost: float | updates.Cost | None = None,
        currency: str = "USD",
        *,
        meta: dict[str, Json] | None = None,
    ) -> bool:
        """How full the model's context is, and what the session has cost so far.

        False, and nothing sent, while the size of the context is not known (None, or 0). A client that resumes the
        session is told the latest again.
        """
        return self._portal.wait(lambda: self._held.usage(used, size, cost, currency, meta=meta))

    def tokens(self, input: int, output: int, *, total: int | None = None, thought: int | None = None) -> None:
        """What the model has read and written, for the turn's answer.

        This is only proposed: the answer holds it where the agent says `unstable=True`.
        """
        self._portal.read(lambda: self._held.tokens(input, output, total=total, thought=thought))

    def provider(self, provider_id: str) -> Endpoint | None:
        """Where the models of this provider are reached; None while the client has it disabled.

        It stays the same for the whole turn. When the client has set another endpoint, do not send your own key there.
        """
        return self._portal.read(lambda: self._held.provider(provider_id))

    def start(self, function: Callable[..., T], *arguments: Any) -> Task[T]:
        """Call this function in another thread beside what the turn does.

        The turn ends only when it is done, and a cancel ends both.
        """
        work = started(function, arguments)
        return Task(self._portal, self._portal.read(lambda: self._held.start(work())))


class Subagent(Turn[StateT]):
    """A subagent at work; `turn.subagent(...)` makes it.

    It is a turn: whatever works on a `Turn` works on a `Subagent`. What it says, does and asks belongs to a session of
    its own, whose id is `id`. `session` is the session of the turn that started it. An error in its block ends it, and
    goes on to the code around the block.
    """

    _held: subagent.Subagent[StateT]

    @property
    def id(self) -> updates.SessionId:
        """The id of its session; a client that shows no subagents does not know it."""
        return self._held.id

    @property
    def title(self) -> str:
        """What the user reads; `retitle` changes it."""
        return self._held.title

    @property
    def was_cancelled(self) -> bool:
        """Whether the user has cancelled it alone; the code after its block can tell by this."""
        return self._portal.read(lambda: self._held.was_cancelled)

    def retitle(self, title: str) -> None:
        """Say better what it does."""
        self._portal.wait(lambda: self._held.retitle(title))

    def instruct(self, content: str | v1.ContentBlock) -> None:
        """Show a message from the session that started it: more for it to do."""
        self._portal.wait(lambda: self._held.instruct(content))

    def report(self, content: str | v1.ContentBlock) -> None:
        """Show a message to the session that started it: what it has found."""
        self._portal.wait(lambda: self._held.report(content))

    def __enter__(self) -> Self:
        self._portal.wait(self._held.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self._portal.wait(lambda: self._held.__aexit__(kind, error, trace))
