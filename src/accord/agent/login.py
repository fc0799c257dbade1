"""Authentication: the ways in that an agent offers, what waits for them, and the way out.

An agent that registers a way to log in lets nobody open a session, or prompt in one, before it was gone. Whether a
connection is authenticated is known to that connection alone.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accord.agent.elicitation import Elicits
from accord.capabilities import Capabilities
from accord.errors import RequestError
from accord.handlers import Context
from accord.schema import v1

if TYPE_CHECKING:
    from accord.agent.service import Service


@dataclass(frozen=True, slots=True)
class Way:
    """One way to log in: what the client is told of it, and the function that does or checks it."""

    method: v1.AuthMethod
    function: Callable[..., Any] | None = None

    @property
    def id(self) -> str:
        return getattr(self.method, "id", "")


@dataclass(slots=True)
class Doors:
    """Every way in and out that an author has registered."""

    ways: list[Way] = field(default_factory=list["Way"])
    already_open: Callable[[], Any] | None = None
    logout: Callable[..., Any] | None = None

    def add(self, way: Way) -> None:
        if any(it.id == way.id for it in self.ways):
            raise ValueError(f"there is a way to log in called {way.id!r} already")
        self.ways.append(way)


class Login(Elicits):
    """A user logging in; what a function registered with `@agent.login` holds."""

    def __init__(self, service: Service, method_id: str, context: Context) -> None:
        self.method_id = method_id
        self.context = context
        self._client = service.client
        self._scope = {"request_id": context.request_id}


class Authentication:
    """Whether one connection is authenticated."""

    def __init__(self, service: Service, doors: Doors) -> None:
        self._service = service
        self._doors = doors
        self._open: bool | None = None if doors.ways else True
        """None until it was looked whether the user is logged in already."""

    def methods(self, capabilities: Capabilities) -> list[v1.AuthMethod]:
        """The ways in that this client can go."""
        return [way.method for way in self._doors.ways if self._can_go(way, capabilities)]

    async def require(self) -> None:
        """RequestError unless authenticated."""
        if self._open is None:
            check = self._doors.already_open
            self._open = bool(check is not None and await _result(check()))
        if not self._open:
            raise RequestError.auth_required()

    async def authenticate(self, request: v1.AuthenticateRequest, context: Context) -> None:
        way = next((it for it in self._doors.ways if it.id == request.method_id), None)
        if way is None:
            raise RequestError.invalid_params("there is no such way to log in", methodId=request.method_id)
        if way.function is not None:
            login = Login(self._service, request.method_id, context)
            function = way.function
            takes_login = bool(inspect.signature(function).parameters)
            if await _result(function(login) if takes_login else function()) is False:
                raise RequestError.auth_required("This did not log you in")
        self._open = True

    async def logout(self) -> None:
        if self._doors.logout is not None:
            await _result(self._doors.logout())
        self._open = not self._doors.ways

    def _can_go(self, way: Way, capabilities: Capabilities) -> bool:
        if isinstance(way.method, v1.AuthMethodTerminal):
            # rfd-auth-methods: terminal logins only where the client declared them.
            return capabilities.has("auth.terminal")
        if isinstance(way.method, v1.AuthMethodEnvVar):
            return self._service.agent.unstable
        return True


def variables_are_set(variables: Sequence[v1.AuthEnvVar]) -> Callable[[], bool]:
    """Whether the environment holds what a way to log in needs."""
    return lambda: all(variable.optional or os.environ.get(variable.name) for variable in variables)


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
