"""Whatever is done with it, in whatever order: the SQLite store says what the memory store says."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from accord.errors import StoreError
from accord.store import Changes, MemoryStore, StoredSession
from accord.store.sqlite_store import SqliteStore
from tests.store.stores import Clock, all_sessions, all_updates

NAMES = st.sampled_from(["a", "b", "c", "d"])
OWNERS = st.sampled_from(["", "ada"])
FOLDERS = st.sampled_from(["/one", "/two"])
UPDATES = st.lists(st.binary(max_size=8), max_size=4)


class BothStores(RuleBasedStateMachine):
    """The memory store is the model."""

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "sessions.sqlite3"
        self.clock = Clock()
        self.memory = MemoryStore(clock=lambda: self.clock.moment)
        self.sqlite = SqliteStore(self.path, clock=lambda: self.clock.moment)
        self.held: list[StoredSession] = []

    def teardown(self):
        self.runner.run(self.sqlite.close())
        self.runner.close()
        self.folder.cleanup()

    def both(self, ask):
        """What both say, which must be the same."""
        self.clock()  # time passes between two steps, and during none
        said = [self.runner.run(_said(ask(store))) for store in (self.memory, self.sqlite)]
        assert said[0] == said[1]
        return said[0]

    def keep(self, session):
        if isinstance(session, StoredSession):
            self.held.append(session)

    def new(self, name, owner, cwd):
        return StoredSession(id=name, owner=owner, cwd=cwd, created=self.clock(), updated=self.clock.moment)

    @rule(name=NAMES, owner=OWNERS, cwd=FOLDERS)
    def create(self, name, owner, cwd):
        session = self.new(name, owner, cwd)
        self.keep(self.both(lambda store: store.create(session)))

    @rule(name=NAMES, owner=OWNERS)
    def take(self, name, owner):
        self.keep(self.both(lambda store: store.take(name, owner=owner)))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), updates=UPDATES, title=st.one_of(st.none(), st.text(max_size=3)))
    def write(self, data, updates, title):
        session = data.draw(st.sampled_from(self.held))
        self.both(lambda store: store.write(session, updates, Changes(title=title)))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), batches=st.lists(UPDATES, min_size=2, max_size=4))
    def write_at_once(self, data, batches):
        sessions = [data.draw(st.sampled_from(self.held)) for _ in batches]

        async def together(store):
            writes = [store.write(session, batch) for session, batch in zip(sessions, batches, strict=True)]
            outcomes = await asyncio.gather(*writes, return_exceptions=True)
            return [getattr(outcome, "reason", None) for outcome in outcomes]

        self.both(together)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), length=st.integers(0, 6))
    def cut(self, data, length):
        session = data.draw(st.sampled_from(self.held))
        self.both(lambda store: store.cut(session, length))

    @rule(source=NAMES, name=NAMES, owner=OWNERS, cwd=FOLDERS)
    def copy(self, source, name, owner, cwd):
        session = self.new(name, owner, cwd)
        self.keep(self.both(lambda store: store.copy(source, session)))

    @rule(name=NAMES, owner=OWNERS)
    def delete(self, name, owner):
        self.both(lambda store: store.delete(name, owner=owner))

    @rule()
    def open_again(self):
        self.runner.run(self.sqlite.close())
        self.sqlite = SqliteStore(self.path, clock=lambda: self.clock.moment)

    @invariant()
    def say_the_same(self):
        self.both(_everything)


async def _everything(store):
    said = []
    for owner in ("", "ada"):
        for session_id in await all_sessions(store, owner=owner):
            said += [await store.find(session_id, owner=owner), await all_updates(store, session_id, owner=owner)]
        said.append(await all_sessions(store, owner=owner, cwd="/one"))
    return said


async def _said(asked):
    try:
        return await asked
    except StoreError as error:
        return error.reason


TestBothStores = BothStores.TestCase
TestBothStores.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
