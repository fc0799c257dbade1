"""Every example of every `--help`, and every line for a shell in the docs, is typed by a user and does its work.

The user has the agents that the examples name, as programs on PATH and in `agents.toml`. Each of these is the demo
agent with two sessions of the past. What is elsewhere in the examples, such as an agent behind a URL, a registry or a
model, is on this machine here (`Elsewhere`). Commands run in a fork of this process, so that an example costs little
more than the agent that it starts. Commands that an editor starts are the agent of `accord run`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pytest
from interop.model.replies import Words
from interop.model.server import ModelServer

import accord
from accord import v1
from accord.schema import codec
from accord.services.permission_policy import PolicyProbe
from accord.session.replay_scan import marked
from accord.store import StoredSession
from accord.store.sqlite_store import SqliteStore
from accord_tools.cli import _options, main  # pyright: ignore[reportPrivateUsage]
from accord_tools.cli.command_table import commands_for, commands_of, parser_of
from tests import fork_server
from tests.cli.pseudo_terminal import start_terminals
from tests.registry.local_registry import LocalRegistry

if sys.platform == "win32":
    pytest.skip("a process cannot be forked there", allow_module_level=True)

ROOT = Path(__file__).parents[4]

ONLY_READ = {
    r"^chat --worktree": "makes a worktree of a repository: tests/tui/test_worktrees.py",
    r"^check (agent|client)\b(?!.*--profile smoke)": "judges for a minute: tests/check",
    r"^check .*-- npx ": "needs a program of npm: tests/interop",
    r"postgresql://": "needs PostgreSQL: tests/hosts",
    r"--container|--memory": "needs systemd or a container engine: tests/confinement",
}
"""Examples that are only read by the parser, and where what they do is tested."""

NEEDED = {r"^agents (verify|install) .*my-agent": "npm", r"--certificate|^openssl ": "openssl"}
"""Programs without which an example is skipped."""

SERVERS = re.compile(r"serve\b|inspect( [\w.]+)*$|inspect --send |trace show --follow")
"""Commands that run until Ctrl-C. They are ready with their first line."""
OF_EDITORS = re.compile(
    r"(trace (-a|-o|--) .*|inspect -- .*|conduct (?!--as-proxy).*|replay .*--as agent|agent( --.*)?|bridge .*)$"
)
"""Commands that an editor starts."""
AT_A_TERMINAL = {
    r"^accord chat(?!.*--plain)": ("enter", "\x11"),
    r"^accord sessions delete": ("[y/N]", "y\r"),
    r"accord agents install (?!.*--yes)": ("[y/N]", "y\r"),
}
"""Commands that talk with a user at a terminal: when that is answered, and how."""
FINDS = {"doctor": (1,)}
"""Commands whose status says what they have found on this machine."""
SERVED = re.compile(r"(https?|ws)://(agents\.example|127\.0\.0\.1:8000)/acp")
"""Addresses of agents in the examples; here a server of a free port is there."""

RULES = '[[rules]]\nanswer = "allow"\nkinds = ["read", "edit"]\n'
ZED = {"agent_servers": {"jet": {"command": "/opt/jet", "args": ["acp"]}}}
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
DEVTOOLS = """
CREATE TABLE sessions (id INTEGER, name TEXT, agent_command TEXT, started_at INTEGER);
CREATE TABLE messages (session_id INTEGER, seq INTEGER, timestamp INTEGER, direction TEXT, raw TEXT);
INSERT INTO sessions VALUES (3, 'old', 'agent --acp', 1000);
INSERT INTO messages VALUES (3, 0, 2000, 'editor-to-agent', '{"jsonrpc":"2.0","id":0,"method":"initialize"}');
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


NOT_TYPED = {
    r"(pip|pipx|uvx|git clone|python3 -m venv|\. env|export|cd)\b": "installs something: tests/packaging",
    r"python -m accord_adapters": "runs programs of another SDK: packages/accord-adapters/tests",
    r"(\w+=\S+ |\w+=\$\(.*\) )?(python|jupyter) \S*examples|jupyter": "runs an example: tests/examples",
    r"(echo y \| )?python talk": "is a step of the quickstart: tests/repository/test_quickstart.py",
    r"keyring ": "asks for a secret: tests/registry/test_environment.py",
}
"""Lines for a shell that are not of `accord` and not typed, and where what they do is tested."""


