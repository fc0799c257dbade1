"""Sessions in new git worktrees."""

import subprocess
import sys

import pytest

import accord
from accord.project.git import find_repository
from accord_tools.configuration.trust import is_folder_trusted
from accord_tools.tui.chat_storage import new_worktree
from tests.tui.conftest import git
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


def saying():
    agent = accord.Agent("says")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say((turn.cwd / "a.txt").read_text().splitlines()[6])

    return agent


def told_commands(described):
    """The commands that keep and remove a worktree, as they are told."""
    lines = dict(line.split(":", 1) for line in described.splitlines() if line[:7] in ("keep:  ", "remove:"))
    return lines["keep"].partition("then")[2].strip(), lines["remove"].strip()


async def test_a_session_works_in_a_worktree_of_its_own(chat, tree):
    async with chat(saying(), folder=tree, size=(200, 40)) as it:
        await it.send("/worktree try-it")
        await it.sees("In a new git worktree", "accord/try-it", "2 files have changes that are not committed")
        await eventually(lambda: it.front.session is not None)
        assert it.front.folder.name == f"{tree.name}-try-it"
        await it.send("what is in it?")
        await it.sees("line 7")
        [made] = it.app.options.worktrees
        assert (made.path / "a.txt").exists()
        assert not (made.path / "new.txt").exists()


def test_the_commands_that_are_told_keep_the_work_and_remove_the_worktree(tree):
    git(tree, "checkout", "a.txt")
    made = new_worktree(tree, is_folder_trusted, "try")
    (made.folder / "b.txt").write_text("b\n")
    git(made.folder, "add", ".")
    git(made.folder, "commit", "--quiet", "--message", "More")
    keep, remove = told_commands(made.described())
    for command in (keep, remove):
        subprocess.run(command, shell=True, check=True, capture_output=True, cwd="/")
    assert (tree / "b.txt").read_text() == "b\n"
    assert not made.path.exists()
    branches = subprocess.run(["git", "-C", str(tree), "branch"], capture_output=True, text=True, check=True).stdout
    assert "accord/try" not in branches


def test_a_folder_of_the_repository_stays_that_folder(tree):
    (tree / "src").mkdir()
    (tree / "src" / "b.txt").write_text("b\n")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "More")
    made = new_worktree(tree / "src", is_folder_trusted)
    assert made.folder == made.path / "src"
    assert (made.folder / "b.txt").exists()
    assert is_folder_trusted(find_repository(made.path))


def test_a_folder_without_git_and_a_name_that_is_taken_are_refused(tree, tmp_path_factory):
    with pytest.raises(ValueError, match="not a git repository"):
        new_worktree(tmp_path_factory.mktemp("plain"), is_folder_trusted)
    new_worktree(tree, is_folder_trusted, "one")
    with pytest.raises(ValueError, match="already exists"):
        new_worktree(tree, is_folder_trusted, "one")
    with pytest.raises(ValueError, match="name must be"):
        new_worktree(tree, is_folder_trusted, "../one")


def test_a_repository_without_a_commit_is_refused(tmp_path):
    git(tmp_path, "init", "--quiet")
    with pytest.raises(ValueError, match="no commit yet"):
        new_worktree(tmp_path, lambda _: True)


def test_the_option_makes_a_worktree_and_says_at_the_end_where_it_is(tree):
    chat = [sys.executable, "-m", "accord", "chat", "--plain", "--allow", "none"]
    done = subprocess.run(
        [*chat, "--worktree"], input="hello\n", capture_output=True, text=True, cwd=tree, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "I am Accord's built-in agent" in done.stdout
    assert "The work is in a git worktree:" in done.stderr
    listed = subprocess.run(["git", "-C", str(tree), "worktree", "list"], capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 2
    wrong = subprocess.run(
        [*chat, "--worktree", "--continue"], capture_output=True, text=True, cwd=tree, check=False, timeout=60
    )
    assert wrong.returncode == 2
    assert "leave --continue and --session out" in wrong.stderr
