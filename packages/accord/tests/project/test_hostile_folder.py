"""A hostile folder through the library, `accord run`, the chat's list of files, and git."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import accord
from accord import v1
from accord.project.git import FolderNotTrusted, Git, find_repository
from accord.project.project import Project, read_named
from accord_tools.configuration.resolve_agent import KnownAgents
from accord_tools.configuration.trust import is_folder_trusted, trust_folder
from accord_tools.tui.attachments import described, files_of, mentioned, sent_as, working_diff
from accord_tools.tui.chat_storage import new_worktree

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes and links of POSIX")

TAKES = v1.PromptCapabilities(embedded_context=True, image=True, audio=True)
NAMES = ("notes.txt", "AGENTS.md", "CLAUDE.md", "picture.png", "pipe.png", "zero.txt", "environ.txt", "own.txt")
NAMES += ("sparse.txt", "loop", "up/secret.txt", "device.txt", "elsewhere/.git")


async def sent(folder, *content):
    """What an agent gets of a prompt."""
    got = []
    agent = accord.Agent("reads", accepts=["embedded", "image", "audio"])

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        got.extend(turn.prompt)

    async with accord.connect(agent) as remote:
        session = await remote.new_session(folder)
        await session.prompt(*content, mentions=True)
    return got


@pytest.mark.parametrize("command", [["ls-files", "--others"], ["diff"], ["status"], ["stash"]])
def test_the_traps_of_the_folder_work(hostile, command):
    subprocess.run(["git", *command], cwd=hostile.path, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    with pytest.raises(AssertionError, match="a program of the folder ran"):
        hostile.is_harmless()


async def test_a_mention_sends_no_file_outside_of_the_folder(hostile):
    got = await sent(hostile.path, " ".join(f"@{name}" for name in (*NAMES, "README.md", "inside.md")))
    assert hostile.is_harmless(got)
    contents = [block.resource.text for block in got if isinstance(block, v1.EmbeddedResource)]
    assert contents.count("An ordinary file.\n") == 2, "a link inside of the folder is followed"
    assert {block.name for block in got if isinstance(block, v1.ResourceLink)} >= {"notes.txt", "pipe.png", "zero.txt"}


async def test_a_path_in_a_prompt_sends_no_file_outside_of_the_folder(hostile):
    paths = [hostile.path / name for name in NAMES if name != "device.txt"]
    assert hostile.is_harmless(await sent(hostile.path, "see", *paths))


async def test_a_file_elsewhere_that_the_user_names_is_sent(hostile):
    [_, block] = await sent(hostile.path, "see", hostile.secret)
    assert "TOP-SECRET" in block.resource.text


def test_lines_of_a_file_are_read_in_the_folder_only(hostile):
    text = " ".join(f"@{name}:1-2" for name in NAMES if name != "sparse.txt")
    assert hostile.is_harmless(mentioned(text, hostile.path, TAKES, is_folder_trusted))
    with pytest.raises(ValueError, match="not text"):
        mentioned("@sparse.txt:1", hostile.path, TAKES, is_folder_trusted)
    assert hostile.is_harmless()


def test_files_are_listed_without_git_before_the_folder_is_trusted(hostile):
    files = files_of(hostile.path, is_folder_trusted)
    assert {"README.md", "code.c", "ignored.txt", "notes.txt", "bare/"} <= set(files)
    assert not any("\n" in name or "\x1b" in name for name in files)
    assert not any(name.startswith("up/") for name in files)
    assert hostile.is_harmless()
    assert files_of(hostile.path / "bare", is_folder_trusted)
    assert files_of(hostile.path / "vendor", is_folder_trusted) == []
    assert hostile.is_harmless()


def test_git_asks_for_trust_before_it_runs(hostile, monkeypatch):
    monkeypatch.setenv("PATH", "")  # a git that ran would not be found
    for folder in (hostile.path, hostile.path / "bare", hostile.path / "vendor"):
        with pytest.raises(FolderNotTrusted, match="accord chat --trust"):
            Git(folder, is_folder_trusted)
    with pytest.raises(ValueError, match="not a git repository"):
        Git(hostile.path / "elsewhere", lambda _: True)


def test_git_runs_no_program_of_a_trusted_folder(hostile):
    trust_folder(find_repository(hostile.path))
    files = files_of(hostile.path, is_folder_trusted)
    assert {"README.md", "code.c", ".gitignore", "notes.txt"} <= set(files)
    assert "ignored.txt" not in files
    changes = working_diff(hostile.path, is_folder_trusted)
    assert "-one\n+two\n" in changes
    assert "new file, not in git: notes.txt" in changes
    assert hostile.is_harmless(changes)
    git = Git(hostile.path / "bare", is_folder_trusted)
    assert git.repository.root == hostile.path, "what looks like a bare repository is an ordinary folder"
    assert "config" in git.files()
    with pytest.raises(FolderNotTrusted):
        Git(hostile.path / "vendor", is_folder_trusted)
    assert hostile.is_harmless()


def test_a_worktree_of_a_trusted_folder_runs_no_program(hostile):
    trust_folder(find_repository(hostile.path))
    made = new_worktree(hostile.path, is_folder_trusted, "try")
    assert (made.path / "code.c").read_text() == "one\n"
    assert "4 files have a filter that did not run" in made.described()
    assert hostile.is_harmless()
    assert files_of(made.folder, is_folder_trusted)[0], "the worktree is trusted like its folder"
    assert hostile.is_harmless()


def test_trust_holds_for_the_repository_that_the_folder_had(hostile):
    trust_folder(find_repository(hostile.path))
    (hostile.path / ".git").rename(hostile.path / "moved")
    (hostile.path / ".git").write_text("gitdir: moved\n")
    with pytest.raises(ValueError, match="not a git repository"):
        Git(hostile.path, is_folder_trusted)
    (hostile.path / ".git").unlink()
    (hostile.path / ".git").symlink_to("moved")
    with pytest.raises(ValueError, match="not a git repository"):
        Git(hostile.path, is_folder_trusted)


@pytest.mark.parametrize("name", [".git/index", ".git/HEAD", ".git/info/exclude", ".gitignore", ".gitattributes"])
def test_a_pipe_in_the_place_of_a_file_of_git_does_not_block(hostile, name):
    (hostile.path / name).unlink()
    os.mkfifo(hostile.path / name)
    git = Git(hostile.path, lambda _: True, within=0.5)
    for ask in (git.files, git.diff, git.new_files):
        try:
            hostile.is_harmless(ask())
        except ValueError as error:
            assert any(it in str(error) for it in ("regular file", "was ended after", "cannot hash"))  # noqa: PT017
    assert hostile.is_harmless()


def test_an_attached_picture_is_described_and_not_waited_for(hostile):
    project = Project([hostile.path])
    shown = [described(hostile.path / name) for name in ("pipe.png", "zero.txt", "picture.png", "README.md")]
    assert shown[0] == "pipe.png"
    assert "18 bytes" in shown[-1]
    assert "leads out of the session's folder" in sent_as(hostile.path / "picture.png", project, TAKES)
    assert sent_as(hostile.path / "README.md", project, TAKES) == ""
    assert hostile.is_harmless(shown)


def test_a_project_s_file_is_not_read_through_a_link(hostile):
    assert KnownAgents.of(hostile.path).project is None
    settings = hostile.path / ".accord" / "agents.toml"
    settings.unlink()
    os.mkfifo(settings)
    assert KnownAgents.of(hostile.path).project is None
    assert hostile.is_harmless()


def test_accord_run_in_the_folder_is_harmless(hostile):
    command = [sys.executable, "-m", "accord", "run", "--allow", "none", "/read notes.txt"]
    done = subprocess.run(
        command, cwd=hostile.path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    assert hostile.is_harmless(done.stdout, done.stderr)


@pytest.mark.parametrize("name", [".git/config", ".GIT/hooks/post-commit", "hooks/post-commit", "vendor/.git/config"])
@pytest.mark.parametrize("spelling", ["plain", "with a dot", "with an ignored character"])
async def test_lent_files_are_not_written_below_git(hostile, name, spelling):
    changed = {
        "with a dot": name.replace(".git", ".git."),
        "with an ignored character": name.replace("git", "g\u200cit"),
    }
    path = hostile.path / changed.get(spelling, name)
    before = {it: it.read_bytes() for it in (hostile.path / ".git").rglob("*") if it.is_file()}
    agent = accord.Agent("writes")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        with pytest.raises(accord.PeerError, match="nothing is written to"):
            await turn.client.write_text_file(path, "[core]\n")
        await turn.client.write_text_file(hostile.path / ".github/workflow.yml", "ordinary\n")

    async with accord.connect(agent, accord.Client(files=True)) as remote:
        await (await remote.new_session(hostile.path)).prompt("go")
    assert (hostile.path / ".github" / "workflow.yml").exists()
    assert {it: it.read_bytes() for it in (hostile.path / ".git").rglob("*") if it.is_file()} == before


def test_a_listing_has_an_end(hostile):
    project = Project([hostile.path])
    assert not any(name.endswith("bottom.txt") for name in project.walk(hostile.path)), "64 levels are enough"
    assert len(list(project.walk(hostile.path, most=5))) <= 5
    seen = set()
    for name in project.walk(hostile.path, stopped=lambda: "bare/HEAD" in seen):
        seen.add(name)
    assert "bare/config" in seen
    assert "elsewhere/.git" not in seen, "no further folder is entered once it is stopped"
    assert hostile.is_harmless()


def test_a_file_that_the_user_names_elsewhere_must_be_ordinary(hostile, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/proc/self/environ"), tmp_path):
        with pytest.raises(ValueError, match=r"not a (regular )?file"):
            read_named(path, 100)
    with pytest.raises(ValueError, match="larger than 10 bytes"):
        read_named(hostile.secret, 10)
