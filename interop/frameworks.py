"""Frameworks whose agents are among our examples, each in an environment of its own."""

from __future__ import annotations

from benchmarks.peers import Peer, fill

from interop.peers import had

PACKAGES = {
    "pydantic_ai": ("pydantic-ai-slim==2.68.0",),
    "langgraph": ("langgraph==1.2.22", "langchain-core==1.7.2"),
}


def python_with(framework: str) -> str:
    """An interpreter that has this framework; raises Unavailable with a line that says why there is none."""
    install = ("{venv}", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "msgspec")
    peer = Peer(
        name=f"framework-{framework}",
        package=PACKAGES[framework][0],
        version=PACKAGES[framework][0].partition("==")[2],
        language="Python",
        agent=("{venv}",),
        client=(),
        steps=(("{python}", "-m", "venv", "{build}/venv"), (*install, *PACKAGES[framework])),
    )
    return fill(peer.agent, had(peer).folder)[0]
