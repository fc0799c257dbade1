"""Every example of every `--help`, and every `accord` command in the docs, is typed by a user and does its work.

The user has the agents that the examples name, as programs on PATH and in `agents.toml`. Each of these is the demo
agent with two sessions of the past. Commands run in a fork of this process, so that an example costs little more than
the agent that it starts. Commands that an editor starts are the agent of `accord run`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from accord import v1
from accord.schema import codec
from accord.session.replay_scan import marked
from accord.store import StoredSession
from accord.store.sqlite_store import SqliteStore
from accord_tools.cli import _options, main  # pyright: ignore[reportPrivateUsage]
from accord_tools.cli.command_table import commands_for, commands_of, parser_of

if sys.platform == "win32":
    pytest.skip("a process cannot be forked there", allow_module_level=True)

ROOT = Path(__file__).parents[4]

ONLY_READ = {
    r"^chat(?!.*--plain)": "shows a screen, which needs a terminal: tests/tui",
    r"^agent\b|-- accord agent": "needs a model: tests/coder",
    r"https?://|wss?://": "needs a server at that address: tests/http",
    r"^check (agent|client)\b": "judges for a minute: tests/check",
    r"^agents (verify|info|search|install|update|lock|forget|check|build|remove gemini)\b": "asks a registry: tests/"
    "registry",
    r"--registry|^agents import": "needs a registry, or the settings of an editor: tests/registry",
    r"postgresql://|--hosts|^hosts": "needs a database: tests/hosts",
    r"--container|--memory": "needs systemd or a container engine: tests/confinement",
    r"^trace import": "needs a file of another program: tests/tap",
    r"--certificate|--token-file|--policy": "needs a file with secrets or rules: tests/http, tests/cli/test_run.py",
    r"^trace show --follow": "ends with the trace: tests/tap",
    r"^doctor": "judges this machine: tests/cli/test_info_and_doctor.py",
    r"^permissions --revoke \d": "needs an answer that is kept: tests/cli/test_permissions_command.py",
    r"^sessions delete": "asks at a terminal: tests/cli/test_sessions.py",
    r"keyring:|--env-file": "needs a keyring or a file of variables: tests/registry/test_environment.py",
}
"""Examples that are only read by the parser, and where what they do is tested."""

SERVERS = re.compile(r"serve\b|inspect( [\w.]+)*$|inspect --send ")
"""Commands that run until Ctrl-C. They are ready with their first line."""
OF_EDITORS = re.compile(r"(trace (-a|-o|--) .*|inspect -- .*|conduct (?!--as-proxy).*|replay .*--as agent)$")
"""Commands that an editor starts."""

AGENT = f"""#!{sys.executable}
import sys
from pathlib import Path
import accord
from accord_tools.demo import demo_agent
agent = demo_agent(pace=0, store=Path(sys.argv[0]).with_suffix(".sqlite3"))
if Path("wants-login").exists():
    agent.login("api-key", "Log in")(lambda: None)
agent.run()
"""
MINE = """
import accord

agent = accord.Agent("mine")


@agent.on_prompt
async def reply(turn: accord.Turn) -> None:
    await turn.say("Hello.")
"""
CLIENT = """
import shlex
import sys

import accord

