"""`accord run`: one turn with an agent, for people and scripts.

    PROMPT ──▶ connect ──▶ session (new, or one taken up) ──▶ mode, config ──▶ Reply ──▶ text, or JSON lines, on stdout

Whatever the agent does, it ends in bounded time, with what arrived on stdout, what went wrong on one line on stderr (a
trace that could not be written has one of its own), an exit code that says how it went, and no process left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.cli import lending, mcp_file, printing, target, tokens
from accord.cli.endings import ENDED_WELL, INTERRUPTED, STOPPED, OutputLost, WrongUsage, exit_code, one_line

if TYPE_CHECKING:
    from accord.cli.interrupts import Interrupts
    from accord.cli.output import Output
    from accord.client.client import Client
    from accord.client.remote_agent import RemoteAgent
    from accord.client.remote_session import RemoteSession
    from accord.client.reply import Outcome, Reply
    from accord.trace import TraceFile

SUMMARY = "Ask an agent one thing, and print what it says."
EPILOG = """\
examples:
  accord run "Say hello"                                  the built-in agent, which needs no model
  accord run "What is in here?" -- gemini --acp           any agent, by its command
  git diff | accord run - --idle-timeout 60 -- my-agent   the prompt from standard input
  accord run "Fix the tests" --allow all --json -- my-agent | jq -c .
  accord run "And now?" --session 3f2a -- my-agent        goes on with a session

exit codes:
  0 the turn ended well       3 it took too long
  1 the agent failed          4 it stopped for another reason (max_tokens, refusal, ...)
  2 wrong usage               5 standard output could not be written
  130 interrupted

To an agent behind a URL the variable ACCORD_TOKEN is sent as its bearer token.
Ctrl-C asks the agent to stop; a second one ends it at once."""

IDLE = 600.0
"""Seconds of silence after which a turn is given up, unless said otherwise: an agent that hangs must not hang us."""

KEPT = 1024 * 1024
"""Bytes that are kept of what the agent says: it is printed as it comes, and nothing here looks at it again."""

SETUP_WITHIN = 60.0
STOP_WITHIN = 10.0
"""Seconds that the agent has to end the turn after Ctrl-C."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.usage = "accord run [options] PROMPT [-- AGENT...]"
    parser.add_argument("prompt", metavar="PROMPT", help="what to ask; - reads it from standard input")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object a line: the updates as they came, and last how it ended"
    )
    parser.add_argument("--cwd", metavar="DIR", default=".", help="the session's folder (default: this one)")
    parser.add_argument("--session", metavar="ID", help="go on with this session instead of starting one")
    parser.add_argument("--mode", metavar="MODE", help="the session's mode")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="a config option of the session; may be repeated",
    )
    parser.add_argument("--timeout", metavar="S", type=_seconds, help="give up after this many seconds in all")
    parser.add_argument(
        "--idle-timeout",
        metavar="S",
        type=_seconds,
        default=IDLE,
        help="give up after this many seconds without a word (default: %(default)g; 0: never)",
    )
    parser.add_argument(
        "--allow",
        choices=lending.ALLOW,
        help="what the agent may do when it asks, and what it is lent (default: ask at a terminal, else none)",
    )
    parser.add_argument("--trace", metavar="FILE", help="record the wire in this file, as JSON lines")
    parser.add_argument("--trace-secrets", action="store_true", help="do not mask secrets in what --trace records")
    parser.add_argument("--mcp", metavar="FILE", help="MCP servers for the session, as JSON")
    parser.add_argument("agent", nargs="*", default=[], metavar="AGENT", help=target.HELP)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


def run(options: argparse.Namespace) -> int:
    from accord.running import run as run_loop

    if not options.debug:
        # What the library would warn of is said in our one line, or not at all.
        logging.getLogger("accord").addHandler(logging.NullHandler())
        logging.getLogger("accord").propagate = False
    _check(options)
    return run_loop(_run(options))


