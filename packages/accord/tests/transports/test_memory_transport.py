"""The in-memory transport behaves as a pair of pipes would."""

import asyncio

import pytest

from accord.transports import End
from accord.transports.memory_transport import pair


@pytest.fixture
async def linked(recorder):
    """Both ends, started, and who receives at each."""
    here, there = pair(high_water=100)
    receivers = recorder(), recorder()
    await here.start(receivers[0])
    await there.start(receivers[1])
    yield here, there, *receivers
    await asyncio.gather(here.close(0), there.close(0))


async def test_frames_arrive_in_order_on_the_other_side(linked):
    here, there, at_here, at_there = linked
    here.send([b"1", b"2"])
    there.send([b"a"])
    here.send([b"3"])
    await at_there.has(b"1", b"2", b"3")
    await at_here.has(b"a")


async def test_what_was_sent_in_one_turn_arrives_together(linked):
    here, _, _, at_there = linked
    here.send([b"1"])
    here.send([b"2", b"3"])
    await at_there.has(b"1", b"2", b"3")
    assert at_there.batches == [[b"1", b"2", b"3"]]


async def test_nothing_arrives_inside_of_send(linked):
    here, _, _, at_there = linked
    here.send([b"1"])
    assert at_there.frames == []
    await at_there.has(b"1")


async def test_a_receiver_that_answers_at_once_is_not_entered_again(recorder):
    depths = []

    class Echo(recorder):
        inside = 0

        def received(self, frames):
            self.inside += 1
            depths.append(self.inside)
            super().received(frames)
            if len(self.batches) < 5:
                self.transport.send(frames)
            self.inside -= 1

    one, two = Echo(), Echo()
    one.transport, two.transport = pair()
    await one.transport.start(one)
    await two.transport.start(two)
    one.transport.send([b"ball"])
    await one.until(lambda it: len(it.batches) == 4)
    await two.until(lambda it: len(it.batches) == 5)
    assert set(depths) == {1}
    await asyncio.gather(one.transport.close(), two.transport.close())


async def test_what_was_sent_before_the_other_side_started_waits_for_it(recorder):
    here, there = pair()
    await here.start(recorder())
    here.send([b"early"])
    receiver = recorder()
    await there.start(receiver)
    await receiver.has(b"early")
    await asyncio.gather(here.close(), there.close())


async def test_a_side_that_does_not_read_fills_the_other_sides_output(linked):
    here, there, at_here, at_there = linked
    there.pause_reading()
    here.send([b"x" * 60])
    assert (here.unsent, at_here.events) == (60, [])
    here.send([b"y" * 60])
    assert (here.unsent, at_here.events) == (120, ["paused"])
    there.resume_reading()
    await at_here.until(lambda it: it.events == ["paused", "resumed"])
    assert at_there.frames == [b"x" * 60, b"y" * 60]
    assert here.unsent == 0


async def test_reading_can_pause_from_inside_a_delivery(linked):
    here, there, _, at_there = linked
    note = at_there.received
    at_there.received = lambda frames: (note(frames), there.pause_reading())
    here.send([b"1"])
    await at_there.has(b"1")
    here.send([b"2"])
    await asyncio.wait([asyncio.ensure_future(here.flush())], timeout=0)
    assert at_there.frames == [b"1"]
    there.resume_reading()
    await at_there.has(b"1", b"2")


async def test_flush_waits_until_the_other_side_has_taken_everything(linked):
    here, there, _, at_there = linked
    there.pause_reading()
    here.send([b"1"])
    flush = asyncio.create_task(here.flush())
    await asyncio.wait([flush], timeout=0)
    assert not flush.done()
    there.resume_reading()
    await flush
    assert at_there.frames == [b"1"]


async def test_what_was_sent_before_close_still_arrives_and_then_both_sides_end(linked):
    here, _, at_here, at_there = linked
    here.send([b"last"])
    assert await here.close() == End("closed")
    assert at_here.end == End("closed")
    assert await at_there.has_ended() == End("peer_closed")
    assert at_there.events == ["received", "ended"]


async def test_what_both_sides_sent_before_one_closes_arrives_at_both(linked):
    here, there, at_here, at_there = linked
    here.send([b"1"])
    there.send([b"2"])
    await here.close()
    assert at_here.frames == [b"2"]
    await at_there.has(b"1")


async def test_closing_does_not_wait_for_a_side_that_never_reads_which_finds_it_all_later(linked):
    here, there, at_here, at_there = linked
    there.pause_reading()
    here.send([b"1"])
    await here.close(grace=0)
    assert at_here.end == End("closed")
    assert at_there.events == []
    there.resume_reading()
    assert await at_there.has_ended() == End("peer_closed")
    assert at_there.frames == [b"1"]


async def test_what_is_sent_after_the_end_is_dropped(linked):
    here, there, at_here, at_there = linked
    await here.close()
    await at_there.has_ended()
    here.send([b"x"])
    there.send([b"x" * 1000])
    assert (here.unsent, there.unsent) == (0, 0)
    await there.flush()
    assert (at_here.events, at_there.events) == (["ended"], ["ended"])


async def test_a_sender_that_waits_for_room_is_let_go_when_the_other_side_closes(linked):
    here, there, at_here, _ = linked
    there.pause_reading()
    here.send([b"x" * 1000])
    await there.close()
    await here.flush()
    assert at_here.events[:2] == ["paused", "resumed"]
    assert await at_here.has_ended() == End("peer_closed")


async def test_both_sides_can_close_at_the_same_time_and_twice(linked):
    here, there, at_here, at_there = linked
    ends = await asyncio.gather(here.close(), there.close(), here.close())
    assert ends[0] == ends[2] == at_here.end
    assert ends[1] == at_there.end


async def test_a_cancelled_close_still_closes_and_the_cancellation_comes_through(linked):
    here, there, at_here, _ = linked
    there.pause_reading()
    here.send([b"x"])
    closing = asyncio.create_task(here.close(grace=0.01))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert at_here.end == End("closed")


async def test_a_side_that_was_never_started_can_be_closed():
    here, there = pair()
    assert await here.close() == End("closed")
    assert await there.close() == End("closed")
