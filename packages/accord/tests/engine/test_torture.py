"""Fifty sessions with an agent in a process of its own, and something goes wrong: afterwards nothing is left.

Each round has a seed, which says which version is spoken, what the sessions do and what goes wrong. When exactly it
goes wrong is up to the machine, so a round that failed may need a few more tries to fail again: `--seed N` repeats it
for `--seconds`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import sys
import threading
import time
import uuid
from collections import Counter
from itertools import count, repeat
from pathlib import Path

import pytest

import accord
from accord.schema import v1, v2
from accord.transports.process_transport import ProcessTransport

AGENT = Path(__file__).with_name("torture_agent.py")
ECHO = "_torture/echo"
MARK = "ACCORD_TORTURE_ROUND"
SESSIONS = 50
BACKSTOP = 60.0
"""Seconds after which a round hangs; it takes one or two."""
GRACE = 0.3

FAULTS = [
    "none",
    "kill",
    "stop",
    "stop and go on",
    "crash",
    "deaf",
    "lose_input",
    "lose_output",
    "leave",
    "close",
    "close from a handler",
    "close twice",
    "close and cancel that",
    "cancel everybody",
    "fail",
    "cancel the whole",
]
ENDLESS = {"flood", "wait"}
EXPECTED = (accord.ConnectionClosed, accord.PeerError, accord.Timeout)


class OnPurpose(Exception):
    """Leaves the block of a connection."""


class Prompt:
    """One prompt on its way, and the updates that came for it."""

    def __init__(self, text):
        self.text = text
        self.verb = text.split()[1]
        self.seen = 0


class Client:
    """Fifty sessions, what each of them sees, and what it complains about."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.version = self.chance.choice([1, 2])
        self.schema = v1 if self.version == 1 else v2
        self.problems = []
        self.prompts = {"x": Prompt("x at random")}
        self.done = Counter()
        self.updates = 0
        self.wakes = {}
        self.closing = None
        self.names = count()
        self.busy = self.chance.choice([0, 1, 5])
        """How long handlers take."""
        handlers = accord.Handlers()
        updates = v1.SessionNotification if self.version == 1 else v2.UpdateSessionNotification
        handlers.on(updates)(self.plain_update if self.chance.random() < 0.5 else self.update)
        handlers.on_request(ECHO)(self.echo)
        self.transport = ProcessTransport(
            [sys.executable, str(AGENT), str(seed), str(self.version)],
            limit=200_000,
            grace=GRACE,
            on_stderr=self.stderr,
        )
        limits = accord.Limits(
            grace=GRACE, stuck_after=BACKSTOP, intake=self.chance.choice([2_000, 100_000, 4_000_000])
        )
        self.peer = accord.Peer(self.transport, handlers, role="client", limits=limits)

    @property
    def overflows(self):
        """Whether slow handlers may fall too far behind: requests that a deaf agent never answers keep us reading."""
        return self.closing == "deaf"

    def stderr(self, line):
        self.problems.append(f"the agent says: {line}")

    # What the agent sends

    async def update(self, notification):
        for _ in range(self.busy):
            await asyncio.sleep(0)
        self.plain_update(notification)

    def plain_update(self, notification):
        name, text = notification.update.content.text.split()
        prompt, number = self.prompts[name], int(text)
        if number != prompt.seen and not (self.overflows and number > prompt.seen):
            self.problems.append(f"update {number} of {prompt.text} came when {prompt.seen} was due")
        prompt.seen = number + 1
        self.updates += 1
        for wake in self.wakes.pop(self.updates, ()):
            wake.set()

    async def echo(self, params, context):
        if self.closing == "close from a handler":
            await context.peer.close()
        if params["depth"]:
            await context.peer.request_raw(ECHO, {**params, "depth": params["depth"] - 1})
        return params

    async def after_updates(self, number, sessions):
        """Wait until so many more have come, or until none will: on a busy machine many prompts pass their deadline."""
        wake = asyncio.Event()
        self.wakes.setdefault(self.updates + number, []).append(wake)
        await first_of(wake.wait(), self.peer.connection.closed(), asyncio.wait(sessions))

    # What the sessions do

    async def live(self):
        session_id = (await self.peer.request(self.schema.NewSessionRequest("/", []))).session_id
        for _ in range(self.chance.randint(1, 3)):
            await self.prompt(session_id)
            params = {"sessionId": session_id, "depth": self.chance.randint(0, 3)}
            await self.peer.notify_raw("_torture/note", params)

    async def prompt(self, session_id):
        verb = self.chance.choice(["stream", "stream", "ask", "both", "flood", "wait", "fail", "junk", "orphan"])
        if verb == "orphan" and self.chance.random() < 0.9:
            verb = "stream"
        await self.say(session_id, verb, self.chance.choice([1, 10, 100]))

    async def say(self, session_id, verb, number=0):
        name = str(next(self.names))
        prompt = self.prompts[name] = Prompt(f"{name} {verb} {number}")
        timeout = self.chance.choice([None, None, None, None, 0.0, 0.02])
        request = self.schema.PromptRequest.of(session_id, prompt.text)
        asking = asyncio.ensure_future(self.peer.request(request, timeout=timeout))
        try:
            await self.perhaps_cancel(session_id, prompt, asking)
            response = await asking
        except asyncio.CancelledError:
            if not asking.cancelled() or asyncio.current_task().cancelling():
                raise
            self.done["cancelled"] += 1
        except EXPECTED as error:
            self.done[type(error).__name__] += 1
            if isinstance(error, accord.ConnectionClosed):
                raise
        else:
            self.done[response.stop_reason if self.version == 1 else response.message_id] += 1
            if response.meta["sent"] != prompt.seen:
                self.problems.append(f"{prompt.text}: {response.meta['sent']} sent, {prompt.seen} seen")
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    async def perhaps_cancel(self, session_id, prompt, asking):
        how = self.chance.choice(["session/cancel", "task"] + ([] if prompt.verb in ENDLESS else ["not"] * 5))
        if how == "not":
            return
        await turn_the_loop(self.chance.choice([0, 10, 500]))
        if how == "task":
            asking.cancel()
            return
        while not asking.done():  # the agent may not have begun with it, and a cancel that comes too early is lost
            cancel = v1.CancelNotification if self.version == 1 else v2.CancelSessionNotification
            await self.peer.notify(cancel(session_id))
            await first_of(asking, turn_the_loop(500))

    # What goes wrong

    async def run(self, fault):
        with contextlib.suppress(OnPurpose):
            async with self.peer:
                response = await self.shake_hands()
                sessions = [asyncio.ensure_future(self.live()) for _ in range(SESSIONS)]
                try:
                    await self.after_updates(self.chance.choice([1, 100, 2000]) if fault != "none" else 1, sessions)
                    await self.go_wrong(fault, response.meta["pid"], sessions)
                    if fault in {"none", "stop and go on"}:
                        await asyncio.wait(sessions)
                finally:
                    if self.chance.random() < 0.5:
                        await self.peer.close()
                    for session in sessions:
                        session.cancel()
                    self.check(await asyncio.gather(*sessions, return_exceptions=True), fault)

    async def shake_hands(self):
        if self.version == 1:
            return await self.peer.initialize(v1.InitializeRequest(protocol_version=1))
        return await self.peer.request(v2.InitializeRequest(2, v2.Implementation("torture", "1")))

    async def go_wrong(self, fault, pid, sessions):
        self.closing = fault
        close = self.peer.close
        match fault:
            case "kill":
                signal_to(pid, signal.SIGKILL)
                await self.peer.connection.closed()
            case "stop" | "stop and go on":
                signal_to(pid, signal.SIGSTOP)
                await turn_the_loop(3000)
                if fault == "stop and go on":
                    signal_to(pid, signal.SIGCONT)
            case "crash" | "leave" | "lose_input" | "lose_output" | "deaf":
                await first_of(self.tell_agent(fault), self.peer.connection.closed())
                await turn_the_loop(1000)
            case "close":
                await close()
            case "close from a handler":
                await self.tell_agent("ask", 4)
                await self.peer.connection.closed()
            case "close twice":
                await asyncio.gather(close(), close())
            case "close and cancel that":
                closing = asyncio.ensure_future(close())
                await turn_the_loop(50)
                closing.cancel()
                await asyncio.wait([closing])
            case "cancel everybody":
                for session in self.chance.sample(sessions, self.chance.randint(1, SESSIONS)):
                    session.cancel()
                await turn_the_loop(50)
            case "fail":
                raise OnPurpose
            case "cancel the whole":
                asyncio.current_task().cancel()
                await asyncio.sleep(0)

    async def tell_agent(self, verb, number=0):
        with contextlib.suppress(*EXPECTED):
            session_id = (await self.peer.request(self.schema.NewSessionRequest("/", []))).session_id
            await self.peer.request(self.schema.PromptRequest.of(session_id, f"x {verb} {number}"))

    def check(self, ends, fault):
        for end in ends:
            usual = (accord.ConnectionClosed, asyncio.CancelledError, *([accord.Overflow] if self.overflows else []))
            if isinstance(end, BaseException) and not isinstance(end, usual):
                self.problems.append(f"a session failed: {end!r}")
            if end is not None and fault in {"none", "stop and go on"}:
                self.problems.append(f"a session was cut short, and nothing was wrong: {end!r}")


