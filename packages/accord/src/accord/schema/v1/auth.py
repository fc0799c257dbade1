"""Authentication: how a user proves who they are. Pages: authentication; proposals: auth-methods, logout-method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NewType, TypeAlias

from accord.schema.base import (
    Model,
    Notification,
    NullAsDefault,
    Open,
    Request,
    Tolerant,
    Unstable,
    ValidItems,
    tagged_or,
    unstable,
    words,
)

AuthMethodId = NewType("AuthMethodId", str)


class AuthMethodAgent(Model):
    """A login method that the agent carries out by itself; the one variant without a `type`."""

    id: AuthMethodId
    name: str
    description: Tolerant[str | None] = None


class AuthMethodTerminal(Model, tag_field="type", tag="terminal"):
    """A login method at a terminal: the client runs the agent there with these arguments."""

    id: AuthMethodId
    name: str
    description: Tolerant[str | None] = None
    args: NullAsDefault[list[str]] = []
    env: NullAsDefault[dict[str, str]] = {}


@unstable
class AuthEnvVar(Model):
    """An environment variable that holds a credential."""

    name: str
    label: str | None = None
    secret: bool = True
    optional: bool = False


@unstable
class AuthMethodEnvVar(Model, tag_field="type", tag="env_var"):
    """A login method by environment variables; proposed, and sent by real agents (see `legacy`)."""

    id: AuthMethodId
    name: str
    vars: list[AuthEnvVar]
    description: Tolerant[str | None] = None
    link: str | None = None


if TYPE_CHECKING:
    AuthMethod: TypeAlias = Open[AuthMethodAgent | AuthMethodTerminal | AuthMethodEnvVar]
else:
    AuthMethod = tagged_or("AuthMethod", "type", AuthMethodAgent, AuthMethodTerminal, AuthMethodEnvVar, means="agent")


class AuthenticateResponse(Model):
    """The result of `authenticate`: the user is logged in."""


class AuthenticateRequest(Request[AuthenticateResponse], method="authenticate"):
    """Log in with one of the agent's methods."""

    method_id: AuthMethodId


class LogoutResponse(Model):
    """The result of `logout`: the user is logged out."""


class LogoutRequest(Request[LogoutResponse], method="logout", needs="auth.logout"):
    """Log out; needs `auth.logout`."""


AuthState: TypeAlias = Annotated[str, words("authenticated", "unauthenticated", "not_required", "unknown")]


@unstable
class AuthAccount(Model):
    """An account that the agent knows."""

    label: str
    active: Tolerant[bool | None] = None
    name: Tolerant[str | None] = None
    email: Tolerant[str | None] = None
    organization: Tolerant[str | None] = None


@unstable
class AuthStatusResponse(Model):
    """The result of `auth/status`: the accounts that are logged in."""

    state: AuthState
    accounts: Tolerant[ValidItems[AuthAccount]] = []


class AuthStatusRequest(Request[AuthStatusResponse], method="auth/status", unstable=True, needs="auth.status"):
    """Ask which accounts are logged in; needs `auth.status`."""


class AuthStatusUpdateNotification(Notification, method="auth/status_update", unstable=True):
    """Tells the client that the accounts that are logged in have changed."""

    state: AuthState
    accounts: Tolerant[ValidItems[AuthAccount]] = []


@unstable
class AuthStatusCapabilities(Model):
    """Declares that the agent answers `auth/status`."""


class LogoutCapabilities(Model):
    """Declares that the agent answers `logout`."""


class AgentAuthCapabilities(Model):
    """The agent's capabilities for logins."""

    status: Unstable[Tolerant[AuthStatusCapabilities | None]] = None
    logout: Tolerant[LogoutCapabilities | None] = None


class AuthCapabilities(Model):
    """The client's capabilities for logins."""

    terminal: Tolerant[bool] = False
