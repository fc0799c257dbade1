"""Skills: folders with a SKILL.md, offered as commands and as skills, and read when they are used."""

import os
import tracemalloc

import pytest

import accord
from accord import Agent, connect, updates, v1
from accord.agent.skills import LARGEST, LONGEST_HEAD, MOST_SKILLS


def skill(folder, name, text="Do it.", *, head=None):
    place = folder / name
    place.mkdir(parents=True)
    head = f"name: {name}\ndescription: What {name} is for." if head is None else head
    (place / "SKILL.md").write_text(f"---\n{head}\n---\n\n{text}\n")
    return place


def reading(skills, **options):
    """An agent that says the text of the skills that a prompt names."""
    agent = Agent("reads", skills=skills, unstable=True, **options)

    @agent.on_prompt
    async def answer(turn):
        await turn.say("; ".join(f"{it.name} in {it.path.name}: {it.read()}" for it in turn.skills) or "none")

    return agent


async def offered(remote, folder):
    session = await remote.new_session(folder)
    await session.prompt("hello")
    return [(type(it).__name__, it.name, it.description) for it in session.state.commands]


@pytest.mark.parametrize(
    ("version", "shows", "kind"), [(1, True, "AvailableCommand"), (2, True, "Skill"), (2, False, "Command")]
)
async def test_skills_are_offered_as_the_client_shows_them_and_read_when_they_are_used(tmp_path, version, shows, kind):
    skill(tmp_path, "pdf", "Use pdftotext.")
    skill(tmp_path, "release")
    client = accord.Client(skills=shows)
    async with connect(reading(tmp_path), client, versions=(version,), unstable=True) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("/pdf a.pdf")).text == "pdf in pdf: Use pdftotext."
        assert [(type(it).__name__, it.name) for it in session.state.commands] == [(kind, "pdf"), (kind, "release")]
        assert session.state.commands[0].description == "What pdf is for."
        if kind == "Skill":
            assert session.state.commands[0].path == str(tmp_path / "pdf")
        assert (await session.prompt("Read /pdf")).text == "none"
        (tmp_path / "pdf" / "SKILL.md").write_text("---\ndescription: x\n---\nUse another.")
        assert (await session.prompt("/pdf")).text == "pdf in pdf: Use another."


async def test_a_prompt_names_several_skills_by_blocks_in_version_2(tmp_path):
    skill(tmp_path, "pdf", "P")
    skill(tmp_path, "release", "R")
    async with connect(reading([tmp_path]), accord.Client(skills=True), versions=(2,), unstable=True) as remote:
        assert remote.peer.capabilities.has("session.prompt.skill.inline")
        session = await remote.new_session("/")
        reply = await session.prompt(v1.SkillReference("release"), "with", v1.SkillReference("pdf"), "now")
        assert reply.text == "release in release: R; pdf in pdf: P"


async def test_an_agent_without_skills_takes_no_blocks_of_them():
    agent = reading(None)
    async with connect(agent, accord.Client(skills=True), versions=(2,), unstable=True) as remote:
        session = await remote.new_session("/")
        with pytest.raises(accord.CapabilityMissing):
            await session.prompt(v1.SkillReference("pdf"))


async def test_each_session_has_the_skills_of_its_folders_the_first_of_each_name(tmp_path):
    own, project = tmp_path / "own", tmp_path / "project"
    skill(own, "pdf", "own")
    skill(own, "help", "own")
    skill(project / "skills", "pdf", "of the project")
    agent = reading(lambda _: ["skills", own, tmp_path / "none"])

    @agent.command("help", "Show help")
    async def show_help(turn):
        await turn.say("the author's help")

    async with connect(agent) as remote:
        session = await remote.new_session(project)
        assert (await session.prompt("/pdf")).text == "pdf in pdf: of the project"
        assert (await session.prompt("/help")).text == "the author's help"
        assert sorted(it.name for it in session.state.commands) == ["help", "pdf"]
        other = await remote.new_session(tmp_path)
        assert (await other.prompt("/pdf")).text == "pdf in pdf: own"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("description: Plain words # a comment", "Plain words"),
        ('description: "In \\"quotes\\": two"', 'In "quotes": two'),
        ("description: 'It''s one'", "It's one"),
        ("description: >-\n  On lines\n  of its own\nlicense: MIT", "On lines of its own"),
        ("metadata:\n  description: not this\ndescription: this\n  and this", "this and this"),
    ],
)
async def test_a_description_is_read_however_yaml_writes_it(tmp_path, head, expected):
    skill(tmp_path, "one", head=head)
    async with connect(reading(tmp_path)) as remote:
        assert await offered(remote, "/") == [("AvailableCommand", "one", expected)]


@pytest.mark.parametrize("head", ["", "name: Two Words\ndescription: x", "name: ../up\ndescription: x", "description:"])
async def test_a_file_without_a_name_and_a_description_is_no_skill(tmp_path, head):
    skill(tmp_path, "one", head=head)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "SKILL.md").write_text("No front matter.")
    (tmp_path / "three.md").write_text("---\ndescription: x\n---\n")
    async with connect(reading(tmp_path)) as remote:
        assert await offered(remote, "/") == []


@pytest.mark.skipif(os.name == "nt", reason="links, pipes and sparse files of POSIX")
async def test_a_hostile_folder_of_skills_can_do_no_harm(tmp_path):
    project, secret = tmp_path / "project", tmp_path / "secret"
    skill(secret, "stolen", "SECRET")
    folder = project / "skills"
    skill(folder, "good", "Fine.")
    for name in ("linked", "pipe", "sparse", "swapped"):
        (folder / name).mkdir()
    (folder / "linked" / "SKILL.md").symlink_to(secret / "stolen" / "SKILL.md")
    (folder / "stolen").symlink_to(secret / "stolen")
    os.mkfifo(folder / "pipe" / "SKILL.md")
    with (folder / "sparse" / "SKILL.md").open("wb") as file:
        file.truncate(10 * 1024**3)
    (folder / "swapped" / "SKILL.md").write_text("---\ndescription: A fine one\n---\n")
    (project / "more").symlink_to(secret)
    for number in range(2 * MOST_SKILLS):
        skill(project / "many", f"many-{number:03}")
    agent = reading(lambda _: ["skills", "more", "many"])
    tracemalloc.start()
    async with connect(agent) as remote:
        session = await remote.new_session(project)
        await session.prompt("hello")
        names = [it.name for it in session.state.commands if isinstance(it, updates.Command)]
        assert names[:2] == ["good", "swapped"]
        assert len(names) == 2 + MOST_SKILLS
        (folder / "swapped" / "SKILL.md").unlink()
        (folder / "swapped" / "SKILL.md").symlink_to(secret / "stolen" / "SKILL.md")
        with pytest.raises(accord.PeerError) as refused:
            await session.prompt("/swapped")
        assert "SECRET" not in str(refused.value)
        (folder / "good" / "SKILL.md").write_bytes(b"x" * (LARGEST + 1))
        with pytest.raises(accord.PeerError):
            await session.prompt("/good")
    assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
    tracemalloc.stop()


async def test_the_front_matter_must_stand_at_the_beginning(tmp_path):
    skill(tmp_path, "long", head="x: " + "y" * LONGEST_HEAD + "\ndescription: too late")
    async with connect(reading(tmp_path)) as remote:
        assert await offered(remote, "/") == []


def test_a_folder_that_does_not_exist_is_said_at_once(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        Agent("a", skills=tmp_path / "none")
    with pytest.raises(TypeError, match="a folder, several, or a function"):
        Agent("a", skills=3)
