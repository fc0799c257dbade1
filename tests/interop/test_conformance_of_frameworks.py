"""The examples that stand on other people's frameworks, judged with models that follow a script: nothing is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from accord.transports import CommandTarget
from accord_check.agent.agent_run import check_agent
from accord_check.agent.settings import PromptTexts
from tests.check.test_no_false_finding import PATIENT

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SETTINGS = replace(PATIENT, profile="full", prompts=PromptTexts(plain="hello", slow="wait", edit="write"))


async def test_nothing_is_found_of_the_agent_of_a_framework(framework_agent: list[str], tmp_path: Path):
    words = [word.replace("{data}", str(tmp_path)) for word in framework_agent]
    report = await check_agent("framework", CommandTarget(words).dial, SETTINGS)
    assert (report.problems, report.blocked, report.findings) == ([], "", [])
    assert report.count("pass") >= 75
