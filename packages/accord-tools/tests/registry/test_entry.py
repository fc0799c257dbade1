"""Sixty published entries mean the right command on Linux, macOS and Windows. Nothing is started."""

import pytest

from accord_tools.registry import InstallError
from accord_tools.registry.entry import (
    PLATFORMS,
    Platform,
    RegistryEntry,
    choose,
    here,
    is_newer,
    order_of,
    program_path,
    read_entry,
)
from accord_tools.registry.entry_rules import check_entry
from tests.registry.published import COMMANDS, ENTRIES

SYSTEMS = ("linux-x86_64", "darwin-aarch64", "windows-x86_64")
BY_ID = {entry["id"]: entry for entry in ENTRIES}


def expected():
    """The rows of the table: an id, and its command on each system."""
    for line in COMMANDS.strip().splitlines():
        agent_id, *commands = (part.strip() for part in line.split("|"))
        commands += commands[:1] * (3 - len(commands))
        for place, command in enumerate(commands):
            if command == "=":
                commands[place] = commands[place - 1]
        yield agent_id, commands


def test_there_are_sixty_entries_and_a_command_for_each():
    assert len(BY_ID) == len(ENTRIES) == 60
    assert sorted(BY_ID) == sorted(agent_id for agent_id, _ in expected())


@pytest.mark.parametrize(("agent_id", "commands"), [pytest.param(*row, id=row[0]) for row in expected()])
def test_a_published_entry_means_its_command_on_each_system(agent_id, commands):
    entry = read_entry(BY_ID[agent_id])
    assert isinstance(entry, RegistryEntry)
    assert entry.notes == ()
    for key, command in zip(SYSTEMS, commands, strict=True):
        choice = choose(entry, Platform.of(key))
        if command == "-":
            assert isinstance(choice, str)
            assert f"has nothing for {key}; it has" in choice
        else:
            assert " ".join(choice.command(Platform.of(key))) == command


@pytest.mark.parametrize(
    ("agent_id", "variables"),
    [
        ("factory-droid", {"DROID_DISABLE_AUTO_UPDATE": "true", "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false"}),
        ("fast-agent", {"FAST_AGENT_MODEL": "codexplan"}),
        ("vtcode", {"VT_ACP_ENABLED": "1", "VT_ACP_ZED_ENABLED": "1"}),
    ],
)
def test_the_variables_of_an_entry_reach_the_choice(agent_id, variables):
    choice = choose(read_entry(BY_ID[agent_id]), Platform.of("linux-x86_64"))
    assert choice.env == variables


def test_an_agent_without_an_archive_for_this_platform_is_taken_from_npm():
    sigit = read_entry({**BY_ID["sigit"], "distribution": {"binary": {}, "npx": {"package": "@smbcloud/sigit@1.5.12"}}})
    assert choose(sigit, Platform.of("linux-x86_64")).kind == "npx"
    kilo = read_entry(BY_ID["kilo"])
    assert choose(kilo, Platform.of("windows-aarch64")).kind == "npx"
    assert choose(kilo, Platform.of("linux-x86_64")).kind == "binary"
    assert choose(kilo, Platform.of("linux-x86_64"), "npx").kind == "npx"
    assert choose(kilo, Platform.of("linux-x86_64"), "uvx") == "kilo has no uvx; it has binary, npx"
    assert choose(kilo, Platform.of("windows-aarch64"), "binary").startswith("kilo has nothing for windows-aarch64")


def test_the_strict_check_finds_the_mistakes_that_were_published():
    found = {
        agent_id: {it.rule for it in check_entry(entry, agent_id, "f") if it.level == "error"} - {"required"}
        for agent_id, entry in BY_ID.items()
    }
    assert {agent_id: rules for agent_id, rules in found.items() if rules} == {
        "aider-acp": {"latest"},
        "dirac": {"version"},
        "gemini": {"version"},
    }


def test_versions_that_are_not_semantic_are_compared_as_numbers():
    versions = [
        "0.9.1",
        "0.10.0-preview.2",
        "0.10.0-preview.10",
        "0.10.0",
        "1.2",
        "2026.9.30",
        "2026.10.01",
        "3000.6.7",
    ]
    others = versions[::-1]
    assert sorted(others, key=order_of) == versions
    assert not is_newer("1.2.0", "1.2")
    assert order_of("next") < order_of("0.0.1")
    assert order_of("9" * 5000) is not None


def test_this_machine_is_a_platform_of_the_registry():
    assert here().key in PLATFORMS


@pytest.mark.parametrize("cmd", ["..\\up.exe", "C:\\x.exe", "\\\\host\\x.exe", "./a/../../b", "/x"])
def test_a_path_that_leaves_the_archive_on_windows_is_refused(cmd):
    with pytest.raises(InstallError, match="must be a relative path"):
        program_path(cmd, Platform("windows", "x86_64"))
