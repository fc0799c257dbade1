"""Our own client over a URL: it starts the server, which prints where it is, and goes there as `--over` says."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from accord import Peer, v1
from accord.http import connect_transport
from accord.transports import Transport

# The scripts run by path, in interpreters that know nothing of this package.
sys.path.insert(1, f"{sys.path[0]}/../..")
from benchmarks.clients.accord_client import AccordLink
from benchmarks.drive import main


def transport(url: str) -> Transport:
    if "--over=websocket" in sys.argv:
        return connect_transport(url.replace("http", "ws", 1))
    return connect_transport(url, http2="--over=http2" in sys.argv)


@asynccontextmanager
async def connect(agent: Sequence[str]) -> AsyncGenerator[AccordLink]:
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*agent, stdin=pipe, stdout=pipe)
    assert server.stdin is not None
    assert server.stdout is not None
    url = (await server.stdout.readline()).decode().strip()
    link = AccordLink()
    async with Peer(transport(url), link.handlers, role="client") as link.peer:
        link.pid = server.pid
        await link.peer.initialize(v1.InitializeRequest(1))
        yield link
    server.stdin.close()
    await server.wait()


if __name__ == "__main__":
    sys.exit(main(connect))
