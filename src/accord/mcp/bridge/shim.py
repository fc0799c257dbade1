"""Copies standard input to a socket, and the socket to standard output: `python shim.py ADDRESS`.

An agent starts it as an MCP server. It runs as a file, without Accord, so that it starts as fast as Python does.
ADDRESS is the path of a Unix socket, or a port of this machine. `ACCORD_MCP_TOKEN` says which server is meant.
"""

import os
import socket
import sys
import threading

SIZE = 1 << 16


def dial(address: str) -> socket.socket:
    """The open socket at this address."""
    if address.isdigit():
        return socket.create_connection(("127.0.0.1", int(address)))
    assert sys.platform != "win32"  # there, every address is a port
    link = socket.socket(socket.AF_UNIX)
    link.connect(address)
    return link


def copy_input(link: socket.socket) -> None:
    """Copy standard input to the socket, and its end."""
    try:
        while data := os.read(0, SIZE):
            link.sendall(data)
        link.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other side is gone, which the other direction notices


def main() -> int:
    """Run; the exit code is 1 if the socket leads nowhere."""
    try:
        link = dial(sys.argv[1])
        link.sendall(os.environ.get("ACCORD_MCP_TOKEN", "").encode() + b"\n")
    except (IndexError, OSError) as error:
        print(f"the program that offers these tools cannot be reached: {error}", file=sys.stderr)
        return 1
    threading.Thread(target=copy_input, args=[link], daemon=True).start()
    try:
        while data := link.recv(SIZE):
            while data:
                data = data[os.write(1, data) :]
    except OSError:
        pass  # whoever reads is gone, or the socket is
    return 0


if __name__ == "__main__":
    os._exit(main())  # at once: the other thread may wait for input for ever
