"""Random sequences of updates of version 2, folded by us and by a naive reference.

The reference works on plain JSON and is written from the rules of upserts alone: what is left out stays, `null` clears,
a value replaces, chunks append, `_meta` is patched by key. It shares no code with `accord.session`.
"""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest

from accord.schema import codec, v2
from accord.session import Message, SessionState
from tests.folding import Script, joined

SEQUENCES = 2_000
BATCHES = 20

KINDS = {"user_message": "user", "agent_message": "agent", "agent_thought": "thought"}
DEFAULT_CALL = {"kind": "other", "status": "pending"}


class Reference:
    """What a sequence of updates amounts to, as plain JSON."""

    def __init__(self) -> None:
        self.order: list[tuple[str, str]] = []
        self.things: dict[tuple[str, str], dict[str, Any]] = {}
        self.session: dict[str, Any] = {}
        self.usage: dict[str, Any] | None = None
        self.plans: dict[str, Any] = {}
        self.options: Any = []
        self.commands: Any = []
        self.state: dict[str, Any] = {}
        self.events: list[Any] = []

    def apply(self, update: dict[str, Any]) -> None:
        kind = update["sessionUpdate"]
        if kind in KINDS:
            thing = self.thing(KINDS[kind], update["messageId"], {"content": []})
            self.patch(thing, update, content=[])
        elif kind.removesuffix("_chunk") in KINDS:
            thing = self.thing(KINDS[kind.removesuffix("_chunk")], update["messageId"], {"content": []})
            thing["content"] = [*thing["content"], update["content"]]
        elif kind == "tool_call_update":
            thing = self.thing("call", update["toolCallId"], {**DEFAULT_CALL, "content": [], "locations": []})
            self.patch(thing, update, content=[], locations=[], **DEFAULT_CALL)
        elif kind == "tool_call_content_chunk":
            thing = self.thing("call", update["toolCallId"], {**DEFAULT_CALL, "content": [], "locations": []})
            thing["content"] = [*thing["content"], update["content"]]
        elif kind == "terminal_update":
            thing = self.thing("terminal", update["terminalId"], {"output": b""})
            output = {"output": b""} if "output" in update else {}
            if update.get("output") is not None:
                output = {"output": base64.b64decode(update["output"]["data"])}
            self.patch(thing, {**update, **output}, output=b"")
        elif kind == "terminal_output_chunk":
            thing = self.thing("terminal", update["terminalId"], {"output": b""})
            thing["output"] += base64.b64decode(update["data"])
        elif kind == "plan_update":
            self.plans[update["plan"]["planId"]] = update["plan"]
        elif kind == "plan_removed":
            self.plans.pop(update["planId"], None)
        elif kind == "session_info_update":
            self.patch(self.session, update)
        elif kind == "usage_update":
            cost = update["cost"] if "cost" in update else (self.usage or {}).get("cost")
            self.usage = {"used": update["used"], "size": update["size"], "cost": cost}
        elif kind == "available_commands_update":
            self.commands = update["availableCommands"]
        elif kind == "config_option_update":
            self.options = update["configOptions"]
        elif kind == "state_update":
            end = update if update["state"] == "idle" and update.get("stopReason") else self.state.get("end")
            self.state = {"state": update["state"], "background": update.get("background"), "end": end}
        elif kind == "compaction_update":
            thing = self.thing("compaction", update["compactionId"], {"status": "in_progress", "summary": []})
            self.patch(thing, update, summary=[])
        elif kind == "compaction_summary_chunk":
            thing = self.thing("compaction", update["compactionId"], {"status": "in_progress", "summary": []})
            thing["summary"] = [*thing["summary"], update["content"]]
        elif kind == "subagent_update":
            self.patch(self.thing("subagent", update["sessionId"], {}), update)
        elif kind == "session_message":
            thing = self.thing("letter", update["messageId"], {"content": []})
            self.patch(thing, update, content=[])
        elif kind == "session_message_chunk":
            thing = self.thing("letter", update["messageId"], {"content": []})
            thing["content"] = [*thing["content"], update["content"]]
        else:  # a notice, or a kind that nobody knows
            self.events.append(update)

    def thing(self, space: str, name: str, new: dict[str, Any]) -> dict[str, Any]:
        """What has this id in this space of ids; it begins now if it is unknown."""
        key = space, name
        if key not in self.things:
            self.things[key] = dict(new)
            if space in ("user", "agent", "thought", "call"):
                self.order.append(key)
        return self.things[key]

    def patch(self, thing: dict[str, Any], update: dict[str, Any], **cleared: Any) -> None:
        for name, value in update.items():
            if name == "_meta":
                meta = {} if value is None else {**thing.get("_meta", {}), **value}
                thing["_meta"] = {key: said for key, said in meta.items() if said is not None}
            elif name not in IDS:
                thing[name] = cleared.get(name) if value is None else value


IDS = {"sessionUpdate", "messageId", "toolCallId", "terminalId", "compactionId"}


def plain(value: Any) -> Any:
    return codec.plain(value)


def set_fields(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, {})}


