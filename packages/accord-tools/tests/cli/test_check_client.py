"""`accord check client`: clients judged from the command line, with our agent as theirs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import accord
from tests import ROOT

FAULTY = ROOT / "packages/accord-check/tests/check/faulty_client.py"
CLIENT = [sys.executable, str(FAULTY), "{agent}"]


def test_a_client_without_a_fault_is_conformant_and_leaves_nothing_behind(user):
    done = user.accord("check", "client", "--profile", "smoke", "--", *CLIENT)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("conformant")
    assert "faulty 1, version 1, profile smoke" in " ".join(done.stdout.split())
    assert list(user.folder.iterdir()) == []


def test_a_fault_of_a_client_ends_with_exit_code_1_and_names_lines_of_the_trace(user):
    done = user.accord(
        "check", "client", "--profile", "smoke", "--trace", "run.jsonl", "--json", "--", *CLIENT, "follows links"
    )
    assert done.returncode == 1
    [found] = [it for check in json.loads(done.stdout)["checks"] for it in check["findings"]]
    assert found["id"] == "files.escape-proof"
    lines = (user.folder / "run.jsonl").read_text().splitlines()
    assert "accord-check-link.txt" in lines[found["lines"][0] - 1]
    assert user.accord("check", "trace", "run.jsonl", "--of", "client").returncode == 0


def test_a_failure_that_is_expected_lets_the_run_pass(user):
    user.write("accord-check.toml", '[expect]\n"files.escape-proof" = "links are followed on purpose"\n')
    arguments = ("--profile", "smoke", "--expect", "accord-check.toml", "--junit", "junit.xml")
    done = user.accord("check", "client", *arguments, "--", *CLIENT, "follows links")
    assert done.returncode == 0, done.stdout
    assert "files.escape-proof" in (user.folder / "junit.xml").read_text()


def test_a_client_s_program_is_found_from_the_current_folder(user):
    (user.folder / "mine.py").write_text(FAULTY.read_text())
    done = user.accord("check", "client", "--profile", "smoke", "--", sys.executable, "./mine.py", "{agent}")
    assert done.returncode == 0, done.stdout


def test_variables_name_the_agent_and_the_scenario(user):
    script = 'test -n "$MINE" && exec "$PYTHON" "$CLIENT" "$ACCORD_CHECK_AGENT"'
    given = [f"--env=PYTHON={sys.executable}", f"--env=CLIENT={FAULTY}", "--env=MINE=1"]
    done = user.accord("check", "client", "--profile", "smoke", *given, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stdout


def test_what_a_client_says_is_printed_without_its_control_characters(user):
    done = user.accord("check", "client", "--profile", "smoke", "-v", "--", *CLIENT, "refuses in red")
    [line] = [line for line in done.stdout.splitlines() if "files.write.creates" in line]
    assert "the client refused fs/write_text_file: -32603" in line
    assert "\x1b" not in done.stdout


def test_a_client_that_never_starts_the_agent_cannot_be_judged(user):
    done = user.accord("check", "client", "--", "sh", "-c", "echo no agent is configured")
    assert done.returncode == 3
    said = " ".join(done.stdout.split())
    assert "blocked: the client did not start the agent (exit code 0)" in said
    assert "its last line: no agent is configured" in said


def test_a_command_is_needed(user):
    done = user.accord("check", "client")
    assert done.returncode == 2
    assert "give the client's command after --" in done.stderr


def test_a_run_in_the_client_s_own_folder_makes_no_file(user):
    done = user.accord("check", "client", "--profile", "smoke", "--cwd", ".", "--json", "--", *CLIENT)
    by_id = {check["id"]: check for check in json.loads(done.stdout)["checks"]}
    assert by_id["files.write.creates"]["status"] == "not exercised"
    assert "outside of the scratch folder" in by_id["files.write.creates"]["detail"]
    assert list(user.folder.iterdir()) == []
    assert user.accord("check", "client", "--cwd", "missing", "--", *CLIENT).returncode == 2


def announced(process):
    """What the command says at its start, by name, until the line that says what to do."""
    told = {}
    while not (line := process.stderr.readline()).startswith("Give your client"):
        assert line, f"the command ended: {process.wait()}"
        name, _, value = line.partition(":")
        told[name] = value.strip()
    return told


@pytest.fixture
def served(user):
    """`accord check client --serve`: its process, the agent's command and the folder to work in."""
    words = [sys.executable, "-m", "accord", "check", "client", "--serve", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=user.folder, env=user.environment, text=True, **pipes) as process:
        try:
            told = announced(process)
            yield process, told["the agent's command"], Path(told["a folder to work in"])
        finally:
            process.kill()


def report_of(process):
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    report = json.loads(out)
    return report, {check["id"]: check for check in report["checks"]}


def test_a_client_that_is_started_by_hand_plays_a_scenario_with_each_start(served):
    process, agent, work = served
    for fault in ("", "needs capabilities"):  # the second start plays the agent that declares nothing
        subprocess.run([sys.executable, FAULTY, agent, fault], check=False, cwd=work, timeout=60)
    report, checks = report_of(process)
    assert (process.returncode, report["problems"]) == (0, [])
    assert checks["terminal.create.as-told"]["status"] == "pass"
    assert checks["files.write.creates"]["status"] == "pass"
    assert checks["capabilities.client-any-combination"]["status"] == "warn"


def test_each_prompt_of_one_connection_plays_a_scenario(served):
    process, agent, work = served
    with accord.sync.connect([agent]) as remote:
        session = remote.new_session(work)
        for prompt in ("hello", "/check garbage", "go on"):
            assert session.prompt(prompt).outcome().stop_reason == "end_turn"
    report, checks = report_of(process)
    assert report["verdict"] == "conformant", report
    assert checks["update.unknown-ignored"]["status"] == "pass"
    assert checks["lint.client.survives-noise"]["status"] == "pass"
    assert checks["lint.client.takes-large-messages"]["status"] == "pass"


def test_a_client_that_connects_to_the_printed_address_is_judged(user):
    words = [sys.executable, "-m", "accord", "check", "client", "--serve", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=user.folder, env=user.environment, text=True, **pipes) as process:
        try:
            told = announced(process)
            for url in (told["its address"], told["with WebSocket"]):
                with accord.sync.connect(url) as remote:
                    session = remote.new_session(told["a folder to work in"])
                    assert session.prompt("hello").outcome().stop_reason == "end_turn"
            report, checks = report_of(process)
        finally:
            process.kill()
    assert report["verdict"] == "conformant", report
    assert checks["http.connection-header"]["status"] == "pass"
    assert checks["capabilities.client-any-combination"]["status"] == "pass"


def test_checks_that_no_client_has_come_to_are_blocked(served):
    process, _, _ = served
    report, _ = report_of(process)
    assert (process.returncode, report["verdict"]) == (3, "blocked")
    assert report["reason"] == "no client started the agent"