def skip_without_programs(lines: str) -> None:
    for form, program in NEEDED.items():
        if re.search(form, lines, re.MULTILINE) and shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def of_shells() -> dict[str, list[str]]:
    """The lines for a shell that are not of `accord`, by their pages."""
    pages = dict[str, list[str]]()
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for language, block in re.findall(r"^```(sh|console)\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL):
            for line in CONTINUED.sub(" ", block).splitlines():
                typed = line.removeprefix("$ ")
                is_output = language == "console" and typed == line
                if typed.strip() and not (is_output or typed.startswith("#") or re.match(TYPED, typed)):
                    pages.setdefault(path.name, []).append(typed)
    return pages


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
        for name in ("token", "../.token", "../.team-token", "../.agent-token"):
            write(self.folder / name, "s3cret\n")
        write(self.folder / "tokens", "s3cret ada\n")
        write(self.folder / "prompt.txt", "Fix it\n")
        for name in ("rules.toml", "ci.toml"):
            write(self.folder / name, RULES)
        write(self.folder / "gemini.env", "GEMINI_API_KEY=s3cret\n")
        for name in ("settings.json", "../.jetbrains/acp.json"):
            write(self.folder / name, json.dumps(ZED))
        for name in ("gemini", "my-agent", "claude-agent-acp"):
            write(self._programs / name, AGENT)
        write(self._programs / "accord", f'#!/bin/sh\nexec {sys.executable} -m accord "$@"\n')
        write(self._programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        for name in ("curl", "jq"):
            write(self._programs / name, "#!/bin/sh\ncat\n")
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

    def prepare(self, command: str, elsewhere: Elsewhere) -> dict[str, str]:
        """Make what these commands need and others must not have; returns words to type in place of others."""
        if " zed mine" in command:
            self.settings.write_text(self.settings.read_text() + '[agents.mine]\ncommand = ["gemini"]\n')
        if " login" in f" {command}" or "--login" in command:
            write(self.folder / "wants-login", "")
        if "./my-agent" in command:
            write(self.folder / "my-agent", AGENT)
        if command.startswith("agents add"):
            self.settings.unlink()
        if ":reviewer" in command:
            write(self.folder / "my_agent.py", MINE.replace("agent", "reviewer"))
        if "accord agent" in f"accord {command}":
            self.environment |= {
                "OPENAI_BASE_URL": elsewhere.model,
                "OPENAI_API_KEY": "sk-none",
                "ACCORD_MODEL": "fake",
            }
        if command.startswith("agents") or "--registry" in command:
            self.environment |= elsewhere.registry.environment
        if re.match("agents (check|verify|build|install) .*(my-agent|dist)", command):
            self.done("agents new my-agent --npx @me/my-agent@0.3.0")
        if re.match("agents (lock|install --locked|update)", command):
            self.done("agents install gemini --yes")
        if "--locked" in command:
            self.done("agents lock gemini")
        if "--certificate" in command:
            names = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
            files = ["-out", self.folder / "tls.pem", "-keyout", self.folder / "tls.key"]
            subprocess.run(["openssl", "req", *names, *files], check=True, capture_output=True)
        if command.startswith("hosts"):
            file, session = elsewhere.hosts
            (self.folder / "hosts.sqlite3").symlink_to(file)
            return {"web-1": socket.gethostname(), "SESSION": session}
        if command.startswith("permissions --revoke"):
            with pytest.MonkeyPatch.context() as patched:
                patched.setenv("XDG_STATE_HOME", self.environment["XDG_STATE_HOME"])
                call = accord.session.ToolCallState(
                    v1.ToolCallId("1"), "make", "execute", raw_input={"command": "make"}
                )
                question = accord.PermissionQuestion(PolicyProbe(self.folder, "gemini"), call, ())
                accord.RememberedAnswers().remember(question, allowed=True)
            return {"3fa21c09": json.loads(self.done("permissions --json"))[0]["id"]}
        return {"accord agent login": "echo sk-none | accord agent login"}

    def done(self, command: str) -> str:
        """What a command prints that has to end well."""
        done = self.type(f"accord {command}")
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def record(self, trace: bytes) -> None:
        for name in ("wire", "before"):
            (self.folder / f"{name}.jsonl").write_bytes(trace)
        (self.folder / "after.jsonl").write_bytes(trace.replace(b"Fix it", b"Which rate limit?"))
        kept = Path(self.environment["XDG_STATE_HOME"]) / "accord" / "traces" / "kept.jsonl"
        write(kept, trace.decode())
        self.done("trace export wire.jsonl --format devtools -o session.json")
        database = self.folder.parent / ".acp-devtools" / "sessions.db"
        database.parent.mkdir()
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(DEVTOOLS)
            connection.commit()

    def type(self, line: str) -> subprocess.CompletedProcess[str]:
        """What happens after this line, of which `accord` runs in a fork unless a shell or a terminal is needed."""
        if (answer := next((it for form, it in AT_A_TERMINAL.items() if re.search(form, line)), None)) is not None:
            with start_terminals(self.folder) as start:
                it = start(program=["/bin/sh", "-c", line], **self.environment)
                it.shows(answer[0])
                it.types(answer[1])
                shown = it.to_the_end()
                return subprocess.CompletedProcess([line], it.process.wait(), shown, "")
        if (of_server := re.match(r"([A-Z_]+)=(\w+) (accord serve .*)", line)) is not None:
            name, value, line = of_server.groups()
            self.environment[name] = value
        if re.search(r"[|&$*<]|^[A-Z_]+=", re.sub(r"'[^']*'", "", line)):
            return subprocess.run(
                ["/bin/sh", "-c", line],
                check=False, capture_output=True, text=True, cwd=self.folder, env=self.environment,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        words = [it.replace("~/", f"{self.folder.parent}/") for it in shlex.split(line)[1:]]
        is_server = bool(SERVERS.match(shlex.join(words)))
        if words[0] == "serve":  # at a port that is free, as that of the example may not be
            if "--port" in words:
                words[words.index("--port") + 1] = "0"
            else:
                words[1:1] = ["--port", "0"]
        return forked(words, self.folder, self.environment, until_ready=is_server)


class Elsewhere:
    """What the examples find at an address, each on this machine and started when it is needed first."""

    def __init__(self, desk: Desk, held: ExitStack) -> None:
        self._desk = desk
        self._held = held

    def _started(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "accord", *words]
        process = subprocess.Popen(
            command,
            cwd=self._desk.folder,
            env=self._desk.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._held.callback(process.communicate)
        self._held.callback(process.terminate)
        return process

    def _served(self, *options: str) -> str:
        output = self._started("serve", "--port", "0", *options, "--", "gemini").stdout
        assert output is not None
        return re.findall(r"//([^/]+)/acp", output.readline())[0]

    @cached_property
    def agent(self) -> str:
        """The host and the port of an agent behind a URL."""
        return self._served()

    @cached_property
    def hosts(self) -> tuple[Path, str]:
        """The file of hosts of a service, and the id of a session that is open there."""
        place = self._served("--hosts", "hosts.sqlite3")
        self._started("chat", "--plain", "-a", f"http://{place}/acp")
        while not (found := json.loads(self._desk.done("hosts hosts.sqlite3 sessions --json"))):
            time.sleep(0.05)
        return self._desk.folder / "hosts.sqlite3", found[0]["id"]

    @cached_property
    def registry(self) -> LocalRegistry:
        """A registry with one agent, and a package of npm that is one."""
        registry = self._held.enter_context(LocalRegistry())
        with_login = AGENT.replace('Path("wants-login").exists()', "True")  # the registry lists no other agents
        registry.add_archive("gemini", {"gemini": with_login}, cmd="./gemini")
        registry.add_npm_package("@me/my-agent", "0.3.0", {"agent": with_login}, {"my-agent": "agent"})
        return registry

    @cached_property
    def model(self) -> str:
        """The address of a model."""
        return self._held.enter_context(ModelServer(reply=lambda _: [Words("Hello.")])).url + "/v1"

    def found_by(self, line: str) -> str:
        """The line with addresses of this machine."""
        line = SERVED.sub(lambda it: f"{it[1].replace('https', 'http')}://{self.agent}/acp", line)
        return line.replace("http://localhost:11434/v1", self.model) if ":11434" in line else line


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
        fork_server.forked_server().use()
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


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    with ExitStack() as held:
        yield Elsewhere(Desk(tmp_path_factory.mktemp("elsewhere")), held)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda it: f"{it.source}: {it.line}")
def test_an_example_does_its_work(example: Example, tmp_path: Path, trace: bytes, elsewhere: Elsewhere) -> None:
    if example.only_read is not None:
        _options(shlex.split(example.command.partition(" | ")[0].partition(" && ")[0]))
        return
    skip_without_programs(example.command)
    desk = Desk(tmp_path)
    desk.record(trace)
    line = elsewhere.found_by(example.line)
    for word, other in desk.prepare(example.command, elsewhere).items():
        line = line.replace(word, other)
    if OF_EDITORS.match(example.command):
        line = f"accord run 'Fix it' -- {line}"
    done = desk.type(line)
    assert done.returncode in (0, *FINDS.get(example.command, ())), (line, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert "Internal error" not in done.stderr


@pytest.mark.parametrize("page", of_shells())
def test_the_other_lines_of_a_page_do_their_work(page: str, tmp_path: Path) -> None:
    lines = [line for line in of_shells()[page] if not any(re.match(form, line) for form in NOT_TYPED)]
    skip_without_programs("\n".join(lines))
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", "\n".join(lines)], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, (lines, done.stderr)


def test_each_reason_not_to_type_a_line_has_one() -> None:
    lines = [line for page in of_shells().values() for line in page]
    assert [reason for form, reason in NOT_TYPED.items() if not any(re.match(form, line) for line in lines)] == []


def test_each_reason_to_only_read_an_example_has_one() -> None:
    used = {example.only_read for example in EXAMPLES}
    assert [reason for reason in ONLY_READ.values() if reason not in used] == []
