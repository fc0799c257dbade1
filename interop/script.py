"""Behaviours: read from their files, run by a client's program against an agent's, judged.

A behaviour is a list of steps that one client takes with one agent. What many of them begin with is said once: `"with":
"session"` stands for `initialize` and `session/new`. `"prompt": "words"` and `"actions": [...]` (for the agents of this
suite) stand for a `session/prompt`; `"restart": true` ends the agent and starts it again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interop.matching import problems_of

HERE = Path(__file__).resolve().parent
SECONDS = 120.0

Step = dict[str, Any]

INITIALIZE: Step = {
    "call": "initialize",
    "params": {
        "protocolVersion": 1,
        "clientInfo": {"name": "interop-client", "version": "1.0.0"},
        "clientCapabilities": {
            "fs": {"readTextFile": True, "writeTextFile": True},
            "terminal": True,
            "elicitation": {"form": {}, "url": {}},
        },
    },
}
NEW: Step = {
    "call": "session/new",
    "params": {"cwd": "<folder>", "mcpServers": []},
    "keep": {"session": "sessionId"},
}
BEGINNINGS: dict[str, list[Step]] = {"nothing": [], "initialize": [INITIALIZE], "session": [INITIALIZE, NEW]}


@dataclass(frozen=True)
class Behaviour:
    """Something that a client and an agent do together, and what must come of it."""

    name: str
    title: str
    runs: Sequence[Sequence[Step]]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    arguments: Sequence[str] = ()
    """What the agent is started with, beside its command."""


@dataclass(frozen=True)
class Outcome:
    """How it went: `passed`, `unsupported` (the SDK has no way to say it) or `failed`."""

    status: str
    problems: Sequence[str] = ()


def behaviours(name: str) -> list[Behaviour]:
    """The behaviours of one file in `behaviours/`."""
    listed = json.loads((HERE / "behaviours" / f"{name}.json").read_text())
    return [
        Behaviour(it["name"], it["title"], runs_of(it), it.get("files", {}), it.get("arguments", []))
        for it in listed  # one object each
    ]


def runs_of(behaviour: Mapping[str, Any]) -> list[list[Step]]:
    """Its steps in full, cut where the agent is started again."""
    beginning = BEGINNINGS[behaviour.get("with", "session")]
    runs: list[list[Step]] = [[*beginning]]
    for step in behaviour["steps"]:
        if "restart" in step:
            runs.append([*BEGINNINGS["initialize"]])
        else:
            runs[-1].append(in_full(step))
    return runs


def in_full(step: Step) -> Step:
    """A step with its short forms written out."""
    step = dict(step)
    session = step.pop("session", "<session>")
    text = json.dumps(step.pop("actions")) if "actions" in step else step.pop("prompt", None)
    if text is not None:
        blocks: Any = [{"type": "text", "text": text}] if isinstance(text, str) else text
        step |= {"call": "session/prompt", "params": {"sessionId": session, "prompt": blocks}}
    if "long" in step:  # a text too long for a file
        step["params"]["prompt"][0]["text"] = "x" * step.pop("long")
    return step


class Broken(Exception):
    """A program did not get to the end of its script."""


def run_behaviour(
    behaviour: Behaviour, client: Sequence[str], agent: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Outcome:
    """Let this client go through it with this agent, in this empty folder."""
    lent = folder / "lent"
    lent.mkdir(parents=True)
    for name, text in behaviour.files.items():
        (lent / name).write_text(text)
    known: dict[str, Any] = {}
    lines: list[dict[str, Any]] = []
    try:
        for number, steps in enumerate(behaviour.runs):
            script = folder / f"script{number}.json"
            script.write_text(json.dumps({"folder": str(lent), "known": known, "steps": steps}))
            started = [token.replace("{data}", str(folder)) for token in (*agent, *behaviour.arguments)]
            lines += run_program([*client, str(script), "--", *started], len(steps), environment, folder)
            known = lines[-1]["known"]
    except Broken as broken:
        return Outcome("failed", [str(broken)])
    steps = [step for run in behaviour.runs for step in run]
    return judged(steps, lines)


def judged(steps: Sequence[Step], lines: Iterable[dict[str, Any]]) -> Outcome:
    problems: list[str] = []
    for step, line in zip(steps, lines, strict=True):
        if "unsupported" in line:
            return Outcome("unsupported", [line["unsupported"]])
        problems += [f"{named(step)}: {problem}" for problem in problems_of(step.get("expect", {}), line)]
    return Outcome("failed" if problems else "passed", problems)


def named(step: Step) -> str:
    verbs = ("call", "tell", "await", "await_updates", "finish")
    return next(f"{verb} {step[verb]}" for verb in verbs if verb in step)


def run_program(
    command: Sequence[str], steps: int, environment: Mapping[str, str], folder: Path
) -> list[dict[str, Any]]:
    """A client's lines. Whatever it has started is gone afterwards."""
    everything = {**os.environ, **environment}
    with (folder / "stderr").open("ab") as stderr:
        program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=everything,
            start_new_session=True,
        )
        try:
            printed, _ = program.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise Broken(f"still running after {SECONDS:g} seconds: {ending(folder)}") from None
        finally:
            end_group(program)
    lines = [json.loads(line) for line in printed.splitlines()]
    if len(lines) < steps:
        raise Broken(f"ended with {program.returncode} after {len(lines)} of {steps} steps: {ending(folder)}")
    if program.returncode:
        raise Broken(f"ended with {program.returncode}: {ending(folder)}")
    return lines


def end_group(program: subprocess.Popen[bytes]) -> None:
    """End the program and its children."""
    if sys.platform == "win32":
        program.kill()
    else:
        with contextlib.suppress(ProcessLookupError):  # all of them are gone
            os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def ending(folder: Path) -> str:
    """The last words on stderr."""
    text = (folder / "stderr").read_text(errors="replace").strip()
    return " | ".join(text.splitlines()[-6:])[-600:]
