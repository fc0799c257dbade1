"""Each fault of a client that takes a scenario is found under its own name, in a client that has exactly this fault."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from accord_check.checks import ACTIVE_OF_CLIENT
from accord_check.client.client_run import check_client
from accord_check.client.scenario_run import ClientSettings
from accord_check.report import Report
from accord_check.trace_judge import report_on_trace
from tests.check.mutants import all_judged, found

CLIENT = Path(__file__).with_name("faulty_client.py")
PATIENT = ClientSettings(answer_within=30, asks_within=30, end_within=30, quiet=0.3)
HASTY = replace(PATIENT, answer_within=2, end_within=2)
"""Settings for clients that keep us waiting."""


class Mutant(NamedTuple):
    scenario: str
    found: set[str]
    settings: ClientSettings = PATIENT


MUTANTS = {
    "answers nothing custom": Mutant("usual", {"extension.request-answered"}, HASTY),
    "answers nothing unknown": Mutant("usual", {"lint.client.answers"}, HASTY),
    "refuses with another code": Mutant("usual", {"~jsonrpc.error.method-not-found"}),
    "dies of a plan": Mutant("usual", {"lint.client.takes-updates"}),
    "dies of a bare tool call": Mutant("usual", {"tool.defaults"}),
    "dies of a null id": Mutant("usual", {"message.id.null-is-absent"}),
    "dies of _meta": Mutant("usual", {"meta.nothing-assumed"}),
    "reads the log": Mutant("usual", {"stdio.stderr-is-no-protocol"}),
    "dies of an unknown notification": Mutant("usual", {"~extension.notification-unknown"}),
    "dies of a dollar": Mutant("usual", {"protocol.unknown-dollar-ignored"}),
    "dies of a completion": Mutant("usual", {"elicitation.complete.unknown-ignored"}),
    "dies of an unknown update": Mutant("usual", {"update.unknown-ignored"}),
    "leaves in the turn": Mutant("usual", {"~lint.client.stays-in-turn"}),
    "shows links unasked": Mutant("usual", {"elicitation.undeclared-mode-code"}),
    "shows forms unasked": Mutant("usual", {"elicitation.undeclared-mode-code"}),
    "refuses a question with another code": Mutant("usual", {"elicitation.undeclared-mode-code"}),
    "counts from zero": Mutant("usual", {"files.read.line-and-limit"}),
    "returns all lines": Mutant("usual", {"files.read.line-and-limit"}),
    "reads missing files as empty": Mutant("usual", {"~files.missing-code"}),
    "reads everything": Mutant("usual", {"files.inside-roots", "files.escape-proof"}),
    "follows links": Mutant("usual", {"files.escape-proof"}),
    "writes nothing": Mutant("usual", {"files.write.creates"}),
    "has no kill": Mutant("usual", {"terminal.capability-means-all"}),
    "waits in create": Mutant("usual", {"terminal.create.at-once"}, HASTY),
    "waits in output": Mutant("usual", {"terminal.output.at-once"}, HASTY),
    "runs through a shell": Mutant("usual", {"terminal.create.as-told"}),
    "forgets the environment": Mutant("usual", {"terminal.create.as-told"}),
    "keeps the first output": Mutant("usual", {"terminal.output.oldest-dropped"}),
    "cuts characters": Mutant("usual", {"terminal.output.whole-characters"}),
    "forgets killed terminals": Mutant("usual", {"terminal.kill.keeps-terminal"}),
    "keeps released terminals": Mutant("usual", {"terminal.release.ends-id"}),
    "lets released commands run": Mutant("usual", {"terminal.release.kills"}),
    "kills its agent": Mutant("usual", {"~stdio.client-closes-stdin"}),
    "ends its agent by a signal": Mutant("usual", {"~stdio.client-closes-stdin"}),
    "needs capabilities": Mutant("bare", {"~capabilities.client-any-combination"}),
    "speaks any version": Mutant("version", {"~initialize.version.client-leaves"}),
    "stays after a wrong version": Mutant("version", {"~initialize.version.client-leaves"}, HASTY),
    "dies of unknown capabilities": Mutant("future", {"capabilities.unknown-harmless"}),
    "dies of odd options": Mutant("odd option", {"~config.unknown-type-ignored"}),
    "dies of odd categories": Mutant("odd category", {"config.category.unknown-accepted"}),
    "is impatient": Mutant("late", {"~lint.client.waits"}),
    "has small lines": Mutant("large", {"~lint.client.takes-large-messages"}),
    "has a small queue": Mutant("large", {"~lint.client.takes-many-updates"}),
    "dies of noise": Mutant("garbage", {"~lint.client.survives-noise"}),
    "is silent about what is no message": Mutant("garbage", {"~jsonrpc.error.invalid-request"}),
    "allows what was cancelled": Mutant("cancelled", {"prompt.cancel.permissions-cancelled"}),
    "dies of late updates": Mutant("cancelled", {"~prompt.cancel.late-updates-taken"}),
    "waits for a dead agent": Mutant("gone", {"~lint.client.ends-after-agent"}, HASTY),
}
"""By fault: the scenario that shows it, and what is found; `~` warns."""


async def judged(fault: str, settings: ClientSettings = PATIENT, *only: str, trace: Path | None = None) -> Report:
    return await check_client([sys.executable, str(CLIENT), "{agent}", fault], settings, only=only, trace=trace)


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    async def judge(fault: str) -> Report:
        mutant = MUTANTS[fault]
        return await judged(fault, mutant.settings, mutant.scenario)

    return all_judged(MUTANTS, judge, 6)


@pytest.mark.parametrize("fault", MUTANTS)
def test_a_client_with_one_fault_is_told_exactly_that(reports: dict[str, Report], fault: str):
    mutant, report = MUTANTS[fault], reports[fault]
    assert report.problems == []
    assert found(report) == mutant.found, "\n".join(str(finding) for finding in report.findings)


async def test_a_client_without_a_fault_passes_every_scenario(tmp_path: Path):
    report = await judged("", trace=tmp_path / "run.jsonl")
    assert (report.verdict, report.problems, found(report)) == ("conformant", [], set())
    exercised = {outcome.check.id for outcome in report.outcomes if outcome.status != "not exercised"}
    assert set(OF_PROCESSES) - exercised == {"elicitation.complete.unknown-ignored"}, "it takes no links"
    agents = report_on_trace(tmp_path / "run.jsonl", ["agent"])
    assert {(finding.severity, finding.id) for finding in agents.findings} == OURS


OF_PROCESSES = {name: check for name, check in ACTIVE_OF_CLIENT.items() if not name.startswith("http.")}
"""The checks of a client that starts its agent; test_clients_over_http.py has the others."""

OURS = {
    # the scenario of lines that are no message
    ("fail", "stdio.stdout-only-messages"),
    # a version that no client speaks
    ("fail", "initialize.version.agent-echoes-supported"),
    # a question in a mode that the client did not declare
    ("fail", "elicitation.declared-modes-only"),
    # a method that no client can know
    ("warn", "extension.method-underscore"),
    # capabilities that do not exist yet
    ("warn", "types.no-own-fields"),
    # the id of a released terminal
    ("warn", "lint.terminal.used-after-release"),
}
"""The clauses that our agent breaks on purpose."""


async def test_a_client_that_never_starts_the_agent_is_blocked():
    report = await check_client(["true"], PATIENT)
    assert (report.verdict, report.exit_code) == ("blocked", 3)
    assert "put {agent} where its command line names the agent" in report.blocked


async def test_a_client_that_does_not_start_is_blocked():
    report = await check_client(["no-such-client", "{agent}"], PATIENT)
    assert (report.verdict, report.blocked) == (
        "blocked",
        "cannot start no-such-client: command not found; is it installed, and its directory on PATH?",
    )
