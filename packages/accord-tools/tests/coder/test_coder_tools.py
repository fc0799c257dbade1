"""Tools of the coding agent whose ways differ with the machine and the client."""

import asyncio
import os
import shutil
from contextlib import suppress

import pytest

import accord
from accord.project import search
from tests.coder.conftest import call, text_of

pytestmark = pytest.mark.parametrize("api", ["openai"])


@pytest.fixture(params=[True, False], ids=["ripgrep", "without"])
def with_ripgrep(request, monkeypatch, tmp_path):
    """Whether there is a ripgrep: without it, the search path is an empty folder."""
    if request.param and shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    if not request.param:
        monkeypatch.setenv("PATH", os.fspath(tmp_path / "nothing"))
    assert (search.program_file("rg") is not None) == request.param
    return request.param


async def test_lines_are_found_with_ripgrep_and_without(opened, script, model, project, with_ripgrep):
    (project / "inner").mkdir()
    (project / "inner" / "notes.md").write_text("the world\n")
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("world\n")
    script.say(call("search_files", pattern="w.rld"), call("list_files", pattern="*.md"), "Done.")
    async with opened() as session:
        await session.prompt("Look")
        found, listed = (it.content[0].content.text for it in session.state.tool_calls.values())
    assert sorted(found.splitlines()) == ["hello.txt:2:world", "inner/notes.md:1:the world"]
    assert listed == "inner/notes.md"
    assert "inner/notes.md:1:the world" in text_of(model.bodies[-1])


async def test_a_search_says_how_many_files_it_left_out_and_why(opened, script, model, project, with_ripgrep):
    for number in range(4):
        (project / f"large{number}.txt").write_text("x\n" * 600_000 + "world\n")
    script.say(call("search_files", pattern="w.rld"), "Done.")
    async with opened() as session:
        await session.prompt("Look")
        (found,) = (it.content[0].content.text for it in session.state.tool_calls.values())
    first, *more = sorted(found.splitlines())
    if with_ripgrep:
        assert (first, len(more)) == ("hello.txt:2:world", 4)
    else:
        names = "large0.txt, large1.txt, large2.txt, …"
        assert first == f"4 files were not searched: larger than 1 MB, or not readable ({names})"
        assert more == ["hello.txt:2:world"]


async def test_a_command_runs_where_the_client_lends_no_terminal(opened, script, model):
    script.say(call("run_command", command="echo told; exit 3"), "Done.")
    async with opened(client=accord.Client(), mode="auto") as session:
        assert (await session.prompt("Go")).text == "Done."
    assert "Exit code 3." in text_of(model.bodies[-1])


def edit(path, old, new, **options):
    return {"path": path, "old": old, "new": new, **options}


def answers_of(model):
    """What the tools gave to the model."""
    return [it["content"] for it in model.bodies[-1]["messages"] if it["role"] == "tool"]


async def test_several_edits_are_one_question_and_one_diff_of_each_file(opened, script, project, questions):
    (project / "b.txt").write_text("b\n")
    edits = [
        edit("hello.txt", "hello", "good night"),
        edit("./hello.txt", "good night", "good day"),
        edit("b.txt", "b", "c"),
    ]
    script.say(call("edit_files", edits=edits), "Done.")
    async with opened() as session:
        await session.prompt("Go")
        (tool,) = session.state.tool_calls.values()
    assert questions.titles == ["Edit hello.txt, b.txt"]
    assert [(it.old_text, it.new_text) for it in tool.diffs] == [
        ("hello\nworld\n", "good day\nworld\n"),
        ("b\n", "c\n"),
    ]
    assert [(project / name).read_text() for name in ("hello.txt", "b.txt")] == ["good day\nworld\n", "c\n"]


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        (edit("hello.txt", "moon", "sun"), "hello.txt does not contain the old text. Read the file again: 'moon'."),
        (edit("hello.txt", "l", "L"), "hello.txt contains the old text 3 times."),
        (edit("none.txt", "a", "b"), "none.txt"),
    ],
)
async def test_of_several_edits_none_is_made_if_one_does_not_fit(opened, script, model, project, last, problem):
    script.say(call("edit_files", edits=[edit("hello.txt", "hello", "hollow"), last]), "Done.")
    async with opened(mode="auto") as session:
        await session.prompt("Go")
    assert problem in answers_of(model)[0]
    assert (project / "hello.txt").read_text() == "hello\nworld\n"


