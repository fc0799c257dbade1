"""A WebSocket server that echoes text messages, for Autobahn's test suite (`autobahn`)."""

import asyncio
import sys

from accord.http.h1 import RequestHead, RequestReader
from accord.http.server.websocket_server import Upgrade
from accord.transports import Receiver
from accord.transports.websocket_transport import Framed

LARGEST = 64 * 1024 * 1024


class Echo(Receiver):
    """Sends each message back to where it came from."""

    def __init__(self, link):
        self.link = link
        self.is_over = asyncio.Event()

    def received(self, frames):
        self.link.send(frames)

    def paused(self):
        pass

    def resumed(self):
        pass

    def ended(self, end):  # noqa: ARG002
        self.is_over.set()


class Handshake(asyncio.Protocol):
    """Reads one request and makes its connection a WebSocket."""

    def connection_made(self, transport):
        self.transport, self.reader = transport, RequestReader()

    def data_received(self, data):
        for item in self.reader.feed(data):
            if isinstance(item, RequestHead):
                self.answering = asyncio.ensure_future(Upgrade(self.transport, item, b"").answer(self.serve))

    async def serve(self, scope, receive, send):  # noqa: ARG002
        await receive()
        await send({"type": "websocket.accept"})
        link = Framed(limit=LARGEST, is_client=False, ping_every=None, high_water=LARGEST)
        echo = Echo(link)
        link.attach(self.transport)
        await link.start(echo)
        await echo.is_over.wait()
        await link.close(1.0)


async def main():
    server = await asyncio.get_running_loop().create_server(Handshake, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
