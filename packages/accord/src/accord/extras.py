"""Extras that are not installed, and what an error says of them; the command that runs a module of Accord.

The core needs msgspec only. What needs more says which extra is missing and prints the command that installs it. The
command depends on how Accord itself was installed: from an index, from a repository, or from a folder with its source,
where an install by name would fetch another package.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from accord.errors import AccordError

PACKAGES: Mapping[str, str] = {
    "hpack": "http2",
    "httptools": "http",
    "websockets": "http",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "opentelemetry": "otel",
    "anthropic": "agent",
    "openai": "agent",
    "keyring": "agent",
    "asyncpg": "postgres",
    "re2": "patterns",
    "markdown_it": "cli",
    "PIL": "cli",
    "pygments": "cli",
    "rich": "cli",
    "textual": "cli",
    "uvloop": "uvloop",
    "acp": "official-sdk",
    "pydantic_ai": "pydantic-ai",
    "langchain_core": "langgraph",
    "langgraph": "langgraph",
    "agents": "openai-agents",
    "claude_agent_sdk": "claude-agent-sdk",
    "llama_index": "llama-index",
}
"""The packages that Accord and its tools import, and the extra that installs each."""

DISTRIBUTIONS: Mapping[str, str] = {
    "agent": "accord-tools",
    "cli": "accord-tools",
    "official-sdk": "accord-adapters",
    "pydantic-ai": "accord-adapters",
    "langgraph": "accord-adapters",
    "openai-agents": "accord-adapters",
    "claude-agent-sdk": "accord-adapters",
    "llama-index": "accord-adapters",
}
"""The distributions that have these extras; the others are of `accord`."""


def install_command(extra: str) -> str:
    """The command that installs an extra, for the way in which Accord was installed.

    >>> install_command("mcp").startswith("pip install ")
    True
    """
    return _pip_install(DISTRIBUTIONS.get(extra, "accord"), f"[{extra}]")


def missing_package(package: str, what: str) -> AccordError:
    """The error for something that needs another distribution of Accord, such as `accord-check`.

    >>> print(str(missing_package("accord-check", "accord check")).partition(":")[0])
    accord check needs the package 'accord-check'
    """
    return AccordError(f"{what} needs the package {package!r}: {_pip_install(package)}")


def missing_extra(extra: str, what: str) -> AccordError:
    """The error for something that needs an extra.

    >>> print(str(missing_extra("http", "connecting to a URL")).partition(":")[0])
    connecting to a URL needs the extra 'http'
    """
    return AccordError(needs_extra(extra, what))


def needs_extra(extra: str, what: str) -> str:
    """The text of that error, for errors of other classes."""
    return f"{what} needs the extra {extra!r}: {install_command(extra)}"


def extra_of(error: ImportError) -> str | None:
    """The extra whose package an import did not find; None if it is no package of an extra."""
    return PACKAGES.get((error.name or "").partition(".")[0])


def own_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of Accord with these arguments, safe to start in any folder.

    `python -m` searches the current folder before the installed packages. An agent starts in the folder of a project,
    and a file `json.py` there would run in place of the standard module; `-P` leaves that folder out.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def _pip_install(package: str, extra: str = "") -> str:
    """The command that installs one of our distributions from where this one is from."""
    import shlex  # every start loads this module, and few ask it
    from pathlib import Path, PurePosixPath

    origin = _origin()
    url = str(origin.get("url", ""))
    if url.startswith("file://"):
        source = Path(_folder(url))
        if source.suffix == ".whl" and package != "accord":
            return f"pip install --find-links {shlex.quote(str(source.parent))} {shlex.quote(f'{package}{extra}')}"
        if (beside := source.with_name(package)).is_dir():
            source = beside
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}{shlex.quote(f'{source}{extra}')}"
    if "vcs_info" in origin:
        folder = origin.get("subdirectory")
        fragment = f"#subdirectory={PurePosixPath(folder).with_name(package)}" if folder else ""
        return "pip install " + shlex.quote(f"{package}{extra} @ {origin['vcs_info']['vcs']}+{url}{fragment}")
    return f"pip install {shlex.quote(f'{package}{extra}')}"


def _origin() -> dict[str, Any]:
    """Where Accord was installed from (PEP 610); empty for an index, and the source's folder where it only runs."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path

    try:
        told = distribution("accord").read_text("direct_url.json")
    except PackageNotFoundError:
        source = Path(__file__).parents[2]
        is_checkout = (source / "pyproject.toml").is_file()
        return {"url": source.as_uri(), "dir_info": {"editable": True}} if is_checkout else {}
    origin: dict[str, Any] = json.loads(told) if told else {}
    return origin


def _folder(url: str) -> str:
    from accord.file_uris import path_of_uri

    return str(path_of_uri(url) or url)
