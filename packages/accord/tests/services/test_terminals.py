"""Real commands for an agent: their output, their end, and nothing of them left."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

import accord
from accord import v1
from accord.services import terminal_service as terminal_module
from accord.services.terminal_service import Terminals
from tests.posix import resource
from tests.waiting import eventually

MARK = "ACCORD_TEST_RUN"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


def left_of(mark, command=""):
    """Who was started during this test and still lives; with a command, only who runs that."""
    left = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdecimal() and f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                left.append((process / "cmdline").read_bytes())
    return [it for it in left if it.startswith(command.encode())]


def end_of_output(command, size):
    """What another program reads from the same pipe."""
    tail = subprocess.Popen(["tail", "-c", str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with subprocess.Popen(command, stdout=tail.stdin):
        return tail.communicate()[0].decode()


def start(command, **options):
    return subprocess.Popen(command, start_new_session=True, **options)


def zombies():
    """Children that have ended and that were not asked about; a fixture of the whole run may have living ones."""
    with contextlib.suppress(ChildProcessError):
        if (info := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            return [info.si_pid]
    return []


def descriptors():
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(entry.readlink()).partition(":[")[0])
    return sorted(found)


@pytest.fixture(autouse=True)
async def nothing_is_left(monkeypatch):
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    before, threads, tasks = descriptors(), set(threading.enumerate()), asyncio.all_tasks()
    yield mark
    assert asyncio.all_tasks() - {asyncio.current_task()} <= tasks
    assert set(threading.enumerate()) <= threads
    assert descriptors() == before
    await eventually(lambda: not left_of(mark))
    assert not zombies()


@pytest.fixture
async def terminals(session):
    terminals = Terminals()
    yield terminals
    await terminals.release(session)


@pytest.fixture
def run(terminals, session):
    def run(command, *args, **options):
        env = [v1.EnvVariable(name, value) for name, value in options.pop("env", {}).items()]
        return terminals.create(session, v1.CreateTerminalRequest(session.id, command, list(args), env, **options))

    return run


@pytest.mark.requirement("terminal.create.as-told", "terminal.output.exit-status", "terminal.wait.until-exit")
async def test_a_command_runs_with_its_arguments_environment_and_folder(project, session, lend, within):
    (project / "sub").mkdir()
    script = 'printf "%s|%s|%s" "$1" "$GREETING" "$PWD"; exit 3'
    async with lend(Terminals(), sessions=[session]) as client:
        request = v1.CreateTerminalRequest(
            session.id, "sh", ["-c", script, "sh", "one arg"], [v1.EnvVariable("GREETING", "hi")], f"{project}/sub"
        )
        terminal_id = (await client.request(request)).terminal_id
        ended = await within(client.request(v1.WaitForTerminalExitRequest(session.id, terminal_id)))
        assert (ended.exit_code, ended.signal) == (3, None)
        output = await client.request(v1.TerminalOutputRequest(session.id, terminal_id))
        assert output == v1.TerminalOutputResponse(f"one arg|hi|{project}/sub", False, v1.TerminalExitStatus(3))


@pytest.mark.requirement("terminal.create.at-once", "terminal.output.at-once")
async def test_a_command_that_runs_can_be_looked_at(project, session, lend):
    async with lend(Terminals(), sessions=[session]) as client:
        created = await client.request(v1.CreateTerminalRequest(session.id, "sleep", ["1000"], cwd=str(project)))
        output = await client.request(v1.TerminalOutputRequest(session.id, created.terminal_id))
        assert output == v1.TerminalOutputResponse("", False, None)


@pytest.mark.requirement("terminal.output.oldest-dropped", "terminal.output.whole-characters")
@pytest.mark.requirement("terminal.output.truncation-told")
async def test_the_oldest_output_is_dropped_between_characters(run, within):
    terminal = await run("printf", "aüüü", output_byte_limit=5)
    await within(terminal.wait())
    assert (terminal.text, terminal.truncated) == ("üü", True)


async def test_both_outputs_are_in_the_order_they_were_written(run, within):
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done"
    terminal = await run("sh", "-c", script)
    await within(terminal.wait())
    assert terminal.text == "".join(f"out {i}\nerr {i}\n" for i in range(1, 10))


async def test_the_last_line_is_there_when_the_command_has_ended(run, within):
    for size in (1, 4096, 65_536, 65_537, 1_000_000):
        terminal = await run("sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x; printf end")
        await within(terminal.wait())
        assert terminal.text == "x" * size + "end" if size < 2**20 - 3 else terminal.text.endswith("xend")


async def test_a_hundred_at_once(run, within, terminals, session):
    running = await asyncio.gather(*(run("sh", "-c", f"echo {n}; exit {n}") for n in range(100)))
    statuses = await within(asyncio.gather(*(terminal.wait() for terminal in running)))
    assert [status.exit_code for status in statuses] == list(range(100))
    assert [terminal.text for terminal in running] == [f"{n}\n" for n in range(100)]


async def test_much_output_takes_little_memory_and_is_what_the_pipe_had(run, seconds):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    command = ["seq", "120000000" if seconds > 60 else "5000000"]  # a gigabyte where torture may take its time
    terminal = await run(*command)
    await terminal.wait()
    assert terminal.text == end_of_output(command, 2**20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # KiB


async def test_a_command_has_ended_though_a_child_of_it_holds_the_pipe(run, within):
    terminal = await run("sh", "-c", "sleep 1000 & echo started")
    assert (await within(terminal.wait())).exit_code == 0
    assert terminal.text == "started\n"


async def test_what_a_child_prints_afterwards_is_kept(run, within, project):
    os.mkfifo(project / "go")
    terminal = await run("sh", "-c", "(read word <go; echo $word) & exit 0")
    await within(terminal.wait())
    assert terminal.text == ""
    (project / "go").write_text("later\n")
    await eventually(lambda: terminal.text == "later\n")


@pytest.mark.requirement("terminal.kill.keeps-terminal", "terminal.capability-means-all")
async def test_a_killed_command_takes_its_children_along_and_can_still_be_read(project, session, lend, nothing_is_left):
    async with lend(Terminals(), sessions=[session]) as client:
        script = "sleep 1000 & sleep 1000 | sleep 1000 & echo ready; wait"
        created = await client.request(v1.CreateTerminalRequest(session.id, "sh", ["-c", script]))
        look = v1.TerminalOutputRequest(session.id, created.terminal_id)
        while (await client.request(look)).output != "ready\n":  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await client.request(v1.KillTerminalRequest(session.id, created.terminal_id))
        ended = await client.request(v1.WaitForTerminalExitRequest(session.id, created.terminal_id))
        assert (ended.exit_code, ended.signal) == (None, "SIGTERM")
        assert (await client.request(look)).output == "ready\n"
        assert not left_of(nothing_is_left, "sleep")


async def test_a_command_that_does_not_want_to_end_is_killed(run, within, monkeypatch):
    monkeypatch.setattr(terminal_module, "GRACE", 0.05)
    terminal = await run("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done")
    await eventually(lambda: terminal.text)
    await within(terminal.kill())
    assert (await terminal.wait()).signal == "SIGKILL"


@pytest.mark.requirement("terminal.release.kills", "terminal.release.ends-id")
async def test_a_released_terminal_is_gone_with_its_command(project, session, lend, within, nothing_is_left):
    async with lend(Terminals(), sessions=[session]) as client:
        created = await client.request(v1.CreateTerminalRequest(session.id, "sleep", ["1000"]))
        waiting = asyncio.create_task(
            client.request(v1.WaitForTerminalExitRequest(session.id, created.terminal_id)),
        )
        await asyncio.sleep(0)
        await within(client.request(v1.ReleaseTerminalRequest(session.id, created.terminal_id)))
        assert (await within(waiting)).signal == "SIGTERM"
        for message in (
            v1.TerminalOutputRequest,
            v1.WaitForTerminalExitRequest,
            v1.KillTerminalRequest,
            v1.ReleaseTerminalRequest,
        ):
            with pytest.raises(accord.PeerError) as caught:
                await client.request(message(session.id, created.terminal_id))
            assert caught.value.code == -32002


async def test_a_session_that_ends_takes_its_commands_along_and_no_others(terminals, session, asking, project, within):
    other = asking(project)  # another agent's session, by chance with the same id
    mine = await terminals.create(session, v1.CreateTerminalRequest(session.id, "sleep", ["1000"]))
    theirs = await terminals.create(other, v1.CreateTerminalRequest(other.id, "sleep", ["1000"]))
    with pytest.raises(accord.RequestError):
        terminals.find(other, mine.id)
    await within(terminals.release(session))
    assert mine.exit_status is not None
    assert theirs.exit_status is None
    await within(terminals.release(other))


async def test_a_number_that_is_in_use_again_is_not_signalled(run, within):
    terminal = await run("true")
    await within(terminal.wait())
    bystander = start(["sleep", "1000"])
    try:
        group = terminal._group  # as if the kernel had given the number away
        group._leader.pid, group._birth, group._empty = bystander.pid, 1, False
        await within(terminal.kill())
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize(
    ("command", "args", "words"),
    [
        ("no-such-program", [], "command not found"),
        ("no-such-program", ["x"], "command not found"),
        ("/", [], "is a directory"),
        ("sh", ["-c", "a\0b"], "null byte"),
    ],
)
async def test_a_command_that_cannot_run_says_why(run, command, args, words):
    with pytest.raises(accord.RequestError, match=words) as caught:
        await run(command, *args)
    assert caught.value.code == -32602


@pytest.mark.parametrize("where", ["/", "{project}/..", "{project}/link", "relative"])
async def test_a_command_does_not_begin_outside(run, project, where):
    (project / "link").symlink_to("/")
    with pytest.raises(accord.RequestError):
        await run("pwd", cwd=where.format(project=project))


async def test_a_line_for_the_shell_goes_to_the_shell(run, within, project):
    terminal = await run("echo one && echo two | tr a-z A-Z")
    await within(terminal.wait())
    assert terminal.text == "one\nTWO\n"
    program = project / "with blank"
    program.write_text("#!/bin/sh\necho found")
    program.chmod(0o755)
    terminal = await run(str(program))
    await within(terminal.wait())
    assert terminal.text == "found\n"


async def test_a_command_gets_no_input_and_does_not_wait_for_any(run, within):
    terminal = await run("cat")
    assert (await within(terminal.wait())).exit_code == 0
    terminal = await run("sh", "-c", "readlink /proc/self/fd/0")
    await within(terminal.wait())
    assert terminal.text == "/dev/null\n"


async def test_on_a_pseudo_terminal_a_command_believes_in_a_terminal(session, within):
    terminals = Terminals(pty=True)
    script = "test -t 0 && test -t 1 && test -t 2 && echo $TERM >/dev/tty; exit 5"
    terminal = await terminals.create(session, v1.CreateTerminalRequest(session.id, "sh", ["-c", script]))
    assert (await within(terminal.wait())).exit_code == 5
    assert terminal.text.rstrip() in ("xterm-256color", os.environ.get("TERM"))
    stuck = await terminals.create(session, v1.CreateTerminalRequest(session.id, "cat"))
    await within(terminals.release(session))
    assert stuck.exit_status.signal is not None


async def test_a_display_follows_the_output_to_its_end(session, within):
    shown, done = [], asyncio.Event()

    async def show(session, terminal):
        async for text in terminal.follow():
            shown.append(text)  # noqa: PERF401
        shown.append(terminal.exit_status)
        done.set()

    terminals = Terminals(on_open=show)
    script = "for i in $(seq 2000); do echo grün $i; done"
    terminal = await terminals.create(session, v1.CreateTerminalRequest(session.id, "sh", ["-c", script]))
    await within(terminal.wait())
    await within(done.wait())
    assert "".join(shown[:-1]) == "".join(f"grün {i}\n" for i in range(1, 2001))
    assert shown[-1] == v1.TerminalExitStatus(0)
    await terminals.release(session)


@pytest.mark.requirement("tool.terminal.live", "tool.terminal.kept")
async def test_a_display_shows_output_while_it_grows_and_still_when_the_terminal_is_released(session, within):
    opened, released = [], asyncio.Event()
    terminals = Terminals(on_open=lambda _, terminal: opened.append(terminal))
    request = v1.CreateTerminalRequest(session.id, "sh", ["-c", "echo begun; exec sleep 1000"])
    terminal = await terminals.create(session, request)
    following = opened[0].follow()
    assert await within(anext(following)) == "begun\n"
    assert terminal.exit_status is None
    await within(terminals.release(session))
    released.set()
    assert [text async for text in following] == []
    assert (opened[0].text, opened[0].exit_status.signal) == ("begun\n", "SIGTERM")


async def test_a_slow_display_misses_what_was_dropped_and_holds_nobody_up(run, within):
    terminal = await run("sh", "-c", "seq 100000", output_byte_limit=1000)
    following = terminal.follow()
    first = await within(anext(following))
    await within(terminal.wait())
    rest = "".join([first] + [text async for text in following])
    assert rest.endswith("\n99999\n100000\n")
    assert len(rest) < 1_000_000


DRIVER = """
import asyncio, os, sys
sys.path.insert(0, {tests!r})
from tests.services.conftest import Asking
from accord import v1
from accord.services.terminal_service import Terminals

