"""Messages of our agent that test the client's reaction: updates, unknown messages, files, terminals."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from accord.errors import METHOD_NOT_FOUND, NOT_FOUND
from accord_check.agent.raw_connection import Over
from accord_check.client.scenario_run import SAMPLES, ScenarioRun, refused
from accord_check.conversation import Exchange, Frame, object_of

LOG = b'a line of a log\n{"jsonrpc":"2.0","id":1,"method":"session/request_permission"}\n' + b"more of it\n" * 2_000


@dataclass(frozen=True, slots=True)
class Probe:
    """A message that a client must survive."""

    name: str
    """The check that it belongs to."""
    after: str
    send: Callable[[ScenarioRun], Frame | None]
    needs: str = ""
    """The capability without which it is not sent."""
    versions: tuple[int, ...] = (1, 2)


def _logged(run: ScenarioRun) -> None:
    run.client.complain(LOG)


_OTHERS: tuple[Probe, ...] = (
    Probe("tool.defaults", "a tool call without kind and status", lambda it: it.tool("check-bare", title="Something")),
    Probe(
        "lint.client.takes-updates",
        "the end of a tool call",
        lambda it: it.update("tool_call_update", toolCallId="check-bare", status="failed"),
    ),
    Probe(
        "message.id.null-is-absent",
        "a chunk whose messageId is null",
        lambda it: it.update("agent_message_chunk", messageId=None, content={"type": "text", "text": "No id. "}),
        versions=(1,),
    ),
    Probe(
        "meta.nothing-assumed",
        "an update with _meta",
        lambda it: it.update(
            "agent_message_chunk",
            **({"messageId": "check-meta"} if it.version == 2 else {}),
            content={"type": "text", "text": "Meta. ", "_meta": {"accord.example/check": {"nested": [1, None]}}},
            _meta={"accord.example/check": True},
        ),
    ),
    Probe("stdio.stderr-is-no-protocol", "22 kB on standard error", _logged),
    Probe(
        "extension.notification-unknown",
        "the notification _accord.check/nothing",
        lambda it: it.notify("_accord.check/nothing", {}),
    ),
    Probe(
        "protocol.unknown-dollar-ignored",
        "the notification $/accord_check_nothing",
        lambda it: it.notify("$/accord_check_nothing", {}),
    ),
    Probe(
        "elicitation.complete.unknown-ignored",
        "elicitation/complete with an unknown id",
        lambda it: it.notify("elicitation/complete", {"elicitationId": "accord-check-nothing"}),
        "elicitation.url",
    ),
    Probe(
        "update.unknown-ignored",
        "an update of an unknown kind",
        lambda it: it.update("_accord.check/update", text="from the future"),
    ),
)


def _probes(version: int) -> Iterator[Probe]:
    for after, update in SAMPLES["updates"][str(version)].items():
        yield Probe("lint.client.takes-updates", after, partial(ScenarioRun.send_sample, update=update))
    yield from (probe for probe in _OTHERS if version in probe.versions)


PROBES = {version: tuple(_probes(version)) for version in (1, 2)}
"""By version, in the order in which they are sent: the mildest first, as a client that ends misses what follows."""


async def probed(run: ScenarioRun) -> None:
    """Send each probe, and judge that the client continues after it."""
    for probe in PROBES[run.version]:
        if probe.name == "stdio.stderr-is-no-protocol" and not run.client.starts_process:
            run.skip(probe.name, "the client has connected to a URL")
            continue
        if probe.needs and not run.declares(probe.needs):
            run.skip(probe.name, f"the client does not declare {probe.needs}")
            continue
        sent = probe.send(run)
        await run.alive(probe.name, probe.after, *([sent] if sent is not None else []))


TEXT = "first line\nsecond line\nthird line\n"
NOTES, LINK, MADE = "accord-check-notes.txt", "accord-check-link.txt", "accord-check-made.txt"
SECRET = "accord-check-secret"
READ_CHECKS = ("files.read.line-and-limit", "files.missing-code", "files.inside-roots", "files.escape-proof")


async def read_files(run: ScenarioRun, folder: Path, outside: Path) -> None:
    """Read lines of a file, a missing file, and files outside of the session's folder."""
    if not run.declares("fs.readTextFile"):
        run.skip(READ_CHECKS, "the client does not declare fs.readTextFile")
        return
    (folder / NOTES).write_text(TEXT)
    exchange = await run.ask_here("fs/read_text_file", path=str(folder / NOTES), line=2, limit=1)
    if exchange.succeeded:
        text = exchange.fields.get("content")
        is_more = isinstance(text, str) and len(text.splitlines()) > 1  # which every trace shows
        odd = isinstance(text, str) and not is_more and text.rstrip("\n") != "second line"
        verdict = not odd or f"line 2 with limit 1 is {text!r:.60}, and it is 'second line'"
        run.judged("files.read.line-and-limit", verdict, exchange)
    else:
        run.skip("files.read.line-and-limit", refused(exchange))
    exchange = await run.ask_here("fs/read_text_file", path=str(folder / "accord-check-missing.txt"))
    code = object_of(exchange.error).get("code")
    said = f"was answered with {exchange.result!r:.60}" if exchange.succeeded else f"was refused with {code}"
    verdict = code == NOT_FOUND or f"a file that is not there {said}, not -32002"
    run.judged("files.missing-code", verdict, exchange)
    (outside / NOTES).write_text(SECRET)
    link = folder / LINK
    link.unlink(missing_ok=True)
    link.symlink_to(outside / NOTES)
    for name, path, what in (
        ("files.inside-roots", outside / NOTES, "a file outside of the session's folder"),
        ("files.escape-proof", link, "a link that leads outside of the session's folder"),
    ):
        exchange = await run.ask_here("fs/read_text_file", path=str(path))
        verdict = SECRET not in str(exchange.fields.get("content")) or f"{what} was read"
        run.judged(name, verdict, exchange)


