"""Ten thousand sessions, and one of a hundred thousand updates: work grows as they do, and memory does not.

Work is counted in steps of SQLite's virtual machine, not with a clock.
"""

import asyncio
import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest

from accord import MemoryStore, SqliteStore
from accord.store import PAGE_BYTES, StoredSession, sqlite_queries
from tests.store.stores import all_sessions

STEP = 100
"""Steps between two counts."""

UPDATE = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"word "}}'


class Counting(SqliteStore):
    """Counts what its connections do."""

    steps = 0

    async def open(self):
        await super().open()
        for connection in (self._open.quick, self._open.patient):
            connection.set_progress_handler(self.step, STEP)

    def step(self):
        self.steps += STEP

    async def of(self, work):
        """The steps of this work."""
        before = self.steps
        await work
        return self.steps - before


def sessions(count):
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(count):
        at = start + timedelta(seconds=number)
        yield StoredSession(id=f"s{number}", cwd=f"/{number % 10}", created=at, updated=at)


@pytest.fixture
async def make(tmp_path):
    """`make(count)`: a store with so many sessions, filled in one transaction to save time."""
    made = []

    async def make(count):
        store = Counting(tmp_path / f"{len(made)}.sqlite3")
        made.append(store)

        def fill(connection):
            sqlite_queries.in_transaction(
                connection, lambda: [sqlite_queries.insert(connection, it, None) for it in sessions(count)]
            )

        await store._work(fill)
        return store

    yield make
    for store in made:
        await store.close()


async def test_listing_ten_thousand_sessions_costs_what_they_are(make):
    few, many = await make(1_000), await make(10_000)
    cost = [await store.of(all_sessions(store, size=100)) for store in (few, many)]
    assert cost[1] < 11 * cost[0]
    assert cost[1] < 100 * 10_000  # a few dozen steps each


async def test_a_page_costs_the_same_wherever_it_is_and_of_one_folder_too(make):
    few, many = await make(1_000), await make(10_000)
    first, late = await page_costs(few), await page_costs(many)
    assert max(first + late) < 2 * min(first + late)


async def page_costs(store):
    """The cost of the first page, of one in the midst, and of both of a folder."""
    costs = []
    for cwd in (None, "/5"):
        cursor = None
        for place in range(6):
            before = store.steps
            page = await store.page(cwd=cwd, cursor=cursor, size=10)
            if place in (0, 5):
                costs.append(store.steps - before)
            cursor = page.next
    return costs


async def test_a_hundred_thousand_updates_are_appended_and_read_at_a_constant_price(make):
    store = await make(10)
    session = await store.take("s0")
    prices = [await store.of(append(store, session, 10_000)) for _ in range(10)]
    assert max(prices) < 1.2 * min(prices)
    assert prices[0] < 30 * 10_000
    reading = [await store.of(read(store, "s0", after=after, count=10_000)) for after in (0, 90_000)]
    assert max(reading) < 1.2 * min(reading)
    assert reading[0] < 30 * 10_000


async def append(store, session, count):
    for _ in range(count // 100):
        await store.write(session, [UPDATE] * 100)


async def read(store, session_id, *, after=0, count=None):
    seen = 0
    async for page in store.updates(session_id, after=after):
        seen += len(page)
        if count is not None and seen >= count:
            break
    return seen


async def test_reading_a_long_session_takes_no_more_memory_than_a_short_one(make):
    store = await make(2)
    for name, count in (("s0", 2_000), ("s1", 100_000)):
        await append(store, await store.take(name), count)
    peaks = [await peak(read(store, name)) for name in ("s0", "s1")]
    assert peaks[1] < 2 * peaks[0]
    assert peaks[1] < 4 * PAGE_BYTES


async def peak(work):
    tracemalloc.start()
    try:
        await work
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def test_updates_written_at_once_share_commits(make):
    """The more there are at once, the less each costs."""
    store = await make(100)
    held = [await store.take(f"s{number}") for number in range(100)]
    commits = []
    store._open.quick.set_trace_callback(lambda statement: statement == "COMMIT" and commits.append(statement))
    for session in held:
        await store.write(session, [UPDATE])
    alone, commits[:] = len(commits), []
    await asyncio.gather(*[store.write(session, [UPDATE]) for session in held])
    assert (alone, len(commits)) == (100, 1)


async def test_the_memory_store_sorts_its_list_once_for_all_pages():
    store = MemoryStore()
    for session in sessions(10_000):
        await store.create(session)
    first = await store.page()
    order = store._listed
    await store.page(cursor=first.next)
    assert store._listed is order
    assert len(await all_sessions(store, size=100)) == 10_000
