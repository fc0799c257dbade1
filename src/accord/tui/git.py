"""Runs git in a folder, for mentions and worktrees."""

from __future__ import annotations

import subprocess
from pathlib import Path

WITHIN = 10.0
"""Seconds for a command that only looks."""


def git(folder: Path, *arguments: str, within: float = WITHIN) -> str:
    """What git says; raises ValueError with its own words if it fails, or cannot be run."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=within, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"git cannot be run here: {error}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ValueError(said[-1] if said else f"git ended with {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def has_commit(folder: Path) -> bool:
    """Whether the repository of a folder has a commit."""
    try:
        return bool(git(folder, "rev-parse", "--verify", "--quiet", "HEAD"))
    except ValueError:
        return False
