"""A socket that only programs with our token can use: a program of ours that a stranger starts calls back on it.

An agent starts the shim of an MCP server, and a client under check starts the relay. Both must reach the process that
wrote their command line, and no other program may reach it. The rule is the same on all systems: `CallbackSocket` gives
an address and, for each purpose, a token. The first line of a connection is its token, and a connection with a wrong
one is closed without an answer. The token travels in the environment, as other users may read arguments.

The address is a Unix socket in a folder that only the user can read. Where Python has no Unix sockets (Windows), it is
a port of 127.0.0.1, which every program of the machine can reach; there the token alone protects it.
"""

from accord.callback_socket.callback_client import TOKEN
from accord.callback_socket.callback_server import CallbackSocket

__all__ = ["TOKEN", "CallbackSocket"]
