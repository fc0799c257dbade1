"""Authentication: the logins that an agent offers, what requires them, and logging out.

An agent that registers a login requires it before a session can be opened or prompted. Each connection has its own
login.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from accord._internal import Consent
from accord._internal.tasks import finished
from accord.agent.remote_client import ClientLink
from accord.agent.user_questions import Elicits
from accord.engine.peer import Context
from accord.errors import AUTH_REQUIRED, RequestError
from accord.mistakes import wrong_type
from accord.schema import v1
from accord.schema.capabilities import Capabilities

if TYPE_CHECKING:
    from accord.agent.agent_connection import AgentConnection


class LoginMethod(msgspec.Struct, frozen=True):
    """One way to log in: its description for the client, and the function that performs or checks it."""

    method: v1.AuthMethod
    function: Callable[..., Any] | None = None

    @property
    def id(self) -> str:
        return getattr(self.method, "id", "")


class Logins(msgspec.Struct):
    """All logins and the logout that an author has registered."""

    ways: list[LoginMethod] = msgspec.field(default_factory=list["LoginMethod"])
    check: Callable[[], Any] | None = None
    logout: Callable[..., Any] | None = None
    status: Callable[[], Any] | None = None
    """Returns the accounts to which the user is logged in."""

    def add(self, way: LoginMethod) -> None:
        if any(it.id == way.id for it in self.ways):
            raise ValueError(f"a login with the id {way.id!r} is already registered")
        self.ways.append(way)


class Login(Elicits):
    """A login in progress; functions registered with `@agent.login` get it."""

    def __init__(self, client: ClientLink, method_id: str, context: Context) -> None:
        self.method_id: str = method_id
        """The id of the login that the user has chosen."""
        self.context: Context = context
        """The request that the client sent to log in."""
        self._client = client
        self._scope = {"request_id": context.request_id}


class Authentication:
    """Whether one connection is authenticated."""

    def __init__(self, connection: AgentConnection) -> None:
        self._logins = connection.agent.logins
        self._is_replaced = connection.providers.replace_login
        """Whether a setting of the client makes a login unnecessary."""
        self._client = connection.client
        self._unstable = connection.agent.unstable
        self.is_open = not self._logins.ways
        """Whether the user is known to be logged in, or need not be."""
        self._was_left = False
        self._tells_status = connection.offers.has("auth.status")
        """Whether clients are notified by `auth/status`."""

    def methods(self, capabilities: Capabilities) -> list[v1.AuthMethod]:
        """Return the logins that this client supports, in the types that it knows."""
        offered = (self._offered(way.method, capabilities) for way in self._logins.ways)
        return [method for method in offered if method is not None]

    async def require(self) -> None:
        """Raise RequestError unless authenticated."""
        if self.is_open or self._is_replaced():
            return
        # A login at a terminal does not report its result; the author's function checks what it stored.
        self.is_open = await self._is_logged_in()
        if not self.is_open:
            raise RequestError.auth_required()

    async def _state(self) -> str:
        """Return the login state, in the words of `auth/status`."""
        if not self._logins.ways or self._is_replaced():
            return "not_required"
        self.is_open = self.is_open or await self._is_logged_in()
        return "authenticated" if self.is_open else "unauthenticated"

    async def _is_logged_in(self) -> bool:
        """Whether the user is logged in, by the function that the author registered for this."""
        checks = [self._logins.check, *(way.function for way in self._logins.ways if self._shows(way))]
        for check in checks:
            if check is not None and await finished(check()):
                return True
        return False

    def _shows(self, way: LoginMethod) -> bool:
        """Whether the login state is known. It follows from the environment until the user has logged out."""
        if isinstance(way.method, v1.AuthMethodEnvVar):
            return not self._was_left
        return isinstance(way.method, v1.AuthMethodTerminal)

    async def authenticate(self, request: v1.AuthenticateRequest, context: Context) -> None:
        await self.log_in(request.method_id, context)

    def has_terminal_login(self, method_id: str) -> bool:
        """Whether this is a login at a terminal, which clients of version 2 cannot request."""
        return any(it.id == method_id and isinstance(it.method, v1.AuthMethodTerminal) for it in self._logins.ways)

    async def log_in(self, method_id: str, context: Context) -> None:
        """Perform this login; raises RequestError if it does not exist or fails."""
        way = next((it for it in self._logins.ways if it.id == method_id), None)
        if way is None:
            raise RequestError.invalid_params("unknown login method", methodId=method_id)
        if way.function is not None:
            login = Login(ClientLink(self._client, self._client.requester()), method_id, context)
            function = way.function
            takes_login = bool(inspect.signature(function).parameters)
            if _refuses(await finished(function(login) if takes_login else function())):
                raise RequestError.auth_required("The login did not succeed")
        self.is_open = True
        context.after_response(self.tell_status)

    async def logout(self) -> None:
        if self._logins.logout is not None:
            await finished(self._logins.logout())
        self.is_open, self._was_left = not self._logins.ways, True

    # `auth/status`: whether the user is logged in, and to which accounts; sent again after each login and logout.

    async def status(self, _: v1.AuthStatusRequest | None = None) -> v1.AuthStatusResponse:
        """Return the result of the author's function, or what follows from the registered logins."""
        try:
            return await self._status()
        except RequestError as error:
            if error.code != AUTH_REQUIRED:
                raise
            # Clients ask this to find out whether a login is needed, so "needed" is an answer and no error.
            return v1.AuthStatusResponse("unauthenticated")

    async def tell_status(self) -> None:
        """Notify a client that knows `auth/status` of the result of a login or logout."""
        if self._tells_status:
            status = await self.status()
            await self._client.peer.notify(v1.AuthStatusUpdateNotification(status.state, status.accounts), force=True)

    async def _status(self) -> v1.AuthStatusResponse:
        said = None if self._logins.status is None else await finished(self._logins.status())
        if isinstance(said, v1.AuthStatusResponse):
            return said
        if isinstance(said, str):
            return v1.AuthStatusResponse(said)
        if said is None:
            return v1.AuthStatusResponse(await self._state())
        if not isinstance(said, Sequence):
            raise wrong_type("@agent.on_auth_status", "a function that returns a state or a list of accounts", said)
        accounts = list(cast("Sequence[v1.AuthAccount]", said))
        return v1.AuthStatusResponse("authenticated" if accounts else await self._state(), accounts)

    # Logins

    def _offered(self, method: v1.AuthMethod, capabilities: Capabilities) -> v1.AuthMethod | None:
        """Return this login in the types that the client knows; None if it does not support it."""
        if isinstance(method, v1.AuthMethodTerminal) and not capabilities.has("auth.terminal"):
            # rfd-auth-methods: terminal logins only where the client declared them.
            return _older_terminal_login(method) if _knows_older_terminal_logins(capabilities) else None
        if isinstance(method, v1.AuthMethodEnvVar) and not self._unstable:
            return None
        return method


def variables_are_set(variables: Sequence[v1.AuthEnvVar]) -> Callable[[], bool]:
    """Whether the environment has the variables that a login needs."""
    return lambda: all(variable.optional or os.environ.get(variable.name) for variable in variables)


def _knows_older_terminal_logins(capabilities: Capabilities) -> bool:
    declared = capabilities.declared
    return declared is not None and bool((declared.meta or {}).get("terminal-auth"))


def _older_terminal_login(method: v1.AuthMethodTerminal) -> v1.AuthMethodAgent:
    """Return a login at a terminal in the form that editors used before it had a type: with the whole command (see
    `legacy`).
    """
    command = {
        "command": sys.executable,
        "args": [*sys.orig_argv[1:], *method.args],
        "env": dict(method.env),
        "label": method.name,
    }
    return v1.AuthMethodAgent(
        method.id, method.name, method.description, meta={**(method.meta or {}), "terminal-auth": command}
    )


def _refuses(result: Any) -> bool:
    """Whether an author's function reports that the user is not logged in: by False, or by a user's answer."""
    return result is False or (isinstance(result, Consent) and not result)
