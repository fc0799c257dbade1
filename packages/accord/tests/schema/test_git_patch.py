"""A file's two texts as a git patch, and a git patch's texts."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings, strategies as st

from accord.schema import git_patch

PATH = "/home/me/hello.txt"
LIKE_A_PATCH = ["--- x\n", "+++ y\n", "@@ -1 +1 @@\n", "diff --git a b\n", "\\ No newline\n"]
LINES = ["a\n", "b\n", "\n", "c\r\n", "\u2028\x0b\n", "end", *LIKE_A_PATCH]
texts = st.lists(st.sampled_from(LINES), max_size=12).map("".join)


def test_a_patch_reads_like_git_s():
    assert git_patch.write(PATH, "hello\n", "HELLO\n") == (
        "diff --git /home/me/hello.txt /home/me/hello.txt\n"
        "index ce013625030ba8dba906f756967f9e9ca394464a..e427984d4a2c1904681f2e2ee5980f37640d353f 100644\n"
        "--- /home/me/hello.txt\n"
        "+++ /home/me/hello.txt\n"
        "@@ -1 +1 @@\n"
        "-hello\n"
        "+HELLO\n"
    )


def test_a_new_file_comes_from_nothing():
    patch = git_patch.write(PATH, None, "no newline")
    assert "new file mode 100644\n" in patch
    assert "--- /dev/null\n" in patch
    assert patch.endswith("@@ -0,0 +1 @@\n+no newline\n\\ No newline at end of file\n")
    assert git_patch.read(git_patch.write(PATH, None, "")) == [git_patch.FileTexts(PATH, None, "")]


@given(st.none() | texts, texts, st.sampled_from([PATH, 'a "b"\\\t', "C:\\new"]))
def test_with_the_whole_file_shown_both_texts_come_back(old, new, path):
    patch = git_patch.write(path, old, new, context=None)
    assert git_patch.read(patch) == [git_patch.FileTexts(path, old, new)]


@given(texts, texts, st.sampled_from([0, 1, 3]))
def test_a_patch_that_shows_less_is_refused_or_whole_by_chance(old, new, context):
    try:
        [found] = git_patch.read(git_patch.write(PATH, old, new, context=context))
    except ValueError:
        return
    assert (found.old, found.new) == (old, new)


def test_far_changes_are_hunks_of_their_own():
    old = [f"{number}\n" for number in range(100)]
    new = [*old[:10], "x\n", *old[11:50], *old[52:]]
    heads = [line for line in git_patch.write(PATH, "".join(old), "".join(new)).splitlines() if line.startswith("@@")]
    assert heads == ["@@ -8,7 +8,7 @@", "@@ -48,8 +48,6 @@"]


def test_lines_that_are_there_once_keep_their_place_in_a_long_file():
    old = [f"{number}\n" for number in range(5_000)]
    new = ["first\n", *old[:1_000], "x\n", *old[1_001:4_000], *old[4_002:]]
    patch = git_patch.write(PATH, "".join(old), "".join(new), context=0)
    changed = [line for line in patch.splitlines()[5:] if not line.startswith("@@")]
    assert changed == ["+first", "-1000", "+x", "-4000", "-4001"]


def test_a_long_stretch_with_too_many_equal_lines_is_replaced_as_a_whole():
    old = [f"{number % 100}\n" for number in range(6_000)]
    new = [f"{number * 7 % 100}\n" for number in range(6_000)]
    patch = git_patch.write(PATH, "".join(["same\n", *old]), "".join(["same\n", *new]), context=None)
    marks = "".join(line[0] for line in patch.splitlines()[5:])
    assert marks == " " * 2 + "-" * 5_999 + "+" * 5_999
    assert git_patch.read(patch)[0].new == "".join(["same\n", *new])


def test_lines_that_repeat_often_do_not_hide_a_small_change():
    old = ["a\n", "x\n"] * 3_000
    patch = git_patch.write(PATH, "".join(old), "".join([*old[:3_000], "y\n", *old[3_001:]]), context=0)
    assert patch.splitlines()[5:] == ["-a", "+y"]


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("", "not a git patch"),
        ("diff --git a/x b/x\nsimilarity index 100%\nrename from x\nrename to y\n", "only text files"),
        ("diff --git a/x b/x\nindex 1234567..7654321\nBinary files a/x and b/x differ\n", "only text files"),
        ("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "has no index line"),
        ("diff --git a/x b/x\nindex 1234567..7654321\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "whole file"),
        ("diff --git a/x b/x\nindex 1234567..7654321\n--- a/x\n+++ b/x\n@@ -5 +5 @@\n-a\n+b\n", "lines are missing"),
        (
            "diff --git a/x b/x\nindex 1234567..7654321\n--- a/x\n+++ b/x\n@@ -1,9 +1 @@\n-a\n",
            "in the middle of a change",
        ),
    ],
)
def test_texts_that_cannot_be_put_together_are_refused(patch, why):
    with pytest.raises(ValueError, match=why):
        git_patch.read(patch)


def test_a_file_of_a_patch_is_known_by_the_end_of_its_path():
    [file] = git_patch.read(git_patch.write("b/src/x.py", None, "x"))
    assert file.may_be("/home/me/src/x.py")
    assert not file.may_be("/home/me/mysrc/x.py")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=25, deadline=None)
@given(st.none() | texts, texts)
def test_git_applies_what_is_written_and_what_it_writes_is_read(tmp_path_factory, old, new):
    folder = tmp_path_factory.mktemp("git")
    (folder / "new.txt").write_bytes(new.encode())
    file = folder / "old.txt"
    if old is not None:
        file.write_bytes(old.encode())
    if old != new:
        patch = git_patch.write("old.txt", old, new)
        subprocess.run(["git", "apply", "-p0"], cwd=folder, input=patch.encode(), check=True, capture_output=True)
        assert file.read_bytes() == new.encode()
    if old not in (None, new):
        file.write_bytes(old.encode())
        made = subprocess.run(
            ["git", "diff", "--no-index", "-U1000", "old.txt", "new.txt"], cwd=folder, check=False, capture_output=True
        )
        assert git_patch.read(made.stdout.decode()) == [git_patch.FileTexts("b/new.txt", old, new)]
