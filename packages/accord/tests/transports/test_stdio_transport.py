"""An agent's own side: whatever its standard streams are, frames go through, and nothing else gets between them."""

import asyncio
import os
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from accord.errors import ConnectionClosed
from accord.transports import End
from accord.transports.stdio_transport import StdioTransport
from tests.posix import pty, tty
from tests.transports.children import END_OF_INPUT, in_thread, read_lines


class Peer:
    """The other side of a stdio link: what we write to and read from, and what the transport gets."""

    def __init__(self, ours, theirs):
        self.reads, self.writes = ours
        self.theirs = theirs

    def write(self, data):
        os.write(self.writes, data)

    def read(self, size=1 << 16):
        return os.read(self.reads, size)

    def read_exactly(self, size):
        data = b""
        while len(data) < size:  # a terminal hands over what it has, in any pieces
            data += self.read(size - len(data))
        return data

    def read_all(self):
        """Everything until the transport closes its side."""
        return b"".join(iter(self.read, b""))

    def write_all(self, data):
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.writes, rest) :]

    def finish(self):
        """Write no more, and still read."""
        if self.reads == self.writes:
            with socket.socket(fileno=os.dup(self.writes)) as end:
                end.shutdown(socket.SHUT_WR)
        else:
            os.close(self.writes)
            self.writes = -1

    def vanish(self):
        for fd in {self.reads, self.writes} - {-1}:
            os.close(fd)
        self.reads = self.writes = -1


def pipes():
    (read, write), (their_read, their_write) = os.pipe(), os.pipe()
    return Peer((read, their_write), (their_read, write))


def sockets():
    (read, write), (their_read, their_write) = socket.socketpair(), socket.socketpair()
    return Peer((read.detach(), their_write.detach()), (their_read.detach(), write.detach()))


def one_socket():
    ours, theirs = (end.detach() for end in socket.socketpair())
    return Peer((ours, ours), (theirs, theirs))


def terminal():
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    return Peer((ours, ours), (theirs, theirs))


KINDS = {"pipes": pipes, "sockets": sockets, "one socket": one_socket, "terminal": terminal}
WITH_AN_END = [kind for kind in KINDS if kind != "terminal"]


@pytest.fixture
async def link(recorder):
    """Starts a transport over descriptors of this kind; gives it, its receiver and the peer."""
    opened = []

    async def link(kind, **options):
        peer = KINDS[kind]()
        transport = StdioTransport(*peer.theirs, **options)
        receiver = recorder()
        await transport.start(receiver)
        opened.append((transport, peer))
        return transport, receiver, peer

    yield link
    for transport, peer in opened:
        await transport.close(grace=0)
        peer.vanish()


@pytest.mark.parametrize("kind", KINDS)
async def test_frames_go_both_ways(link, kind):
    transport, receiver, peer = await link(kind)
    peer.write(b'{"id":1}\n{"id":2}\n{"id')
    await receiver.has(b'{"id":1}', b'{"id":2}')
    peer.write(b'":3}\n')
    await receiver.has(b'{"id":1}', b'{"id":2}', b'{"id":3}')
    transport.send([b"one", b"two"])
    transport.send([b"three"])
    assert peer.read_exactly(14) == b"one\ntwo\nthree\n"
    assert transport.unsent == 0


@pytest.mark.parametrize("kind", WITH_AN_END)
async def test_a_last_line_without_newline_arrives_and_can_still_be_answered(link, kind):
    transport, receiver, peer = await link(kind)
    peer.write(b"first\nlast")
    peer.finish()
    assert await receiver.has_ended() == End("peer_closed")
    assert receiver.frames == [b"first", b"last"]
    transport.send([b"answer"])
    assert peer.read() == b"answer\n"
    assert await transport.close() == End("peer_closed")


async def test_the_end_of_a_terminals_input_is_the_end(link):
    _, receiver, peer = await link("terminal")
    read_lines(peer.writes)
    peer.write(b"line\n" + END_OF_INPUT)
    assert await receiver.has_ended() == End("peer_closed")
    assert receiver.frames == [b"line"]


