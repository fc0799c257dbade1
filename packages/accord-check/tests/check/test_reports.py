"""Reports in each of their forms, and the file of expected failures."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from accord.trace import TraceFile
from accord_check.checks import SITE, url_of
from accord_check.report import ExpectationError, apply_expectations, read_expectations
from accord_check.report_formats import as_html, as_json, as_junit, as_markdown, as_sarif, as_text
from accord_check.trace_judge import report_on_trace
from tests.check.healthy import both, healthy, put
from tests.check.healthy_v2 import healthy_v2

LATE = "lines.agent-counts-from-one"
EVIL = "\x1b[2J<script>alert(1)</script> | `x` \x00\ud83d"


@pytest.fixture
def trace(tmp_path):
    def write(*mutations, talk=None):
        talk = talk or healthy()
        both(*mutations)(talk)
        path = tmp_path / "wire.jsonl"
        recorder = TraceFile(path, role="client")
        for event in talk.events():
            recorder(event)
        recorder.close()
        return path

    return write


@pytest.fixture
def report(trace):
    """The report on a trace with one failure and one warning."""
    line = put("tool", "params.update.locations[0].line", 0)
    return report_on_trace(trace(line, put("extension", "method", f"status/{EVIL}")))


def test_a_healthy_trace_is_conformant_and_each_pass_has_its_evidence(trace):
    report = report_on_trace(trace())
    assert (report.verdict, report.exit_code, report.findings) == ("conformant", 0, [])
    assert (report.peer, report.version) == ("agent 1 and client 1", 1)
    by_id = {(outcome.check.id, outcome.side): outcome for outcome in report.outcomes}
    assert by_id["tool.id-unique", "agent"].detail == "3 tool calls"
    assert by_id["usage.sizes-always", "agent"].detail == "1 usage update"
    unused = by_id["elicitation.absent-is-unsupported", "agent"]
    assert unused.status in ("pass", "not exercised")
    assert all(outcome.detail for outcome in report.outcomes)


def test_what_a_trace_does_not_show_is_not_exercised_and_says_why(trace):
    report = report_on_trace(trace(lambda talk: talk.lines.__delitem__(slice(2, None))))
    outcome = next(it for it in report.outcomes if it.check.id == "tool.id-unique")
    assert (outcome.status, outcome.detail) == ("not exercised", "no tool calls to judge")


def test_a_failure_makes_the_report_not_conformant_and_a_warning_only_if_it_is_strict(trace):
    failing = report_on_trace(trace(put("tool", "params.update.locations[0].line", 0)))
    assert (failing.verdict, failing.exit_code, failing.reason) == ("not conformant", 1, "1 check fails")
    warning = report_on_trace(trace(put("extension", "method", "status/changed")))
    assert (warning.verdict, warning.exit_code, warning.reason) == ("conformant", 0, "1 warning")
    warning.strict = True
    assert (warning.verdict, warning.exit_code) == ("not conformant", 1)


def test_a_trace_without_a_frame_is_blocked(tmp_path):
    path = tmp_path / "wire.jsonl"
    TraceFile(path).close()
    report = report_on_trace(path)
    assert (report.verdict, report.exit_code, report.reason) == ("blocked", 3, "the trace holds no frame")


def test_the_text_names_the_lines_of_the_file_and_is_safe_for_a_terminal(report):
    text = "\n".join(as_text(report))
    assert f"FAIL  {LATE}  agent MUST" in text
    lines = Path(report.subject).read_text().splitlines()
    number = next(place for place, line in enumerate(lines, 1) if '"line": 0' in line or '"line":0' in line)
    assert f"      at: line {number}\n      see: https://agentclientprotocol.com" in text
    assert "\x1b" not in text
    assert text.endswith("not conformant: 1 check fails, 1 warning")


def test_the_text_lists_passes_and_reasons_only_when_asked(report):
    assert "no terminals to judge" not in "\n".join(as_text(report))
    verbose = "\n".join(as_text(report, verbose=True))
    assert "ok    tool.id-unique  agent: 3 tool calls" in verbose


def test_json_has_every_check_with_its_status_and_its_findings(report):
    values = json.loads(json.dumps(as_json(report)))
    assert (values["accord-check"], values["verdict"], values["exitCode"]) == (1, "not conformant", 1)
    assert values["summary"]["fail"] == 1
    [check] = [it for it in values["checks"] if it["status"] == "fail"]
    assert (check["id"], check["side"], check["level"]) == (LATE, "agent", "MUST")
    [finding] = check["findings"]
    assert finding["message"] == "a location's line is 0"
    assert finding["lines"]


@pytest.mark.parametrize(
    ("page", "version", "address"),
    [
        ("prompt-turn, Cancellation", 1, "protocol/v1/prompt-turn#cancellation"),
        ("prompt-turn, Cancellation", 2, "protocol/v2/prompt-lifecycle#cancellation"),
        ("session-setup, Loading Sessions", 2, "protocol/v2/session-setup#resuming-sessions"),
        ("schema, Error", 2, "protocol/v2/schema#error"),
        ("session-modes, Initial state", 2, "protocol/v1/session-modes#initial-state"),
        ("v2-session-setup, Replay Complete", 2, "protocol/v2/session-setup#replay-complete"),
        ("rfd-v2-prompt", 2, "rfds/v2/prompt"),
        ("rfd-session-fork", 2, "rfds/session-fork"),
    ],
)
def test_a_page_is_linked_in_the_version_that_was_spoken(page, version, address):
    assert url_of(page, version) == f"{SITE}/{address}"


def test_a_report_on_version_2_links_to_the_pages_of_version_2(trace):
    report = report_on_trace(trace(put("done", "params.update.content[0].changes[0].path", "b.py"), talk=healthy_v2()))
    [check] = [it for it in as_json(report)["checks"] if it["status"] == "fail"]
    [finding] = check["findings"]
    assert check["url"] == finding["url"] == f"{SITE}/protocol/v2/overview#argument-requirements"
    [run] = json.loads(as_sarif(report))["runs"]
    assert not any("/protocol/v1/prompt" in rule["helpUri"] for rule in run["tool"]["driver"]["rules"])


def test_junit_has_a_case_for_each_check_and_is_valid_xml(report):
    root = fromstring(as_junit(report))
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"accord.check.agent", "accord.check.client"}
    agent = suites["accord.check.agent"]
    assert agent.get("failures") == "1"
    assert int(agent.get("tests") or 0) == len(agent)
    [failure] = agent.iter("failure")
    assert failure.get("message") == "a location's line is 0"
    skipped = [case for case in agent if case.find("skipped") is not None]
    assert len(skipped) == int(agent.get("skipped") or 0) > 0


def test_junit_fails_for_a_warning_only_if_it_is_strict(report):
    report.strict = True
    failures = list(fromstring(as_junit(report)).iter("failure"))
    assert {failure.get("type") for failure in failures} == {"MUST"}
    assert len(failures) == 2


def test_sarif_has_a_rule_for_each_check_and_a_result_for_each_finding(report):
    [run] = json.loads(as_sarif(report))["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    assert [result["level"] for result in run["results"]] == ["error", "warning"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "README.md"
        assert result["partialFingerprints"]["accordCheck/v1"]


def test_a_fingerprint_stays_when_only_numbers_change(trace):
    def fingerprints(number):
        path = trace(put("info", "params.update.updatedAt", f"on day {number}"))
        [run] = json.loads(as_sarif(report_on_trace(path)))["runs"]
        return [result["partialFingerprints"] for result in run["results"]]

    assert fingerprints(7) == fingerprints(31) != []


def test_the_page_and_the_summary_show_a_peer_s_text_as_text(report):
    page, summary = as_html(report), as_markdown(report)
    for text in (page, summary):
        assert "<script>" not in text
        assert "\x1b" not in text
        assert LATE in text
    assert not re.search(r"<(script|link|img|iframe)|@import|url\(", page), "nothing is fetched or run"
    assert "| agent |" in summary
    rows = [line for line in summary.splitlines() if line.startswith("| ")]
    assert len({line.replace("\\|", "").count("|") for line in rows if "[" in line}) == 1


def expectations(tmp_path, text):
    path = tmp_path / "accord-check.toml"
    path.write_text(text)
    return read_expectations(path)


def test_an_expected_failure_lets_the_run_pass(report, tmp_path):
    apply_expectations(expectations(tmp_path, f'[expect]\n"{LATE}" = "to be fixed"\n'), report)
    assert (report.verdict, report.count("expected"), report.count("fail")) == ("conformant", 1, 0)
    assert "(expected)" in "\n".join(as_text(report))
    assert re.findall(r"\(expected\)</b> <span class=.id.>([^<]+)", as_html(report)) == [LATE]
    [run] = json.loads(as_sarif(report))["runs"]
    assert run["results"][0]["suppressions"] == [{"kind": "external"}]


def test_an_expected_failure_that_passes_fails_the_run(trace, tmp_path):
    report = report_on_trace(trace())
    apply_expectations(expectations(tmp_path, '[expect]\n"agent tool.id-unique" = "to be fixed"\n'), report)
    assert (report.verdict, report.stale) == ("not conformant", ["agent tool.id-unique"])
    assert "agent tool.id-unique passes: remove it" in "\n".join(as_text(report))
    assert len(list(fromstring(as_junit(report)).iter("failure"))) == 1


def test_an_expected_failure_that_was_not_exercised_is_left_as_it_is(trace, tmp_path):
    report = report_on_trace(trace())
    apply_expectations(expectations(tmp_path, '[expect]\n"lint.load.after-restart" = "memory only"\n'), report)
    assert (report.verdict, report.stale) == ("conformant", [])


def test_an_expected_failure_ends_with_its_day(report, tmp_path):
    entries = expectations(tmp_path, f'[expect]\n"{LATE}" = {{ reason = "soon", until = 2027-01-31 }}\n')
    apply_expectations(entries, report, dt.date(2027, 2, 1))
    assert report.verdict == "not conformant"
    apply_expectations(entries, report, dt.date(2027, 1, 31))
    assert report.verdict == "conformant"


def test_a_side_is_expected_to_fail_alone(report, tmp_path):
    apply_expectations(expectations(tmp_path, f'[expect]\n"client {LATE}" = "x"\n'), report)
    assert report.verdict == "not conformant"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must have a table"),
        ('[expect]\n"tool.id-unik" = "x"\n', "no check has the id 'tool.id-unik'"),
        ('[expect]\n"tool.id-unique" = ""\n', "needs a reason"),
        ('[expect]\n"tool.id-unique" = 3\n', "needs a reason"),
        ('[expect]\n"server tool.id-unique" = "x"\n', "a side must be agent or client, got 'server'"),
        ('[expect]\n"tool.id-unique" = { reason = "x", until = "soon" }\n', "must be a date"),
        ("[expect\n", "cannot read"),
    ],
)
def test_a_wrong_file_of_expected_failures_is_refused_with_its_entry(tmp_path, text, problem):
    with pytest.raises(ExpectationError, match=problem):
        expectations(tmp_path, text)
