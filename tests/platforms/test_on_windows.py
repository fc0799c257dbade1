"""What only Windows can show: jobs, batch files, terminals and files. `make test-wine` runs it under Wine.

The rules themselves are tested on every platform by the other files of this folder.
"""

import asyncio
import ctypes
import os
import sys

import pytest

import accord
from accord import v1
from accord.jsonrpc.line_frames import Oversized
from accord.project.confined import Roots
from accord.services.file_service import Files
from accord.transports.launch import program_file
from accord.transports.process_transport import ProcessTransport
from accord_tools.registry.package_installers import run_tool
from tests.waiting import DEADLINE

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="shows what Windows does")

IS_WINE = sys.platform == "win32" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")

"""Seconds until a wait for something that should happen is a failure."""

PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)"])
os.write(1, b"%d %d\\n" % (os.getpid(), child.pid))
"""
UNTIL_INPUT_ENDS = "while os.read(0, 100): pass\n"
FOREVER = "time.sleep(1000)\n"
HOST = """
import asyncio, os, sys
from accord.transports.process_transport import ProcessTransport
from tests.platforms.test_on_windows import PARENT, FOREVER, Receiver

async def main():
    receiver, transport = Receiver(), ProcessTransport([sys.executable, "-I", "-S", "-c", PARENT + FOREVER])
    await transport.start(receiver)
    await receiver.until(lambda: receiver.frames)
    os.write(1, receiver.frames[0] + b"\\n")
    await asyncio.sleep(1000)

