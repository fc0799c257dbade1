"""Reads the sources of a registry, a folder for each agent, checks them, and builds the files that clients fetch.

The same sources give the same bytes: agents are sorted by id, keys are in a fixed order, and nothing records the time
or place of the build. `registry.json` leaves previews out, as the public one does.

Tests the distributions of an entry: installs each for this platform, starts it, and asks what the registry asks.

The registry lists an agent only if it answers `initialize` with a login method. It starts the agent with its own home
and few variables, and the first line of its standard output must be JSON. The same is done here, in a folder that is
removed when the next distribution is tried. Until then the caller may start the agent for checks of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from accord import ConnectionClosed, ProcessTransport
from accord.errors import last_lines
from accord.jsonrpc.line_frames import Oversized
from accord.project.project import Project
from accord.trace.meaning import body_of, items_of
from accord.transports import End
from accord_tools.registry import InstallError, Progress, RegistryError
from accord_tools.registry.agent_index import LARGEST, IndexSource, entry_files
from accord_tools.registry.downloads import address_problem
from accord_tools.registry.entry import Distribution, RegistryEntry, choices, here
from accord_tools.registry.entry_rules import ADDRESSES, EntryFinding, check_entry, check_icon
from accord_tools.registry.install_agent import install_into

KEYS = (
    "id", "name", "version", "description", "repository", "website", "authors", "license", "license_url", "icon",
    "distribution",
)  # fmt: skip
FORMAT = "1.0.0"


@dataclass(frozen=True)
class SourceEntry:
    """An agent in the sources of a registry."""

    file: Path
    folder: str | None
    """The name of its folder; None for a file on its own."""
    raw: object
    icon: bytes | None
    problem: str = ""
    """Why the file cannot be read."""


def read_sources(place: Path) -> list[SourceEntry]:
    """Return the entries of a registry's folder, of one agent's folder, or of a file. Raises RegistryError for none."""
    place = place.absolute()
    if place.is_file():
        return [_source(place, None, Project([place.parent]))]
    project = Project([place])
    if (place / "agent.json").is_file():
        return [_source(place / "agent.json", place.resolve().name, project)]
    found = [_source(path, path.parent.name, project) for path in entry_files(place)]
    if not found:
        raise RegistryError(f"{place} has no agent.json, and no folder in it has one")
    return found


def _source(file: Path, folder: str | None, project: Project) -> SourceEntry:
    icon: bytes | None = None
    try:
        raw: object = msgspec.json.decode(project.read(file, LARGEST))
        with suppress(FileNotFoundError):
            icon = project.read(file.with_name("icon.svg"), LARGEST)
    except (msgspec.DecodeError, RecursionError) as error:
        return SourceEntry(file, folder, None, None, f"must be JSON: {error}")
    except (OSError, ValueError) as error:
        return SourceEntry(file, folder, None, None, f"cannot be read: {error}")
    return SourceEntry(file, folder, raw, icon)


def check_sources(sources: list[SourceEntry], base: Path) -> list[EntryFinding]:
    """Return the problems of these entries and their icons. Files are named relative to `base`."""
    found: list[EntryFinding] = []
    seen: dict[str, str] = {}
    for source in sources:
        file = _shown(source.file, base)
        if source.problem:
            found.append(EntryFinding(file, "", "json", source.problem))
            continue
        found += check_entry(source.raw, source.folder, file)
        name = _id(source)
        if name is not None:
            if name in seen:
                found.append(EntryFinding(file, "id", "unique", f"must be unique, and {seen[name]} has it too"))
            seen.setdefault(name, file)
        found += _icon(source, file, base)
    return found


def _icon(source: SourceEntry, file: str, base: Path) -> Iterator[EntryFinding]:
    if source.icon is not None:
        yield from check_icon(source.icon, _shown(source.file.with_name("icon.svg"), base))
    elif source.folder is not None:
        yield EntryFinding(file, "", "icon", "needs an icon: icon.svg beside it")


def _shown(file: Path, base: Path) -> str:
    try:
        return file.resolve().relative_to(base.resolve()).as_posix()
    except ValueError:
        return file.as_posix()


def _id(source: SourceEntry) -> str | None:
    name: Any = body_of(source.raw).get("id")
    return name if isinstance(name, str) else None


def build(
    sources: list[SourceEntry], out: Path, icons_at: str = "", hash_of: Callable[[str], str] | None = None
) -> list[Path]:
    """Write registry.json and the icons to a folder, and return the files. The sources must have no errors.

    `icons_at` is the address that icons will have; by default they are named relative to the list. `hash_of` computes
    the SHA-256 of an archive that has none.
    """
    agents = [_published(source, icons_at, hash_of) for source in sorted(sources, key=lambda it: _id(it) or "")]
    document = {"version": FORMAT, "agents": agents, "extensions": []}
    out.mkdir(parents=True, exist_ok=True)
    written = [out / "registry.json"]
    written[0].write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    for source in sources:
        if source.icon is not None:
            written.append(out / f"{_id(source)}.svg")
            written[-1].write_bytes(source.icon)
    return written


def _published(source: SourceEntry, icons_at: str, hash_of: Callable[[str], str] | None) -> dict[str, Any]:
    raw = body_of(source.raw)
    entry = {key: raw[key] for key in KEYS if key in raw}
    entry |= {key: raw[key] for key in sorted(raw) if key not in (*KEYS, "preview", "$schema")}
    if source.icon is not None:
        entry["icon"] = f"{icons_at.rstrip('/')}/{entry['id']}.svg" if icons_at else f"{entry['id']}.svg"
    if hash_of is not None and (distribution := body_of(entry.get("distribution"))):
        entry["distribution"] = _with_hashes(distribution, hash_of)
    return entry


def _with_hashes(distribution: dict[str, Any], hash_of: Callable[[str], str]) -> dict[str, Any]:
    targets: dict[str, dict[str, Any]] = distribution.get("binary", {})
    hashed = {
        platform: target if target.get("sha256") else {**target, "sha256": hash_of(str(target["archive"]))}
        for platform, target in targets.items()
    }
    return {**distribution, **({"binary": hashed} if hashed else {})}


def check_online(sources: list[SourceEntry], base: Path) -> list[EntryFinding]:
    """The addresses that do not answer. Packages are left to npm and PyPI: `accord agents verify` installs them."""
    found: list[EntryFinding] = []
    known: dict[str, str | None] = {}
    for source in sources:
        for path, address in _addresses(source.raw):
            if address not in known:
                known[address] = address_problem(address)
            if (problem := known[address]) is not None:
                found.append(EntryFinding(_shown(source.file, base), path, "online", problem))
    return found


def _addresses(raw: object) -> Iterator[tuple[str, str]]:
    """The addresses of an entry, with their paths."""
    entry = body_of(raw)
    yield from ((key, entry[key]) for key in ADDRESSES if isinstance(entry.get(key), str))
    for platform, target in body_of(body_of(entry.get("distribution")).get("binary")).items():
        if isinstance(archive := body_of(target).get("archive"), str):
            yield f"distribution.binary.{platform}.archive", archive


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

PARAMS: dict[str, Any] = {
    "protocolVersion": 1,
    "clientInfo": {"name": "accord-agents-verify", "version": "1"},
    "clientCapabilities": {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": True,
        "_meta": {"terminal_output": True, "terminal-auth": True},
    },
}
"""The params of the registry's check."""
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": PARAMS}).encode()


