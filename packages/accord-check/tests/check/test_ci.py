"""The action for CI, the frozen sets and the generated pages: what their text names is there, and their script runs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from accord_check.checks import CHECKS, SCHEMAS, checks_of, newer_than, revisions
from accord_check.requirement_pages import names_of_pages, page_of, write_pages
from accord_check.requirements import REQUIREMENTS
from tests.check.test_mutants_of_a_v2_agent import QUICK, judged as judged_v2
from tests.check.test_mutants_of_an_agent import PATIENT, judged

ROOT = Path(__file__).parents[4]
ACTION = ROOT / "actions" / "check"
FAULTY = Path(__file__).with_name("faulty_agent.py")


def run_action(folder: Path, agent: str, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the action, with the defaults of its inputs."""
    variables = {
        "PROFILE": "smoke",
        "PROTOCOL": "1",
        "PROMPTS": "",
        "EXPECT": "",
        "REQUIREMENTS": "",
        "SCHEMA": "",
        "STRICT": "false",
    }
    values = variables | {"REPORTS": "reports", "AGENT": agent} | inputs
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "job.md")}
    env |= {f"CHECK_{name}": value for name, value in values.items()}
    return subprocess.run(
        ["bash", str(ACTION / "check.sh")], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_the_action_writes_its_reports_and_the_summary_of_the_job(tmp_path: Path):
    done = run_action(tmp_path, f"{sys.executable} {FAULTY} 'asks for a login'")
    assert done.returncode == 3, done.stderr
    assert "asks for a login" in (tmp_path / "job.md").read_text()
    assert json.loads((tmp_path / "reports" / "report.json").read_text())["verdict"] == "blocked"
    assert {"junit.xml", "check.sarif", "report.html", "trace.jsonl"} <= {
        it.name for it in (tmp_path / "reports").iterdir()
    }


def test_the_action_fails_for_an_agent_with_a_fault_and_runs_no_part_of_its_input(tmp_path: Path):
    done = run_action(tmp_path, f"{sys.executable} {FAULTY} 'opens no session' '$(touch made)' '; touch made'")
    assert done.returncode == 1, done.stderr
    assert not (tmp_path / "made").exists()


def test_every_input_of_the_action_reaches_its_script():
    inputs = set(re.findall(r"inputs\.(\w+)", (ACTION / "action.yml").read_text())) - {"accord"}
    assert inputs == {name.lower() for name in re.findall(r"\$CHECK_(\w+)", (ACTION / "check.sh").read_text())}


def test_a_check_that_is_newer_than_the_revision_does_not_count():
    report = asyncio.run(judged("opens no session", replace(PATIENT, profile="smoke"), "bare"))
    assert report.verdict == "not conformant"
    report.count_only(checks_of("2026-11") - {"session.agent-baseline"}, "2026-11")
    assert (report.verdict, report.count("fail"), report.count("note")) == ("conformant", 0, 1)


def test_a_check_of_a_newer_schema_is_left_out():
    report = asyncio.run(judged_v2("marks no end of an empty replay", QUICK, "version 2"))
    assert report.verdict == "not conformant"
    report.follow("1.16")
    assert (report.verdict, report.findings) == ("conformant", [])
    [outcome] = [it for it in report.outcomes if it.check.id == "lint.replay.complete-once"]
    assert outcome.status == "not exercised"
    assert outcome.detail == "it came with schema 1.20, and the program is judged by 1.16"
    left_out = newer_than("1.16")
    assert report.remarks == [
        f"{len(left_out[since])} checks that came with schema {since} are left out (--schema 1.16)"
        for since in left_out
    ]


def test_each_check_is_of_a_schema_that_can_be_chosen_and_the_newest_has_all():
    assert {check.since for check in CHECKS.values()} == {"", *SCHEMAS.values()} - {"1.15"}
    assert newer_than("1.20") == {}
    assert set(newer_than("1.19")) == {"1.20"}
    for schema in ("1.15", "1.16", "2.4"):
        assert set(newer_than(schema)) == {"1.17", "1.20"}


FROZEN = {"2026-11": "e485594fe0c5f0bc"}
"""The digest of each set that was released: a set that changes would change what old programs are judged by."""


def test_a_frozen_set_never_changes():
    assert revisions() == sorted(FROZEN)
    for revision, digest in FROZEN.items():
        ids = "\n".join(sorted(checks_of(revision)))
        assert hashlib.sha256(ids.encode()).hexdigest()[:16] == digest


def test_the_latest_frozen_set_has_only_checks_that_exist():
    assert checks_of(revisions()[-1]) <= set(CHECKS)


def test_there_is_a_page_for_each_requirement_and_check(tmp_path: Path):
    assert write_pages(tmp_path / "pages") == len(names_of_pages())
    written = {path.stem for path in (tmp_path / "pages").iterdir()}
    assert written == {*REQUIREMENTS, *CHECKS, "README"}
    links = re.findall(r"\]\(([\w.-]+)\.md\)", (tmp_path / "pages" / "README.md").read_text())
    assert sorted(links) == sorted({*REQUIREMENTS, *CHECKS})


@pytest.mark.parametrize("name", ["tool.id-unique", "config.order.by-priority", "lint.load.after-restart"])
def test_a_page_says_the_clause_the_page_and_how_it_is_judged(name: str):
    text = page_of(name)
    about = CHECKS.get(name) or REQUIREMENTS[name]
    assert about.clause in text
    assert about.page in text
    assert ("Judged by" in text) == (name in CHECKS)
