"""What a name means: a named agent, an installed one, one of the registry, a program; and what is asked before."""

import json
import os
import shlex
import subprocess
import sys

import pytest

import accord
from accord.errors import ConfigurationError
from tests.registry.conftest import DEMO

NPX = {"npx": {"package": "helper@1.0.0"}}


@pytest.fixture
def demo(registry):
    """The built-in agent, as an archive of the registry."""
    return registry.add_archive("demo", {"demo": DEMO}, "./demo", env={"COLOUR": "red"})


def program(user, name, text):
    """A program on this user's PATH."""
    folder = user.home / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    user.environment["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return path


def test_a_named_agent_comes_before_an_installed_one_and_that_before_a_program(user, demo, mine_file):
    user.said("agents", "install", "demo", "--yes")
    program(user, "demo", "#!/bin/sh\nexit 7\n")
    assert user.said("run", "Say hello", "-a", "demo") == "hello\n"
    assert user.accord("run", "Say hello", "--", "demo").returncode == 1
    user.set(f'[agents.demo]\ncommand = ["{mine_file}"]\n')
    assert user.said("run", "Hi", "-a", "demo") == "mine: Hi\n"
    assert user.said("run", "Say hello", "-a", "registry:demo") == "hello\n"
    assert user.said("run", "Say hello", "--", "registry:demo") == "hello\n"


@pytest.fixture
def mine_file(user):
    return user.write(
        "mine.py",
        "import accord\nagent = accord.Agent('mine')\n"
        "@agent.on_prompt\nasync def reply(turn):\n    await turn.say(f'mine: {turn.text}')\n",
    )


def test_without_a_terminal_an_agent_that_is_not_installed_fails_with_the_command_to_run(user, demo):
    said = user.refused("run", "Say hello", "-a", "demo")
    assert "demo (Demo 1.0.0) is in the registry and not installed" in said
    assert "program on PATH" not in said
    assert "accord agents install demo" in said
    assert not (user.home / "data" / "accord" / "agents").exists()


def test_yes_installs_what_is_missing_and_goes_on(user, demo):
    done = user.accord("run", "Say hello", "-a", "demo", "--yes")
    assert done.stdout == "hello\n"
    assert "publisher: Example" in done.stderr
    assert user.said("run", "Say hello", "-a", "demo") == "hello\n"


def test_at_a_terminal_the_user_is_asked_and_a_no_installs_nothing(user, demo, terminal):
    at = terminal("run", "Say hello", "-a", "demo", **own(user))
    shown = at.shows("Install Demo 1.0.0? [y/N]")
    assert "publisher: Example" in shown
    assert "checksum:  yes" in shown
    at.types("n\n")
    assert "not installed" in at.to_the_end()
    again = terminal("run", "Say hello", "-a", "demo", **own(user))
    again.shows("Install Demo 1.0.0? [y/N]")
    again.types("y\n")
    assert "hello" in again.to_the_end()


def own(user):
    """The variables of this user that are not those of the test's process."""
    return {name: value for name, value in user.environment.items() if os.environ.get(name) != value}


def test_a_usual_name_means_the_agent_of_that_id(user, registry):
    registry.add_archive("claude-acp", {"demo": DEMO}, "./demo")
    assert "claude-acp (Claude-Acp 1.0.0) is in the registry" in user.refused("info", "claude")
    user.said("agents", "install", "claude", "--yes")
    assert user.said("run", "Say hello", "-a", "claude") == "hello\n"
    registry.add_archive("claude", {"demo": DEMO}, "./demo")
    assert user.said("agents", "info", "claude", "--refresh").startswith("Claude 1.0.0")


def test_an_installed_version_can_be_named(user, registry, demo):
    user.said("agents", "install", "demo", "--yes")
    registry.add_archive("demo", {"demo": DEMO}, "./demo", version="1.1.0")
    user.said("agents", "install", "demo", "--yes", "--refresh")
    assert "1.1.0-binary" in user.said("agents", "which", "demo")
    assert "1.0.0-binary" in user.said("agents", "which", "demo@1.0.0")
    assert "1.2.0 is not installed; installed: 1.1.0, 1.0.0" in user.refused("agents", "which", "demo@1.2.0")
    user.said("agents", "remove", "demo@1.1.0")
    assert "1.0.0-binary" in user.said("agents", "which", "demo")


def test_a_named_agent_can_be_one_of_the_registry_with_other_options(user, demo):
    user.said("agents", "add", "careful", "--registry", "demo", "--mode", "explain", "--env", "COLOUR=blue")
    assert "not installed" in user.said("agents")
    assert "explain" in user.said("run", "/mode", "-a", "careful", "--yes")
    listed = json.loads(user.said("agents", "--json"))
    assert [agent["name"] for agent in listed] == ["careful", "demo"]
    user.set('[agents.none]\nregistry = "absent"\n')
    assert "the registry has no agent 'absent'" in user.refused("run", "Hi", "-a", "none")


def test_a_program_on_path_comes_before_an_agent_that_is_not_installed_where_no_user_can_be_asked(user, registry, demo):
    path = program(user, "demo", DEMO)
    assert user.said("run", "Say hello", "-a", "demo") == "hello\n"
    assert registry.requests == []
    user.said("agents", "search")
    assert user.said("run", "Say hello", "-a", "demo") == "hello\n"
    assert "publisher: Example" in user.accord("run", "Say hello", "-a", "demo", "--yes").stderr
    assert user.said("run", "Say hello", "--", path.name) == "hello\n"


def test_an_unknown_name_suggests_what_the_kept_list_has(user, registry, demo):
    registry.add_entry("gemini", NPX)
    user.said("agents", "search")
    assert "did you mean gemini?" in user.refused("run", "Hi", "-a", "gemni")
    assert "did you mean gemini?" in user.refused("agents", "install", "gemni")


def test_an_installed_agent_stays_usable_when_the_registry_lists_it_no_more_or_is_gone(user, registry, demo):
    user.said("agents", "install", "demo", "--yes")
    registry.agents.clear()
    assert "no longer lists it" in user.said("agents", "info", "demo", "--refresh")
    assert "it was not changed" in user.accord("agents", "update", "--refresh").stderr
    user.environment["ACCORD_REGISTRY"] = "http://127.0.0.1:1/registry.json"
    assert user.said("run", "Say hello", "-a", "demo") == "hello\n"


def test_an_agent_of_a_second_registry_has_its_name_before_its_id(user, registry, demo):
    user.environment["ACCORD_REGISTRY"] = f"company={registry.url}"
    assert "company/demo" in user.said("agents", "search")
    user.said("agents", "install", "company/demo", "--yes")
    assert user.said("run", "Say hello", "-a", "company/demo") == "hello\n"
    assert "company/demo" in user.said("agents")


def test_serve_and_conduct_take_installed_agents(user, demo):
    user.said("agents", "install", "demo", "--yes")
    initialize = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
    )
    answer = user.accord("conduct", "registry:demo", input=initialize + "\n").stdout
    assert json.loads(answer.splitlines()[0])["result"]["protocolVersion"] == 1


