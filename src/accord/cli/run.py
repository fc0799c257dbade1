"""`accord run`: one turn with an agent, for people and scripts.

    PROMPT ──▶ connect ──▶ session (new, or resumed) ──▶ mode, config ──▶ Reply ──▶ text, or JSON lines, on stdout

Whatever the agent does, the command ends in bounded time. What arrived is on stdout. What went wrong is one line on
stderr; a trace that could not be written has a line of its own. The exit code says how the turn went, and no process of
the agent is left.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.cli import lending, mcp_file, opening, printing, target
from accord.cli.endings import ENDED_WELL, INTERRUPTED, STOPPED, OutputLost, WrongUsage, exit_code, one_line

if TYPE_CHECKING:
    from accord.cli.interrupts import Interrupts
    from accord.cli.output import Output
    from accord.client.client import Client
    from accord.client.pending_turn import Outcome
    from accord.client.remote_agent import RemoteAgent
    from accord.client.remote_session import RemoteSession
    from accord.client.reply import Reply
    from accord.trace import TraceFile

EPILOG = """\
examples:
  accord run "Say hello"                            use the built-in agent
  accord run "What is in here?" -- gemini --acp     start an agent by command
  accord run "Hi" -- https://agents.example/acp     connect to an agent by URL
  git diff | accord run - -- my-agent               read the prompt from a pipe
  accord run "Hi" -a gemini                         use an agent that `accord agents` lists
  accord run "Hi" -- my_agent.py                    start an agent of a Python file
  accord run "Go on" --continue                     continue the latest session of this folder
  accord run "Go on" --session 3f2a -- my-agent     continue a session; the start of its id is enough
  accord run "Fix it" --allow all --json -- my-agent | jq -c .

exit codes:
  0    the turn ended normally
  1    the agent failed
  2    wrong usage
  3    a timeout passed
  4    the turn ended for another reason (max_tokens, refusal, ...)
  5    standard output could not be written
  130  interrupted

--allow says what the agent may use and which of its requests are granted:
  all    read and write files, run commands; grant every request
  reads  read files; grant only requests that do not change anything
  ask    no files, no commands; ask you at the terminal, also to fill in forms
  none   no files, no commands; reject every request

An agent with a URL gets the variable ACCORD_TOKEN as its bearer token.
Ctrl-C asks the agent to stop. Press it again to end the agent at once."""

IDLE = 600.0
"""The default of `--idle-timeout`, in seconds: an agent that hangs must not hang us."""

KEPT = 1024 * 1024
"""Bytes of the agent's text that are kept: it is printed as it arrives, and not needed again."""

