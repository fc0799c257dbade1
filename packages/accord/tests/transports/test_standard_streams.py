"""A whole agent over its real standard streams: whatever they are, and whatever strays into them."""

import asyncio
import os
import socket
import subprocess
import sys

import pytest

from tests.posix import fcntl, pty, tty
from tests.transports.children import END_OF_INPUT, in_thread, read_lines

AGENT = """
import asyncio, ctypes, os, sys
from accord.errors import ConnectionClosed
from accord.transports.stdio_transport import StdioTransport, fill_closed_streams

class Echo:
    def __init__(self):
        self.over = asyncio.Event()
    def received(self, frames):
        print("a stray print")
        ctypes.CDLL(None).puts(b"a stray puts")
        os.system("echo a stray child")
        self.transport.send(frames)
    def paused(self): pass
    def resumed(self): pass
    def ended(self, end):
        self.over.set()

async def main():
    echo = Echo()
    echo.transport = StdioTransport.standard()
    try:
        await echo.transport.start(echo)
    except ConnectionClosed as error:
        sys.exit(f"{error.reason}: {error}")
    await echo.over.wait()
    await echo.transport.close()
    print("after it all", flush=True)

fill_closed_streams()
print("printed and never flushed", end=" ")
if sys.argv[1] == "uvloop":
    import uvloop
    uvloop.run(main())
else:
    asyncio.run(main())
"""
STRAY = "printed and never flushed a stray print\na stray puts\na stray child\n"


@pytest.fixture
async def agent():
    """A command line for an agent that echoes, on this test's kind of event loop."""
    loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    return [sys.executable, "-W", "error", "-c", AGENT, loop]


async def run(command, **streams):
    """Run to the end, its output buffered as usual, while the event loop goes on."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return await in_thread(lambda: subprocess.run(command, **streams, env=env, timeout=60, check=False))


async def test_what_strays_to_stdout_lands_on_stderr_until_the_link_is_closed(agent):
    result = await run(agent, input=b"ping\n", capture_output=True)
    assert result.stdout == b"ping\nafter it all\n"
    assert sorted(result.stderr.decode().splitlines()) == sorted(STRAY.splitlines())


@pytest.mark.parametrize(
    ("redirection", "error"),
    {"<&-": "broken: standard input is closed", ">&-": "broken: standard output is closed"}.items(),
)
async def test_a_standard_stream_that_is_closed_is_one_clear_error(agent, redirection, error):
    result = await run(["sh", "-c", f'exec "$@" {redirection}', "sh", *agent], capture_output=True, input=b"")
    assert result.returncode == 1
    assert result.stderr.decode().startswith(error)
    assert b"Traceback" not in result.stderr


async def test_without_a_standard_error_what_strays_goes_nowhere(agent):
    result = await run(["sh", "-c", 'exec "$@" 2>&-', "sh", *agent], input=b"ping\n", capture_output=True)
    assert (result.returncode, result.stdout) == (0, b"ping\nafter it all\n")


class Inputs:
    """Ways to give an agent its standard input: one line, and its end."""

    @staticmethod
    def file(path):
        path.write_bytes(b"ping\n")
        return os.open(path, os.O_RDONLY), None

    @staticmethod
    def pipe(_):
        read, write = os.pipe()
        os.write(write, b"ping\n")
        os.close(write)
        return read, None

    @staticmethod
    def socket(_):
        ours, theirs = socket.socketpair()
        ours.sendall(b"ping\n")
        ours.shutdown(socket.SHUT_WR)
        return theirs.detach(), ours.detach()

    @staticmethod
    def terminal(_):
        ours, theirs = pty.openpty()
        os.write(ours, b"ping\n" + END_OF_INPUT)
        return theirs, ours


class Outputs:
    """Ways to take its standard output: what it gets, and how to read what came out."""

    @staticmethod
    def file(path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT)
        return fd, path.read_bytes

    @staticmethod
    def pipe(_):
        read, write = os.pipe()
        return write, lambda: _read_and_close(read)

    @staticmethod
    def socket(_):
        ours, theirs = socket.socketpair()
        return theirs.detach(), lambda: _read_and_close(ours.detach())

    @staticmethod
    def terminal(_):
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        return theirs, lambda: _read_and_close(ours)


def _read_and_close(fd):
    data = os.read(fd, 1000)
    os.close(fd)
    return data


STREAMS = ["file", "pipe", "socket", "terminal"]


@pytest.mark.parametrize("output", STREAMS)
@pytest.mark.parametrize("given", STREAMS)
async def test_any_stream_will_do_for_standard_input_and_output(agent, tmp_path, given, output):
    stdin, other = getattr(Inputs, given)(tmp_path / "input")
    stdout, written = getattr(Outputs, output)(tmp_path / "output")
    result = await run(agent, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)
    assert (result.returncode, result.stderr.decode().count("stray")) == (0, 3)
    os.close(stdin)
    assert written() == b"ping\nafter it all\n"
    os.close(stdout)
    if other is not None:
        os.close(other)


async def test_null_devices_will_do_as_well(agent):
    result = await run(agent, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert (result.returncode, result.stderr) == (0, b"printed and never flushed ")


async def test_one_socket_will_do_for_both(agent):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"ping\n")
        ours.shutdown(socket.SHUT_WR)
        result = await run(agent, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE)
        assert result.returncode == 0
        assert ours.recv(1000) == b"ping\nafter it all\n"
        assert theirs.getblocking()
        assert not fcntl.fcntl(theirs, fcntl.F_GETFL) & os.O_NONBLOCK


async def test_one_terminal_will_do_for_all_three(agent):
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    read_lines(theirs)
    os.write(ours, b"ping\n")
    running = asyncio.create_task(run(agent, stdin=theirs, stdout=theirs, stderr=theirs))
    said = b""
    while b"\nping\n" not in b"\n" + said:
        said += await in_thread(os.read, ours, 1000)
    assert not fcntl.fcntl(theirs, fcntl.F_GETFL) & os.O_NONBLOCK
    os.write(ours, END_OF_INPUT)
    assert (await running).returncode == 0
    os.close(ours)
    os.close(theirs)
