"""WebSocket servers that read updates from a socket: processor time of the reading process for each update.

    pip install picows
    python -m benchmarks.websocket_readers

picows owns its socket and cannot be fed bytes, so this compares whole readers, each in a process of its own: ours with
the frames of `accord`, picows in C, and the asyncio server of `websockets`. The updates arrive in writes of 64 KiB, as
in a stream. docs/design/http-libraries.md holds a recorded run.
"""

from __future__ import annotations

import asyncio
import importlib
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from accord.http.h1 import RequestHead, RequestReader
from accord.http.server.websocket_server import Upgrade
from accord.transports import End, Receiver
from accord.transports.websocket_frames import masking, texts
from accord.transports.websocket_transport import Framed
from benchmarks.http_libraries import UPDATE
from benchmarks.http_servers import WEBSOCKET

UPDATES = 200_000
AT_ONCE = 64 * 1024
READERS = ("Accord", "picows", "websockets")


class Counting:
    """Counts the updates, and notes the processor time of the first and the last."""

    def __init__(self) -> None:
        self.seen = 0
        self.begun = 0.0
        self.done: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def add(self, count: int) -> None:
        self.begun = self.begun or time.process_time()
        self.seen += count
        if self.seen == UPDATES:
            self.done.set_result((time.process_time() - self.begun) / UPDATES * 1e6)


class Taking(Receiver):
    def __init__(self, counting: Counting) -> None:
        self._counting = counting

    def received(self, frames: Sequence[object]) -> None:
        self._counting.add(len(frames))

    def paused(self) -> None:
        pass

    def resumed(self) -> None:
        pass

    def ended(self, end: End) -> None:
        pass


class Handshake(asyncio.Protocol):
    """Reads one request, upgrades its connection, and hands it to our transport."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._reader = RequestReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        for item in self._reader.feed(data):
            if isinstance(item, RequestHead):
                upgrade = Upgrade(self._transport, item, b"", lambda: None)
                self._task = asyncio.ensure_future(upgrade.answer(self._serve))

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        await send({"type": "websocket.accept"})
        link = Framed(limit=1 << 20, is_client=False, ping_every=None)
        link.attach(self._transport)
        await link.start(Taking(self._counting))
        await self._counting.done


async def accord_reads(listening: socket.socket, counting: Counting) -> None:
    loop = asyncio.get_running_loop()
    async with await loop.create_server(lambda: Handshake(counting), sock=listening):
        print(await counting.done)


async def picows_reads(listening: socket.socket, counting: Counting) -> None:
    library: Any = importlib.import_module("picows")

    class Listener(library.WSListener):
        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            del transport
            frame.get_payload_as_bytes()
            counting.add(1)

    def listener(request: object) -> Listener:
        del request
        return Listener()

    server = await library.ws_create_server(listener, sock=listening)
    async with server:
        print(await counting.done)


async def websockets_reads(listening: socket.socket, counting: Counting) -> None:
    library: Any = importlib.import_module("websockets.asyncio.server")

    async def handle(connection: Any) -> None:
        async for _ in connection:
            counting.add(1)

    async with library.serve(handle, sock=listening, compression=None):
        print(await counting.done)


def read_in_this_process(name: str) -> None:
    async def read() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        reads = {"Accord": accord_reads, "picows": picows_reads, "websockets": websockets_reads}[name]
        await reads(listening, Counting())

    asyncio.run(read())


def measure(name: str) -> str:
    process = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    port = process.stdout.readline()
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as connection:
        try:
            connection.sendall(WEBSOCKET)
            answer = connection.recv(4096)
        except ConnectionError:
            return "not installed"
        if not answer.startswith(b"HTTP/1.1 101"):
            return "no WebSocket"
        one = texts([UPDATE], masking())
        each = AT_ONCE // len(one)
        for _ in range(UPDATES // each):
            connection.sendall(one * each)
        connection.sendall(one * (UPDATES % each))
        figure = process.stdout.readline()
    process.terminate()
    process.communicate()
    return f"{float(figure):.2f}"


def main() -> None:
    if sys.argv[1:]:
        read_in_this_process(sys.argv[1])
        return
    print("| reader | µs for an update |\n|---|---|")
    for name in READERS:
        print(f"| {name} | {measure(name)} |", flush=True)


if __name__ == "__main__":
    main()
