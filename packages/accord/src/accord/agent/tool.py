"""A tool call, from its announcement to its end.

    async with turn.tool("Run the tests", kind="execute") as tool:
        await tool.text("all green")

It is announced as `pending`, and becomes `in_progress` as soon as its block waits for something, unless it has asked
for permission and has no answer yet. It is `completed` when the block ends, and `failed` when the block raises or the
user refuses.

The wire replaces a tool call's content, so each update holds all of it. Changes are collected and sent at intervals,
which grow with the content: all updates together are never larger than a small multiple of the final content.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import codecs
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import msgspec

from accord.agent.remote_client import (
    CommandResult,
    RemoteTerminal,
    SessionClient,
    before_release,
    check_line,
    with_absolute_paths,
)
from accord.agent.session_activity import ToolSurroundings
from accord.agent.user_questions import Decision, Elicits, Offered, decided, options_of
from accord.errors import AccordError, CapabilityMissing, ConnectionClosed
from accord.mistakes import check_extensible_word, check_sequence, check_text
from accord.printable import fenced
from accord.schema import v1
from accord.schema.base import Json, JsonObject, Unknown, words_of
from accord.schema.sendable import check_meta, check_sendable, content_block, with_meta
from accord.session import updates

if TYPE_CHECKING:
    from accord.services.terminal_service import Terminal


# A terminal of the agent's machine, for a client without terminals: the text is read again and again while the command
# runs, and a last time before the terminal is released.


PAUSE = 0.1
"""Seconds between two checks of the output of a running command."""


class TerminalText:
    """A terminal's output, as content of a tool call; `on_growth` is called with the length of each addition."""

    def __init__(
        self,
        session: SessionClient,
        terminal_id: updates.TerminalId,
        on_growth: Callable[[int], None],
        meta: JsonObject | None,
    ) -> None:
        self._session = session
        self._request = v1.TerminalOutputRequest(session.session_id, terminal_id)
        self._on_growth = on_growth
        self._meta = meta
        self._output = ""
        self._following: asyncio.Task[None] | None = None

    @property
    def content(self) -> updates.Content:
        """The output so far, in a block that Markdown does not interpret."""
        return updates.Content(updates.TextContent(fenced(self._output)), meta=self._meta)

    async def begin(self) -> None:
        """Read the output now, and again while the command runs; raises the request's error."""
        if not await self._read():
            self._following = self._session.errands.start(self._follow(), "accord terminal output")

    async def end(self) -> None:
        """Read the output for the last time."""
        if self._following is not None:
            self._following.cancel()
            self._following = None
            with suppress(AccordError):  # the terminal was released
                await self._read()

    async def _follow(self) -> None:
        with suppress(AccordError):
            while not await self._read():  # noqa: ASYNC110 (a terminal tells nothing by itself)
                await asyncio.sleep(PAUSE)

    async def _read(self) -> bool:
        """Read the output; returns whether the command has ended."""
        response = await self._session.requester.request(self._request)
        before, self._output = self._output, response.output
        if self._output != before:
            self._on_growth(len(self._output) - len(before))
        return response.exit_status is not None


INTERVAL = 0.05
"""Seconds between two updates of one tool's content."""

FREE = 64 * 1024
"""Characters of content that may be sent before it matters how often."""

FACTOR = 3
"""How many times its content may be sent in total, once that is used up."""

KINDS = words_of(updates.ToolKind)

Location: TypeAlias = str | PathLike[str] | tuple[str | PathLike[str], int] | updates.ToolCallLocation
"""A file, or a file and a line (1-based)."""