def test_the_shell_completes_installed_agents(user, demo):
    user.said("agents", "install", "demo", "--yes")
    assert user.said("__complete", "run", "-a", "de").startswith("demo\t")


# The library


async def test_connect_takes_the_name_of_an_installed_agent(registry, put_in, demo):
    put_in("demo")
    for name in ("demo", "registry:demo", "demo@1.0.0"):
        async with accord.connect(name) as remote:
            session = await remote.new_session("/")
            assert (await session.prompt("Say hello")).text == "hello"


async def test_connect_installs_nothing_and_asks_no_registry(registry, here, demo):
    with pytest.raises(ConfigurationError, match="no agent of the registry is 'registry:demo'"):
        async with accord.connect("registry:demo"):
            pass
    assert registry.requests == []


async def test_connect_says_how_to_install_an_agent_that_the_kept_list_has(registry, here, demo):
    from accord_tools.registry.agent_index import load_index

    load_index()
    with pytest.raises(ConfigurationError, match="accord agents install demo"):
        async with accord.connect("demo"):
            pass


async def test_a_list_of_one_word_is_a_program_and_never_a_name(registry, put_in, demo):
    put_in("demo")
    with pytest.raises(accord.AccordError, match="demo"):
        async with accord.connect(["demo"]):
            pass


async def test_connect_uses_the_settings_of_a_named_agent(here, tmp_path, monkeypatch):
    file = tmp_path / "config" / "accord" / "agents.toml"
    file.parent.mkdir(parents=True)
    words = [sys.executable, "-m", "accord", "demo", "--pace", "0"]
    file.write_text(f"[agents.own]\ncommand = {json.dumps(words)}\nenv = {{ A = '1', B = '1' }}\ncwd = '{tmp_path}'\n")
    monkeypatch.chdir(tmp_path)
    async with accord.connect("own", env={"B": "2"}) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("Say hello")).text == "hello"


async def test_connect_refuses_an_agent_of_a_project_that_is_not_trusted(here, tmp_path, monkeypatch):
    (tmp_path / ".accord").mkdir()
    (tmp_path / ".accord" / "agents.toml").write_text('[agents.theirs]\ncommand = "evil"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="is not trusted"):
        async with accord.connect("theirs"):
            pass


def test_a_name_costs_no_import_of_the_network(here):
    code = "import sys, accord\nfrom accord_tools.configuration.resolve_agent import resolve\nresolve('sh')\n"
    code += "print([name for name in ('ssl', 'urllib.request', 'tarfile') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "urllib.request" not in done.stdout
    assert "tarfile" not in done.stdout


def test_which_prints_words_that_a_shell_reads(user, registry):
    registry.add_archive("demo", {"a b": DEMO}, "./a b", args=("--pace", "0 0"))
    user.said("agents", "install", "demo", "--yes")
    words = shlex.split(user.said("agents", "which", "demo"))
    assert words[0].endswith("/a b")
    assert words[1:] == ["--pace", "0 0"]
