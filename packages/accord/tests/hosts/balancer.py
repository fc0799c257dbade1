"""A load balancer without stickiness: each request goes to the next server."""

import asyncio
from contextlib import suppress

CLOSE = b"connection: close\r\n"
ANSWER = b"HTTP/1.1 %b\r\ncontent-length: 0\r\nretry-after: 0\r\nconnection: close\r\n\r\n"


class Balancer:
    """Passes bytes on to one server after the other. A server that refuses is passed over.

    A request is told to close its connection, so that the next request of the same client goes to the next server. A
    WebSocket keeps its connection.
    """

    def __init__(self, urls):
        self.servers = [(url, *_address(url)) for url in urls]
        self.taken = dict.fromkeys(urls, 0)
        """How many requests each server got."""
        self.refusals = 0
        """How many of the next POSTs are answered with 503."""
        self.losses = 0
        """How many of the next POSTs are passed on and answered with 502, in place of the server's answer."""
        self.lost_streams = 0
        """How many of the next GETs are passed on, and answered with 502 when the server has sent a message."""
        self._turn = 0
        self._tasks = set()
        self._writers = set()

    async def __aenter__(self):
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._listening.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/acp"
        return self

    async def __aexit__(self, *_):
        self._listening.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def remove(self, url):
        """Send nothing to this server any more, as a balancer does whose health check has failed."""
        self.servers = [server for server in self.servers if server[0] != url]

    def only(self, url):
        """Send everything to this server from now on."""
        self.servers = [(url, *_address(url))]

    async def _serve(self, reader, writer):
        self._tasks.add(task := asyncio.current_task())
        task.add_done_callback(self._tasks.discard)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"POST") and self.refusals:
                self.refusals -= 1
                await reader.readexactly(_length(head))
                writer.write(ANSWER % b"503 Service Unavailable")
                return
            there, back = await self._open()
            self._writers |= {writer, back}
            line, rest = head.split(b"\r\n", 1)
            back.write(line + b"\r\n" + (b"" if b"websocket" in rest.lower() else CLOSE) + rest)
            if head.startswith(b"POST") and self.losses:
                self.losses -= 1
                back.write(await reader.readexactly(_length(head)))
                await there.read()
                back.close()
                writer.write(ANSWER % b"502 Bad Gateway")
                return
            if head.startswith(b"GET") and self.lost_streams:
                self.lost_streams -= 1
                await there.readuntil(b"\nid: ")
                back.close()
                writer.write(ANSWER % b"502 Bad Gateway")
                return
            passing = [asyncio.ensure_future(it) for it in (_pass(reader, back), _pass(there, writer))]
            # What the server sends ends the exchange; what the client sends may end before.
            await asyncio.wait([passing[1]])
            passing[0].cancel()
            back.close()
            self._writers -= {writer, back}
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _open(self):
        for _ in range(len(self.servers)):
            url, host, port = self.servers[self._turn % len(self.servers)]
            self._turn += 1
            try:
                opened = await asyncio.open_connection(host, port)
            except OSError:
                continue
            self.taken[url] += 1
            return opened
        raise ConnectionError("no server answers")


def _length(head):
    """The length of the body after this head."""
    fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:-2])
    return int(fields[b"content-length"])


def _address(url):
    host, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
    return host, int(port)


async def _pass(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        with suppress(OSError):
            writer.write_eof()