command = shlex.split(sys.argv[2]) if sys.argv[1] == "--agent" else sys.argv[1:]
print(accord.ask("Hello", agent=command).text)
"""
PROXY = "import accord\n\nproxy = accord.Proxy('rules')\nif __name__ == '__main__':\n    proxy.run()\n"


class Example(NamedTuple):
    """A line that a user types, and where it stands."""

    line: str
    source: str

    @property
    def command(self) -> str:
        """What follows the first `accord`."""
        return self.line.partition("accord ")[2]

    @property
    def only_read(self) -> str | None:
        """Why only the parser reads it."""
        return next((reason for form, reason in ONLY_READ.items() if re.search(form, self.command)), None)


TYPED = r"((git diff|echo \w+) \| |[A-Z_]+=\S+ )?accord "
"""How a line begins that a user types."""
CONTINUED = re.compile(r"\s*\\\n\s*")


def of_help() -> Iterator[Example]:
    parsers = [parser_of(commands_for())]
    while parsers:
        parser = parsers.pop()
        parsers += commands_of(parser).values()
        for line in CONTINUED.sub(" ", parser.epilog or "").splitlines():
            if re.match(rf"  {TYPED}", line):
                yield Example(re.split(r"(?<=\S)  +", line.strip())[0], f"{parser.prog} --help")


def of_docs() -> Iterator[Example]:
    for path in [
        ROOT / "README.md",
        *sorted(ROOT.glob("packages/*/README.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
    ]:
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL):
            for line in CONTINUED.sub(" ", block).splitlines() if language in ("", "sh", "console") else ():
                if re.match(rf"(\$ )?{TYPED}", line) and "..." not in line:
                    yield Example(re.split(r"(?<=\S)  +| +# ", line.removeprefix("$ "))[0], path.name)


EXAMPLES = list({example.line: example for example in [*of_docs(), *of_help()]}.values())


class Desk:
    """A user with a project's folder, a home, the programs that the examples name, and sessions of the past."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self._programs = folder / "bin"
        self.environment = {
            "HOME": str(folder),
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            **{f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "STATE", "DATA", "CACHE")},
        }
        for name in ("gemini", "my-agent", "claude-agent-acp"):
            write(self._programs / name, AGENT)
        write(self._programs / "accord", f'#!/bin/sh\nexec {sys.executable} -m accord "$@"\n')
        write(self._programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        write(self._programs / "curl", "#!/bin/sh\ncat\n")
        write(self._programs / "git", "#!/bin/sh\necho +a change\n")
        self.settings = folder / "config" / "accord" / "agents.toml"
        names = "".join(f'[agents.{name}]\ncommand = ["gemini"]\n' for name in ("gemini", "team", "shouting"))
        write(self.settings, f'default = "gemini"\n{names}')
        for name in ("my_agent.py", "src/weather/agent.py", "shouting.py", "my_package/agent.py"):
            write(self.folder / name, MINE)
        write(self.folder / "my_client.py", CLIENT)
        (self.folder / "shot.png").write_bytes(b"\x89PNG")
        for name in ("house_rules.py", "rules.py", "redact.py", "redactor.py", "examples/proxies/company_policy.py"):
            write(self.folder / name, PROXY)
        write(self.folder / "hello.txt", "hello\n")
        for store in ("gemini", "my-agent"):
            asyncio.run(self._remember(self._programs / f"{store}.sqlite3"))

    async def _remember(self, path: Path) -> None:
        async with SqliteStore(path) as store:
            for name in ("3f2a11", "77b122"):
                stored = await store.create(StoredSession(id=name, cwd=str(self.folder)))
                said = (v1.UserMessageChunk.of("Fix it", "u"), v1.AgentMessageChunk.of("It is fixed.", "a"))
                await store.write(stored, [marked(codec.encode(update), 1) for update in said])
                store.release(stored)

    def prepare(self, command: str) -> None:
        """What these commands need and others must not have."""
        if " zed mine" in command:
            self.settings.write_text(self.settings.read_text() + '[agents.mine]\ncommand = ["gemini"]\n')
        if " login" in f" {command}" or "--login" in command:
            write(self.folder / "wants-login", "")
        if command.startswith("agents add"):
            self.settings.unlink()
        if ":reviewer" in command:
            write(self.folder / "my_agent.py", MINE.replace("agent", "reviewer"))

    def record(self, trace: bytes) -> None:
        for name in ("wire", "before"):
            (self.folder / f"{name}.jsonl").write_bytes(trace)
        (self.folder / "after.jsonl").write_bytes(trace.replace(b"Fix it", b"Which rate limit?"))
        kept = Path(self.environment["XDG_STATE_HOME"]) / "accord" / "traces" / "kept.jsonl"
        write(kept, trace.decode())

    def type(self, line: str) -> subprocess.CompletedProcess[str]:
        """What happens after this line, of which `accord` runs in a fork unless a shell is needed."""
        if re.search(r"[|&$*]|^[A-Z_]+=", re.sub(r"'[^']*'", "", line)):
            return subprocess.run(
                ["/bin/sh", "-c", line],
                check=False, capture_output=True, text=True, cwd=self.folder, env=self.environment,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        words = shlex.split(line)[1:]
        is_server = bool(SERVERS.match(shlex.join(words)))
        if words[0] == "serve":  # at a port that is free, as that of the example may not be
            if "--port" in words:
                words[words.index("--port") + 1] = "0"
            else:
                words[1:1] = ["--port", "0"]
        return forked(words, self.folder, self.environment, until_ready=is_server)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755 if text.startswith("#!") else 0o600)


def forked(
    arguments: list[str], folder: Path, environment: Mapping[str, str], *, until_ready: bool
) -> subprocess.CompletedProcess[str]:
    """Run the command in a fork of this process; with `until_ready`, Ctrl-C follows its first line."""
    reads, writes = os.pipe()
    errors = folder.parent / "stderr"
    process = os.fork()
    if process == 0:
        os.setsid()
        _become(arguments, folder, environment, writes, errors)
    os.close(writes)
    with os.fdopen(reads, encoding="utf-8") as output:
        said = output.readline()
        if until_ready and said:
            os.kill(process, signal.SIGINT)
        said += output.read()
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return subprocess.CompletedProcess(arguments, code, said, errors.read_text())


def _become(arguments: list[str], folder: Path, environment: Mapping[str, str], output: int, errors: Path) -> None:
    """Be the command, in the fork; never returns."""
    code = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
        os.closerange(3, 100)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(fd, mode, closefd=False) for fd, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    desk = Desk(tmp_path_factory.mktemp("recorded"))
    done = desk.type("accord run 'Fix it' -a gemini --trace wire.jsonl")
    assert done.returncode == 0, done.stderr
    return (desk.folder / "wire.jsonl").read_bytes()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda it: f"{it.source}: {it.line}")
def test_an_example_does_its_work(example: Example, tmp_path: Path, trace: bytes) -> None:
    if example.only_read is not None:
        _options(shlex.split(example.command.partition(" | ")[0].partition(" && ")[0]))
        return
    desk = Desk(tmp_path)
    desk.record(trace)
    desk.prepare(example.command)
    line = example.line
    if OF_EDITORS.match(example.command):
        line = f"accord run 'Fix it' -- {line}"
    done = desk.type(line)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert "Internal error" not in done.stderr


def test_each_reason_to_only_read_an_example_has_one() -> None:
    used = {example.only_read for example in EXAMPLES}
    assert [reason for reason in ONLY_READ.values() if reason not in used] == []
