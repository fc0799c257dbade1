"""Logging in, by whichever method the agent offers.

| method | what is done |
|---|---|
| `agent` | `authenticate`: the agent does it by itself |
| `env_var` | the agent is started anew with the variables, and then told `authenticate` |
| `terminal`, or `_meta["terminal-auth"]` | the login runs at our terminal; exit code 0 means yes, and nothing is sent |
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence

from accord.client.live_agent import LiveAgent
from accord.client.target import CommandTarget
from accord.errors import AccordError
from accord.schema import legacy, v1
from accord.schema.base import Unknown
from accord.transports.launch import environment


def method_of(methods: Sequence[v1.AuthMethod], wanted: str | None) -> v1.AuthMethod:
    """The method with this id, or the only one; raises AccordError."""
    ids = [method.tag if isinstance(method, Unknown) else method.id for method in methods]
    if wanted is None and len(methods) == 1:
        return methods[0]
    for method, its_id in zip(methods, ids, strict=True):
        if its_id == wanted:
            return method
    if not methods:
        raise AccordError("the agent offers no way to log in; it may not need one")
    asked = "which way to log in?" if wanted is None else f"the agent has no way to log in called {wanted!r}."
    raise AccordError(f"{asked} There is {', '.join(ids)}")


async def log_in(remote: LiveAgent, method: v1.AuthMethod, env: Mapping[str, str]) -> None:
    """Log in by this method."""
    if isinstance(method, Unknown):
        raise AccordError(f"this way to log in is not known here: {method.tag}")
    if (command := terminal_command(remote, method)) is not None:
        await _at_the_terminal(remote, *command)
    elif isinstance(method, v1.AuthMethodEnvVar):
        await _with_variables(remote, method, env)
    else:
        await remote.request(v1.AuthenticateRequest(method.id))


def terminal_command(remote: LiveAgent, method: v1.AuthMethod) -> tuple[list[str], dict[str, str]] | None:
    """The command and the variables of a terminal login; None for another kind."""
    if isinstance(method, Unknown):
        return None
    if isinstance(method, v1.AuthMethodTerminal):
        return [*_command(remote).command, *method.args], method.env
    if (older := legacy.terminal_auth(method.meta)) is not None:
        return [older.command, *older.args], older.env
    return None


def missing_variables(method: v1.AuthMethodEnvVar, env: Mapping[str, str]) -> list[v1.AuthEnvVar]:
    """What a method needs and nobody has given yet."""
    return [
        wanted
        for wanted in method.vars
        if not wanted.optional and not (env.get(wanted.name) or os.environ.get(wanted.name))
    ]


async def _with_variables(remote: LiveAgent, method: v1.AuthMethodEnvVar, env: Mapping[str, str]) -> None:
    target = _command(remote)
    if missing := missing_variables(method, env):
        raise AccordError(f"logging in needs {', '.join(wanted.name for wanted in missing)} in the environment")
    given = {
        wanted.name: value for wanted in method.vars if (value := env.get(wanted.name) or os.environ.get(wanted.name))
    }
    if any(target.env.get(name) != value for name, value in given.items()):
        target.env.update(given)
        await remote.restart("it gets variables to log in with")
    await remote.request(v1.AuthenticateRequest(method.id))


async def _at_the_terminal(remote: LiveAgent, command: Sequence[str], env: Mapping[str, str]) -> None:
    target = _command(remote)
    variables = environment({**target.env, **env}, target.inherit)
    code = await _run(command, variables, target.cwd)
    if code != 0:
        raise AccordError(f"the login ended with exit code {code}")


async def _run(command: Sequence[str], env: Mapping[str, str], cwd: object) -> int:
    """Run it with our own standard streams; ended if we are cancelled."""
    try:
        process = await asyncio.create_subprocess_exec(*command, env=dict(env), cwd=cwd, stdin=None, stdout=None)  # type: ignore[arg-type]
    except (OSError, subprocess.SubprocessError) as error:
        raise AccordError(f"cannot start {command[0]}: {error}") from error
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


def _command(remote: LiveAgent) -> CommandTarget:
    if not isinstance(remote.target, CommandTarget):
        raise AccordError("this way to log in needs an agent that is started by a command")
    return remote.target
