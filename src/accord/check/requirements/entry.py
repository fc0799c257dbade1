"""One requirement, and the voices in which the tables of this package state them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["agent", "client", "both", "transport"]
"""Who owes it. What only one end of a transport owes is that end's: a server's is the agent's."""

Level = Literal["MUST", "SHOULD", "MAY"]
"""How strongly. A demand that a page makes without any of these words, in plain statements, is a MUST."""

Layer = Literal["engine", "agent", "client", "host", "http"]
"""Which part of a program keeps it: the JSON-RPC engine below every agent and client (messages, framing, order,
cancellation, what comes before `initialize`), an agent, a client, what a client lends to agents, or the HTTP transport.
"""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A demand of the protocol, under an id that never changes. Its clause reads on from the side that owes it."""

    id: str
    of: Side
    level: Level
    page: str
    clause: str
    layer: Layer
    stable: bool = True


@dataclass(frozen=True, slots=True)
class Clause:
    """A requirement before its page is known."""

    id: str
    of: Side
    level: Level
    wording: str
    layer: Layer


@dataclass(frozen=True, slots=True)
class Voice:
    """Says what one side owes in one layer."""

    of: Side
    layer: Layer

    def must(self, name: str, wording: str) -> Clause:
        return Clause(name, self.of, "MUST", wording, self.layer)

    def should(self, name: str, wording: str) -> Clause:
        return Clause(name, self.of, "SHOULD", wording, self.layer)


agent = Voice("agent", "agent")
client = Voice("client", "client")
host = Voice("client", "host")
tool_bridge = Voice("both", "host")

engine = Voice("both", "engine")
agent_engine = Voice("agent", "engine")
client_engine = Voice("client", "engine")
framing = Voice("transport", "engine")

http_link = Voice("transport", "http")
http_server = Voice("agent", "http")
http_client = Voice("client", "http")


def stated(page: str, *clauses: Clause) -> tuple[Requirement, ...]:
    """What a page and heading demand of a feature that the stable protocol has."""
    return _read(page, clauses, stable=True)


def proposed(page: str, *clauses: Clause) -> tuple[Requirement, ...]:
    """What a proposal demands of a feature that the stable protocol does not have, or not in this form."""
    return _read(page, clauses, stable=False)


def _read(page: str, clauses: tuple[Clause, ...], *, stable: bool) -> tuple[Requirement, ...]:
    return tuple(Requirement(it.id, it.of, it.level, page, it.wording, it.layer, stable) for it in clauses)
