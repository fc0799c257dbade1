"""What an agent's process sees of our environment, and where the values of its own variables come from."""

import json
import os
import sys

import pytest

import accord
from accord.errors import ConfigurationError
from accord_tools.configuration import passed_on
from tests.registry.conftest import DEMO

SHOWING = """
import json, os, sys

import accord

agent = accord.Agent("showing")


@agent.on_prompt
async def show(turn):
    await turn.say(json.dumps(dict(os.environ)))
"""

SECRETS = """
import os
from keyring.backend import KeyringBackend


class Secrets(KeyringBackend):
    priority = 1

    def get_password(self, service, username):
        if username == "locked":
            raise RuntimeError("the keyring is locked")
        return {("accord", "gemini"): "from the keyring"}.get((service, username))

    def set_password(self, service, username, password):
        raise NotImplementedError
"""
"""A keyring with one secret, as a module that the package `keyring` is told to use."""


@pytest.fixture
def showing(user):
    """The file of an agent that says which variables it has."""
    return user.write("showing.py", SHOWING)


@pytest.fixture
def keyring(user, tmp_path):
    pytest.importorskip("keyring")
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "test_secrets.py").write_text(SECRETS)
    user.environment |= {"PYTHONPATH": str(folder), "PYTHON_KEYRING_BACKEND": "test_secrets.Secrets"}


def seen(user, *options):
    """The variables that the agent sees."""
    return json.loads(user.said("run", "show", *options))


def test_an_agent_with_a_clean_environment_sees_the_listed_variables_only(user, showing):
    user.environment |= {"OPENAI_API_KEY": "secret", "LC_TIME": "C", "https_proxy": "http://127.0.0.1:1"}
    assert seen(user, "-a", str(showing))["OPENAI_API_KEY"] == "secret"
    clean = seen(user, "-a", str(showing), "--clean-env")
    assert "OPENAI_API_KEY" not in clean
    assert clean["PATH"] == user.environment["PATH"]
    assert clean["HOME"] == str(user.home)
    assert (clean["LC_TIME"], clean["https_proxy"]) == ("C", "http://127.0.0.1:1")


def test_the_help_lists_the_variables_of_a_clean_environment(user):
    said = " ".join(user.said("help", "agent-options").split())
    assert ", ".join(passed_on()) in said


def test_variables_come_from_a_file(user, showing):
    user.write("agent.env", "# keys\n\nexport ONE=1\nTWO = 'a b'\nTHREE=x=$HOME\n")
    found = seen(user, "-a", str(showing), "--env-file", "agent.env")
    assert (found["ONE"], found["TWO"], found["THREE"]) == ("1", "a b", "x=$HOME")


@pytest.mark.parametrize("line", ["secret", "=secret", "A B=secret", "1A=secret"])
def test_a_wrong_line_of_the_file_is_named_and_not_shown(user, showing, line):
    user.write("agent.env", f"A=1\n{line}\n")
    said = user.accord("run", "show", "-a", str(showing), "--env-file", "agent.env")
    assert said.returncode != 0
    assert "agent.env, line 2: must be NAME=VALUE, a comment or empty" in said.stderr
    assert "secret" not in said.stderr


def test_a_file_that_is_missing_is_an_error_that_names_it(user, showing):
    said = user.accord("run", "show", "-a", str(showing), "--env-file", "absent.env")
    assert "cannot read the variables in absent.env: No such file" in said.stderr


def test_a_named_agent_has_variables_of_a_file_and_of_the_keyring(user, showing, keyring):
    user.write("own.env", "A=file\nB=file\nKEY=keyring:gemini\n")
    user.said(
        "agents", "add", "shown", "--clean-env", "--env-file", "own.env", "--env", "B=settings",
        "--env", "OTHER=keyring:gemini", "--", str(showing),
    )  # fmt: skip
    assert "from the keyring" not in user.settings.read_text()
    user.environment["OPENAI_API_KEY"] = "secret"
    found = seen(user, "-a", "shown")
    assert (found["A"], found["B"]) == ("file", "settings")
    assert found["KEY"] == found["OTHER"] == "from the keyring"
    assert "OPENAI_API_KEY" not in found


def test_a_secret_that_the_keyring_does_not_have_says_how_to_store_it(user, showing, keyring):
    user.said("agents", "add", "shown", "--env", "KEY=keyring:absent", "--", str(showing))
    said = user.accord("run", "show", "-a", "shown")
    assert said.returncode != 0
    assert "the value of KEY is 'keyring:absent', and the keyring has no such secret" in said.stderr
    assert "keyring set accord absent" in said.stderr
    user.said("agents", "add", "held", "--env", "KEY=keyring:locked", "--", str(showing))
    said = user.accord("run", "show", "-a", "held")
    assert "'keyring:locked', cannot be read: the keyring is locked" in said.stderr
    assert "Traceback" not in said.stderr


def test_a_registry_cannot_read_the_keyring(user, registry, keyring):
    registry.add_archive("demo", {"demo": DEMO}, "./demo", env={"STOLEN": "keyring:gemini", "COLOUR": "red"})
    user.said("agents", "install", "demo", "--yes")
    user.environment["PYTHON_KEYRING_BACKEND"] = "absent.Backend"
    assert user.said("run", "Say hello", "-a", "demo") == "hello\n"
    exported = user.said("agents", "export", "zed", "demo")
    assert "COLOUR" in exported
    assert "STOLEN" not in exported


def test_what_another_client_cannot_have_is_not_exported_and_that_is_said(user, showing):
    user.write("own.env", "A=1\n")
    user.said(
        "agents", "add", "shown", "--clean-env", "--env-file", "own.env", "--env", "KEY=keyring:gemini",
        "--env", "B=2", "--", str(showing),
    )  # fmt: skip
    done = user.accord("agents", "export", "zed", "shown")
    assert "keyring:" not in done.stdout
    assert json.loads(done.stdout)["agent_servers"]["shown"]["env"] == {"B": "2"}
    assert "not exported: the variable KEY from your keyring, the variables in" in done.stderr
    assert ", the clean environment\n" in done.stderr


def test_the_options_are_refused_for_a_url(user):
    said = user.refused("run", "Hi", "--clean-env", "--", "https://agents.example/acp")
    assert "--clean-env and --env-file are for an agent that is a command" in said
    user.set('[agents.far]\nurl = "https://agents.example/acp"\nclean_env = true\n')
    assert "'clean_env' is for a command, and the agent has a URL" in user.refused("run", "Hi", "-a", "far")


async def test_connect_gives_a_named_agent_its_environment(here, tmp_path, monkeypatch):
    (tmp_path / "showing.py").write_text(SHOWING)
    (tmp_path / "own.env").write_text("A=file\n")
    file = tmp_path / "config" / "accord" / "agents.toml"
    file.parent.mkdir(parents=True)
    words = json.dumps([sys.executable, "-m", "accord.agent_file", str(tmp_path / "showing.py")])
    file.write_text(f"[agents.own]\ncommand = {words}\nenv_file = '{tmp_path}/own.env'\nclean_env = true\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    async with accord.connect("own", env={"B": "given"}) as remote:
        session = await remote.new_session("/")
        found = json.loads((await session.prompt("show")).text)
    assert (found["A"], found["B"], found["PATH"]) == ("file", "given", os.environ["PATH"])
    assert "OPENAI_API_KEY" not in found
    (tmp_path / "own.env").unlink()
    with pytest.raises(ConfigurationError, match="cannot read the variables in"):
        async with accord.connect("own"):
            pass
