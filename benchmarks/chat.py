"""What a terminal client costs while an answer streams in: its processor time, and the way from a key to its echo.

    python -m benchmarks.chat [--chunks 10000]      accord chat
    python -m benchmarks.chat --other "toad acp {agent} {folder}" --wait 10    the same for another one

It needs `pip install pyte`, a terminal without a window, which says what is on the screen.

The client runs in a pseudo-terminal of 120 by 40 with an agent that sends 1,000 chunks of six characters as fast as
they are taken. Processor time is that of the client's process alone, until it takes a prompt, and from the prompt until
the last chunk is on the screen. It is started once before, because an installed program is compiled. Keys are typed
while a slow stream runs; the time until the character comes back is the echo.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib
import os
import pty
import re
import select
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

LETTERS = "ABCDGIJKLMOPQRSUVXYZÄÖÜßÀÈÌÒÙÂÊÎÔÛÅÆØÇÑÕ"
"""Keys that are typed: no letter of them is on the screen before."""
KEYS = len(LETTERS)
PATIENCE = 120.0
UNKNOWN = re.compile(rb"\x1b\[[<>=?][0-9;]*[a-zA-Z]")
"""Private sequences, which pyte may show as text."""
AGENT = """
import asyncio
import sys
import accord

agent = accord.Agent("streams")

@agent.on_prompt
async def reply(turn: accord.Turn) -> None:
    slow = "slow" in turn.text
    for number in range(int(sys.argv[1])):
        await turn.say(f"w{number:04} ")
        if slow:
            await asyncio.sleep(0.01)
    await turn.say("\\n\\nTHEEND")

agent.run()
"""


class Client:
    """A client in a pseudo-terminal, and what it has written."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        own = {name: str(folder / "own") for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME")}
        env = {**os.environ, **own, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        self._process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=env)
        os.close(theirs)
        pyte: Any = importlib.import_module("pyte")
        self._screen = pyte.Screen(120, 40)
        self._terminal = pyte.ByteStream(self._screen)

    def write(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def until(self, wanted: str) -> None:
        """Read until this is on the screen; the questions of the client are answered."""
        end = time.monotonic() + PATIENCE
        while not any(wanted in line for line in self._screen.display):
            ready, _, _ = select.select([self._ours], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                shown = "\n".join(filter(str.strip, self._screen.display))
                raise TimeoutError(f"{wanted!r} did not come; the screen shows:\n{shown}")
            more = os.read(self._ours, 65_536)
            if b"\x1b[c" in more:
                self.write("\x1b[?62c")
            self._terminal.feed(UNKNOWN.sub(b"", more))

    @property
    def cpu(self) -> float:
        """Processor seconds of the client's process."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._process.terminate()
        os.close(self._ours)
        self._process.wait()


def measure(command: list[str], folder: Path, chunks: int, ready: str, wait: float = 0) -> str:
    """Runs a client with a prompt `wait` seconds after `ready` is on the screen; what it took, in a line."""
    compiled = Client(command, folder)
    compiled.until(ready)
    compiled.close()
    client = Client(command, folder)
    try:
        client.until(ready)
        time.sleep(wait)
        start = client.cpu
        client.write("fast")
        client.until("fast")
        before, began = client.cpu, time.monotonic()
        client.write("\r")
        client.until("THEEND")
        cpu, wall = client.cpu - before, time.monotonic() - began
        echoes = _echoes(client)
    finally:
        client.close()
    late = sorted(echoes)[-2]
    return (
        f"start {start:.2f} s of CPU; {chunks} chunks: {cpu:.2f} s of CPU, {wall:.2f} s; key to echo while streaming: "
        f"median {1000 * statistics.median(echoes):.0f} ms, second worst of {len(echoes)} {1000 * late:.0f} ms"
    )


def _echoes(client: Client) -> list[float]:
    """Types keys while a slow stream runs; each has a letter that the stream does not bring."""
    client.write("slow")
    client.until("slow")
    client.write("\r")
    client.until("w0010")
    found: list[float] = []
    for number in range(KEYS):
        letter = LETTERS[number]
        began = time.monotonic()
        client.write(letter)
        client.until(letter)
        found.append(time.monotonic() - began)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", metavar="COMMAND", help="another client; {agent} and {folder} are filled in")
    parser.add_argument(
        "--ready", metavar="TEXT", default="\u276f", help="what its screen shows when it takes a prompt"
    )
    parser.add_argument("--wait", metavar="S", type=float, default=0, help="seconds from then until its agent is there")
    parser.add_argument("--chunks", metavar="N", type=int, default=1_000, help="chunks of the answer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "agent.py").write_text(AGENT)
        agent = [sys.executable, str(folder / "agent.py"), str(options.chunks)]
        clients = {"accord chat": [sys.executable, "-m", "accord", "chat", "--", *agent]}
        if options.other:
            words = options.other.format(agent=shlex.quote(shlex.join(agent)), folder=place)
            clients[shlex.split(words)[0]] = shlex.split(words)
        for name, command in clients.items():
            when = ("streams", 0.0) if name == "accord chat" else (options.ready, options.wait)
            print(f"{name}: {measure(command, folder, options.chunks, *when)}", flush=True)


if __name__ == "__main__":
    main()
