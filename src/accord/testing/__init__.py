"""For tests of agents and clients: a scripted peer, both sides in memory, and a transport that misbehaves.

No test framework is needed, and none is imported. What a script expects and does not get is an `AssertionError`.
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