async def main():
    session = Asking({project!r})
    terminals = Terminals()
    script = "trap '' TERM; sleep 1000 & echo ready; while :; do sleep 1000; done"
    terminal = await terminals.create(session, v1.CreateTerminalRequest(session.id, "sh", ["-c", script]))
    async for text in terminal.follow():
        print(text, end="", flush=True)

asyncio.run(main())
"""


async def test_when_we_are_killed_our_commands_go_along(project, nothing_is_left):
    source = DRIVER.format(tests=str(Path(__file__).parents[4]), project=str(project))
    driver = start([sys.executable, "-c", source], stdout=subprocess.PIPE)
    try:
        assert driver.stdout.readline() == b"ready\n"
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        driver.stdout.close()
    await eventually(lambda: not left_of(nothing_is_left))


async def test_terminals_past_a_limit_are_refused_until_one_is_released(project, session, asking, lend):
    other = asking(project, session_id="s2")
    terminals = Terminals(per_session=3, in_all=4)
    async with lend(terminals, sessions=[session, other]) as client:

        async def create(owner):
            return (await client.request(v1.CreateTerminalRequest(owner.id, "sleep", ["1000"]))).terminal_id

        mine = [await create(session) for _ in range(3)]
        with pytest.raises(
            accord.PeerError, match=r"3 are not released, at most 3 .*per_session.*release some"
        ) as caught:
            await create(session)
        assert caught.value.code == -32600
        await create(other)
        with pytest.raises(accord.PeerError, match=r"at most 4 .*in_all"):
            await create(other)
        await client.request(v1.ReleaseTerminalRequest(session.id, mine[0]))
        await create(other)


async def test_a_terminal_counts_until_its_command_has_ended(session, lend):
    stubborn = ["-c", "trap '' TERM; echo ready; while :; do sleep 1000 & wait; done"]
    terminals = Terminals(in_all=1)
    async with lend(terminals, sessions=[session]) as client:
        first = (await client.request(v1.CreateTerminalRequest(session.id, "sh", stubborn))).terminal_id
        async for text in terminals.find(session, first).follow():
            if "ready" in text:
                break
        releasing = asyncio.create_task(client.request(v1.ReleaseTerminalRequest(session.id, first)))
        with pytest.raises(accord.PeerError, match="too many terminals"):
            await client.request(v1.CreateTerminalRequest(session.id, "true"))
        await releasing
        await client.request(v1.CreateTerminalRequest(session.id, "true"))


async def test_a_command_begins_in_the_folder_that_was_checked_though_its_name_leads_elsewhere(
    project, session, run, within, monkeypatch
):
    inside, outside = project / "sub", project.parent / "outside"
    inside.mkdir()
    outside.mkdir()
    launch = terminal_module.launch

    def exchanged(*args, **options):
        """At the last moment, the name of the folder becomes a link outwards."""
        inside.rename(project / "moved")
        inside.symlink_to(outside)
        return launch(*args, **options)

    monkeypatch.setattr(terminal_module, "launch", exchanged)
    terminal = await run("/bin/pwd", "-P", cwd=str(inside))
    await within(terminal.wait())
    assert terminal.text == f"{project / 'moved'}\n"


async def test_a_long_line_for_a_shell_is_run(run, within):
    terminal = await run("echo " + "x" * 10_000)
    await within(terminal.wait())
    assert terminal.text == "x" * 10_000 + "\n"
