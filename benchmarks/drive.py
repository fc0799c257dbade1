"""What the Python clients share: the command line, the clock and the JSON lines.

A client supplies `Link`, the few things that differ between SDKs; everything that is measured is measured here.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from benchmarks.contract import Command, Json, parse, percentile, run, text

CANCEL_AFTER = 0.05
PATIENCE = 20.0
USAGE = "usage: client [--uvloop] [--json] PROMPT [PROMPT ...] -- AGENT [ARGUMENT ...]"


class Refused(Exception):
    """The agent answered a prompt with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Turn(NamedTuple):
    """A prompt's answer."""

    stop_reason: str
    meta: Json


class Link(Protocol):
    """A live connection to an agent that has answered `initialize`."""

    pid: int
    seen: int
    """How many updates the client's own handler has finished with. A client adds to it, the clock here reads it."""

    async def open(self) -> str: ...
    async def prompt(self, session: str, text: str) -> Turn: ...
    async def cancel(self, session: str) -> None: ...


Connect = Callable[[Sequence[str]], AbstractAsyncContextManager[Link]]


def expected_updates(command: Command) -> int:
    """How many updates the contract promises for a command."""
    match command.verb:
        case "stream":
            return command.number(0)
        case "tools":
            return 2 * command.number(0)
        case "read" | "conc" | "wait" | "fail" | "throw" | "sessions":
            return 0
        case _:
            return 1


def handled(command: Command, updates: int) -> int:
    """What the rate counts: requests for `read` and `conc`, updates for everything else."""
    return command.number(0) if command.verb in {"read", "conc"} else updates


def as_promised(command: Command, stop_reason: str | None, updates: int, refused: Refused | None) -> bool:
    """Whether a turn ended as the contract says."""
    if command.verb == "fail":
        return refused is not None and (refused.code, refused.message) == (command.number(0), command.rest(1))
    if command.verb == "throw":
        return refused is not None
    reason = "cancelled" if command.verb == "wait" else "end_turn"
    return refused is None and stop_reason == reason and updates == expected_updates(command)


def resident(pid: int | str) -> dict[str, int] | None:
    """Resident memory of a process in KiB, now and at its peak; None where the system does not tell."""
    names = {"VmRSS:": "now", "VmHWM:": "peak"}
    try:
        with open(f"/proc/{pid}/status") as status:  # noqa: PTH123  pathlib would weigh on the start that is measured
            fields = [line.split() for line in status]
    except OSError:
        return None
    return {names[field[0]]: int(field[1]) for field in fields if field and field[0] in names}


async def one_prompt(link: Link, session: str, prompt: str) -> dict[str, Json]:
    """Send one prompt and stop the clock when its answer is here and every update was handled."""
    command = parse(prompt)
    # `echo BYTES` stands for a text too long for a command line; the agent sends it back.
    sent = text(command.number(0)) if command.verb == "echo" else prompt
    expected = expected_updates(command)
    turn: Turn | None = None
    refused: Refused | None = None
    link.seen = 0
    begun = time.perf_counter()
    answer: Awaitable[Turn] = link.prompt(session, sent)
    if command.verb == "wait":
        answer = asyncio.ensure_future(answer)
        await asyncio.sleep(CANCEL_AFTER)
        await link.cancel(session)
    try:
        turn = await answer
    except Refused as error:
        refused = error
    else:
        # An event would cost every handler a comparison; this costs nothing unless the answer was early.
        while link.seen < expected and time.perf_counter() - begun < PATIENCE:  # noqa: ASYNC110
            await asyncio.sleep(0)
    seconds = time.perf_counter() - begun
    updates = link.seen
    bench: Json = turn.meta.get("bench") if turn and turn.meta else None
    return {
        "prompt": prompt,
        "ms": round(seconds * 1e3, 3),
        "updates": updates,
        "perSec": round(handled(command, updates) / seconds, 1),
        # Only the side that asks can time a round trip, so these are the agent's.
        "p50us": bench and bench.get("p50us"),
        "p99us": bench and bench.get("p99us"),
        "stopReason": turn and turn.stop_reason,
        "bench": bench,
        "error": refused and {"code": refused.code, "message": refused.message},
        "ok": as_promised(command, turn and turn.stop_reason, updates, refused),
    }


