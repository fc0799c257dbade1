"""A clock for stores, and everything that a store says."""

from datetime import UTC, datetime, timedelta


class Clock:
    """Goes on by a second each time somebody looks."""

    def __init__(self):
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        self.moment += timedelta(seconds=1)
        return self.moment


async def all_updates(store, session_id, *, owner="", after=0) -> list[bytes]:
    return [update async for page in store.updates(session_id, owner=owner, after=after) for update in page]


async def all_sessions(store, *, size=2, **what) -> list[str]:
    """The ids of all sessions, over as many pages as it takes."""
    found, cursor = [], None
    while True:
        page = await store.page(size=size, cursor=cursor, **what)
        assert len(page.sessions) <= size
        found += [session.id for session in page.sessions]
        cursor = page.next
        if cursor is None:
            return found
