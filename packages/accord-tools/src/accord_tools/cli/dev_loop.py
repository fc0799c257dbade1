"""The loop of `accord dev`: runs an author's program, again after each change, and shows its mistakes.

    agent    dev_program ◀── accord.connect ── prompts that the author types       the checker judges the wire
    client   dev_program ──▶ accord trace ──▶ the demo agent                        the checker judges the trace

A change of the program's files ends its process and starts a new one. The agent's session continues in it: its store is
our file while the command runs, unless the author has chosen one. A change during a turn waits for the turn's end: the
agent may be editing its own files.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from accord import AccordError, CommandTarget, ConnectionClosed, connect
from accord.installation import own_command
from accord.printable import label, printable
from accord.program import STORE
from accord.trace import read
from accord_tools.cli.agent_options import protocol_versions
from accord_tools.cli.chat import LEAVING, PromptReader
from accord_tools.cli.dev_program import Mistake
from accord_tools.cli.display import Display, dialogue_view
from accord_tools.cli.exit_codes import ENDED_WELL, FAILED, INTERRUPTED
from accord_tools.cli.permission_options import run_client
from accord_tools.cli.run_turn import Interrupts, interrupts
from accord_tools.cli.session_options import absolute
from accord_tools.cli.watched_files import WatchedFiles
from accord_tools.presentation.work_lines import line_of

if TYPE_CHECKING:
    from accord import Client, RemoteAgent, RemoteSession, TraceEvent
    from accord_check import Finding, Judge


async def run_program(options: argparse.Namespace, files: WatchedFiles) -> int:
    """Run the program until the author ends the command; returns the exit code."""
    with interrupts() as control, TemporaryDirectory(prefix="accord-dev-") as folder:
        async with dialogue_view(absolute(options.cwd)) as view:
            try:
                if options.client:
                    return await ClientProgram(options, files, view, Path(folder)).play()
                with run_client(options, view) as lent:
                    return await AgentProgram(options, files, view, control, lent.client, Path(folder)).play()
            except asyncio.CancelledError:
                if not control.count:
                    raise
                view.note("accord dev has ended.")
                return INTERRUPTED


# Problems of the program


class Mistakes:
    """The mistakes, collected until the turn's end; equal ones are counted."""

    def __init__(self, view: Display) -> None:
        self.is_gathering = False
        """Whether a turn runs, at whose end mistakes are shown; otherwise each is shown at once."""
        self.total = 0
        """How many mistakes were shown; hints and warnings do not count."""
        self._view = view
        self._found: Counter[Mistake] = Counter()
        self._judge: Judge | None = None
        self._judged: set[tuple[str, str]] = set()
        self._hints: set[Mistake] = set()

    def judge_wire(self) -> None:
        """Begin to judge a conversation; prints a note if the checker is not installed."""
        try:
            from accord_check import Judge
        except ModuleNotFoundError as error:
            if error.name != "accord_check":
                raise
            if self._judge is None and not self.total:
                self._view.note("The messages are not judged: accord-check is not installed.")
            return
        self._judge = Judge("out")
        logging.getLogger("accord").addHandler(logging.NullHandler())  # its warnings would repeat the findings

    def observe(self, event: TraceEvent) -> None:
        """Judge an event of the wire."""
        if self._judge is not None:
            self._judge.feed(event)

    def agent_line(self, line: str) -> None:
        """Handle a line of the program's standard error: a mistake is collected, any other line is shown."""
        mistake = Mistake.of_line(line)
        if mistake is None:
            self._view.agent_line(line)
            return
        if mistake.kind == "hint":
            if mistake in self._hints:
                return
            self._hints.add(mistake)
        if mistake.kind == "blocked" and mistake not in self._found:  # the turn may never end
            self._show(mistake, 1)
        self._found[mistake] += 1
        if not self.is_gathering:
            self.show()

    def show(self) -> bool:
        """Show the mistakes since the last call; returns whether there were any."""
        self.is_gathering = False
        before = self.total
        for mistake, count in self._found.items():
            if mistake.kind != "blocked" or count > 1:
                self._show(mistake, count)
            self.total += mistake.kind not in ("hint", "warning")
        self._found.clear()
        if self._judge is not None:
            self.show_findings(self._judge.findings, "agent")
        return self.total > before

    def show_findings(self, findings: Sequence[Finding], side: str) -> None:
        """Show the checker's findings of this side, each once."""
        for finding in findings:
            key = finding.id, finding.message
            if finding.side != side or finding.severity == "note" or key in self._judged:
                continue
            self._judged.add(key)
            self.total += finding.severity == "fail"
            style = "bad" if finding.severity == "fail" else "warning"
            self._line(f"{finding.id}: {finding.message}", style, [finding.fix or finding.expected, finding.url])

    def _show(self, mistake: Mistake, count: int) -> None:
        style = {"hint": "accent", "warning": "warning"}.get(mistake.kind, "bad")
        times = f" ({count:,} times)" if count > 1 else ""
        self._line(f"{mistake.title}{times}", style, mistake.details.splitlines())

    def _line(self, title: str, style: str, details: Sequence[str]) -> None:
        sign = {"accent": "note", "warning": "warning"}.get(style, "wrong")
        self._view.line(line_of((f"{sign}: ", style), (label(title, LONGEST), "")), "note")
        for line in details:
            self._view.line(line_of((f"  {printable(line).expandtabs(4)}", "dim")), "note")


