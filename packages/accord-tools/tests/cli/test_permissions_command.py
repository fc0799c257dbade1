"""`accord permissions`: what is decided without a question, from where it comes, and how it is revoked."""

import json
import os

import pytest

import accord
from accord.errors import ConfigurationError
from accord.project.git import find_repository
from accord.services.permission_policy import PolicyProbe
from accord_tools.cli import main
from accord_tools.configuration.agent_settings import AgentSettings
from accord_tools.configuration.agents_file import read_file, user_file
from accord_tools.configuration.permission_rules import default_level
from accord_tools.configuration.trust import is_folder_trusted, is_trusted, trust, trust_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of a user who has no settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("ACCORD_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config" / "accord").mkdir(parents=True)
    return tmp_path


def remember(folder, command, *, everywhere=False):
    probe = PolicyProbe(folder, "Claude Code")
    call = accord.session.ToolCallState(accord.v1.ToolCallId("1"), command, "execute", raw_input={"command": command})
    accord.RememberedAnswers().remember(accord.PermissionQuestion(probe, call, ()), allowed=True, everywhere=everywhere)


def listed(capsys, *options):
    assert main(["permissions", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_list_says_of_each_rule_where_it_comes_from(folder, capsys):
    (folder / "rules.toml").write_text('[[rules]]\nanswer = "reject"\npaths = ["**/.env"]\n')
    remember(folder, "npm test")
    remember(folder / "other", "make")
    remember(folder, "git status", everywhere=True)
    rules = listed(capsys, "--policy", "rules.toml")
    assert [(it["rule"], it["about"]) for it in rules] == [
        ("allow execute: npm test", f"Claude Code, {folder}"),
        ("allow execute: git status", "Claude Code, in every folder"),
        ("reading in the session's folders", "the default"),
        ("reject paths **/.env", "change it in its file"),
    ]
    assert rules[0]["source"] == "Kept answers"
    assert rules[-1]["source"] == "Rules of rules.toml"
    assert len(listed(capsys, "--everywhere")) == 4


def test_an_answer_is_revoked_by_the_start_of_its_id_and_all_by_one_word(folder, capsys):
    for command in ("npm test", "npm install", "make"):
        remember(folder, command)
    first = listed(capsys)[0]
    assert main(["permissions", "--revoke", first["id"][:6]]) == 0
    assert "Revoked: allow execute: npm test" in capsys.readouterr().out
    assert [it["rule"] for it in listed(capsys) if it["id"]] == ["allow execute: npm install", "allow execute: make"]
    assert main(["permissions", "--revoke", "nothing"]) == 2
    assert "--revoke nothing: 0 ids begin like this; there are: " in capsys.readouterr().err
    assert main(["permissions", "--revoke", "all"]) == 0
    assert list(accord.RememberedAnswers()) == []


def test_trusted_folders_and_files_are_listed_where_they_hold_and_revoked(folder, capsys, monkeypatch):
    project = folder / "project"
    (project / ".accord").mkdir(parents=True)
    (project / ".accord" / "agents.toml").write_text('[agents.x]\ncommand = ["x"]\n')
    (project / ".git").mkdir()
    repository, file = find_repository(project), read_file(project / ".accord" / "agents.toml", "project")
    trust_folder(repository)
    trust(file)
    assert [it["rule"] for it in listed(capsys)] == ["reading in the session's folders"]
    assert len(listed(capsys, "--everywhere")) == 3
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    agents, git = [it for it in listed(capsys) if it["source"] == "What you trust"]
    place = os.path.realpath(project)
    assert (agents["rule"], agents["about"]) == (
        f"start agents of {place}/.accord/agents.toml",
        "until it changes",
    )
    assert (git["rule"], git["about"]) == (f"run git in {place}", "with settings and skills")
    assert main(["permissions", "--revoke", git["id"]]) == 0
    assert (is_folder_trusted(repository), is_trusted(file)) == (False, True)
    assert main(["permissions", "--revoke", "all"]) == 0
    assert not is_trusted(file)


@pytest.mark.parametrize(
    ("settings", "agent", "place", "level", "source"),
    [
        ("", None, ".", "ask", "the default"),
        ("", "edit", ".", "edit", "the agent's settings"),
        ('"*" = "edit"', None, ".", "edit", "[allow] *"),
        ('"*" = "edit"', "ask", ".", "ask", "the agent's settings"),
        ('"*" = "ask"', "auto", ".", "auto", "the agent's settings"),
        ('"{}/a" = "edit"', None, "a/b", "edit", "[allow] {}/a"),
        ('"{}/a" = "edit"\n"{}/a/b" = "none"', "auto", "a/b/c", "none", "[allow] {}/a/b"),
        ('"{}/a" = "auto"', "edit", "a", "edit", "the agent's settings"),
    ],
)
def test_the_stricter_of_the_agent_s_level_and_the_folder_s_counts(folder, settings, agent, place, level, source):
    user_file().write_text("[allow]\n" + settings.replace("{}", str(folder)))
    found = default_level(folder / place, AgentSettings(command="x", allow=agent))
    assert (found.level, found.source.rpartition(": ")[2]) == (level, source.replace("{}", str(folder)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[allow]\n"*" = "most"', "[allow]: '*' must be one of none, ask, edit, auto, got 'most'"),
        ('[allow]\nhere = "ask"', "[allow]: 'here' must be an absolute path, or begin with ~, or be *"),
        ('allow = "ask"', "'allow' must be a table of folders and their levels, got 'ask'"),
    ],
)
def test_wrong_levels_are_refused_with_what_is_allowed(folder, text, says):
    user_file().write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        read_file(user_file(), "user")
    assert says in str(raised.value)


def test_a_project_s_file_sets_no_level(folder):
    (folder / ".accord").mkdir()
    path = folder / ".accord" / "agents.toml"
    path.write_text('[allow]\n"*" = "auto"\n')
    with pytest.raises(ConfigurationError, match="'allow' belongs in your own file"):
        read_file(path, "project")
