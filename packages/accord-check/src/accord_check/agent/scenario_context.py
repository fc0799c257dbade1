"""`ScenarioContext`: the context of a scenario: links to the agent, a scratch folder, and the place for its findings.

The functions before it have the differences between the versions of the protocol: handshake, capabilities, logins.

`LeftoverProcesses` sees the processes that an agent leaves when it ends, before its transport ends them. A process of
the agent has some seconds to end after the agent, because it may learn of the end from a closed pipe. The kernel
reports its end, so only one that stays is waited for. Linux shows which processes an agent has started.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from accord import ProcessTransport
from accord.errors import AUTH_REQUIRED, INVALID_PARAMS, UNSUPPORTED_VERSION
from accord.transports import End, Transport
from accord_check.agent.raw_connection import FULL, Blocked, ClientServices, Link, Over, Recording, Turn
from accord_check.agent.settings import FOLDER, Settings
from accord_check.checks import CHECKS_OF_AGENTS, CHECKS_OF_CLIENTS, Finding, Side
from accord_check.conversation import Exchange, object_of, objects
from accord_check.passive.observer import Place, Tally, Verdict
from accord_check.report import Report, outcomes_of
from accord_check.trace_judge import Judge, peer_of

INFO = {"name": "accord-check", "version": "1"}

FULL_V2: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "session": {"promptSuggestions": {}, "commands": {"skill": {}}},
    "_meta": {"accord.dev/cursors": {}},
}
"""The capabilities of a client of version 2 that supports nearly everything."""

_BASE = ("list", "resume", "close")
"""The capabilities of every agent of version 2 with sessions."""

_NAMES = {"load": "loadSession", "image": "promptCapabilities.image", "http": "mcpCapabilities.http"}
_NAMES_V2 = {
    "image": "session.prompt.image",
    "skill": "session.prompt.skill",
    "http": "session.mcp.http",
    "stdio": "session.mcp.stdio",
}


def handshake(version: int, *, can_do: bool, terminal_login: bool = False) -> dict[str, Any]:
    """Return the params of `initialize`, of a client that supports nearly everything or nothing.

    `terminal_login`: the client can open a terminal for a login.
    """
    if version == 2:
        login: dict[str, Any] = {"auth": {"terminal": {}}} if terminal_login else {}
        return {"protocolVersion": 2, "capabilities": (FULL_V2 if can_do else {}) | login, "info": INFO}
    way: dict[str, Any] = {"auth": {"terminal": True}} if terminal_login else {}
    return {"protocolVersion": 1, "clientCapabilities": (FULL if can_do else {}) | way, "clientInfo": INFO}


def _capability(feature: str, version: int) -> str:
    """Return where an agent declares a feature; empty for features of every agent of this version."""
    if version == 2:
        return "" if feature in _BASE or feature == "load" else _NAMES_V2.get(feature, f"session.{feature}")
    if feature == "stdio":
        return ""
    return _NAMES.get(feature, f"sessionCapabilities.{feature}")


def not_refused(exchange: Exchange, code: int = INVALID_PARAMS) -> str | None:
    """Describe the problem if a request should have been refused with this code; None if it was."""
    if exchange.succeeded:
        return f"{exchange.method} was accepted"
    said = object_of(exchange.error).get("code")
    return None if said == code else f"{exchange.method} was refused with {said}, not {code}"


_SHOWN = 3
"""The most processes that a finding names."""


class LeftoverProcesses:
    """Looks for the processes of one agent, once the agent has ended on its own."""

    def __init__(self, transport: Transport, patience: float) -> None:
        self.left: list[str] | None = None
        """The commands of the remaining processes; None if nothing reports them."""
        self._patience = patience
        if isinstance(transport, ProcessTransport):
            self._transport = transport
            if sys.platform == "linux":
                transport.before_cleanup = self._look

    @property
    def problem(self) -> str | None:
        """Describe the problem; None if no process is left."""
        if not self.left:
            return None
        more = f" and {len(self.left) - _SHOWN} more" if len(self.left) > _SHOWN else ""
        what = "processes that the agent started run" if len(self.left) > 1 else "a process that the agent started runs"
        return f"{what} on {self._patience:g} s after its end: {', '.join(self.left[:_SHOWN])}{more}"

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                while pids := self._transport.started():
                    await _ended(pids[0])
        except TimeoutError:
            self.left = [name for pid in self._transport.started() if (name := _command_of(pid))]
        except OSError:  # a sandbox that does not let us watch processes
            return
        else:
            self.left = []


async def _ended(pid: int) -> None:
    """Wait for the end of a process that is not our child."""
    if sys.platform != "linux":
        raise OSError("only Linux tells of processes that are not our children")
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(watched, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def _command_of(pid: int) -> str:
    """The command line of a process, shortened; empty for one that has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", "replace").strip()[:80]


