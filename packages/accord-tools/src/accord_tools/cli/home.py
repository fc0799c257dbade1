"""`accord` without a command: the agents and sessions on this machine, and what to type next.

Nothing is fetched, and no agent is started. Of keys only the names of their variables are shown.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from accord import __version__
from accord.installation import install_command
from accord.printable import label, printable
from accord.transports.launch import program_file
from accord_tools.cli.agent_options import known_agents
from accord_tools.cli.console import streams, width, wrapped, write_out
from accord_tools.registry.well_known import WELL_KNOWN

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
OF_OURS = KEYS[:2]
"""The keys that `accord agent` accepts."""
FEW, MANY = 3, 6
"""How many agents and sessions of a kind are shown, in a terminal with less than `HIGH` rows, and else."""
HIGH = 30


LONGEST = 40
"""Columns of a folder, whose end is shown."""


class AgentHere(NamedTuple):
    """An agent that can be started on this machine."""

    name: str
    about: str
    words: str
    """Its name in a command: `-a gemini`, or `-- opencode acp`."""


def show_home() -> None:
    """Print the home screen."""
    look = streams().answer
    agents = list(agents_here())
    is_low = look.is_terminal and shutil.get_terminal_size().lines < HIGH
    most = FEW if is_low else MANY
    installable = [(it.id, it.description) for it in WELL_KNOWN if it.id not in {agent.name for agent in agents}]
    sections = {
        "Agents on this machine": _columns([(it.name, it.about) for it in agents[:most]]),
        "Agents to install: accord agents install ID": _columns(installable[:most]),
        "Last sessions: accord sessions list": list(_sessions(most - 1)),
        "What to type next": _columns(_next_steps(agents[0])),
    }
    lines = [f"{look.painted('bold', f'Accord {__version__}')}  {keys_here()}"]
    room = width(1) if look.is_terminal else WIDE
    for title, rows in sections.items():
        if rows:
            lines += ["", look.painted("bold", title), *(wrapped(f"  {printable(row)}", room) for row in rows)]
    write_out("\n".join([*lines, ""]))


WIDE = 100
"""The width without a terminal."""


def keys_here() -> str:
    """Return which keys of models are set, by the names of their variables."""
    keys = [name for name in KEYS if os.environ.get(name)]
    return f"keys: {', '.join(keys)}" if keys else f"no key in {', '.join(KEYS)}"


def agents_here() -> Iterator[AgentHere]:
    """Return the agents that can be started, the preferred one first: the coding agent, if there is a key for it."""
    has_key = any(os.environ.get(name) for name in OF_OURS)
    has_extra = find_spec("anthropic") is not None or find_spec("openai") is not None
    ours = AgentHere("accord agent", "the coding agent that comes with Accord", "-- accord agent")
    if has_key and has_extra:
        yield ours
    named = list(_named())
    yield from named
    yield from _on_path({it.name for it in named})
    yield AgentHere("demo", "shows every feature, without a model", "-- accord demo")
    if not has_key:
        yield ours._replace(about="comes with Accord; needs a key: accord agent login")
    elif not has_extra:
        yield ours._replace(about=f"comes with Accord; needs {install_command('agent')}")


def _named() -> Iterator[AgentHere]:
    """Return agents with names, the default first, and installed ones."""
    from accord_tools.configuration.agents_file import project_file, user_file
    from accord_tools.registry.installed_agents import all_installed

    if user_file().exists() or project_file() is not None:
        from accord_tools.configuration.trust import is_trusted

        usable = [agent for agent in known_agents() if not agent.is_hidden and is_trusted(agent.file)]
        for agent in sorted(usable, key=lambda agent: not agent.is_default):
            about = agent.settings.description or label(agent.settings.where, 50)
            yield AgentHere(agent.name, about + (" (default)" if agent.is_default else ""), f"-a {agent.name}")
    for installed in all_installed():
        yield AgentHere(installed.id, f"{installed.name} {installed.version}, installed", f"-a {installed.id}")


def _on_path(known: set[str]) -> Iterator[AgentHere]:
    for agent in WELL_KNOWN:
        if agent.id not in known and program_file(agent.command[0]) is not None:
            yield AgentHere(agent.id, f"{agent.description}; on PATH", f"-- {shlex.join(agent.command)}")


def _sessions(most: int) -> Iterator[str]:
    """The last sessions that commands have opened."""
    from accord_tools.configuration.last_sessions import latest_opened
    from accord_tools.presentation.quantities import minute_of

    home = str(Path.home())
    for session in latest_opened(most):
        folder = f"~{session.folder.removeprefix(home)}" if session.folder.startswith(home) else session.folder
        folder = folder if len(folder) <= LONGEST else f"…{folder[1 - LONGEST :]}"
        yield f"{minute_of(session.at)}  {label(session.id, 12):12}  {folder}"


def _next_steps(first: AgentHere) -> list[tuple[str, str]]:
    return [
        (f"accord chat {first.words}", "talk to it"),
        (f'accord run "What is in here?" {first.words}', "ask it once"),
        ("accord new agent my-agent", "write an agent"),
        ("accord --help", "all commands"),
    ]


def _columns(rows: list[tuple[str, str]]) -> list[str]:
    wide = max((len(name) for name, _ in rows), default=0)
    return [f"{name:{wide}}  {about}" for name, about in rows]
