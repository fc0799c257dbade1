"""Private sockets: the same over a Unix socket and over a port, as Windows has it."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accord import callback_socket
from accord._internal.tasks import Tasks
from accord.callback_socket import TOKEN, CallbackSocket
from accord_check.client.launch_command import command_file

SCRIPT = """
import os
UNREACHABLE = "nobody listens"

def main(link):
    while data := link.recv(100):
        os.write(1, data)
    return 7
"""


@pytest.fixture(
    params=[
        pytest.param(True, id="unix", marks=pytest.mark.skipif(sys.platform == "win32", reason="no Unix sockets")),
        pytest.param(False, id="port"),
    ]
)
def kind(request, monkeypatch):
    monkeypatch.setattr(callback_socket, "HAS_UNIX_SOCKETS", request.param)
    return request.param


@asynccontextmanager
async def listening_socket():
    tasks = Tasks(asyncio.get_running_loop())
    made = CallbackSocket("test", tasks, limit=1000)
    try:
        yield made
    finally:
        made.close()
        await tasks.end(60)
        assert not tasks.running


async def connected(made, tmp_path, token):
    """What a program of this socket prints, and its exit code."""
    return await run(made.command(str(tmp_path / "script.py")), tmp_path, token)


async def run(command, tmp_path, token):
    (tmp_path / "script.py").write_text(SCRIPT)
    program = await asyncio.create_subprocess_exec(*command, env={**os.environ, TOKEN: token}, stdout=-1, stderr=-1)
    printed, complaint = await program.communicate()
    return printed, complaint.decode(), program.returncode


def saying(words):
    async def serve(_, writer):
        writer.write(words)
        await writer.drain()

    return serve


async def test_each_token_leads_to_what_it_was_made_for(kind, tmp_path):
    async with listening_socket() as made:
        one, two = made.add(saying(b"one")), made.add(saying(b"two"))
        assert made.address.isdigit() is not kind
        assert await connected(made, tmp_path, one) == (b"one", "", 7)
        assert await connected(made, tmp_path, two) == (b"two", "", 7)


@pytest.mark.parametrize("token", ["", "wrong", "x" * 5000])
async def test_a_wrong_token_gets_nothing(kind, tmp_path, token):
    async with listening_socket() as made:
        made.add(saying(b"secret"))
        printed, _, _ = await connected(made, tmp_path, token)
    assert printed == b""


async def test_the_token_is_not_among_the_arguments(kind):
    async with listening_socket() as made:
        assert made.add(saying(b"")) not in " ".join(made.command("script.py"))


async def test_a_program_that_comes_too_late_says_so(kind, tmp_path):
    async with listening_socket() as made:
        command, token = made.command(str(tmp_path / "script.py")), made.add(saying(b""))
    printed, complaint, code = await run(command, tmp_path, token)
    assert (printed, code) == (b"", 1)
    assert complaint.startswith("nobody listens: ")


async def test_a_connection_ends_with_the_socket(kind, tmp_path):
    reached = asyncio.Event()

    async def serve(reader, _):
        reached.set()
        await reader.read()

    async with listening_socket() as made:
        program = asyncio.ensure_future(connected(made, tmp_path, made.add(serve)))
        await reached.wait()
    assert await program == (b"", "", 7)


async def reached(made):
    if made.address.isdigit():
        return await asyncio.open_connection("127.0.0.1", int(made.address))
    return await asyncio.open_unix_connection(made.address)


async def test_silent_connections_keep_nobody_out(kind):
    async with listening_socket() as made, asyncio.timeout(60):
        token = made.add(saying(b"welcome"))
        silent = [await reached(made) for _ in range(callback_socket.CONNECTIONS * 3)]
        for _ in range(3):
            reader, writer = await reached(made)
            writer.write(token.encode() + b"\n")
            assert await reader.read() == b"welcome"
            writer.close()
        assert await silent[0][0].read() == b""  # the oldest gave way
        for _, writer in silent:
            writer.close()


async def test_one_token_does_not_take_the_places_of_another(kind):
    release = asyncio.Event()

    async def serve(_, writer):
        writer.write(b"welcome")
        await release.wait()

    async with listening_socket() as made, asyncio.timeout(60):
        greedy, other = made.add(serve), made.add(serve)
        held = [await reached(made) for _ in range(callback_socket.CONNECTIONS)]
        for reader, writer in held:
            writer.write(greedy.encode() + b"\n")
            assert await reader.read(7) == b"welcome"
        for token, words in ((greedy, b""), (other, b"welcome")):
            reader, writer = await reached(made)
            writer.write(token.encode() + b"\n")
            assert await reader.read(7) == words
            held.append((reader, writer))
        for _, writer in held:
            writer.close()
        release.set()


@pytest.mark.skipif(sys.platform == "win32", reason="rights are of POSIX")
async def test_the_folder_of_a_unix_socket_is_private_and_is_removed():
    async with listening_socket() as made:
        folder = Path(made.address).parent
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_the_agent_of_a_client_check_is_a_batch_file_on_windows(tmp_path):
    words = ["C:\\Program Files\\python.exe", "-I", "C:\\100%\\relay.py", "4711"]
    command = command_file(tmp_path, words, "abc", is_windows=True)
    assert command.name == "agent.cmd"
    assert command.read_bytes().split(b"\r\n") == [
        f"@set {TOKEN}=abc".encode(),
        b'@"C:\\Program Files\\python.exe" -I C:\\100%%\\relay.py 4711',
        b"",
    ]
