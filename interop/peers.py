"""The SDKs of the suite: how their programs are built and started. A row adds one; `benchmarks.build` does the work."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchmarks.build import Built, Unavailable, build
from benchmarks.peers import Peer, Tokens, fill

from benchmarks import peers as bench

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Sdk:
    """One SDK's two programs: a client and an agent, as commands with places (`{interop}` is this folder)."""

    name: str
    title: str
    client: Tokens
    agent: Tokens
    peer: Peer | None = None
    """What has to be built; nothing for our own."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def _row(
    of: Peer, client: str, agent: str, files: Mapping[str, str], steps: tuple[Tokens, ...], version: str = ""
) -> Peer:
    return Peer(
        name=f"interop-{of.name}",
        package=of.package,
        version=version or of.version,
        language=of.language,
        agent=(agent,),
        client=(client,),
        files=files,
        steps=steps,
        tools=of.tools,
        install=of.install,
    )


TYPESCRIPT = _row(
    bench.TYPESCRIPT,
    "{build}/client.mjs",
    "{build}/agent.mjs",
    {
        "pins/package.json": "package.json",
        "../interop/clients/typescript_client.mjs": "client.mjs",
        "../interop/agents/typescript_agent.mjs": "agent.mjs",
    },
    bench.TYPESCRIPT.steps,
)

GO = _row(
    bench.GO,
    "{build}/bin/client",
    "{build}/bin/agent",
    {
        "pins/go.mod": "go.mod",
        "../interop/clients/go_client.go": "client/main.go",
        "../interop/agents/go_agent.go": "agent/main.go",
    },
    (
        *bench.GO.steps,
        ("go", "build", "-mod=mod", "-o", "bin/example", "github.com/coder/acp-go-sdk/example/agent"),
    ),
)
"""Its package ships an example agent too."""

RUST = _row(
    bench.RUST,
    "{build}/target/debug/client",
    "{build}/target/debug/agent",
    {
        "../interop/pins/Cargo.toml": "Cargo.toml",
        "../interop/clients/rust_client.rs": "client.rs",
        "../interop/agents/rust_agent.rs": "agent.rs",
    },
    (("cargo", "build", "--quiet"),),
    version="5.2.0",
)

_RUST_EXAMPLES = ("simple_agent_v2", "v2_one_shot_client", "v2_session_coordination")

RUST_V2 = Peer(
    name="interop-rust-v2",
    package=bench.RUST.package,
    version=RUST.version,
    language=bench.RUST.language,
    agent=("{build}/bin/simple_agent_v2",),
    client=("{build}/bin/v2_one_shot_client",),
    files={},
    steps=(
        (
            "cargo",
            "install",
            bench.RUST.package,
            f"--version={RUST.version}",
            *(f"--example={name}" for name in _RUST_EXAMPLES),
            "--features=stdio,process,unstable_protocol_v2",
            "--debug",
            "--force",
            "--root=.",
        ),
    ),
    tools=bench.RUST.tools,
    install=bench.RUST.install,
)
"""The examples of version 2 that its package ships: an agent and two clients."""

CONDUCTOR = Peer(
    name="interop-conductor",
    package="agent-client-protocol-conductor",
    version="5.0.0",
    language="Rust",
    agent=("{build}/target/release/conductor",),
    client=("{build}/target/release/proxy",),
    files={
        "../interop/pins/conductor.toml": "Cargo.toml",
        "../interop/proxies/rust_conductor.rs": "conductor.rs",
        "../interop/proxies/rust_proxy.rs": "proxy.rs",
    },
    steps=(("cargo", "build", "--quiet", "--release"),),
    tools=RUST.tools,
    install=RUST.install,
)
"""The Rust SDK's conductor, and proxies that are written with it; optimized, because it is measured as well."""

OURS = Sdk(
    "accord",
    "Accord",
    client=("{python}", "{interop}/clients/accord_client.py"),
    agent=("{python}", "{interop}/agents/accord_agent.py"),
)
DEMO = Sdk(
    "demo",
    "accord demo",
    client=OURS.client,
    agent=("{python}", "-m", "accord", "demo", "--store", "{data}/sessions", "--pace", "0.01"),
)
"""What anybody gets who starts our agent; `{data}` is a folder that stays when it is started again."""

LASTING = Sdk(
    "lasting",
    "Accord",
    client=OURS.client,
    agent=("{python}", "{interop}/agents/lasting_agent.py", "{data}/sessions"),
)
"""An agent whose sessions last, and nothing else."""

PYTHON = Sdk(
    "python",
    "Python 0.12.1",
    client=("{venv}", "{interop}/clients/python_client.py"),
    agent=("{venv}", "{interop}/agents/python_agent.py"),
    peer=bench.PYTHON,
)
TYPESCRIPT_STABLE = Sdk(
    "typescript",
    "TypeScript 2.4.0",
    client=("node", "{build}/client.mjs"),
    agent=("node", "{build}/agent.mjs"),
    peer=TYPESCRIPT,
)
TYPESCRIPT_UNSTABLE = Sdk(
    "typescript-unstable",
    "TypeScript 2.4.0, unstable",
    client=("node", "{build}/client.mjs"),
    agent=("node", "{build}/agent.mjs"),
    peer=TYPESCRIPT,
    environment={"ACP_SDK": "@agentclientprotocol/sdk/unstable"},
)

GO_SDK = Sdk("go", "Go 0.13.5", client=("{build}/bin/client",), agent=("{build}/bin/agent",), peer=GO)

RUST_SDK = Sdk(
    "rust", "Rust 5.2.0", client=("{build}/target/debug/client",), agent=("{build}/target/debug/agent",), peer=RUST
)

SDKS = {sdk.name: sdk for sdk in (OURS, PYTHON, TYPESCRIPT_STABLE, TYPESCRIPT_UNSTABLE, GO_SDK, RUST_SDK)}
THEIRS = [name for name in SDKS if name != OURS.name]


def built(name: str) -> Built:
    """The programs of one SDK; raises `benchmarks.build.Unavailable` with a line that says what to install."""
    peer = SDKS[name].peer
    assert peer is not None
    return had(peer)


def conductor() -> tuple[str, str]:
    """The programs of the Rust SDK's conductor and of its proxies; raises `Unavailable` like `built`."""
    folder = had(CONDUCTOR).folder
    return str(folder / "target/release/conductor"), str(folder / "target/release/proxy")


def had(peer: Peer) -> Built:
    """The same for any peer, tried once in a run: what cannot be fetched is not asked for again by the next test."""
    if peer.name in _missing:
        raise _missing[peer.name]
    try:
        return build(peer, _say)
    except Unavailable as missing:
        _missing[peer.name] = missing
        raise


_missing: dict[str, Unavailable] = {}


def command(sdk: Sdk, part: Literal["client", "agent"]) -> list[str]:
    """How the client or the agent of an SDK is started."""
    tokens = sdk.client if part == "client" else sdk.agent
    folder = HERE if sdk.peer is None else built(sdk.name).folder
    return [token.replace("{interop}", str(HERE)) for token in fill(tokens, folder)]


def _say(line: str) -> None:
    print(line, file=sys.stderr)