async def write_file(run: ScenarioRun, folder: Path) -> None:
    """Write a file that does not exist yet."""
    if not run.declares("fs.writeTextFile"):
        run.skip("files.write.creates", "the client does not declare fs.writeTextFile")
        return
    path = folder / MADE
    exchange = run.call_here("fs/write_text_file", path=str(path), content=TEXT)
    await run.must_answer(exchange, "lint.client.answers")
    if not exchange.succeeded:
        run.skip("files.write.creates", refused(exchange))
        return
    found = await asyncio.to_thread(lambda: path.read_text() if path.exists() else None)
    verdict = found == TEXT or f"{path.name} was written, and {'is not there' if found is None else 'differs'}"
    run.judged("files.write.creates", verdict, exchange)


TELLS = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ.get('ACCORD_CHECK'), os.getcwd()]))"
LONG = "import sys; sys.stdout.buffer.write('ä'.encode() * 500 + b'end')"
LIMIT = 100
"""An even number of bytes, so that a cut that does not look at characters divides one: `end` has an odd number."""

BEATS = """
import os, sys, time
with open(sys.argv[1], "w") as file:
    while os.path.exists(sys.argv[1]):
        print(".", end="", file=file, flush=True)
        time.sleep(0.05)
"""
"""Writes to a file for as long as it lives and the file exists."""

PAUSE = 0.05
"""Seconds between two writes of that, and between two checks of its file."""

ARGUMENTS = ["two words", "$HOME", "*", "'quoted'"]
TERMINAL_CHECKS = (
    "terminal.capability-means-all",
    "terminal.create.at-once",
    "terminal.create.as-told",
    "terminal.output.at-once",
    "terminal.output.oldest-dropped",
    "terminal.output.whole-characters",
    "terminal.kill.keeps-terminal",
    "terminal.release.kills",
)


async def run_terminals(run: ScenarioRun, folder: Path) -> None:
    """Test everything about terminals. A client that refuses to run commands is not judged further."""
    if not run.declares("terminal"):
        run.skip(TERMINAL_CHECKS, "the client does not declare terminal")
        return
    if not await _runs_as_requested(run, folder):
        return
    await _long(run)
    await _killed(run, folder)
    await _ended_by_release(run, folder)


async def _made(
    run: ScenarioRun, script: str, *arguments: str, judged_as: str = "lint.client.answers", **more: Any
) -> str | None:
    """Start a script; returns its terminal."""
    words = ["-c", script, *arguments]
    exchange = await _method(run, "create", judged_as, command=sys.executable, args=words, **more)
    made = exchange.fields.get("terminalId")
    if not exchange.succeeded or not isinstance(made, str):
        run.skip(TERMINAL_CHECKS, refused(exchange))
        return None
    return made