def _check(options: argparse.Namespace) -> None:
    """What can be wrong is said before an agent is started."""
    if not Path(options.cwd).is_dir():
        raise WrongUsage(f"--cwd {options.cwd}: no such folder")
    for setting in options.settings:
        if "=" not in setting:
            raise WrongUsage(f"--set {setting}: write KEY=VALUE")
    options.servers = mcp_file.read(options.mcp, options.cwd) if options.mcp else []
    if options.prompt == "-":
        options.prompt = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin is not None else ""
    if not options.prompt.strip():
        raise WrongUsage("the prompt is empty")


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
    """Nothing is left behind, whoever interrupts."""
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
    """What the agent does not offer is what the user has misspelled."""
    try:
        yield
    except ValueError as error:
        raise WrongUsage(f"{option}: {error}") from None


def _value(session: RemoteSession, key: str, text: str) -> str | bool:
    """What a text on the command line means for this option."""
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
                error = Timeout(f"not done after {self._options.timeout:g} seconds: {error}")
            await self._end_line()
            if self._options.json:
                await self._print_json(_error(error))
            await self._output.flush()
            if not self._options.debug:
                printing.complain(f"accord run: {one_line(error)}")
                return exit_code(error)
            raise error from None

    def hurry(self) -> None:
        """End the agent without patience."""
        if self._remote is not None:
            self._remote.hurry()

    async def _play(self) -> int:
        with lending.lent(self._options, self._output.held) as client, self._recording() as trace:
            return await self._with(client, trace)

    @contextmanager
    def _recording(self) -> Generator[TraceFile | None]:
        """The trace file. The turn goes on without it when it cannot be written any more, and its exit code stays."""
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
                printing.complain(f"accord run: --trace {options.trace} is not complete: {problem}")

    async def _with(self, client: Client, trace: TraceFile | None) -> int:
        from accord.connecting import START_WITHIN, connect
        from accord.engine.limits import Limits

        options = self._options
        where = target.agent_of(options)
        start = START_WITHIN if self._left() is None else min(START_WITHIN, self._left() or 0.0)
        connecting = connect(
            where, client, token=tokens.token(None), timeout=start, trace=trace, limits=Limits(state=KEPT)
        )
        async with connecting as self._remote:
            async with self._setup():
                session = await self._session(self._remote)
                await self._settings(session)
            outcome = await self._turn(session)
            await self._output.flush()
            pollution = self._remote.peer.connection.pollution
        remarks = [f"the agent printed what is no message: {pollution[0][:200]!r}"] if pollution else []
        if outcome.stop_reason == "refusal":
            remarks.append("the agent refused; it goes on without this prompt and what came behind it")
        if remarks:
            printing.complain(f"accord run: {'; '.join(remarks)}")
        if self._control.count:
            return INTERRUPTED
        return ENDED_WELL if outcome.stop_reason == "end_turn" else STOPPED

    @asynccontextmanager
    async def _setup(self) -> AsyncGenerator[None]:
        """What comes before the prompt has a deadline, too."""
        from accord.errors import Timeout

        left = self._left()
        limit = SETUP_WITHIN if left is None else min(SETUP_WITHIN, left)
        try:
            async with asyncio.timeout(limit):
                yield
        except Timeout:
            raise
        except TimeoutError:
            raise Timeout(f"the session was not ready after {limit:.3g} seconds") from None

    def _left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - asyncio.get_running_loop().time())

    async def _session(self, remote: RemoteAgent) -> RemoteSession:
        options = self._options
        servers = lending.taken(options.servers, remote)
        if options.session is None:
            return await remote.new_session(options.cwd, mcp_servers=servers)
        take_up = remote.resume if remote.capabilities.sessions.resume else remote.load
        return await take_up(options.session, options.cwd, mcp_servers=servers)

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
        try:
            await (self._print_updates(reply) if options.json else self._print_text(reply))
            outcome = await reply
        finally:
            self._control.politely = None
            for timer in stop_waiting:
                timer.cancel()
        await self._end_line()
        if options.json:
            await self._print_json(_result(session, outcome))
        return outcome

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
        """What is printed next, by us or by a shell, begins a line."""
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
