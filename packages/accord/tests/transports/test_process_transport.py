"""An agent's process: what it writes arrives, whatever it does it ends, and nothing of it is left."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from accord.jsonrpc.line_frames import Oversized
from accord.transports import End, process_group, process_transport
from accord.transports.descriptors import ThreadReader, ThreadWriter
from accord.transports.process_transport import ProcessTransport
from tests.posix import fcntl, termios
from tests.transports.children import DEAF, ECHO, FOREVER, READY, pid_of, python, shell
from tests.waiting import eventually


async def test_frames_go_there_and_back(start):
    transport, receiver = await start(python(ECHO))
    transport.send([b'{"id":1}', b'{"id":2}'])
    transport.send([b'{"id":3}'])
    await receiver.has(b'{"id":1}', b'{"id":2}', b'{"id":3}')
    assert await transport.close() == receiver.end == End("closed", exit_code=0)


async def test_a_line_of_60_mb_goes_there_and_back(start):
    transport, receiver = await start(python(ECHO))
    line = b'{"text":"' + b"x" * 60_000_000 + b'"}'
    transport.send([line, b"next"])
    await receiver.has(line, b"next")
    assert transport.unsent == 0


async def test_a_line_past_the_limit_is_reported_and_the_next_one_arrives(start):
    transport, receiver = await start(python(ECHO), limit=100_000)
    transport.send([b'{"id":7,"result":"' + b"x" * 200_000 + b'"}', b"next"])
    await receiver.until(lambda it: len(it.frames) == 2)
    assert receiver.frames == [Oversized(200_020, id=7, has_id=True), b"next"]


async def test_a_flood_is_read_without_starving_the_loop(start):
    transport, receiver = await start(python("while True: os.write(1, b'x' * 99 + b'\\n')\n"))
    await receiver.until(lambda it: len(it.frames) > 10_000)
    assert (await transport.close(grace=0.1)).reason == "closed"


def waiting_in(pipe):
    """How many bytes are there to read."""
    count = fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))
    return int.from_bytes(count, sys.byteorder)


async def test_pausing_stops_the_agent_and_resuming_lets_it_go_on(start):
    # More than all the buffers on the way hold, so the agent can only finish when we read.
    many = "for number in range(20_000): os.write(1, b'%0100d\\n' % number)\nos.write(2, b'finished')\n"
    finished = asyncio.Event()
    transport, receiver = await start(python(many), on_stderr=lambda _: finished.set())
    transport.pause_reading()
    await eventually(lambda: waiting_in(transport._stdout._fd) > 60_000)
    assert not finished.is_set()
    assert receiver.frames == []
    transport.resume_reading()
    await receiver.has_ended()
    assert [int(frame) for frame in receiver.frames] == list(range(20_000))


async def test_what_it_wrote_before_it_ended_arrives_before_the_end(start):
    last = (
        "os.write(1, b'%0100d\\n' * 500 % tuple(range(500)) + b'without newline')\nos.write(2, b'oh no')\nos._exit(3)\n"
    )
    _, receiver = await start(python(last))
    end = await receiver.has_ended()
    assert end == End("process_ended", exit_code=3, stderr="oh no")
    assert [*map(int, receiver.frames[:-1]), receiver.frames[-1]] == [*range(500), b"without newline"]
    assert receiver.events[-1] == "ended"


async def test_what_it_wrote_before_it_ended_arrives_even_while_reading_is_paused(start):
    transport, receiver = await start(python("os.read(0, 1)\nos.write(1, b'x\\n' * 30_000)\n"))
    transport.pause_reading()
    transport.send([b""])
    assert (await receiver.has_ended()).reason == "process_ended"
    assert receiver.frames == [b"x"] * 30_000


async def test_the_signal_that_killed_it_is_part_of_the_end(start):
    _, receiver = await start(python(READY + FOREVER))
    os.kill(await pid_of(receiver), signal.SIGKILL)
    end = await receiver.has_ended()
    assert end == End("process_ended", exit_code=-9)
    assert str(end.error()) == "the agent's process ended (killed by signal 9)"


async def test_what_is_sent_to_a_dead_process_is_dropped(start):
    transport, receiver = await start(python(READY))
    await receiver.has_ended()
    transport.send([b"x" * 10_000_000])
    assert transport.unsent == 0
    await transport.flush()


async def test_an_agent_that_closes_its_stdout_is_ended(start):
    transport, receiver = await start(python(READY + "os.close(1)\n" + FOREVER), grace=0.1)
    assert await receiver.has_ended() == End("peer_closed", "the agent closed its standard output")
    assert (await transport.close()).reason == "peer_closed"


async def test_an_agent_whose_stdout_closes_a_moment_before_it_ends_has_ended(start):
    _, receiver = await start(python(READY + "os.close(1)\ntime.sleep(0.3)\nos._exit(4)\n"))
    assert await receiver.has_ended() == End("process_ended", exit_code=4)


async def test_an_agent_that_closes_its_stdin_is_ended_when_something_is_sent(start):
    transport, receiver = await start(python("os.close(0)\n" + READY + FOREVER), grace=0.1)
    await pid_of(receiver)
    transport.send([b"anybody there?"])
    assert await receiver.has_ended() == End("broken", "the agent closed its standard input")


async def test_what_an_agent_says_behind_a_closed_stdin_still_arrives(start):
    transport, receiver = await start(python("os.close(0)\n" + READY + "os.write(1, b'bye')\ntime.sleep(0.05)\n"))
    await pid_of(receiver)
    transport.send([b"anybody there?"])
    assert (await receiver.has_ended()).reason == "process_ended"
    assert receiver.frames[1:] == [b"bye"]


async def test_a_child_that_holds_the_pipes_open_does_not_hide_the_end(start):
    _, receiver = await start(shell('python "$1" & echo hello; exit 5', DEAF + FOREVER), grace=0.1)
    end = await receiver.has_ended()
    assert (end.reason, end.exit_code) == ("process_ended", 5)
    assert receiver.frames == [b"hello"]


async def test_killing_it_at_any_point_ends_the_link(start):
    for after in range(0, 4000, 500):
        transport, receiver = await start(python(READY + "while True: os.write(1, b'x' * 99 + b'\\n')\n"))
        await receiver.until(lambda it, after=after: len(it.frames) > after)
        os.kill(await pid_of(receiver), signal.SIGKILL)
        assert await receiver.has_ended() == End("process_ended", exit_code=-9)
        await transport.close()


async def test_5_mb_of_stderr_are_drained_and_the_tail_is_kept(start):
    noise = "for number in range(50_000): os.write(2, b'%0100d\\n' % number)\n"
    transport, receiver = await start(python(noise + ECHO), stderr_tail=1000)
    transport.send([b"still here"])
    await receiver.has(b"still here")
    end = await transport.close()
    lines = end.stderr.splitlines()
    assert len(end.stderr) == 1000
    assert [int(line) for line in lines[1:]] == list(range(50_000 - len(lines) + 1, 50_000))


async def test_stderr_is_handed_on_line_by_line(start):
    lines = []
    words = "for piece in (b'one\\r\\ntw', b'o\\n\\nthr', b'\\xff\\xc3\\xa9e'): os.write(2, piece)\n"
    _, receiver = await start(python(words), on_stderr=lines.append)
    await receiver.has_ended()
    assert lines == ["one", "two", "", "thr\ufffdée"]


async def test_a_listener_that_fails_does_not_stop_stderr_from_being_drained(start, caplog):
    _, receiver = await start(python("os.write(2, b'one\\ntwo\\n')\n"), on_stderr=int)
    assert (await receiver.has_ended()).stderr == "one\ntwo\n"
    assert caplog.text.count("ValueError: invalid literal") == 2


async def test_a_line_of_stderr_without_an_end_is_handed_on_in_pieces(start):
    pieces = []
    await (await start(python("os.write(2, b'x' * 1_000_000)\n"), on_stderr=pieces.append))[1].has_ended()
    assert "".join(pieces) == "x" * 1_000_000
    assert max(map(len, pieces)) == 64 * 1024


async def test_an_agent_that_ends_with_its_input_is_not_signalled(start):
    last_words = "signal.signal(signal.SIGTERM, lambda *_: os._exit(9))\n" + ECHO + "os.write(1, b'saved')\n"
    transport, receiver = await start(python(last_words))
    transport.send([b"hello"])
    assert (await transport.close()).exit_code == 0
    assert receiver.frames == [b"hello", b"saved"]


async def test_an_agent_that_ignores_the_end_of_its_input_is_terminated(start):
    transport, receiver = await start(python(READY + FOREVER))
    await pid_of(receiver)
    assert await transport.close(grace=0.1) == End("closed", exit_code=-signal.SIGTERM)


async def test_an_agent_that_ignores_sigterm_is_killed(start):
    transport, receiver = await start(python(DEAF + READY + FOREVER))
    await pid_of(receiver)
    assert await transport.close(grace=0.1) == End("closed", exit_code=-signal.SIGKILL)


async def test_a_stopped_agent_is_woken_to_hear_that_it_should_end(start):
    transport, receiver = await start(python(READY + FOREVER))
    os.kill(await pid_of(receiver), signal.SIGSTOP)
    assert await transport.close(grace=0.5) == End("closed", exit_code=-signal.SIGTERM)


async def test_an_agent_that_stopped_reading_makes_the_sender_pause_and_is_still_ended(start):
    transport, receiver = await start(python(READY + FOREVER), high_water=100_000)
    await pid_of(receiver)
    transport.send([b"x" * 1_000_000])
    assert receiver.events[-1] == "paused"
    assert transport.unsent > 800_000
    assert (await transport.close(grace=0.1)).exit_code == -signal.SIGTERM
    assert transport.unsent == 0


async def test_an_agent_that_is_stuck_in_writing_because_we_paused_can_still_end_by_itself(start):
    much = READY + ECHO + "os.write(2, b'at the end')\nos.write(1, b'x\\n' * 1_000_000)\nos._exit(7)\n"
    transport, receiver = await start(python(much))
    await pid_of(receiver)
    transport.pause_reading()
    end = await transport.close(grace=20)
    assert end == End("closed", exit_code=7, stderr="at the end")
    assert len(receiver.frames) == 1_000_001


WRAPPERS = {
    "waits": 'python "$1" & wait',
    "is gone": 'python "$1" & read line; exit 0',
    "obeys": 'trap "exit 0" TERM; python "$1" & while :; do wait; done',
    "is wrapped": '(python "$1" & wait) & wait',
}


@pytest.mark.parametrize("agent", [FOREVER, DEAF + FOREVER], ids=["obedient", "deaf"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_a_wrapper_is_ended_with_all_it_started(start, started, wrapper, agent):
    transport, receiver = await start(shell(WRAPPERS[wrapper], READY + agent), grace=0.1)
    pid = await pid_of(receiver)
    if wrapper == "is gone":  # not before the agent has begun: what it has not said by then is not waited for
        transport.send([b"leave"])
        await receiver.has_ended()
    await transport.close(grace=0.1)
    assert pid not in started()


async def test_closing_twice_and_at_once_gives_the_same_end(start):
    transport, receiver = await start(python(ECHO))
    first, second = await asyncio.gather(transport.close(), transport.close())
    assert first == second == await transport.close() == receiver.end


async def test_closing_what_was_never_started_is_fine():
    assert await ProcessTransport(["agent"]).close() == End("closed")


async def test_a_cancelled_close_is_finished_first_and_the_cancellation_comes_through(start, started):
    transport, receiver = await start(python(DEAF + READY + FOREVER))
    await pid_of(receiver)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await transport.close(grace=0.1)
    assert receiver.end == End("closed", exit_code=-signal.SIGKILL)
    assert not started()


async def test_a_cancelled_life_leaves_nothing_behind_either(start, started):
    transport, receiver = await start(shell('python "$1" & wait', DEAF + READY + FOREVER))
    await pid_of(receiver)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:  # as `asyncio.run` does at its end
        task.cancel()
    assert await receiver.has_ended() == End("closed", exit_code=-signal.SIGKILL)
    assert await transport.close() == receiver.end


async def test_two_agents_do_not_disturb_each_other(start):
    one, at_one = await start(python(ECHO))
    two, at_two = await start(python(ECHO))
    assert await one.close() == at_one.end == End("closed", exit_code=0)
    two.send([b"alone"])
    await at_two.has(b"alone")


@pytest.fixture
def without_pidfd(monkeypatch):
    monkeypatch.setattr(process_group, "_pidfd", lambda _: None)


@pytest.fixture
def without_polling(monkeypatch):
    monkeypatch.setattr(process_transport, "open_reader", ThreadReader)
    monkeypatch.setattr(process_transport, "open_writer", ThreadWriter)


async def test_without_time_to_end_it_is_killed_before_its_input_ends(start):
    says_goodbye = READY + "os.read(0, 1)\nos.write(1, b'goodbye\\n')\nos._exit(0)\n"
    transport, receiver = await start(python(says_goodbye))
    await receiver.until(lambda it: it.frames)
    assert await transport.close(grace=0.0) == End("closed", exit_code=-signal.SIGKILL)
    assert b"goodbye" not in receiver.frames


async def test_without_pidfds_the_end_is_noticed_all_the_same(without_pidfd, start):
    _, receiver = await start(shell('python "$1" & echo hello; exit 5', DEAF + FOREVER), grace=0.1)
    assert (await receiver.has_ended()).exit_code == 5
    transport, receiver = await start(python(DEAF + READY + FOREVER))
    await pid_of(receiver)
    assert (await transport.close(grace=0.1)).exit_code == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="a job ends its processes there")
async def test_a_process_that_outlives_its_end_is_reaped_when_it_ends():
    child = subprocess.Popen(python(FOREVER), start_new_session=True)  # noqa: ASYNC220
    watch = process_group.ExitWatch(child)
    watch.close()  # the time to end it is over, as when a dead disk keeps it
    assert child.returncode is None
    child.kill()
    await eventually(lambda: child.returncode is not None)
    assert not watch.exited.is_set()


async def test_without_polling_threads_carry_the_frames(without_polling, start):
    transport, receiver = await start(python(ECHO))
    transport.send([b"x" * 1_000_000, b"next"])
    await receiver.has(b"x" * 1_000_000, b"next")
    transport.pause_reading()
    transport.send([b"last"])
    assert await transport.close() == End("closed", exit_code=0)
    assert receiver.frames[2:] == [b"last"]


async def test_without_polling_an_agent_that_stopped_reading_is_still_ended(without_polling, start):
    transport, receiver = await start(python(READY + FOREVER), high_water=100_000)
    await pid_of(receiver)
    transport.send([b"x" * 1_000_000])
    assert receiver.events[-1] == "paused"
    assert (await transport.close(grace=0.1)).exit_code == -signal.SIGTERM


async def test_without_polling_an_end_by_itself_is_complete(without_polling, start):
    _, receiver = await start(python("os.write(1, b'x\\n' * 300_000 + b'last')\nos._exit(3)\n"))
    assert (await receiver.has_ended()).exit_code == 3
    assert receiver.frames == [b"x"] * 300_000 + [b"last"]
