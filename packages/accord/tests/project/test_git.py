"""What `Git` says of a repository without running git."""

import subprocess

import pytest

from accord.project.git import Git


@pytest.fixture
def git(tmp_path):
    """Runs git in a repository with one commit on the branch `a/trunk`."""

    def git(*arguments):
        own = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        subprocess.run(["git", *own, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch", "a/trunk")
    git("commit", "--allow-empty", "--message", "First")
    return git


def test_the_branch_is_the_one_that_head_names_and_none_if_head_is_a_commit(git, tmp_path):
    repository = Git(tmp_path, lambda _: True)
    commit = repository.head
    assert (repository.branch, len(commit)) == ("a/trunk", 40)
    git("pack-refs", "--all")
    assert (repository.branch, repository.head) == ("a/trunk", commit)
    git("checkout", "--detach")
    assert (repository.branch, repository.head) == (None, commit)
