"""One turn, from the connection to its exit code.

    connect ──▶ session (new, or opened again) ──▶ mode, config ──▶ prompt ──▶ `View` ──▶ exit code

Whatever the agent does, the turn ends in bounded time: the start has its own limit, silence has one from the start on,
and the whole turn has one if the user wants it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import signal
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from accord import AccordError, Timeout
from accord.mistakes import ForgottenAwaits
from accord.printable import label, printable
from accord.program import on_signals
from accord_tools.cli.agent_options import chosen_agent, protocol_versions
from accord_tools.cli.console import print_error
from accord_tools.cli.exit_codes import ENDED_WELL, INTERRUPTED, REFUSED, STOPPED, exit_code, one_line
from accord_tools.cli.login import log_in
from accord_tools.cli.permission_options import run_client, supported_servers
from accord_tools.cli.session_options import budget_of, open_session, stopped_by
from accord_tools.cli.trace_options import recorded_trace
from accord_tools.cli.view import Opened
from accord_tools.presentation.styled_text import Paragraph
from accord_tools.presentation.work_lines import line_of

if TYPE_CHECKING:
    from accord import Outcome, RemoteAgent, RemoteSession, Reply
    from accord.trace import Observer
    from accord_tools.cli.events import WireUpdates
    from accord_tools.cli.output import Output
    from accord_tools.cli.permission_options import RunClient, View
    from accord_tools.presentation.styled_text import Paragraph
    from accord_tools.tap.recorder import Recording

# Ctrl-C


class Interrupts:
    """Counts Ctrl-C, and acts on the count."""

    def __init__(self) -> None:
        self.count = 0
        self.politely: Callable[[], None] | None = None
        """Asks the running turn to stop; None while no turn runs."""
        self.at_once: Callable[[], None] = lambda: None
        """Ends the running turn without a grace period."""
        self._main = asyncio.current_task()

    def interrupt(self) -> None:
        self.count += 1
        if self.count == 1 and self.politely is not None:
            self.politely()
        elif self.count <= 2:
            self.at_once()
            if self._main is not None:
                self._main.cancel()
        else:
            os._exit(INTERRUPTED)  # the guard process ends the agent


@contextmanager
def interrupts() -> Generator[Interrupts]:
    """Handle Ctrl-C inside this context."""
    made = Interrupts()
    with on_signals([signal.SIGINT], made.interrupt):
        yield made


# The last line


LONGEST_ID = 500


def resume_hint(options: argparse.Namespace, session_id: str, *, can_reopen: bool) -> Iterator[Paragraph]:
    """Return one line, with the command if the agent can open the session again."""
    command = resume_command(options, session_id) if can_reopen else None
    if command is None:
        yield line_of((f"session {label(session_id, LONGEST_ID)}", "dim"))
    else:
        yield line_of((f"session {session_id}, continue it with: ", "dim"), (command, ""), wrap="whole")


def resume_command(options: argparse.Namespace, session_id: str) -> str | None:
    """Return the command that continues a session; None if it cannot be shown as a shell would read it."""
    agent: list[str] = options.agent
    named: str | None = getattr(options, "named", None)
    words = ["accord", "run", "--session", session_id]
    words += ["--cwd", options.cwd] if options.cwd != "." else []
    words += ["-a", named] if named is not None else []
    command = f"{shlex.join(words)} PROMPT" + (f" -- {shlex.join(agent)}" if agent else "")
    return command if printable(command) == command and "\n" not in command and len(command) <= 4 * LONGEST_ID else None


T = TypeVar("T")


class _LimitOfStart(Timeout):
    """A limit passed before the prompt; its message names the option."""


STATE_LIMIT = 1024 * 1024
"""Bytes of the agent's text that are kept: it is printed as it arrives, and not needed again."""
STOP_WITHIN = 10.0
"""Seconds that the agent has to end the turn after Ctrl-C."""
SLICE = 0.2
"""Seconds between two checks of the limits while the session is opened."""