def signal_to(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


async def turn_the_loop(most):
    for _ in range(most):
        await asyncio.sleep(0)


async def first_of(*awaitables):
    """Wait for one of them; what was started for this has ended then, however the waiting ends."""
    waiting = {asyncio.ensure_future(awaitable) for awaitable in awaitables}
    own = waiting - set(awaitables)
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in own:
            task.cancel()
        await asyncio.gather(*own, return_exceptions=True)


# What must not be left


def descriptors():
    found = Counter()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found[str(entry.readlink()).partition(":[")[0]] += 1
    del found[f"/proc/{os.getpid()}/fd"]
    return found


def processes(mark):
    """Who was started in this round and lives."""
    left = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdecimal() and mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                left.append((process / "cmdline").read_bytes().decode().split("\0"))
    return left


def zombies():
    """Our children that have ended and that nobody has asked about."""
    with contextlib.suppress(ChildProcessError):
        if (info := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            return [info.si_pid]
    return []


def books(connection):
    return {
        "requests of ours": connection._open.outgoing,
        "requests of theirs": connection._open.incoming,
        "lanes": connection._lanes.busy,
        "bytes in lanes": connection._lanes.size,
        "handlers": connection._tasks.running,
        "senders": connection.read_pause.senders,
        "impatient requests": connection.read_pause.impatient,
    }


class Errors(logging.Filter):
    """Keeps errors that the engine logs, but for those of handlers whose link has ended, and overflows of the deaf."""

    def __init__(self, client):
        super().__init__()
        self.client = client
        self.problems = client.problems

    def filter(self, record):
        error = record.exc_info[1] if record.exc_info else None
        may_be = self.client.overflows and record.msg == "%s and were dropped; the limit is %s bytes"
        if record.levelno >= logging.ERROR and not may_be and not isinstance(error, EXPECTED):
            self.problems.append(f"logged: {record.getMessage()} {error!r}")
        return False


async def round_of(seed, mark):
    """What was wrong in this round."""
    fault = random.Random(seed).choice(FAULTS)
    client = Client(seed)
    problems = client.problems
    asyncio.get_running_loop().set_exception_handler(lambda _, it: problems.append(f"{it}"))
    errors = Errors(client)
    log = logging.getLogger("accord")
    log.addFilter(errors)
    before = descriptors(), set(threading.enumerate()), asyncio.all_tasks()
    try:
        async with asyncio.timeout(BACKSTOP):
            running = asyncio.ensure_future(client.run(fault))
            await asyncio.wait([running])
        if not running.cancelled() and (error := running.exception()):
            problems.append(f"{error!r}")
    except TimeoutError:
        problems.append("hangs: " + "\n".join(sorted(repr(task) for task in asyncio.all_tasks())))
        running.cancel()
        await asyncio.wait([running], timeout=BACKSTOP)
    finally:
        log.removeFilter(errors)
    await asyncio.sleep(0)
    left = {
        "tasks": asyncio.all_tasks() - before[2],
        "threads": set(threading.enumerate()) - before[1],
        "descriptors": descriptors() - before[0],
        "processes": processes(mark),
        "zombies": zombies(),
        **books(client.peer.connection),
    }
    problems += [f"left: {what}: {value}" for what, value in left.items() if value]
    return [f"{fault}: {problem}" for problem in problems], client.done


def loops():
    """The event loops that are here, in turn."""
    try:
        import uvloop
    except ImportError:
        return [asyncio.new_event_loop]
    return [asyncio.new_event_loop, uvloop.new_event_loop]


def seeds_of(option):
    """A round that is asked for, again and again; else rounds that nobody has seen, or in CI always the same ones."""
    if option is not None:
        return repeat(option)
    return count(0 if os.environ.get("CI") else random.SystemRandom().randrange(10**9))


@pytest.mark.torture
def test_whatever_goes_wrong_nothing_hangs_and_nothing_is_left(seconds, pytestconfig, monkeypatch):
    factories = loops()
    done = Counter()
    end = time.monotonic() + seconds
    for number, seed in enumerate(seeds_of(pytestconfig.option.seed)):
        if number and time.monotonic() > end:
            break
        mark = f"{MARK}={uuid.uuid4().hex}"
        monkeypatch.setenv(*mark.split("="))
        with asyncio.Runner(loop_factory=factories[seed % len(factories)]) as runner:
            problems, outcomes = runner.run(round_of(seed, mark))
        done += outcomes
        if problems:
            again = f"seed {seed}; once more: pytest {__file__} --seed {seed}"
            pytest.fail("\n".join([again, *problems[:20]]), pytrace=False)
    print(f"{number} rounds, {dict(done)}")
