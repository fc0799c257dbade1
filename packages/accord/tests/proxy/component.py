"""A component whose words are those of a test: it joins its standard streams with the test's socket.

python component.py PATH
"""

import asyncio
import socket
import sys

from accord.transports.stdio_transport import StdioTransport
from accord.transports.wrapped_transport import relay


async def main(path):
    link = socket.socket(socket.AF_UNIX)
    link.connect(path)
    fd = link.detach()
    await relay(StdioTransport.standard(), StdioTransport(fd, fd))


asyncio.run(main(sys.argv[1]))
