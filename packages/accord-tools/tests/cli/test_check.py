"""`accord check`: traces and agents judged from the command line."""

from __future__ import annotations

import json
import re
import sys

import pytest

from accord.trace import TraceFile
from tests import ROOT
from tests.check.healthy import healthy, put, without

FAULTY = ROOT / "packages/accord-check/tests/check/faulty_agent.py"


@pytest.fixture
def trace(user):
    def write(*mutations):
        talk = healthy()
        for mutation in mutations:
            mutation(talk)
        recorder = TraceFile(user.folder / "wire.jsonl", role="client")
        for event in talk.events():
            recorder(event)
        recorder.close()
        return "wire.jsonl"

    return write


BROKEN = put("tool", "params.update.locations[0].line", 0)


def test_a_trace_without_a_fault_is_conformant(user, trace):
    lines = user.said("check", "trace", trace()).splitlines()
    assert lines[0] == "wire.jsonl, agent 1 and client 1, version 1"
    assert lines[-1] == "conformant"


def test_a_fault_in_a_trace_ends_with_exit_code_1_and_is_written_in_every_form(user, trace):
    forms = ("report", "junit", "sarif", "html", "markdown")
    done = user.accord("check", "trace", trace(BROKEN), *(word for form in forms for word in (f"--{form}", form)))
    assert done.returncode == 1
    assert "FAIL  lines.agent-counts-from-one  agent MUST" in done.stdout
    assert done.stdout.endswith("not conformant: 1 check fails\n")
    for form in forms:
        assert "lines.agent-counts-from-one" in (user.folder / form).read_text()


def test_json_is_the_report_and_nothing_else(user, trace):
    done = user.accord("check", "trace", trace(BROKEN), "--json", "--of", "agent")
    assert json.loads(done.stdout)["verdict"] == "not conformant"
    assert {check["side"] for check in json.loads(done.stdout)["checks"]} == {"agent"}


def test_expected_failures_let_the_command_pass(user, trace):
    user.write("accord-check.toml", '[expect]\n"lines.agent-counts-from-one" = "to be fixed"\n')
    user.said("check", "trace", trace(BROKEN), "--expect", "accord-check.toml")
    done = user.accord("check", "trace", trace(), "--expect", "accord-check.toml")
    assert (done.returncode, "passes: remove it" in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [(None, "cannot read wire.jsonl: No such file"), ("", "is empty"), ("[]\n", "not a line of an Accord trace")],
)
def test_a_file_that_is_no_trace_is_wrong_usage(user, text, problem):
    if text is not None:
        user.write("wire.jsonl", text)
    assert problem in user.refused("check", "trace", "wire.jsonl")


def test_the_checks_are_listed_and_explained(user):
    listed = json.loads(user.said("check", "list", "--json"))
    assert len({check["id"] for check in listed}) == len(listed) > 100
    mine = json.loads(user.said("check", "list", "--json", "--of", "client"))
    assert {check["of"] for check in mine} == {"client", "both", "transport"}
    said = user.said("check", "explain", "tool.id-unique")
    assert "demands:   the agent gives each tool call of a session an id of its own" in said
    assert "https://agentclientprotocol.com/protocol/v1/tool-calls#creating" in said
    assert "did you mean" in user.refused("check", "explain", "tool.id-uniqe").lower()


def test_the_built_in_agent_passes_without_a_prompt_and_leaves_no_trace(user):
    done = user.accord("check", "agent", "--profile", "smoke")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("conformant")
    assert "the conversation:" not in done.stdout


@pytest.mark.parametrize("fault", ["greets on stdout"])
def test_a_fault_of_an_agent_names_a_line_of_the_kept_trace(user, fault):
    done = user.accord(
        "check",
        "agent",
        "--profile",
        "smoke",
        "--trace",
        "run.jsonl",
        "--json",
        "--",
        sys.executable,
        str(FAULTY),
        fault,
    )
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    [finding] = [finding for check in report["checks"] for finding in check["findings"]]
    assert (finding["id"], report["trace"]) == ("stdio.stdout-only-messages", "run.jsonl")
    lines = (user.folder / "run.jsonl").read_text().splitlines()
    assert all("Welcome!" in lines[number - 1] for number in finding["lines"])
    assert (user.folder / "run.jsonl").stat().st_mode & 0o077 == 0