class TurnRunner:
    """A turn as the options describe it, shown in a view."""

    def __init__(
        self,
        options: argparse.Namespace,
        output: Output,
        view: View,
        control: Interrupts,
        early: WireUpdates | None,
    ) -> None:
        self._options = options
        self._output = output
        self._view = view
        self._control = control
        self._early = early
        now = asyncio.get_running_loop().time()
        self._deadline = None if options.timeout is None else now + options.timeout
        self._start_left: float = options.start_timeout
        self._remote: RemoteAgent | None = None
        self._opened: RemoteSession | None = None
        self._lent: RunClient | None = None
        control.at_once = self.hurry

    async def play(self) -> int:
        """Run the turn; returns the exit code."""
        try:
            recording = recorded_trace(
                self._options, "accord run", role="client", agent=chosen_agent(self._options).words
            )
            with run_client(self._options, self._view) as self._lent, recording as trace:
                return await self._connected(self._lent, trace)
        except AccordError as error:
            if isinstance(error, Timeout) and not isinstance(error, _LimitOfStart) and self._left() == 0:
                error = Timeout(f"the turn did not end within --timeout {self._options.timeout:g}")
            await self._view.failed(error)
            if self._lent is not None:
                # Only the session is left: print how to continue wherever we can.
                self._view.summary([*self._lent.writes.lines(), *self._resume_hint()])
            await self._output.flush()
            if not self._options.debug:
                print_error(f"accord run: {one_line(error)}")
                return exit_code(error)
            raise error from None

    def hurry(self) -> None:
        """End the agent without a grace period."""
        if self._remote is not None:
            self._remote.kill()

    async def _connected(self, lent: RunClient, trace: Recording | None) -> int:
        from accord import Limits, connect

        options, loop = self._options, asyncio.get_running_loop()
        agent = chosen_agent(options)
        if agent.is_demo and not options.quiet:
            self._view.note("This is the built-in demo agent. To use yours: accord run PROMPT -- my-agent")
        self._view.waiting("starting the agent")
        shows_all = options.stderr or options.verbose
        began = loop.time()
        idle = (
            [(float(options.idle_timeout), f"--idle-timeout {options.idle_timeout:g}")] if options.idle_timeout else []
        )
        limit, option = min([*self._limits(), *idle])
        connecting = connect(
            agent.target(self._view.agent_line if shows_all else ForgottenAwaits(self._view.note)),
            lent.client,
            timeout=limit,
            unstable=self._view.shows_subagents,  # asks the agent for subagents and plans with ids
            versions=protocol_versions(options),
            trace=self._observer(trace),
            limits=Limits(state=STATE_LIMIT),
        )
        async with AsyncExitStack() as stack:
            try:
                self._remote = await stack.enter_async_context(connecting)
            except Timeout as error:
                raise _LimitOfStart(f"{error} ({option})") from error
            self._start_left -= loop.time() - began
            await log_in(options, self._remote, self._left())
            self._view.waiting("opening the session")
            self._opened = await self._bounded(self._open(self._remote))
            outcome = await self._turn(self._remote, self._opened, lent)
            await self._output.flush()
            pollution = self._remote.peer.connection.pollution
        if pollution:
            self._view.note(f"accord run: the agent printed a line that is not a message: {pollution[0][:200]!r}")
        if outcome.stop_reason == "refusal":
            self._view.note("accord run: the agent refused the prompt; the session continues without it and its answer")
        self._view.summary(lent.writes.lines(), self._resume_hint())
        await self._output.flush()
        return self._code(outcome, lent)

    def _resume_hint(self) -> Iterator[Paragraph]:
        """The session, also of a turn that was lost with its agent, and the command that continues it."""
        if self._remote is None or self._opened is None:
            return
        offers = self._remote.capabilities.sessions
        # The built-in agent forgets its sessions when it ends.
        can_reopen = not chosen_agent(self._options).is_demo and bool(offers.resume or offers.load)
        yield from resume_hint(self._options, self._opened.id, can_reopen=can_reopen)

    def _code(self, outcome: Outcome, lent: RunClient) -> int:
        if self._control.count:
            return INTERRUPTED
        if lent.refusals is not None and lent.refusals.fails and lent.refusals.count:
            return REFUSED
        return ENDED_WELL if outcome.stop_reason == "end_turn" else STOPPED

    def _observer(self, trace: Recording | None) -> Observer | None:
        """Return the observers of the wire: the trace file, and the collector of updates before the prompt."""
        watching = [observer for observer in (trace, self._early) if observer is not None]
        if len(watching) < 2:
            return watching[0] if watching else None

        def watch(event: Any) -> None:
            for observer in watching:
                observer(event)

        return watch

    # Limits

    def _left(self) -> float | None:
        """Seconds until the limit of the whole turn."""
        return None if self._deadline is None else max(0.0, self._deadline - asyncio.get_running_loop().time())

    def _limits(self) -> list[tuple[float, str]]:
        """Return the seconds that are left for the start, each with the option that sets them, and its value."""
        options, left = self._options, self._left()
        of_start = (self._start_left, f"--start-timeout {options.start_timeout:g}")
        return [of_start] if left is None else [(left, f"--timeout {options.timeout:g}"), of_start]

    async def _bounded(self, work: Coroutine[Any, Any, T]) -> T:
        """Await this; raises Timeout past the limits of the start, of silence and of the whole turn.

        Neither the start nor the silence counts during a question to the user.
        """
        loop, idle = asyncio.get_running_loop(), self._options.idle_timeout
        task = asyncio.create_task(work)
        heard, frames, last = loop.time(), 0, loop.time()
        try:
            while not (await asyncio.wait([task], timeout=SLICE))[0]:
                now, received = loop.time(), self._frames()
                if received != frames or self._view.is_asking:
                    frames, heard = received, now
                if not self._view.is_asking:
                    self._start_left -= now - last
                last = now
                for left, limit in self._limits():
                    if left <= 0:
                        raise _LimitOfStart(f"the agent did not open the session within {limit}")
                if idle and now - heard >= idle:
                    limit = f"--idle-timeout {idle:g}"
                    raise _LimitOfStart(f"the agent sent nothing for {limit} while it opened the session")
            return task.result()
        finally:
            task.cancel()
            await asyncio.wait([task])

    def _frames(self) -> int:
        return 0 if self._remote is None else self._remote.peer.connection.statistics().frames_in

    # The session

    async def _open(self, remote: RemoteAgent) -> RemoteSession:
        servers = supported_servers(self._options.servers, remote, self._view.note)
        return await open_session(self._options, remote, servers, replay=self._options.replay)

    # The prompt

    async def _turn(self, remote: RemoteAgent, session: RemoteSession, lent: RunClient) -> Outcome:
        options, view, budget = self._options, self._view, budget_of(self._options)
        await view.opened(Opened(session, remote.info, remote.version))
        prompt: Callable[..., Any] = session.prompt  # returns another type with a schema than without
        typed = prompt(
            *options.content,
            timeout=self._left(),
            idle_timeout=options.idle_timeout or None,
            wire=view.keeps_wire,
            subagents=view.shows_subagents,
            budget=budget,
            output=options.schema,
        )
        reply: Reply = typed.reply if options.schema else typed
        # The state reports each update once, unchanged; the session reports its form for readers.
        watched = session.state if view.keeps_wire else session
        stop_watching = watched.on_change(view.question_order.arrived)
        if lent.refusals is not None:
            lent.refusals.end_turn = reply.request_cancel
        ending = asyncio.create_task(self._close_questions(session, reply))
        try:
            with self._stops_politely(reply):
                await view.prompted(session)
                await view.follow(reply)
                outcome = await reply
                if options.schema and outcome.stop_reason == "end_turn":
                    view.data(await typed)
                await ending
        finally:
            view.question_order.over()
            stop_watching()
            ending.cancel()
        await view.ended(session, outcome)
        if (option := stopped_by(outcome, budget)) is not None:
            view.note(f"accord run: the agent was stopped by {option}")
        return outcome

    @contextmanager
    def _stops_politely(self, reply: Reply) -> Generator[None]:
        """Ask the agent to stop at the first Ctrl-C, and give it some seconds for that."""
        timers: list[asyncio.TimerHandle] = []

        def politely() -> None:
            reply.request_cancel()
            self._view.interrupted()
            timers.append(asyncio.get_running_loop().call_later(STOP_WITHIN, self._control.interrupt))

        self._control.politely = politely
        try:
            yield
        finally:
            self._control.politely = None
            for timer in timers:
                timer.cancel()

    async def _close_questions(self, session: RemoteSession, reply: Reply) -> None:
        """Close the turn's open questions when it ends: output waits for them, and their answers no longer count."""
        with suppress(AccordError):  # which the turn itself reports
            await reply
        session.close_questions()
