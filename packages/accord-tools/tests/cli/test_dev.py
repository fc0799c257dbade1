"""`accord dev`: a program runs while it is written, is loaded again when it changes, and its mistakes are reported."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from accord.installation import own_command
from accord_tools.cli.dev_program import Mistake
from tests.waiting import wait_until

HEAD = "import accord\nagent = accord.Agent('mine')\n@agent.on_prompt\n"
REPLY = "async def reply(turn):\n    await turn.say(turn.text)\n"


def test_the_mistakes_of_a_turn_are_reported_after_it_with_the_author_s_line(user):
    user.write(
        "mine.py",
        HEAD
        + "async def reply(turn):\n"
        + "    if turn.text == 'forgets':\n        turn.say('lost')\n"
        + "    if turn.text == 'mistypes':\n        turn.tool('Read', kind='reed')\n"
        + "    if turn.text == 'fails':\n        helper()\n"
        + "    if turn.text == 'repeats':\n"
        + "        for _ in range(2):\n            async with turn.tool('x', id='same'): pass\n"
        + "    await turn.say('said ')\n\n"
        + "def helper():\n    return {}['missing']\n"
        + "agent.run()\n",
    )
    done = user.accord("dev", "mine.py", input="forgets\nmistypes\nfails\nforgets\nrepeats\nfine\n")
    assert (done.returncode, done.stdout.split()) == (1, ["said"] * 4)
    forgotten = "wrong: mine.py, line 6: turn.say('lost') is not awaited, so it does nothing\n"
    forgotten += "  write `await turn.say('lost')`\n"
    before, between, after = done.stderr.split(forgotten)
    assert (before, after.count("wrong: ")) == ("", 0)
    mistyped, failed = between.split("wrong: ")[1:]
    assert mistyped.startswith("session/prompt failed: ValueError: turn.tool(kind=...) must be one of read")
    assert "got 'reed'; did you mean read?\n    File \"mine.py\", line 8, in reply\n" in mistyped
    assert failed.startswith("session/prompt failed: KeyError: 'missing'\n    File \"mine.py\", line 10, in reply\n")
    assert [line for line in failed.splitlines() if "File" in line][1:] == ['    File "mine.py", line 17, in helper']
    assert "warning: lint.tool.status-kept: the tool call 'same' went from completed to pending\n" in after


def test_a_program_without_mistakes_ends_well_and_says_nothing(user):
    user.write("mine.py", f"{HEAD}{REPLY}agent.run()\n")
    done = user.accord("dev", "mine.py", "hello")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


def test_what_is_printed_among_the_messages_is_reported_once(user):
    user.write("mine.py", f"print('loading')\n{HEAD}{REPLY}agent.run()\n")
    errors = user.accord("dev", "mine.py", "hello").stderr
    assert errors.count("loading") == 1
    assert "print logs and notices to standard error" in errors


def mistakes_of(user, file: str, role: str = "agent") -> tuple[int, list[Mistake]]:
    """What the process of the program reports when its client leaves at once."""
    done = subprocess.run(
        own_command("accord_tools.cli.dev_program", role, file),
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=user.folder,
        env=user.environment,
    )
    found = [Mistake.of_line(line) for line in done.stderr.splitlines()]
    return done.returncode, [mistake for mistake in found if mistake is not None]


@pytest.mark.parametrize(
    ("program", "kind", "title", "details"),
    [
        ("agent = (\n", "error", "cannot be loaded: SyntaxError: '(' was never closed", 'File "mine.py", line 1'),
        ("import nowhere\n", "error", "ModuleNotFoundError: No module named 'nowhere'", 'File "mine.py", line 1'),
        ("x = 1\n", "error", "mine.py has no agent", "agent = accord.Agent('NAME')"),
        (f"{HEAD}{REPLY}other = accord.Agent('other')\n", "error", "name one as mine.py:agent or mine.py:other", ""),
        (
            "import accord\naccord.Agent('mine').run()\n",
            "error",
            "no function answers prompts",
            "  File \"mine.py\", line 2, in <module>\n    accord.Agent('mine').run()",
        ),
        (HEAD + REPLY, "hint", "mine.py does not run its agent", "add as the last line: agent.run()"),
    ],
)
def test_what_keeps_a_program_from_running_is_named(user, program, kind, title, details):
    user.write("mine.py", program)
    code, mistakes = mistakes_of(user, "mine.py")
    assert code == {"hint": 0}.get(kind, code or None)
    (mistake,) = mistakes
    assert mistake.kind == kind
    assert title in mistake.title
    assert details in mistake.details
    assert "uvloop" not in mistake.details
    assert "accord/" not in mistake.details


@pytest.mark.parametrize("runs", ["agent.run()\n", "if __name__ == '__main__':\n    agent.run()\n"])
def test_a_program_that_runs_one_of_two_agents_is_right(user, runs):
    user.write("mine.py", f"{HEAD}{REPLY}other = accord.Agent('other')\n{runs}")
    assert mistakes_of(user, "mine.py") == (0, [])


def test_a_module_and_the_agent_in_a_variable_are_found(user):
    (user.folder / "team").mkdir()
    user.write("team/helper.py", "WORD = 'helped'\n")
    user.write("team/mine.py", f"from . import helper\n{HEAD}async def reply(turn):\n    await turn.say(helper.WORD)\n")
    assert user.said("dev", "team.mine:agent", "hi") == "helped\n"


class Development:
    """`accord dev` with pipes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.input: IO[str] = process.stdin
        self.output: IO[str] = process.stdout
        self.errors: IO[str] = process.stderr

    def send(self, prompt: str) -> None:
        self.input.write(f"{prompt}\n")
        self.input.flush()

    def reports(self, words: str) -> str:
        """Read standard error up to the line that has these words."""
        text = ""
        while words not in text:
            line = self.errors.readline()
            assert line, f"{words!r} was not reported, but this: {text}"
            text += line
        return text


