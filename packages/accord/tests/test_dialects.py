"""Random updates, written by a dialect and read by the other side, amount to what they amount to by themselves.

Version 1 has no word for some of it: there the expectation is the table of losses in `accord.dialects.v1_dialect`,
which `_lossy` applies to the JSON of each update.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from accord.dialects.v1_dialect import V1Dialect
from accord.dialects.v2_dialect import V2Dialect
from accord.printable import fenced
from accord.schema import codec, v1, v2
from accord.session import SessionState
from tests.folding import Json, Script

SEQUENCES = 400
BATCHES = 8

NOT_IN_VERSION_1 = frozenset(
    ("user_message", "agent_message", "agent_thought", "state_update", "terminal_update", "terminal_output_chunk")
)
STATUSES = {"paused": "in_progress", "cancelled": "failed", "_odd": "in_progress", None: "pending"}


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_updates_written_in_version_2_are_read_as_they_were(batch):
    for seed in range(batch, SEQUENCES, BATCHES):
        script, dialect = Script(random.Random(seed), 2), V2Dialect()
        ours, theirs = SessionState(), SessionState()
        for made in [script.update() for _ in range(40)]:
            ours.add(codec.convert(made, v2.SessionUpdate))
            for written in dialect.fitted(codec.convert(made, v2.SessionUpdate)):
                theirs.add(codec.decode(codec.encode(written), v2.SessionUpdate))
        assert _seen(theirs) == _seen(ours), f"seed {seed}"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_updates_written_in_version_1_lose_only_what_the_table_says(batch):
    for seed in range(batch, SEQUENCES, BATCHES):
        script, dialect = Script(random.Random(seed), 2), V1Dialect()
        ours, theirs = SessionState(), SessionState()
        for made in [script.update() for _ in range(40)]:
            known = ours.tool_calls.get(made.get("toolCallId", ""))
            if made["sessionUpdate"] in NOT_IN_VERSION_1 or (known is not None and known.is_finished):
                continue
            ours.add(codec.convert(_lossy(made), v2.SessionUpdate))
            for written in dialect.fitted(codec.convert(made, v2.SessionUpdate)):
                theirs.add(codec.decode(codec.encode(written), v1.SessionUpdate))
        assert _seen(theirs) == _seen(ours), f"seed {seed}"


def _lossy(made: Json) -> Json:
    """The update without what version 1 cannot say."""
    made = dict(made)
    kind = made["sessionUpdate"]
    if kind == "tool_call_update":
        for name in ("title", "name", "rawInput", "rawOutput", "_meta"):
            if name in made and made[name] is None:
                del made[name]
        made.pop("capabilities", None)
        if made.get("kind") == "_dream":
            del made["kind"]  # it is sent, but a reader of version 1 takes no word that the schema lacks
        if "status" in made:
            made["status"] = STATUSES.get(made["status"], made["status"])
        if made.get("content"):
            made["content"] = [_lossy_item(item) for item in made["content"]]
    elif kind == "tool_call_content_chunk":
        made["content"] = _lossy_item(made["content"])
    elif kind == "usage_update":
        made.setdefault("cost", None)  # version 1 tells no cost, where version 2 leaves it as it was
    elif kind == "plan_update" and "entries" in made["plan"]:
        words = {"cancelled": "completed", "_odd": "pending"}
        steps = [{**it, "status": words.get(it["status"], it["status"])} for it in made["plan"]["entries"]]
        made["plan"] = {**made["plan"], "entries": steps}
    elif kind == "subagent_update" and made.get("state"):
        made["state"] = {name: value for name, value in made["state"].items() if name != "background"}
    return made


def _lossy_item(item: Json) -> Json:
    if item["type"] != "diff":
        return item
    return {"type": "content", "content": {"type": "text", "text": fenced("moved /a to /b")}}


def _seen(state: SessionState) -> dict[str, Any]:
    """All that the state shows, as plain values, but `_meta` of what version 1 replaces and version 2 patches."""

    def plain(value: Any) -> Any:
        return codec.loads(codec.encode(codec.plain(value)))  # tuples as lists

    return {
        "timeline": [plain(it) for it in state.timeline],
        "plans": plain(state.plans),
        "plan": (state.plan_id, plain(state.plan)),
        "options": [(it.config_id, it.name, it.current_value, plain(it.options)) for it in state.config],
        "commands": [(it.name, it.description) for it in state.commands],
        "session": (state.title, state.updated_at),
        "usage": state.usage and (state.usage.used, state.usage.size, plain(state.usage.cost)),
        "compactions": {name: (it.status, plain(it.summary), it.error) for name, it in state.compactions.items()},
        "subagents": {
            name: (it.title, it.description, it.cwd, it.additional_directories, plain(it.state), plain(it.background))
            for name, it in state.subagents.items()
        },
        "letters": {
            name: (plain(it.content), it.sender_session_id, it.recipient_message_id)
            for name, it in state.session_messages.items()
        },
        "terminals": {name: (it.command, it.output, it.exit_status) for name, it in state.terminals.items()},
        "activity": (state.activity, plain(state.background)),
        "events": [plain(it) for it in (*state.notices, *state.unknown)],
    }
