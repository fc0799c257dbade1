"""`accord run` as a person at a terminal sees it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.printable import columns
from tests.cli.pseudo_terminal import Terminal
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")

AGENT = ["--", sys.executable, str(Path(__file__).with_name("asking_agent.py"))]
Start = Callable[..., Terminal]

ALL = """\
~ Let me think about this for longer than one row of a terminal of eighty
  columns is wide.

First part.

Plan
  ○ one
  ○ two
✓ Edit a.txt  +2 -1
✓ one  1 of 2
[image: image/png, 10 bytes]

Second part.

context 50% full (500 of 1,000)

session """


def test_the_answer_and_the_work_stand_in_their_order_in_blocks_of_their_own(terminal: Start) -> None:
    seen = terminal("run", "all", *AGENT).to_the_end()
    assert seen.startswith(ALL)


@pytest.mark.parametrize("size", [(40, 24), (80, 24), (200, 50)])
def test_no_row_is_wider_than_the_terminal_but_the_command_to_copy(terminal: Start, size: tuple[int, int]) -> None:
    seen = terminal("run", "all", *AGENT, size=size).to_the_end()
    rows = seen[: seen.index("session ")].splitlines()
    assert max(map(columns, rows)) <= size[0]


def test_only_the_answer_goes_into_a_file_and_the_work_to_the_terminal(terminal: Start, tmp_path: Path) -> None:
    output = tmp_path / "output"
    seen = terminal("run", "all", *AGENT, output=str(output)).to_the_end()
    assert output.read_text() == "First part.Second part.\n"
    assert "✓ Edit a.txt  +2 -1" in seen
    assert "First part" not in seen


def test_quiet_prints_the_answer_alone(terminal: Start) -> None:
    assert terminal("run", "all", "--quiet", *AGENT).to_the_end() == "First part.Second part.\n"


def test_verbose_shows_the_lines_of_a_change(terminal: Start) -> None:
    seen = terminal("run", "all", "--verbose", *AGENT).to_the_end()
    assert "✓ Edit a.txt  +2 -1\n  1 - old\n  1 + new\n  2 + more\n" in seen


# Colours, and what moves


def test_a_dumb_terminal_gets_plain_text_alone(terminal: Start) -> None:
    dumb = terminal("run", "all", *AGENT, TERM="dumb", NO_COLOR="")
    assert "✓ Edit a.txt  +2 -1" in dumb.to_the_end()
    assert b"\x1b" not in dumb.raw
    assert b"\r" not in dumb.raw.replace(b"\r\n", b"")


def test_colours_are_used_unless_the_user_wants_none(terminal: Start) -> None:
    coloured = terminal("run", "all", *AGENT, NO_COLOR="").to_the_end()
    assert "\x1b[32m✓ \x1b[0mEdit a.txt\x1b[32m  +2\x1b[0m\x1b[31m -1\x1b[0m" in coloured
    assert coloured.startswith("\x1b[2m~ \x1b[0m\x1b[2mLet me think")
    assert "\x1b[" not in terminal("run", "all", *AGENT, NO_COLOR="1").to_the_end()


def test_a_spinner_says_what_runs_and_is_gone_before_the_next_line(terminal: Start, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    working = terminal("run", f"wait {fifo}", *AGENT)
    working.shows("Think hard")
    assert "the end" not in "\n".join(working.screen.display)
    fifo.write_text("")
    seen = working.to_the_end()
    assert seen.startswith("✓ Think hard\n\nthe end\n\nsession ")
    assert not re.search("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "\n".join(working.screen.display))


def test_ctrl_c_says_that_the_agent_was_asked_to_stop_and_its_open_call_was_cancelled(
    terminal: Start, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    working = terminal("run", f"wait {fifo}", *AGENT)
    working.shows("Think hard")
    working.process.send_signal(2)
    working.shows("stopping the agent; press Ctrl-C again to end it at once")
    fifo.write_text("")
    seen = working.to_the_end()
    assert "⊘ Think hard cancelled" in seen
    assert "✗" not in seen
    assert working.process.returncode == 130


# Questions


def test_a_question_never_overtakes_the_text_before_it(terminal: Start) -> None:
    asked = terminal("run", "order", *AGENT)
    asked.shows("└ Choose 1 to 3")
    before, _, _ = asked.raw.decode().partition("An agent asks")
    assert [f"before {number}" in before for number in range(100)] == [True] * 100
    asked.types("y\n")
    assert "after True" in asked.to_the_end()


def test_what_came_before_a_question_is_in_the_file_when_it_is_asked(terminal: Start, tmp_path: Path) -> None:
    output = tmp_path / "output"
    asked = terminal("run", "order", *AGENT, output=str(output))
    asked.shows("└ Choose 1 to 3")
    assert output.read_text().endswith("before 99\n")
    asked.types("n\n")
    asked.to_the_end()
    assert output.read_text().endswith("before 99\nafter False\n")


def test_a_question_shows_the_change_or_the_command(terminal: Start) -> None:
    asked = terminal("run", "order", *AGENT)
    question = asked.shows("└ Choose 1 to 3")
    assert "│ change    +1 -1" in question
    assert "│    same" in question
    assert "│   -old" in question
    assert "│   +new" in question
    asked.types("n\n")
    asked.to_the_end()
    asked = terminal("run", "command rm -rf build", *AGENT)
    assert "│ command   rm -rf build" in asked.shows("└ Choose 1 to 3")
    asked.types("n\n")
    assert "refused" in asked.to_the_end()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("9", "! there is no option “9”; type 1 to 3, y, n or /more"),
        ("what", "! “what” is not an answer; type 1 to 3, y, n or /more"),
        ("", "! an empty line is not an answer; type 1 to 3, y, n or /more"),
    ],
)
def test_a_wrong_key_is_explained_and_the_question_stays(terminal: Start, typed: str, said: str) -> None:
    asked = terminal("run", "command ls", *AGENT)
    asked.shows("└ Choose 1 to 3")
    asked.types(f"{typed}\n")
    asked.shows(said)
    asked.types("1\n")
    assert "allowed" in asked.to_the_end()


@pytest.mark.parametrize(("scope", "is_asked_again"), [("y", False), ("n", True)])
def test_always_holds_in_later_runs_only_if_the_user_says_so(terminal: Start, scope: str, is_asked_again: bool) -> None:
    asked = terminal("run", "command ls", *AGENT)
    asked.shows("└ Choose 1 to 3")
    asked.types("2\n")
    assert "│ for       execute: ls" in asked.shows("y: in later runs, too; n: only now:")
    asked.types(f"{scope}\n")
    assert "allowed" in asked.to_the_end()

    again = terminal("run", "command ls", *AGENT)
    if is_asked_again:
        again.shows("└ Choose 1 to 3")
        again.types("n\n")
        assert "refused" in again.to_the_end()
    else:
        assert "allowed" in again.to_the_end()
        assert b"Choose" not in again.raw


def test_files_are_lent_at_a_terminal_and_each_use_is_asked(terminal: Start, tmp_path: Path) -> None:
    asked = terminal("run", "write a.txt", *AGENT)
    question = asked.shows("└ Choose 1 to 3")
    assert "│ wants to  edit: write a.txt" in question
    assert "│ change    new file, +1" in question
    assert "│   +text" in question
    assert not (tmp_path / "a.txt").exists()
    asked.types("y\n")
    seen = asked.to_the_end()
    assert "written\n\n1 file written\n  a.txt  new, 5 bytes\n" in seen
    assert (tmp_path / "a.txt").read_text() == "text\n"

    asked = terminal("run", "write b.txt", *AGENT)
    asked.shows("└ Choose 1 to 3")
    asked.types("3\n")
    assert "the user did not allow this" in asked.to_the_end()
    assert not (tmp_path / "b.txt").exists()


# Errors


def test_an_error_of_the_agent_is_shown_with_the_last_lines_of_its_standard_error(terminal: Start) -> None:
    failed = terminal("run", "raise", *AGENT)
    seen = failed.to_the_end()
    assert failed.process.returncode == 1
    assert seen.startswith("so far\n")
    assert re.search(r"the last lines of the agent's standard error \(\d+ more with --stderr\):\n", seen)
    assert "ValueError: broken by hand\n\nsession " in seen
    assert seen.rpartition("\naccord run: ")[2].startswith("session/prompt: Internal error")
    assert "line 0\n" not in seen

    seen = terminal("run", "raise", "--stderr", *AGENT).to_the_end()
    assert "line 0\nline 1\n" in seen
    assert [line.strip() for line in seen.splitlines()].count("ValueError: broken by hand") == 1
    assert "the last lines" not in seen


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("streams", [["errors"], ["output", "errors"]], ids=" and ".join)
def test_a_stream_that_cannot_be_written_has_its_own_exit_code(
    terminal: Start, tmp_path: Path, streams: list[str]
) -> None:
    to = {"output": str(tmp_path / "output"), **dict.fromkeys(streams, "/dev/full")}
    done = terminal("run", "all", "--verbose", *AGENT, **to)
    done.to_the_end()
    assert done.process.returncode == 5
    if "output" not in streams:
        assert (tmp_path / "output").read_text() == "First part.Second part.\n"


# Agents that are started by hand


def test_an_agent_that_is_started_by_hand_explains_itself(tmp_path: Path, terminal: Start) -> None:
    demo = terminal("demo")
    demo.shows("accord-demo is an agent. It waits for a client")
    demo.types("\x04")
    assert "Press Ctrl-D to end it.\n" in demo.to_the_end()
    script = terminal(program=AGENT[1:], cwd=tmp_path)
    script.shows("asking is an agent. It waits for a client")
    wait_until(lambda: script.process.poll() is None)
    script.types("\x04")
    seen = script.to_the_end()
    assert 'use: accord run "Say hello" -- ' in seen
    assert "asking_agent.py" in seen
    assert script.process.returncode == 0


def test_without_an_agent_the_demo_says_what_it_is(terminal: Start) -> None:
    seen = terminal("run", "Say hello").to_the_end()
    assert seen.startswith("This is the built-in demo agent. To use yours: accord run PROMPT -- my-agent\n\nhello\n")
