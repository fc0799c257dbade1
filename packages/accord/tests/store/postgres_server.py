"""A PostgreSQL server of our own, from Debian's packages: in a folder of its own, on a socket in that folder."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import asyncpg

from tests.posix import pwd
from tests.waiting import DEADLINE


def programs():
    """The folder with the server's programs, or None: Debian keeps them off the PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((it for it in reversed(folders) if (it / "initdb").exists() and (it / "postgres").exists()), None)


def user():
    """The user as whom the server runs, as it refuses to run as root; None for this one."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return pwd.getpwnam("nobody").pw_name


class PostgresServer:
    """Runs until `close`; may be killed and started again."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="accord-postgres-"))
        self.user = user()
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self.socket = self.folder / ".s.PGSQL.5432"
        self._do("initdb", "-D", self._data, "-U", "accord", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self._running = None

    @property
    def url(self):
        return f"postgresql://accord@/postgres?host={self.folder}"

    @property
    def _data(self):
        return str(self.folder / "data")

    def _do(self, program, *arguments):
        subprocess.run(
            [programs() / program, *arguments],
            check=True,
            user=self.user,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            timeout=DEADLINE,
        )

    def start(self):
        """Start it, and wait until it takes connections."""
        log = self.folder / "log"
        self._do(
            *("pg_ctl", "start", "-w", "-D", self._data, "-l", str(log)),
            *("-o", f"-c listen_addresses='' -k {self.folder} -c shared_buffers=16MB -c max_connections=60"),
        )

    @property
    def pid(self):
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def kill(self):
        """Kill it as a crash does: the postmaster with all of its children."""
        self._do("pg_ctl", "stop", "-m", "immediate", "-w", "-D", self._data)

    def freeze(self):
        """Stop all of its processes."""
        self._signal(signal.SIGSTOP)

    def thaw(self):
        self._signal(signal.SIGCONT)

    def _signal(self, number):
        postmaster = self.pid
        children = subprocess.run(["pgrep", "-P", str(postmaster)], capture_output=True, text=True, check=False)
        for pid in (postmaster, *map(int, children.stdout.split())):
            os.kill(pid, number)

    def close(self):
        if (self.folder / "data" / "postmaster.pid").exists():
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def run(self, *statements):
        """Run SQL on a connection of its own; the rows of the last."""
        connection = await asyncpg.connect(self.url)
        try:
            for statement in statements:
                rows = await connection.fetch(statement)
            return rows
        finally:
            await connection.close()


class Relay:
    """A way to the server that can be cut: over a socket of its own, in a folder of its own.

    Of the answers to statements, each of number `every` breaks its connection instead of being passed on.
    """

    def __init__(self, server, *, every=None):
        self.server = server
        self._every = every
        self._answers = 0
        self.folder = Path(tempfile.mkdtemp(prefix="accord-relay-"))
        self._writers = set()
        self._cuts_next = False
        self.cuts = 0

    @property
    def url(self):
        return f"postgresql://accord@/postgres?host={self.folder}"

    async def __aenter__(self):
        self._listening = await asyncio.start_unix_server(self._serve, self.folder / ".s.PGSQL.5432")
        return self

    async def __aexit__(self, *_):
        self._listening.close()
        self.cut()
        await self._listening.wait_closed()
        shutil.rmtree(self.folder, ignore_errors=True)

    def cut(self):
        """Break all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    def cut_answer(self):
        """Break the connection on which the next answer to a statement comes, instead of passing it on."""
        self._cuts_next = True

    async def _serve(self, reader, writer):
        try:
            there, back = await asyncio.open_unix_connection(self.server.socket)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        try:
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer, answers=True))
        finally:
            self._writers -= {writer, back}

    def _is_to_be_cut(self):
        self._answers += 1
        return self._cuts_next or (self._every is not None and self._answers % self._every == 0)

    async def _pass(self, reader, writer, *, answers=False):
        try:
            while data := await reader.read(1 << 20):
                if answers and (b"SELECT" in data or b"COMMIT" in data) and self._is_to_be_cut():
                    self._cuts_next = False
                    self.cuts += 1
                    return
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
