"""Real agents of the official Python SDK on our engine: `python -m accord.compat.acp` gives them our modules."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from interop.real_agents import DEEPAGENTS, HERMES, PYDANTIC, RealAgent

ROOT = Path(__file__).resolve().parents[1]
RUN = ("{bin}/python", "-m", "accord.compat.acp")


def on_our_engine(agent: RealAgent) -> RealAgent:
    """The same agent, which imports our modules in place of the official SDK's."""
    program = agent.command[1:] if agent.command[0] == "{bin}/python" else agent.command

    def settings(url: str, home: Path) -> Mapping[str, str]:
        return {**agent.settings(url, home), "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(packages(home))])}

    return dataclasses.replace(agent, command=(*RUN, *program), settings=settings)


def packages(home: Path) -> Path:
    """A folder with what Accord needs: these agents' environments have the official SDK, and not our dependency."""
    folder = home / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "msgspec"
    if not link.exists():
        link.symlink_to(Path(msgspec.__file__).parent, target_is_directory=True)
    return folder


AGENTS = {agent.name: on_our_engine(agent) for agent in (PYDANTIC, DEEPAGENTS, HERMES)}