async def _method(run: ScenarioRun, name: str, judged_as: str = "lint.client.answers", **params: Any) -> Exchange:
    """Call one of the five methods; that it is answered is judged as the check `judged_as`."""
    exchange = await run.must_answer(run.call_here(f"terminal/{name}", **params), judged_as)
    missing = object_of(exchange.error).get("code") == METHOD_NOT_FOUND
    verdict = not missing or f"the client declares terminal, and does not know terminal/{name}"
    run.judged("terminal.capability-means-all", verdict, exchange)
    if missing:
        raise Over
    return exchange


async def _runs_as_requested(run: ScenarioRun, folder: Path) -> bool:
    variables = [{"name": "ACCORD_CHECK", "value": "a value"}]
    made = await _made(run, TELLS, *ARGUMENTS, env=variables, cwd=str(folder))
    if made is None:
        return False
    await _method(run, "wait_for_exit", terminalId=made)
    exchange = await _method(run, "output", terminalId=made)
    output: Any = exchange.fields.get("output")
    with suppress(ValueError):
        output = json.loads(str(output))
    wanted = [ARGUMENTS, "a value", str(folder)]
    is_right: bool = output == wanted
    verdict = is_right or f"the command printed {output!r:.200}, not {wanted!r}"
    run.judged("terminal.create.as-told", verdict, exchange.answered)
    await _method(run, "release", terminalId=made)
    await _method(run, "output", terminalId=made)  # refused, which every trace shows
    if not is_right:
        run.skip(TERMINAL_CHECKS, "commands do not run as they were told")
    return is_right


async def _long(run: ScenarioRun) -> None:
    made = await _made(run, LONG, outputByteLimit=LIMIT)
    if made is None:
        return
    await _method(run, "wait_for_exit", terminalId=made)
    exchange = await _method(run, "output", terminalId=made)
    output = str(exchange.fields.get("output"))
    wrong = None
    if len(output.encode("utf-8", "replace")) > LIMIT + 2 or not output.rstrip().endswith("end"):
        wrong = f"1,003 bytes with the limit {LIMIT} were kept as {output[:20]!r}…{output[-20:]!r}"
    run.judged("terminal.output.oldest-dropped", wrong, exchange.answered)
    if wrong is None:
        verdict = output[:1] in ("ä", "e") or f"the output begins with {output[:3]!r}"
        run.judged("terminal.output.whole-characters", verdict, exchange.answered)
    await _method(run, "release", terminalId=made)


async def _killed(run: ScenarioRun, folder: Path) -> None:
    made = await _made(run, BEATS, str(folder / "accord-check-beats-1"), judged_as="terminal.create.at-once")
    if made is None:
        return
    exchange = await _method(run, "output", "terminal.output.at-once", terminalId=made)
    if not exchange.succeeded:
        run.judged("terminal.output.at-once", refused(exchange), exchange)
    await _method(run, "kill", terminalId=made)
    exchange = await _method(run, "output", terminalId=made)
    verdict = exchange.succeeded or f"after terminal/kill: {refused(exchange)}"
    run.judged("terminal.kill.keeps-terminal", verdict, exchange)
    await _method(run, "release", terminalId=made)


async def _ended_by_release(run: ScenarioRun, folder: Path) -> None:
    beats = folder / "accord-check-beats-2"
    made = await _made(run, BEATS, str(beats))
    if made is None:
        return
    await _until(beats.exists, run.settings.answer_within)
    exchange = await _method(run, "release", terminalId=made)
    still = await _beating(beats)
    verdict = not still or "the command of a released terminal runs on"
    run.judged("terminal.release.kills", verdict, exchange)


async def _until(holds: Callable[[], bool], within: float) -> None:
    """Wait until this holds, or the time is over."""
    by = time.monotonic() + within
    while not await asyncio.to_thread(holds):
        if time.monotonic() > by:
            return
        await asyncio.sleep(PAUSE)


async def _beating(beats: Path) -> bool:
    """Whether a command still writes; it has two seconds to end."""
    by = time.monotonic() + 2
    while time.monotonic() < by:
        before = await asyncio.to_thread(_size, beats)
        await asyncio.sleep(12 * PAUSE)
        if before == await asyncio.to_thread(_size, beats):
            return False
    return True


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