NOWHERE = "accord-check-no-such-session"
"""The id of a session that does not exist."""


class OtherVersion(Exception):
    """The agent does not speak the version that the scenarios speak."""


Progress = Callable[[str], None]
"""Called with a description of the next scenario."""


def fault_of_checks(scenario: str, error: Exception) -> str:
    """Describe an error in a scenario that is no fault of the other side."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return f"in the scenario {scenario!r}: {type(error).__name__}: {error} ({where})"


class RunResults:
    """What the scenarios of a run have shown of this side: an agent, or a client."""

    def __init__(self, side: Side) -> None:
        self.recording = Recording()
        self.reasons: dict[str, str] = {}
        """Why an active check was not exercised."""
        self.problems: list[str] = []
        """Faults of the checks themselves."""
        self.spoken: list[int] = []
        """The versions that were spoken."""
        self._side: Side = side
        self._began = time.monotonic()
        self._peer = ""
        self._seen: Counter[tuple[str, Side]] = Counter()
        self._findings: dict[tuple[str, Side, str], Finding] = {}

    def skip(self, names: str | Iterable[str], reason: str) -> None:
        """Note that these active checks had nothing to judge, for this reason."""
        for name in (names,) if isinstance(names, str) else names:
            self.reasons.setdefault(name, reason)

    def add(self, tally: Tally, placed: Callable[[Finding], Finding] = lambda it: it) -> None:
        """Add the results of a scenario or a connection; `placed` says where a finding was seen. The same fault of two
        counts once.
        """
        self._seen += tally.seen
        for finding in tally.findings:
            self._findings.setdefault((finding.id, finding.side, finding.message), placed(finding))

    def spoke(self, judging: Judge, version: int) -> None:
        """Note that this version was spoken on a connection."""
        self._peer = self._peer or peer_of(judging, self._side)
        if version not in self.spoken:
            self.spoken.append(version)

    def report(self, subject: str, profile: str, blocked: str, trace: str | Path | None) -> Report:
        """Return the report on the side, and write the file for all conversations if it is named."""
        found = [finding for finding in self._findings.values() if finding.side == self._side]
        checks = CHECKS_OF_AGENTS if self._side == "agent" else CHECKS_OF_CLIENTS
        if trace is not None:
            self.recording.write(trace)
        return Report(
            subject,
            outcomes_of(checks, (self._side,), self._seen, found, self.reasons),
            peer=self._peer,
            version=min(self.spoken, default=None),
            versions=tuple(sorted(self.spoken)),
            profile=profile,
            seconds=time.monotonic() - self._began,
            blocked=blocked,
            problems=self.problems,
            trace="" if trace is None else str(trace),
        )


class ScenarioContext(RunResults):
    """The surroundings of the scenarios of one run."""

    def __init__(self, dial: Callable[[], Transport], settings: Settings, folder: Path) -> None:
        super().__init__("agent")
        self.settings = settings
        self.folder = folder
        """The scratch folder, in which sessions work."""
        self.tally = Tally()
        """The observations and findings of the active checks."""
        self.sessions: list[str] = []
        """Sessions with a past, for the scenario of a restarted agent."""
        self.prompts = 0
        """How many prompts were sent."""
        self.is_spent = False
        """Whether a scenario ended because the budget of prompts was used up."""
        self.version = 1
        """The version that the scenarios speak."""
        self.unspoken: dict[int, str] = {}
        """The versions that the agent does not speak, with its refusals."""
        self._dial = dial

    # Results of checks

    def judge(self, name: str, verdict: Verdict, *places: Place | None) -> None:
        """Count that this active check had something to judge, with this result."""
        self.tally.judge(name, verdict, *places, by="agent")

    def answered(self, name: str, exchange: Exchange | Turn, problem: str = "") -> bool:
        """Judge that a request succeeded; returns whether it did."""
        error = object_of(exchange.error)
        what = problem or f"{exchange.method} was refused"
        verdict = exchange.succeeded or f"{what}: {error.get('code')} {str(error.get('message', ''))[:120]}"
        self.judge(name, verdict, exchange.frame, exchange.answered)
        return exchange.succeeded

    async def refuses(
        self, link: Link, name: str, method: str, params: dict[str, Any], code: int = INVALID_PARAMS
    ) -> None:
        """Judge that a request is refused with this code."""
        exchange = await link.ask(method, params, self.settings.turn_within)
        self.judge(name, not_refused(exchange, code), exchange)

    def refused(self, name: str, exchange: Exchange, problem: str) -> None:
        """Judge that a request was refused; `problem` is the finding if it was not."""
        self.judge(name, not exchange.succeeded or problem, exchange)

    # Links

    @asynccontextmanager
    async def link(self) -> AsyncGenerator[Link]:
        """Open a new connection to the agent; a process is started. Its results are stored at its end."""
        services = ClientServices(self.folder)
        transport = self._dial()
        left = LeftoverProcesses(transport, self.settings.left_within)
        link = Link(transport, services, self.recording, self.settings)
        await link.open()
        try:
            yield link
        finally:
            await link.close(self.settings.grace)
            if left.left is not None:
                name = "lint.killed.leaves-no-process" if link.was_killed else "lint.leaves-no-process"
                self.judge(name, left.problem, link.last)
            link.judge.end()
            self._keep(link.judge.tally)

    @asynccontextmanager
    async def logged_in(self) -> AsyncGenerator[Link]:
        """A new connection to the agent, after the handshake and the login that the settings name."""
        async with self.link() as link:
            await self.initialize(link)
            await self.login(link)
            yield link

    async def initialize(
        self, link: Link, name: str = "lint.initialize.succeeds", *, can_do: bool = True, terminal_login: bool = False
    ) -> Exchange:
        """Perform the handshake, as the check of this name. Raises Over if the agent refuses, or OtherVersion."""
        params = handshake(self.version, can_do=can_do, terminal_login=terminal_login)
        exchange = await link.ask("initialize", params, self.settings.start_within)
        chose_first = self.version == 2 and exchange.fields.get("protocolVersion") == 1
        if chose_first or object_of(exchange.error).get("code") == UNSUPPORTED_VERSION:
            raise OtherVersion(f"the agent does not speak version {self.version} of the protocol")
        if not self.answered(name, exchange):
            raise Over
        self.spoke(link.judge, self.version)
        return exchange

    def offers(self, link: Link, feature: str) -> bool:
        """Whether the agent offers a feature: `load`, `list`, `fork`, ..."""
        path = _capability(feature, self.version)
        return not path or link.judge.conversation.declares("agent", path)

    def lacks(self, link: Link, feature: str, *names: str) -> bool:
        """Whether the agent lacks a feature; the checks of these names are then not exercised."""
        if self.offers(link, feature):
            return False
        self.skip(names, f"the agent does not declare {_capability(feature, self.version)}")
        return True

    def place(self, session: str | None = None, **more: Any) -> dict[str, Any]:
        """Return the params of a request that opens a session, new or not, in the scratch folder."""
        known = {} if session is None else {"sessionId": session}
        return {**known, "cwd": str(self.folder), "mcpServers": [], **more}

    async def new_session(self, link: Link, name: str = "session.agent-baseline", **more: Any) -> str:
        """Open a session in the scratch folder, as the check of this name; returns its id.

        Raises Blocked if the agent asks for a login, and Over if it refuses.
        """
        exchange = await link.ask("session/new", self.place(**more))
        if object_of(exchange.error).get("code") == AUTH_REQUIRED:
            opening = link.judge.conversation.initialize
            offered = objects(opening.fields.get("authMethods")) if opening is not None else ()
            ways = ", ".join(str(way.get("methodId", way.get("id"))) for way in offered) or "none offered"
            raise Blocked(f"the agent asks for a login; give --auth METHOD, one of: {ways}")
        made = exchange.fields.get("sessionId")
        if not self.answered(name, exchange) or not isinstance(made, str):
            raise Over
        return made

    async def login(self, link: Link) -> None:
        """Log in, if the settings say how."""
        if self.settings.auth_method is not None:
            method = "auth/login" if self.version == 2 else "authenticate"
            exchange = await link.ask(method, {"methodId": self.settings.auth_method}, self.settings.turn_within)
            if not exchange.succeeded:
                raise Blocked(f"the login {self.settings.auth_method!r} failed: {exchange.error}")

    async def prompt(self, link: Link, session: str, *texts: str, more: list[dict[str, Any]] | None = None) -> Turn:
        """Send a prompt, and wait for the end of its turn."""
        return await link.turn_end(self.begin(link, session, *texts, more=more))

    async def plain_turn(self, link: Link, session: str, name: str) -> bool:
        """Send the prompt for a short answer, and judge that its turn succeeds, as the check of this name."""
        return self.answered(name, await self.prompt(link, session, self.settings.prompts.plain))

    def begin(
        self, link: Link, session: str, *texts: str, more: list[dict[str, Any]] | None = None, key: Any = None
    ) -> Turn:
        """Send a prompt, with an idempotency key if one is given. Raises Over if the budget of prompts is used up."""
        if self.settings.max_prompts is not None and self.prompts >= self.settings.max_prompts:
            self.is_spent = True
            raise Over
        self.prompts += 1
        named = [text.replace(FOLDER, str(self.folder)) for text in texts]
        blocks = [{"type": "text", "text": text} for text in named] + (more or [])
        keyed = {} if key is None else {"idempotencyKey": key}
        exchange = link.call("session/prompt", {"sessionId": session, "prompt": blocks, **keyed})
        return Turn(exchange, link.states(session) if self.version == 2 else None)

    async def load(self, link: Link, session: str) -> Exchange:
        """Open a session again, with its past."""
        if self.version == 2:
            return await self.resume(link, session, replayFrom={"type": "start"})
        return await link.ask("session/load", self.place(session), self.settings.turn_within)

    async def resume(self, link: Link, session: str, **more: Any) -> Exchange:
        """Open a session again, without its past."""
        return await link.ask("session/resume", self.place(session, **more), self.settings.turn_within)

    def process_ended(self, link: Link, end: End, when: str) -> None:
        """Judge how a process ended after the end of its input."""
        if not link.is_process:
            self.skip("lint.ends-at-end-of-input", "the agent is not our process")
            return
        was_killed = end.exit_code is not None and (end.exit_code in (-15, -9, 143, 137))
        wrong = f"the agent had to be killed {self.settings.grace:g} s after the end of its input, {when}"
        self.judge("lint.ends-at-end-of-input", not was_killed or wrong, link.last)

    # The end

    def speak(self, version: int) -> None:
        """Let the scenarios speak this version from now on."""
        self._keep(self.tally)
        self.version, self.tally, self.sessions = version, Tally(), []

    def _keep(self, tally: Tally) -> None:
        version = self.version
        where = f"version {version}" if len(self.settings.versions) > 1 else ""
        self.add(tally, lambda finding: replace(finding, where=where, version=version))
