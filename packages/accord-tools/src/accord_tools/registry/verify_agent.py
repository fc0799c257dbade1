"""Tries what an entry says: installs each distribution for this platform, starts it, and asks what the registry asks.

The registry lists an agent only if it answers `initialize` with a login method. It starts the agent with a home of its
own and few variables, and the first line of its standard output must be JSON. The same is done here, in a folder that
is removed when the next distribution is tried. Until then the caller may start the agent for checks of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from accord import ConnectionClosed, ProcessTransport
from accord.errors import last_lines
from accord.jsonrpc.line_frames import Oversized
from accord.transports.transport_interface import End
from accord_tools.registry import InstallError, Progress, RegistryError
from accord_tools.registry.agent_index import IndexSource
from accord_tools.registry.choose_agent import Distribution, choices, here
from accord_tools.registry.entry import RegistryEntry
from accord_tools.registry.entry_rules import EntryFinding
from accord_tools.registry.install_agent import install_into

PATIENCE = 120.0
"""Seconds that an agent has for its answer."""
LAST_STEPS = 5.0
"""Seconds that the agent has to end when its input is closed."""
LONGEST_LINE = 16 * 1024 * 1024
PASSED_ON = (
    "PATH", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY",
    "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SYSTEMROOT", "COMSPEC", "PATHEXT",
)  # fmt: skip
"""The variables of ours that the agent gets, as with the registry."""

CAPABILITIES: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "_meta": {"terminal_output": True, "terminal-auth": True},
}
"""What the registry's check declares."""


@dataclass(frozen=True)
class Verified:
    """What came of one distribution."""

    kind: str
    command: list[str]
    seconds: float | None
    """How long the answer to `initialize` took; None without one."""
    methods: tuple[str, ...]
    """The login methods that it offers, with their types."""
    findings: tuple[EntryFinding, ...]
    env: Mapping[str, str]
    """The whole environment that the agent had."""
    home: Path
    """Its home. This and the program are there until the next distribution is asked for."""


def verify(
    entry: RegistryEntry, source: IndexSource, progress: Progress, within: float = PATIENCE
) -> Iterator[Verified]:
    """Try each distribution of an agent that fits this platform. Raises RegistryError if none does."""
    fitting = choices(entry, here())
    if not fitting:
        raise RegistryError(f"{entry.id} has nothing for {here().key}; it has {', '.join(entry.kinds) or 'nothing'}")
    for choice in fitting:
        yield from _verify(entry, choice, source, progress, within)


def _verify(
    entry: RegistryEntry, choice: Distribution, source: IndexSource, progress: Progress, within: float
) -> Iterator[Verified]:
    path = f"distribution.{choice.kind}"
    with tempfile.TemporaryDirectory(prefix="accord-verify-", ignore_cleanup_errors=True) as made:
        folder, home = Path(made, "agent"), Path(made, "home")
        folder.mkdir()
        home.mkdir()
        try:
            command = install_into(folder, entry, choice, source, progress)
        except RegistryError as error:
            words = f"\n{error.words}" if isinstance(error, InstallError) and error.words else ""
            found = EntryFinding(entry.id, path, "install", f"{error}{words}")
            yield Verified(choice.kind, [], None, (), (found,), {}, home)
            return
        progress.step(f"{entry.id} is asked to initialize")
        env = _environment(choice.env, home)
        asked = asyncio.run(_ask(command, env, home, within))
        methods, problem = _methods(asked)
        findings = () if problem is None else (EntryFinding(entry.id, path, *problem),)
        yield Verified(choice.kind, command, asked.seconds, methods, findings, env, home)


def _environment(env: Mapping[str, str], home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**kept, "HOME": str(home), "USERPROFILE": str(home), "TERM": "dumb", **env}


@dataclass(frozen=True)
class _Asked:
    """The first line that an agent wrote, and how it went."""

    line: bytes = b""
    seconds: float | None = None
    ended: int | None = None
    """The exit code, if the agent ended before it wrote a line."""
    stderr: str = ""
    trouble: str = ""


class _FirstLine:
    """Receives the first line that an agent writes, or its end."""

    def __init__(self) -> None:
        self.found: asyncio.Future[bytes | Oversized | End] = asyncio.get_running_loop().create_future()

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        self._take(frames[0])

    def paused(self) -> None: ...

    def resumed(self) -> None: ...

    def ended(self, end: End) -> None:
        self._take(end)

    def _take(self, found: bytes | Oversized | End) -> None:
        if not self.found.done():
            self.found.set_result(found)


async def _ask(command: list[str], env: Mapping[str, str], cwd: Path, within: float) -> _Asked:
    transport = ProcessTransport(command, cwd=cwd, env=env, inherit_env=False, limit=LONGEST_LINE, grace=LAST_STEPS)
    first = _FirstLine()
    try:
        await transport.start(first)
    except ConnectionClosed as error:
        return _Asked(trouble=str(error))
    begun = time.monotonic()
    try:
        transport.send([_request()])
        found = await asyncio.wait_for(first.found, within)
        seconds = time.monotonic() - begun
    except TimeoutError:
        return _Asked(trouble=f"has not answered within {within:g} seconds")
    finally:
        await transport.close()
    if isinstance(found, End):
        return _Asked(ended=found.exit_code, stderr="\n".join(last_lines(found.stderr, 15)))
    if isinstance(found, Oversized):
        return _Asked(trouble="has written a line that is too long")
    return _Asked(found, seconds)


def _request() -> bytes:
    params = {
        "protocolVersion": 1,
        "clientInfo": {"name": "accord-agents-verify", "version": "1"},
        "clientCapabilities": CAPABILITIES,
    }
    return json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode()


def _methods(asked: _Asked) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """The login methods, or what is wrong: a rule and a message."""
    if asked.trouble:
        return (), ("initialize", asked.trouble)
    if not asked.line:
        said = f", and wrote:\n{asked.stderr}" if asked.stderr else ""
        return (), ("initialize", f"ended with exit code {asked.ended} before it answered{said}")
    try:
        message: Any = json.loads(asked.line)
    except ValueError:
        return (), ("first line", f"its first line of standard output must be JSON, got {asked.line[:200]!r}")
    if not isinstance(message, dict):
        return (), ("first line", f"its first line of standard output must be a JSON object, got {asked.line[:200]!r}")
    answer = cast("dict[str, Any]", message)
    if not isinstance(answer.get("result"), dict):
        return (), ("initialize", f"answered with an error: {json.dumps(answer.get('error', answer))[:300]}")
    given: Any = cast("dict[str, Any]", answer["result"]).get("authMethods")
    offered = cast("list[Any]", given) if isinstance(given, list) else []
    read = [cast("dict[str, Any]", method) for method in offered if isinstance(method, dict)]
    typed = [(str(method.get("id")), type_of(method)) for method in read]
    methods = tuple(f"{name} ({kind})" for name, kind in typed)
    if not any(kind in ("agent", "terminal") for _, kind in typed):
        needs = "must offer a login method of the type agent or terminal"
        return methods, ("login", f"{needs}, got {', '.join(methods) or 'none'}")
    return methods, None


def type_of(method: Mapping[str, Any]) -> str:
    """The type of a login method, as the registry's check reads it."""
    if isinstance(method.get("type"), str):
        return str(method["type"])
    meta: Any = method.get("_meta")
    return "terminal" if isinstance(meta, dict) and "terminal-auth" in meta else "agent"
