"""A model of hosts: beats, declared deaths, taken sessions, writes, partitions and lost answers, in any order.

The real memberships, directories and stores of three hosts run against one database, and a reference of plain lists
says what must come of each step. Time passes only when a rule says so: the loop's clock is moved on, and all leases in
the table are moved back. Where the database is a server, its clock may also be set forward: then only the leases move.
"""

import asyncio
import sqlite3
import tempfile
import uuid
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accord.errors import StoreError
from accord.hosts.host_table import REMEMBERED, Directory, HostRow, new_host_id
from accord.hosts.hosts import directory_of
from accord.hosts.this_host import JUDGES_AFTER, Membership
from accord.store import StoredSession
from accord.store.postgres_store import PostgresStore
from accord.store.sqlite_store import SqliteStore
from tests.store.postgres_server import Relay
from tests.store.stores import all_updates

LEASE = 10_000.0
"""Seconds: what a run takes by the clock is nothing beside it."""

STEPS = (1_700, 4_600, 11_300)
"""Seconds that pass at once. No sum of them is a limit: half a lease, three fifths, one, or 1.2 of it."""

MOST = REMEMBERED - 12_000
"""Seconds that pass at most: before the rows of dead hosts are deleted."""

HOSTS = st.integers(0, 2)


class MovedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be moved on."""

    moved = 0.0

    def time(self):
        return super().time() + self.moved


class SqliteDatabase:
    """Directory and store in files of a folder."""

    counts = 0
    """How much a beat adds to a host's count."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="accord-model-")
        self._hosts = Path(self._folder.name, "hosts.sqlite3")
        self._sessions = Path(self._folder.name, "sessions.sqlite3")

    async def directory(self):
        return directory_of(self._hosts, "accord")

    async def store(self):
        return SqliteStore(self._sessions)

    async def move_leases(self, seconds):
        with closing(sqlite3.connect(self._hosts)) as connection, connection:
            connection.execute("UPDATE hosts SET expires = expires - ?", (seconds,))

    def lose_answer(self, number):
        """A file has no answers that could be lost."""

    async def close(self):
        self._folder.cleanup()


class PostgresDatabase:
    """Directory and store in a schema of a server; the stores reach it by relays that can lose answers."""

    counts = 1

    def __init__(self, server):
        self._server = server
        self._schema = f"model_{uuid.uuid4().hex}"
        self._relays = []

    async def directory(self):
        return directory_of(self._server.url, self._schema)

    async def store(self):
        self._relays.append(relay := await Relay(self._server).__aenter__())
        return PostgresStore(relay.url, schema=self._schema, survives="process")

    async def move_leases(self, seconds):
        await self._server.run(f"UPDATE {self._schema}.hosts SET expires = expires - interval '{seconds} seconds'")

    def lose_answer(self, number):
        self._relays[number].cut_answer()

    async def close(self):
        for relay in self._relays:
            await relay.__aexit__()
        await self._server.run(f"DROP SCHEMA {self._schema} CASCADE")


class CutOff(Directory):
    """A directory that a host may be unable to reach, or whose answer may be lost."""

    def __init__(self, directory):
        self._directory = directory
        self.is_cut = False
        self.loses_answer = False

    async def beat(self, beat):
        if self.is_cut:
            raise StoreError("failed", "the directory cannot be reached")
        told = await self._directory.beat(beat)
        if self.loses_answer:
            self.loses_answer = False
            raise StoreError("failed", "the answer was lost")
        return told

    async def open(self):
        await self._directory.open()

    async def close(self):
        await self._directory.close()

    async def hosts(self):
        return await self._directory.hosts()

    admit = release = withdraw = claim = sweep = None
    """The hosts of the model count nothing."""


