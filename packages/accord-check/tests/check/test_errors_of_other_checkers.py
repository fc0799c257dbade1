"""The errors of two other checkers do not occur here: acplint 0.1.0, and `acp-devtools validate` 0.4.0.

acplint sends the version as text, and then fails every agent that refuses it. It looks for names of updates that the
protocol does not have, demands what the protocol leaves open, and passes what it has not seen. acp-devtools compares
messages with a schema: it reports a fault once for each branch of a union, and sees no fault between messages.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import accord_check.agent
from accord.trace import TraceEvent, TraceFile
from accord.transports import CommandTarget
from accord_check import judge
from accord_check.agent.agent_run import check_agent
from accord_check.agent.settings import DEMO, Settings
from accord_check.report import Report
from accord_check.trace_judge import report_on_trace
from tests.check.healthy import Mutation, both, drop, healthy, put, says, without
from tests.check.test_mutants_of_an_agent import judged

SMOKE = Settings(profile="smoke", prompts=DEMO, quiet=0.2, answer_within=60)


def ids(mutation: Mutation) -> list[str]:
    """What is found in the healthy conversation after this change."""
    talk = healthy()
    mutation(talk)
    return [finding.id for finding in judge(talk.events())]


# acplint


async def test_acplint_sends_the_version_as_text_and_our_scenarios_send_an_integer(tmp_path: Path):
    target = CommandTarget([sys.executable, "-m", "accord", "demo"])
    await check_agent("demo", target.dial, SMOKE, trace=tmp_path / "run.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    asked = [versions_in(line) for line in lines]
    versions = [version for found in asked for version in found]
    assert len(versions) >= 3
    assert {type(version) for version in versions} == {int}


def versions_in(value: Any) -> list[Any]:
    """Every `protocolVersion` in a line of a trace."""
    if isinstance(value, list):
        return [found for item in value for found in versions_in(item)]
    if not isinstance(value, dict):
        return []
    mine = [value["protocolVersion"]] if "protocolVersion" in value else []
    return mine + [found for item in value.values() for found in versions_in(item)]


async def test_acplint_fails_the_correct_demo_and_we_find_nothing():
    target = CommandTarget([sys.executable, "-m", "accord", "demo"])
    report = await check_agent("demo", target.dial, SMOKE)
    assert (report.verdict, report.findings) == ("conformant", [])


async def test_acplint_lets_all_fall_that_follows_a_refusal_and_we_report_the_refusal_once():
    report = await judged("refuses a version that it does not speak")
    assert [(finding.severity, finding.id) for finding in report.findings] == [("fail", "lint.initialize.succeeds")]
    assert report.count("pass") >= 60


def test_acplint_looks_for_camel_case_names_of_updates_and_we_for_those_of_the_schema():
    assert judge(healthy().events()) == []
    assert ids(put("chunk", "params.update.sessionUpdate", "agentMessageChunk")) == ["wire.names-cased"]


def test_acplint_demands_that_an_agent_streams_and_the_protocol_does_not():
    assert ids(without("thought", "chunk", "picture", "cursor", "cut", "cut/answer")) == []


def test_acplint_passes_what_it_has_not_seen_and_we_say_that_it_was_not_exercised(tmp_path: Path):
    talk = healthy()
    unseen = ("thought", "chunk", "picture", "plan", "tool", "ask", "ask/answer", "runs", "done")
    lent = ("read", "write", "create", "output", "wait", "output2", "release")
    talk.lines = talk.lines[: talk.place("prompt/answer") + 1]
    without(*unseen, "embeds", *lent, *(f"{name}/answer" for name in lent))(talk)
    statuses = statuses_of(report_on_trace(written(tmp_path, talk.events())))
    for check in ("tool.id-unique", "plan.sent-whole", "permission.ids-unique", "files.read.line-and-limit"):
        assert statuses[check][0] == "not exercised"
        assert statuses[check][1].startswith("no ")


def written(folder: Path, events: list[TraceEvent]) -> Path:
    recorder = TraceFile(folder / "wire.jsonl")
    for event in events:
        recorder(event)
    recorder.close()
    return folder / "wire.jsonl"


def statuses_of(report: Report) -> dict[str, tuple[str, str]]:
    return {outcome.check.id: (outcome.status, outcome.detail) for outcome in report.outcomes}


async def test_acplint_reports_an_agent_that_wants_a_login_as_broken_and_we_as_blocked():
    report = await judged("asks for a login")
    assert (report.verdict, report.findings) == ("blocked", [])


def test_acplint_waits_for_fixed_times_and_our_scenarios_for_events():
    """A run of acplint takes a minute because it sleeps. Here only `quiet` waits, for messages that must not come."""
    sources = Path(accord_check.agent.__file__).parent.rglob("*.py")
    called = [(path.name, node) for path in sources for node in ast.walk(ast.parse(path.read_text()))]
    asleep = [name for name, node in called if isinstance(node, ast.Attribute) and node.attr == "sleep"]
    assert asleep == []


# acp-devtools validate


def test_acp_devtools_reports_each_branch_of_a_union_and_we_one_finding_for_a_fault():
    """It prints 33 errors for this one update."""
    assert ids(drop("tool2", "params.update.title")) == ["lint.schema.misfit"]
    assert ids(put("tool2", "params.update.status", "done")) == ["lint.schema.damaged"]


def test_acp_devtools_skips_a_banner_on_standard_output_and_we_report_it():
    assert ids(says("initialize", "agent", b"Welcome!")) == ["stdio.stdout-only-messages"]


UNSEEN_BY_A_SCHEMA = {
    "a relative path": (put("tool", "params.update.locations[0].path", "a.py"), "paths.agent-sends-absolute"),
    "line 0": (put("tool", "params.update.locations[0].line", 0), "lines.agent-counts-from-one"),
    "a file read without the capability": (
        drop("initialize", "params.clientCapabilities.fs.readTextFile"),
        "files.read.only-when-advertised",
    ),
    "an echoed version": (
        both(
            put("initialize", "params.protocolVersion", 65535),
            put("initialize/answer", "result.protocolVersion", 65535),
        ),
        "initialize.version.agent-answers-latest",
    ),
    "an answer to a notification": (
        says("cancel", "agent", {"id": None, "error": {"code": -32601, "message": "unknown"}}),
        "jsonrpc.notification.never-answered",
    ),
    "an unknown stop reason": (put("prompt3/answer", "result.stopReason", "done"), "lint.prompt.stop-reason"),
}
"""The faults that it does not report, and our check for each."""


@pytest.mark.parametrize("fault", UNSEEN_BY_A_SCHEMA)
def test_acp_devtools_does_not_see_a_fault_between_messages_and_we_name_it(fault: str):
    mutation, check = UNSEEN_BY_A_SCHEMA[fault]
    assert ids(mutation) == [check]


def test_acp_devtools_counts_what_it_cannot_judge_as_fine_and_we_do_not(tmp_path: Path):
    """A recording without its handshake does not show what was agreed."""
    report = report_on_trace(written(tmp_path, healthy().events()[7:]))
    assert (report.verdict, report.count("pass")) == ("blocked", 0)
