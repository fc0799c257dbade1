"""A client that opens a WebSocket and a session, reports it, and waits until the test stops it."""

import asyncio
import json
import sys

from websockets.asyncio.client import connect


async def main(url):
    async with connect(url) as socket:
        await socket.send('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}')
        print(json.loads(await socket.recv())["id"], flush=True)
        await socket.recv()


asyncio.run(main(sys.argv[1]))
