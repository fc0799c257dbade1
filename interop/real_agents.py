"""Real agents: where they come from, how they are started, and what a model made of rules has to be for them.

Each is installed into the user's cache folder, once, and gets a home of its own and a folder that is a git repository.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.build import IMPATIENCE, Unavailable, alone_in

HERE = Path(__file__).resolve().parent
INSTALL_SECONDS = 900
STAMP = "installed"

Settings = Callable[[str, Path], Mapping[str, str]]
"""The variables that an agent gets, from the model's URL and its home folder."""


@dataclass(frozen=True)
class Lack:
    """Something that an agent does not do as the protocol says, and its reproduction in `faults/`."""

    why: str
    fault: str


@dataclass(frozen=True, kw_only=True)
class RealAgent:
    """One agent of the field. What it does not do is said with its reason."""

    name: str
    package: str
    version: str
    command: tuple[str, ...]
    """`{bin}` is the folder of its programs, `{agents}` the one of ours, `{home}` its home."""
    settings: Settings
    files: Callable[[str], Mapping[str, str]] = field(default=lambda url: {})  # noqa: ARG005
    """Files in its home, from the model's URL."""
    is_python: bool = False
    beside: tuple[str, ...] = ()
    """What else has to be installed."""
    login: str | None = None
    """The authentication method to go through before a session."""
    mode: str | None = None
    """The mode in which it asks before it writes."""
    files_lent: bool = True
    """Whether it reads and writes files through the client."""
    loads_in_another_minute: bool = False
    """Whether a session can be loaded only when the minute in which it began is over."""
    lacks: Mapping[str, Lack] = field(default_factory=dict[str, Lack])
    """What was found of it, and how the conversation gets along with it; a part of the conversation fails by it."""


CODEX_CONFIG = """\
model = "gpt-5"
model_provider = "rules"
approval_policy = "on-request"
sandbox_mode = "read-only"

[model_providers.rules]
name = "rules"
base_url = "{url}/v1"
wire_api = "responses"
requires_openai_auth = false
"""


def opencode(url: str, _: Path) -> Mapping[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "rules",
        "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
        "models": {"fake": {"name": "fake", "tool_call": True, "limit": {"context": 100000, "output": 8000}}},
    }
    config = {
        "provider": {"rules": provider},
        "model": "rules/fake",
        "small_model": "rules/fake",
        "permission": {"edit": "ask", "bash": "ask"},
        "autoupdate": False,
        "share": "disabled",
    }
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


