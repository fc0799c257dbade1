"""Our HTTP server beside others with the same application: processor time of a request, memory of an idle connection.

    pip install granian hypercorn uvicorn
    python -m benchmarks.http_servers

Each server runs `accord.http.app` in a process of its own, and this process is the client, over plain sockets. The
figures come from /proc, so this runs on Linux only. docs/design/http-libraries.md holds a recorded run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from importlib.util import find_spec
from pathlib import Path

REQUESTS = 4_000
EACH = 500
"""Requests on one connection: some servers close it after a thousand."""

WARMING = 200
"""Idle connections before the measured ones: what the first ones take is taken once."""

CONNECTIONS = 800
PATIENCE = 30.0
TICK = os.sysconf("SC_CLK_TCK")

GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
WEBSOCKET = (
    b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)

APPLICATION = """
import accord

agent = accord.Agent("idle")


@agent.on_prompt
async def answer(turn):
    for _ in range(int(turn.text) if turn.text.isdecimal() else 1):
        await turn.say("hello")


app = accord.http.app(agent)
"""

OURS = """
import asyncio, sys, accord
from benchmarks.http_servers import LIMITS
from served import agent

async def main():
    async with accord.http.serving(agent, port=int(sys.argv[1]), limits=accord.http.ServerLimits(**LIMITS)):
        await asyncio.Event().wait()

asyncio.run(main())
"""
LIMITS = {"idle": 600.0}

SERVERS: dict[str, Callable[[int], Sequence[str]]] = {
    "Accord": lambda port: ("ours.py", str(port)),
    "granian": lambda port: ("-m", "granian", "--interface", "asgi", "--port", str(port), "served:app"),
    "hypercorn": lambda port: ("-m", "hypercorn", "--bind", f"127.0.0.1:{port}", "--keep-alive", "600", "served:app"),
    "uvicorn": lambda port: ("-m", "uvicorn", "--port", str(port), "--timeout-keep-alive", "600", "served:app"),
}


def pids(parent: int) -> list[int]:
    """This process and all below it."""
    below = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *(pid for child in below for pid in pids(int(child)))]


def processor_time(parent: int) -> float:
    """Seconds that the processes of a server have run."""
    ticks = 0
    for pid in pids(parent):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICK


def memory(parent: int) -> int:
    """KiB of memory that the processes of a server do not share."""
    found = 0
    for pid in pids(parent):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                found += int(line.split()[1])
    return found


def quiet_memory(parent: int) -> int:
    """`memory`, once the server has done all its work; one whose threads never rest is given `PATIENCE`."""
    before, deadline = -1.0, time.monotonic() + PATIENCE
    while (now := processor_time(parent)) != before and time.monotonic() < deadline:
        before = now
        time.sleep(0.5)
    return memory(parent)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


@contextlib.contextmanager
def running(name: str, folder: Path) -> Generator[tuple[int, int]]:
    """A server; gives its process and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "served.py").write_text(APPLICATION)
    (folder / "ours.py").write_text(OURS)
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[1])])
    process = subprocess.Popen(
        [sys.executable, *SERVERS[name](port)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                connected(port).close()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.05)
        yield process.pid, port
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # it waits for a connection of ours, or for its own workers
            for pid in reversed(pids(process.pid)):
                os.kill(pid, signal.SIGKILL)
            process.wait()


def ask_over_http1(connection: socket.socket) -> None:
    connection.sendall(GET)
    answer = b""
    while b"\r\n\r\nok" not in answer:
        answer += received(connection)


def ask_over_http2(connection: socket.socket) -> None:
    from h2.connection import H2Connection
    from h2.events import StreamEnded

    http = H2Connection()
    http.initiate_connection()
    fields = [(":method", "GET"), (":scheme", "http"), (":authority", "127.0.0.1"), (":path", "/healthz")]
    http.send_headers(1, fields, end_stream=True)
    connection.sendall(http.data_to_send())
    while not any(isinstance(event, StreamEnded) for event in http.receive_data(received(connection))):
        connection.sendall(http.data_to_send())
    connection.sendall(http.data_to_send())


def open_websocket(connection: socket.socket) -> None:
    connection.sendall(WEBSOCKET)
    if not received(connection).startswith(b"HTTP/1.1 101"):
        raise ConnectionError("no WebSocket")


def received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data


WAYS = {"HTTP/1.1": ask_over_http1, "HTTP/2": ask_over_http2, "WebSocket": open_websocket}


def each_request(pid: int, port: int) -> float:
    """Microseconds of processor time that the server takes for one request over HTTP/1.1."""
    before = 0.0
    for part in range(1 + REQUESTS // EACH):
        with connected(port) as connection:
            for _ in range(EACH):
                ask_over_http1(connection)
        before = before if part else processor_time(pid)  # the first ones import and warm up
    return (processor_time(pid) - before) / REQUESTS * 1e6


def each_idle_connection(pid: int, port: int, use: Callable[[socket.socket], None]) -> float:
    """KiB of memory that the server takes for one connection that was used once."""
    with contextlib.ExitStack() as open_ones:
        for _ in range(WARMING):
            use(open_ones.enter_context(connected(port)))
        before = quiet_memory(pid)
        connections = [open_ones.enter_context(connected(port)) for _ in range(CONNECTIONS)]
        for connection in connections:
            use(connection)
        grown = quiet_memory(pid) - before
        for connection in connections:
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while received(connection):  # a connection that the server has closed would make the figure too small
                    pass
        return grown / CONNECTIONS


def row(name: str, folder: Path) -> str:
    if name != "Accord" and find_spec(name) is None:
        return f"| {name} | not installed |"
    figures: list[str] = []
    with running(name, folder) as (pid, port):
        figures.append(f"{each_request(pid, port):.0f}")
    for use in WAYS.values():
        with running(name, folder) as (pid, port):
            try:
                figures.append(f"{each_idle_connection(pid, port, use):.1f}")
            except (OSError, ValueError) as error:
                figures.append("no" if isinstance(error, OSError) else str(error))
            except Exception as error:  # h2: this server speaks no HTTP/2
                figures.append(f"no ({type(error).__name__})")
    return f"| {name} | {' | '.join(figures)} |"


def main() -> None:
    import tempfile

    print("| server | µs for a request | " + " | ".join(f"KiB, idle {way}" for way in WAYS) + " |")
    print("|---|---|" + "---|" * len(WAYS))
    with tempfile.TemporaryDirectory() as folder:
        for name in SERVERS:
            print(row(name, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
