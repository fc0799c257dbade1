"""When we are killed, the guard ends our agents; when we are not, it ends itself."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from accord.transports import guard, guard_process
from accord.transports.process_transport import ProcessTransport
from tests.waiting import DEADLINE, eventually, wait_until

DRIVER = r"""
import asyncio, os, signal, subprocess, sys
from accord.transports.guard import OrphanGuard
from accord.transports.process_transport import ProcessTransport

class Receiver:
    def __init__(self):
        self.heard = asyncio.Event()
    def received(self, frames):
        os.write(1, b"".join(frame + b"\n" for frame in frames))
        self.heard.set()
    def paused(self): pass
    def resumed(self): pass
    def ended(self, end):
        os.write(1, b"ended\n")

def agent(*lines):
    source = "\n".join(("import os, signal", "signal.signal(signal.SIGTERM, signal.SIG_IGN)", *lines))
    return [sys.executable, "-I", "-S", "-c", source + "\nwhile True: signal.pause()"]

READY = r"os.write(1, b'ready %d\n' % os.getpid())"

async def start(command):
    transport = ProcessTransport(command)
    receiver = Receiver()
    await transport.start(receiver)
    if READY in "".join(command):
        await receiver.heard.wait()
    return transport

async def run(*commands):
    await asyncio.gather(*map(start, commands))
    await asyncio.Event().wait()

"""


class Driver:
    """A process that runs agents, to be killed."""

    def __init__(self, source):
        command = [sys.executable, "-c", DRIVER + source]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        self.pid = self.process.pid

    def said(self):
        """Its next line; empty when it has ended."""
        return self.process.stdout.readline().decode().strip()

    def named(self):
        """The process that its next line names."""
        return int(self.said().split()[1])

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def driver(started):
    drivers = []

    def start(source):
        drivers.append(Driver(source))
        return drivers[-1]

    yield start
    for it in drivers:
        it.kill()
        it.process.stdout.close()
    for pid in started():  # a failed test leaves nothing to the next one
        os.kill(pid, signal.SIGKILL)


def test_killing_us_ends_an_agent_that_ignores_both_sigterm_and_the_end_of_its_input(driver, started):
    it = driver("asyncio.run(run(agent(READY)))")
    assert it.named() in started()
    it.kill()
    wait_until(lambda: not started())


WRAPPERS = """
def wrapped(command):
    return ["/bin/sh", "-c", '"$@" & wait', "sh", *command]

asyncio.run(run(wrapped(agent(READY)), wrapped(wrapped(agent(READY))), agent(READY)))
"""


def test_killing_us_ends_wrappers_and_grandchildren_of_all_agents(driver, started):
    it = driver(WRAPPERS)
    assert {it.named() for _ in range(3)} < started()
    it.kill()
    wait_until(lambda: not started())


LEADER_IS_GONE = """
async def main():
    transport = await start(["/bin/sh", "-c", '"$@" & read line; exit 0', "sh", *agent(READY)])
    transport._group.end = lambda grace: asyncio.Event().wait()
    transport.send([b"leave"])
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_killing_us_before_we_could_end_what_a_leader_has_left_ends_it(driver, started):
    it = driver(LEADER_IS_GONE)
    agent = it.named()
    assert it.said() == "ended"
    assert agent in started()
    it.kill()
    wait_until(lambda: not started())


KILLED_BEFORE_TELLING = r"""
def leads(self, group):
    os.write(1, b"group %d\n" % group)
    signal.pause()

OrphanGuard.leads = leads
asyncio.run(run(agent()))
"""


def test_killing_us_between_an_agents_start_and_telling_the_guard_ends_it(driver, started):
    it = driver(KILLED_BEFORE_TELLING)
    group = it.named()
    wait_until(lambda: group in started())  # the kernel shows a new process's environment a moment after it starts
    it.kill()
    wait_until(lambda: not started())


LEAVING = """
async def main():
    await start(agent(READY))
    HOW

asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["os._exit(0)", "sys.exit(0)", "return", "raise KeyboardInterrupt"])
def test_leaving_without_closing_ends_the_agents(driver, started, how):
    it = driver(LEAVING.replace("HOW", how))
    assert it.said().startswith("ready")
    it.process.wait(DEADLINE)
    wait_until(lambda: not started())


CTRL_C = r"""
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"interrupted\n"))
asyncio.run(run(agent(READY)))
"""


def test_ctrl_c_at_our_terminal_leaves_the_guard_and_the_agents_alone(driver, started):
    it = driver(CTRL_C)
    agent = it.named()
    os.killpg(it.pid, signal.SIGINT)
    assert it.said() == "interrupted"
    wait_until(lambda: started("guard_process"))
    (guard,) = started("guard_process")
    assert len({os.getsid(pid) for pid in (it.pid, guard, agent)}) == 3
    it.kill()
    wait_until(lambda: not started())


OTHER_CHILDREN = r"""
async def main():
    await start(agent(READY))
    other = subprocess.Popen(["/bin/sleep", "1000"], close_fds=False)
    os.write(1, b"other %d\n" % other.pid)
    if os.fork() == 0:
        os.write(1, b"forked %d\n" % os.getpid())
        signal.pause()
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_other_children_of_ours_do_not_keep_the_guard_waiting(driver, started):
    it = driver(OTHER_CHILDREN)
    agent, *others = it.named(), it.named(), it.named()
    assert agent in started()
    it.kill()
    wait_until(lambda: started() == set(others))


