"""A warm process that has imported Accord starts the Python programs of tests: a fork in place of a new interpreter.

A test that starts `python -m accord ...` or `python agent.py` spends nine tenths of its time on starting an interpreter
and on importing Accord. While the fixture `forked_programs` is active, `subprocess.Popen` (and all that is built on it:
asyncio, the transports of Accord) asks the fork server instead. The server forks, and the fork becomes the program.

Everything about the process is real: its descriptors, process id, process group, session, signals and exit status. It
is even a child of the process that asked, because the server forks with CLONE_PARENT. Only two things differ from a new
interpreter: modules of Accord are loaded already, and /proc shows the command line and the memory of the server. Tests
whose subject is one of these use the fixture `fresh_programs`.

What the server cannot do is started as always: other programs than this interpreter and its scripts, options other than
-u, -P and -W, programs given by -c, modules of other packages, and environments that change how an interpreter starts.
On systems other than Linux, all are.

A forked program has a fork server of its own, because what it starts must be its child. Only agents have none, as they
start few programs. They are known by their session: Accord starts each agent in a new one.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import dataclasses
import errno
import functools
import gc
import importlib
import importlib.machinery
import io
import json
import os
import pkgutil
import platform
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import accord_tools.cli

CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine()) if sys.platform == "linux" else None
"""The number of the system call `clone` on this machine."""

CLONE_PARENT = 0x8000

WARM = (
    "accord.agent.agent",
    "accord.agent.v2_methods",
    "accord.client.remote_agent",
    "accord.client.remote_session",
    "accord.client.v2_session",
    "accord.dialects.v2_replay",
    "accord.dialects.v2_requests",
    "accord.hosts.this_host",
    "accord.http.server.serve",
    "accord.store.postgres_store",
    "accord.store.sqlite_store",
    "accord.store.store_url",
    "accord.client.connect",
    "accord.testing",
    "accord.trace.trace_file",
    "accord.transports.process_transport",
    "accord.transports.websocket_client",
    "uvloop",
)
"""What the server imports before it forks, beside all commands."""

READ_AT_START = ("LANG", "LC_", "LD_", "MALLOC_", "PYTHON", "TZ")
"""Variables that an interpreter or its C library reads when it starts, by the beginnings of their names."""

READ_BY_FORKS = {"PYTHONASYNCIODEBUG", "PYTHONUNBUFFERED", "PYTHONWARNINGS"}
"""Such variables that a fork obeys, too."""

OURS = ("accord", "accord_adapters", "accord_check", "accord_tools", "tests")
"""The packages whose modules run as forks. Others, such as pytest, change how Accord is imported."""

STARTING = {"accord", "tests.cli.at_terminal"}
"""Modules whose processes start others, though they begin a session."""

ROOM, ROOM_SIZE = "ROOM_FOR_ENVIRONMENTS", 64 * 1024
"""A variable of a server, and its bytes: /proc shows the environments of forks in this place."""

LARGEST_SCRIPT = 10_000
"""Bytes of a program of which the first line is read."""

SIZE = 8
"""Bytes of a number in a message to the server and in its answer."""


class Starter:
    """Asks a fork server for processes. Only the process that has made it can use it."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._owner = os.getpid()
        self._environment = started_with(os.environ)
        self._lock = threading.Lock()
        self._fork_exec: Callable[..., int] = subprocess._fork_exec  # type: ignore[attr-defined]

    def use(self) -> None:
        """Start programs by this server from now on."""
        subprocess._fork_exec = self.fork_exec  # type: ignore[attr-defined]

    def disuse(self) -> None:
        """Start programs as always from now on."""
        subprocess._fork_exec = self._fork_exec  # type: ignore[attr-defined]

    def fork_exec(self, *arguments: Any) -> int:
        """Stands in for the function of `subprocess` that starts a process; returns the process id."""
        wanted = self._wanted(*arguments[:17]) if arguments[17:22] == (None, None, None, -1, None) else None
        pid = self._ask(*wanted) if wanted and self._owner == os.getpid() else None
        return self._fork_exec(*arguments) if pid is None else pid

    def _wanted(
        self, command, executables, close_fds, kept, cwd, environment, stdin, _1, _2, stdout, _3, stderr, _4, error,
        _restores, new_session, group
    ) -> tuple[dict[str, Any], list[int]] | None:  # fmt: skip
        """The message to the server, and the standard streams; None for what only a new interpreter can run."""
        words = list(map(os.fsdecode, command))
        given = os.environ if environment is None else dict(map(variable, environment))
        if words[0] != sys.executable and (script := script_of(map(os.fsdecode, executables))):
            words, executables = [sys.executable, script, *words[1:]], [sys.executable]
        fits = (
            words[0] == os.fsdecode(executables[0]) == sys.executable
            and close_fds
            and set(kept) == {error}
            and (cwd is None or Path(os.fsdecode(cwd)).is_dir())
            and started_with(given) == self._environment
        )
        if not fits or (program := Program.of(words)) is None:
            return None
        message = {
            **vars(program),
            "words": words,
            "cwd": str(Path(os.fsdecode(cwd or ".")).absolute()),
            "environment": dict(given),
            "new_session": bool(new_session),
            "group": group,
        }
        return message, [own if fd == -1 else fd for own, fd in enumerate((stdin, stdout, stderr))]

    def _ask(self, message: dict[str, Any], streams: list[int]) -> int | None:
        body = json.dumps(message).encode()
        with self._lock:
            try:
                socket.send_fds(self._server, [len(body).to_bytes(SIZE, "big")], streams)
            except OSError as error:
                if error.errno == errno.EBADF:  # one of our own standard streams is closed
                    return None
                raise
            self._server.sendall(body)
            return int.from_bytes(read(self._server, SIZE), "big")


