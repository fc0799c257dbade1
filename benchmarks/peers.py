"""What each peer is: how it is built, how its agent and its client are started. A peer is data; one row adds one."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEFAULT_LOOP, UVLOOP = "asyncio", "uvloop"

Tokens = tuple[str, ...]
"""A command. `{build}` is the peer's build folder, `{here}` this one, `{python}` the interpreter that runs this,
`{venv}` the one in the build folder, `{loop}` becomes `--uvloop` or goes away."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One implementation of the protocol: an agent, a client, and how to come by them."""

    name: str
    package: str
    version: str
    language: str
    agent: Tokens
    client: Tokens
    imports: Tokens = ()
    """A program that loads the library and prints how many milliseconds that took; nothing where nothing is loaded."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the build needs: a path in this folder, and its name in the build folder."""
    steps: tuple[Tokens, ...] = ()
    """The commands that build it, run one after the other in the build folder."""
    ahead: tuple[Tokens, ...] = ()
    """Commands that run ahead of every comparison, for what lies in the checkout and changes."""
    tools: Tokens = ()
    """Programs that have to be on the path."""
    install: str = ""
    """What to install when they are not."""
    loops: Tokens = ()
    """The event loops it can run on; none when the choice is not ours."""
    longest_turn: int | None = None
    """The most updates that a turn may have."""
    warm_up: float = 0.1
    """How much of a measure runs ahead of it in the same process, uncounted, as a share of the measure."""


def timed(statement: str) -> str:
    """A program that times an import. It names what an agent uses, so that nobody gains by loading it later."""
    return f"import time; t = time.perf_counter(); {statement}; print((time.perf_counter() - t) * 1e3)"


def venv_steps(requirements: str) -> tuple[Tokens, ...]:
    """A virtual environment of its own, so that no peer sees our packages."""
    return (
        ("{python}", "-m", "venv", "{build}/venv"),
        ("{venv}", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements),
    )


OURS = Peer(
    name="accord",
    package="accord",
    version="checkout",
    language="Python",
    files={"agents/accord_agent.py": "", "clients/accord_client.py": ""},
    agent=("{python}", "{here}/agents/accord_agent.py", "{loop}"),
    client=("{python}", "{here}/clients/accord_client.py", "{loop}"),
    # Others have bytecode, which pip writes when it installs; a checkout has none where PYTHONDONTWRITEBYTECODE is set.
    ahead=(("{python}", "-m", "compileall", "-q", "{here}/../packages", "{here}"),),
    imports=(
        "{python}",
        "-c",
        timed(
            "from accord import Context, Handlers, Peer, RequestError, StdioTransport, v1; "
            "v1.InitializeRequest, v1.NewSessionRequest, v1.PromptRequest, v1.SessionNotification, v1.AgentMessageChunk"
        ),
    ),
    loops=(DEFAULT_LOOP, UVLOOP),
)


def official_python(name: str, version: str) -> Peer:
    """A release of the official SDK; the same two programs work with each."""
    return Peer(
        name=name,
        package="agent-client-protocol",
        version=version,
        language="Python",
        files={f"pins/{name}.txt": "requirements.txt"},
        steps=venv_steps("requirements.txt"),
        agent=("{venv}", "{here}/agents/python_agent.py", "{loop}"),
        client=("{venv}", "{here}/clients/python_client.py", "{loop}"),
        imports=("{venv}", "-c", timed("from acp import Agent, run_agent")),
        loops=(DEFAULT_LOOP, UVLOOP),
    )


PYTHON = official_python("python", "0.12.1")
PYTHON_NEXT = official_python("python-next", "1.0.0rc3")

TYPESCRIPT = Peer(
    name="typescript",
    package="@agentclientprotocol/sdk",
    version="2.4.0",
    language="TypeScript",
    files={
        "pins/package.json": "package.json",
        "agents/typescript_agent.mjs": "agent.mjs",
        "clients/typescript_client.mjs": "client.mjs",
    },
    steps=(("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"),),
    tools=("node", "npm"),
    install="Node.js 20 or later with npm",
    agent=("node", "{build}/agent.mjs"),
    client=("node", "{build}/client.mjs"),
    imports=(
        "node",
        "--input-type=module",
        "--eval",
        "const t = performance.now(); await import('@agentclientprotocol/sdk'); console.log(performance.now() - t)",
    ),
    # Node compiles what runs often: it takes thousands of messages to reach its pace, an agent's life has more of them.
    warm_up=1.0,
)

GO = Peer(
    name="go",
    package="github.com/coder/acp-go-sdk",
    version="0.13.5",
    language="Go",
    files={
        "pins/go.mod": "go.mod",
        "agents/go_agent.go": "agent/main.go",
        "clients/go_client.go": "client/main.go",
    },
    steps=(("go", "build", "-mod=mod", "-o", "bin/", "./agent", "./client"),),
    tools=("go",),
    install="Go 1.23 or later",
    agent=("{build}/bin/agent",),
    client=("{build}/bin/client",),
    # Its client closes the link when 1,024 notifications wait for their handler, and nothing holds an agent back from
    # sending more, so its own agent breaks about every second stream of 50,000.
    longest_turn=1000,
)

RUST = Peer(
    name="rust",
    package="agent-client-protocol",
    version="5.2.0",
    language="Rust",
    files={"pins/Cargo.toml": "Cargo.toml", "agents/rust_agent.rs": "agent.rs", "clients/rust_client.rs": "client.rs"},
    steps=(("cargo", "build", "--quiet", "--release"),),
    tools=("cargo",),
    install="Rust 1.88 or later with cargo",
    agent=("{build}/target/release/agent",),
    client=("{build}/target/release/client",),
)

FLOOR = Peer(
    name="floor",
    package="msgspec",
    version="0.22.0",
    language="Python",
    files={"pins/floor.txt": "floor.txt"},
    steps=venv_steps("floor.txt"),
    agent=("{venv}", "{here}/agents/floor_agent.py", "{loop}"),
    client=("{venv}", "{here}/clients/floor_client.py", "{loop}"),
    imports=("{venv}", "-c", timed("import asyncio, msgspec")),
    loops=(DEFAULT_LOOP, UVLOOP),
)

PEERS = {peer.name: peer for peer in (OURS, PYTHON, PYTHON_NEXT, TYPESCRIPT, GO, RUST, FLOOR)}


def fill(tokens: Tokens, build: Path, loop: str = "") -> list[str]:
    """The command with its places filled in."""
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    places = {
        "build": str(build),
        "here": str(HERE),
        "python": sys.executable,
        "venv": str(build / "venv" / scripts / "python"),
        "loop": "--uvloop" if loop == UVLOOP else "",
    }
    filled: list[str] = []
    for token in tokens:
        for name, value in places.items():
            token = token.replace(f"{{{name}}}", value)  # noqa: PLW2901
        filled += [token] if token else []
    return filled
