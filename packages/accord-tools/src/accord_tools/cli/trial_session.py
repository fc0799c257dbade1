"""A session that is opened to learn something about an agent, and removed again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord import RemoteAgent, RemoteSession

WITHIN = 60.0
"""Seconds that the agent has to open the session."""


@asynccontextmanager
async def trial_session(remote: RemoteAgent, folder: str | None = None) -> AsyncGenerator[RemoteSession]:
    """Open a session in this folder, and delete it, or close it if the agent cannot delete sessions."""
    from accord import AccordError, Timeout

    try:
        async with asyncio.timeout(WITHIN):
            session = await remote.new_session(folder)
    except Timeout:
        raise
    except TimeoutError:
        raise Timeout(f"the agent did not open a session within {WITHIN:g} seconds") from None
    try:
        yield session
    finally:
        with suppress(AccordError):
            offers = remote.capabilities.sessions
            if offers.delete:
                await remote.delete(session.id)
            else:
                await session.close()
