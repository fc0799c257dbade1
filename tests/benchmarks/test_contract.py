"""What the Python agents and clients share: payloads, commands, what a turn promises, and the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.contract import FILE_TEXT, NEW_TEXT, OLD_TEXT, TOOL_TEXT, Figures, parse, percentile, text
from benchmarks.drive import Refused, as_promised, expected_updates, handled, resident
from benchmarks.matrix import PROMPTS, Cell, draw

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("length", [0, 1, 40, 44, 45, 1024])
def test_a_text_has_the_length_that_was_asked_for(length):
    assert len(text(length)) == length


def test_the_payloads_have_the_sizes_of_the_contract():
    assert len(OLD_TEXT) + len(NEW_TEXT) == 2048
    assert OLD_TEXT != NEW_TEXT
    assert len(FILE_TEXT) == 1024
    assert len(TOOL_TEXT) == 40


def test_a_prompt_is_a_verb_and_words():
    command = parse("fail -32050 not  today")
    assert (command.verb, command.number(0), command.rest(1)) == ("fail", -32050, "not today")
    assert parse("stream 5 nowait").number(1, 40) == 40
    assert parse("") == ("", ())


def test_a_long_prompt_is_an_echo():
    assert parse("stream 5 " + "x" * 1000).verb == ""


@pytest.mark.parametrize(
    ("prompt", "updates"),
    [
        ("stream 12 40 nowait", 12),
        ("tools 3", 6),
        ("read 9", 0),
        ("conc 9 3", 0),
        ("big 1000", 1),
        ("echo 1000", 1),
        ("permission", 1),
        ("wait", 0),
        ("fail 1 x", 0),
        ("throw x", 0),
        ("hello", 1),
    ],
)
def test_a_command_promises_so_many_updates(prompt, updates):
    assert expected_updates(parse(prompt)) == updates


def test_requests_are_counted_where_there_are_some_and_updates_elsewhere():
    assert handled(parse("conc 50 5"), 0) == 50
    assert handled(parse("tools 4"), 8) == 8


@pytest.mark.parametrize(
    ("prompt", "stop_reason", "updates", "refused", "ok"),
    [
        ("stream 5", "end_turn", 5, None, True),
        ("stream 5", "end_turn", 4, None, False),
        ("stream 5", "refusal", 5, None, False),
        ("stream 5", None, 0, Refused(-32603, "no"), False),
        ("wait", "cancelled", 0, None, True),
        ("wait", "end_turn", 0, None, False),
        ("fail -32050 not today", None, 0, Refused(-32050, "not today"), True),
        ("fail -32050 not today", None, 0, Refused(-32603, "not today"), False),
        ("fail -32050 not today", "end_turn", 0, None, False),
        ("throw oh", None, 0, Refused(-32603, "whatever"), True),
        ("throw oh", "end_turn", 0, None, False),
    ],
)
def test_a_turn_is_ok_when_it_ended_as_promised(prompt, stop_reason, updates, refused, ok):
    assert as_promised(parse(prompt), stop_reason, updates, refused) is ok


def test_a_percentile_is_the_nearest_rank():
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile(range(100), 0.99) == 99
    assert percentile([7], 0.99) == 7
    assert percentile([], 0.5) is None


def test_figures_have_latencies_only_where_something_was_timed():
    figures = Figures()
    figures.n = 3
    assert set(figures.bench()) == {"ms", "n", "perSec", "p50us", "p99us"}
    assert figures.bench()["p50us"] is None
    figures.times = [0.000_25]
    assert figures.bench()["p50us"] == 250


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells it this way")
def test_a_process_s_memory_is_told_now_and_at_its_peak():
    told = resident("self")
    assert 0 < told["now"] <= told["peak"]


def test_no_process_has_no_memory():
    assert resident("none") is None


def test_the_matrix_tries_every_kind_of_prompt():
    verbs = {parse(prompt).verb for prompt in PROMPTS}
    assert verbs >= {"stream", "tools", "read", "conc", "big", "wait", "permission", "fail", "throw"}


def test_a_matrix_shows_what_is_broken():
    cells = [Cell("go", "go", 1234, ()), Cell("go", "rust", 0, ("wait: None",))]
    assert draw(cells).splitlines() == [
        "client \\ agent     go      rust",
        "go              1,234  BROKEN 0",
        "",
        "1 of 2 pairs keep the contract",
        "client go, agent rust: wait: None",
    ]


def benchmarks(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "arguments",
    [("--only", "speed"), ("--peer", "cobol"), ("--pairs", "0"), ("--compare", "no-such-file.json"), ("--ours", "x")],
)
def test_wrong_usage_is_told_before_anything_is_built(arguments):
    done = benchmarks(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "usage:" in done.stderr


def test_an_agent_imports_next_to_nothing_from_the_contract():
    script = "import sys; before = set(sys.modules); import benchmarks.contract; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not name.startswith("benchmarks")}
    assert loaded <= {"collections.abc", "time", "typing", "_typing", "re", *typing_needs()}


def typing_needs():
    """What the standard library's own `typing` loads."""
    script = "import sys, typing, collections.abc; print(*sys.modules)"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_a_client_without_an_agent_says_how_to_use_it():
    script = "import sys; from benchmarks.drive import main; sys.exit(main(None))"
    done = subprocess.run(
        [sys.executable, "-c", script, "--json", "hello"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: client" in done.stderr


def test_a_python_client_keeps_the_clock_and_prints_one_line_a_prompt():
    script = """
import asyncio, sys
from contextlib import asynccontextmanager
from benchmarks.drive import Refused, Turn, main

class Fake:
    pid, seen, opened = 0, 0, 0
    async def open(self):
        self.opened += 1
        return str(self.opened)
    async def prompt(self, session, text):
        if text == "fail 5 no":
            raise Refused(5, "no")
        if text == "wait":
            self.cancelled = asyncio.Event()
            await self.cancelled.wait()
            return Turn("cancelled", None)
        if text == "hello":
            asyncio.get_running_loop().call_soon(self.late)  # the answer overtakes the update
        else:
            self.late()
        return Turn("end_turn", {"bench": {"n": 1, "p50us": 7, "p99us": 8}})
    def late(self):
        self.seen += 1
    async def cancel(self, session):
        self.cancelled.set()

@asynccontextmanager
async def connect(agent):
    yield Fake()

sys.exit(main(connect))
"""
    prompts = ["hello", "wait", "fail 5 no", "sessions 3", "stream 0"]
    done = subprocess.run(
        [sys.executable, "-c", script, "--json", *prompts, "--", "agent"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["prompt"] for line in lines] == prompts
    assert [line["ok"] for line in lines] == [True, True, True, True, False], done.stderr
    assert done.returncode == 1, "one of them was not as promised"
    keys = {"prompt", "ms", "updates", "perSec", "p50us", "p99us", "stopReason", "bench", "error", "startMs", "ok"}
    assert [set(line) - {"memory"} for line in lines] == [keys] * 5
    assert (lines[0]["updates"], lines[0]["p50us"], lines[0]["bench"]["n"]) == (1, 7, 1)
    assert lines[2]["error"] == {"code": 5, "message": "no"}