@dataclass(frozen=True)
class Verified:
    """The result for one distribution."""

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
    """Its home. This and the program exist until the next distribution is requested."""


def verify(
    entry: RegistryEntry, source: IndexSource, progress: Progress, within: float = PATIENCE
) -> Iterator[Verified]:
    """Test each distribution of an agent that fits this platform. Raises RegistryError if none does."""
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
        said, seconds = asyncio.run(_ask(command, env, home, within))
        methods, problem = ((), ("initialize", said)) if isinstance(said, str) else _methods(said)
        findings = () if problem is None else (EntryFinding(entry.id, path, *problem),)
        yield Verified(choice.kind, command, seconds, methods, findings, env, home)


def _environment(env: Mapping[str, str], home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**kept, "HOME": str(home), "USERPROFILE": str(home), "TERM": "dumb", **env}


class _FirstLine:
    """Receives the first line of an agent, or its end."""

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


async def _ask(
    command: list[str], env: Mapping[str, str], cwd: Path, within: float
) -> tuple[bytes | str, float | None]:
    """Return the first line of an agent, and after how many seconds; or why there is none."""
    transport = ProcessTransport(command, cwd=cwd, env=env, inherit_env=False, limit=LONGEST_LINE, grace=LAST_STEPS)
    first = _FirstLine()
    try:
        await transport.start(first)
    except ConnectionClosed as error:
        return str(error), None
    begun = time.monotonic()
    try:
        transport.send([INITIALIZE])
        found = await asyncio.wait_for(first.found, within)
        seconds = time.monotonic() - begun
    except TimeoutError:
        return f"has not answered within {within:g} seconds", None
    finally:
        await transport.close()
    if isinstance(found, End):
        lines = "\n".join(last_lines(found.stderr, 15))
        said = f", and wrote:\n{lines}" if lines else ""
        return f"ended with exit code {found.exit_code} before it answered{said}", None
    if isinstance(found, Oversized):
        return "has written a line that is too long", None
    return found, seconds


def _methods(line: bytes) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Return the login methods in an answer, or the problem: a rule and a message."""
    try:
        message: Any = json.loads(line)
    except ValueError:
        return (), ("first line", f"its first line of standard output must be JSON, got {line[:200]!r}")
    if not isinstance(message, dict):
        return (), ("first line", f"its first line of standard output must be a JSON object, got {line[:200]!r}")
    answer = body_of(message)
    if not isinstance(answer.get("result"), dict):
        return (), ("initialize", f"answered with an error: {json.dumps(answer.get('error', answer))[:300]}")
    offered = [body_of(it) for it in items_of(answer["result"].get("authMethods")) if isinstance(it, dict)]
    typed = [(str(method.get("id")), type_of(method)) for method in offered]
    methods = tuple(f"{name} ({kind})" for name, kind in typed)
    if not any(kind in ("agent", "terminal") for _, kind in typed):
        needs = "must offer a login method of the type agent or terminal"
        return methods, ("login", f"{needs}, got {', '.join(methods) or 'none'}")
    return methods, None


def type_of(method: Mapping[str, Any]) -> str:
    """The type of a login method, as the registry's check reads it."""
    if isinstance(method.get("type"), str):
        return str(method["type"])
    return "terminal" if "terminal-auth" in body_of(method.get("_meta")) else "agent"
