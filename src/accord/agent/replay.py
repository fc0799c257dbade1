"""The replay of a session: the fewest updates that amount to its record, in the version that the client speaks.

    FoldedRecord ──▶ `replayed` of replay_v1 or replay_v2 ──▶ what this client has said it knows

Messages are replayed whole, so a replay is as long as the conversation, however small the chunks were. Everything keeps
its id. `closing` comes first: what a crash has left open is closed.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from typing import Any

from accord.agent import replay_v1
from accord.agent.entries import Version
from accord.agent.folded_record import FoldedRecord
from accord.capabilities import Capabilities, updates_that_need
from accord.schema import v1
from accord.schema.base import Unknown
from accord.schema.hints import Tagged, node_of


def closing(record: FoldedRecord, version: Version, alive: Collection[str] = ()) -> Iterator[Any]:
    """Updates that close the tool calls and terminals which a crash has left open; those that are alive still run."""
    if version == 1:
        for call in record.unfinished(alive):
            yield v1.ToolCallProgress(call.id, status="failed")
        return
    from accord.schema import v2

    for call in record.unfinished(alive):
        yield v2.ToolCallProgress(call.id, status="failed", capabilities=None)
    for terminal in record.state.terminals.values():
        if terminal.exit_status is None and terminal.id not in alive:
            yield v2.TerminalUpdate(terminal.id, exit_status=v2.TerminalExitStatus(), capabilities=None)


def replay(record: FoldedRecord, version: Version, capabilities: Capabilities) -> Iterator[Any]:
    """The updates that tell a client of this version the whole record."""
    for update in _updates(record, version, capabilities):
        # An unknown update of one version may have a meaning in the other, which its sender did not mean.
        if not isinstance(update, Unknown) or update.tag not in _tags(version):
            yield update


def _updates(record: FoldedRecord, version: Version, capabilities: Capabilities) -> Iterator[Any]:
    if version == 2:
        from accord.agent import replay_v2

        yield from replay_v2.replayed(record)
        return
    needs = updates_that_need(v1.SessionNotification)
    for update in replay_v1.replayed(record):
        needed = needs.get(update.__class__)
        if needed is None or capabilities.has(needed):
            yield update
    if not capabilities.has(needs[v1.PlanUpdate]) and (plan := replay_v1.plan_without_ids(record)) is not None:
        yield plan


@functools.cache
def _tags(version: Version) -> frozenset[str]:
    """The tags of the updates that this version knows."""
    if version == 1:
        union = node_of(v1.SessionUpdate)
    else:
        from accord.schema import v2

        union = node_of(v2.SessionUpdate)
    assert isinstance(union, Tagged)
    return frozenset(tag for tag, _ in union.variants)
