"""Attacks on an agent over standard streams: the attacker starts it, and watches its memory from outside."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.attack.attackers import WAIT, Attacker, attack
from tests.attack.attackers.payloads import SHAPES
from tests.attack.attackers.wire import INITIALIZE, NEW_SESSION, cut_off, junk, prompt, unknown
from tests.attack.bounds import MIB, Bounds

ANSWERING = 60.0
"""Seconds in which an agent that was attacked has to answer once its output is read."""


HONEST = (sys.executable, "-m", "tests.attack.honest_agent")
CONDUCTED = (sys.executable, "-m", "accord", "conduct", shlex.join([*HONEST, "proxy"]), shlex.join(HONEST))


class Agent:
    """An agent of ours in a process of its own, by itself or at the end of a chain, and what it answers."""

    def __init__(
        self, attacker: Attacker, command: Sequence[str] = (), *, folder: Path | None = None, **more: str
    ) -> None:
        self.attacker = attacker
        self._received = b""
        self.process = subprocess.Popen(
            command or attacker.random.choice((HONEST, CONDUCTED)),
            cwd=folder,
            env={**os.environ, **more},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.write(json.dumps(INITIALIZE).encode() + b"\n")
        self.answer(0)
        self.base = self.memory()

    def memory(self, what: str = "VmRSS") -> int:
        found = re.search(rf"{what}:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0

    def write(self, data: bytes) -> bool:
        """Write what it takes; False once it has taken nothing for a while."""
        assert self.process.stdin is not None
        pipe = self.process.stdin.fileno()
        os.set_blocking(pipe, False)
        while data:
            if not select.select([], [pipe], [], WAIT)[1]:
                return False
            written = os.write(pipe, data)
            self.attacker.sent += written
            data = data[written:]
        return True

    def answer(self, number: int) -> dict:
        """Read until the answer to this request."""
        assert self.process.stdout is not None
        ends = time.monotonic() + ANSWERING
        while True:
            line, ended, rest = self._received.partition(b"\n")
            if ended:
                self._received = rest
                message = json.loads(line)
                if message.get("id") == number and "method" not in message:
                    return message
                continue
            if not select.select([self.process.stdout], [], [], max(0.0, ends - time.monotonic()))[0]:
                raise TimeoutError
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                raise EOFError
            self._received += data

    def has_to_be_well(self, why: str) -> None:
        """Its memory was bounded, and it still answers."""
        grown = self.memory("VmHWM") - self.base
        if grown > Bounds.left:
            self.attacker.wrong(f"an agent over stdio grew by {grown // MIB} MiB: {why}")
            return
        try:
            self.write(json.dumps({**NEW_SESSION, "id": 10**6}).encode() + b"\n")
            self.answer(10**6)
        except (OSError, EOFError) as error:
            self.attacker.wrong(f"an agent over stdio does not answer any more ({error!r}): {why}")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@attack
def unread_answers_on_stdio(attacker: Attacker) -> None:
    """Asks without reading: the agent has to stop reading as well."""
    agent = Agent(attacker)
    attacker.go_on()
    number = 1
    while attacker.going:
        if not agent.write(unknown(number, 20_000) + b"\n"):
            break
        attacker.made()
        number += 1
    grown = agent.memory("VmHWM") - agent.base
    if grown > Bounds.left:
        attacker.wrong(f"an agent over stdio grew by {grown // MIB} MiB: {number} answers were not read")
    agent.end()


@attack
def odd_lines_on_stdio(attacker: Attacker) -> None:
    """Lines of odd JSON and of junk: each may be refused, and the agent goes on."""
    while attacker.going:
        agent = Agent(attacker)
        with cut_off():
            shape = attacker.random.choice(list(SHAPES))
            for data in (SHAPES[shape]()[: 2 * MIB].replace(b"\n", b" "), junk(attacker, 1_000).replace(b"\n", b" ")):
                agent.write(data + b"\n")
            attacker.made()
            agent.has_to_be_well(f"{shape}, and junk")
        agent.end()


@attack
def unanswered_prompts_on_stdio(attacker: Attacker) -> None:
    """Prompts that are never answered, and a client that then closes its end: the agent has to end as well."""
    agent = Agent(attacker)
    with cut_off():
        agent.write(json.dumps(NEW_SESSION).encode() + b"\n")
        session = agent.answer(1)["result"]["sessionId"]
        for number in range(20_000):
            if not attacker.going or not agent.write(json.dumps(prompt(session, "wait", number + 2)).encode() + b"\n"):
                break
            attacker.made()
        assert agent.process.stdin is not None
        agent.process.stdin.close()
        grown = agent.memory("VmHWM") - agent.base
        if grown > Bounds.peak:
            attacker.wrong(f"an agent over stdio grew by {grown // MIB} MiB with {attacker.tries} prompts")
        try:
            agent.process.wait(ANSWERING)
        except subprocess.TimeoutExpired:
            attacker.wrong(f"an agent with {attacker.tries} prompts does not end when its input does")
    agent.process.kill()
    agent.process.wait()
