"""The table of mutants: how the healthy conversation is broken, and what the judge must say."""

from __future__ import annotations

from typing import Any

from tests.check.healthy import Mutation

MUTANTS: dict[str, tuple[Mutation, set[str]]] = {}
"""By name: the mutation, and what is found, as `SIDE ID`; `~` before it warns, `?` notes."""

MUTANTS_V2: dict[str, tuple[Mutation, set[str]]] = {}
"""The same for the conversation of version 2."""

CAPABILITIES = "params.clientCapabilities"
OFFERS = "result.agentCapabilities"
SESSIONS = f"{OFFERS}.sessionCapabilities"


def mutant(name: str, mutation: Mutation, *found: str) -> None:
    """Add a mutant; without findings it is a conversation that only looks wrong."""
    assert name not in MUTANTS
    MUTANTS[name] = mutation, set(found)


def mutant_v2(name: str, mutation: Mutation, *found: str) -> None:
    """Add a mutant of the conversation of version 2."""
    assert name not in MUTANTS_V2
    MUTANTS_V2[name] = mutation, set(found)


def update(kind: str, session: str = "s1", /, **fields: Any) -> dict[str, Any]:
    """A session update, for `says`."""
    return {
        "method": "session/update",
        "params": {"sessionId": session, "update": {"sessionUpdate": kind, **fields}},
    }