async def test_a_file_that_changes_during_the_question_is_not_overwritten(opened, script, model, project):
    async def allow(_):
        (project / "hello.txt").write_text("changed\n")
        return True

    script.say(call("edit_file", path="hello.txt", old="world", new="moon"), "Done.")
    async with opened(client=accord.Client(files=True, permissions=allow)) as session:
        await session.prompt("Go")
        (edited,) = session.state.tool_calls.values()
    assert "hello.txt has changed meanwhile. Read it again." in answers_of(model)[0]
    assert (edited.status, "the file has changed meanwhile" in edited.text) == ("failed", True)
    assert (project / "hello.txt").read_text() == "changed\n"


async def test_edits_are_taken_back_if_one_of_the_files_cannot_be_written(opened, script, model, project):
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("old\n")
    edits = [edit("hello.txt", "hello", "bye"), edit(".git/config", "old", "new")]
    script.say(call("edit_files", edits=edits), "Done.")
    async with opened(mode="auto") as session:
        await session.prompt("Go")
    assert "nothing is written to .git" in answers_of(model)[0]
    assert answers_of(model)[0].endswith("Nothing was changed.")
    assert (project / "hello.txt").read_text() == "hello\nworld\n"


@pytest.fixture(params=[True, False], ids=["the client's terminal", "this machine"])
def client(request, questions):
    return accord.Client(terminals=request.param, permissions=questions)


@pytest.mark.skipif(os.name == "nt", reason="the shell of POSIX")
async def test_a_command_in_the_background_is_read_in_parts_and_ended(
    opened, script, model, project, client, questions
):
    os.mkfifo(project / "more")
    script.say(
        call("run_command", command="echo one; read line < more; echo $line; exec sleep 600", background=True),
        call("run_command", command="echo two > more"),
        "Yes.",
        call("read_command", number=1, wait=0),
        call("stop_command", number=1),
        call("read_command", number=1),
        "Done.",
    )
    async with opened(client=client) as session:
        await session.prompt("Start it")
        await session.prompt("And now?")
    started, _, first, stopped, unknown = answers_of(model)
    assert "It runs as number 1" in started
    assert first.endswith("It runs on.")
    # What came between reading and stopping is a matter of the shell's speed; that it is told once is not.
    told = first.removesuffix("It runs on.") + stopped
    assert [told.count(word) for word in ("one", "two")] == [1, 1]
    assert "It was ended by" in stopped
    assert "no command in the background has the number 1; there are: none" in unknown
    assert len(questions.titles) == 2, "reading and ending a command that was allowed is no new act"


async def test_a_command_in_the_background_that_has_ended_is_told_with_its_exit_code(opened, script, model, client):
    script.say(
        call("run_command", command="echo built; exit 3", background=True),
        call("read_command", number=1, wait=600),
        "Done.",
    )
    async with opened(client=client, mode="auto") as session:
        await session.prompt("Build it")
    assert answers_of(model)[1] == "built\n\nExit code 3."


@pytest.mark.skipif(os.name == "nt", reason="the shell of POSIX")
async def test_a_command_in_the_background_ends_with_its_session(opened, script, project, client):
    os.mkfifo(project / "more")
    script.say(call("run_command", command="exec cat more", background=True), "Done.")
    async with opened(client=client, mode="auto") as session:
        await session.prompt("Serve")
        writer = await asyncio.to_thread((project / "more").open, "wb", buffering=0)  # once the command reads
        await session.close()
        await asyncio.to_thread(wait_for_no_reader, writer)


def wait_for_no_reader(writer):
    with writer, suppress(BrokenPipeError):
        while True:
            writer.write(b"on\n")
