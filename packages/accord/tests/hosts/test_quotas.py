"""What each owner may use, counted over all hosts."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from hypothesis import given, strategies as st

import accord
from accord.hosts.host_table import Beat, HostRow
from accord.hosts.hosts import directory_of
from accord.http import MeasuredHost, Quotas, SharedHost, serving
from accord.http.server.owner_quotas import CountedTurns, LocalCounts, OwnerGate, QuotaTransport, new_use
from accord.http.server.server_limits import Bucket
from accord.http.server.validation import Refusal
from accord.metrics import ServerMetrics
from accord.testing import ScriptedPeer
from accord.transports.memory_transport import pair
from accord_tools.cli.exit_codes import WrongUsage
from accord_tools.cli.host_wrappers import RecordedHost
from accord_tools.cli.serve_options import quotas_of
from tests.hosts.hosting import editor_on, post
from tests.http.talking import WAYS, an_agent
from tests.waiting import DEADLINE, eventually


@pytest.fixture
async def tables(directory):
    """The quotas of three hosts that live."""
    async with AsyncExitStack() as stack:
        opened = []
        for name in ("one", "two", "three"):
            there = await stack.enter_async_context(
                directory_of(directory["directory"], directory.get("schema", "accord"))
            )
            await there.beat(Beat(HostRow(name, "127.0.0.1:1"), 60.0))
            opened.append((name, there))
        yield opened


async def admitted(tables, owner, count, most):
    """How many of `count` uses were admitted that were asked for at the same time, on all hosts in turn."""
    asking = [
        tables[number % len(tables)][1].admit(new_use("turns", owner), most, tables[number % len(tables)][0])
        for number in range(count)
    ]
    return sum(await asyncio.gather(*asking))


# The tables


async def test_hosts_that_admit_at_the_same_time_admit_as_many_as_allowed(tables):
    assert await admitted(tables, "ada", 30, 10) == 10
    assert await admitted(tables, "bob", 30, 7) == 7


async def test_a_use_that_is_released_makes_room_for_another(tables):
    (one, first), (two, second), _ = tables
    use = new_use("connections", "ada")
    assert await first.admit(use, 1, one)
    assert not await second.admit(new_use("connections", "ada"), 1, two)
    assert await second.admit(new_use("turns", "ada"), 1, two)
    await second.release([use.id])
    assert await second.admit(new_use("connections", "ada"), 1, two)


async def test_uses_of_a_host_that_has_gone_do_not_count_and_are_swept(tables):
    (one, first), (two, second), _ = tables
    assert await first.admit(new_use("turns", "ada"), 1, one)
    await first.beat(Beat(HostRow(one, "127.0.0.1:1", state="gone"), 60.0))
    kept = new_use("turns", "ada")
    assert await second.admit(kept, 1, two)
    await second.sweep()
    assert not await second.admit(new_use("turns", "ada"), 1, two)
    await second.release([kept.id])
    assert await second.admit(new_use("turns", "ada"), 1, two)


async def test_hosts_withdraw_no_more_than_the_burst(tables):
    bucket = Bucket(rate=0.001, burst=50)
    came = await asyncio.gather(*(tables[number % 3][1].withdraw("ada", bucket, 4) for number in range(30)))
    assert sum(it.taken for it in came) == 50
    assert all(it.wait > 0 for it in came if not it.taken)


class OneBucket:
    """The bucket of several hosts, on a clock of its own; each answer comes when it may."""

    def __init__(self):
        self.now, self.requests = 0.0, 0
        self._counts = LocalCounts(lambda: self.now)
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def withdraw(self, owner, bucket, most):
        self.requests += 1
        withdrawal = await self._counts.withdraw(owner, bucket, most)
        await self.may_answer.wait()
        return withdrawal

    def gate(self):
        gate = OwnerGate(Quotas(posts=20, burst=60))
        gate.counts = self
        return gate


async def test_hosts_together_never_give_more_than_the_burst_and_the_rate():
    """What a host had withdrawn and not spent would be spent after the bucket has filled again."""
    bucket = OneBucket()
    gates = [bucket.gate() for _ in range(4)]
    for gate in gates:
        await gate.spend("ada")
    bucket.now = 100.0  # the bucket is full again
    accepted = 0
    for number in range(200):
        with suppress(Refusal):
            await gates[number % 4].spend("ada")
            accepted += 1
    assert accepted == 60


async def test_messages_that_arrive_together_are_one_request_to_the_directory():
    bucket = OneBucket()
    gate = bucket.gate()
    bucket.may_answer.clear()
    spending = [asyncio.ensure_future(gate.spend("ada")) for _ in range(50)]
    await eventually(lambda: bucket.requests == 1)
    spending.pop().cancel()
    bucket.may_answer.set()
    await asyncio.gather(*spending)
    assert bucket.requests == 2  # the first alone, and all that have come meanwhile
    for _ in range(60 - 49):
        await gate.spend("ada")
    with pytest.raises(Refusal):
        await gate.spend("ada")


# The bucket

takes = st.lists(st.tuples(st.floats(0, 5), st.integers(1, 30)), max_size=60)


@given(takes, st.floats(0.1, 100), st.integers(1, 50))
def test_a_bucket_gives_no_more_than_its_burst_and_its_rate(taking, rate, burst):
    bucket, full_in, given_out, passed = Bucket(rate, burst), 0.0, 0, 0.0
    for pause, most in taking:
        passed += pause
        taken, full_in, wait = bucket.take(full_in - pause, most)
        given_out += taken
        assert taken <= most
        assert (wait > 0) is (taken == 0)
        assert given_out <= burst + rate * passed + 0.001


@given(st.floats(0.01, 1000), st.integers(1, 1000), st.floats(0, 1e6))
def test_after_the_wait_that_a_bucket_names_there_is_something_to_take(rate, burst, full_in):
    bucket = Bucket(rate, burst)
    taken, left, wait = bucket.take(full_in, 1)
    assert taken or bucket.take(left - wait, 1).taken == 1


# One server


@pytest.mark.parametrize("way", WAYS)
async def test_a_prompt_past_the_quota_is_refused_until_a_turn_has_ended(way):
    async with serving(an_agent(), quotas=Quotas(turns=1)) as server, editor_on(server.url, way) as editor:
        one, two = await editor.open_session(), await editor.open_session()
        running = asyncio.create_task(editor.prompt(one, "wait"))
        async with asyncio.timeout(DEADLINE):
            await editor.first_words.wait()
        with pytest.raises(accord.PeerError, match=r"as many running turns as its quota allows \(1\)"):
            await editor.prompt(two, "hello")
        await editor.notify(accord.v1.CancelNotification(one))
        assert (await running).stop_reason == "cancelled"
        assert (await editor.prompt(two, "hello")).stop_reason == "end_turn"


@pytest.mark.parametrize("way", WAYS)
async def test_the_turns_of_a_connection_that_has_ended_do_not_count(way):
    async with serving(an_agent(), quotas=Quotas(turns=1, connections=1)) as server:
        for _ in range(3):
            async with opened(server.url, way) as editor:
                session = await editor.open_session()
                running = asyncio.create_task(editor.prompt(session, "wait"))
                await editor.first_words.wait()
            with pytest.raises(accord.ConnectionClosed):
                await running


AROUND = {
    "nothing": lambda host: host,
    "measured": lambda host: MeasuredHost(host, ServerMetrics()),
    "recorded": lambda host: RecordedHost(host, print),
}


@pytest.mark.parametrize("around", AROUND)
async def test_a_turn_of_a_shared_agent_counts_until_it_ends_also_without_a_client(around):
    hosted = AROUND[around](SharedHost(an_agent()))
    async with serving(hosted, quotas=Quotas(turns=1)) as server:
        async with editor_on(server.url) as one:
            lasting = await one.open_session()
            running = asyncio.create_task(one.prompt(lasting, "wait"))
            async with asyncio.timeout(DEADLINE):
                await one.first_words.wait()
        with pytest.raises(accord.ConnectionClosed):
            await running
        async with editor_on(server.url) as two:
            session = await two.open_session()
            with pytest.raises(accord.PeerError, match=r"as many running turns as its quota allows \(1\)"):
                await two.prompt(session, "hello")
            await two.request(accord.v1.LoadSessionRequest(lasting, "/project", []), timeout=DEADLINE)
            await two.notify(accord.v1.CancelNotification(lasting))
            assert (await two.prompt(lasting, "after")).stop_reason == "end_turn"
            assert (await two.prompt(session, "hello")).stop_reason == "end_turn"


class HesitantCounts(LocalCounts):
    """Admits nothing until it may."""

    def __init__(self):
        super().__init__()
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def admit(self, use, most):
        self.asked.set()
        await self.may_answer.wait()
        return await super().admit(use, most)


async def test_a_prompt_that_waits_for_admission_does_not_count_once_its_connection_has_ended():
    gate = OwnerGate(Quotas(turns=1))
    gate.counts = counts = HesitantCounts()
    client, server = pair()
    link = QuotaTransport(server, "ada", gate, counts_messages=False, counts_turns=True)
    async with ScriptedPeer(link) as agent, ScriptedPeer(client) as editor:
        editor.call("session/prompt", {"sessionId": "s", "prompt": []})
        await counts.asked.wait()
        [counting] = (task for task in asyncio.all_tasks() if "count prompts" in task.get_name())
        await editor.close()
        await agent.expect_end()
        counts.may_answer.set()
        await asyncio.wait([counting])
    assert await counts.admit(new_use("turns", "ada"), 1)


@asynccontextmanager
async def opened(url, way):
    """An editor, as soon as the server has noticed that the connection before has ended."""
    async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE):
        editor = None
        while editor is None:
            try:
                editor = await stack.enter_async_context(editor_on(url, way))
            except accord.ConnectionClosed as refused:
                if "429" not in str(refused):
                    raise
                await asyncio.sleep(0.01)
        yield editor


async def test_posts_that_come_too_fast_are_refused_with_the_time_to_wait():
    async with serving(an_agent(), quotas=Quotas(posts=0.01, burst=2)) as server:
        assert [(await post(server.url))[0] for _ in range(3)] == [200, 200, 429]
        status, headers, text = await post(server.url)
        assert status == 429
        assert 0 < int(headers["retry-after"]) <= 100
        assert "this owner may send 0.01 a second, and 2 at once" in text


@pytest.mark.parametrize(
    "prompt",
    [
        b'{"jsonrpc":"2.0","id":%d,"method":"session/\\u0070rompt","params":{"sessionId":"s","\\u0070rompt":[]}}',
        b'{"jsonrpc":"2.0","id":%d,"method":"session/prompt"}',
    ],
)
def test_a_prompt_is_recognised_however_it_is_written(prompt):
    turns = CountedTurns()
    turns.begin(turns.new_turn(prompt % 1), use := new_use("turns", "ada"))
    assert turns.new_turn(prompt % 2) is None
    assert turns.ended_by(b'{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}') == use
    assert turns.new_turn(prompt % 3) is not None


class NotedCounts(LocalCounts):
    """Counts how often there was nothing to withdraw."""

    empty = 0

    async def withdraw(self, owner, bucket, most):
        withdrawal = await super().withdraw(owner, bucket, most)
        self.empty += not withdrawal.taken
        return withdrawal


async def test_messages_of_a_websocket_that_come_too_fast_wait():
    async with serving(an_agent(), quotas=Quotas(posts=20, burst=1)) as server:
        server.app.gate.counts = counts = NotedCounts()
        async with editor_on(server.url, "websocket") as editor:
            session = await editor.open_session()
            await asyncio.gather(*(editor.prompt(session, "word") for _ in range(5)))
        assert editor.text(session) == "word " * 5
        assert counts.empty


def test_quotas_that_make_no_sense_are_refused():
    for given_quotas, problem in (
        ({"turns": 0}, "'turns' must be positive, got 0"),
        ({"burst": 3}, "requires 'posts'"),
    ):
        with pytest.raises(ValueError, match=problem):
            Quotas(**given_quotas)


@pytest.mark.parametrize(
    ("quota", "problem"),
    [("turn=1", "--quota must be NAME=NUMBER"), ("turns=x", "must be a number"), ("turns=0", "must be positive")],
)
def test_a_wrong_quota_on_the_command_line_is_explained(quota, problem):
    with pytest.raises(WrongUsage, match=problem):
        quotas_of([quota])
