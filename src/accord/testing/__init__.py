"""Tools for tests of agents and clients: a scripted peer, both sides in memory, and a transport that misbehaves.

They need no test framework and import none. A script that does not get what it expects raises an `AssertionError`.
"""

from accord.testing.faulty import Faults, FaultyTransport, Tally
from accord.testing.memory import Connected, connected
from accord.testing.scripted import ScriptedPeer, ScriptFailed, script_command

__all__ = [
    "Connected",
    "Faults",
    "FaultyTransport",
    "ScriptFailed",
    "ScriptedPeer",
    "Tally",
    "connected",
    "script_command",
]