asyncio.run(main())
"""


class Receiver:
    """Keeps what a transport delivers."""

    def __init__(self):
        self.frames, self.end, self._changed = [], None, asyncio.Event()

    def received(self, frames):
        self.frames += [frame for frame in frames if not isinstance(frame, Oversized)]
        self._changed.set()

    def ended(self, end):
        self.end = end
        self._changed.set()

    def paused(self): ...

    def resumed(self): ...

    async def until(self, condition):
        async with asyncio.timeout(DEADLINE):
            while not condition():
                assert self.end is None, self.end
                await self._changed.wait()
                self._changed.clear()

    async def until_ended(self):
        async with asyncio.timeout(DEADLINE):
            while self.end is None:
                await self._changed.wait()
                self._changed.clear()
        return self.end


class Asking:
    """A session as services see it."""

    def __init__(self, cwd):
        self.id, self.cwd, self.roots = v1.SessionId("s"), cwd, Roots([cwd])
        self.agent = self.program = "tester"

    def tool_call(self, _):
        return None


def open_process(pid):
    """A handle that keeps the number of this process from being used again."""
    kernel32 = ctypes.WinDLL("kernel32")
    kernel32.OpenProcess.restype = ctypes.c_void_p
    handle = kernel32.OpenProcess(0x100000, 0, pid)
    assert handle, f"process {pid} does not run"
    return handle


async def has_ended(handle):
    """Whether the process ends within the deadline; waits in a thread."""
    wait = ctypes.WinDLL("kernel32").WaitForSingleObject
    wait.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
    return await asyncio.to_thread(wait, handle, int(DEADLINE * 1000)) == 0


@pytest.fixture
async def start():
    """Starts a command, and closes its transport in the end."""
    running = []

    async def start(*command, **options):
        receiver, transport = Receiver(), ProcessTransport(command, **options)
        await transport.start(receiver)
        running.append(transport)
        return transport, receiver

    yield start
    for transport in running:
        await transport.close(grace=0)


def python(source):
    return [sys.executable, "-I", "-S", "-c", source]


async def tree(receiver):
    """Handles of an agent and of its child, which it has told."""
    await receiver.until(lambda: receiver.frames)
    return [open_process(int(word)) for word in receiver.frames[0].split()]


async def test_an_agent_that_ends_with_its_input_leaves_no_child(start):
    transport, receiver = await start(*python(PARENT + UNTIL_INPUT_ENDS))
    handles = await tree(receiver)
    end = await transport.close(grace=30)
    assert (end.reason, end.exit_code) == ("closed", 0)
    assert [await has_ended(handle) for handle in handles] == [True, True]


async def test_an_agent_that_does_not_end_is_ended_with_its_children(start):
    transport, receiver = await start(*python(PARENT + FOREVER))
    handles = await tree(receiver)
    assert (await transport.close(grace=0.2)).reason == "closed"
    assert [await has_ended(handle) for handle in handles] == [True, True]


async def test_a_host_that_is_killed_takes_its_agents_and_their_children_with_it():
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST, stdin=asyncio.subprocess.DEVNULL, stdout=-1, stderr=-1
    )
    try:
        async with asyncio.timeout(DEADLINE):
            line = await host.stdout.readline()
        assert line, (await host.stderr.read()).decode(errors="replace")
        handles = [open_process(int(word)) for word in line.split()]
    finally:
        host.kill()
        await host.wait()
    assert [await has_ended(handle) for handle in handles] == [True, True]


async def test_frames_go_there_and_back_whatever_bytes_they_hold(start):
    echo = "import os\nwhile data := os.read(0, 1 << 16):\n    while data: data = data[os.write(1, data):]\n"
    transport, receiver = await start(*python(echo))
    frames = [b'{"text":"\\r\x1a\xc3\xa9"}', b'"' + b"x" * 1_000_000 + b'"']
    transport.send(frames)
    await receiver.until(lambda: len(receiver.frames) == 2)
    assert receiver.frames == frames


async def test_a_program_that_does_not_exist_is_explained(start):
    with pytest.raises(accord.ConnectionClosed, match="command not found; is it installed"):
        await start("no-such-agent")


async def test_a_program_of_the_current_folder_is_not_started_by_its_name(start, tmp_path, monkeypatch):
    (tmp_path / "planted.cmd").write_text("@echo planted\r\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(accord.ConnectionClosed, match="command not found"):
        await start("planted")
    with pytest.raises(accord.ConnectionClosed, match="command not found"):
        await start("planted", cwd=tmp_path)


async def test_a_batch_file_is_started_by_its_name_on_path(start, tmp_path):
    (tmp_path / "agent.cmd").write_text("@echo started %1\r\n")
    _, receiver = await start("agent", "here", env={"Path": f"{tmp_path};{os.environ['PATH']}"})
    assert (await receiver.until_ended()).exit_code == 0
    assert receiver.frames in ([b"started here\r"], [b"started here"])  # Wine's echo writes no carriage return


@pytest.mark.parametrize(
    "hostile", ["a&echo injected", '"&echo injected&"', "a|echo injected", "%SECRET%", "^&echo injected"]
)
async def test_an_argument_of_a_batch_file_is_not_run_as_a_command(start, tmp_path, hostile):
    if "%" in hostile and IS_WINE:
        pytest.skip("Wine's cmd.exe expands the text of %* once more, which that of Windows does not")
    (tmp_path / "agent.cmd").write_text("@echo got %*\r\n")
    _, receiver = await start(str(tmp_path / "agent.cmd"), hostile, env={"SECRET": "leaked"})
    await receiver.until_ended()
    told = b"\n".join(receiver.frames)
    assert told.startswith(b"got ")
    assert not any(frame.strip().startswith(b"injected") for frame in receiver.frames)
    assert b"leaked" not in told


class UntilTold:
    """The progress of an installation that a user interrupts when the installer has told of its child."""

    def __init__(self, told):
        self.told, self.handles = told, []

    def waiting(self):
        if self.told.exists() and (words := self.told.read_text().split()):
            self.handles = [open_process(int(word)) for word in words]
            raise KeyboardInterrupt


def planted(folder, line):
    (folder / "npm.cmd").write_text(f"@{line}\r\n")
    return folder


def test_an_installer_is_found_on_path_and_not_in_the_current_folder(tmp_path, monkeypatch):
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    bad.mkdir()
    monkeypatch.chdir(planted(bad, "echo planted"))
    monkeypatch.setenv("PATH", "C:\\windows\\system32")
    assert program_file("npm") is None
    monkeypatch.setenv("PATH", f"C:\\windows\\system32;{planted(good, 'echo got %*')}")
    assert program_file("npm").lower() == str(good / "npm.cmd").lower()
    printed = run_tool([program_file("npm"), "install", "a&echo injected"], tmp_path, UntilTold(tmp_path / "none"))
    assert printed.splitlines()[0].strip() == 'got install "a&echo injected"'
    assert len(printed.splitlines()) == 1


async def test_an_installer_that_is_interrupted_ends_with_what_it_started(tmp_path):
    (tmp_path / "installer.py").write_text(PARENT.replace("os.write(1, ", "open('told', 'wb').write(") + FOREVER)
    program = planted(tmp_path, f'"{sys.executable}" -I -S installer.py') / "npm.cmd"
    progress = UntilTold(tmp_path / "told")
    with pytest.raises(KeyboardInterrupt):
        run_tool([str(program)], tmp_path, progress)
    assert len(progress.handles) == 2
    assert [await has_ended(handle) for handle in progress.handles] == [True, True]


def test_a_pseudo_terminal_is_refused_at_once():
    with pytest.raises(NotImplementedError, match="'pty' must be False on Windows"):
        accord.Terminals(pty=True)


async def run_in_terminal(command, args, folder, **options):
    terminals, session = accord.Terminals(**options), Asking(folder)
    terminal = await terminals.create(session, v1.CreateTerminalRequest("s", command, args=args, cwd=str(folder)))
    try:
        async with asyncio.timeout(DEADLINE):
            status = await terminal.wait()
            text = "".join([text async for text in terminal.follow()])
    finally:
        await terminals.release(session)
    return status, text


async def test_a_terminal_runs_a_program_in_its_folder(tmp_path):
    source = "import os; print(os.getcwd()); raise SystemExit(3)"
    status, text = await run_in_terminal(sys.executable, ["-I", "-S", "-c", source], tmp_path)
    assert (status.exit_code, status.signal) == (3, None)
    assert text.strip().lower() == str(tmp_path).lower()


async def test_a_terminal_runs_a_shell_line_as_it_is_written(tmp_path):
    status, text = await run_in_terminal('echo "a  b" && echo second', [], tmp_path)
    assert status.exit_code == 0
    assert [line.strip() for line in text.splitlines()] == ['"a  b"', "second"]


async def refused(awaitable):
    with pytest.raises(accord.RequestError) as caught:
        await awaitable
    return str(caught.value)


async def test_files_are_written_and_read_again_inside_the_root(tmp_path):
    files, session = Files(), Asking(tmp_path)
    path = str(tmp_path / "new" / "notes.txt")
    await files.write(session, path, "one\ntwo\n")
    assert await files.read(session, path, None, None) == "one\ntwo\n"
    assert await files.read(session, path.upper(), None, None) == "one\ntwo\n"
    assert (tmp_path / "new" / "notes.txt").read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("name", ["NUL", "con.txt", "a.txt:hidden", "a.txt.", "a.txt ", "a?", "sub \\a.txt"])
async def test_a_name_that_windows_reads_in_a_special_way_is_refused(tmp_path, name):
    (tmp_path / "a.txt").write_text("secret")
    files, session = Files(), Asking(tmp_path)
    for attempt in (
        files.read(session, f"{tmp_path}\\{name}", None, None),
        files.write(session, f"{tmp_path}\\{name}", "x"),
    ):
        assert "a name in path" in await refused(attempt)
    assert (tmp_path / "a.txt").read_text() == "secret"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    "path", ["\\\\.\\{}", "{0.drive}a.txt", "\\a.txt", "\\\\server\\share\\a.txt", "{}\\..\\a.txt", "C:\\a.txt"]
)
async def test_a_path_that_leaves_the_root_is_refused(tmp_path, path):
    files, session = Files(), Asking(tmp_path)
    said = await refused(files.read(session, path.format(tmp_path), None, None))
    assert "outside the session's folders" in said or "path must be absolute" in said


async def test_a_link_is_refused(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    try:
        (root / "link").symlink_to(tmp_path / "outside", target_is_directory=True)
    except OSError:
        pytest.skip("this user may not make symbolic links")
    if not (root / "link").is_symlink():
        pytest.skip("Wine makes no symbolic links that a program can see")
    assert "link" in await refused(Files().read(Asking(root), str(root / "link" / "a.txt"), None, None))
