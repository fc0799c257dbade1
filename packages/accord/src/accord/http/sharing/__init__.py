"""One agent for several clients of an owner: everyone sees everything, and turns go on while no client is connected.

    client ──┐
    client ──┼──▶ SharedHost ──▶ SharedAgent ──▶ one connection to the agent
    client ──┘        └── SharedConversation decides who gets which message

The agent sees one client and needs no support for this. `conversation` and `session` are pure.
"""

from __future__ import annotations
