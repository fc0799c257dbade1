"""Programs to run as an agent's process, and what is needed to watch them."""

import asyncio
import sys
import threading

from tests.posix import termios, tty

ECHO = """
while data := os.read(0, 1 << 20):
    while data:
        data = data[os.write(1, data):]
"""
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
FOREVER = "while True: signal.pause()\n"
READY = "os.write(1, b'ready %d\\n' % os.getpid())\n"


def python(source):
    """A command that runs this program, quickly."""
    return [sys.executable, "-I", "-S", "-c", f"import os, signal, time\n{source}"]


def shell(script, *programs):
    """A command that runs this shell script; its $1, $2 ... are Python programs, to be run by `python "$1"`."""
    quick = f'python() {{ exec "{sys.executable}" -I -S -c "import os, signal, time\n$1"; }}\n'
    return ["/bin/sh", "-c", quick + script, "sh", *programs]


async def pid_of(receiver):
    """The process that said it is ready."""
    await receiver.until(lambda it: it.frames)
    word, pid = receiver.frames[0].split()
    assert word == b"ready"
    return int(pid)


async def in_thread(work, *args):
    """What `work` returns, run in a thread that is gone afterwards."""
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    results = []

    def run():
        try:
            results.append(work(*args))
        finally:
            loop.call_soon_threadsafe(done.set)

    thread = threading.Thread(target=run)
    thread.start()
    await done.wait()
    thread.join()
    return results[0]


END_OF_INPUT = b"\x04"


def read_lines(terminal):
    """Let a raw terminal read lines, so that its input can end."""
    mode = termios.tcgetattr(terminal)
    mode[tty.LFLAG] |= termios.ICANON
    termios.tcsetattr(terminal, termios.TCSANOW, mode)
