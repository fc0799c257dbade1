"""What the judge says of eight real agents: every finding is true, by the clause that stands beside it.

A change here is a review: look at the frames, and at the page, before the table is changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from accord_check import judge
from accord_check.trace_judge import conversations

RECORDED = Path(__file__).parents[4] / "interop" / "recorded"

REVIEWED: dict[str, list[tuple[str, str, str]]] = {
    "claude-agent-acp": [
        ("note", "lint.legacy", "schema: LoadSessionResponse has no sessionId; harmless"),
    ],
    "codex-acp": [
        ("fail", "config.category.own-underscore", "session-config-options: collaboration_mode lacks the underscore"),
        ("warn", "types.no-own-fields", "extensibility: sessionCapabilities.subagents is not in the schema"),
    ],
    "deepagents-acp": [
        ("warn", "initialize.agent-states-info", "initialization: it SHOULD give its name and version"),
    ],
    "gemini-cli": [
        ("fail", "session.load.replay-before-answer", "session-setup: it answers the load, and replays after that"),
        ("warn", "lint.tool.announced", "tool-calls: the first message of a tool call is an update"),
    ],
    "hermes-agent": [
        ("warn", "tool.end-reported", "prompt-turn: the turn ends with end_turn, and the tool call is still pending"),
    ],
    "opencode-ai": [],
    "pydantic-acp": [
        ("note", "commands.after-session-exists", "slash-commands: the commands come before the session's id"),
    ],
    "qwen-code": [
        ("warn", "extension.method-underscore", "extensibility: qwen/notify/session/mode-update has no underscore"),
        ("warn", "extension.method-underscore", "extensibility: craft/drainMidTurnQueue has no underscore"),
    ],
}


@pytest.mark.parametrize("name", REVIEWED)
def test_every_finding_in_the_recording_of_a_real_agent_is_reviewed(name: str):
    found = {
        (finding.severity, finding.side, finding.id, finding.message)
        for one in conversations(RECORDED / f"{name}.jsonl")
        for finding in judge(one.events, one.client)
    }
    said = sorted((severity, check) for severity, _, check, _ in found)
    assert said == sorted((severity, check) for severity, check, _ in REVIEWED[name])
    assert {side for _, side, _, _ in found} <= {"agent"}, "the client was Accord"


def test_every_recording_is_reviewed():
    assert {path.stem for path in RECORDED.glob("*.jsonl")} == set(REVIEWED)
