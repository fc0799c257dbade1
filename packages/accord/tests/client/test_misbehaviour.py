"""Whatever an agent does, `accord run` gives the text that came, one clear line and the right exit code.

Each way to misbehave is one of `bad_agent.py`. None of them leaves a process behind.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.waiting import DEADLINE, wait_until

BAD_AGENT = str(Path(__file__).with_name("bad_agent.py"))
"""Seconds; machines are shared. What must be quick has a limit of its own, which is given to `accord run`."""


class Ending(NamedTuple):
    """What the user gets."""

    code: int
    text: str
    line: str | None = None
    """What the one line on standard error says; None for no line at all."""
    options: tuple[str, ...] = ()


FINE = Ending(0, "Hello\n")
DIED = "exit code 3): bad agent: no more"
SOON = ("--idle-timeout", "5")

WAYS: dict[str, Ending] = {
    # noise and death
    "prints-a-notice": Ending(0, "Hello\n", "Welcome to Bad Agent"),
    "prints-and-dies": Ending(1, "", "Usage: bad-agent"),
    "dies-at-start": Ending(1, "", DIED),
    "dies-in-initialize": Ending(1, "", DIED),
    "dies-in-new": Ending(1, "", DIED),
    "dies-in-a-turn": Ending(1, "Hel\n", DIED),
    "killed-in-a-turn": Ending(1, "Hel\n", "killed by signal 9"),
    "half-a-line-and-dies": Ending(1, "Hel\n", "exit code 0"),
    "closes-stdout": Ending(1, "", "closed its standard output"),
    "5-mb-of-stderr": FINE,
    "leaves-children": FINE,
    "ignores-the-end": FINE,
    # silence
    "silent-in-initialize": Ending(3, "", "did not answer `initialize`", ("--timeout", "1")),
    "silent-in-new": Ending(3, "", "the agent did not open the session", ("--timeout", "10")),
    "silent-in-a-turn": Ending(3, "Hel\n", "without a message", SOON),
    # what it says
    "early-updates": FINE,
    "unknown-variants": FINE,
    "split-surrogates": Ending(0, "Hel\U0001f44dlo\n"),
    "junk-frames": Ending(0, "Hello\n", "printed a line that is not a message"),
    "ids-that-look-alike": Ending(0, "Hel0 left, lo\n", options=("--allow", "auto")),
    "20-mb-chunk": Ending(0, "Hel" + "x" * 20_000_000 + "lo\n"),
    "20000-chunks": Ending(0, "Hel" + "word " * 20_000 + "lo\n"),
    "no-newline-at-the-end": FINE,
    "answers-twice": FINE,
    # how it answers
    "wrong-version": Ending(1, "", "version 99"),
    "wrong-shape-of-initialize": Ending(1, "", "result is invalid"),
    "refuses-initialize": Ending(1, "", "no licence [-32603] ({'why': 'expired'})"),
    "wrong-shape-of-new": Ending(1, "", "sessionId"),
    "wants-a-login": Ending(1, "", "accord login"),
    "wrong-shape-of-the-answer": Ending(1, "Hello\n", "stopReason"),
    "result-and-error": Ending(1, "Hello\n", "both a result and an error"),
    "answers-an-error": Ending(1, "Hello\n", "model overloaded [500] (try again)"),
    "odd-stop-reason": Ending(4, "Hello\n"),
    "refuses": Ending(4, "Hello\n", "the agent refused"),
}

AS_JSON = (
    "5-mb-of-stderr",
    "killed-in-a-turn",
    "odd-stop-reason",
    "refuses-initialize",
    "silent-in-initialize",
    "split-surrogates",
)
"""One of each kind of ending; the rest of the way is the same for both outputs."""


def command(way: str, pids: Path, *options: str) -> list[str]:
    agent = [sys.executable, "-I", "-S", BAD_AGENT, way, str(pids)]
    return [sys.executable, "-m", "accord", "run", *options, "Hi", "--", *agent]


def accord_run(way: str, pids: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(way, pids, *options), check=False, capture_output=True, timeout=DEADLINE)


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text() if Path("/proc").is_dir() else ""
        os.kill(pid, 0)
    except (ProcessLookupError, FileNotFoundError):
        return False
    return not stat.rpartition(")")[2].startswith((" Z", " X"))


def assert_gone(pids: Path) -> None:
    noted = [int(word) for word in pids.read_text().split() if word.isdecimal()]
    assert noted
    # A second Ctrl-C kills the whole group and reaps its leader: the others may need a moment of a busy machine to end.
    wait_until(lambda: not any(is_alive(pid) for pid in noted))


def assert_one_line(stderr: bytes, says: str | None) -> None:
    """The error is one line; the id of a session that was lost may stand before it."""
    text = stderr.decode().removeprefix("session s\n")
    if says is None:
        assert text == ""
    else:
        assert text.startswith("accord run: ")
        assert text.endswith("\n")
        assert text.count("\n") == 1
        assert says in text


@pytest.mark.requirement("initialize.version.client-tells-user", "prompt.refusal.shown")
@pytest.mark.parametrize("way", WAYS)
def test_as_text(way: str, tmp_path: Path) -> None:
    ending, pids = WAYS[way], tmp_path / "pids"
    done = accord_run(way, pids, *ending.options)
    assert_one_line(done.stderr, ending.line)
    assert done.returncode == ending.code
    assert done.stdout.decode() == ending.text
    assert_gone(pids)


@pytest.mark.parametrize("way", AS_JSON)
def test_as_json(way: str, tmp_path: Path) -> None:
    ending, pids = WAYS[way], tmp_path / "pids"
    done = accord_run(way, pids, "--json", *ending.options)
    assert_one_line(done.stderr, ending.line)
    assert done.returncode == ending.code
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert said_in(events) == ending.text.rstrip("\n")
    last = events[-1]
    if ending.code in (0, 4):
        assert last["type"] == "result"
        assert (last["stopReason"] == "end_turn") == (ending.code == 0)
    else:
        assert last["type"] == "error"
        assert last["exitCode"] == ending.code
        assert ending.line is None or ending.line in last["message"]
    assert_gone(pids)


def said_in(events: list[dict[str, Any]]) -> str:
    chunks = [event["update"] for event in events if event["type"] == "update"]
    text = "".join(it["content"].get("text", "") for it in chunks if it["sessionUpdate"] == "agent_message_chunk")
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


def test_what_is_known_and_what_is_not_is_in_the_json_as_it_came(tmp_path: Path) -> None:
    done = accord_run("unknown-variants", tmp_path / "pids", "--json")
    assert b'{"type":"update","update":{"sessionUpdate": "hologram", "depth": 1.5}}\n' in done.stdout
    assert b'{"sessionUpdate": "agent_message_chunk", "content": {"type": "smell", "of": "roses"}}' in done.stdout


def started(way: str, pids: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command(way, pids), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def text_from(process: subprocess.Popen[bytes], size: int) -> bytes:
    assert process.stdout is not None
    return process.stdout.read(size)


def test_ctrl_c_asks_the_agent_to_stop(tmp_path: Path) -> None:
    process = started("obeys-cancel", tmp_path / "pids")
    assert text_from(process, 3) == b"Hel"
    os.kill(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=DEADLINE)
    assert (process.returncode, stdout, stderr) == (130, b"lo\n", b"")
    assert_gone(tmp_path / "pids")


def test_a_second_ctrl_c_ends_an_agent_that_does_not_stop(tmp_path: Path) -> None:
    process = started("ignores-cancel", tmp_path / "pids")
    assert text_from(process, 3) == b"Hel"
    os.kill(process.pid, signal.SIGINT)
    wait_for("cancelled", tmp_path / "pids")
    assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=DEADLINE)
    assert (process.returncode, stderr) == (130, b"")
    assert_gone(tmp_path / "pids")


def wait_for(word: str, noted: Path) -> None:
    """Until the agent has noted this: two processes have only the file in common."""
    wait_until(lambda: word in noted.read_text().split())


def test_a_closed_stdout_ends_it(tmp_path: Path) -> None:
    process = started("20000-chunks", tmp_path / "pids")
    assert text_from(process, 3) == b"Hel"
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=DEADLINE) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert_gone(tmp_path / "pids")