def ours(state: SessionState) -> dict[str, Any]:
    """Our state in the form of `theirs`."""
    order: list[Any] = []
    for entry in state.timeline:
        if isinstance(entry, Message):
            assert entry.id is not None
            content = joined(plain(list(entry.content)))
            order.append([entry.speaker, entry.id, content, entry.meta or {}])
        else:
            fields = set_fields(
                title=entry.title or None,
                rawInput=entry.raw_input,
                rawOutput=entry.raw_output,
                name=entry.name,
                capabilities=plain(entry.capabilities),
            )
            content, places = plain(list(entry.content)), plain(list(entry.locations))
            order.append(["call", entry.id, entry.kind, entry.status, content, places, fields, entry.meta or {}])
    assert state.usage is None or state.usage.meta is None
    usage = state.usage
    return {
        "order": order,
        "terminals": {
            name: set_fields(
                command=it.command,
                cwd=it.cwd,
                exitStatus=plain(it.exit_status),
                size=plain(it.size),
                capabilities=plain(it.capabilities),
                _meta=it.meta,
            )
            | {"output": it.output, "ended": it.exit_status is not None}
            for name, it in state.terminals.items()
        },
        "plans": plain(state.plans),
        "session": set_fields(title=state.title, updatedAt=state.updated_at, _meta=state.meta),
        "usage": usage and {"used": usage.used, "size": usage.size, "cost": plain(usage.cost)},
        "commands": [it.name for it in state.commands],
        "options": [(it.config_id, it.name, it.current_value) for it in state.config],
        "state": (state.activity, plain(state.background), plain(state.last_end)),
        "compactions": {
            name: (it.status, joined(plain(list(it.summary))), it.error, it.meta or {})
            for name, it in state.compactions.items()
        },
        "subagents": {
            name: set_fields(
                title=it.title,
                description=it.description,
                cwd=it.cwd,
                additionalDirectories=it.additional_directories,
                state=(it.state and plain(it.state)["state"], plain(it.background)),
                _meta=it.meta,
            )
            for name, it in state.subagents.items()
        },
        "letters": {
            name: (joined(plain(list(it.content))), it.sender_session_id, it.recipient_message_id, it.meta or {})
            for name, it in state.session_messages.items()
        },
        "events": [plain(it) for it in [*state.notices, *state.unknown]],
    }


def theirs(reference: Reference) -> dict[str, Any]:
    """What the reference has, in the form of `ours`."""

    def of(space: str) -> dict[str, dict[str, Any]]:
        return {name: thing for (kind, name), thing in reference.things.items() if kind == space}

    order: list[Any] = []
    for key in reference.order:
        thing = reference.things[key]
        if key[0] == "call":
            fields = set_fields(**{name: thing.get(name) for name in ("title", "rawInput", "rawOutput", "name")})
            if thing.get("capabilities") is not None:
                fields["capabilities"] = thing["capabilities"]
            parts = thing["kind"], thing["status"], thing["content"], thing["locations"]
            order.append([*key, *parts, {k: v for k, v in fields.items() if v != {}}, thing.get("_meta", {})])
        else:
            order.append([*key, joined(thing["content"]), thing.get("_meta", {})])
    notices = [it for it in reference.events if it["sessionUpdate"] == "notice"]
    return {
        "order": order,
        "terminals": {
            name: set_fields(**{key: value for key, value in it.items() if key != "output"})
            | {"output": it["output"], "ended": it.get("exitStatus") is not None}
            for name, it in of("terminal").items()
        },
        "plans": reference.plans,
        "session": set_fields(**reference.session),
        "usage": reference.usage,
        "commands": [it["name"] for it in reference.commands],
        "options": [(it["configId"], it["name"], it["currentValue"]) for it in reference.options],
        "state": tuple(reference.state.get(name) for name in ("state", "background", "end")),
        "compactions": {
            name: (it["status"], joined(it["summary"]), it.get("error"), it.get("_meta", {}))
            for name, it in of("compaction").items()
        },
        "subagents": {
            name: set_fields(
                **{key: it.get(key) for key in ("title", "description", "cwd", "additionalDirectories", "_meta")},
                state=((it.get("state") or {}).get("state"), (it.get("state") or {}).get("background")),
            )
            for name, it in of("subagent").items()
        },
        "letters": {
            name: (joined(it["content"]), it.get("senderSessionId"), it.get("recipientMessageId"), it.get("_meta", {}))
            for name, it in of("letter").items()
        },
        "events": [*notices, *(it for it in reference.events if it not in notices)],
    }


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_sequences_of_upserts_are_folded_as_a_naive_reference_folds_them(batch):
    for number in range(SEQUENCES // BATCHES):
        seed = batch * SEQUENCES + number
        script = Script(random.Random(seed), version=2)
        reference, state = Reference(), SessionState()
        for _ in range(script.dice.randint(1, 40)):
            update = script.update()
            reference.apply(json.loads(json.dumps(update)))
            state.add(codec.decode(json.dumps(update).encode(), v2.SessionUpdate))
            if script.dice.random() < 0.1:
                _ = state.timeline, state.tool_calls  # reading between two updates changes nothing
        assert ours(state) == theirs(reference), f"seed {seed}"