def test_an_agent_that_does_not_start_could_not_be_judged(user):
    done = user.accord("check", "agent", "--", "no-such-agent")
    assert done.returncode == 3
    assert "blocked: cannot start no-such-agent" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--timeout", "0"), "from 0 to 86,400"),
        (("--env", "NAME"), "NAME=VALUE"),
        (("--prompts", "missing.toml"), "cannot read missing.toml"),
        (("--profile", "fast"), "invalid choice"),
    ],
)
def test_wrong_usage_is_refused_with_the_reason(user, arguments, problem):
    assert problem in user.refused("check", "agent", *arguments)


def test_a_scratch_home_and_variables_reach_the_agent(user):
    user.write(
        "where.py", "import os, sys\nprint(os.environ['HOME'], os.environ['MARK'], file=sys.stderr)\nsys.exit(1)\n"
    )
    agent = (sys.executable, "where.py")
    done = user.accord("check", "agent", "--home", "scratch", "--env", "MARK=here", "--", *agent)
    assert re.search(r"/accord-check-home-\S+ here", done.stdout)


def test_a_trace_that_begins_after_the_handshake_is_not_judged(user, trace):
    done = user.accord("check", "trace", trace(without("initialize", "initialize/answer")))
    assert done.returncode == 3
    assert "wire.jsonl is not judged: the trace begins after the handshake" in done.stdout


def test_the_rest_of_a_file_is_judged_beside_a_conversation_that_begins_late(user, trace):
    late = (user.folder / trace(without("initialize", "initialize/answer"))).read_bytes()
    whole = (user.folder / trace(BROKEN)).read_bytes()
    (user.folder / "both.jsonl").write_bytes(whole + late)
    done = user.accord("check", "trace", "both.jsonl")
    assert done.returncode == 1
    assert "conversation 2 is not judged: the trace begins after the handshake" in done.stdout
    report = json.loads(user.accord("check", "trace", "both.jsonl", "--json").stdout)
    assert len(report["remarks"]) == 1


def test_a_revision_without_a_frozen_set_is_refused_before_anything_runs(user):
    error = user.refused("check", "agent", "--requirements", "2025-11", "--", sys.executable, str(FAULTY))
    assert "no requirements are frozen as '2025-11'; there are 2026-11" in error


def test_a_schema_that_the_checks_do_not_know_is_refused_before_anything_runs(user):
    error = user.refused("check", "agent", "--schema", "1.14", "--", sys.executable, str(FAULTY))
    assert "argument --schema: must be one of 1.15, 1.16, 1.17, 1.18, 1.19, 1.20, 2.4, got '1.14'" in error


@pytest.fixture
def traces(user):
    """Returns the trace files that the command has left in the folder for temporary files."""
    folder = user.folder / "temporary"
    folder.mkdir()
    user.environment["TMPDIR"] = str(folder)
    return lambda: [str(path) for path in folder.glob("accord-check-*.jsonl")]


AGENT_WITHOUT_MARKS = ("--", sys.executable, str(FAULTY.with_name("faulty_v2_agent.py")), "marks no end of a replay")
IN_VERSION_2 = ("check", "agent", "--protocol", "2", "--profile", "smoke", "--json")


def test_a_run_leaves_its_trace_only_if_it_has_findings_and_says_where(user, traces):
    report = json.loads(user.accord(*IN_VERSION_2, *AGENT_WITHOUT_MARKS).stdout)
    assert (report["verdict"], [report["trace"]]) == ("not conformant", traces())
    older = json.loads(user.said(*IN_VERSION_2, "--schema", "1.19", *AGENT_WITHOUT_MARKS))
    assert (older["verdict"], older["trace"], traces()) == ("conformant", "", [report["trace"]])
    assert re.fullmatch(r"\d+ checks that came with schema 1.20 are left out \(--schema 1.19\)", *older["remarks"])


def test_a_run_that_is_given_up_leaves_no_trace(user, traces):
    (user.folder / "wrong.toml").write_text('[expect]\n"no.such-check" = "why"\n')
    user.refused(*IN_VERSION_2, "--expect", "wrong.toml", *AGENT_WITHOUT_MARKS)
    assert traces() == []


def test_an_agent_of_both_versions_is_judged_in_both(user):
    agent = ROOT / "interop" / "agents" / "both_versions.py"
    arguments = ("--profile", "smoke", "--protocol", "auto", "--json", "--", sys.executable, str(agent))
    assert json.loads(user.said("check", "agent", *arguments))["protocolVersions"] == [1, 2]


def test_the_pages_of_all_requirements_are_written(user):
    assert "README.md" in user.said("check", "pages", "requirements")
    assert (user.folder / "requirements" / "tool.id-unique.md").exists()
