"""`accord agents search`, `info`, `install`, `update`, `remove`, `lock`, `export` and `import`, as a user sees them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from accord_tools.registry.entry import here as this_platform, read_package
from tests.registry.conftest import DEMO
from tests.registry.local_registry import Answer

NPX = {"npx": {"package": "helper@1.0.0", "args": ["--acp"]}}


def lines(text):
    return [line.split() for line in text.splitlines()]


def test_search_finds_by_words_kind_platform_and_licence(user, registry):
    registry.add_archive("one", {"a": DEMO}, "./a")["description"] = "Reviews code"
    registry.add_entry("two", NPX, license="Apache 2.0")
    registry.add_entry("three", {"uvx": {"package": "p==1.0.0"}}, description="REVIEWS too")
    registry.add_entry("far", {"binary": {"plan9-mips": {"archive": "https://example.com/a.zip", "cmd": "./a"}}})
    registry.add_entry("odd", {"docker": {}})
    found = lines(user.said("agents", "search"))
    assert [line[0] for line in found[1:]] == ["far", "odd", "one", "three", "two"]
    assert "not for this platform" in " ".join(found[1])
    assert "unknown kind" in " ".join(found[2])
    assert [line[0] for line in lines(user.said("agents", "search", "reviews"))[1:]] == ["one", "three"]
    assert [line[0] for line in lines(user.said("agents", "search", "--kind", "npx"))[1:]] == ["two"]
    assert [line[0] for line in lines(user.said("agents", "search", "--license", "apache"))[1:]] == ["two"]
    windows = json.loads(user.said("agents", "search", "one", "--platform", "windows-aarch64", "--json"))
    assert [agent["kinds_here"] for agent in windows] == [["binary"]]
    assert "No agent matches" in user.said("agents", "search", "--installed")
    assert "--platform must be one of darwin-aarch64" in user.refused("agents", "search", "--platform", "amiga")


def test_a_list_from_the_cache_says_how_old_it_is(user, registry):
    registry.add_entry("two", NPX)
    user.said("agents", "search")
    asked = len(registry.requests)
    assert "two" in user.said("agents", "search", "--offline")
    assert len(registry.requests) == asked
    registry.answers["/registry.json"] = Answer(b"down", 503)
    done = user.accord("agents", "search", "--refresh")
    assert "two" in done.stdout
    assert "answered 503 Service Unavailable; the list was fetched just now" in done.stderr
    user.environment["ACCORD_REGISTRY"] = "off"
    assert "there is no registry" in user.accord("agents", "search").stderr


def test_info_shows_the_command_and_what_is_installed(user, registry):
    registry.add_entry("two", NPX, website="https://example.com", preview={"version": "1.1.0", "distribution": NPX})
    said = user.said("agents", "info", "two")
    assert "npx -y helper@1.0.0 --acp" in said
    assert "publisher: Example" in said
    assert "website:   https://example.com" in said
    assert "preview:   1.1.0" in said
    assert "It is not installed." in said
    about = json.loads(user.said("agents", "info", "two", "--json"))
    assert about["commands"] == {"npx": ["npx", "-y", "helper@1.0.0", "--acp"]}


def test_texts_of_the_registry_cannot_control_the_terminal(user, registry, terminal):
    registry.add_entry("evil", NPX, name="\x1b[2Jgone", description="\x1b]0;title\x07" + "x" * 5000)
    changed = {name: value for name, value in user.environment.items() if os.environ.get(name) != value}
    for words in (("search",), ("info", "evil")):
        at = terminal("agents", *words, **changed)
        assert "evil" in at.to_the_end()
        assert b"\x1b[2J" not in at.raw
        assert b"\x1b]0;" not in at.raw


def test_the_whole_life_of_an_installed_agent(user, registry):
    registry.add_archive("demo", {"demo": DEMO}, "./demo")
    assert "No agent has a name yet" in user.said("agents")
    installed = user.accord("agents", "install", "demo", "--yes")
    assert "Installed Demo 1.0.0" in installed.stdout
    assert "Downloading " in installed.stderr
    assert "is installed already" in user.said("agents", "install", "demo")
    assert lines(user.said("agents"))[1][:3] == ["demo", "registry", "installed"]
    assert "Everything is up to date." in user.said("agents", "update", "--refresh")
    registry.add_archive("demo", {"demo": DEMO}, "./demo", version="1.10.0")
    checked = user.accord("agents", "update", "--check", "--refresh")
    assert checked.returncode == 3
    assert ["demo", "1.0.0", "1.10.0"] in lines(checked.stdout)
    assert "1.10.0 is available" in user.said("agents")
    assert "Updated demo from 1.0.0 to 1.10.0." in user.said("agents", "update")
    assert [path.name for path in (user.home / "data" / "accord" / "agents" / "demo").glob("1*")] == ["1.10.0-binary"]
    assert "Removed demo." in user.said("agents", "remove", "demo")
    assert "has no agent 'demo'" in user.refused("agents", "remove", "demo")
    assert "No agent has a name yet" in user.said("agents")


def test_a_failed_update_keeps_the_old_version_and_updates_the_others(user, registry):
    for name in ("first", "second"):
        registry.add_archive(name, {"demo": DEMO}, "./demo")
    user.said("agents", "install", "first", "second", "--yes")
    for name in ("first", "second"):
        registry.add_archive(name, {"demo": DEMO}, "./demo", version="2.0.0")
    del registry.answers["/download/v2.0.0/first.tar.gz"]
    done = user.accord("agents", "update", "--refresh")
    assert done.returncode == 1
    assert "first: " in done.stderr
    assert "answered 404" in done.stderr
    assert "1.0.0 stays" in done.stderr
    assert "Updated second from 1.0.0 to 2.0.0." in done.stdout
    assert user.said("run", "Say hello", "-a", "first") == "hello\n"


def test_without_a_terminal_nothing_is_installed_without_yes(user, registry):
    registry.add_archive("demo", {"demo": DEMO}, "./demo")
    done = user.accord("agents", "install", "demo")
    assert done.returncode == 1
    assert "confirm with --yes" in done.stderr
    assert "No agent has a name yet" in user.said("agents")


def test_a_team_installs_exactly_what_its_lock_file_has(user, registry, tmp_path):
    registry.add_archive("demo", {"demo": DEMO}, "./demo", with_hash=False)
    user.said("agents", "install", "demo", "--yes")
    assert "Locked demo" in user.said("agents", "lock")
    lock = json.loads((user.folder / ".accord" / "agents.lock").read_text())
    assert [(agent["id"], agent["version"], list(agent["integrity"])) for agent in lock["agents"]] == [
        ("demo", "1.0.0", [this_platform().key])
    ]
    user.environment |= {"XDG_DATA_HOME": str(tmp_path / "other"), "XDG_STATE_HOME": str(tmp_path / "state")}
    assert "Installed Demo 1.0.0" in user.said("agents", "install", "--locked", "--yes")
    registry.add_archive("demo", {"demo": DEMO + "#\n"}, "./demo", with_hash=False)
    user.environment |= {"XDG_DATA_HOME": str(tmp_path / "third"), "XDG_STATE_HOME": str(tmp_path / "state3")}
    assert "is not what the lock file has" in user.accord("agents", "install", "--locked", "--yes").stderr
    assert "No agent has a name yet" in user.said("agents")
    assert "the lock file has no agent 'other'" in locked_refusal(user, registry)


def locked_refusal(user, registry):
    registry.add_archive("other", {"demo": DEMO}, "./demo")
    return user.refused("agents", "install", "other", "--locked", "--yes", "--refresh")


def test_the_words_of_a_failed_installer_are_shown(user, registry):
    registry.add_entry("p", {"uvx": {"package": "absent-package==1.0.0"}})
    done = user.accord("agents", "install", "p", "--yes")
    assert done.returncode == 1
    assert "  | " in done.stderr
    assert "absent-package" in done.stderr.partition("  | ")[2]
    last = done.stderr.splitlines()[-1]
    assert "failed with exit code" in last
    assert "absent-package" in Path(last.rpartition(" is in ")[2]).read_text()


def test_the_progress_of_a_download_is_one_line_that_vanishes(user, registry, terminal):
    registry.add_archive("demo", {"demo": DEMO, "data": os.urandom(3_000_000)}, "./demo")
    changed = {name: value for name, value in user.environment.items() if os.environ.get(name) != value}
    at = terminal("agents", "install", "demo", "--yes", **changed)
    said = at.to_the_end()
    assert b"Downloading" in at.raw
    assert b"3.0 MB of 3.0 MB  100 %" in at.raw
    assert "Downloading" not in "\n".join(at.screen.display)
    assert "Installed Demo 1.0.0 (3.0 MB)." in said


# Settings of other clients

ZED = """{
  // Zed's settings have comments, and commas at the end.
  "theme": "One // not a comment",
  "agent_servers": {
    "My Agent": {"type": "custom", "command": "my-agent", "args": ["--acp"], "env": {"A": "1"}, "default_mode": "plan"},
    "gemini": {"type": "registry", "default_model": "flash", "default_config_options": {"fast": true, "list": [1],}},
    "old": {"command": {"path": "/opt/old", "args": ["acp"]}},
    "empty": {"type": "custom"}, /* none */
  },
}
"""


def test_agents_of_zed_are_imported_with_their_modes_and_options(user):
    file = user.write("settings.json", ZED)
    done = user.accord("agents", "import", "zed", str(file))
    assert "empty: has no 'command'" in done.stderr
    agents = {agent["name"]: agent for agent in json.loads(user.said("agents", "--json"))}
    assert agents["My-Agent"]["command"] == ["my-agent", "--acp"]
    assert (agents["My-Agent"]["mode"], agents["My-Agent"]["env"]) == ("plan", ["A"])
    assert agents["gemini"]["config"] == {"model": "flash", "fast": True}
    assert agents["old"]["command"] == ["/opt/old", "acp"]
    assert 'registry = "gemini"' in user.settings.read_text()
    assert "gemini: you already have an agent of this name; it was not changed" in user.said(
        "agents", "import", "zed", str(file)
    )


def test_agents_of_jetbrains_and_acpx_are_imported_from_where_they_are(user):
    for folder, name, text in [
        (".jetbrains", "acp.json", {"agent_servers": {"jet": {"command": "/opt/jet", "args": ["acp"]}}}),
        (".acpx", "config.json", {"agents": {"tool": {"command": "tool --acp 'a b'"}}}),
    ]:
        (user.home / folder).mkdir(parents=True)
        (user.home / folder / name).write_text(json.dumps(text))
    assert "jet: /opt/jet acp" in user.said("agents", "import", "jetbrains", "--dry-run")
    assert not user.settings.exists()
    user.said("agents", "import", "jetbrains")
    user.said("agents", "import", "acpx")
    agents = {agent["name"]: agent["command"] for agent in json.loads(user.said("agents", "--json"))}
    assert agents == {"jet": ["/opt/jet", "acp"], "tool": ["tool", "--acp", "a b"]}


def test_settings_that_cannot_be_read_are_an_error_that_names_the_file(user):
    assert "cannot read" in user.refused("agents", "import", "zed", "absent.json")
    file = user.write("bad.json", "{")
    assert f"{file}: " in user.refused("agents", "import", "zed", str(file))
    file.write_text('{"agent_servers": []}')
    assert "must be an object with 'agent_servers'" in user.refused("agents", "import", "zed", str(file))


@pytest.mark.parametrize("client", ["zed", "jetbrains", "acpx"])
def test_what_is_exported_for_a_client_can_be_imported_from_it(user, registry, client):
    registry.add_archive("demo", {"demo": DEMO}, "./demo", args=("acp",), env={"COLOUR": "red"})
    user.said("agents", "install", "demo", "--yes")
    printed = user.said("agents", "export", client, "demo")
    file = user.write("settings.json", printed)
    user.said("agents", "import", client, str(file))
    words = user.said("agents", "which", "registry:demo").split()
    named = next(it for it in json.loads(user.said("agents", "--json")) if it["from"] == "user")
    assert named["command"][-2:] == words
    assert named["env"] == ["COLOUR"] or "COLOUR=red" in named["command"]


def test_an_agent_behind_a_url_is_exported_as_a_bridge(user):
    user.set('[agents.team]\nurl = "https://agents.example/acp"\n')
    entry = json.loads(user.said("agents", "export", "zed", "team"))["agent_servers"]["team"]
    assert entry["args"][-2:] == ["bridge", "team"]


def test_a_program_outside_of_its_archive_is_an_error_in_one_line(user, registry):
    registry.add_archive("away", {"a": DEMO}, "../a")
    done = user.accord("agents", "install", "away", "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert "'cmd' must be a relative path inside of the archive, got '../a'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("version", ["npm:other", "file:../x", "git+ssh://host/x", "..", ".", "a.tgz", "C:\\x"])
def test_a_version_that_npm_would_read_as_a_place_never_reaches_npm(version):
    assert read_package("npx", f"helper@{version}") is None
    assert read_package("npx", f"@scope/helper@{version}") is None


@pytest.mark.parametrize("version", ["1.2.3", "^1.2", "latest", ">=1", "1.0.0-rc.1+build"])
def test_versions_ranges_and_tags_reach_npm(version):
    found = read_package("npx", f"helper@{version}")
    assert found is not None
    assert found.version == version


def test_remove_takes_yes_as_install_does(user):
    user.set("[agents.mine]\ncommand = ['mine']\n")
    assert "Removed mine" in user.said("agents", "remove", "mine", "--yes")


def test_without_a_kept_list_the_search_shows_the_snapshot_that_came_with_accord(user):
    user.environment.pop("ACCORD_REGISTRY", None)
    user.environment |= {"XDG_CACHE_HOME": str(user.home / "cache")}
    done = user.accord("agents", "search", "gemini", "--offline")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].startswith("gemini  Gemini CLI  ")
    assert "note: this list came with Accord; no list of https://" in done.stderr
    assert user.accord("agents", "search", "--offline", "--json").returncode == 1


def test_entries_that_cannot_be_used_are_noted_for_people_alone(registry, user):
    registry.add_archive("useful", {"useful": "#!/bin/sh\n"}, "./useful")
    registry.agents.append({"id": "Bad Id"})
    for options, is_noted in (((), True), (("--json",), False)):
        done = user.accord("agents", "search", *options)
        assert "useful" in done.stdout
        assert ("note: 1 entries of" in done.stderr) == is_noted, done.stderr