async def test_a_terminal_that_hangs_up_is_the_end(link):
    _, receiver, peer = await link("terminal")
    peer.vanish()
    assert (await receiver.has_ended()).reason in ("peer_closed", "broken")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_peer_that_never_reads_blocks_neither_the_loop_nor_the_closing(link, kind):
    transport, receiver, peer = await link(kind, high_water=1_000_000)
    transport.send([b"x" * 10_000_000])
    assert receiver.events == ["paused"]
    assert transport.unsent > 1_000_000
    peer.write(b"hello\n")
    await receiver.has(b"hello")
    assert (await transport.close(grace=0.01)).reason == "closed"
    assert transport.unsent == 0
    await transport.flush()


@pytest.mark.parametrize("kind", WITH_AN_END)
async def test_a_slow_peer_gets_everything_in_order_even_when_we_close(link, kind):
    transport, receiver, peer = await link(kind)
    lines = [b"%d" % number * 100 for number in range(10_000)]
    for line in lines:
        transport.send([line])
    assert receiver.events == ["paused"]
    received, end = await asyncio.gather(in_thread(peer.read_all), transport.close(grace=20))
    assert received == b"\n".join(lines) + b"\n"
    assert end == End("closed")
    assert receiver.events == ["paused", "resumed", "ended"]


@pytest.mark.parametrize("kind", KINDS)
async def test_paused_reading_leaves_the_input_where_it_is(link, kind):
    transport, receiver, peer = await link(kind)
    transport.pause_reading()
    peer.write(b"later\n")
    transport.send([b"x"])
    await transport.flush()
    assert receiver.frames == []
    transport.resume_reading()
    await receiver.has(b"later")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of it without reading")
@pytest.mark.parametrize("kind", WITH_AN_END)
async def test_a_peer_that_leaves_is_noticed_while_reading_is_paused(link, kind):
    transport, receiver, peer = await link(kind)
    transport.pause_reading()
    os.set_blocking(peer.writes, False)
    written = 0
    with suppress(BlockingIOError):
        while True:
            written += os.write(peer.writes, b"x" * 99 + b"\n")
    transport.send([b"x"])
    await transport.flush()
    assert receiver.frames == []
    peer.finish()
    assert await receiver.has_ended() == End("peer_closed")
    assert sum(len(frame) + 1 for frame in receiver.frames) - written in (0, 1)  # the last line may be cut


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of it without reading")
async def test_a_reader_that_is_resumed_or_closed_watches_no_longer(link):
    transport, _, _ = await link("pipes")
    before = open_descriptors()
    for _ in range(3):
        transport.pause_reading()
        transport.resume_reading()
    assert open_descriptors() == before
    transport.pause_reading()
    await transport.close(grace=0)
    assert open_descriptors() == before - 2


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("kind", ["pipes", "sockets"])
async def test_a_peer_that_takes_no_more_ends_the_link_after_its_last_words(link, kind):
    transport, receiver, peer = await link(kind)
    transport.pause_reading()
    peer.write(b"last words\n")
    os.close(peer.reads)
    peer.reads = -1
    transport.send([b"anybody there?"])
    assert receiver.events == []
    assert await receiver.has_ended() == End("broken", "the output broke: Broken pipe")
    assert receiver.frames == [b"last words"]
    transport.send([b"dropped"])
    await transport.flush()