CLAUDE = RealAgent(
    name="claude-agent-acp",
    package="@agentclientprotocol/claude-agent-acp",
    version="0.101.0",
    command=("{bin}/claude-agent-acp",),
    settings=lambda url, _: {
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": url,
        "IS_SANDBOX": "1",
        "DISABLE_TELEMETRY": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    },
    # Its default mode asks a model whether a call is harmless, which ours cannot say.
    files=lambda _: {".claude/settings.json": '{"permissions": {"defaultMode": "default"}}'},
)
CODEX = RealAgent(
    name="codex-acp",
    package="@agentclientprotocol/codex-acp",
    version="2.6.0",
    command=("{bin}/codex-acp",),
    settings=lambda _, home: {"CODEX_HOME": str(home / ".codex")},
    files=lambda url: {".codex/config.toml": CODEX_CONFIG.format(url=url)},
    mode="read-only",
)
GEMINI = RealAgent(
    name="gemini-cli",
    package="@google/gemini-cli",
    version="0.61.0",
    command=("{bin}/gemini", "--acp"),
    settings=lambda url, _: {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url},
    login="gemini-api-key",
    files_lent=False,
    loads_in_another_minute=True,
    lacks={
        "files of the client": Lack(
            "it searches `String(error)` of a plain object for the text of the error, so it can never create a file "
            "through the client; here it uses its own file access",
            "gemini_files.py",
        ),
        "load within a minute of new": Lack(
            "`session/load` starts a second recording in a file named after the minute, which overwrites a session "
            "of the same minute; the conversation waits for the next minute",
            "gemini_load.py",
        ),
        "answer of load": Lack(
            "it arrives before the session is replayed; our client accepts updates after it", "gemini_replay.py"
        ),
    },
)
OPENCODE = RealAgent(
    name="opencode-ai", package="opencode-ai", version="1.18.33", command=("{bin}/opencode", "acp"), settings=opencode
)
QWEN = RealAgent(
    name="qwen-code",
    package="@qwen-code/qwen-code",
    version="0.24.4",
    command=("{bin}/qwen", "--acp", "--auth-type", "openai"),
    settings=lambda url, _: {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "fake"},
    mode="default",
)
HERMES = RealAgent(
    name="hermes-agent",
    package="hermes-agent",
    version="0.19.0",
    beside=("hermes-agent[acp]==0.19.0",),
    is_python=True,
    command=("{bin}/hermes", "acp"),
    settings=lambda url, _: {
        "HERMES_INFERENCE_PROVIDER": "custom",
        "HERMES_MODEL": "fake",
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": f"{url}/v1",
        "CUSTOM_BASE_URL": f"{url}/v1",
    },
)
PYDANTIC = RealAgent(
    name="pydantic-acp",
    package="pydantic-acp",
    version="1.10.0",
    beside=("pydantic-acp==1.10.0", "pydantic-ai-slim[openai]==2.52.0"),
    is_python=True,
    command=("{bin}/python", "{agents}/pydantic_acp_agent.py", "{home}/sessions"),
    settings=lambda url, _: {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{url}/v1"},
    lacks={
        "resume": Lack(
            "`run_acp` declares `session/resume` and `session/fork`, and starts the Python SDK in a mode that refuses "
            "both",
            "pydantic_resume.py",
        )
    },
)
DEEPAGENTS = RealAgent(
    name="deepagents-acp",
    package="deepagents-acp",
    version="0.0.13",
    beside=("deepagents-acp==0.0.13", "deepagents==0.7.32", "langgraph-checkpoint-sqlite==3.1.2"),
    is_python=True,
    command=("{bin}/python", "{agents}/deepagents_acp_agent.py", "{home}/sessions.sqlite"),
    settings=lambda url, _: {"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": url},
)
AGENTS = {it.name: it for it in (CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, HERMES, PYDANTIC, DEEPAGENTS)}

SECOND_VERSION = (CLAUDE.name, CODEX.name)
"""The agents that speak version 2."""

NODE = ("node@22.23.3",)
"""Some want a newer Node than most machines have: they get it from npm."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "accord" / "real-agents"


def installed(agent: RealAgent) -> Path:
    """The folder of its programs; raises Unavailable with a line that says what is missing."""
    programs = node_programs() if not agent.is_python else None
    folder = cache_folder() / f"{agent.name}-{agent.version}"
    folder.mkdir(parents=True, exist_ok=True)
    if programs is None:
        pip = folder / "venv" / "bin" / "python"
        wanted = agent.beside or (f"{agent.package}=={agent.version}",)
        install(
            folder, [sys.executable, "-m", "venv", "--clear", "venv"], [str(pip), "-m", "pip", "install", "-q", *wanted]
        )
        return folder / "venv" / "bin"
    npm(folder, f"{agent.package}@{agent.version}", *agent.beside)
    return folder / "node_modules" / ".bin"


def node_programs() -> Path:
    """The folder with a Node that is new enough."""
    folder = cache_folder() / "node-22"
    folder.mkdir(parents=True, exist_ok=True)
    npm(folder, *NODE)
    return folder / "node_modules" / ".bin"


def npm(folder: Path, *packages: str) -> None:
    if not shutil.which("npm"):
        raise Unavailable(f"{folder.name}: no npm here, install Node.js with npm")
    if not (folder / "package.json").exists():
        (folder / "package.json").write_text('{"private": true}\n')
    quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
    install(folder, ["npm", "install", *quiet, *packages])


def install(folder: Path, *steps: list[str]) -> None:
    """Once for each folder; what cannot be fetched is a reason to skip, and is not asked for again in this run."""
    if folder in _missing:
        raise _missing[folder]
    with alone_in(folder):
        stamp = folder / STAMP
        # A virtual environment is of use to every checkout, but to the version of Python that made it only.
        wanted = repr(steps).replace(sys.executable, f"python {platform.python_version()}")
        if stamp.exists() and stamp.read_text() == wanted:
            return
        stamp.unlink(missing_ok=True)
        try:
            with (folder / "install.log").open("wb") as log:
                environment = {**IMPATIENCE, **os.environ}
                options: Any = {
                    "cwd": folder,
                    "env": environment,
                    "stdin": subprocess.DEVNULL,
                    "stdout": log,
                    "stderr": log,
                }
                for step in steps:
                    subprocess.run(step, **options, timeout=INSTALL_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            needs = f"{folder.name}: not installed, it needs a network, once; see {folder / 'install.log'}"
            _missing[folder] = Unavailable(needs)
            raise _missing[folder] from error
        stamp.write_text(wanted)


_missing: dict[Path, Unavailable] = {}


def command(agent: RealAgent, home: Path) -> list[str]:
    programs = installed(agent)
    return [token.format(bin=programs, agents=HERE / "agents", home=home) for token in agent.command]


def environment(agent: RealAgent, url: str, home: Path) -> dict[str, str]:
    """Its variables: a home of its own, nothing of ours but the way to programs."""
    for name, text in agent.files(url).items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    path = os.environ["PATH"] if agent.is_python else f"{node_programs()}{os.pathsep}{os.environ['PATH']}"
    return {
        "PATH": path,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TMPDIR": str(home),
        "NO_PROXY": "127.0.0.1,localhost",
        **agent.settings(url, home),
    }


def repository(folder: Path) -> Path:
    """A folder to work in."""
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# A place to work\n")
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for step in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "Begin"]):
        subprocess.run([*git, *step], check=True, capture_output=True)
    return folder