async def many_sessions(link: Link, prompt: str) -> dict[str, Json]:
    """Open sessions, keep them, and say what both processes weigh before and after."""
    count = parse(prompt).number(0)
    before = {"agent": resident(link.pid), "client": resident("self")}
    begun = time.perf_counter()
    opened = [await link.open() for _ in range(count)]
    seconds = time.perf_counter() - begun
    after = {"agent": resident(link.pid), "client": resident("self")}
    return {
        "prompt": prompt,
        "ms": round(seconds * 1e3, 3),
        "updates": 0,
        "perSec": round(count / seconds, 1) if seconds else 0.0,
        "p50us": None,
        "p99us": None,
        "stopReason": None,
        "bench": None,
        "error": None,
        "memory": {"before": before, "after": after},
        "ok": len(set(opened)) == count,
    }


async def many_turns(link: Link, session: str, prompt: str) -> dict[str, Json]:
    """Turns of one update each, one after the other: what a remote link costs when nothing can be joined."""
    count = parse(prompt).number(0)
    sound = True
    times: list[float] = []
    begun = time.perf_counter()
    for _ in range(count):
        line = await one_prompt(link, session, "hello")
        times.append(line["ms"] * 1e3)
        sound = sound and line["ok"]
    return turns_line(prompt, times, time.perf_counter() - begun, ok=sound)


def turns_line(prompt: str, times: Sequence[float], seconds: float, *, ok: bool) -> dict[str, Json]:
    """The line of turns that took so many microseconds each."""
    count = len(times)
    return {
        "prompt": prompt,
        "ms": round(seconds * 1e3, 3),
        "updates": count,
        "perSec": round(count / seconds, 1) if seconds else 0.0,
        "p50us": percentile(times, 0.5),
        "p99us": percentile(times, 0.99),
        "stopReason": None,
        "bench": None,
        "error": None,
        "ok": ok,
    }


async def turns_amid(link: Link, session: str, prompt: str) -> dict[str, Json]:
    """`amid STREAMING COUNT`: turns of one update, one after the other, while so many other sessions stream."""
    streaming, count = parse(prompt).number(0), parse(prompt).number(1)
    done = False

    async def stream(other: str) -> None:
        while not done:
            await link.prompt(other, "stream 500")

    others = [asyncio.create_task(stream(await link.open())) for _ in range(streaming)]
    times: list[float] = []
    begun = time.perf_counter()
    for _ in range(count):
        asked = time.perf_counter()
        await link.prompt(session, "hello")
        times.append((time.perf_counter() - asked) * 1e6)
    seconds = time.perf_counter() - begun
    done = True
    await asyncio.gather(*others)
    return turns_line(prompt, times, seconds, ok=len(times) == count)


async def measured(link: Link, session: str, prompt: str) -> dict[str, Json]:
    """What came of one prompt of the command line."""
    match parse(prompt).verb:
        case "sessions":
            return await many_sessions(link, prompt)
        case "turns":
            return await many_turns(link, session, prompt)
        case "amid":
            return await turns_amid(link, session, prompt)
        case _:
            return await one_prompt(link, session, prompt)


async def drive(connect: Connect, prompts: Sequence[str], agent: Sequence[str], show: Callable[[Json], None]) -> int:
    """Spawn the agent, open one session and send it every prompt."""
    begun = time.perf_counter()
    sound = True
    async with connect(agent) as link:
        start_ms = round((time.perf_counter() - begun) * 1e3, 3)
        session = await link.open()
        for prompt in prompts:
            line = await measured(link, session, prompt)
            show(line | {"startMs": start_ms})
            sound = sound and line["ok"]
    return 0 if sound else 1


def show_json(line: Json) -> None:
    """One JSON text a prompt."""
    print(json.dumps(line), flush=True)


def show_text(line: Json) -> None:
    """The same for people."""
    ended = line["error"]["message"] if line["error"] else line["stopReason"]
    print(f"{line['prompt']}: {line['ms']:,.1f} ms, {line['perSec']:,.0f}/s, {ended}, ok: {line['ok']}", flush=True)


def main(connect: Connect) -> int:
    """The command line of every Python client."""
    flags, agent = sys.argv[1:], list[str]()
    if "--" in flags:
        split = flags.index("--")
        flags, agent = flags[:split], flags[split + 1 :]
    prompts = [flag for flag in flags if not flag.startswith("--")]
    if not agent or not prompts:
        print(USAGE, file=sys.stderr)
        return 2
    show = show_json if "--json" in flags else show_text
    return run(lambda: drive(connect, prompts, agent, show), uvloop="--uvloop" in flags)
