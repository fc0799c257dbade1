"""Programs of others with ours, beside the pairs of SDKs: clients, conductors, bridges and agents.

What was shown of each is its tests, whose names are sentences.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from interop import acpx, crow, toad

TESTS = Path(__file__).resolve().parent.parent / "tests" / "interop"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class OtherClient:
    """A program of others, or a few of a kind, and what was shown of it."""

    name: str
    title: str
    agents: str
    """What it is tried with."""
    found: tuple[str, ...] = ()
    """What it does that the protocol does not say."""

    @property
    def tests(self) -> Path:
        return TESTS / f"test_{self.name}.py"

    def sentences(self) -> list[str]:
        """What its tests show, in their order."""
        return [
            sentence(name) for name in re.findall(r"^(?:async )?def test_(\w+)", self.tests.read_text(), re.MULTILINE)
        ]

    def run(self, only: str | None) -> dict[str, str]:
        """How each of them went, or only one; one that has several cases has to pass with all."""
        chosen = ("-k", only.replace("'s ", "_s_").replace(" ", "_")) if only else ()
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = (
                sys.executable,
                "-m",
                "pytest",
                "-m",
                "interop or rust or agents",
                *chosen,
                f"--junitxml={report}",
                str(self.tests),
            )
            subprocess.run(command, stdout=sys.stderr, check=False)
            cases = list(ET.parse(report).iter("testcase"))
        found: dict[str, str] = {}
        for case in cases:
            statement = sentence(case.attrib["name"].partition("[")[0].removeprefix("test_"))
            found[statement] = max(found.get(statement, PASSED), status(case), key=(PASSED, SKIPPED, FAILED).index)
        return found


def sentence(name: str) -> str:
    return name.replace("_s_", "'s ").replace("_", " ")


def status(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return FAILED
    return PASSED if case.find("skipped") is None else SKIPPED


ACPX = OtherClient(
    "acpx",
    f"acpx {acpx.VERSION}, from the command line",
    "`accord demo`, and the examples for a notebook and pydantic-ai",
)
TOAD = OtherClient(
    "toad",
    f"Toad {toad.VERSION}, in a terminal",
    "`accord demo`, and the examples for a notebook, pydantic-ai and LangGraph",
    (
        "it answers an unknown notification with an error without an id",
        "it shows only `data.details` of an error, and reports an error during a turn as a failure to start",
    ),
)
CONDUCTORS = OtherClient(
    "conductors",
    "The Rust SDK's conductor 5.0.0, its proxies and its bridge",
    "our conductor, proxies, clients and agents, in both versions of the protocol",
)
MCP_OVER_ACP = OtherClient(
    "mcp_over_acp",
    "MCP over ACP of the TypeScript SDK 2.4.0",
    "our clients, proxies and agents: its provider, its caller and its HTTP bridge",
)
LENT_TOOLS = OtherClient(
    "lent_tools",
    "Our tools, called by real agents",
    "gemini-cli, codex-acp, qwen-code, claude-agent-acp and opencode-ai, which reach them over our bridge, "
    "without a network",
)
HTTP_BRIDGE = OtherClient(
    "http_bridge",
    "Our HTTP bridge, with MCP clients of others",
    "the official SDKs of MCP, behind an agent that takes MCP servers over HTTP only",
)
VERSION_2_RUST = OtherClient(
    "second_version_rust",
    "Version 2 with the Rust SDK 5.2.0, both ways",
    "our client with its agent, and its two clients with our agents",
)
VERSION_2_TYPESCRIPT = OtherClient(
    "second_version_agents",
    "Version 2 with the TypeScript SDK 2.4.0",
    "our agent with its client",
)
VERSION_2_CROW = OtherClient(
    "crow",
    f"crow-cli {crow.VERSION}, on the official Python SDK {crow.SDK}, in version 2",
    "our client, and a model that is made of rules",
    found=("it inserts a prompt again that is sent again under its key, and does not mark the end of a replay",),
)
OTHER_CLIENTS = (
    ACPX,
    TOAD,
    CONDUCTORS,
    MCP_OVER_ACP,
    LENT_TOOLS,
    HTTP_BRIDGE,
    VERSION_2_RUST,
    VERSION_2_TYPESCRIPT,
    VERSION_2_CROW,
)
