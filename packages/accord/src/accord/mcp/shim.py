"""Copies standard input to a socket, and the socket to standard output: a script for `callback_client.py`.

An agent starts it as an MCP server.
"""

import os
import socket
import threading

SIZE = 1 << 16

UNREACHABLE = "the program that offers these tools cannot be reached"


def copy_input(link: socket.socket) -> None:
    """Copy standard input to the socket, and its end."""
    try:
        while data := os.read(0, SIZE):
            link.sendall(data)
        link.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other side is gone, which the other direction notices


def main(link: socket.socket) -> int:
    """Copy until the socket ends; returns the exit code."""
    threading.Thread(target=copy_input, args=[link], daemon=True).start()
    try:
        while data := link.recv(SIZE):
            while data:
                data = data[os.write(1, data) :]
    except OSError:
        pass  # the reader is gone, or the socket is
    return 0
