"""A TCP relay that aborts connections at random bytes."""

import asyncio
import random
import socket
import struct
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: the other side gets a reset, and loses what it has not read."""


class Cutter:
    """Hands bytes on, and once it is `cutting`, aborts each connection after some of them."""

    def __init__(self, server, seed):
        target = urlsplit(server)
        self._target = target.hostname, target.port
        self._random = random.Random(seed)
        self.cutting = False
        self.cuts = 0

    @classmethod
    @asynccontextmanager
    async def before(cls, server, seed):
        """A cutter before this server, and the URL that leads through it."""
        cutter = cls(server, seed)
        listening = await asyncio.start_server(cutter._connected, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        async with listening:
            yield cutter, f"http://127.0.0.1:{port}/acp"
            cutter.cutting = False

    async def _connected(self, from_client, to_client):
        from_server, to_server = await asyncio.open_connection(*self._target)
        writers = to_client, to_server
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._hand_on(from_client, to_server, writers))
                both.create_task(self._hand_on(from_server, to_client, writers))
        except* OSError:
            pass
        finally:
            self._abort(writers)

    async def _hand_on(self, source, target, writers):
        left = self._random.randrange(100, 30_000)
        while data := await source.read(4096):
            if self.cutting:
                if len(data) >= left:
                    self.cuts += 1
                    target.write(data[:left])
                    self._abort(writers)
                left -= len(data)
            target.write(data)
            await target.drain()
        raise ConnectionResetError("one side has gone")

    def _abort(self, writers):
        for writer in writers:
            if (wire := writer.get_extra_info("socket")) is not None and wire.fileno() >= 0:
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            writer.transport.abort()
