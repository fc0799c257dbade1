"""Tools for tests of agents and clients: scripted and recorded peers, both sides in memory, a faulty transport.

They need no test framework and import none. A script that gets an unexpected message raises an `AssertionError`.
"""

from accord.testing.faulty_transport import Faults, FaultyTransport, Tally
from accord.testing.memory_connection import Connected, connected
from accord.testing.recorded_peers import RecordedAgent, RecordedClient, recorded_agent_command
from accord.testing.scripted_peer import ScriptedPeer, ScriptFailed, script_command

__all__ = [
    "Connected",
    "Faults",
    "FaultyTransport",
    "RecordedAgent",
    "RecordedClient",
    "ScriptFailed",
    "ScriptedPeer",
    "Tally",
    "connected",
    "recorded_agent_command",
    "script_command",
]
