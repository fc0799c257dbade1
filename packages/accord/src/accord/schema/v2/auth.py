"""Authentication: how a user proves who they are.

Differs from version 1: the methods are `auth/login` and `auth/logout`, which every agent with authentication methods
has; each method says its `type`, and has a `methodId`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, NullAsDefault, Open, Request, Tolerant, Unstable, every
from accord.schema.v1.auth import AuthMethodId, AuthStatusCapabilities
from accord.schema.v1.mcp import EnvVariable


class AuthMethodAgent(Model, tag_field="type", tag="agent"):
    """A login method that the agent carries out by itself."""

    method_id: AuthMethodId
    name: str
    description: Tolerant[str | None] = None


class AuthMethodTerminal(Model, tag_field="type", tag="terminal"):
    """A login method at a terminal: the client runs the agent there with these arguments, without `auth/login`."""

    method_id: AuthMethodId
    name: str
    description: Tolerant[str | None] = None
    args: NullAsDefault[list[str]] = []
    env: NullAsDefault[list[EnvVariable]] = []


AuthMethod: TypeAlias = Annotated[Open[AuthMethodAgent | AuthMethodTerminal], every("methodId", "name")]


class LoginAuthResponse(Model):
    """The result of `auth/login`: the user is logged in."""


class LoginAuthRequest(Request[LoginAuthResponse], method="auth/login"):
    """Log in with one of the agent's methods."""

    method_id: AuthMethodId


class LogoutAuthResponse(Model):
    """The result of `auth/logout`: the user is logged out."""


class LogoutAuthRequest(Request[LogoutAuthResponse], method="auth/logout"):
    """Log out; available wherever the agent has authentication methods."""


class AgentAuthCapabilities(Model):
    """The agent's capabilities for logins, beyond login and logout."""

    status: Unstable[Tolerant[AuthStatusCapabilities | None]] = None


class TerminalAuthCapabilities(Model):
    """Declares that the client can run the agent in a terminal for a login."""


class ClientAuthCapabilities(Model):
    """The client's capabilities for logins."""

    terminal: Tolerant[TerminalAuthCapabilities | None] = None
