"""Branches of other platforms, forced on this one: a system without /proc and pidfd, and a loop without signals."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import accord
from accord.program import on_signals
from accord.services import terminal_service

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forces branches on POSIX")

LIKE_MACOS = """
import os, selectors, sys

def without_proc(event, given):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(given[0], str) and given[0].startswith("/proc"):
        raise FileNotFoundError(2, "no such file or directory", given[0])

sys.addaudithook(without_proc)
sys.platform = "darwin"
del os.pidfd_open
selectors.DefaultSelector = selectors.PollSelector  # kqueue is only there on macOS

import asyncio
import accord
from accord import v1
from accord.project.confined import Roots
from accord.services.terminal_service import Terminals

WAITS = "import signal; signal.pause()"
PARENT = f"import signal, subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {{WAITS!r}}]).pid); "
PARENT += "sys.stdout.flush(); signal.pause()"

class Session:
    id, cwd, agent, program = v1.SessionId("s"), {folder!r}, "tester", "tester"
    roots = Roots([cwd])

async def main():
    async with accord.connect([sys.executable, "-m", "accord", "demo"]) as remote:
        session = await remote.new_session({folder!r})
        print((await session.prompt("What is a tool call?")).stop_reason)
    lent = Terminals(pty={pty})
    request = v1.CreateTerminalRequest("s", sys.executable, args=["-c", PARENT])
    terminal = await lent.create(Session, request)
    async for text in terminal.follow():
        if text.strip():
            break
    await lent.release(Session)
    print(int(text))

asyncio.run(main())
"""


@pytest.mark.parametrize("pty", [False, True])
def test_without_proc_and_pidfd_agents_and_terminals_end_with_all_that_they_started(tmp_path, pty):
    source = LIKE_MACOS.format(folder=str(tmp_path), pty=pty)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    stop_reason, child = done.stdout.split()
    assert stop_reason == "end_turn"
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX"


class WithoutSignals(asyncio.SelectorEventLoop):
    """A loop that cannot handle signals, as those of Windows."""

    def add_signal_handler(self, sig, callback, *args):
        raise NotImplementedError


@pytest.mark.parametrize("make_loop", [asyncio.SelectorEventLoop, WithoutSignals])
def test_a_signal_is_handled_in_the_loop_and_the_former_handler_comes_back(make_loop):
    before = signal.getsignal(signal.SIGTERM)

    async def main():
        told = asyncio.Event()
        with on_signals([signal.SIGTERM], told.set):
            signal.raise_signal(signal.SIGTERM)
            assert not told.is_set()
            await told.wait()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_pseudo_terminal_is_refused_at_once_where_there_is_none(monkeypatch):
    monkeypatch.setattr(terminal_service, "HAS_PTY", False)
    accord.Terminals()
    with pytest.raises(NotImplementedError, match="'pty' must be False on Windows, got True"):
        accord.Terminals(pty=True)
