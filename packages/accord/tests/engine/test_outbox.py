"""Output: in order, joined where that costs nothing, and with a brake for senders."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings, strategies as st

from accord.engine.flow_control import BLOCKED, FLUSH_AT, LEAST_SHARE, Backlog, Outbox, ReadPause
from accord.trace import OUT, Watch
from tests.engine.virtual_time import VirtualLoop, settle


class Wire:
    """A transport's sending half: what was written, write by write."""

    def __init__(self):
        self.writes = []

    def send(self, frames):
        self.writes.append(list(frames))

    @property
    def frames(self):
        return [frame for write in self.writes for frame in write]


class Reads:
    """Whether the intake reads."""

    def __init__(self):
        self.intake = ReadPause(self.pause, self.resume, 10)
        self.reading = True

    def pause(self):
        self.reading = False

    def resume(self):
        self.reading = True


@pytest.fixture
def wire():
    return Wire()


@pytest.fixture
def reads():
    return Reads()


@pytest.fixture
async def outbox(wire, reads, monkeypatch):
    """An outbox for which no time passes: on a busy machine, what was collected would be late at any moment."""
    monkeypatch.setattr("accord.engine.flow_control.monotonic", lambda: 0.0)
    return outbox_of(wire, reads)


def outbox_of(wire, reads):
    loop = asyncio.get_running_loop()
    unlimited = Backlog(reads.intake, loop, limit=1_000_000, stalled=60, taken=lambda: 0, on_stalled=lambda: None)
    return Outbox(wire, reads.intake, unlimited, loop)


async def test_what_a_turn_of_the_loop_sends_goes_together_at_its_end(outbox, wire):
    for frame in (b"1", b"2", b"3"):
        outbox.put(frame)
    assert wire.writes == []
    await settle()
    assert wire.writes == [[b"1", b"2", b"3"]]


async def test_what_is_collected_goes_together_at_the_end_of_the_turn_of_the_loop(outbox, wire):
    outbox.collect()
    outbox.put(b"1")
    outbox.answer(b"2")
    outbox.put(b"3")
    assert wire.writes == []
    await settle()
    assert wire.writes == [[b"1", b"2", b"3"]]
    outbox.answer(b"4")
    assert wire.writes[1:] == [[b"4"]]


async def test_a_frame_that_comes_late_in_a_turn_of_the_loop_is_written_at_once(outbox, wire, monkeypatch):
    now = 100.0
    monkeypatch.setattr("accord.engine.flow_control.monotonic", lambda: now)
    outbox.put(b"1")
    now += BLOCKED
    outbox.put(b"2")
    assert wire.writes == []
    now += BLOCKED
    outbox.put(b"3")
    outbox.put(b"4")
    assert wire.writes == [[b"1", b"2", b"3"]]
    now += 2 * BLOCKED
    outbox.put(b"5")
    assert wire.writes[1:] == [[b"4", b"5"]]
    await settle()
    outbox.put(b"6")
    assert wire.writes[2:] == []


async def test_what_comes_late_while_a_delivery_is_handled_waits_for_its_end(outbox, wire, monkeypatch):
    now = 100.0
    monkeypatch.setattr("accord.engine.flow_control.monotonic", lambda: now)
    outbox.corked = True
    outbox.put(b"1")
    now += 2 * BLOCKED
    outbox.put(b"2")
    assert wire.writes == []


async def test_a_large_frame_does_not_wait_for_the_end_of_what_is_collected(outbox, wire):
    outbox.collect()
    outbox.put(b"x" * FLUSH_AT)
    assert len(wire.frames) == 1


async def test_each_turn_has_its_own_write(outbox, wire):
    outbox.put(b"1")
    await settle()
    outbox.put(b"2")
    await settle()
    assert wire.writes == [[b"1"], [b"2"]]


FRAME = b"x" * 100


async def stream(outbox, name, order):
    """Send frames for ever, and note who sends each, as an author's loop of updates does."""
    while True:
        order.append(name)
        if outbox.put(FRAME):
            await outbox.breathe()


async def turns_of(outbox, names, order, turns):
    """Let so many of them stream for some turns of the loop."""
    tasks = [asyncio.create_task(stream(outbox, name, order)) for name in names]
    for _ in range(turns):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()


