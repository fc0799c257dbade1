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
    """The agent does it by itself, when it is asked to log in."""

    method_id: AuthMethodId
    name: str
    description: Tolerant[str | None] = None


class AuthMethodTerminal(Model, tag_field="type", tag="terminal"):
    """The user logs in at a terminal, where the client runs the agent again with these arguments: no `auth/login`."""

    method_id: AuthMethodId
    name: str
    description: Tolerant[str | None] = None
    args: NullAsDefault[list[str]] = []
    env: NullAsDefault[list[EnvVariable]] = []


AuthMethod: TypeAlias = Annotated[Open[AuthMethodAgent | AuthMethodTerminal], every("methodId", "name")]


class LoginAuthResponse(Model):
    """The user is logged in."""


class LoginAuthRequest(Request[LoginAuthResponse], method="auth/login"):
    """Log in by one of the agent's methods."""

    method_id: AuthMethodId


class LogoutAuthResponse(Model):
    """The user is logged out."""


class LogoutAuthRequest(Request[LogoutAuthResponse], method="auth/logout"):
    """Log out; there wherever the agent has authentication methods."""


class AgentAuthCapabilities(Model):
    """What the agent can do about logins beyond logging in and out."""

    status: Unstable[Tolerant[AuthStatusCapabilities | None]] = None


class TerminalAuthCapabilities(Model):
    """The client can run the agent in a terminal, for a login."""


class ClientAuthCapabilities(Model):
    """What the client can do about logins."""

    terminal: Tolerant[TerminalAuthCapabilities | None] = None
