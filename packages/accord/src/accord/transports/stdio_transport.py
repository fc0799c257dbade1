"""The agent's side of a connection over its standard input and output.

    transport = StdioTransport.standard()

The program that started us chooses the two: pipes, sockets (also one for both), files, a null device and a terminal all
work. While the connection is open, the real standard output belongs to it alone. Output of a stray `print` or a C
library goes to standard error instead: one foreign byte among the frames would corrupt them.

The end of input is the end of incoming messages, not of outgoing ones: the last request is still answered. Only `close`
ends those.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TextIO

from accord._internal.tasks import to_the_end, within
from accord.errors import ConnectionClosed
from accord.jsonrpc.line_frames import LIMIT, FrameReader, Oversized, joined
from accord.transports import HIGH_WATER, End, Receiver, Transport
from accord.transports.descriptors import open_reader, open_writer, pollable

if sys.platform == "win32":
    import msvcrt

STDIN, STDOUT, STDERR = 0, 1, 2


class StdioTransport(Transport):
    """Frames over two file descriptors, which may be the same one.

    The transport owns the descriptors from now on and closes them; with `keep_open` it only borrows them, and leaves
    them unchanged when it has closed.
    """

    name = "stdio"

    def __init__(
        self, read_fd: int, write_fd: int, *, limit: int = LIMIT, high_water: int = HIGH_WATER, keep_open: bool = False
    ) -> None:
        self._fds = (read_fd, write_fd)
        self._keep_open = keep_open
        self._standard = False
        self._high_water = high_water
        self._frames = FrameReader(limit)
        self._receiver: Receiver | None = None
        self._closing: asyncio.Task[None] | None = None
        self._end: End | None = None
        self.output_error: OSError | None = None
        """Why output could not be written although its reader was there: the disk is full, for instance."""

    @classmethod
    def standard(cls, *, limit: int = LIMIT, high_water: int = HIGH_WATER) -> StdioTransport:
        """Return a transport over our own standard input and output; the latter is moved away from `start` to
        `close`.
        """
        transport = cls(STDIN, STDOUT, limit=limit, high_water=high_water, keep_open=True)
        transport._standard = True
        return transport

    async def start(self, receiver: Receiver) -> None:
        with ExitStack() as undo:
            try:
                read_fd, write_fd = self._open(undo)
            except OSError as error:
                raise ConnectionClosed("broken", f"cannot open {self.name}: {error.strerror}") from error
            self._undo = undo.pop_all()
        self._receiver = receiver
        self._writer = open_writer(write_fd, receiver, self._high_water, self._output_broke)
        self._reader = open_reader(read_fd, self._read, self._input_ended)

    def _open(self, undo: ExitStack) -> tuple[int, int]:
        read_fd, write_fd = self._fds
        if self._standard:
            _check_standard_streams()
            write_fd = undo.enter_context(stdout_moved_away())
        with ExitStack() as half_open:
            ours = _own(read_fd, os.O_RDONLY)
            half_open.callback(os.close, ours)
            pair = ours, _own(write_fd, os.O_WRONLY)
            half_open.pop_all()
        for fd in {read_fd, write_fd}:
            if not self._keep_open:
                os.close(fd)
            elif sys.platform != "win32" and pollable(fd):
                # Non-blocking mode is shared with every process that has the same pipe open, such as our shell.
                undo.callback(_put_back, fd, blocking=os.get_blocking(fd))
        return pair

    def send(self, frames: Sequence[bytes]) -> None:
        if frames:
            self._writer.write(joined(frames))

    @property
    def unsent(self) -> int:
        return self._writer.size

    async def flush(self) -> None:
        await self._writer.flush()

    def pause_reading(self) -> None:
        self._reader.pause()

    def resume_reading(self) -> None:
        self._reader.resume()

    async def close(self, grace: float = 2.0) -> End:
        if self._receiver is not None:
            self._closing = self._closing or asyncio.create_task(self._close(grace), name=f"close {self.name}")
            await to_the_end(self._closing)
        return self._end or End("closed")

    async def _close(self, grace: float) -> None:
        try:
            await within(grace, self._writer.flush())
        finally:
            self._writer.close()
            self._reader.close()
            self._frames.finish()  # free half a message now instead of at garbage collection
            self._undo.close()
            self._finish(End("closed"))

    def _read(self, chunk: bytes) -> None:
        frames = self._frames.feed(chunk)
        if frames:
            self._receiver.received(frames)  # type: ignore[union-attr]

    def _deliver(self, frames: Sequence[bytes | Oversized]) -> None:
        if frames and self._receiver is not None:
            self._receiver.received(frames)

    def _input_ended(self, error: OSError | None) -> None:
        self._deliver(self._frames.finish())
        self._finish(End("peer_closed") if error is None else _broken("input", error))

    def _output_broke(self, error: OSError) -> None:
        self._reader.drain()  # the other side's messages before its end can be read already
        if not _has_left(error):
            self.output_error = error
        self._finish(_broken("output", error))

    def _finish(self, end: End) -> None:
        if self._end is None and self._receiver is not None:
            self._end = end
            self._reader.close()
            self._receiver.ended(end)


@contextmanager
def stdout_moved_away() -> Generator[int]:
    """Move the real standard output to the given descriptor, and put standard error in its place.

    >>> with stdout_moved_away() as real:
    ...     print("this goes to standard error")
    """
    real = os.dup(STDOUT)
    printing = sys.stdout
    _put_stderr_in_place_of_stdout()
    _flush(printing)  # earlier output that never left its buffer
    sys.stdout = sys.stderr
    try:
        yield real
    finally:
        _flush(sys.stdout)
        _flush(printing)
        _flush_c_library()
        sys.stdout = printing
        os.dup2(real, STDOUT)
        os.close(real)


def fill_closed_streams() -> None:
    """Open the null device in place of closed standard streams; call it before there is an event loop.

    Otherwise the files that are opened first get their numbers, above all the event loop's own descriptors: a stray
    print would then go there, and uvloop aborts the process when it closes them.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(fd, True)
    os.close(fd)


