"""Logging in by the methods that an agent offers.

| method | how |
|---|---|
| `agent` | `authenticate`: the agent does the rest by itself |
| `env_var` | the agent is restarted with the variables, then `authenticate` is sent |
| `terminal`, or `_meta["terminal-auth"]` | the login runs at our terminal; exit code 0 is success; nothing is sent |
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence

from accord.client.live_agent import LiveAgent
from accord.errors import AccordError
from accord.schema import legacy, v1
from accord.schema.base import Json, Unknown
from accord.transports import CommandTarget
from accord.transports.launch import environment


def method_of(methods: Sequence[v1.AuthMethod], wanted: str | None) -> v1.AuthMethod:
    """The method with this id, or the only one if `wanted` is None; raises AccordError."""
    ids = [method.tag if isinstance(method, Unknown) else method.id for method in methods]
    if wanted is None and len(methods) == 1:
        return methods[0]
    for method, its_id in zip(methods, ids, strict=True):
        if its_id == wanted:
            return method
    if not methods:
        raise AccordError("the agent offers no login method; it may not need one")
    asked = "name one of several login methods" if wanted is None else f"the agent has no login method {wanted!r}"
    raise AccordError(f"{asked}; it offers {', '.join(ids)}")


async def log_in(
    remote: LiveAgent,
    method: v1.AuthMethod,
    env: Mapping[str, str],
    meta: dict[str, Json] | None = None,
) -> None:
    """Log in by this method; `meta` is for the request, if there is one."""
    if isinstance(method, Unknown):
        raise AccordError(f"login method of unknown type {method.tag!r}; this version of Accord cannot use it")
    if (command := terminal_command(remote, method)) is not None:
        await _at_the_terminal(remote, *command)
    elif isinstance(method, v1.AuthMethodEnvVar):
        await _with_variables(remote, method, env)
    else:
        await remote.request(v1.AuthenticateRequest(method.id, meta=meta))


def terminal_command(remote: LiveAgent, method: v1.AuthMethod) -> tuple[list[str], dict[str, str]] | None:
    """The command and the variables of a terminal login; None for another kind."""
    if isinstance(method, Unknown):
        return None
    if isinstance(method, v1.AuthMethodTerminal):
        return [*_command(remote).command, *method.args], method.env
    if (older := legacy.terminal_auth(method.meta)) is not None:
        return [older.command, *older.args], older.env
    return None


async def _with_variables(remote: LiveAgent, method: v1.AuthMethodEnvVar, env: Mapping[str, str]) -> None:
    target = _command(remote)
    if missing := method.missing({**os.environ, **env}):
        names = ", ".join(wanted.name for wanted in missing)
        raise AccordError(f"login needs {names} in the environment; set it there, or pass it in `env`")
    given = {
        wanted.name: value for wanted in method.vars if (value := env.get(wanted.name) or os.environ.get(wanted.name))
    }
    if any(target.env.get(name) != value for name, value in given.items()):
        target.env.update(given)
        await remote.restart("it gets variables for a login")
    await remote.request(v1.AuthenticateRequest(method.id))


async def _at_the_terminal(remote: LiveAgent, command: Sequence[str], env: Mapping[str, str]) -> None:
    target = _command(remote)
    variables = environment({**target.env, **env}, target.inherit)
    code = await _run(command, variables, target.cwd)
    if code != 0:
        raise AccordError(f"the login command failed with exit code {code}")


async def _run(command: Sequence[str], env: Mapping[str, str], cwd: object) -> int:
    """Run a command with our standard streams; terminated if we are cancelled."""
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
        raise AccordError(
            "this login method needs an agent that is started by a command, not one behind a URL or in memory"
        )
    return remote.target
