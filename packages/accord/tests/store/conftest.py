"""One suite for every store."""

import uuid

import pytest

from accord.store import MemoryStore, StoredSession
from accord.store.postgres_store import PostgresStore
from accord.store.sqlite_store import SqliteStore
from tests.store.postgres_server import PostgresServer, programs
from tests.store.stores import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope="session")
def postgres():
    """A server of PostgreSQL."""
    if programs() is None:
        pytest.skip("there is no PostgreSQL: Debian's package postgresql has it")
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def schema():
    """The name of a schema that no other test uses."""
    return f"test_{uuid.uuid4().hex}"


@pytest.fixture(params=["memory", "sqlite", "sqlite that survives a loss of power", "postgres"])
async def store(request, tmp_path, clock):
    if request.param == "memory":
        made = MemoryStore(clock=clock)
    elif request.param == "postgres":
        url, schema = request.getfixturevalue("postgres").url, request.getfixturevalue("schema")
        made = PostgresStore(url, schema=schema, survives="process", clock=clock)
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
