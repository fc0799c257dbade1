"""Connects with a callback socket and runs a script on the connection: `python callback_client.py SCRIPT ADDRESS`.

ADDRESS is the path of a Unix socket, or a port of this machine; `ACCORD_SOCKET_TOKEN` has the token. The script has a
function `main(link)`, which gets the open socket and returns the exit code, and a text `UNREACHABLE`.

It runs as a file and imports nothing of Accord, so that it starts as fast as Python does, and in any environment.
"""

import os
import socket
import sys

TOKEN = "ACCORD_SOCKET_TOKEN"
"""The variable that has the token."""


def dial(address: str, token: str) -> socket.socket:
    """The open socket at this address."""
    if address.isdigit():
        link = socket.create_connection(("127.0.0.1", int(address)))
    else:
        assert sys.platform != "win32"  # there, every address is a port
        link = socket.socket(socket.AF_UNIX)
        link.connect(address)
    link.sendall(token.encode() + b"\n")
    return link


def main(script: str, address: str) -> int:
    """Run the script; the exit code is 1 if the address cannot be reached."""
    names: dict[str, object] = {"__name__": "script"}
    with open(script, "rb") as file:  # noqa: PTH123  pathlib is slow to import
        exec(compile(file.read(), script, "exec", dont_inherit=True), names)
    try:
        link = dial(address, os.environ.get(TOKEN, ""))
    except OSError as error:
        print(f"{names['UNREACHABLE']}: {error}", file=sys.stderr)
        return 1
    run = names["main"]
    assert callable(run)
    code = run(link)
    assert isinstance(code, int)
    return code


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))  # at once: a thread of the script may wait for input for ever
