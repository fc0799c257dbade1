"""Containers: each agent runs in its own, by podman or docker.

The container sees only the folders of this machine that are shared with it, each under its own path, so that the
folders of a session have the same names on both sides.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from accord.confinement.process_limits import Confined, Confinement, ProcessLimits, answer_of
from accord.errors import AccordError
from accord.transports.guard_process import birth_of
from accord.transports.launch import program_file

ENGINES = ("podman", "docker")
"""The programs that run containers, in the order in which they are looked for."""

PATIENCE = 10.0
"""Seconds that the engine has to answer a question, and to remove the containers of an ended server."""


_KILLED = 137
"""The exit code of a container whose first process was killed."""


class Container(msgspec.Struct, frozen=True):
    """Where agents run: an image, and the folders of this machine that are shared with it."""

    image: str
    """The image's name; the agent's command is run in it."""
    folders: Sequence[str | Path] = ()
    """Folders of this machine that the agent may read and write, each under the same path."""
    engine: str | None = None
    """The program that runs it; None is podman, or docker if that is missing."""
    network: str | None = None
    """The network, by the engine's name for it: `none` for no network; None is the engine's default."""


def command_in_container(
    engine: str,
    name: str,
    container: Container,
    limits: ProcessLimits,
    command: Sequence[str],
    variables: Sequence[str],
) -> list[str]:
    """Return the command that starts another one in a container of this name.

    The command has only the names of variables, because everyone on this machine can read it.

    >>> " ".join(command_in_container("podman", "a", Container("img"), ProcessLimits(tasks=9), ["agent"], ["KEY"]))
    'podman run --name a -i --init --cap-drop=ALL --security-opt=no-new-privileges --pids-limit=9 --env KEY img agent'
    """
    options = ["--name", name, "-i", "--init", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    if limits.memory is not None:
        options += [f"--memory={limits.memory}", f"--memory-swap={limits.memory}"]
    if limits.cpus is not None:
        options.append(f"--cpus={limits.cpus:g}")
    if limits.tasks is not None:
        options.append(f"--pids-limit={limits.tasks}")
    if container.network is not None:
        options.append(f"--network={container.network}")
    for folder in map(str, container.folders):
        options += ["--volume", f"{folder}:{folder}"]
    for variable in variables:
        options += ["--env", variable]
    return [engine, "run", *options, container.image, *command]


class Containers(Confinement):
    """A container for each agent. Raises AccordError if there is no engine, or a folder cannot be shared."""

    def __init__(self, container: Container, limits: ProcessLimits) -> None:
        self._container = container
        self._limits = limits
        self._engine = _engine(container.engine)
        for folder in map(Path, container.folders):
            if not folder.is_absolute() or ":" in str(folder) or not folder.is_dir():
                raise AccordError(f"a folder for containers must be an absolute path without colons, got {folder}")

    def confine(self, command: Sequence[str], env: Mapping[str, str | None]) -> Confined:
        name = f"accord-{_here()}-{os.getpid()}-{birth_of(os.getpid())}-{secrets.token_hex(4)}"
        variables = [variable for variable, value in env.items() if value is not None]
        words = command_in_container(self._engine, name, self._container, self._limits, command, variables)
        return _InContainer(self._engine, name, words, self._limits)

    def sweep(self) -> None:
        try:
            names = self._ask("ps", "--all", "--format", "{{.Names}}", "--filter", f"name=accord-{_here()}-").split()
            if left := [name for name in names if _has_ended(name)]:
                self._ask("rm", "--force", *left)
        except (OSError, subprocess.SubprocessError) as error:
            raise AccordError(f"{Path(self._engine).name} cannot be used: {_last_line(error)}") from error

    def _ask(self, *words: str) -> str:
        return subprocess.run(
            [self._engine, *words], capture_output=True, text=True, check=True, timeout=PATIENCE
        ).stdout


class _InContainer(Confined):
    def __init__(self, engine: str, name: str, command: list[str], limits: ProcessLimits) -> None:
        self._engine = engine
        self._name = name
        self._limits = limits
        self.command = command

    async def limit_hit(self) -> str:
        if self._limits.memory is None:
            return ""
        state = await self._ask("inspect", "--format", "{{.State.OOMKilled}} {{.State.ExitCode}}")
        if state.startswith("true"):
            return f"the agent ran out of memory: it may use {self._limits.memory_words}"
        if state.endswith(f" {_KILLED}"):  # podman does not learn the reason if control groups are of version 1
            return f"the agent was killed, perhaps because it ran out of memory: it may use {self._limits.memory_words}"
        return ""

    async def close(self) -> None:
        await self._ask("rm", "--force")

    async def _ask(self, *words: str) -> str:
        try:
            return await answer_of(self._engine, *words, self._name)
        except OSError:  # the engine has been removed, or no more files can be opened
            return ""


def _engine(given: str | None) -> str:
    for engine in (given,) if given else ENGINES:
        if (program := program_file(engine)) is not None:
            return program
    raise AccordError(f"program not found: {given or ' or '.join(ENGINES)}, to run agents in containers")


def _here() -> str:
    """Return this machine's part of a container's name: another machine may share the engine."""
    return re.sub(r"[^A-Za-z0-9]", "", socket.gethostname()) or "here"


def _has_ended(name: str) -> bool:
    """Whether the server that started the container has ended."""
    pid, birth = name.split("-")[-3:-1]
    return str(birth_of(int(pid))) != birth


def _last_line(error: Exception) -> str:
    text = (getattr(error, "stderr", None) or str(error)).strip()
    return text.splitlines()[-1] if text else type(error).__name__
