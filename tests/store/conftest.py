"""One suite for every store."""

import pytest

from accord.store.base import StoredSession
from accord.store.memory import MemoryStore
from accord.store.sqlite import SqliteStore
from tests.store.stores import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", "sqlite", "sqlite that survives a loss of power"])
async def store(request, tmp_path, clock):
    if request.param == "memory":
        made = MemoryStore(clock=clock)
    else:
        survives = "power" if "power" in request.param else "process"
        made = SqliteStore(tmp_path / "sessions.sqlite3", survives=survives, clock=clock)
    async with made:
        yield made


@pytest.fixture
def new(clock):
    """A session that no store has yet."""

    def make(identifier: str, **more) -> StoredSession:
        at = clock()
        return StoredSession(**{"id": identifier, "cwd": "/work", "created": at, "updated": at, **more})

    return make
