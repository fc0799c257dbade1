"""Our own agents, judged: every finding is true, by the clause that stands beside it.

A change here is a review: look at the frames, and at the page, before the table is changed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from accord.check.agent.run import check_agent
from accord.check.agent.settings import DEMO, Prompts, Settings
from accord.check.report.report import Report
from accord.client.target import CommandTarget

ROOT = Path(__file__).parents[2]
MEMORY_ONLY = ("note", "lint.load.after-restart", "session-setup: its store is in memory; harmless")

AGENTS: dict[str, tuple[list[str], Prompts, list[tuple[str, str, str]]]] = {
    "demo": (["-m", "accord", "demo"], DEMO, [MEMORY_ONLY]),
    "demo in version 2": (["-m", "accord", "demo"], DEMO, [MEMORY_ONLY]),
    "echo": (["examples/echo_agent.py"], Prompts(), [MEMORY_ONLY]),
    "lasting": (["examples/lasting_agent.py"], Prompts(), []),
    "low level": (
        ["examples/low_level_agent.py"],
        Prompts(),
        [
            ("fail", "session.new.unique-id", "session-setup: it has one session, and gives its id twice"),
            ("warn", "initialize.agent-states-capabilities", "initialization: it leaves agentCapabilities out"),
        ],
    ),
    "both versions": (["interop/agents/both_versions.py"], Prompts(), [MEMORY_ONLY]),
}
"""By name: the arguments of Python, the prompts, and the reviewed findings."""

VERSIONS = {"demo in version 2": (2,), "both versions": (1, 2)}
"""The versions that are judged; of the others only the first."""


async def _all_judged() -> dict[str, Report]:
    async def one(name: str) -> tuple[str, Report]:
        arguments, prompts, _ = AGENTS[name]
        target = CommandTarget([sys.executable, *arguments], cwd=ROOT)
        settings = Settings("full", prompts, versions=VERSIONS.get(name, (1,)), quiet=0.2)
        return name, await check_agent(name, target.dial, settings)

    return dict(await asyncio.gather(*(one(name) for name in AGENTS)))


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """The reports on all agents. They mostly wait, so all run at once."""
    return asyncio.run(_all_judged())


@pytest.mark.parametrize("name", AGENTS)
def test_every_finding_about_an_agent_of_ours_is_reviewed(reports: dict[str, Report], name: str):
    report = reports[name]
    assert (report.problems, report.blocked) == ([], "")
    said = sorted((finding.severity, finding.id) for finding in report.findings)
    assert said == sorted((severity, check) for severity, check, _ in AGENTS[name][2]), report.findings


def test_the_demo_lets_most_checks_see_something(reports: dict[str, Report]):
    assert reports["demo"].count("pass") >= 100
