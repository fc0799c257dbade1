"""Each fault of version 2 that takes a scenario is found under its own name, in an agent that has only this one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from accord.transports import CommandTarget
from accord_check.agent.agent_run import check_agent
from accord_check.agent.settings import PromptTexts, Settings
from accord_check.checks import ACTIVE_OF_AGENT
from accord_check.report import Report
from accord_check.trace_judge import report_on_trace
from tests.check.mutants import all_judged, found

AGENT = Path(__file__).with_name("faulty_v2_agent.py")
PATIENT = Settings(
    prompts=PromptTexts(plain="hello", slow="slow"), allow_delete=True, versions=(2,), quiet=0.3, answer_within=20
)
QUICK = replace(PATIENT, profile="smoke")
"""No prompt is sent."""


class Mutant(NamedTuple):
    scenario: str
    found: set[str]
    settings: Settings = PATIENT


MUTANTS = {
    "takes an empty prompt": Mutant("version 2", {"~lint.prompt.empty-refused"}, QUICK),
    "replays from anywhere": Mutant("version 2", {"lint.resume.unknown-cursor"}, QUICK),
    "refuses to close nothing": Mutant("version 2", {"~lint.close.unknown-succeeds"}, QUICK),
    "cannot cancel tools": Mutant("version 2", {"?lint.tool.cancel-unknown"}, QUICK),
    "is busy": Mutant("version 2", {"~lint.prompt.taken-while-busy"}),
    "fails waiting prompts": Mutant("version 2", {"lint.prompt.held-cancelled"}),
    "echoes nothing": Mutant("bare", {"lint.prompt.echoed"}),
    "never runs": Mutant("bare", {"~lint.work.running-first"}),
    "gives no reason": Mutant("bare", {"~lint.work.stop-reason-told"}),
    "tells no state": Mutant("healthy", {"~lint.resume.state-told"}),
    "marks no end of a replay": Mutant("healthy", {"lint.replay.complete-once"}),
    "marks no end of an empty replay": Mutant("version 2", {"lint.replay.complete-once"}, QUICK),
    "replays after the mark": Mutant("healthy", {"lint.replay.complete-once"}),
    "marks an end without a replay": Mutant("version 2", {"lint.replay.complete-only-asked"}, QUICK),
    "tells of work in the replay": Mutant("resumed at work", {"lint.replay.live-held"}),
    "ends the work at a resume": Mutant("resumed at work", {"lint.resume.work-goes-on"}),
    "takes a resumed session for idle": Mutant("resumed at work", {"lint.resume.work-goes-on"}),
    "knows no keys": Mutant("idempotency keys", {"lint.prompt.key-retried", "lint.prompt.key-at-once"}),
    "looks for keys too early": Mutant("idempotency keys", {"lint.prompt.key-at-once"}),
    "takes any key": Mutant("idempotency keys", {"lint.prompt.key-malformed"}),
    "forks at any cursor": Mutant("version 2", {"~lint.fork.unknown-cursor"}, QUICK),
    "copies all at a cursor": Mutant("session cursors", {"lint.fork.at-cursor"}),
    "takes any skill": Mutant("version 2", {"lint.skill.unknown-refused"}),
    "has other options before a session": Mutant("session options", {"~lint.options.agree"}, QUICK),
    "opens a session to tell its options": Mutant("session options", {"lint.options.open-nothing"}, QUICK),
    "has options of any session": Mutant("session options", {"lint.options.unknown-session"}, QUICK),
    "ignores initial options": Mutant("session options", {"~lint.options.initial-applied"}, QUICK),
    "refuses unknown options": Mutant("session options", {"lint.options.initial-ignored"}, QUICK),
    "takes an option twice": Mutant("session options", {"lint.options.initial-twice"}, QUICK),
    "ends a cancelled turn as done": Mutant("version 2", {"lint.work.cancelled-told"}),
}
"""By fault: the scenario that shows it, and what is found; `~` warns, `?` notes."""


async def judged(fault: str, settings: Settings = PATIENT, *only: str, trace: Path | None = None) -> Report:
    target = CommandTarget([sys.executable, str(AGENT), fault])
    return await check_agent("faulty", target.dial, settings, only=only, trace=trace)


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    async def judge(fault: str) -> Report:
        mutant = MUTANTS[fault]
        return await judged(fault, mutant.settings, mutant.scenario)

    return all_judged(MUTANTS, judge, 5)


@pytest.mark.parametrize("fault", MUTANTS)
def test_an_agent_of_version_2_with_one_fault_is_told_exactly_that(reports: dict[str, Report], fault: str):
    mutant, report = MUTANTS[fault], reports[fault]
    assert report.problems == []
    assert found(report) == mutant.found, "\n".join(str(finding) for finding in report.findings)


async def test_an_agent_of_version_2_without_a_fault_passes_every_scenario(tmp_path: Path):
    report = await judged("", trace=tmp_path / "run.jsonl")
    assert (report.verdict, report.problems, report.versions) == ("conformant", [], (2,))
    assert found(report) == {"?lint.load.after-restart"}
    exercised = {outcome.check.id for outcome in report.outcomes if outcome.status != "not exercised"}
    assert {
        name
        for name, check in ACTIVE_OF_AGENT.items()
        if check.version == 2
        and name.startswith(("lint.prompt", "lint.resume", "lint.fork", "lint.close", "lint.skill"))
    } | {"lint.options.agree", "lint.fork.at-cursor"} <= exercised
    said = {finding.id for finding in report_on_trace(tmp_path / "run.jsonl", ["client"]).findings}
    # an empty prompt is sent to see it refused, and so is the rest
    assert said == {
        "config.set.offered-only",
        "lint.fork.announced-cursor",
        "lint.options.initial-unique",
        "lint.prompt.key-sent",
        "lint.skill.sendable",
        "lint.prompt.not-empty",
        "lint.schema.misfit",
        "lint.tool.cancel-offered",
        "stdio.stdin-only-messages",
        "stdio.no-batches",
        "jsonrpc.answer.id-echoed",
        "extension.method-underscore",
    }


async def test_an_agent_that_speaks_only_another_version_is_blocked_and_has_no_faults():
    report = await judged("speaks version 1 only", QUICK)
    assert (report.verdict, report.exit_code, found(report)) == ("blocked", 3, set())
    assert "does not speak version 2" in report.blocked


async def test_of_two_versions_those_are_judged_that_the_agent_speaks():
    report = await judged("", replace(QUICK, versions=(1, 2)), "bare", "version 2")
    assert (report.verdict, report.versions, found(report)) == ("conformant", (2,), set())