@dataclasses.dataclass
class Program:
    """What a command line of Python asks to run."""

    module: bool
    name: str
    arguments: list[str]
    warnings: list[str]
    unbuffered: bool
    safe_path: bool

    @classmethod
    def of(cls, words: Sequence[str]) -> Program | None:
        """Read a command line; None if it needs a new interpreter."""
        filters, flags, rest = [], set(), list(words[1:])
        while rest:
            match rest:
                case ["-u" | "-P" as flag, *rest]:
                    flags.add(flag)
                case ["-W", what, *rest]:
                    filters.append(what)
                case ["-m", name, *arguments] if name.partition(".")[0] in OURS:
                    return cls(True, name, arguments, filters, "-u" in flags, "-P" in flags)
                case [name, *arguments] if (name.endswith(".py") and not name.startswith("-")) or script_of([name]):
                    return cls(False, name, arguments, filters, "-u" in flags, "-P" in flags)
                case _:
                    return None
        return None


def script_of(executables: Iterable[str]) -> str | None:
    """The first of these files that can be executed, if it is a script of this interpreter."""
    program = next((it for it in map(Path, executables) if it.is_file() and os.access(it, os.X_OK)), None)
    if program is None or not program.is_absolute() or program.stat().st_size > LARGEST_SCRIPT:
        return None
    first, _, _ = program.read_bytes().partition(b"\n")
    return str(program) if first == os.fsencode(f"#!{sys.executable}") else None


def started_with(environment: Any) -> dict[str, str]:
    """Those variables that decide how an interpreter starts."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(READ_AT_START) and name not in READ_BY_FORKS
    }


def variable(line: bytes) -> tuple[str, str]:
    name, _, value = os.fsdecode(line).partition("=")
    return name, value


def read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := connection.recv(size - len(data))):
            raise EOFError("the fork server has ended")
        data += more
    return data


# The server.


def serve(connection: socket.socket) -> Callable[[], object] | None:
    """Fork until the other side is gone. Returns in each fork as well: then, the program to run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal; meant for programs
    gc.collect()
    gc.freeze()
    while True:
        head, streams, _, _ = socket.recv_fds(connection, SIZE, 3)
        if not head:
            return None
        message = json.loads(read(connection, int.from_bytes(head, "big")))
        if (pid := fork_sibling()) == 0:
            connection.detach()
            return become(message, streams)
        for stream in streams:
            os.close(stream)
        connection.sendall(pid.to_bytes(SIZE, "big"))