class Tool(Elicits):
    """One tool call; `turn.tool(...)` makes it."""

    def __init__(
        self,
        surroundings: ToolSurroundings,
        tool_call_id: updates.ToolCallId,
        title: str,
        *,
        kind: updates.ToolKind | None = None,
        name: str | None = None,
        locations: Sequence[Location] = (),
        raw_input: Json = None,
        meta: JsonObject | None = None,
    ) -> None:
        if kind is not None and kind not in KINDS:
            check_extensible_word("turn.tool(kind=...)", kind, KINDS)
        self.id: v1.ToolCallId = tool_call_id
        """The tool call's id, which the client knows as well."""
        self.title: str = title
        """The title that the user reads; `retitle` changes it."""
        self.kind: updates.ToolKind | None = kind
        """The kind of work, such as `edit` or `execute`."""
        self.status: updates.ToolCallStatus = "pending"
        """Its status for the client."""
        self._client = surroundings.client
        self._session = surroundings.session
        self._scope = {"session_id": self._session.session_id, "tool_call_id": tool_call_id}
        self._surroundings = surroundings
        self._send = surroundings.send
        self._detached = surroundings.detached
        self._name = name
        self._content: list[updates.ToolCallContent | TerminalText | CommandText] = []
        self._text: list[str] = []
        self._shown_as_text: list[TerminalText] = []
        self._locations = [self._location(it) for it in locations]
        self._raw_input = raw_input
        self._meta = meta
        self._unsent: dict[str, Any] = {}
        self._stale = False
        """Whether the client has older content than is here."""
        self._size = 0
        """The approximate size of its content."""
        self._produced = 0
        """The size of all content it has had, including removed content."""
        self._sent = 0
        """How much of it was sent, in all updates together."""
        self._sent_at = -INTERVAL
        self._timer: asyncio.Handle | None = None
        self._has_begun = False
        """Whether the block was entered, so that the client knows the tool call."""
        self._is_misused = False
        """Whether the author was warned that the `async with` is missing."""

    def __repr__(self) -> str:
        return f"Tool({self.title!r}, {self.status}, id={self.id!r})"

    def __del__(self) -> None:
        if not (getattr(self, "_has_begun", True) or self._is_misused):
            text = f"turn.tool({self.title!r}) was never entered; {self._how_to_enter()}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    @property
    def is_cancelled(self) -> bool:
        """Whether the client has cancelled this tool call alone, which `turn.tool(cancellable=True)` allows."""
        return self._detached is not None and self._detached.is_cancelled

    def _how_to_enter(self) -> str:
        return f"write `async with turn.tool({self.title!r}) as tool:`"

    # Output

    # Without the star before `meta`, as in `Turn.say`: a keyword-only parameter makes each call 3 % dearer.
    async def text(self, text: str, meta: JsonObject | None = None) -> None:
        """Append text to its output; with `meta`, as content of its own that has this `_meta`."""
        check_text("tool.text()", text)
        if meta is None:
            self._text.append(text)
            self._grown(len(text))
        else:
            self._add(with_meta("tool.text", updates.Content.of(text), meta))

    async def content(
        self, *content: str | updates.ContentBlock | updates.ToolCallContent, meta: JsonObject | None = None
    ) -> None:
        """Append content: text, an image, a diff and so on, each with this `_meta`."""
        for it in content:
            if isinstance(it, updates.Terminal):
                await self.terminal(it.terminal_id, meta=it.meta if meta is None else meta)
            elif isinstance(it, updates.Content | updates.Diff | updates.TextDiff | updates.SessionReference):
                check_sendable("tool.content()", it)
                self._add(with_meta("tool.content", it, meta))
            else:
                self._add(with_meta("tool.content", updates.Content(content_block("tool.content()", it)), meta))

    async def diff(
        self, path: str | PathLike[str], old: str | None, new: str | None, *, meta: JsonObject | None = None
    ) -> None:
        """Show a change of a file, given its whole text before (None for a new file) and after (None for a deleted
        file), with this `_meta`.
        """
        for name, text in (("old", old), ("new", new)):
            if text is not None:
                check_text(f"tool.diff({name})", text)
        diff = updates.TextDiff(self._session.resolve(path), new or "", old, deleted=new is None)
        self._add(with_meta("tool.diff", diff, meta))

    async def terminal(self, terminal: RemoteTerminal | updates.TerminalId, *, meta: JsonObject | None = None) -> None:
        """Show this terminal's output as it grows: by its id, or as text to a client that has no terminals.

        `meta` is the `_meta` of this content.
        """
        check_meta("tool.terminal(meta=...)", meta)
        if isinstance(terminal, RemoteTerminal) and terminal.is_released:
            raise ValueError("the terminal was already released; show it inside its `async with` block")
        terminal_id = terminal.id if isinstance(terminal, RemoteTerminal) else terminal
        if self._session.client.capabilities.has("terminal"):
            self._add(updates.Terminal(terminal_id, meta=meta))
        else:
            await self._add_as_text(terminal_id, terminal if isinstance(terminal, RemoteTerminal) else None, meta)
        await self._flush()

    def command(
        self,
        command: Sequence[str],
        *,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        meta: JsonObject | None = None,
    ) -> ToolCommand:
        """Run a command and show its output here, as a context manager that ends it.

        >>> async def test(turn):
        ...     async with turn.tool("Run the tests", kind="execute") as tool:
        ...         async with tool.command(["make", "test"]) as command:
        ...             result = await command.wait(timeout=600)

        `command` is a program and its arguments. It runs at the client if that lends terminals, else on the agent's
        machine, in the session's folder unless `cwd` names another. `env` adds variables to the environment. `meta` is
        the `_meta` of the terminal that is created, or of the text that shows it.
        """
        check_meta("tool.command(meta=...)", meta)
        return ToolCommand(self, command, cwd=cwd, env=env, meta=meta)

    async def _show_command(self, shown: updates.Terminal | CommandText) -> None:
        self._require_block()
        if isinstance(shown, updates.Terminal):
            self._add(shown)
        else:
            self._end_text()
            self._content.append(shown)
        await self._flush()

    async def _add_as_text(
        self, terminal_id: updates.TerminalId, terminal: RemoteTerminal | None, meta: JsonObject | None
    ) -> None:
        if not self._session.client.lends("terminal"):
            raise CapabilityMissing("terminal", "showing a terminal")
        shown = TerminalText(self._session, terminal_id, self._grown, meta)
        await shown.begin()
        if terminal is not None:
            before_release(terminal, shown.end)
        self._shown_as_text.append(shown)
        self._end_text()
        self._content.append(shown)

    async def clear(self) -> None:
        """Take back all content so far."""
        self._content, self._text, self._size = [], [], 0
        self._grown(0)

    async def locations(self, *locations: Location) -> None:
        """The files that it works on now."""
        self._locations = [self._location(it) for it in locations]
        self._change(locations=self._locations)

    async def raw_input(self, value: Json) -> None:
        """Show the input that the model gave, as plain JSON values."""
        self._raw_input = value
        self._change(raw_input=value)

    async def raw_output(self, value: Json) -> None:
        """Show the output for the model, as plain JSON values."""
        self._change(raw_output=value)

    async def set_meta(self, meta: JsonObject) -> None:
        """Change its `_meta`: the given names, and no others."""
        check_meta("tool.set_meta()", meta)
        self._meta = {**(self._meta or {}), **meta}
        self._change(meta=self._meta)

    async def retitle(self, title: str) -> None:
        """Describe more precisely what it does."""
        check_text("tool.retitle()", title)
        self.title = title
        self._change(title=title)

    # Status

    async def ask(self, *options: Offered, about: str | None = None, meta: JsonObject | None = None) -> Decision:
        """Ask the user whether it may run; a refusal marks it failed.

        Without options: allow once, always, and reject once. An "always" is remembered for the same kind and title, or
        for `about` instead of the title, and the user is not asked again. `meta` is the request's `_meta`; that of the
        answer is in the decision.
        """
        check_meta("tool.ask(meta=...)", meta)
        self._unsent.pop("status", None)
        await self._flush()
        self.status = "pending"
        subject = (self.kind or "other", about or self.title)
        call, offered = self._as_it_is(), options_of(options)
        request = v1.RequestPermissionRequest(self._session.session_id, call, offered, meta=meta)
        decision = await decided(self._surroundings.requester, self._surroundings.permissions, subject, request)
        await self._become("in_progress" if decision.allowed else "failed")
        return decision

    async def start(self) -> None:
        """Mark it as running; only needed after `pause`, or to report it before the block waits for anything."""
        await self._become("in_progress")

    async def pause(self) -> None:
        """Mark it as paused until `start` is called; version 1 has no such status, and shows `in_progress`."""
        await self._become("paused")

    async def fail(self, reason: str | None = None) -> None:
        """Mark it as failed."""
        if reason is not None:
            await self.text(reason)
        await self._become("failed")

    # Its life

    async def __aenter__(self) -> Self:
        self._has_begun = True
        self._surroundings.end_message()
        await self._send(updates.ToolCallProgress(self.id, **self._described()))
        if self._detached is not None:
            self._detached.begins(self.id)
        self._change(status="in_progress")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._detached is not None:
            self._detached.stops()
        for shown in self._shown_as_text:
            await shown.end()
        try:
            if self.status != "failed":
                if kind is None:
                    await self._flush(everything=True)
                is_cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
                self.status = "completed" if kind is None else "cancelled" if is_cancelled else "failed"
                self._unsent["status"] = self.status
            await self._flush(everything=True)
        except ConnectionClosed:
            if kind is None:
                raise
        finally:
            if self._detached is not None:
                self._detached.ends()
        if self._detached is not None and self._detached.takes(kind):
            # For type checkers the block never ends an error, which is so for all but the client's cancelling.
            return cast("None", True)
        return None

    async def _become(self, status: updates.ToolCallStatus) -> None:
        self._unsent["status"] = self.status = status
        await self._flush()

    # Reporting

    def _add(self, content: updates.ToolCallContent) -> None:
        self._end_text()
        self._content.append(content)
        self._grown(_size(content))

    def _grown(self, by: int) -> None:
        self._size += by
        self._produced += max(0, by)  # the beginning of a terminal's output may be dropped
        self._stale = True
        if self._affordable():
            self._send_soon()

    def _change(self, **fields: Any) -> None:
        self._unsent.update(fields)
        self._send_soon()

    def _affordable(self) -> bool:
        return self._sent + self._size <= FREE + FACTOR * self._produced

    def _require_block(self) -> None:
        """Raise RuntimeError unless the block was entered: the client does not know the tool call yet."""
        if not self._has_begun:
            self._is_misused = True
            raise RuntimeError(f"this tool call has not begun; {self._how_to_enter()}")

    def _send_soon(self) -> None:
        """Send when the block waits for something; or a little later, if something was sent just now."""
        self._require_block()
        if self._timer is None:
            loop = asyncio.get_running_loop()
            wait = self._sent_at + INTERVAL - loop.time()
            self._timer = loop.call_later(wait, self._due) if wait > 0 else loop.call_soon(self._due)

    def _due(self) -> None:
        self._timer = None
        self._session.errands.start(self._send_now(), "accord tool update")

    async def _send_now(self) -> None:
        # If this fails, the turn's own updates fail too; or the turn is over, and nothing may be sent.
        with suppress(AccordError, RuntimeError):
            await self._flush()

    async def _flush(self, *, everything: bool = False) -> None:
        """Send unsent changes; content only if it is worth it, unless `everything` is requested."""
        self._require_block()
        update, self._unsent = self._unsent, {}
        if self._stale and (everything or self._affordable()):
            self._stale = False
            self._sent += self._size
            update["content"] = self._all_content()
        if update:
            self._sent_at = asyncio.get_running_loop().time()
            self.status = update.get("status", self.status)
            await self._send(updates.ToolCallProgress(self.id, **update))

    def _all_content(self) -> list[updates.ToolCallContent]:
        content = [it if isinstance(it, msgspec.Struct | Unknown) else it.content for it in self._content]
        if self._text:
            self._text = ["".join(self._text)]
            content.append(updates.Content.of(self._text[0]))
        return content

    def _end_text(self) -> None:
        if self._text:
            self._content.append(updates.Content.of("".join(self._text)))
            self._text = []

    def _described(self) -> dict[str, Any]:
        """The fields of the tool call that have a value, but its content."""
        fields = {
            "title": self.title,
            "kind": self.kind,
            "status": "pending",
            "locations": self._locations or None,
            "raw_input": self._raw_input,
            "name": self._name,
            "meta": self._meta,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _as_it_is(self) -> v1.ToolCallUpdate:
        call = v1.ToolCallUpdate(self.id, content=cast("Any", self._all_content() or None), **self._described())
        return with_absolute_paths(call, self._session.cwd)

    def _location(self, location: Location) -> updates.ToolCallLocation:
        if not isinstance(location, updates.ToolCallLocation):
            path, line = location if isinstance(location, tuple) else (location, None)
            location = updates.ToolCallLocation(self._session.resolve(fspath(path)), line)
        check_line(location.line)
        return location


def _size(content: updates.ToolCallContent) -> int:
    """Return its approximate size on the wire."""
    if isinstance(content, updates.TextDiff):
        return len(content.new_text) + len(content.old_text or "")
    block = content.content if isinstance(content, updates.Content) else None
    return len(getattr(block, "text", "") or getattr(block, "data", "")) + 100


# A command that a tool call runs, `tool.command`. Where it runs and how it is shown depend on the client:
#
# | the client | the command runs | it is shown |
# |---|---|---|
# | lends terminals (version 1) | at the client | as the client's terminal |
# | speaks version 2 | here | as a terminal of the agent: its bytes, and how it ended |
# | any other | here | as text of the tool call |


LIMIT = 1024 * 1024
"""Bytes of a command's output that are kept for its result."""


class CommandText:
    """The output of a command as content of a tool call."""

    def __init__(self, meta: JsonObject | None) -> None:
        self.text = ""
        self._meta = meta

    @property
    def content(self) -> updates.Content:
        """The output so far, in a block that Markdown does not interpret."""
        return updates.Content(updates.TextContent(fenced(self.text)), meta=self._meta)


class ToolCommand:
    """A command that a tool call runs and shows; `tool.command(...)` makes it."""

    def __init__(
        self,
        tool: Tool,
        command: Sequence[str],
        *,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        meta: JsonObject | None = None,
    ) -> None:
        check_sequence("tool.command()", "a program and its arguments", command)
        if not command:
            raise ValueError("tool.command() takes a program and its arguments, got an empty list")
        self.command: list[str] = list(command)
        """The program and its arguments."""
        self._tool = tool
        self._surroundings = surroundings = tool._surroundings
        self._cwd = Path(surroundings.session.resolve(cwd or "."))
        self._env = dict(env or {})
        self._meta = meta
        self._remote: RemoteTerminal | None = None
        self._local: Terminal | None = None
        self._telling: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"ToolCommand({self.command})"

    async def wait(self, timeout: float | None = None) -> CommandResult:  # noqa: ASYNC109
        """Wait until the command ends, or kill it after `timeout` seconds; returns its output and exit code either
        way.
        """
        if self._remote is not None:
            return await self._remote.run_out(timeout)
        local = self._started()
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                status = await local.wait()
        except TimeoutError:
            timed_out = True
            await local.kill()
            status = await local.wait()
        return CommandResult(local.text, status.exit_code, status.signal, timed_out, local.truncated)

    async def output(self) -> str:
        """The output so far, stdout and stderr together."""
        return (await self._remote.output()).output if self._remote is not None else self._started().text

    async def kill(self) -> None:
        """End the command and all its child processes. Its output can still be read."""
        await (self._remote.kill() if self._remote is not None else self._started().kill())

    def _started(self) -> Terminal:
        if self._local is None:
            raise RuntimeError("this command has not begun; write `async with tool.command(...) as command:`")
        return self._local

    # Its life

    async def __aenter__(self) -> Self:
        try:
            await (
                self._begin_there()
                if self._surroundings.session.client.capabilities.has("terminal")
                else self._begin_here()
            )
        # also on a cancel while it is being shown: it runs already, and nothing else would end it
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _begin_there(self) -> None:
        program, *arguments = self.command
        remote = self._surroundings.client.terminal(program, arguments, env=self._env, cwd=self._cwd, meta=self._meta)
        self._remote = await remote.__aenter__()
        await self._tool.terminal(remote)

    async def _begin_here(self) -> None:
        session, cancels = self._surroundings.session, self._surroundings.cancels
        dialect, send = self._surroundings.updates.dialect, self._surroundings.updates.send
        session.client.check_local("terminal", "tool.command()")
        import shlex

        from accord.services.terminal_service import Terminal  # loads what runs commands here

        terminal = Terminal(updates.TerminalId(f"term_{os.urandom(8).hex()}"), self.command, self._cwd, LIMIT)
        await terminal.start({**os.environ, **self._env})
        self._local = terminal
        begun = dialect.terminal_begins(terminal.id, shlex.join(self.command), str(self._cwd))
        if begun is None:
            text = CommandText(self._meta)
            await self._tool._show_command(text)
            following = self._follow_as_text(terminal, text)
        else:
            cancels.offer("terminal", terminal.id, lambda: self._kill_soon(terminal))
            await send(with_meta("tool.command", begun, self._meta))
            await self._tool._show_command(updates.Terminal(terminal.id))
            following = self._follow_as_bytes(terminal)
        self._telling = asyncio.create_task(following, name=f"output of {self.command[0]}")

    async def _end(self) -> None:
        if self._remote is not None:
            await self._remote.__aexit__(None, None, None)
        if self._local is not None:
            self._surroundings.cancels.withdraw("terminal", self._local.id)
            await self._local.release()
        if self._telling is not None:
            with suppress(ConnectionClosed):
                await self._telling

    def _kill_soon(self, terminal: Terminal) -> None:
        self._surroundings.session.errands.start(terminal.kill(), "accord terminal/cancel")

    async def _follow_as_bytes(self, terminal: Terminal) -> None:
        dialect: Any = self._surroundings.updates.dialect
        send = self._surroundings.updates.send
        async for data, is_whole in terminal.follow_bytes():
            await send(dialect.terminal_output(terminal.id, data, replaces=is_whole))
        await send(dialect.terminal_ended(terminal.id, await terminal.wait()))

    async def _follow_as_text(self, terminal: Terminal, shown: CommandText) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for data, is_whole in terminal.follow_bytes():
            before = "" if is_whole else shown.text
            grown = len(shown.text)
            shown.text = before + decoder.decode(data)
            self._tool._grown(len(shown.text) - grown)