LONGEST = 1_000
"""Columns of a line that is shown."""


# An agent


STOPS_WITHIN = 5.0
"""Seconds that a turn has to end after Ctrl-C, before the agent's process is ended."""


class AgentProgram:
    """Runs an agent, again after each change, and sends it the prompts."""

    def __init__(
        self,
        options: argparse.Namespace,
        files: WatchedFiles,
        view: Display,
        control: Interrupts,
        client: Client,
        folder: Path,
    ) -> None:
        self._options = options
        self._files = files
        self._view = view
        self._control = control
        self._client = client
        self._store = str(folder / "sessions.sqlite")
        self._mistakes = Mistakes(view)
        self._reader = PromptReader(view.mark_prompt)
        self._is_script = not (sys.stdin is not None and sys.stdin.isatty())
        self._prompts: list[str] = [] if options.prompt is None else [options.prompt]
        self._has_ended = self._is_script and options.prompt is not None
        self._session_id: str | None = None
        self._has_failed = False

    async def play(self) -> int:
        """Run the agent until the end of input; returns the exit code."""
        while await self._run():
            self._view.note(
                f"{', '.join(map(os.path.basename, self._files.take_changes())) or self._options.file}: loading again"
            )
        is_wrong = self._is_script and (self._has_failed or self._mistakes.total)
        return FAILED if is_wrong else ENDED_WELL

    async def _run(self) -> bool:
        """Run the agent once; returns whether to run it again."""
        command = own_command("accord_tools.cli.dev_program", "agent", self._options.file, *self._options.agent)
        env = {STORE: os.environ.get(STORE, self._store)}
        where = CommandTarget(command, env=env, on_stderr=self._agent_line)
        self._mistakes.judge_wire()
        self._mistakes.is_gathering = True
        try:
            async with connect(
                where,
                self._client,
                unstable=True,
                versions=protocol_versions(self._options),
                trace=self._mistakes.observe,
            ) as remote:
                self._control.at_once = remote.kill
                session = await self._session(remote)
                self._mistakes.show()
                return await self._talk(remote, session)
        except AccordError as error:
            await self._failed(error)
            return await self._may_run_again()
        finally:
            self._control.at_once = lambda: None

    async def _session(self, remote: RemoteAgent) -> RemoteSession:
        """The session of the process before, if the agent can open it again; else a new one."""
        offers = remote.capabilities.sessions
        if self._session_id is not None and (offers.resume or offers.load):
            reopen = remote.resume if offers.resume else remote.load
            try:
                return await reopen(self._session_id, self._options.cwd)
            except AccordError as error:
                self._view.note(f"A new session begins: {_in_words(error)}")
        session = await remote.new_session(self._options.cwd)
        if self._session_id is None and not self._is_script:
            self._view.note(
                f"{session.agent} runs. When its files change, it is loaded again and the session continues.\n"
                "Type a prompt. Ctrl-C stops a turn, Ctrl-D ends."
            )
        self._session_id = session.id
        return session

    async def _talk(self, remote: RemoteAgent, session: RemoteSession) -> bool:
        """Send prompts until the files change or the input ends; returns whether there may be more to do."""
        while await self._prompt_comes():
            text = self._prompts.pop(0)
            if text.strip() in LEAVING:
                return False
            if text.strip():
                await self._turn(remote, session, text)
        return bool(self._prompts) or not self._has_ended

    async def _prompt_comes(self) -> bool:
        """Wait until `_prompts` has one; False if the files change before, or the input ends."""
        if not self._prompts:
            await self._read_or_change()
        return bool(self._prompts) and not self._files.have_changed

    async def _read_or_change(self) -> None:
        """Wait for the next prompt, the end of input, or a change of the files."""
        if self._has_ended:
            return
        if self._reader.is_reading:  # since before the change
            self._view.mark_prompt()
        reading, changing = asyncio.ensure_future(self._reader.next()), asyncio.ensure_future(self._files.change())
        try:
            await asyncio.wait((reading, changing), return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                text = reading.result()
                self._has_ended = text is None
                self._prompts += [] if text is None else [text]
        finally:
            reading.cancel()
            changing.cancel()

    async def _turn(self, remote: RemoteAgent, session: RemoteSession, text: str) -> None:
        reply = session.prompt(text, mentions=True, subagents=True)
        timers: list[asyncio.TimerHandle] = []

        def stop() -> None:
            reply.request_cancel()
            self._view.interrupted()
            timers.append(asyncio.get_running_loop().call_later(STOPS_WITHIN, kill))

        def kill() -> None:
            self._view.note(f"The turn has not stopped in {STOPS_WITHIN:g} s: the agent's process is ended.")
            remote.kill()

        self._control.politely = stop
        self._mistakes.is_gathering = True
        try:
            await self._view.prompted(session)
            await self._view.follow(reply)
            await self._view.ended(session, await reply)
        except ConnectionClosed:
            raise
        except AccordError as error:
            await self._failed(error)
        finally:
            self._control.politely, self._control.count = None, 0
            for timer in timers:
                timer.cancel()
        await _stderr_is_read()
        self._mistakes.show()

    async def _failed(self, error: AccordError) -> None:
        self._has_failed = True
        error.__notes__ = []  # the lines of standard error were shown as they arrived
        await self._view.failed(error)
        await _stderr_is_read()
        if not self._mistakes.show():  # else the mistakes explain the error
            self._view.note(f"accord dev: {_in_words(error)}")

    async def _may_run_again(self) -> bool:
        """Wait for a change of the files, or at a terminal for Enter; returns False at the end of input."""
        if not self._has_ended:
            enter = "" if self._is_script else "; Enter tries again"
            self._view.note(f"Waiting for a change of the files{enter}.")
        while not self._files.have_changed:
            if self._has_ended:
                return False
            before = len(self._prompts)
            await self._read_or_change()
            if len(self._prompts) > before and not self._is_script:
                break
        return True

    def _agent_line(self, line: str) -> None:
        """Handle a line of the agent's standard error, which may come while the user types."""
        self._mistakes.agent_line(line)
        if self._reader.is_reading and not self._mistakes.is_gathering:
            self._view.mark_prompt()


def _changed(files: WatchedFiles) -> str:
    """The names of the files that have changed."""
    return ", ".join(dict.fromkeys(map(os.path.basename, files.take_changes())))


def _in_words(error: AccordError) -> str:
    """Return an error without the process's standard error, which was shown as it arrived."""
    if isinstance(error, ConnectionClosed):
        code = error.exit_code
        return "the program has ended" + ("" if code is None else f" with exit code {code}")
    return label(str(error), LONGEST)


async def _stderr_is_read() -> None:
    """Let the event loop read what the program wrote to standard error before its last message."""
    for _ in range(LOOKS):
        await asyncio.sleep(0)


LOOKS = 5
"""Iterations of the event loop within which a line of standard error arrives that was already written."""


# A client


class ClientProgram:
    """Runs a client with the demo agent as its agent, again after each change."""

    def __init__(self, options: argparse.Namespace, files: WatchedFiles, view: Display, folder: Path) -> None:
        self._options = options
        self._files = files
        self._view = view
        self._trace = folder / "wire.jsonl"
        self._mistakes = Mistakes(view)

    async def play(self) -> int:
        """Run the client; without a terminal only once. Returns the exit code."""
        while True:
            code = await self._run()
            self._judge()
            self._mistakes.show()
            if code:
                self._view.note(f"accord dev: the client has ended with exit code {code}")
            if not (sys.stdin is not None and sys.stdin.isatty()):
                return FAILED if code or self._mistakes.total else ENDED_WELL
            self._view.note("Waiting for a change of the files. Ctrl-C ends.")
            await self._files.change()
            self._view.note(f"{_changed(self._files)}: running again")

    async def _run(self) -> int:
        """Run the client to its end, or until its files change."""
        self._trace.unlink(missing_ok=True)
        agent = own_command("accord", "trace", "--output", str(self._trace), "--", *own_command("accord", "demo"))
        given: list[str] = self._options.agent
        words = [word.replace("{agent}", shlex.join(agent)) for word in given]
        words += agent if words == given else []
        process = await asyncio.create_subprocess_exec(
            *own_command("accord_tools.cli.dev_program", "client", self._options.file, *words), stderr=subprocess.PIPE
        )
        reading = asyncio.ensure_future(self._read(process))
        changing = asyncio.ensure_future(self._files.change())
        try:
            await asyncio.wait((reading, changing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            changing.cancel()
            if process.returncode is None and not reading.done():
                process.terminate()
            code = await process.wait()
            await reading
        return code

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self._mistakes.agent_line(line.decode("utf-8", "replace").rstrip("\r\n"))

    def _judge(self) -> None:
        """Show the checker's findings in the client's messages."""
        if not self._trace.exists():
            self._view.note("The client has started no agent. Use its arguments: accord.connect(sys.argv[1:])")
            return
        try:
            from accord_check import judge
        except ModuleNotFoundError as error:
            if error.name != "accord_check":
                raise
            return
        self._mistakes.show_findings(judge(read(self._trace)), "client")
