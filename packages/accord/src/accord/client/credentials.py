"""Logging in to an agent by the methods that it offers, and setting the providers of its models.

| method | how |
|---|---|
| `agent` | `authenticate`: the agent does the rest by itself |
| `env_var` | the agent is restarted with the variables, then `authenticate` is sent |
| `terminal`, or `_meta["terminal-auth"]` | the login runs at our terminal; exit code 0 is success; nothing is sent |
"""

# The private members of an agent are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from accord._internal.endpoint import Endpoint
from accord.errors import AccordError
from accord.mistakes import wrong_type
from accord.schema import legacy, v1
from accord.schema.base import JsonObject, Unknown
from accord.transports import CommandTarget

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent
    from accord.dialects.v2_requests import V2Agent
    from accord.engine.peer import Peer


def method_of(methods: Sequence[v1.AuthMethod], wanted: str | None) -> v1.AuthMethod:
    """Return the method with this id, or the only one if `wanted` is None; raises AccordError."""
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
    remote: RemoteAgent, method: v1.AuthMethod, env: Mapping[str, str], meta: JsonObject | None = None
) -> JsonObject:
    """Log in by this method; `meta` is for the request, if there is one. Returns the `_meta` of the answer."""
    if isinstance(method, Unknown):
        raise AccordError(f"login method of unknown type {method.tag!r}; this version of Accord cannot use it")
    if (command := terminal_command(remote, method)) is not None:
        await _at_the_terminal(remote, *command)
        return {}
    if isinstance(method, v1.AuthMethodEnvVar):
        await _with_variables(remote, method, env)
    return (await remote.request(v1.AuthenticateRequest(method.id, meta=meta))).meta or {}


def terminal_command(remote: RemoteAgent, method: v1.AuthMethod) -> tuple[list[str], dict[str, str]] | None:
    """Return the command and the variables of a terminal login; None for another kind."""
    if isinstance(method, Unknown):
        return None
    if isinstance(method, v1.AuthMethodTerminal):
        return [*_command(remote).command, *method.args], method.env
    if (older := legacy.terminal_auth(method.meta)) is not None:
        return [older.command, *older.args], older.env
    return None


async def _with_variables(remote: RemoteAgent, method: v1.AuthMethodEnvVar, env: Mapping[str, str]) -> None:
    target = _command(remote)
    if missing := method.missing({**os.environ, **env}):
        names = ", ".join(wanted.name for wanted in missing)
        raise AccordError(f"login needs {names} in the environment; set it there, or pass it in `env`")
    given = {
        wanted.name: value for wanted in method.vars if (value := env.get(wanted.name) or os.environ.get(wanted.name))
    }
    if any(target.env.get(name) != value for name, value in given.items()):
        target.env.update(given)
        await remote._restarter.restart("it gets variables for a login")


async def _at_the_terminal(remote: RemoteAgent, command: Sequence[str], env: Mapping[str, str]) -> None:
    from accord.transports.launch import environment

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


def _command(remote: RemoteAgent) -> CommandTarget:
    if not isinstance(remote._target, CommandTarget):
        raise AccordError(
            "this login method needs an agent that is started by a command, not one behind a URL or in memory"
        )
    return remote._target


Requester: TypeAlias = "Peer | V2Agent | RemoteAgent"
"""Sends the requests of version 1, on a new connection or on that of a connected agent."""


class Providers:
    """The providers of one agent, which may be restarted."""

    def __init__(self, wanted: Mapping[str, Endpoint] | None = None) -> None:
        self._wanted: dict[str, Endpoint | None] = dict(_checked({} if wanted is None else wanted))
        """The settings for every connection; None for a disabled provider."""
        self._listed: dict[str, v1.ProviderInfo] = {}
        """The providers as the agent listed them last."""

    async def list(
        self, agent: Requester, seconds: float | None = None, meta: JsonObject | None = None
    ) -> list[v1.ProviderInfo]:
        listed = (await agent.request(v1.ListProvidersRequest(meta=meta), timeout=seconds)).providers
        self._listed = {it.provider_id: it for it in listed}
        return listed

    async def set(
        self, agent: Requester, provider_id: str, endpoint: Endpoint, meta: JsonObject | None = None
    ) -> JsonObject:
        """Set a provider, and return the `_meta` of the answer; raises ValueError for a kind of API that it lacks."""
        listed = self._listed.get(provider_id)
        if listed is not None and endpoint.api_type not in listed.supported:
            raise ValueError(
                f"provider {provider_id!r} has no API of type {endpoint.api_type!r}; "
                f"it has {', '.join(listed.supported) or 'none'}"
            )
        answer = await agent.request(_request(provider_id, endpoint, meta))
        self._wanted[provider_id] = endpoint
        return answer.meta or {}

    async def disable(self, agent: Requester, provider_id: str, meta: JsonObject | None = None) -> JsonObject:
        """Disable a provider, and return the `_meta` of the answer; raises ValueError for one that is required."""
        listed = self._listed.get(provider_id)
        if listed is not None and listed.required:
            raise ValueError(f"provider {provider_id!r} cannot be disabled; the agent requires it")
        answer = await agent.request(v1.DisableProviderRequest(v1.ProviderId(provider_id), meta=meta))
        self._wanted[provider_id] = None
        return answer.meta or {}

    async def establish(self, agent: Requester, seconds: float) -> None:
        """Apply the settings to a new connection; raises AccordError if the agent cannot do that."""
        if not self._wanted:
            return
        # custom-llm-endpoint: list before setting, and set only listed providers.
        await self.list(agent, seconds)
        for provider_id, endpoint in self._wanted.items():
            if endpoint is None:
                await agent.request(v1.DisableProviderRequest(v1.ProviderId(provider_id)), timeout=seconds)
                continue
            self._must_be_listed(provider_id, endpoint)
            await agent.request(_request(provider_id, endpoint), timeout=seconds)

    def _must_be_listed(self, provider_id: str, endpoint: Endpoint) -> None:
        listed = self._listed.get(provider_id)
        if listed is None:
            known = ", ".join(self._listed) or "none"
            raise AccordError(f"connect(providers=...): the agent has no provider {provider_id!r}; it has {known}")
        if endpoint.api_type not in listed.supported:
            raise AccordError(
                f"connect(providers=...): provider {provider_id!r} has no API of type {endpoint.api_type!r}; "
                f"it has {', '.join(listed.supported) or 'none'}"
            )


def _request(provider_id: str, endpoint: Endpoint, meta: JsonObject | None = None) -> v1.SetProviderRequest:
    headers = dict(endpoint.headers)
    return v1.SetProviderRequest(v1.ProviderId(provider_id), endpoint.api_type, endpoint.base_url, headers, meta=meta)


def _checked(wanted: Mapping[str, Endpoint]) -> Mapping[str, Endpoint]:
    if not isinstance(cast("object", wanted), Mapping):
        raise wrong_type("connect(providers=...)", "Endpoints by the ids of providers", wanted)
    for provider_id, endpoint in wanted.items():
        if not isinstance(cast("object", provider_id), str) or not isinstance(cast("object", endpoint), Endpoint):
            raise wrong_type("connect(providers=...)", "Endpoints by the ids of providers", endpoint)
    return wanted
