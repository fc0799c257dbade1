"""What the checks say of agents that stand on other SDKs: every finding is true, by the clause that stands beside it.

A change here is a review: look at the frames, and at the page, before the table is changed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.build import Unavailable
from interop.peers import SDKS, THEIRS, command

from accord.transports import CommandTarget
from accord_check.agent.agent_run import check_agent
from accord_check.agent.settings import PromptTexts
from tests.check.test_no_false_finding import PATIENT

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

NO_USER = ("fail", "session.load.replays-everything", "session-setup: the program replays its own words only")
FORGETS = [
    ("note", "lint.load.after-restart", "session-setup: the program keeps its sessions in memory"),
    ("note", "lint.load.after-kill", "session-setup: the program keeps its sessions in memory"),
]
ANY_CURSOR = ("warn", "session.list.cursor-invalid", "session-list: the program counts up from any cursor")
SILENT = [
    ("warn", "jsonrpc.error.parse", "json-rpc: the SDK drops a line that is not JSON"),
    ("warn", "jsonrpc.error.invalid-request", "json-rpc: the SDK drops an array"),
]

REVIEWED: dict[str, list[tuple[str, str, str]]] = {
    "python": [
        NO_USER,
        *FORGETS,
        SILENT[0],
        ("fail", "lint.survives-bad-input", "json-rpc: the SDK ends on an array"),
    ],
    "typescript": [NO_USER, *FORGETS, ANY_CURSOR],
    "typescript-unstable": [NO_USER, *FORGETS, ANY_CURSOR],
    "go": [
        NO_USER,
        *FORGETS,
        ANY_CURSOR,
        *SILENT,
        ("warn", "jsonrpc.error.invalid-request", "json-rpc: the SDK drops a method that is a number"),
    ],
    "rust": [NO_USER, *FORGETS, ANY_CURSOR],
}


def test_every_sdk_is_reviewed():
    assert set(REVIEWED) == set(THEIRS)


@pytest.mark.parametrize("name", REVIEWED)
async def test_every_finding_about_an_agent_of_another_sdk_is_reviewed(name: str):
    try:
        words = command(SDKS[name], "agent")
    except Unavailable as missing:
        pytest.skip(str(missing))
    prompts = PromptTexts(plain="hello", slow="wait", edit="ask")
    settings = replace(PATIENT, profile="full", prompts=prompts)
    report = await check_agent(name, CommandTarget(words).dial, settings)
    assert (report.problems, report.blocked) == ([], "")
    said = sorted((finding.severity, finding.id) for finding in report.findings)
    assert said == sorted((severity, check) for severity, check, _ in REVIEWED[name]), report.findings