def _put_stderr_in_place_of_stdout() -> None:
    try:
        os.dup2(STDERR, STDOUT)
    except OSError:  # there is none
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, STDOUT)
        os.close(nowhere)


def _flush(stream: TextIO | None) -> None:
    if stream is not None:
        with suppress(OSError, ValueError):
            stream.flush()


def _flush_c_library() -> None:
    """Empty the buffer that the C library keeps for standard output."""
    import ctypes  # slow to import, and not needed before the end

    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).fflush(None)


def _check_standard_streams() -> None:
    # The descriptor numbers prove nothing: other files may have them by now.
    for stream, name in (sys.__stdin__, "input"), (sys.__stdout__, "output"):
        if stream is None:
            raise ConnectionClosed(
                "broken", f"standard {name} is closed; start the agent with standard input and output connected"
            )


def _own(fd: int, access: int) -> int:
    """Return a descriptor of our own for the file of `fd`."""
    if sys.platform != "win32" and pollable(fd) and os.isatty(fd):
        # Opened again: non-blocking mode is shared by all processes that inherited the same opening, as a shell and
        # its programs do, and they would find it so.
        with suppress(OSError):
            return os.open(os.ttyname(fd), access | os.O_NOCTTY)
    ours = os.dup(fd)
    if sys.platform == "win32":
        msvcrt.setmode(ours, os.O_BINARY)
    return ours


def _put_back(fd: int, *, blocking: bool) -> None:
    assert sys.platform != "win32"
    with suppress(OSError):  # its owner has closed it already
        os.set_blocking(fd, blocking)


def _has_left(error: OSError) -> bool:
    """Whether this error of a write means that the reader has closed its end, a normal end for an agent."""
    return isinstance(error, ConnectionError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


def _broken(what: str, error: OSError) -> End:
    return End("broken", f"the {what} broke: {error.strerror}")
