"""What the model is told before the conversation: how to work, the machine, and the project's instructions."""

from __future__ import annotations

import asyncio
import os
import platform
from contextlib import suppress
from datetime import date
from pathlib import Path

from accord import Session
from accord.project.git import top_folder
from accord.project.project import Project
from accord_tools.coder.conversation import Conversation
from accord_tools.coder.modes import Mode

NAMES = ("AGENTS.md", "CLAUDE.md")
"""Files with a project's instructions; the first that a folder has counts."""

MOST = 40_000
"""Characters of a project's instructions that are read."""

HOW = """\
You are a coding agent. You work in the user's project with the tools that you have.

- Look before you act: read the files that you are about to change, and the code around them.
- Make the smallest change that does the whole task. Follow the style of the project.
- After a change, run the project's own checks or tests if there are any, and repair what you broke.
- For a task of several steps, show a plan first with show_plan and keep it up to date.
- If a tool fails, read why and try something else. Do not repeat a call that was refused.
- Be brief. Say at the end what you changed and what you could not do. Do not invent results."""

PLANNING = "You are in plan mode: only read, then answer with a plan. Change nothing."


async def instructions(session: Session[Conversation], mode: Mode) -> str:
    """The system prompt of a turn."""
    asked = session.system_prompt
    parts = [HOW if asked is None else asked.applied_to(HOW)]
    parts.append(f"Folder: {session.cwd}\nSystem: {platform.system()} {platform.machine()}\nDate: {date.today()}")  # noqa: DTZ011
    if mode.only_reads:
        parts.append(PLANNING)
    parts += await asyncio.to_thread(_of_project, session.cwd)
    if summary := session.state.summary:
        parts.append(f"The conversation so far, in short:\n{summary}")
    return "\n\n".join(parts)


def _of_project(folder: Path) -> list[str]:
    """The instructions of a folder and of those above it, up to the top of the working tree; the nearest last."""
    cwd = Path(os.path.realpath(folder))
    top = top_folder(cwd) or cwd
    folders = [cwd, *(place for place in cwd.parents if place.is_relative_to(top))]
    project = Project([top])
    return [text for folder in reversed(folders) if (text := _of_folder(project, folder)) is not None]


def _of_folder(project: Project, folder: Path) -> str | None:
    for name in NAMES:
        with suppress(OSError, ValueError):  # none, or no file of this project: a link out of it, a pipe, a device
            text = project.read(folder / name, 4 * MOST, cut=True).decode("utf-8", "replace")
            return f"Instructions of {folder / name}:\n{text[:MOST]}"
    return None
