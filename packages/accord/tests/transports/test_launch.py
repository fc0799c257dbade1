"""Starting an agent's process: with what it starts, and what is said when it cannot be."""

import asyncio
import os
import sys

import pytest

from accord.errors import ConnectionClosed
from accord.transports.process_transport import ProcessTransport
from tests.transports.children import ECHO, READY, pid_of, python


async def test_it_leads_a_session_of_its_own_and_inherits_no_descriptor_but_its_three(start):
    ours = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(ours, True)
    await start(python(ECHO))  # whose pipes the next one must not hold either
    count = "for fd in os.listdir('/proc/self/fd'): os.write(1, fd.encode() + b'\\n')\n"
    _, receiver = await start(python(READY + count))
    pid = await pid_of(receiver)
    await receiver.has_ended()
    os.close(ours)
    assert pid != os.getsid(0)
    assert sorted(map(int, receiver.frames[1:]))[:-1] == [0, 1, 2]  # and the one to list them with


async def test_it_runs_where_and_with_what_it_is_told(start, tmp_path, monkeypatch):
    monkeypatch.setenv("INHERITED", "1")
    monkeypatch.setenv("UNWANTED", "1")
    show = "print(os.getcwd(), *sorted(f'{name}={value}' for name, value in os.environ.items()), sep='\\n')\n"
    options = {"cwd": tmp_path, "env": {"ADDED": "2", "UNWANTED": None}}
    everything = await start(python(show), **options)
    some = await start(python(show), **options, inherit_env=["INHERITED", "UNWANTED", "UNKNOWN"])
    nothing = await start(python(show), **options, inherit_env=False)
    await asyncio.gather(*(receiver.has_ended() for _, receiver in (everything, some, nothing)))
    assert everything[1].frames[0] == os.fsencode(tmp_path)
    assert {b"ADDED=2", b"INHERITED=1"} < set(everything[1].frames)
    assert b"UNWANTED=1" not in everything[1].frames
    not_given = (b"LC_", b"ACCORD_STARTED_BY=")  # by Python itself, and by the transport
    given = [[line for line in it[1].frames[1:] if not line.startswith(not_given)] for it in (some, nothing)]
    assert given == [[b"ADDED=2", b"INHERITED=1"], [b"ADDED=2"]]


def script(path, text, mode=0o755):
    path.write_text(text)
    path.chmod(mode)


LAUNCH_PROBLEMS = {
    "no such command": (["no-such-agent"], "no-such-agent: command not found"),
    "no such file": (["/no/such/agent"], "no such file"),
    "not executable": (["./not-executable"], "is it executable"),
    "a directory": (["./"], "it is a directory"),
    "no interpreter": (["./no-interpreter"], "interpreter"),
    "no program": (["./no-program"], "not a program"),
    "a zero byte": (["agent", "\0"], "null byte"),
    "far too long": ([sys.executable, "x" * 10_000_000], "too long"),
}


@pytest.mark.parametrize("problem", LAUNCH_PROBLEMS)
async def test_a_command_that_cannot_be_started_is_one_clear_error(start, tmp_path, problem):
    script(tmp_path / "not-executable", "", 0o644)
    script(tmp_path / "no-interpreter", "#!/no/such/interpreter\n")
    script(tmp_path / "no-program", "just text")
    command, words = LAUNCH_PROBLEMS[problem]
    with pytest.raises(ConnectionClosed, match=words) as caught:
        await start(command, cwd=tmp_path)
    assert caught.value.reason == "died_at_start"
    assert "\n" not in str(caught.value)


async def test_a_command_that_was_found_but_whose_interpreter_was_not_says_so(start, tmp_path):
    script(tmp_path / "agent", "#!/no/such/interpreter\n")
    with pytest.raises(ConnectionClosed, match="interpreter that its first line names"):
        await start(["agent"], env={"PATH": str(tmp_path)})


async def test_a_missing_working_directory_is_not_mistaken_for_a_missing_command(start, tmp_path):
    with pytest.raises(ConnectionClosed, match=r"working directory .*gone does not exist"):
        await start(python(ECHO), cwd=tmp_path / "gone")


@pytest.mark.parametrize("command", [[], "gemini --acp"])
def test_a_command_is_a_list(command):
    with pytest.raises(ValueError, match="command must be a list"):
        ProcessTransport(command)