FORKED = """
async def main():
    await start(agent(READY))
    if os.fork() == 0:
        asyncio.run(run(agent(READY)))
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_forked_child_can_have_agents_and_a_guard_of_its_own(driver, started):
    it = driver(FORKED)
    parents_agent, childs_agent = it.named(), it.named()
    wait_until(lambda: len(started("guard_process")) == 2)
    guards = started("guard_process")
    (child,) = started() - guards - {it.pid, parents_agent, childs_agent}
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: started() - guards == {it.pid, parents_agent})
    it.kill()
    wait_until(lambda: not started())


@pytest.fixture
async def agents(recorder):
    """Starts agents that echo; gives their transports."""
    transports = []

    async def start():
        transport = ProcessTransport(["/bin/cat"])
        await transport.start(recorder())
        transports.append(transport)
        return transport

    yield start
    await asyncio.gather(*(transport.close() for transport in transports))


@pytest.fixture
def the_guard(started):
    """The one guard there is, once it runs: until then its command line cannot be read."""

    async def the_guard():
        await eventually(lambda: started("guard_process"))
        (guard,) = started("guard_process")
        return guard

    return the_guard


async def test_one_guard_serves_all_agents_and_ends_with_the_last(agents, started, the_guard):
    one, two = await agents(), await agents()
    guard = await the_guard()
    await one.close()
    assert started("guard_process") == {guard}
    await two.close()
    assert started("guard_process") == set()


def descriptors_of(pid):
    found = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(fd.readlink()))
    return sorted(found)


async def test_the_guard_holds_nothing_but_its_pipe(agents, the_guard):
    await agents()
    await agents()
    guard = await the_guard()

    def holds_only_its_pipe():  # once it has read its program
        *others, pipe = descriptors_of(guard)
        return others == [os.devnull, os.devnull] and pipe.startswith("pipe:")

    await eventually(holds_only_its_pipe)


async def test_a_killed_guard_is_replaced_and_its_successor_knows_everybody(agents, started, the_guard):
    one = await agents()
    guard = await the_guard()
    os.kill(guard, signal.SIGKILL)
    await eventually(lambda: not started("guard_process"))
    two = await agents()
    successor = await the_guard()
    assert successor != guard
    await one.close()
    assert started("guard_process") == {successor}
    await two.close()
    assert started("guard_process") == set()


async def test_a_killed_guard_disturbs_nobody(agents, started, the_guard):
    transport = await agents()
    os.kill(await the_guard(), signal.SIGKILL)
    await eventually(lambda: not started("guard_process"))
    assert (await transport.close()).exit_code == 0


async def test_a_guard_that_is_stopped_holds_nobody_up(agents, started, the_guard, monkeypatch):
    monkeypatch.setattr(guard, "PATIENCE", 0.1)
    transport = await agents()
    os.kill(await the_guard(), signal.SIGSTOP)
    assert (await transport.close()).exit_code == 0
    assert not started()


LONG_LIST = r"""
from accord.transports import guard

async def main():
    reading, writing = os.pipe()
    groups = []
    for _ in range(6):
        ward = OrphanGuard(writing)
        group = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
        ward.leads(group.pid)
        groups.append(ward)
        # Wards without a process, until their lines alone are more than a pipe takes.
        groups += [OrphanGuard(writing) for _ in range(1000)]
    guard._guard._process.kill()
    guard._guard._process.wait()
    groups.append(OrphanGuard(writing))  # tells a new guard of all
    os.write(1, b"told\n")
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_guard_that_is_started_again_is_told_a_list_longer_than_a_pipe_takes(driver, started):
    it = driver(LONG_LIST)
    assert it.said() == "told"
    assert len(started("sleep\x001000")) == 6
    it.kill()
    wait_until(lambda: not started())


class Victim:
    """A group that may be ended or not, and a guard that was told about it."""

    def __init__(self):
        self.process = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
        self.pid = self.process.pid
        self.birth = guard_process.birth_of(self.pid)

    def fate(self, *messages):
        """What becomes of it when a guard that was told this is left alone: the signal that ended it, or nothing."""
        guard = [sys.executable, "-I", "-S", guard_process.__file__]
        told = "".join(f"{message}\n" for message in messages)
        subprocess.run(guard, input=told.encode(), check=True, timeout=DEADLINE)
        while self._is_dying():
            os.sched_yield()
        return -self.process.wait() if self._has_ended() else None

    def _is_dying(self):
        """Whether it was killed and the kernel has not come to it yet."""
        pending = [line.split()[1] for line in self._about("status").splitlines() if "Pnd:" in line]
        return not self._has_ended() and any(int(mask, 16) >> (signal.SIGKILL - 1) & 1 for mask in pending)

    def _has_ended(self):
        return self._about("stat").rpartition(")")[2].split()[0] == "Z"

    def _about(self, file):
        return (Path("/proc") / str(self.pid) / file).read_text()

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def victim():
    victim = Victim()
    yield victim
    victim.end()


def test_a_group_that_is_still_known_is_ended(victim):
    assert victim.fate(f"group 1 {victim.pid} {victim.birth}") == signal.SIGTERM


def test_a_group_that_was_stopped_is_killed(victim):
    os.kill(victim.pid, signal.SIGSTOP)
    assert victim.fate(f"group 1 {victim.pid} {victim.birth}") == signal.SIGKILL


def test_a_group_that_has_ended_is_left_alone_whoever_has_its_number(victim):
    assert victim.fate(f"group 1 {victim.pid} {victim.birth}", "forget 1") is None


def test_a_group_whose_number_is_in_use_again_is_left_alone(victim):
    assert victim.fate(f"group 1 {victim.pid} {victim.birth - 1}") is None


def test_a_guard_that_hears_nonsense_goes_on(victim):
    assert victim.fate("", "what?", f"group 1 {victim.pid} {victim.birth}") == signal.SIGTERM
