"""Our own agents, judged: every finding is true, by the clause that stands beside it.

A change here is a review: look at the frames, and at the page, before the table is changed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from accord.transports import CommandTarget
from accord_check.agent.agent_run import check_agent
from accord_check.agent.settings import DEMO, Profile, PromptTexts, Settings
from accord_check.report import Report

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[4]
PATIENT = Settings(
    quiet=0.2,
    start_within=300,
    answer_within=300,
    turn_within=300,
    grace=120,
    stops_within=120,
    left_within=120,
)
"""Settings under which a busy machine is no fault of an agent."""

CROSSING = "prompt.cancel.answers-cancelled"

MEMORY_ONLY = ("note", "lint.load.after-restart", "session-setup: its store is in memory; harmless")

LATE_ANSWER = (
    "note",
    "commands.after-session-exists",
    "slash-commands: the proxy works on the answer that opens the session while the update goes through; harmless",
)

AFTER_KILL = ("note", "lint.load.after-kill", "session-setup: its store is in memory; harmless")


COMPANY_POLICY = f"company_policy.py examples/proxies/company_policy.toml {os.devnull}"


def conducted(proxy: str, agent: str) -> list[str]:
    """A proxy of the examples before an agent, as one agent."""
    return ["-m", "accord", "conduct", f"{sys.executable} examples/proxies/{proxy}", f"{sys.executable} {agent}"]


AGENTS: dict[str, tuple[list[str], PromptTexts, list[tuple[str, str, str]]]] = {
    "demo": (["-m", "accord", "demo"], DEMO, [MEMORY_ONLY, AFTER_KILL]),
    "demo in version 2": (["-m", "accord", "demo"], DEMO, [MEMORY_ONLY, AFTER_KILL]),
    "echo": (["examples/echo_agent.py"], PromptTexts(), [MEMORY_ONLY]),
    "lasting": (["examples/lasting_agent.py"], PromptTexts(), []),
    "low level": (["examples/low_level_agent.py"], PromptTexts(), []),
    "careful editor": (["examples/careful_editor.py"], PromptTexts(edit="shout"), [MEMORY_ONLY, AFTER_KILL]),
    "hosting": (["examples/hosting/agent.py"], PromptTexts(), [MEMORY_ONLY]),
    "house rules": (conducted("house_rules.py", "examples/echo_agent.py"), PromptTexts(), [MEMORY_ONLY]),
    "redactor": (conducted("redactor.py", "examples/lasting_agent.py"), PromptTexts(), []),
    "permission policy": (conducted("permission_policy.py", "-m accord demo"), DEMO, [MEMORY_ONLY]),
    "recorder": (conducted(f"recorder.py {os.devnull}", "examples/echo_agent.py"), PromptTexts(), [MEMORY_ONLY]),
    "todo tools": (conducted("todo_tools.py", "examples/lasting_agent.py"), PromptTexts(), []),
    "company policy": (
        conducted(COMPANY_POLICY, "-m accord demo"),
        DEMO,
        [MEMORY_ONLY, LATE_ANSWER],
    ),
    "both versions": (["interop/agents/both_versions.py"], PromptTexts(), [MEMORY_ONLY, AFTER_KILL]),
}
"""By name: the arguments of Python, the prompts, and the reviewed findings."""

IN_FULL = ("demo", "demo in version 2", "lasting", "careful editor", "low level", "both versions")
"""Those that are asked for all that they offer; the others are like one of them, and get the default profile."""

VERSIONS = {"demo in version 2": (2,), "both versions": (1, 2)}
"""The versions that are judged; of the others only the first."""


async def _all_judged() -> dict[str, Report]:
    async def one(name: str) -> tuple[str, Report]:
        arguments, prompts, _ = AGENTS[name]
        target = CommandTarget([sys.executable, *arguments], cwd=ROOT)
        profile: Profile = "full" if name in IN_FULL else "default"
        settings = replace(PATIENT, profile=profile, prompts=prompts, versions=VERSIONS.get(name, (1,)))
        return name, await check_agent(name, target.dial, settings)

    reports = dict(await asyncio.gather(*(one(name) for name in AGENTS)))
    for name, report in reports.items():
        # With so many at once, an answer may cross a cancel for longer than the checker takes for a race. An agent that
        # ignores the cancel is found again alone.
        if any(finding.id == CROSSING for finding in report.findings):
            reports[name] = (await one(name))[1]
    return reports


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """The reports on all agents. They mostly wait, so all run at once."""
    return asyncio.run(_all_judged())


@pytest.mark.parametrize("name", AGENTS)
def test_every_finding_about_an_agent_of_ours_is_reviewed(reports: dict[str, Report], name: str):
    report = reports[name]
    assert (report.problems, report.blocked) == ([], "")
    said = sorted((finding.severity, finding.id) for finding in report.findings)
    reviewed = [it for it in AGENTS[name][2] if it != LATE_ANSWER or it[:2] in said]  # which of two comes first varies
    assert said == sorted((severity, check) for severity, check, _ in reviewed), report.findings


def test_the_demo_lets_most_checks_see_something(reports: dict[str, Report]):
    assert reports["demo"].count("pass") >= 100