async def test_a_peer_that_resets_its_connection_ends_the_link(recorder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs = server.accept()[0].detach()
    transport, receiver = StdioTransport(theirs, theirs), recorder()
    await transport.start(receiver)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ours.close()
    assert await receiver.has_ended() == End("broken", "the input broke: Connection reset by peer")
    transport.send([b"x" * 1_000_000])
    transport.send([b"x" * 1_000_000])
    await transport.flush()
    await transport.close()


async def test_a_line_of_60_mb_arrives(link):
    _, receiver, peer = await link("pipes")
    line = b"x" * 60_000_000
    await in_thread(peer.write_all, line + b"\n")
    await receiver.has(line)


async def test_a_file_is_read_to_its_end(recorder, tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"".join(b"%0100d\n" % number for number in range(50_000)) + b"1234567")
    transport, receiver = StdioTransport(os.open(path, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)), recorder()
    await transport.start(receiver)
    assert await receiver.has_ended() == End("peer_closed")
    assert [int(frame) for frame in receiver.frames] == [*range(50_000), 1_234_567]
    await transport.close()


async def test_a_file_is_read_no_further_while_reading_is_paused(recorder, tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"%0100d\n" % 0 * 100_000)
    transport, receiver = StdioTransport(os.open(path, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)), recorder()
    note = receiver.received
    receiver.received = lambda frames: (note(frames), transport.pause_reading())
    await transport.start(receiver)
    turns = []
    while receiver.end is None:
        transport.resume_reading()
        turns.append("another")
        await receiver.until(lambda it: it.end or len(it.batches) >= len(turns))
    assert len(receiver.frames) == 100_000
    assert len(turns) > 50
    await transport.close()


async def test_a_file_takes_what_is_written_at_once(recorder, tmp_path):
    path = tmp_path / "output"
    transport = StdioTransport(os.open(os.devnull, os.O_RDONLY), os.open(path, os.O_WRONLY | os.O_CREAT))
    receiver = recorder()
    await transport.start(receiver)
    transport.send([b"one", b"x" * 5_000_000])
    assert path.read_bytes() == b"one\n" + b"x" * 5_000_000 + b"\n"
    assert await receiver.has_ended() == End("peer_closed")
    await transport.close()


async def test_a_full_disk_ends_the_link(recorder):
    transport = StdioTransport((pipe := os.pipe())[0], os.open("/dev/full", os.O_WRONLY))
    receiver = recorder()
    await transport.start(receiver)
    transport.send([b"one"])
    transport.send([b"two"])
    assert await receiver.has_ended() == End("broken", "the output broke: No space left on device")
    await transport.close()
    os.close(pipe[1])


async def test_a_file_as_input_is_let_go_when_we_close_in_the_middle(recorder, tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"line\n" * 1_000_000)
    transport, receiver = StdioTransport(os.open(path, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)), recorder()
    await transport.start(receiver)
    await receiver.until(lambda it: it.frames)
    assert await transport.close() == End("closed")


@pytest.mark.parametrize("kind", KINDS)
async def test_the_descriptors_are_the_transports_to_close(link, kind):
    transport, _, peer = await link(kind)
    await transport.close()
    for fd in peer.theirs:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


@pytest.mark.parametrize("kind", KINDS)
async def test_borrowed_descriptors_are_as_they_were_afterwards(link, kind):
    transport, receiver, peer = await link(kind, keep_open=True)
    peer.write(b"hello\n")
    await receiver.has(b"hello")
    await transport.close()
    for fd in set(peer.theirs):
        assert os.get_blocking(fd)
        os.close(fd)


async def test_a_terminal_stays_blocking_for_everybody_else(link):
    _, _, peer = await link("terminal", keep_open=True)
    assert os.get_blocking(peer.theirs[0])
    os.close(peer.theirs[0])


async def test_descriptors_that_are_closed_are_one_clear_error(recorder):
    read, write = os.pipe()
    os.close(read)
    transport = StdioTransport(read, write)
    with pytest.raises(ConnectionClosed, match="cannot open stdio: Bad file descriptor"):
        await transport.start(recorder())
    assert await transport.close() == End("closed")
    os.close(write)


async def test_a_cancelled_close_still_closes_and_the_cancellation_comes_through(link):
    transport, receiver, _ = await link("pipes")
    transport.send([b"x" * 1_000_000])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await transport.close(grace=0.05)
    assert receiver.end == End("closed")


async def test_closing_twice_and_at_once_gives_the_same_end(link):
    transport, receiver, _ = await link("pipes")
    first, second = await asyncio.gather(transport.close(), transport.close())
    assert first is second is receiver.end