async def test_one_sender_sends_a_whole_write_before_others_run(outbox):
    order = []
    await turns_of(outbox, ["a"], order, 3)
    assert len(order) == 3 * -(-FLUSH_AT // len(FRAME))


@pytest.mark.parametrize("number", [2, 10, 50])
async def test_the_senders_of_a_turn_of_the_loop_share_one_write(outbox, wire, number):
    order = []
    names = range(number)
    await turns_of(outbox, names, order, 4)  # after two turns it is known how many there are
    order.clear()
    wire.writes.clear()
    await turns_of(outbox, names, order, 2)
    share = max(LEAST_SHARE, FLUSH_AT // number)
    for name in names:
        assert order.count(name) <= 2 * (share // len(FRAME) + 1)
    assert len(wire.frames) * len(FRAME) < 2 * max(FLUSH_AT, number * LEAST_SHARE)


async def test_a_sender_that_is_alone_again_sends_a_whole_write_again(outbox):
    order = []
    await turns_of(outbox, range(10), order, 4)
    await turns_of(outbox, ["alone"], order, 6)
    order.clear()
    await turns_of(outbox, ["alone"], order, 2)
    assert len(order) >= FLUSH_AT // len(FRAME)


async def test_senders_wait_while_output_is_full_and_share_the_room(outbox):
    order = []
    tasks = [asyncio.create_task(stream(outbox, name, order)) for name in range(5)]
    for _ in range(4):
        await asyncio.sleep(0)
    outbox.filled()
    await settle()
    order.clear()
    await settle()
    assert order == []
    outbox.emptied()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert set(order) == set(range(5))
    assert max(order.count(name) for name in range(5)) <= 2 * (FLUSH_AT // 5 // len(FRAME) + 1)
    for task in tasks:
        task.cancel()


async def test_the_first_answer_goes_at_once_with_what_was_gathered_before_it(outbox, wire):
    for frame in (b"1", b"2"):
        outbox.put(frame)
    for answer in (b"3", b"4"):
        outbox.answer(answer)
    assert wire.writes == [[b"1", b"2", b"3"]]
    await settle()
    assert wire.writes == [[b"1", b"2", b"3"], [b"4"]]
    outbox.answer(b"5")
    outbox.answer(b"6")
    assert wire.writes[2:] == [[b"5"]]


async def test_answers_of_a_delivery_are_one_write_and_the_next_one_is_the_first_of_its_turn(outbox, wire):
    outbox.corked = True
    for answer in (b"1", b"2"):
        outbox.answer(answer)
    assert wire.writes == []
    outbox.uncork()
    outbox.answer(b"3")
    assert wire.writes == [[b"1", b"2"], [b"3"]]


async def test_while_a_delivery_is_handled_everything_is_one_write(outbox, wire):
    outbox.corked = True
    for frame in (b"1", b"2", b"3"):
        assert not outbox.put(frame)
    assert wire.writes == []
    outbox.uncork()
    assert wire.writes == [[b"1", b"2", b"3"]]


async def test_a_delivery_that_causes_nothing_writes_nothing(outbox, wire):
    outbox.corked = True
    outbox.uncork()
    await settle()
    assert wire.writes == []


async def test_enough_for_a_write_goes_out_before_the_end_of_the_turn_and_the_sender_should_breathe(outbox, wire):
    half = b"x" * (FLUSH_AT // 2)
    assert not outbox.put(half)
    assert outbox.put(half)
    assert wire.writes == [[half, half]]


async def test_a_turn_that_fills_several_writes_starts_each_from_nothing(outbox, wire):
    half = b"x" * (FLUSH_AT // 2)
    assert [outbox.put(half) for _ in range(6)] == [False, True] * 3
    assert [len(write) for write in wire.writes] == [2, 2, 2]


async def test_what_goes_out_is_counted(outbox):
    outbox.put(b"12345")
    outbox.put(b"678")
    await settle()
    assert (outbox.frames_out, outbox.bytes_out) == (2, 8)


async def test_who_watches_sees_a_frame_as_it_is_put(outbox, wire):
    seen = []
    outbox.watch = Watch()
    outbox.watch.observers.append(seen.append)
    outbox.corked = True
    outbox.put(b"{}")
    assert [(event.direction, event.frame) for event in seen] == [(OUT, b"{}")]
    assert wire.writes == []


async def test_a_full_outbox_asks_every_sender_to_breathe(outbox):
    assert not outbox.put(b"1")
    outbox.filled()
    assert outbox.put(b"2")
    outbox.emptied()
    assert not outbox.put(b"3")


async def test_breathing_with_room_lets_others_run_and_goes_on(outbox):
    order = []
    asyncio.get_running_loop().call_soon(order.append, "others")
    await outbox.breathe()
    order.append("sender")
    assert order == ["others", "sender"]


async def test_breathing_without_room_waits_for_it(outbox):
    outbox.filled()
    senders = [asyncio.ensure_future(outbox.breathe()) for _ in range(3)]
    await settle()
    assert not any(sender.done() for sender in senders)
    outbox.emptied()
    await settle()
    assert all(sender.done() for sender in senders)


async def test_reading_never_rests_while_a_sender_waits_for_room(outbox, reads):
    reads.intake.resized(11)
    assert not reads.reading
    outbox.filled()
    sender = asyncio.ensure_future(outbox.breathe())
    await settle()
    assert reads.reading
    outbox.emptied()
    await sender
    assert not reads.reading


async def test_a_sender_that_is_cancelled_no_longer_waits(outbox, reads):
    outbox.filled()
    sender = asyncio.ensure_future(outbox.breathe())
    await settle()
    sender.cancel()
    await asyncio.wait([sender])
    assert sender.cancelled()
    assert reads.intake.senders == 0


async def test_room_that_is_gone_again_before_a_sender_has_run_is_not_waited_for_twice(outbox):
    """It goes on with one frame more: the mark is a mark, not a wall."""
    outbox.filled()
    sender = asyncio.ensure_future(outbox.breathe())
    await settle()
    outbox.emptied()
    outbox.filled()
    await settle()
    assert sender.done()


DEEDS = st.lists(
    st.one_of(
        st.sampled_from(["cork", "uncork", "turn"]),
        st.integers(1, 20),
        st.integers(FLUSH_AT // 3, FLUSH_AT),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(DEEDS)
def test_whatever_happens_everything_goes_out_once_and_in_order(deeds):
    async def play():
        wire = Wire()
        outbox = outbox_of(wire, Reads())
        sent = []
        for deed in deeds:
            if deed == "cork":
                outbox.corked = True
            elif deed == "uncork":
                outbox.uncork()
            elif deed == "turn":
                outbox.uncork()  # nobody leaves it corked over a turn
                await settle()
                assert wire.frames == sent
            else:
                frame = b"%d" % len(sent) + b"." * deed
                sent.append(frame)
                outbox.put(frame)
            assert wire.frames == sent[: len(wire.frames)]
        outbox.uncork()
        await settle()
        assert wire.frames == sent
        assert all(wire.writes), "an empty write"
        assert (
            all(sum(map(len, write[:-1])) < FLUSH_AT for write in wire.writes if not outbox.corked) or "cork" in deeds
        )
        assert outbox.bytes_out == sum(map(len, sent))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(play())
