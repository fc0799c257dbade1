"""`auth/status`: whether the user is logged in, and to which accounts; told again after each login and logout."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

from accord.agent.login import Authentication
from accord.arguments import wrong_type
from accord.engine.peer import Peer
from accord.errors import AUTH_REQUIRED, RequestError
from accord.schema import v1


class AuthStatus:
    """The answer to `auth/status` on one connection."""

    def __init__(
        self, authentication: Authentication, function: Callable[[], Any] | None, peer: Peer, *, is_declared: bool
    ) -> None:
        self._authentication = authentication
        self._function = function
        self._peer = peer
        self._is_declared = is_declared

    async def answer(self, _: v1.AuthStatusRequest | None = None) -> v1.AuthStatusResponse:
        """What the author's function says, or what follows from the logins that it registered."""
        try:
            return await self._asked()
        except RequestError as error:
            if error.code != AUTH_REQUIRED:
                raise
            # Clients ask this to find out whether a login is needed, so "needed" is an answer and no error.
            return v1.AuthStatusResponse("unauthenticated")

    async def tell(self) -> None:
        """Tell the client, which knows of `auth/status`, what the user's login or logout has come to."""
        if self._is_declared:
            status = await self.answer()
            await self._peer.notify(v1.AuthStatusUpdateNotification(status.state, status.accounts), force=True)

    async def _asked(self) -> v1.AuthStatusResponse:
        said = None if self._function is None else self._function()
        said = await said if inspect.isawaitable(said) else said
        if isinstance(said, v1.AuthStatusResponse):
            return said
        if isinstance(said, str):
            return v1.AuthStatusResponse(said)
        if said is None:
            return v1.AuthStatusResponse(await self._authentication.state())
        if not isinstance(said, Sequence):
            raise wrong_type("@agent.on_auth_status", "a function that returns a state or a list of accounts", said)
        accounts = list(cast("Sequence[v1.AuthAccount]", said))
        return v1.AuthStatusResponse("authenticated" if accounts else await self._authentication.state(), accounts)
