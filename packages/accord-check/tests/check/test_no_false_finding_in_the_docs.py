"""The agents of the guides, judged: every finding is true, by the reason that stands beside it."""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from accord.transports import CommandTarget
from accord_check.agent.agent_run import check_agent
from accord_check.agent.settings import PromptTexts
from accord_check.report import Report
from tests.check.test_no_false_finding import MEMORY_ONLY, PATIENT, ROOT

pytestmark = pytest.mark.timeout(900)

READS = "the agent reads the file that the prompt names, and a prompt"
PAGES: dict[str, list[tuple[str, str, str]]] = {
    "home": [MEMORY_ONLY],
    "agents": [MEMORY_ONLY],
    "coming-from/official-sdk": [MEMORY_ONLY],
    "quickstart": [
        ("warn", "prompt.content.agent-takes-links", f"{READS} with a link after the name names no file"),
        MEMORY_ONLY,
    ],
}
"""The pages with a whole agent that needs nothing but Accord, and the reviewed findings."""

SETTINGS = replace(PATIENT, prompts=PromptTexts(plain="notes.txt", slow="notes.txt", edit="notes.txt"))


def agents_in(page: str) -> list[str]:
    """The programs on a page that are agents."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [block for block in blocks if re.search(r"^\s*agent\.run\(\)", block, re.MULTILINE)]


async def _all_judged(folder: Path) -> dict[str, Report]:
    async def one(page: str) -> tuple[str, Report]:
        [program] = agents_in(page)
        file = folder / f"{page.rpartition('/')[2]}.py"
        file.write_text(program)
        target = CommandTarget([sys.executable, str(file)])
        return page, await check_agent(page, target.dial, SETTINGS)

    return dict(await asyncio.gather(*map(one, PAGES)))


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """The reports on all agents. They mostly wait, so all run at once."""
    return asyncio.run(_all_judged(tmp_path_factory.mktemp("docs")))


@pytest.mark.parametrize("page", PAGES)
def test_every_finding_about_an_agent_of_a_guide_is_reviewed(reports: dict[str, Report], page: str):
    report = reports[page]
    assert (report.problems, report.blocked) == ([], "")
    said = sorted((finding.severity, finding.id) for finding in report.findings)
    assert said == sorted((severity, check) for severity, check, _ in PAGES[page]), report.findings
    assert report.count("pass") >= 60