@dataclass
class Host:
    """A host: what runs, and what the reference knows of it."""

    directory: CutOff
    store: object
    membership: Membership | None = None
    lost: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    beats: list[tuple[float, bool]] = field(default_factory=list)
    """When it tried to beat, and whether it learned that it had."""
    held: StoredSession | None = None
    seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Of each host how many of its beats were read, and when they were read first."""

    def may_judge(self, now):
        """Whether its beats have succeeded without a gap for long enough."""
        since = now
        for moment, succeeded in reversed(self.beats):
            if not succeeded or since - moment > LEASE / 2:
                break
            since = moment
        return now - since > JUDGES_AFTER * LEASE


class Hosts(RuleBasedStateMachine):
    """Three hosts with one session."""

    def __init__(self, database):
        super().__init__()
        self.loop = MovedLoop()
        self.database = database
        self.hosts = []
        self.now = self.ahead = 0.0
        self.rows = {}
        """Of each id that was ever told: the state, and when its lease ends."""
        self.counts = {}
        """How often each host has beaten, where the database counts."""
        self.hold = 1
        self.updates = []

    def run(self, work):
        return self.loop.run_until_complete(work)

    @initialize()
    def start(self):
        self.run(self._start())

    async def _start(self):
        for number in range(3):
            host = Host(CutOff(await self.database.directory()), await self.database.store())
            await host.directory.open()
            await host.store.open()
            host.membership = Membership(
                host.directory,
                HostRow(new_host_id(), f"127.0.0.1:{number}", str(number)),
                lease=LEASE,
                fence=None,
                load=lambda: (0.0, 0),
                on_view=lambda _: None,
                on_lost=host.lost.append,
            )
            self.hosts.append(host)
        session = StoredSession(id="session", cwd="/project")
        self.hosts[0].held = await self.hosts[0].store.create(session)
        for host in self.hosts:
            await self._beat(host)

    @rule(number=HOSTS)
    def beat(self, number):
        self.run(self._beat(self.hosts[number]))

    @rule(number=HOSTS)
    def beat_and_lose_the_answer(self, number):
        host = self.hosts[number]
        host.directory.loses_answer = not host.directory.is_cut
        self.run(self._beat(host))

    async def _beat(self, host):
        reaches, knows = not host.directory.is_cut, not host.directory.loses_answer
        before, losses = host.membership.host.id, len(host.lost)
        assert await host.membership.beat() is (reaches and knows)
        if not reaches:
            host.beats.append((self.now, False))
            return
        may_judge = host.may_judge(self.now)
        was_dead = self.rows.get(before, ("live", 0))[0] == "dead"
        host.beats.append((self.now, knows))
        # A host learns of its death from an answer. One whose answer was lost has changed nothing.
        assert (len(host.lost) - losses, host.membership.host.id != before) == (was_dead and knows, was_dead and knows)
        if was_dead and not knows:
            return
        me = host.membership.host.id
        assert not was_dead or me not in self.rows, "the id of a host is never used twice"
        self.rows[me] = ("live", self.now + LEASE)
        self.counts[me] = self.counts[me] + self.database.counts if me in self.counts else 0
        if may_judge:
            for other, (state, ends) in self.rows.items():
                is_silent = other in host.seen and self.now - host.seen[other][1] > LEASE / 2
                if state == "live" and ends < self.now and is_silent:
                    self.rows[other] = ("dead", ends)
        if knows:
            for other, count in self.counts.items():
                if host.seen.get(other, (-1, 0))[0] != count:
                    host.seen[other] = (count, self.now)

    @rule(seconds=st.sampled_from(STEPS))
    def time_passes(self, seconds):
        if self.now + self.ahead > MOST:
            return
        self.loop.moved += seconds
        self.now += seconds
        self.run(self.database.move_leases(seconds))

    @precondition(lambda self: self.database.counts)
    @rule(seconds=st.sampled_from(STEPS))
    def the_clock_of_the_server_is_set_forward(self, seconds):
        """No host that beats is declared dead, although all leases end at once."""
        if self.now + self.ahead > MOST:
            return
        self.ahead += seconds
        self.rows = {name: (state, ends - seconds) for name, (state, ends) in self.rows.items()}
        self.run(self.database.move_leases(seconds))

    @rule(seconds=st.sampled_from(STEPS[:2]), times=st.integers(3, 8), others=st.sets(HOSTS, max_size=2))
    def all_but_these_beat_as_time_passes(self, seconds, times, others):
        """A host may judge only after many beats, which single rules seldom come to."""
        for _ in range(times):
            self.time_passes(seconds)
            for number in {0, 1, 2} - others:
                self.beat(number)

    @rule(number=HOSTS, is_cut=st.booleans())
    def cut_off_or_heal(self, number, is_cut):
        self.hosts[number].directory.is_cut = is_cut

    @rule(number=HOSTS)
    def take(self, number):
        host = self.hosts[number]
        host.held = self.run(host.store.take("session"))
        self.hold += 1
        assert host.held.hold == self.hold

    @rule(number=HOSTS, count=st.integers(1, 3), loses_answer=st.booleans())
    def write(self, number, count, loses_answer):
        host = self.hosts[number]
        if host.held is None:
            return
        added = [b'{"update":%d}' % (len(self.updates) + each) for each in range(count)]
        if loses_answer:
            self.database.lose_answer(number)
        if host.held.hold == self.hold:
            self.run(host.store.write(host.held, added))
            self.updates += added
        else:
            with pytest.raises(StoreError) as refused:
                self.run(host.store.write(host.held, added))
            assert refused.value.reason == "taken"

    @rule(number=HOSTS)
    def read(self, number):
        assert self.run(all_updates(self.hosts[number].store, "session")) == self.updates

    @invariant()
    def the_table_is_as_expected(self):
        if self.hosts:
            told = self.run(self.hosts[0].directory.hosts())
            assert {row.id: row.state for row in told} == {name: state for name, (state, _) in self.rows.items()}

    def teardown(self):
        self.run(self._end())
        self.loop.close()

    async def _end(self):
        for host in self.hosts:
            await host.store.close()
            await host.directory.close()
        await self.database.close()


@pytest.mark.parametrize(("where", "examples"), [("sqlite", 15), ("postgres", 5)])
def test_hosts_agree_on_who_is_dead_and_who_may_write(where, examples, request):
    server = request.getfixturevalue("postgres") if where == "postgres" else None
    run_state_machine_as_test(
        lambda: Hosts(SqliteDatabase() if server is None else PostgresDatabase(server)),
        settings=settings(
            max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def test_a_clock_of_the_server_that_is_set_forward_ends_no_host_that_beats(postgres):
    hosts = Hosts(PostgresDatabase(postgres))
    hosts.start()
    try:
        hosts.all_but_these_beat_as_time_passes(seconds=1_700, times=8, others=set())
        hosts.the_clock_of_the_server_is_set_forward(seconds=11_300)
        for number in range(3):
            hosts.beat(number=number)
        hosts.the_table_is_as_expected()
        assert [state for state, _ in hosts.rows.values()] == ["live"] * 3
        hosts.all_but_these_beat_as_time_passes(seconds=1_700, times=8, others={2})
        hosts.the_table_is_as_expected()
        assert sorted(state for state, _ in hosts.rows.values()) == ["dead", "live", "live"]
    finally:
        hosts.teardown()