SETUP_WITHIN = 60.0
STOP_WITHIN = 10.0
"""Seconds that the agent has to end the turn after Ctrl-C."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.usage = "accord run [options] PROMPT [-a NAME | -- COMMAND...]"
    parser.add_argument("prompt", metavar="PROMPT", help="the prompt; - reads it from standard input")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per line: each update as received, then the result"
    )
    parser.add_argument("--cwd", metavar="DIR", default=".", help="the session's folder (default: the current folder)")
    parser.add_argument("--session", metavar="ID", help="continue this session; the start of its id is enough")
    parser.add_argument("--mode", metavar="MODE", help="set the session's mode")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="set a config option of the session; may be repeated",
    )
    parser.add_argument("--timeout", metavar="S", type=_seconds, help="stop after this many seconds in total")
    parser.add_argument(
        "--idle-timeout",
        metavar="S",
        type=_seconds,
        default=IDLE,
        help="stop after this many seconds without a message from the agent (default: %(default)g; 0: never)",
    )
    parser.add_argument(
        "--allow",
        choices=lending.ALLOW,
        help="what the agent may do, see below (default: ask at a terminal, otherwise none)",
    )
    parser.add_argument("--trace", metavar="FILE", help="record all messages in this file, as JSON lines")
    parser.add_argument("--trace-secrets", action="store_true", help="do not mask secrets in the --trace file")
    parser.add_argument("--mcp", metavar="FILE", help="a JSON file with MCP servers for the session")
    opening.arguments(parser)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


def run(options: argparse.Namespace) -> int:
    from accord.running import run as run_loop

    if not options.debug:
        # The one line on stderr says what matters; the library's warnings would repeat it.
        logging.getLogger("accord").addHandler(logging.NullHandler())
        logging.getLogger("accord").propagate = False
    opening.prepare(options)
    _check(options)
    return run_loop(_run(options))


def _check(options: argparse.Namespace) -> None:
    """Report wrong usage before an agent is started."""
    if not _is_folder(options.cwd):
        raise WrongUsage(f"--cwd {options.cwd}: no such folder")
    for setting in options.settings:
        if "=" not in setting:
            raise WrongUsage(f"--set must be KEY=VALUE, got {setting!r}")
    options.servers = mcp_file.read(options.mcp, options.cwd) if options.mcp else []
    if options.prompt == "-":
        options.prompt = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin is not None else ""
    if not options.prompt.strip():
        raise WrongUsage("PROMPT must not be empty")


def _is_folder(path: str) -> bool:
    try:
        return Path(path).absolute().is_dir()  # absolute, because a deleted current folder still is one as "."
    except OSError:
        return False


async def _run(options: argparse.Namespace) -> int:
    from accord.cli.interrupts import interrupts
    from accord.cli.output import Output

    with interrupts() as control:
        output = Output(_stdout())
        one_turn = OneTurn(options, output, control)
        turn = asyncio.ensure_future(one_turn.play())
        closed = asyncio.ensure_future(output.closed.wait())
        try:
            await asyncio.wait([turn, closed], return_when=asyncio.FIRST_COMPLETED)
            problem = None if output.problem is None else printing.lost(output.problem)
            if problem is not None and (not turn.done() or isinstance(problem, OutputLost)):
                raise problem
            return turn.result()
        except asyncio.CancelledError:
            if control.count:
                return INTERRUPTED
            raise
        finally:
            closed.cancel()
            await _end(turn, one_turn)


async def _end(turn: asyncio.Future[int], one_turn: OneTurn) -> None:
    """Wait for the turn to clean up, however often the wait itself is interrupted."""
    if turn.done():
        return
    one_turn.hurry()
    turn.cancel()
    while not turn.done():
        try:
            await asyncio.wait([turn])
        except asyncio.CancelledError:
            continue


def _stdout() -> int:
    try:
        return os.dup(1)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


@contextmanager
def _as_given(option: str) -> Generator[None]:
    """Report a value that the agent does not offer as wrong usage of this option."""
    try:
        yield
    except ValueError as error:
        raise WrongUsage(f"{option}: {error}") from None


def _value(session: RemoteSession, key: str, text: str) -> str | bool:
    """A text of the command line as a value of this option."""
    from accord.schema import v1

    if isinstance(session.state.option(key), v1.SessionConfigBoolean) and text in _BOOLEANS:
        return _BOOLEANS[text]
    return text


_BOOLEANS = {"true": True, "false": False}


class OneTurn:
    """A turn, from the connection to its exit code."""

    def __init__(self, options: argparse.Namespace, output: Output, control: Interrupts) -> None:
        self._options = options
        self._output = output
        self._control = control
        self._deadline = None if options.timeout is None else asyncio.get_running_loop().time() + options.timeout
        self._remote: RemoteAgent | None = None
        self._said_anything = False
        control.at_once = self.hurry

    async def play(self) -> int:
        from accord.errors import AccordError, Timeout

        try:
            return await self._play()
        except AccordError as error:
            if isinstance(error, Timeout) and self._left() == 0:
                error = Timeout(f"the turn did not end within --timeout {self._options.timeout:g}: {error}")
            await self._end_line()
            if self._options.json:
                await self._print_json(_error(error))
            await self._output.flush()
            if not self._options.debug:
                printing.complain(f"accord run: {one_line(error)}")
                return exit_code(error)
            raise error from None

    def hurry(self) -> None:
        """End the agent without a grace period."""
        if self._remote is not None:
            self._remote.kill()

    async def _play(self) -> int:
        with lending.lent(self._options, self._output.held) as client, self._recording() as trace:
            return await self._with(client, trace)

    @contextmanager
    def _recording(self) -> Generator[TraceFile | None]:
        """The trace file. If writing it fails, the turn continues without it and keeps its exit code."""
        from accord.errors import AccordError
        from accord.trace import TraceFile

        options = self._options
        if options.trace is None:
            yield None
            return
        try:
            trace = TraceFile(options.trace, role="client", secrets=options.trace_secrets)
        except AccordError as error:
            raise WrongUsage(f"--trace: {error}") from error
        try:
            yield trace
        finally:
            trace.close()
            if trace.problem is not None:
                problem = trace.problem.strerror or trace.problem
                printing.complain(f"accord run: --trace {options.trace} is incomplete: {problem}")

    async def _with(self, client: Client, trace: TraceFile | None) -> int:
        from accord.connecting import START_WITHIN, connect
        from accord.engine.limits import Limits

        options = self._options
        where = target.chosen(options).target()
        start = START_WITHIN if self._left() is None else min(START_WITHIN, self._left() or 0.0)
        connecting = connect(where, client, timeout=start, trace=trace, limits=Limits(state=KEPT))
        async with connecting as self._remote:
            await opening.log_in(options, self._remote)
            async with self._setup():
                session = await self._session(self._remote)
                opening.opened(options, session)
                await self._settings(session)
            outcome = await self._turn(session)
            await self._output.flush()
            pollution = self._remote.peer.connection.pollution
        remarks = [f"the agent printed a line that is not a message: {pollution[0][:200]!r}"] if pollution else []
        if outcome.stop_reason == "refusal":
            remarks.append("the agent refused the prompt; the session continues without it and its answer")
        if remarks:
            printing.complain(f"accord run: {'; '.join(remarks)}")
        if self._control.count:
            return INTERRUPTED
        return ENDED_WELL if outcome.stop_reason == "end_turn" else STOPPED

    @asynccontextmanager
    async def _setup(self) -> AsyncGenerator[None]:
        """A deadline for everything before the prompt."""
        from accord.errors import Timeout

        left = self._left()
        limit = SETUP_WITHIN if left is None else min(SETUP_WITHIN, left)
        try:
            async with asyncio.timeout(limit):
                yield
        except Timeout:
            raise
        except TimeoutError:
            raise Timeout(f"the agent did not open the session within {limit:.3g} seconds") from None

    def _left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - asyncio.get_running_loop().time())

    async def _session(self, remote: RemoteAgent) -> RemoteSession:
        options = self._options
        servers = lending.supported(options.servers, remote)
        session_id = await opening.session_id(options, remote)
        if session_id is None:
            return await remote.new_session(options.cwd, mcp_servers=servers)
        reopen = remote.resume if remote.capabilities.sessions.resume else remote.load
        return await reopen(session_id, options.cwd, mcp_servers=servers)

    async def _settings(self, session: RemoteSession) -> None:
        if (mode := self._options.mode) is not None:
            with _as_given(f"--mode {mode}"):
                await session.set_mode(mode)
        for setting in self._options.settings:
            key, _, value = setting.partition("=")
            with _as_given(f"--set {setting}"):
                await session.set_config(key, _value(session, key, value))

    async def _turn(self, session: RemoteSession) -> Outcome:
        options = self._options
        if options.json:
            await self._print_json({"type": "session", "sessionId": session.id})
        reply = session.prompt(
            options.prompt,
            timeout=self._left(),
            idle_timeout=options.idle_timeout or None,
            wire=options.json,
        )
        stop_waiting: list[asyncio.TimerHandle] = []

        def politely() -> None:
            reply.request_cancel()
            loop = asyncio.get_running_loop()
            stop_waiting.append(loop.call_later(STOP_WITHIN, self._control.interrupt))

        self._control.politely = politely
        ending = asyncio.create_task(self._close_questions(session, reply))
        try:
            await (self._print_updates(reply) if options.json else self._print_text(reply))
            outcome = await reply
            await ending
        finally:
            self._control.politely = None
            ending.cancel()
            for timer in stop_waiting:
                timer.cancel()
        await self._end_line()
        if options.json:
            await self._print_json(_result(session, outcome))
        return outcome

    async def _close_questions(self, session: RemoteSession, reply: Reply) -> None:
        """Close the turn's open questions when it ends: output waits for them, and their answers no longer count."""
        from accord.client.remote_session import live_session_of
        from accord.errors import AccordError

        with suppress(AccordError):  # which the turn itself reports
            await reply
        live_session_of(session).close_questions()

    async def _print_text(self, reply: Reply) -> None:
        async for text in reply.text():
            self._said_anything = True
            self._ends_line = text.endswith("\n")
            await self._output.write(text.encode("utf-8", "replace"))

    async def _print_updates(self, reply: Reply) -> None:
        async for update in reply.wire():
            await self._output.write(b'{"type":"update","update":' + update.strip() + b"}\n")

    async def _print_json(self, event: dict[str, Any]) -> None:
        from accord.schema import codec

        await self._output.write(codec.encode(event) + b"\n")

    _ends_line = True

    async def _end_line(self) -> None:
        """Start a new line for what is printed next, by us or by a shell."""
        if not self._ends_line:
            self._ends_line = True
            await self._output.write(b"\n")


def _result(session: RemoteSession, outcome: Outcome) -> dict[str, Any]:
    from accord.schema import codec

    usage = {} if outcome.usage is None else {"usage": codec.plain(outcome.usage)}
    return {"type": "result", "stopReason": outcome.stop_reason, "sessionId": session.id, **usage}


def _error(error: BaseException) -> dict[str, Any]:
    from accord.errors import ConnectionClosed, PeerError

    event: dict[str, Any] = {"type": "error", "message": one_line(error), "exitCode": _code(error)}
    if isinstance(error, PeerError):
        event |= {"code": error.code} | ({} if error.data is None else {"data": error.data})
    if isinstance(error, ConnectionClosed):
        event |= {"reason": error.reason}
    return event


def _code(error: BaseException) -> int:
    from accord.errors import AccordError

    return exit_code(error) if isinstance(error, AccordError) else 1