def fork_sibling() -> int:
    """Like `os.fork`, but the new process is a child of our parent."""
    python, libc = ctypes.pythonapi, ctypes.PyDLL(None)
    python.PyOS_BeforeFork()
    pid: int = libc.syscall(CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return pid


def become(message: dict[str, Any], streams: list[int]) -> Callable[[], object]:
    """Make this process what a new interpreter would be; returns what runs the program."""
    if message["new_session"]:
        os.setsid()
    if message["group"] >= 0:
        os.setpgid(0, message["group"])
    for number, stream in enumerate([os.dup(stream) for stream in streams]):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(message["cwd"])
    os.environ.clear()
    os.environ.update(message["environment"])
    tempfile.tempdir = None  # it is chosen by the environment
    show_environment(message["environment"])
    if message["name"] in STARTING or not message["new_session"]:
        forked_server().use()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unbuffered = message["unbuffered"] or bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = standard_stream(sys.__stdin__, 0, "<stdin>", unbuffered)
    sys.stdout = sys.__stdout__ = standard_stream(sys.__stdout__, 1, "<stdout>", unbuffered)
    sys.stderr = sys.__stderr__ = standard_stream(sys.__stderr__, 2, "<stderr>", unbuffered)
    sys.orig_argv = message["words"]
    sys.argv = [message["name"], *message["arguments"]]
    sys.warnoptions = [*filter(None, os.environ.get("PYTHONWARNINGS", "").split(",")), *message["warnings"]]
    warnings._processoptions(sys.warnoptions)  # type: ignore[attr-defined]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    name = message["name"]
    if message["safe_path"]:
        del sys.path[0]
    else:
        sys.path[0] = message["cwd"] if message["module"] else str(Path(name).resolve().parent)
    if message["module"]:
        if not hasattr(sys.modules.get(name), "__path__"):
            sys.modules.pop(name, None)  # it is to be the main module, and runpy warns of one that is loaded
        return functools.partial(runpy._run_module_as_main, name)  # type: ignore[attr-defined]
    return functools.partial(run_script, name, main)


def show_environment(environment: dict[str, str]) -> None:
    """Let /proc show this environment: Accord finds what agents leave behind by a variable there.

    The kernel shows the memory that held the server's environment at its start, and nothing uses that any more.
    """
    start, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[47:49])
    shown = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    ctypes.memmove(start, shown.ljust(end - start, b"\0")[: end - start], end - start)


def forked_server() -> Starter:
    """Fork a server for the programs that this process is going to start, while it is as clean as a server."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        os.dup2(theirs.fileno(), 3)
        os.closerange(0, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        run(serve(socket.socket(fileno=3)))
    theirs.close()
    return Starter(ours)


def standard_stream(servers: Any, number: int, name: str, unbuffered: bool) -> Any:
    """A standard stream as a new interpreter has it, encoded as the server's; None if it is closed."""
    try:
        raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    except OSError:
        return None
    raw.name = name  # type: ignore[misc]
    buffered: Any = io.BufferedReader(raw) if number == 0 else raw if unbuffered else io.BufferedWriter(raw)
    stream: Any = io.TextIOWrapper(
        buffered,
        encoding=servers.encoding,
        errors=servers.errors,
        line_buffering=not unbuffered and (number == 2 or raw.isatty()),
        write_through=unbuffered,
    )
    stream.mode = raw.mode[0]
    return stream


def run_script(path: str, main: types.ModuleType) -> None:
    """Run a file as the module `__main__`."""
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    main.__dict__.update(__file__=path, __cached__=None, __loader__=loader, __builtins__=builtins)
    exec(compile(Path(path).read_bytes(), path, "exec"), main.__dict__)


def run(program: Callable[[], object] | None) -> NoReturn:
    """Run a fork's program as the last thing of this process."""
    if program is None:
        os._exit(0)
    code = 0
    try:
        program()
    except SystemExit as end:
        match end.code:
            case None | int():
                code = int(end.code or 0)
            case words:
                print(words, file=sys.stderr)
                code = 1
    except BaseException as error:
        show_error(error)
        code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    leave(code)


def show_error(error: BaseException) -> None:
    """Print an error that ended the program, without the calls that this process was in before."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename in {__file__, "<string>"}:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def leave(code: int) -> NoReturn:
    """End as an interpreter ends, but leave the freeing of all modules to the system."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.modules["__main__"].__dict__.clear()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream and not stream.closed:
                stream.flush()
        except OSError as error:
            if stream is sys.stdout:
                print(f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            code = 120
    if code == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code & 0xFF)


def warm() -> None:
    """Import what programs of Accord need."""
    commands = [f"accord_tools.cli.{found.name}" for found in pkgutil.iter_modules(accord_tools.cli.__path__)]
    for name in (*WARM, *commands):
        with contextlib.suppress(ImportError):  # of an extra that is not installed
            importlib.import_module(name)


def main() -> NoReturn:
    connection = socket.socket(fileno=int(sys.argv[1]))
    warm()
    run(serve(connection))


POSSIBLE = CLONE is not None and hasattr(subprocess, "_fork_exec")


_servers: list[Starter] = []


def prepare() -> None:
    """Fork the server of this process now, as it has imported nothing of its own yet."""
    _servers.append(forked_server())


def server() -> Starter:
    """The fork server of this process, which ends with us. It is started by the first call, if none is prepared."""
    if not _servers:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-c", "from tests.fork_server import main; main()", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=with_room(os.environ),
            )
        atexit.register(process.wait)
        atexit.register(ours.close)
        _servers.append(Starter(ours))
    return _servers[0]


def with_room(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with room for those that /proc shows of forks."""
    return {**environment, ROOM: " " * ROOM_SIZE}