@pytest.fixture
def developed(user) -> Iterator[Development]:
    """`accord dev mine.py` in the user's folder."""
    user.write("mine.py", f"{HEAD}{REPLY}agent.run()\n")
    with subprocess.Popen(
        [sys.executable, "-m", "accord", "dev", "mine.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=user.folder,
        env=user.environment,
    ) as process:
        yield Development(process)
        process.kill()


def test_a_change_is_loaded_before_the_next_prompt_and_the_session_goes_on(user, developed):
    developed.send("first")
    assert developed.output.readline() == "first\n"
    counting = "async def reply(turn):\n    await turn.say(f'{turn.text} after {len(await turn.session.history())}')\n"
    user.write("mine.py", f"{HEAD}{counting}agent.run()\n")
    developed.send("second")
    assert developed.output.readline() == "second after 3\n"
    assert developed.reports("loading again") == "mine.py: loading again\n"
    developed.input.close()
    assert developed.process.wait() == 0


def test_a_broken_file_is_reported_and_its_next_change_is_loaded(user, developed):
    user.write("mine.py", "agent = (\n")
    developed.send("hello")
    developed.reports("SyntaxError: '(' was never closed")
    developed.reports("Waiting for a change of the files.")
    user.write("mine.py", f"{HEAD}{REPLY}agent.run()\n")
    developed.reports("loading again")
    assert developed.output.readline() == "hello\n"


def test_a_program_that_ends_is_started_again_by_a_change(user, developed):
    user.write("mine.py", f"import os\n{HEAD}async def reply(turn):\n    os._exit(3)\nagent.run()\n")
    developed.send("hello")
    developed.reports("the program has ended with exit code 3")
    user.write("mine.py", f"{HEAD}{REPLY}agent.run()\n")
    developed.send("hello")
    assert developed.output.readline() == "hello\n"


def test_what_blocks_the_event_loop_is_reported_while_it_does(user, developed):
    blocking = "async def reply(turn):\n    open('gate').read()\n    await turn.say('open')\n"
    user.write("mine.py", f"{HEAD}{blocking}agent.run()\n")
    os.mkfifo(user.folder / "gate")
    developed.send("go")
    text = developed.reports("asyncio.to_thread")
    assert "wrong: mine.py, line 5, in reply(): open('gate').read() blocks the event loop\n" in text
    (user.folder / "gate").write_text("")  # waits for its reader, which is there
    assert developed.output.readline() == "open\n"


CLIENT = """
import sys
import accord

async def main():
    async with accord.connect(sys.argv[1:]) as agent:
        session = await agent.new_session()
        session.close()
        print((await session.prompt("hello")).text)

accord.run(main())
"""


def test_a_client_gets_the_demo_agent_and_its_mistakes_are_reported(user):
    user.write("mine.py", CLIENT)
    done = user.accord("dev", "--client", "mine.py")
    assert "I am Accord's built-in agent" in done.stdout
    assert done.stderr == (
        "wrong: mine.py, line 8: session.close() is not awaited, so it does nothing\n  write `await session.close()`\n"
    )
    assert done.returncode == 1


def test_a_client_that_fails_or_starts_no_agent_says_so(user):
    user.write("mine.py", "def main():\n    return 1 / 0\nmain()\n")
    done = user.accord("dev", "--client", "mine.py")
    assert done.returncode == 1
    assert 'wrong: mine.py failed: ZeroDivisionError: division by zero\n    File "mine.py", line 3' in done.stderr
    assert "The client has started no agent. Use its arguments: accord.connect(sys.argv[1:])" in done.stderr


def test_the_agent_s_command_stands_where_the_arguments_name_it(user):
    user.write("mine.py", "import sys\nprint(sys.argv[1], len(sys.argv), sys.argv[2][:1])\n")
    assert user.accord("dev", "--client", "mine.py", "--", "--agent", "{agent}").stdout == "--agent 3 /\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing.py"], "accord dev: file not found: nothing.py"),
        (["no.such.module"], "accord dev: no module no.such.module: neither this folder nor Python's path has it"),
        (["--client", "mine.py", "hi"], "--client takes no PROMPT; arguments of the program stand after --: -- hi"),
        (["mine.py", "--cwd", "nowhere"], "--cwd nowhere: no such folder"),
    ],
)
def test_wrong_usage_is_named(user, mine, arguments, says):
    assert says in user.refused("dev", *arguments)


def test_a_user_at_a_terminal_talks_and_ctrl_c_leaves_no_process(terminal, tmp_path: Path):
    program = (
        f"import os\n{HEAD}async def reply(turn):\n    await turn.say(f'process {{os.getpid()}} END')\nagent.run()\n"
    )
    (tmp_path / "mine.py").write_text(program)
    at = terminal("dev", "mine.py")
    at.shows("Type a prompt.")
    at.types("who\n")
    pid = int(at.shows(" END").partition("process ")[2].partition(" END")[0])
    while b"> " not in at.raw.partition(b" END")[2]:  # the next prompt
        assert at._read()
    at.types("\x03")
    assert at.to_the_end().endswith("accord dev has ended.\n")
    assert at.process.returncode == 130
    wait_until(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
