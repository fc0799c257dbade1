"""The change that is reviewed: its text as a unified diff, and the lines that it adds in each file."""

import re
import subprocess
from pathlib import Path

import msgspec

HUNK = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+(?P<start>\d+)(?:,(?P<new>\d+))? @@")


class Changes(msgspec.Struct, frozen=True):
    """A change of several files."""

    text: str
    lines: dict[str, set[int]]
    """The lines that are new or different, by the file that they are in."""

    @classmethod
    def of(cls, text: str) -> "Changes":
        """Read a unified diff."""
        lines: dict[str, set[int]] = {}
        file, number, old, new = None, 0, 0, 0
        for line in text.splitlines():
            if old <= 0 and new <= 0:  # not inside a hunk, whose lines may look like anything
                if line.startswith("+++ "):
                    file = file_of(line)
                elif hunk := HUNK.match(line):
                    number, old, new = int(hunk["start"]), int(hunk["old"] or 1), int(hunk["new"] or 1)
                continue
            if line.startswith("+") and file is not None:
                lines.setdefault(file, set()).add(number)
            if not line.startswith(("-", "\\")):
                number, new = number + 1, new - 1
            if not line.startswith(("+", "\\")):
                old -= 1
        return cls(text, lines)

    @classmethod
    def in_git(cls, span: str) -> "Changes":
        """What git says about a range of commits, such as `main...HEAD`."""
        return cls.of(git("diff", "--no-ext-diff", "--no-color", "--unified=10", "--end-of-options", span, "--"))

    @classmethod
    def in_patch(cls, path: str | Path) -> "Changes":
        """The change in a patch file."""
        return cls.of(Path(path).read_text(encoding="utf-8", errors="replace"))


def file_of(header: str) -> str | None:
    """The file of a line `+++ b/src/a.py`; None for a file that was deleted."""
    name = header[4:].partition("\t")[0]
    return None if name == "/dev/null" else name.removeprefix("b/")


def git(*arguments: str) -> str:
    """What a git command prints; raises CalledProcessError."""
    return subprocess.run(
        ["git", "-c", "core.quotePath=false", *arguments], check=True, capture_output=True, text=True, errors="replace"
    ).stdout


def state_of_folder() -> str | None:
    """All that a change of the folder would change; None outside of a repository."""
    try:
        return git("rev-parse", "HEAD") + git("status", "--porcelain", "--untracked-files=all") + git("diff", "HEAD")
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None
