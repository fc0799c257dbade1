"""What an agent has started ends with it, also what has left its process group."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from accord import ProcessTransport
from accord.transports.process_group import EscapedProcesses
from tests.transports.conftest import Recorder
from tests.waiting import eventually, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="environments of processes are shown by Linux only")

DAEMON = """
import os, signal, sys, time
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    os._exit(0)
{0}
for fd in (0, 1, 2):
    os.close(fd)
with open({1!r}, "w") as file:
    file.write(str(os.getpid()))
time.sleep(1000)
"""


def is_alive(pid):
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].startswith(" Z")
    except OSError:
        return False


async def with_daemon(tmp_path, *, before="", grace=2.0):
    """An agent that has started a daemon: its transport, and the daemon's process."""
    note, program = tmp_path / "pid", tmp_path / "daemon.py"
    program.write_text(DAEMON.format(before, str(note)))
    agent = f"import subprocess, sys; subprocess.run([sys.executable, {str(program)!r}]); sys.stdin.read()"
    transport = ProcessTransport([sys.executable, "-c", agent], grace=grace)
    await transport.start(Recorder())
    await eventually(lambda: note.exists() and note.read_text())
    pid = int(note.read_text())
    assert is_alive(pid)
    assert os.getpgid(pid) != transport.pid
    return transport, pid


async def test_a_daemon_that_an_agent_started_ends_with_the_agent(tmp_path):
    transport, pid = await with_daemon(tmp_path)
    await transport.close()
    assert not is_alive(pid)


async def test_a_daemon_that_ignores_sigterm_is_killed(tmp_path):
    transport, pid = await with_daemon(tmp_path, before="signal.signal(signal.SIGTERM, signal.SIG_IGN)", grace=0.1)
    await transport.close()
    assert not is_alive(pid)


async def test_a_daemon_ends_also_when_its_agent_dies(tmp_path):
    transport, pid = await with_daemon(tmp_path)
    os.kill(transport.pid, 9)
    await eventually(lambda: not is_alive(pid))
    await transport.close()


def pid_of_tmux(socket):
    query = ["tmux", "-S", str(socket), "display-message", "-p", "#{pid}"]
    return int(subprocess.run(query, capture_output=True, check=True, text=True).stdout)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
async def test_a_tmux_server_that_an_agent_started_ends_with_the_agent(tmp_path):
    socket = tmp_path / "tmux"
    command = f"unset TMUX; tmux -S {socket} new-session -d sleep 1000; echo $? > {tmp_path}/started; cat"
    transport = ProcessTransport(["sh", "-c", command])
    await transport.start(Recorder())
    await eventually(lambda: (tmp_path / "started").exists() and (tmp_path / "started").read_text() == "0\n")
    pid = pid_of_tmux(socket)
    await transport.close()
    assert not is_alive(pid)


async def test_what_others_have_started_is_left_alone(tmp_path):
    other, pid = await with_daemon(tmp_path)
    own = ProcessTransport([sys.executable, "-c", "import sys; sys.stdin.read()"])
    await own.start(Recorder())
    await own.close()
    assert is_alive(pid)
    await other.close()


@pytest.mark.parametrize("ended_by", ["outer", "inner"])
def test_marks_of_agents_that_start_each_other_are_all_kept(ended_by):
    outer, inner = EscapedProcesses(), EscapedProcesses()
    both = inner.marked(outer.marked({"A": "1"}))
    assert both["A"] == "1"
    process = subprocess.Popen(["sleep", "1000"], env={**os.environ, **both})
    ending = {"outer": outer, "inner": inner}[ended_by]
    try:
        wait_until(lambda: ending.kill() or process.poll() is not None)
    finally:
        process.kill()
        assert process.wait() == -9
