"""Lanes by themselves: in which order, what may pass what, and at what cost."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from types import SimpleNamespace

import pytest

from accord import Handlers, Limits, Overflow, Peer, memory_pair, v1
from accord.engine.incoming_requests import IncomingRequest
from accord.engine.lanes import WEIGHT, YIELD_EVERY, Lanes, inside
from tests.engine.virtual_time import VirtualLoop, settle

STUCK_AFTER = 10.0
MANY = 100_000


class Answer:
    """An answer that has come; made inside the handler that is running, like a request of it."""

    def __init__(self, maker=None):
        self.maker = maker
        self.released = False
        self.error = None

    def release(self):
        self.released = True

    def fail(self, error):
        self.error = error


class Bench:
    """Some lanes, handlers that are let go by hand, and what has happened."""

    def __init__(self):
        self.log = []
        self.sizes = []
        self.lanes = Lanes(stuck_after=STUCK_AFTER, on_size=self.sizes.append)
        self.gates = {}

    def tell(self, name, do=None, *, lane="s", size=0):
        """A notification. Its handler is `do`, or else waits until `let_go(name)`."""

        async def handle(_):
            self.log.append(f"{name} starts")
            try:
                await (self._wait(name) if do is None else do())
            finally:
                self.log.append(f"{name} ends")

        self.lanes.enter(lane).notify(SimpleNamespace(method=name, tell=handle), {}, size)

    def tell_plainly(self, name, do=lambda: None, *, lane="s"):
        """A notification with a `def` handler."""

        def handle(_):
            self.log.append(name)
            do()

        self.lanes.enter(lane).notify(SimpleNamespace(method=name, tell=handle), {}, 0)

    async def _wait(self, name):
        self.gates[name] = asyncio.get_running_loop().create_future()
        await self.gates[name]

    async def let_go(self, name):
        self.gates.pop(name).set_result(None)
        await settle()

    def hold(self, maker=None, *, lane="s"):
        answer = Answer(maker)
        self.lanes.hold(lane, answer)
        return answer

    def start(self, name, *, lane="s"):
        """The place of a request; whether there was anything before it."""
        return self.lanes.mark_start(lane, lambda: self.log.append(f"{name} begins"))


@pytest.fixture
async def bench():
    made = Bench()
    yield made
    await made.lanes.cancel(ValueError, within=1)
    assert not made.lanes.busy
    assert made.lanes.size == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


# Order


async def test_a_lane_handles_one_at_a_time_in_order(bench):
    bench.tell("a")
    bench.tell_plainly("b")
    bench.tell("c")
    await settle()
    assert bench.log == ["a starts"]
    await bench.let_go("a")
    assert bench.log == ["a starts", "a ends", "b", "c starts"]


async def test_lanes_do_not_wait_for_each_other(bench):
    bench.tell("a", lane="one")
    bench.tell("b", lane="two")
    bench.tell("c", lane=None)
    await settle()
    assert bench.log == ["a starts", "b starts", "c starts"]
    await bench.let_go("b")
    assert bench.log[-1] == "b ends"
    assert set(bench.lanes.busy) == {"one", None}


async def test_an_idle_lane_does_not_exist(bench):
    bench.tell("a")
    assert set(bench.lanes.busy) == {"s"}
    await settle()
    await bench.let_go("a")
    assert not bench.lanes.busy


async def test_an_answer_waits_for_the_notifications_before_it_and_for_none_behind(bench):
    bench.tell("a")
    bench.tell("b")
    answer = bench.hold()
    bench.tell("c")
    await settle()
    await bench.let_go("a")
    assert not answer.released
    await bench.let_go("b")
    assert answer.released
    assert bench.log[-1] == "c starts"


async def test_an_answer_does_not_wait_for_another_session(bench):
    bench.tell("a", lane="one")
    await settle()
    assert bench.hold(lane="two").released
    assert bench.hold(lane=None).released


async def test_answers_go_in_the_order_of_their_arrival(bench):
    order = []
    bench.tell("a")
    for name in ("first", "second", "third"):
        answer = Answer()
        answer.release = lambda name=name: order.append(name)
        bench.lanes.hold("s", answer)
    await settle()
    await bench.let_go("a")
    assert order == ["first", "second", "third"]


async def test_a_request_s_place_is_reached_when_what_was_before_it_has_ended(bench):
    bench.tell_plainly("a")
    bench.tell_plainly("b")
    assert bench.start("request")
    bench.tell_plainly("c")
    await settle()
    assert bench.log == ["a", "b", "request begins", "c"]


async def test_a_request_has_no_place_in_an_idle_lane(bench):
    bench.tell("a", lane="other")
    assert not bench.start("request")


async def test_what_a_def_handler_gave_is_awaited_in_its_turn(bench):
    async def rest():
        bench.log.append("rest of b")

    bench.tell("a")
    bench.lanes.enter("s").notify(SimpleNamespace(method="b", tell=None), {}, 0, rest())
    bench.tell_plainly("c")
    await settle()
    await bench.let_go("a")
    assert bench.log == ["a starts", "a ends", "rest of b", "c"]


async def test_a_handler_that_fails_does_not_stop_its_lane(bench, caplog):
    def fail():
        raise ValueError("on purpose")

    bench.tell_plainly("a", fail)
    bench.tell_plainly("b")
    await settle()
    assert bench.log == ["a", "b"]
    assert "the handler of a failed" in caplog.text


# Answers that may pass


def others_handler():
    """The handler of a request, somewhere."""
    return IncomingRequest(1, 1, "session/prompt", None, None, 10, None)


def ended_handler():
    owed = others_handler()
    owed.running = False
    return owed


MAKERS = {
    "an ordinary caller": lambda _: None,
    "the lane's handler": lambda handler: handler,
    "another running handler": lambda _: others_handler(),
    "a handler that has ended": lambda _: ended_handler(),
}
PASSES = {
    # the lane's handler   works, waits for another answer, waits for this one
    "an ordinary caller": (False, False, True),
    "the lane's handler": (False, True, True),
    "another running handler": (False, True, True),
    "a handler that has ended": (False, False, True),
}
CASES = [
    pytest.param(maker, waits_for, passes, id=f"made by {maker}, lane's handler waits for {waits_for}")
    for maker, row in PASSES.items()
    for waits_for, passes in zip(("nothing", "another", "this"), row, strict=True)
]


@pytest.mark.parametrize("comes_first", [True, False], ids=["answer first", "handler first"])
@pytest.mark.parametrize(("maker", "waits_for", "passes"), CASES)
async def test_who_may_pass_a_lane_whose_handler_waits(bench, maker, waits_for, passes, comes_first):
    async def handle():
        handler = inside.get()
        answer = Answer(MAKERS[maker](handler))
        if comes_first:
            bench.lanes.hold("s", answer)
        if waits_for != "nothing":
            handler.begins_to_wait(answer if waits_for == "this" else Answer(handler))
        if not comes_first:
            bench.lanes.hold("s", answer)
        bench.log.append(answer.released)

    bench.tell("a", handle)
    await settle()
    assert bench.log == ["a starts", passes, "a ends"]


async def test_what_may_pass_does_not_wait_for_the_notifications_behind_the_handler_either(bench):
    async def handle():
        inside.get().begins_to_wait(Answer(inside.get()))
        await asyncio.get_running_loop().create_future()

    bench.tell("a", handle)
    bench.tell("b")
    await settle()
    assert bench.hold(others_handler()).released
    assert not bench.hold().released


async def test_a_handler_that_has_its_answer_holds_the_others_up_again(bench):
    async def handle():
        handler, own = inside.get(), Answer(inside.get())
        handler.begins_to_wait(own)
        handler.no_longer_waits(own)
        await bench._wait("a")

    bench.tell("a", handle)
    await settle()
    assert not bench.hold(others_handler()).released


async def test_an_answer_that_passed_goes_only_once(bench):
    released = []

    async def handle():
        answer = Answer(inside.get())
        answer.release = lambda: released.append(answer)
        bench.lanes.hold("s", answer)
        inside.get().begins_to_wait(answer)
        bench.log.append(len(released))

    bench.tell("a", handle)
    await settle()
    assert bench.log == ["a starts", 1, "a ends"]


async def test_a_child_task_of_a_handler_is_inside_of_it(bench):
    async def child():
        own = Answer(inside.get())
        inside.get().begins_to_wait(own)
        await asyncio.get_running_loop().create_future()

    async def handle():
        async with asyncio.TaskGroup() as group:
            group.create_task(child())

    bench.tell("a", handle)
    await settle()
    assert bench.hold(others_handler()).released


async def test_a_task_that_a_handler_left_behind_is_an_ordinary_caller(bench):
    left = []

    async def child():
        left.append(inside.get())
        await asyncio.get_running_loop().create_future()

    async def handle():
        bench.child = asyncio.ensure_future(child())
        await asyncio.sleep(0)

    bench.tell("a", handle)
    bench.tell("b")
    await settle()
    assert not left[0].running
    # It waits for an answer; that excuses neither its own nor any other.
    own = Answer(left[0])
    left[0].begins_to_wait(own)
    bench.lanes.hold("s", own)
    assert not own.released
    assert not bench.hold(others_handler()).released
    left[0].no_longer_waits(own)
    await bench.let_go("b")
    assert own.released
    bench.child.cancel()


async def test_outside_of_handlers_nobody_is_inside(bench):
    bench.tell_plainly("a")
    await settle()
    assert inside.get() is None


# A handler that cancels the task it runs in


async def test_a_handler_that_cancels_itself_without_waiting_does_not_hit_the_next(bench):
    async def cancel_myself():
        asyncio.current_task().cancel()

    async def wait_a_little():
        async with asyncio.timeout(1):
            await asyncio.sleep(0)
        bench.log.append("not cancelled")

    bench.tell("a", cancel_myself)
    bench.tell("b", wait_a_little)
    bench.tell("c", wait_a_little)
    answer = bench.hold()
    await settle()
    assert bench.log == ["a starts", "a ends", *["b starts", "not cancelled", "b ends"], "c starts", *bench.log[6:]]
    assert bench.log[-1] == "c ends"
    assert answer.released


@pytest.mark.parametrize("swallows", [True, False])
async def test_a_handler_that_cancels_itself_and_waits_does_not_hit_the_next(bench, swallows):
    async def cancel_myself():
        asyncio.current_task().cancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if not swallows:
                raise

    async def wait_a_little():
        await asyncio.sleep(0)
        bench.log.append("not cancelled")

    bench.tell("a", cancel_myself)
    bench.tell("b", wait_a_little)
    await settle()
    assert bench.log == ["a starts", "a ends", "b starts", "not cancelled", "b ends"]


async def test_a_cancellation_that_comes_when_its_handler_is_long_done_harms_nobody(bench):
    tasks = []
    bench.tell_plainly("a", lambda: tasks.append(asyncio.current_task()))
    for _ in range(YIELD_EVERY - 1):
        bench.tell_plainly("b")
    bench.tell_plainly("c")
    answer = bench.hold()
    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: tasks[0].cancel())  # finds the lane where it lets others run
    await settle()
    assert bench.log[-1] == "c"
    assert answer.released


async def test_timeouts_and_task_groups_of_a_handler_are_its_own(bench):
    async def run_into_a_timeout():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.get_running_loop().create_future()
        bench.log.append("timed out")

    async def lose_a_child():
        async def fail():
            raise ValueError

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
                await asyncio.get_running_loop().create_future()
        except* ValueError:
            bench.log.append("failed")

    bench.tell("a", run_into_a_timeout)
    bench.tell("b", lose_a_child)
    bench.tell_plainly("c")
    await bench.lanes.idle()
    assert bench.log == ["a starts", "timed out", "a ends", "b starts", "failed", "b ends", "c"]


# The deadline


async def after(seconds):
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_later(seconds, passed.set_result, None)
    await passed


async def test_a_lane_that_gets_nowhere_lets_its_answers_go_and_names_the_handler(bench, caplog):
    bench.tell("session/update")
    bench.tell("b")
    answers = [bench.hold(), bench.hold()]
    await after(0.9 * STUCK_AFTER)
    assert not any(answer.released for answer in answers)
    await after(0.2 * STUCK_AFTER)
    assert all(answer.released for answer in answers)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "session/update" in record.getMessage()
    assert "2 later answer(s)" in record.getMessage()
    assert bench.log == ["session/update starts"], "the order of notifications stays as it is"


async def test_a_lane_that_gets_on_is_not_stuck_however_long_it_takes(bench, caplog):
    for name in ("a", "b", "c", "d"):
        bench.tell(name, lambda: after(0.9 * STUCK_AFTER))
    answer = bench.hold()
    await after(3.5 * STUCK_AFTER)
    assert not answer.released
    await bench.lanes.idle()
    assert answer.released
    assert not caplog.records


async def test_a_lane_that_was_stuck_holds_up_later_answers_as_before(bench, caplog):
    bench.tell("a")
    bench.hold()
    await after(1.1 * STUCK_AFTER)
    later = bench.hold()
    await after(0.9 * STUCK_AFTER)
    assert not later.released
    await bench.let_go("a")
    assert later.released
    assert len(caplog.records) == 1


async def test_the_deadline_runs_only_while_an_answer_is_held(bench, caplog):
    bench.tell("a")
    await after(5 * STUCK_AFTER)
    answer = bench.hold()
    await after(0.9 * STUCK_AFTER)
    assert not answer.released
    await bench.let_go("a")
    assert answer.released
    assert not asyncio.get_running_loop()._scheduled, "no timer is left behind"
    assert not caplog.records


# Fairness, and cost by counting


async def test_a_lane_whose_handlers_never_wait_lets_the_rest_live(bench):
    turns = []

    async def live():
        while bench.lanes.busy:
            turns.append(len(bench.log))
            await asyncio.sleep(0)

    for _ in range(5 * YIELD_EVERY):
        bench.tell_plainly("a")
    await live()
    assert turns == [0, *(YIELD_EVERY * turn for turn in range(1, 6))]


class Untouched(deque):
    """A queue that may be put to and taken from, and complains when somebody looks through it."""

    def _complain(self, *_):
        raise AssertionError("the whole queue was looked at")

    __iter__ = __reversed__ = __contains__ = __getitem__ = index = count = copy = __copy__ = _complain


async def test_neither_waiting_nor_holding_looks_at_what_is_queued(bench):
    async def handle():
        handler = inside.get()
        for _ in range(10):
            own = Answer(handler)
            handler.begins_to_wait(own)
            bench.lanes.hold("s", own)
            handler.no_longer_waits(own)
            bench.log.append(own.released)

    bench.tell("a", handle)
    lane = bench.lanes.busy["s"]
    lane.queue = Untouched(lane.queue)
    for _ in range(MANY):
        lane.notify(SimpleNamespace(method="b", tell=lambda _: None), {}, 0)
    answer = bench.hold()
    bench.start("request")
    await settle()
    assert bench.log == ["a starts", *[True] * 10, "a ends", "request begins"]
    assert answer.released


async def test_a_handler_that_begins_to_wait_looks_only_at_the_answers_that_are_held(bench):
    looked_at = []

    class Watched(Answer):
        @property
        def maker(self):
            looked_at.append(self)

        @maker.setter
        def maker(self, _): ...

    async def handle():
        handler = inside.get()
        held = [Watched() for _ in range(5)]
        for answer in held:
            bench.lanes.hold("s", answer)
        looked_at.clear()
        handler.begins_to_wait(Answer(handler))
        bench.log.append(set(looked_at) == set(held))

    bench.tell("a", handle)
    for _ in range(1000):
        bench.tell_plainly("b")
    await settle()
    assert bench.log[1] is True


# What is kept


async def test_what_has_not_started_is_counted_in_the_bytes_that_it_takes(bench):
    bench.tell("a", size=10)
    bench.tell("b", size=200)
    bench.tell("c", lane="other", size=3000)
    a, b, c = 10 + WEIGHT, 200 + WEIGHT, 3000 + WEIGHT
    assert bench.lanes.size == a + b + c
    assert bench.lanes.fullest().key == "other"
    await settle()
    assert bench.lanes.size == b
    await bench.let_go("a")
    assert bench.lanes.size == 0
    assert bench.sizes == [a, a + b, a + b + c, b + c, b, 0]


async def test_dropping_a_lane_is_one_change_of_size(bench):
    bench.tell("a")
    await settle()
    for name in ("b", "c", "d"):
        bench.tell(name, size=100)
    bench.sizes.clear()
    bench.lanes.busy["s"].drop(ValueError)
    assert bench.sizes == [0]
    assert bench.lanes.size == 0


async def test_a_notification_s_params_are_not_kept_beyond_its_handler(bench):
    class Params:
        gone = False

        def __del__(self):
            Params.gone = True

    def handle(_):
        bench.left_behind = asyncio.ensure_future(asyncio.get_running_loop().create_future())

    bench.lanes.enter("s").notify(SimpleNamespace(method="a", tell=handle), Params(), 0)
    await settle()
    assert Params.gone
    bench.left_behind.cancel()
    await settle()


# The end


async def test_the_end_cancels_what_runs_drops_what_waits_and_fails_the_answers_behind_it(bench):
    bench.tell("a", lane="one")
    bench.tell("b", lane="one")
    bench.tell("c", lane="two")
    answer = bench.hold(lane="one")
    await settle()
    await bench.lanes.cancel(ValueError, within=1)
    assert bench.log[:2] == ["a starts", "c starts"]
    assert sorted(bench.log[2:]) == ["a ends", "c ends"]
    assert isinstance(answer.error, ValueError)
    assert not bench.lanes.busy


async def test_a_handler_that_ignores_its_cancellation_is_waited_for_only_so_long(bench):
    async def ignore():
        while "enough" not in bench.log:
            try:
                await after(100)
            except asyncio.CancelledError:
                bench.log.append("ignored")

    bench.tell("a", ignore)
    await settle()
    loop = asyncio.get_running_loop()
    began = loop.time()
    await bench.lanes.cancel(ValueError, within=3)
    assert loop.time() == pytest.approx(began + 3)
    bench.log.append("enough")
    await bench.lanes.idle()


# The hard mark


def chunk(session, size):
    return v1.SessionNotification(v1.SessionId(session), v1.AgentMessageChunk.of("x" * size))


@pytest.fixture
async def linked():
    """A client whose update handler never ends, and an agent that answers in one session only."""
    client, agent = Handlers(), Handlers()

    @client.on(v1.SessionNotification)
    async def update(_):
        await asyncio.get_running_loop().create_future()

    @agent.on(v1.PromptRequest)
    async def prompt(request, context):
        if request.session_id != "answered":
            await asyncio.get_running_loop().create_future()
        for _ in range(3):
            await context.peer.notify(chunk("answered", 100))
        return v1.PromptResponse("end_turn")

    here, there = memory_pair()
    limits = Limits(intake=1 << 40, lane=50_000, stuck_after=1e9)
    async with Peer(here, client, role="client", limits=limits) as peer, Peer(there, agent, role="client") as other:
        yield peer, other


@pytest.fixture
async def prompting(linked):
    """Prompts in these sessions, as tasks."""
    tasks = []

    async def prompting(*sessions):
        prompts = [v1.PromptRequest.of(v1.SessionId(session), "go") for session in sessions]
        tasks.extend(asyncio.ensure_future(linked[0].request(prompt)) for prompt in prompts)
        await settle()
        return tasks

    yield prompting
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_past_the_hard_mark_the_fullest_session_is_given_up_and_the_others_go_on(linked, prompting, caplog):
    peer, other = linked
    empty, full, fuller = await prompting("empty", "full", "fuller")
    await other.notify(chunk("empty", 100))
    for size, session in ((100, "full"), (150, "fuller")):
        for _ in range(20):
            await other.notify(chunk(session, size))
    await settle()
    assert not fuller.done()
    await other.notify(chunk("fuller", 40_000))
    await settle()
    assert isinstance(fuller.exception(), Overflow)
    assert not full.done()
    assert not empty.done()
    assert 0 < peer.connection.statistics().queued < 50_000
    assert [record.levelname for record in caplog.records].count("ERROR") == 1


async def test_an_answer_whose_updates_were_given_up_is_no_answer(linked, prompting):
    (prompt,) = await prompting("answered")
    assert not prompt.done()
    await linked[1].notify(chunk("answered", 60_000))
    await settle()
    assert isinstance(prompt.exception(), Overflow)


# Everything at once


class Crowd:
    """Random notifications, answers and requests in random lanes, and what must come of it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.bench = Bench()
        self.arrivals = {lane: [] for lane in (None, "one", "two")}
        self.ends = {}
        self.problems = []
        self.number = 0

    async def run(self):
        for _ in range(self.random.randint(1, 60)):
            lane = self.random.choice(list(self.arrivals))
            self.number += 1
            match self.random.choice(["tell", "tell", "tell", "hold", "start", "turn"]):
                case "tell":
                    self._tell(lane, self.number)
                case "hold":
                    self._hold(lane)
                case "start":
                    self._start(lane)
                case "turn":
                    await asyncio.sleep(0)
        await self.bench.lanes.idle()
        assert not self.bench.lanes.busy
        assert self.ends.keys() == {number for numbers in self.arrivals.values() for number in numbers}

    def _tell(self, lane, number):
        before = list(self.arrivals[lane])
        self.arrivals[lane].append(number)
        turns = self.random.choice([0, 0, 1, 3])
        fails = self.random.random() < 0.1

        async def handle():
            if any(earlier not in self.ends for earlier in before):
                self.problems.append(f"{number} started too early")
            for _ in range(turns):
                await asyncio.sleep(0)
            self.ends[number] = True
            if fails:
                asyncio.current_task().cancel()

        self.bench.tell(number, handle, lane=lane)

    def _hold(self, lane):
        before = list(self.arrivals[lane])
        answer = Answer()
        answer.release = lambda: self._check(before, "an answer")
        self.bench.lanes.hold(lane, answer)

    def _start(self, lane):
        before = list(self.arrivals[lane])
        self.bench.lanes.mark_start(lane, lambda: self._check(before, "a request"))

    def _check(self, before, what):
        if missing := [number for number in before if number not in self.ends]:
            self.problems.append(f"{what} came before {missing}")


@pytest.mark.parametrize("first", range(0, 500, 50))
def test_any_crowd_keeps_its_order(first):
    for seed in range(first, first + 50):
        crowd = Crowd(seed)
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(crowd.run())
        assert not crowd.problems, f"seed {seed}"
