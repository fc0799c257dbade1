"""`accord login` and `--login`: how long a login lasts, and logging in before a command."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cli.pseudo_terminal import Terminal

DEMO = [sys.executable, "-m", "accord", "demo", "--pace", "0", "--login"]

KEEPING = """
import pathlib
import accord

agent = accord.Agent("keeping")
KEPT = pathlib.Path("logged-in")


@agent.login("web", "In the browser")
def log_in():
    KEPT.touch()


@agent.on_login_check
def is_logged_in():
    return KEPT.exists()


@agent.on_prompt
async def reply(turn):
    await turn.say("Hi")
"""

NEEDING = """
import os
import accord

agent = accord.Agent("needing", unstable=True)
agent.environment_login("key", "With a key", ["NEEDED_KEY"])


@agent.on_prompt
async def reply(turn):
    await turn.say("Your key is " + os.environ["NEEDED_KEY"])
"""


def test_a_login_that_ends_with_the_process_is_told_with_what_to_do(user):
    said = user.said("login", "--", *DEMO)
    assert "Logged in to accord-demo." in said
    assert "The login does not last" in said
    assert "accord run --login demo PROMPT" in said
    assert "last" not in user.said("login", "--no-check", "--", *DEMO)


def test_the_login_methods_are_listed_in_a_line_each(user):
    user.write("keeping.py", KEEPING)
    assert user.said("login", "--list", "--", "keeping.py") == "web  In the browser\n"


def test_a_login_that_a_second_process_knows_lasts(user):
    user.write("keeping.py", KEEPING)
    assert "The login lasts" in user.said("login", "keeping.py")
    assert user.said("run", "Hi", "--", "keeping.py") == "Hi\n"


def test_it_is_unknown_how_long_a_login_lasts_if_the_agent_does_not_start_again(user):
    script = user.write("once.py", KEEPING.replace("KEPT.touch()", "pathlib.Path(__file__).write_text('1/0')"))
    done = user.accord("login", str(script))
    assert "Whether the login lasts is unknown" in done.stdout
    assert "ZeroDivisionError" in done.stdout


def test_run_logs_in_before_its_prompt(user):
    assert "log in with `accord login -- " in user.accord("run", "Say hello", "--", *DEMO).stderr
    assert user.said("run", "Say hello", "--login", "demo", "--", *DEMO) == "hello\n"
    error = user.accord("run", "Say hello", "--login", "web", "--", *DEMO).stderr
    assert "the agent has no login method 'web'; it offers demo" in error


def test_a_login_with_variables_reaches_the_agent_of_the_same_command(user):
    user.write("needing.py", NEEDING)
    user.environment["NEEDED_KEY"] = ""
    assert "set NEEDED_KEY in the environment" in user.refused("run", "Hi", "--login", "key", "--", "needing.py")
    user.environment["NEEDED_KEY"] = "s3cret"
    assert user.said("run", "Hi", "--login", "key", "--", "needing.py") == "Your key is s3cret\n"


def test_info_and_sessions_log_in_too(user):
    about = json.loads(user.said("info", "--json", "--login", "demo", "--", *DEMO))
    assert "mode" in about["session"]
    about = json.loads(user.said("info", "--json", "--", *DEMO))
    assert "Authentication required" in about["session"]["error"]
    assert "no session" in user.said("sessions", "list", "--login", "demo", "--", *DEMO)


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
@pytest.mark.parametrize("command", [["run", "Hi", "--login", "key"], ["login"]], ids=" ".join)
def test_ctrl_c_ends_the_question_for_a_variable(user, command):
    user.write("needing.py", NEEDING)
    asking = Terminal(*command, "--", "needing.py", cwd=user.folder)
    try:
        asking.shows("NEEDED_KEY:")
        asking.types("\x03")
        assert "Traceback" not in asking.to_the_end()
        assert asking.process.returncode == 130
    finally:
        asking.process.kill()
        asking.process.wait()


def test_the_time_limit_of_a_turn_counts_the_login(user):
    user.write(
        "slow.py",
        KEEPING.replace(
            "def log_in():\n    KEPT", "async def log_in():\n    import asyncio\n    await asyncio.sleep(600)\n    KEPT"
        ),
    )
    done = user.accord("run", "Hi", "--timeout", "5", "--login", "web", "--", "slow.py")
    assert done.returncode == 3
    assert "did not end within --timeout 5" in done.stderr
