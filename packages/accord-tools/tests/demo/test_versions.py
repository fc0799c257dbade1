"""The built-in agent speaks both versions: each of its commands ends well in version 2 as well."""

import pytest

import accord
from accord_tools.demo import demo_agent
from accord_tools.demo.built_in_agent import FEATURES
from tests.waiting import eventually

ARGUMENTS = {"edit": "", "run": "echo hello", "stream": "20", "slow": "2", "read": "a.txt", "watch": "2"}
FAILS = {"error"}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("feature", [it.name for it in FEATURES if it.name not in FAILS])
async def test_every_command_ends_well_in_both_versions(tmp_path, version, feature):
    (tmp_path / "a.txt").write_text("one\n")
    client = accord.Client(permissions=lambda _: True)
    async with accord.connect(demo_agent(pace=0), client, versions=(version,)) as remote:
        assert remote.version == version
        session = await remote.new_session(tmp_path)
        outcome = await session.prompt(f"/{feature} {ARGUMENTS.get(feature, '')}".strip())
        assert outcome.text
        if feature == "watch":
            await eventually(lambda: "over" in session.state.messages[-1].text)


async def test_in_version_2_files_and_commands_are_those_of_its_own_machine(tmp_path):
    client = accord.Client(permissions=lambda _: True)
    async with accord.connect(demo_agent(pace=0), client, versions=(2,)) as remote:
        session = await remote.new_session(tmp_path)
        outcome = await session.prompt("/edit b.md")
        assert outcome.text == "I wrote `b.md`."
        assert (tmp_path / "b.md").read_text().startswith("# Written")
        outcome = await session.prompt("/run echo from here")
        assert "from here" in outcome.text
        [terminal] = session.state.terminals.values()
        assert terminal.text.strip() == "from here"
