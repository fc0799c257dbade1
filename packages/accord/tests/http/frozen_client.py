"""A client that opens a connection, reports it, and waits until the test stops it: python -m ... URL WAY."""

import asyncio
import sys

from tests.http.talking import editor_of, transport_to


async def main(url, way):
    async with editor_of(transport_to(url, way)) as editor:
        await editor.open_session()
        print("open", flush=True)
        await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
