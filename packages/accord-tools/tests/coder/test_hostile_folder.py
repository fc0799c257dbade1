"""A hostile folder, and a model that does what the folder says, with the coding agent."""

import asyncio
import os

import pytest

import accord
from accord.project import search
from tests.coder.conftest import call
from tests.project.hostile_folder import hostile

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="pipes and links of POSIX"),
    pytest.mark.parametrize("api", ["openai"]),
]

__all__ = ["hostile"]

NAMES = ("notes.txt", "AGENTS.md", "CLAUDE.md", "environ.txt", "zero.txt", "pipe.png", "picture.png", "sparse.txt")
NAMES += ("own.txt", "../secret.txt")


@pytest.fixture
def project(hostile):
    return hostile.path


@pytest.fixture
def client(questions):
    """A client that lends no files: the agent reads those of its machine."""
    return accord.Client(permissions=questions)


@pytest.fixture(params=["ripgrep", "re2", "neither"])
def engine(request, hostile, monkeypatch, tmp_path):
    """What searches: ripgrep, or RE2, or plain text."""
    if request.param == "ripgrep" and search.program_file("rg") is None:
        pytest.skip("ripgrep is not installed")
    if request.param != "ripgrep":
        monkeypatch.setenv("PATH", os.fspath(tmp_path / "nothing"))
    if request.param == "neither":
        monkeypatch.setattr(search, "has_engine", lambda: False)
    return request.param


async def test_no_tool_reads_outside_of_the_folder_nor_waits_for_a_pipe(hostile, opened, script, model, client, engine):
    (hostile.path / "slow.txt").write_text("o" * 60 + "!\n")  # `re` would try all ways to split it
    script.say(
        *(call("read_file", path=name) for name in ("notes.txt", "AGENTS.md", "CLAUDE.md", "environ.txt", "zero.txt")),
        *(
            call("read_file", path=name)
            for name in ("pipe.png", "picture.png", "sparse.txt", "own.txt", "../secret.txt")
        ),
        call("search_files", pattern="SECRET"),
        call("search_files", pattern="SECRET", folder="up"),
        call("search_files", pattern="SECRET", folder=".."),
        call("search_files", pattern="^(o+)+rdinary$"),
        call("list_files", folder="up"),
        call("list_files"),
        "Done.",
    )
    async with opened(client=client, mode="plan") as session:
        assert (await session.prompt("Go")).text == "Done."
    assert hostile.is_harmless(model.bodies)
    system = str(model.bodies[0]["messages"][0])
    assert "Instructions of" not in system, "the instructions are a link out of the folder, and a pipe"
    said = [it["content"] for it in model.bodies[-1]["messages"] if it["role"] == "tool"]
    assert "Nothing was found." in said[10]
    if engine == "neither":
        assert "searched as plain text" in said[10]
    assert "code.c" in said[-1]
    assert "two\nlines.txt" not in said[-1], "a name with a line break is one line"


async def test_instructions_of_the_project_are_read_through_a_link_inside_of_it(hostile, opened, script, model, client):
    (hostile.path / "AGENTS.md").unlink()
    (hostile.path / "AGENTS.md").symlink_to("README.md")
    script.say("Done.")
    async with opened(client=client) as session:
        await session.prompt("Go")
    assert "An ordinary file." in str(model.bodies[0]["messages"][0])


@pytest.mark.parametrize("mode", ["ask", "auto"])
async def test_no_mode_writes_below_git(hostile, opened, script, model, client, mode):
    names = [
        ".git/config",
        ".git/hooks/pre-commit",
        "hooks/pre-commit",
        ".GIT/config",
        "vendor/.git/config",
        "elsewhere/.git",
    ]
    before = [path.read_bytes() if path.is_file() else None for path in map(hostile.path.joinpath, names)]
    script.say(*(call("write_file", path=name, content="[core]\n\tfsmonitor = evil\n") for name in names), "Done.")
    async with opened(client=client, mode=mode) as session:
        assert (await session.prompt("Go")).text == "Done."
    assert [path.read_bytes() if path.is_file() else None for path in map(hostile.path.joinpath, names)] == before
    said = [it["content"] for it in model.bodies[-1]["messages"] if it["role"] == "tool"]
    assert all("nothing is written to .git" in it for it in said), said


async def test_a_search_that_never_ends_hears_the_cancel(hostile, opened, script, client, monkeypatch):
    monkeypatch.setenv("PATH", "")
    begun, walk = asyncio.Event(), search.Project.walk
    loop = asyncio.get_running_loop()

    def endless(self, folder, *, stopped, **options):
        while not stopped():
            yield from walk(self, folder, stopped=stopped, **options)
            loop.call_soon_threadsafe(begun.set)

    script.say("Hello.", call("search_files", pattern="nothing like it"))
    async with opened(client=client, mode="plan") as session:
        await session.prompt("Hello")  # with the listing of the folder
        monkeypatch.setattr(search.Project, "walk", endless)
        reply = session.prompt("Go")
        await begun.wait()
        assert (await reply.cancel()).stop_reason == "cancelled"


@pytest.mark.parametrize("lends", [True, False], ids=["the client's terminal", "this machine"])
async def test_no_command_gets_the_keys_of_providers(opened, script, model, tmp_path, monkeypatch, lends):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-HOSTILE_TEST_KEY")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "HOSTILE_TEST_KEY")
    monkeypatch.setenv("HARMLESS", "still here")
    script.say(call("run_command", command="env"), "Done.")
    client = accord.Client(terminals=lends, permissions=lambda _: True)
    async with opened(client=client, mode="auto") as session:
        assert (await session.prompt("Go")).text == "Done."
    said = str(model.bodies)
    assert "HARMLESS=still here" in said
    assert "HOSTILE_TEST_KEY" not in said.replace("HOSTILE_TEST_KEY=in the environment", "")
    assert b"sk-HOSTILE" not in b"".join(path.read_bytes() for path in tmp_path.glob("sessions.sqlite3*"))
