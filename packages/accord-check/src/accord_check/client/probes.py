"""What our agent sends in a turn to see whether the client goes on: each update, and messages that it cannot know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from accord_check.client.fake_agent import MODES, OPTION, OPTION_V2
from accord_check.client.scenario_run import ScenarioRun
from accord_check.conversation import Frame

_TEXT: dict[str, Any] = {"type": "text", "text": "Done."}


def _edit_v2(run: ScenarioRun) -> Frame:
    path = str(run.folder / "notes.txt")
    return run.update(
        "tool_call_update",
        toolCallId="check-read",
        status="completed",
        title="Edit notes.txt",
        content=[
            {"type": "content", "content": _TEXT},
            {"type": "diff", "changes": [{"operation": "modify", "path": path, "fileType": "text"}]},
        ],
        locations=[{"path": path, "line": 1}],
    )


def _planned(run: ScenarioRun, *entries: dict[str, Any]) -> Frame:
    return run.update("plan_update", plan={"type": "items", "planId": "check-plan", "entries": list(entries)})


UPDATES_V2: tuple[tuple[str, Callable[[ScenarioRun], Frame]], ...] = (
    ("a message", lambda it: it.say("The conformance checks of Accord say hello. ")),
    ("a thought", lambda it: it.update("agent_thought_chunk", messageId="check-thought", content=_TEXT)),
    ("a whole message", lambda it: it.update("agent_message", messageId="check-whole", content=[_TEXT])),
    ("a message that is replaced", lambda it: it.update("agent_message", messageId="check-whole", content=[])),
    (
        "a link",
        lambda it: it.update(
            "agent_message_chunk",
            messageId="check-link",
            content={"type": "resource_link", "name": "notes", "uri": "file:///notes.txt"},
        ),
    ),
    ("a user's message", lambda it: it.update("user_message", messageId="check-before", content=[_TEXT])),
    (
        "a tool call",
        lambda it: it.update(
            "tool_call_update", toolCallId="check-read", title="Read notes.txt", kind="read", status="in_progress"
        ),
    ),
    ("a tool call's update", _edit_v2),
    (
        "a terminal",
        lambda it: it.update(
            "terminal_update", terminalId="check-terminal", command="make", cwd=str(it.folder), exitStatus=None
        ),
    ),
    (
        "a terminal's output",
        lambda it: it.update("terminal_output_chunk", terminalId="check-terminal", data="b2sK"),
    ),
    (
        "the end of a terminal's command",
        lambda it: it.update("terminal_update", terminalId="check-terminal", exitStatus={"exitCode": 0}),
    ),
    ("a plan", lambda it: _planned(it, {"content": "Check", "priority": "high", "status": "in_progress"})),
    ("an empty plan", _planned),
    (
        "commands",
        lambda it: it.update(
            "available_commands_update",
            availableCommands=[{"type": "command", "name": "check", "description": "Check"}],
        ),
    ),
    (
        "an option",
        lambda it: it.update("config_option_update", configOptions=[{**OPTION_V2, "currentValue": "long"}]),
    ),
    ("a title", lambda it: it.update("session_info_update", title="A check")),
    ("a title that is cleared", lambda it: it.update("session_info_update", title=None)),
    (
        "the usage",
        lambda it: it.update("usage_update", used=10, size=1_000, cost={"amount": 0.01, "currency": "USD"}),
    ),
    ("work that waits for the user", lambda it: it.update("state_update", state="requires_action")),
    ("work that goes on", lambda it: it.update("state_update", state="running")),
)
"""Every stable update of version 2, within a turn."""


LOG = b'a line of a log\n{"jsonrpc":"2.0","id":1,"method":"session/request_permission"}\n' + b"more of it\n" * 2_000


@dataclass(frozen=True, slots=True)
class Probe:
    """Something that a client has to survive."""

    name: str
    """The check that it belongs to."""
    after: str
    send: Callable[[ScenarioRun], Frame | None]
    needs: str = ""
    """The capability without which it is not sent."""
    versions: tuple[int, ...] = (1, 2)


def _edit(run: ScenarioRun) -> Frame:
    return run.update(
        "tool_call_update",
        toolCallId="check-read",
        status="completed",
        title="Edit notes.txt",
        content=[
            {"type": "content", "content": {"type": "text", "text": "Done."}},
            {"type": "diff", "path": str(run.folder / "notes.txt"), "oldText": "one\n", "newText": "two\n"},
        ],
        locations=[{"path": str(run.folder / "notes.txt"), "line": 1}],
    )


UPDATES: tuple[tuple[str, Callable[[ScenarioRun], Frame]], ...] = (
    ("a message", lambda it: it.say("The conformance checks of Accord say hello. ")),
    ("a thought", lambda it: it.update("agent_thought_chunk", content={"type": "text", "text": "Hm. "})),
    (
        "a link",
        lambda it: it.update(
            "agent_message_chunk", content={"type": "resource_link", "name": "notes", "uri": "file:///notes.txt"}
        ),
    ),
    ("a user's message", lambda it: it.update("user_message_chunk", content={"type": "text", "text": "(said before)"})),
    (
        "a tool call",
        lambda it: it.update(
            "tool_call", toolCallId="check-read", title="Read notes.txt", kind="read", status="in_progress"
        ),
    ),
    ("a tool call's update", _edit),
    (
        "a plan",
        lambda it: it.update("plan", entries=[{"content": "Check", "priority": "high", "status": "in_progress"}]),
    ),
    ("an empty plan", lambda it: it.update("plan", entries=[])),
    (
        "commands",
        lambda it: it.update(
            "available_commands_update",
            availableCommands=[{"name": "check", "description": "Check", "input": {"hint": "what"}}],
        ),
    ),
    ("a mode", lambda it: it.update("current_mode_update", currentModeId=MODES["availableModes"][1]["id"])),
    ("an option", lambda it: it.update("config_option_update", configOptions=[{**OPTION, "currentValue": "long"}])),
    ("a title", lambda it: it.update("session_info_update", title="A check")),
    ("a title that is cleared", lambda it: it.update("session_info_update", title=None)),
    (
        "the usage",
        lambda it: it.update("usage_update", used=10, size=1_000, cost={"amount": 0.01, "currency": "USD"}),
    ),
)
"""Every update of version 1 that needs no capability of the client."""


def _logged(run: ScenarioRun) -> None:
    run.client.complain(LOG)


_OTHERS: tuple[Probe, ...] = (
    Probe(
        "tool.defaults",
        "a tool call without kind and status",
        lambda it: it.tool("check-bare", title="Something"),
    ),
    Probe(
        "lint.client.takes-updates",
        "the end of a tool call",
        lambda it: it.update("tool_call_update", toolCallId="check-bare", status="failed"),
    ),
    Probe(
        "message.id.null-is-absent",
        "a chunk whose messageId is null",
        lambda it: it.update("agent_message_chunk", messageId=None, content={"type": "text", "text": "No id. "}),
        versions=(1,),
    ),
    Probe(
        "meta.nothing-assumed",
        "an update with _meta",
        lambda it: it.update(
            "agent_message_chunk",
            **({"messageId": "check-meta"} if it.version == 2 else {}),
            content={"type": "text", "text": "Meta. ", "_meta": {"accord.example/check": {"nested": [1, None]}}},
            _meta={"accord.example/check": True},
        ),
    ),
    Probe("stdio.stderr-is-no-protocol", "22 kB on standard error", _logged),
    Probe(
        "extension.notification-unknown",
        "the notification _accord.check/nothing",
        lambda it: it.notify("_accord.check/nothing", {}),
    ),
    Probe(
        "protocol.unknown-dollar-ignored",
        "the notification $/accord_check_nothing",
        lambda it: it.notify("$/accord_check_nothing", {}),
    ),
    Probe(
        "elicitation.complete.unknown-ignored",
        "elicitation/complete with an unknown id",
        lambda it: it.notify("elicitation/complete", {"elicitationId": "accord-check-nothing"}),
        "elicitation.url",
    ),
    Probe(
        "update.unknown-ignored",
        "an update of an unknown kind",
        lambda it: it.update("_accord.check/update", text="from the future"),
    ),
)


def _probes(version: int) -> Iterator[Probe]:
    updates = UPDATES_V2 if version == 2 else UPDATES
    yield from (Probe("lint.client.takes-updates", what, send) for what, send in updates)
    yield from (probe for probe in _OTHERS if version in probe.versions)


PROBES = {version: tuple(_probes(version)) for version in (1, 2)}
"""By version, in the order in which they are sent: the mildest first, as a client that ends misses what follows."""


async def probed(run: ScenarioRun) -> None:
    """Send each probe, and judge that the client goes on after it."""
    for probe in PROBES[run.version]:
        if probe.name == "stdio.stderr-is-no-protocol" and not run.client.starts_process:
            run.skip(probe.name, "the client has connected to a URL")
            continue
        if probe.needs and not run.declares(probe.needs):
            run.skip(probe.name, f"the client does not declare {probe.needs}")
            continue
        sent = probe.send(run)
        await run.alive(probe.name, probe.after, *([sent] if sent is not None else []))
