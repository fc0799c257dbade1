"""Agents with names: `accord agents`, `-a NAME`, the default, trust in a project's file, and Python files as agents."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

DEMO = f"{shlex.quote(sys.executable)} -m accord demo --pace 0"


def test_an_agent_that_was_added_is_listed_and_used_by_its_name(user):
    user.said("agents", "add", "demo", "--description", "Shows all", "--", *shlex.split(DEMO))
    listed = user.said("agents")
    assert "demo" in listed
    assert "Shows all" in listed
    assert str(user.settings) in listed
    assert user.said("run", "Say hello", "-a", "demo") == "hello\n"
    assert json.loads(user.said("agents", "--json"))[0]["program"] == sys.executable


def test_a_name_after_the_dashes_is_the_agent_unless_a_program_has_it(user, mine):
    user.set(f'[agents.mine]\ncommand = ["{mine}:agent"]\n[agents.false]\ncommand = ["{mine}:agent"]\n')
    assert user.said("run", "Hi", "--", "mine") == "mine: Hi\n"
    assert user.said("run", "Hi", "-a", "false") == "mine: Hi\n"
    assert "false ended before it answered" in user.accord("run", "Hi", "--", "false").stderr


def test_the_default_agent_answers_commands_that_name_none(user, mine):
    user.set(f'[agents.mine]\ncommand = ["{mine}:agent"]\n')
    assert "mine" not in user.said("run", "Say hello")
    user.said("agents", "default", "mine")
    assert user.said("agents", "default") == "mine\n"
    assert user.said("run", "Hi") == "mine: Hi\n"
    user.said("agents", "default", "--none")
    assert "No default" in user.said("agents", "default")


def test_the_settings_of_an_agent_are_defaults_that_options_override(user):
    user.set(f'[agents.demo]\ncommand = "{DEMO}"\nmode = "explain"\nconfig = {{ aloud = true }}\n')
    assert "explain" in user.said("run", "/mode", "-a", "demo")
    assert "auto" in user.said("run", "/mode", "-a", "demo", "--mode", "auto")
    assert "`aloud`: on" in user.said("run", "/config", "-a", "demo")
    assert "`aloud`: off" in user.said("run", "/config", "-a", "demo", "--set", "aloud=false")


def test_variables_and_the_folder_reach_the_agent_s_process(user):
    user.write(
        "where.py",
        "import os, accord\nagent = accord.Agent('where')\n"
        "@agent.on_prompt\nasync def reply(turn):\n    await turn.say(os.getcwd() + ' ' + os.environ['COLOUR'])\n",
    )
    place = user.folder / "deep"
    place.mkdir()
    script = user.folder / "where.py"
    user.set(f'[agents.where]\ncommand = ["{script}"]\nenv = {{ COLOUR = "red" }}\ncwd = "{place}"\n')
    assert user.said("run", "Hi", "-a", "where") == f"{place} red\n"


def test_removing_an_agent_keeps_the_comments_and_the_other_agents(user):
    user.set(
        '# mine\ndefault = "b"  # the good one\n\n[agents.a]  # old\ncommand = "a"\n\n# about b\n[agents.b]\nurl = "https://b"\n'
    )
    user.said("agents", "remove", "a")
    assert user.settings.read_text() == (
        '# mine\ndefault = "b"  # the good one\n\n# about b\n[agents.b]\nurl = "https://b"\n'
    )


def test_a_file_in_a_form_that_cannot_be_changed_is_left_alone(user):
    text = 'agents = { a = { command = "a" } }\n'
    user.set(text)
    assert "edit it yourself" in user.refused("agents", "remove", "a")
    assert "edit it yourself" in user.refused("agents", "add", "b", "--", "b")
    assert user.settings.read_text() == text


def test_a_wrong_file_is_refused_with_its_place_and_the_reason(user):
    user.set('[agents.a]\ncomand = "a"')
    assert f"{user.settings}: [agents.a]: unknown key 'comand'; did you mean command?" in user.refused("agents")
    assert "did you mean command?" in user.refused("run", "Hi", "-a", "a")


def test_an_unknown_name_is_refused_with_the_name_that_is_meant(user):
    user.set('[agents.gemini]\ncommand = "gemini"\n')
    assert "no agent has the name 'gemni'" in (error := user.refused("run", "Hi", "-a", "gemni"))
    assert "did you mean gemini?" in error
    assert "did you mean gemini?" in user.refused("agents", "remove", "gemni")
    assert "did you mean gemini?" in user.refused("agents", "default", "gemni")


def test_the_built_in_agent_is_named_demo_unless_another_is(user):
    assert "Accord demo" in user.said("info", "-a", "demo")
    user.set('[agents.demo]\ncommand = "no-such-program"\n')
    assert "cannot start no-such-program" in user.accord("info", "-a", "demo").stderr


def test_the_variable_names_another_file(user, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text('[agents.there]\ncommand = "there"\n')
    user.environment["ACCORD_CONFIG"] = str(other)
    assert "there" in user.said("agents")
    user.said("agents", "add", "more", "--", "more")
    assert "more" in other.read_text()


def test_a_project_s_agent_needs_trust_for_each_content_of_its_file(user, mine):
    user.set_project('[agents.mine]\ncommand = ["./mine.py:agent"]\n')
    sub = user.folder / "sub"
    sub.mkdir()
    error = user.refused("run", "Hi", "-a", "mine", cwd=sub)
    assert f"{user.project_settings} names commands to run, and is not trusted" in error
    assert "accord agents trust" in error
    assert "not trusted" in user.said("agents", cwd=sub)
    assert "mine.py:agent" in user.said("agents", "trust", cwd=sub)
    assert user.said("run", "Hi", "-a", "mine", cwd=sub) == "mine: Hi\n"
    user.set_project('[agents.mine]\ncommand = ["./mine.py:other"]\n')
    assert "is not trusted" in user.refused("run", "Hi", "-a", "mine")


def test_trust_does_not_hold_for_the_same_file_elsewhere(user, mine, tmp_path):
    user.set_project('[agents.mine]\ncommand = ["./mine.py:agent"]\n')
    user.said("agents", "trust")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / ".accord").mkdir()
    (copy / ".accord" / "agents.toml").write_bytes(user.project_settings.read_bytes())
    assert "is not trusted" in user.refused("run", "Hi", "-a", "mine", cwd=copy)


def test_a_project_s_agent_and_default_come_before_the_user_s(user, mine):
    user.set('default = "theirs"\n[agents.theirs]\ncommand = "theirs"\n[agents.mine]\ncommand = "no-such-program"\n')
    user.said("agents", "add", "mine", "--project", "--default", "--", "./mine.py:agent")
    assert user.said("run", "Hi") == "mine: Hi\n"  # trusted, because the user has just written it
    states = {(it["name"], it["from"]): it["hidden"] for it in json.loads(user.said("agents", "--json"))}
    assert states == {("mine", "project"): False, ("theirs", "user"): False, ("mine", "user"): True}


def test_an_agent_that_is_added_by_a_relative_path_is_found_from_everywhere(user, mine, tmp_path):
    sub = user.folder / "sub"
    sub.mkdir()
    user.said("agents", "add", "mine", "--", "../mine.py:agent", cwd=sub)
    user.said("agents", "add", "here", "--", "mine.py:agent")
    assert user.said("run", "Hi", "-a", "mine", cwd=tmp_path) == "mine: Hi\n"
    assert user.said("run", "Hi", "-a", "here", cwd=tmp_path) == "mine: Hi\n"
    user.set_project("")
    user.said("agents", "trust")
    user.said("agents", "add", "theirs", "--project", "--cwd", ".", "--", "../mine.py:agent", cwd=sub)
    assert 'command = ["./mine.py:agent"]\ncwd = "./sub"' in user.project_settings.read_text()
    assert user.said("run", "Hi", "-a", "theirs", cwd=sub) == "mine: Hi\n"


def test_a_change_of_a_project_s_file_that_is_not_trusted_does_not_trust_it(user, mine):
    user.set_project('[agents.evil]\ncommand = "evil"\n')
    user.said("agents", "add", "mine", "--project", "--", "./mine.py:agent")
    assert "is not trusted" in user.refused("run", "Hi", "-a", "mine")


@pytest.mark.parametrize(("agent", "says"), [("mine.py:agent", "mine: Hi\n"), ("mine.py:other", "other: Hi\n")])
def test_a_python_file_is_an_agent(user, mine, agent, says):
    assert user.said("run", "Hi", "--", agent) == says
    assert user.said("run", "Hi", "-a", agent) == says


def test_a_python_file_that_runs_its_agent_itself_is_a_program(user):
    ending = "\nimport sys\nprint('noise')\nassert __name__ == '__main__' and sys.argv[1:] == ['--fast']\nagent.run()\n"
    user.write("script.py", user_agent() + ending)
    assert user.said("run", "Hi", "--", "script.py", "--fast") == "one: Hi\n"


def test_the_only_agent_of_a_python_file_needs_no_name(user):
    user.write("one.py", user_agent())
    assert user.said("run", "Hi", "--", "one.py") == "one: Hi\n"


def test_a_python_file_without_the_agent_says_what_it_has(user, mine):
    assert "file not found: no.py" in user.refused("run", "Hi", "--", "no.py")
    assert "mine.py has several agents: name one as mine.py:agent" in user.accord("run", "Hi", "--", "mine.py").stderr
    assert "mine.py has no agent 'x'; it has agent, other" in user.accord("run", "Hi", "--", "mine.py:x").stderr


def user_agent() -> str:
    return (
        "import accord\nagent = accord.Agent('one')\n\n"
        "@agent.on_prompt\nasync def reply(turn):\n    await turn.say('one: ' + turn.text)\n"
    )


def test_an_agent_without_the_dashes_is_refused_with_the_command_that_is_meant(user):
    error = user.refused("run", "Say hello", "gemini", "--acp", "--json")
    assert "unexpected argument 'gemini'" in error
    assert "did you mean accord run 'Say hello' --json -- gemini --acp?" in error


def test_two_agents_at_once_are_refused(user):
    assert "name one agent" in user.refused("run", "Hi", "-a", "one", "--", "two")


def test_options_for_a_url_are_refused_for_a_command(user):
    for option in (["--header", "A: b"], ["--token-file", "x"], ["--ca", "x"], ["--proxy", "http://x"]):
        assert f"{option[0]} is for an agent with a URL" in user.refused("run", "Hi", *option)


@pytest.mark.parametrize("command", [["trace"], ["inspect"]])
def test_a_recorded_agent_gets_the_environment_of_its_settings(user, command):
    user.set(f"[agents.mine]\ncommand = [{sys.executable!r}, 'show.py']\nclean_env = true\nenv = {{ OWN = 'yes' }}\n")
    user.write("show.py", "import os; print(os.environ.get('OWN'), os.environ.get('SEEN'))")
    user.environment["SEEN"] = "by us"
    assert user.said(*command, "-a", "mine", stdin=subprocess.DEVNULL) == "yes None\n"
