"""Runs the agent or the proxy of a Python file: `python -m accord.agent_file FILE.py[:NAME] [ARGUMENT...]`.

`FILE.py` runs as a program, as `python FILE.py` would. If it ends without having served its input, because it defines
an agent and does not run it, that agent is served. `FILE.py:NAME` is loaded as a module, and the agent in its variable
NAME is served. In both cases the client is the program that started this one. A `Proxy` or a `Chain` is served like an
agent. `accord dev` also takes a module instead of the file: `PACKAGE.MODULE` or `PACKAGE.MODULE:NAME`.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

WRONG_USAGE = 2

PYTHON_FILE = re.compile(r"(?P<file>.+\.py)(?::(?P<name>[^\W\d]\w*))?", re.DOTALL)
"""`FILE.py`, or `FILE.py:NAME` for the agent in a variable of the file."""


def python_command(words: Sequence[str]) -> list[str] | None:
    """Return the command for a Python file, `FILE.py` or `FILE.py:NAME`, and its arguments; None for another first
    word.
    """
    from accord.installation import own_command  # the program that runs the file does without these
    from accord.transports.launch import program_file

    found = PYTHON_FILE.fullmatch(words[0])
    if found is None or (not Path(found["file"]).is_file() and program_file(words[0]) is not None):
        return None
    return own_command("accord.agent_file", *words)


def startable(words: Sequence[str]) -> list[str]:
    """Return the same command; a Python file that is not executable is started with this Python."""
    from accord.transports.launch import program_file

    python = python_command(words) if words else None
    return list(words) if python is None or program_file(words[0]) is not None else python


class NoAgent(Exception):
    """The file has no agent that could be served, or no such file exists."""


def main(arguments: list[str]) -> int:
    if not arguments:
        print("usage: python -m accord.agent_file FILE.py[:NAME] [ARGUMENT...]", file=sys.stderr)
        return WRONG_USAGE
    try:
        agent = load_agent(arguments[0], arguments[1:])
    except NoAgent as error:
        print(f"accord: {error}", file=sys.stderr)
        return WRONG_USAGE
    if agent is not None:
        agent.run()  # returns at once at the end of the input, which a program that ran its agent has reached
    return 0


def split(written: str) -> tuple[str, str | None]:
    """Split the file or module from the name of the agent in it.

    >>> split("agents/mine.py:agent"), split("mine.py"), split("team.mine:agent")
    (('agents/mine.py', 'agent'), ('mine.py', None), ('team.mine', 'agent'))
    """
    place, colon, name = written.rpartition(":")
    return (place, name) if colon and name.isidentifier() else (written, None)


class Runnable(Protocol):
    """An `Agent`, a `Proxy` or a `Chain`."""

    def run(self) -> None:
        """Serve the program that started this one."""
        ...


def load_agent(written: str, arguments: Sequence[str]) -> Runnable | None:
    """Run this file or module, and return the agent to serve; None if it is a program that needs none.

    Raises NoAgent if the file or the agent does not exist, or the choice is ambiguous.
    """
    place, name = split(written)
    if (
        PYTHON_FILE.fullmatch(place) is None
        and not Path(place).is_file()
        and all(map(str.isidentifier, place.split(".")))
    ):
        found = _globals_of_module(place, arguments)
    elif Path(place).is_file():
        found = _globals_of(place, "__main__" if name is None else Path(place).stem, arguments)
    else:
        raise NoAgent(f"file not found: {place}")
    agents = {key: value for key, value in found.items() if _is_served(value)}
    if name is None:
        return _only(agents, place)
    if name not in agents:
        raise NoAgent(f"{place} has no agent {name!r}; it has {', '.join(agents) or 'no agent'}")
    served: Runnable = agents[name]
    return served


def _globals_of_module(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Import a module from the current folder, or from the import path."""
    sys.path.insert(0, str(Path.cwd()))
    sys.argv = [name, *arguments]
    return vars(importlib.import_module(name))


def _globals_of(file: str, name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run the file as a module of this name. It stays importable: types with string annotations look names up there."""
    path = Path(file)
    sys.path.insert(0, str(path.resolve().parent))  # as for a program, whose own folder comes first
    sys.argv = [file, *arguments]
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = file
    exec(compile(path.read_bytes(), file, "exec"), vars(module))
    return vars(module)


def _is_served(value: object) -> bool:
    """Whether this is an agent, a proxy or a chain; a program that has one has loaded its module."""
    homes = ("accord.agent.agent", "accord.proxy.proxy", "accord.proxy.chain")
    kinds = [getattr(sys.modules[home], home.rpartition(".")[2].title()) for home in homes if home in sys.modules]
    return isinstance(value, tuple(kinds))


def _only(agents: Mapping[str, Runnable], place: str) -> Runnable | None:
    if len({id(agent) for agent in agents.values()}) > 1:
        named = " or ".join(f"{Path(place).name}:{name}" for name in agents)
        raise NoAgent(f"{place} has several agents: name one as {named}")
    return next(iter(agents.values()), None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
