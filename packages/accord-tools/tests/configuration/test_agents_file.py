"""Files with named agents: what they may say, where they are, and what changes keep."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from accord import paths
from accord.errors import ConfigurationError
from accord_tools.configuration import agents_file
from accord_tools.configuration.agent_settings import AgentSettings
from accord_tools.configuration.agents_file import parse, project_file, read_file, user_file

WRONG = {
    "no TOML": ("[agents", "Expected ']'"),
    "a key that does not exist": (
        '[agents.a]\ncomand = "a"',
        "[agents.a]: unknown key 'comand'; did you mean command?",
    ),
    "a wrong type": ("[agents.a]\ncommand = 5", "[agents.a]: command: expected"),
    "a wrong choice": ('[agents.a]\ncommand = "a"\nallow = "most"', "[agents.a]: allow: "),
    "both ways": ('[agents.a]\ncommand = "a"\nurl = "https://a"', "must have either 'command' or 'url'"),
    "neither way": ("[agents.a]", "must have either 'command' or 'url'"),
    "a URL that is none": ('[agents.a]\nurl = "agents.example"', "'url' must begin with a scheme, such as http://"),
    "a variable for a URL": ('[agents.a]\nurl = "https://a"\nenv = { A = "1" }', "'env' is for a command"),
    "a header for a command": ('[agents.a]\ncommand = "a"\nheaders = { A = "1" }', "'headers' is for a URL"),
    "a name with a blank": ('[agents."a b"]\ncommand = "a"', "a name must have only letters"),
    "a section that does not exist": ("[agent.a]", "unknown key 'agent'; did you mean agents?"),
}


@pytest.mark.parametrize(("text", "says"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused_with_its_place_and_the_reason(text, says):
    with pytest.raises(ConfigurationError) as raised:
        parse(text.encode(), "my/agents.toml")
    assert str(raised.value).startswith("my/agents.toml: ")
    assert says in str(raised.value)


def test_a_file_that_is_not_text_or_too_large_is_refused(tmp_path):
    path = tmp_path / "agents.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="utf-8"):
        read_file(path, "user")
    path.write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigurationError, match="larger than 1,000,000 bytes"):
        read_file(path, "user")


def test_the_user_s_file_is_in_the_folder_of_settings_or_where_the_variable_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_file() == tmp_path / "accord" / "agents.toml"
    monkeypatch.setenv("ACCORD_CONFIG", "relative.toml")
    assert user_file() == Path.cwd() / "relative.toml"


@pytest.mark.parametrize(
    ("platform", "place"),
    [
        ("linux", ".config/accord"),
        ("darwin", "Library/Application Support/accord"),
        ("win32", "AppData/Roaming/accord"),
    ],
)
def test_each_platform_has_its_folder_of_settings(monkeypatch, tmp_path, platform, place):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(paths.Path, "home", lambda: tmp_path)
    monkeypatch.delenv("APPDATA", raising=False)
    for given in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", given)
        assert paths.config_folder() == tmp_path / place


def test_the_nearest_project_s_file_counts(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a"):
        (folder / ".accord").mkdir()
        (folder / ".accord" / "agents.toml").touch()
    assert project_file(deep) == tmp_path / "a" / ".accord" / "agents.toml"


def test_relative_paths_of_a_project_s_file_are_in_the_project(tmp_path):
    path = tmp_path / ".accord" / "agents.toml"
    path.parent.mkdir()
    path.write_text(
        '[agents.a]\ncommand = ["./run.sh", "./x"]\ncwd = "."\n[agents.b]\ncommand = "run --fast"\n'
        '[agents.c]\nurl = "https://c"\ntoken_file = "t"\n'
    )
    agents = read_file(path, "project").agents
    assert agents["a"].words == [str(tmp_path / "run.sh"), "./x"]
    assert agents["a"].cwd == str(tmp_path)
    assert agents["b"].words == ["run", "--fast"]
    assert agents["c"].token_file == str(tmp_path / "t")


def test_every_value_that_is_written_is_read_again(tmp_path):
    path = tmp_path / "deep" / "agents.toml"
    settings = AgentSettings(
        command=["a b", 'quo"te', "back\\slash", "line\nend", "délete \x7f", "\u2028"],
        env={"A.B": "1", "é": ""},
        config={"fast": True, "model": "x"},
        allow="edit",
    )
    agents_file.add_agent(path, "all", settings)
    agents_file.add_agent(path, "second", AgentSettings(url="wss://b", headers={"X-A": "b c"}))
    assert read_file(path, "user").agents == {
        "all": settings,
        "second": AgentSettings(url="wss://b", headers={"X-A": "b c"}),
    }


def test_a_change_keeps_what_others_wrote(tmp_path):
    path = tmp_path / "agents.toml"
    before = "# first\r\n\n\n[agents.a]\ncommand = [  # why\n  'a',\n]\n\n[agents.a.env]\nX = '1'\n# about z\n[agents.z]\nurl='ws://z'"
    path.write_bytes(before.encode())
    agents_file.add_agent(path, "b", AgentSettings(command="b"))
    assert path.read_bytes().startswith(before.encode().rstrip(b"\n"))
    agents_file.remove_agent(path, "a")
    agents_file.remove_agent(path, "b")
    assert path.read_bytes() == b"# first\r\n\n\n# about z\n[agents.z]\nurl='ws://z'\n\n"


def test_a_link_to_the_file_stays_a_link(tmp_path):
    real, link = tmp_path / "real.toml", tmp_path / "link.toml"
    real.write_text("")
    link.symlink_to(real)
    agents_file.set_default(link, "a")
    assert link.is_symlink()
    assert real.read_text() == 'default = "a"\n\n'
    agents_file.set_default(link, "b")
    assert real.read_text() == 'default = "b"\n\n'


PAGE = Path(__file__).parents[4] / "docs" / "command-line.md"


def test_the_file_of_the_guide_is_valid_and_its_table_has_every_key():
    text = PAGE.read_text()
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    [example] = [it for it in blocks if "[agents." in it]
    agents, default, _ = parse(example.encode(), "the guide")
    assert default in agents
    [rows] = re.findall(r"^\| key \| means \|\n(.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    keys = {key for row in rows.splitlines() for key in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert keys == set(AgentSettings.__struct_fields__)
