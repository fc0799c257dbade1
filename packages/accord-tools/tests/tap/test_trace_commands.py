"""`accord trace show`, `grep`, `stats` and `list`, as a user runs them."""

import json
import os
import subprocess
import sys

import pytest

from accord import trace
from accord_tools.tap.trace_folder import traces_folder
from tests.tap.traces import CONVERSATION, chunk, write


def test_show_says_what_was_meant_in_one_row_for_each_message(accord, tmp_path):
    write(tmp_path / "wire.jsonl")
    rows = accord("show", "wire.jsonl").stdout.splitlines()
    assert len(rows) == 19
    assert rows[1] == "   100 ms → initialize version 1 zed 1"
    assert rows[6] == "   1.50 s ← agent_message_chunk I will look. (\u00d72)"
    assert rows[7] == "   1.70 s ← tool_call edit Edit main.py"
    assert rows[11] == "   7.00 s → session/request_permission answered selected yes (5.00 s)"
    assert rows[-3] == "   8.10 s ← session/load failed: -32002 no such session (100 ms, session s9)"
    assert rows[-1] == "   9.50 s ← process: ended by SIGKILL"


def test_show_takes_filters_and_the_newest_kept_trace(accord, state):
    traces_folder().mkdir(parents=True)
    write(traces_folder() / "a.jsonl")
    assert accord("show", "kind:agent_message_chunk", "--all").stdout.count("agent_message_chunk") == 2
    assert accord("show", "a.js", "status:error").stdout.count("\n") == 1
    assert accord("show", "kind:notification", "--", "-kind:tool_call", "-look").stdout.count("\n") == 1


def test_show_turns_the_arrows_where_the_agent_recorded(accord, tmp_path):
    write(tmp_path / "wire.jsonl", [(0.0, "out", {"frame": chunk("hi")})], role="agent")
    assert "← agent_message_chunk hi" in accord("show", "wire.jsonl").stdout


def test_show_prints_json_for_programs(accord, tmp_path):
    write(tmp_path / "wire.jsonl")
    found = [json.loads(line) for line in accord("show", "--json", "wire.jsonl", "dur:>6s").stdout.splitlines()]
    assert [(it["method"], it["duration"], it["request"]) for it in found] == [("session/prompt", 6.5, 6)]


def test_a_hostile_text_is_harmless_on_every_row(accord, tmp_path):
    nasty = "\x1b]0;title\x07\x1b[2J\rmasked\u202e\nnext"
    write(tmp_path / "wire.jsonl", [(0.0, "in", {"frame": chunk(nasty)}), (0.0, "in", {"stderr": nasty})])
    for words in (("show", "wire.jsonl"), ("grep", "masked", "wire.jsonl")):
        shown = accord(*words).stdout
        assert not set("\x1b\x07\r\u202e") & set(shown)
        assert shown.count("\n") == 2


def test_show_follows_a_trace_to_the_end_of_its_recording(tap, tmp_path):
    process = tap("-o", "wire.jsonl", [sys.executable, "-c", "print(input(), flush=True); input()"])
    process.stdin.write(b'{"jsonrpc":"2.0","method":"_first"}\n')
    process.stdin.flush()
    process.stdout.readline()
    words = [sys.executable, "-m", "accord", "trace", "show", "--follow", "wire.jsonl"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=tmp_path, text=True) as following:
        assert any("_first" in line for line in iter(following.stdout.readline, ""))
        process.communicate(b'{"jsonrpc":"2.0","method":"_second"}\n')
        rest = following.stdout.read()
    assert "_second" in rest
    # The end of the input may be seen before or after the program ends because of its second line.
    assert any(row.endswith("process: ended with exit code 0") for row in rest.splitlines()[-2:])
    assert following.returncode == 0


def test_grep_searches_the_messages_and_says_by_its_status_whether_it_found_any(accord, tmp_path):
    write(tmp_path / "wire.jsonl")
    write(tmp_path / "other.jsonl", CONVERSATION[:3])
    assert "rate limit" in accord("grep", "rate.limit", "wire.jsonl").stdout
    assert accord("grep", "ZED", "wire.jsonl", "other.jsonl", "-i").stdout.splitlines()[1].startswith("other.jsonl: ")
    assert accord("grep", "not there", "wire.jsonl", code=1).stdout == ""
    assert "PATTERN is not a regular expression" in accord("grep", "(", "wire.jsonl", code=2).stderr


def test_stats_names_methods_turns_and_what_was_not_answered(accord, tmp_path):
    write(tmp_path / "wire.jsonl")
    shown = accord("stats", "wire.jsonl").stdout
    assert "17 messages in 9.5 s: 2 sessions, 2 turns, 1 error, 1 line of standard error" in shown
    assert shown.splitlines()[-1].split() == ["session/prompt", "client", "agent", "9.0", "s", "500", "ms", "#19"]
    (turn, _) = json.loads(accord("stats", "wire.jsonl", "--json").stdout)["turns"]
    assert (turn["prompt"], turn["user"]) == ("Fix it", 5.0)


def test_list_shows_the_kept_traces(accord, state):
    assert accord("list").stdout == "No trace is kept yet. Record one: accord trace -- COMMAND...\n"
    traces_folder().mkdir(parents=True)
    header = trace.TraceHeader(1, "2026-11-22T10:00:00.000+00:00", "tap", command=("gemini", "--acp"))
    write(traces_folder() / "a.jsonl", header=header)
    shown = accord("list").stdout
    assert "gemini --acp" in shown
    assert "a.jsonl" in shown
    assert json.loads(accord("list", "--json").stdout)[0]["header"]["command"] == ["gemini", "--acp"]


@pytest.mark.parametrize("command", ["show", "stats"])
def test_what_is_no_trace_is_refused_with_its_reason(accord, tmp_path, command):
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "other.jsonl").write_text("{}\n")
    assert "neither a file nor a part of the name" in accord(command, "missing.jsonl", code=2).stderr
    assert "no traces in" in accord(command, code=2).stderr
    accord(command, "empty.jsonl", code=1)
    accord(command, "other.jsonl", code=1)


def test_a_closed_reader_ends_show_without_an_error(tmp_path):
    write(tmp_path / "wire.jsonl", [(0.0, "in", {"stderr": "x" * 100})] * 5_000)
    words = [sys.executable, "-m", "accord", "trace", "show", "wire.jsonl"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        os.read(process.stdout.fileno(), 100)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
