"""Fetches over HTTPS: the index, and archives with their progress.

This uses urllib of the standard library and not our own HTTP client: a download needs proxies, certificates of the
system and redirects, which urllib has, and none of the streams that our client is made for. It also keeps `accord
agents` working without the extra `http`. Calls block; a caller in an event loop uses a thread.

HTTPS only: plain HTTP is allowed to this machine, where a test or a mirror may listen. A redirect may go to HTTPS, and
to plain HTTP only from plain HTTP on this machine to this machine. Credentials in an address are sent to its host, and
never with a redirect.

Checksums for installations: those of the first installation here, and those of a team's lock file.

An installer first determines what would be installed, without running any of it: npm and uv write a lock file for that,
an archive is downloaded. Then it calls `InstallRequirements.judge`. So a package with unexpected content never runs a
script.

The registry is not signed. Its index comes over TLS, and a checksum in it protects only against an archive that was
changed on its way or at its host. So installed content is remembered: the same version with other content is refused. A
team goes further with `agents.lock`, which is in the project's repository:

    {"version": 1, "agents": [
        {"id": "gemini", "version": "0.56.0", "kind": "npx", "integrity": {"any": "sha512-..."}}]}

The integrity is by platform, because archives and many packages of PyPI differ between platforms. A package of npm is
the same on `any`.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from accord.paths import replace_file
from accord.project.project import Project
from accord.redaction import mask_urls
from accord_tools.registry import InstallError, Progress, RegistryError
from accord_tools.registry.entry import Kind
from accord_tools.state_file import StateFile

CHUNK = 256 * 1024
PATIENCE = 30.0
"""Seconds without a byte after which a connection is closed."""
LARGEST_INDEX = 32 * 1024 * 1024
LARGEST_ARCHIVE = 2 * 1024 * 1024 * 1024


@dataclass(frozen=True)
class Fetched:
    """The answer to a request for a small document; `body` is None if the document has not changed."""

    body: bytes | None
    etag: str | None
    modified: str | None


def fetch(url: str, etag: str | None = None, modified: str | None = None) -> Fetched:
    """Fetch a document, unless it is still the one with this ETag or date. Raises RegistryError."""
    known = {"If-None-Match": etag, "If-Modified-Since": modified}
    try:
        with _opened(url, {name: value for name, value in known.items() if value}) as response:
            body = _read(url, response, LARGEST_INDEX + 1)
            headers = response.headers
    except _NotFetched as error:
        if error.status == 304:
            return Fetched(None, etag, modified)
        raise
    if len(body) > LARGEST_INDEX:
        raise RegistryError(f"{mask_urls(url)} is larger than {LARGEST_INDEX:,} bytes")
    return Fetched(body, headers.get("ETag"), headers.get("Last-Modified"))


def download(url: str, file: IO[bytes], progress: Progress, *, limit: int = LARGEST_ARCHIVE) -> str:
    """Download this address to a file, and return its SHA-256.

    Raises RegistryError if it cannot be fetched, and OSError if the file cannot be written.
    """
    digest, done = hashlib.sha256(), 0
    try:
        response = _opened(url, {})
    except _NotFetched as error:
        gone = "; the entry may be newer or older than what its publisher offers" if error.status in (404, 410) else ""
        raise RegistryError(f"{error}{gone}") from None
    with response:
        total = _length(response.headers)
        while chunk := _read(url, response, CHUNK):
            done += len(chunk)
            if done > limit:
                raise RegistryError(f"{mask_urls(url)} is larger than {limit:,} bytes")
            digest.update(chunk)
            file.write(chunk)
            progress.bytes(done, total)
    if total is not None and done != total:
        raise RegistryError(f"cannot fetch {mask_urls(url)}: the connection ended after {done:,} of {total:,} bytes")
    return digest.hexdigest()


def address_problem(url: str) -> str | None:
    """Return why this address does not answer; None if it does. HEAD is tried first, then GET."""
    problem: str | None = None
    for method in ("HEAD", "GET"):
        try:
            with _opened(url, {}, method):
                return None
        except RegistryError as error:
            problem = str(error)
    return problem


class _NotFetched(RegistryError):
    """An address that could not be fetched; `status` is the HTTP status of its answer, if there was one."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


def _read(url: str, response: Any, count: int) -> bytes:
    try:
        chunk: bytes = response.read(count)
    except FAILURES as error:
        raise _NotFetched(f"cannot fetch {mask_urls(url)}: {reason(error)}") from None
    return chunk


FAILURES = (OSError, http.client.HTTPException, ValueError)


def reason(error: BaseException) -> str:
    """Describe why a request failed, in a few words."""
    inner = getattr(error, "reason", None)
    if isinstance(inner, BaseException):
        error = inner
    if isinstance(error, socket.gaierror):
        return "its host name cannot be looked up"
    if isinstance(error, TimeoutError):
        return f"no answer within {PATIENCE:g} seconds"
    return str(getattr(error, "strerror", None) or inner or error) or error.__class__.__name__


def _length(headers: Message) -> int | None:
    given = headers.get("Content-Length", "")
    return int(given) if given.isdecimal() else None


def _opened(url: str, headers: Mapping[str, str], method: str = "GET") -> Any:
    _check_address(url)
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")
    plain = urlunsplit(parts._replace(netloc=place[2], fragment=""))
    request = urllib.request.Request(plain, headers={"User-Agent": "accord", **headers}, method=method)
    if place[0]:
        pair = unquote(place[0]) if ":" in place[0] else f"{unquote(place[0])}:"
        # Unredirected: a redirect, even to the same host, is sent without it.
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
    try:
        return _opener().open(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        error.close()
        raise _NotFetched(f"{mask_urls(url)} answered {error.code} {error.reason}", error.code) from None
    except FAILURES as error:
        raise _NotFetched(f"cannot fetch {mask_urls(url)}: {reason(error)}") from None


def _opener() -> urllib.request.OpenerDirector:
    """Return the opener of addresses: only HTTP and HTTPS, with the system's proxies and certificates."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _SafeRedirects(),
    ):
        opener.add_handler(handler)
    return opener


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        is_local = req.type == "http" and newurl.startswith("http://") and _is_here(newurl)
        if not newurl.startswith("https://") and not is_local:
            raise ValueError(f"it redirects to {mask_urls(newurl)}; a redirect must go to https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_address(url: str) -> None:
    """Raise RegistryError unless this is an address that may be fetched: HTTPS, or HTTP on this machine."""
    try:
        is_fine = url.startswith("https://") and bool(urlsplit(url).hostname)
        is_fine = is_fine or (url.startswith("http://") and _is_here(url))
    except ValueError:
        is_fine = False
    if not is_fine:
        raise RegistryError(f"an address must begin with https://, got {mask_urls(url)}")


def _is_here(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Built:
    """The program that an installer made, and the digest of its content."""

    argv: list[str]
    """The program, and the arguments that it needs before those of the entry."""
    integrity: str
    """The digest of the content, such as `sha512-...` of npm; empty if there is none."""
    version: str
    """The version that was installed."""


SHOWN = 5
"""Packages without a checksum that an error names."""


@dataclass(frozen=True)
class InstallRequirements:
    """The requirements of the user, a team's lock file and earlier installations for an installation."""

    judge: Callable[[str, str], None] = lambda _version, _integrity: None
    """Takes the version and the integrity; raises RegistryError if they are not the expected ones."""
    require_hash: bool = False
    """Whether every installed package must have a checksum in its index."""


def refuse_unhashed(packages: Sequence[str], place: str) -> None:
    """Raise InstallError if there are packages without a checksum; `place` is their source."""
    if packages:
        named = ", ".join(sorted(packages)[:SHOWN])
        more = f" and {len(packages) - SHOWN} more" if len(packages) > SHOWN else ""
        raise InstallError(f"{place} has no checksum of {named}{more}, and one is required; nothing was installed")


ANY = "any"
"""Represents every platform, for content that is the same on all of them."""
LOCK_FILE = Path(".accord", "agents.lock")
LARGEST_LOCK = 1_000_000
"""Bytes of a lock file."""


class LockedAgent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent in a lock file: its version, and its content's integrity, by platform."""

    id: str
    version: str
    kind: Kind
    integrity: dict[str, str] = {}


class _LockDocument(msgspec.Struct):
    version: int = 1
    agents: list[LockedAgent] = []


class _Remembered(msgspec.Struct):
    version: int = 1
    digests: dict[str, str] = {}


_FILE = StateFile("agent-checksums.json", _Remembered)


def check_remembered(agent_id: str, version: str, platform: str, origin: str, integrity: str) -> None:
    """Raise RegistryError if this version was installed here before with other content."""
    if integrity and (seen := _FILE.read().digests.get(_key(agent_id, version, platform, origin))) not in (
        None,
        integrity,
    ):
        raise RegistryError(
            f"{agent_id} {version} has changed since it was first installed here: its content was {seen} and is "
            f"{integrity}. A version should never change. Ask its publisher, and if the change is right, run: "
            f"accord agents forget {agent_id}"
        )


def remember(agent_id: str, version: str, platform: str, origin: str, integrity: str) -> None:
    """Remember the content of a version that was installed."""
    if not integrity:
        return
    with suppress(OSError), _FILE.changed() as remembered:
        remembered.digests[_key(agent_id, version, platform, origin)] = integrity


def forget(agent_id: str) -> int:
    """Forget the content of all versions of an agent; returns how many were remembered."""
    with _FILE.changed() as remembered:
        before = len(remembered.digests)
        remembered.digests = {key: it for key, it in remembered.digests.items() if key.split(" ")[0] != agent_id}
        return before - len(remembered.digests)


def read_lock(path: Path) -> dict[str, LockedAgent]:
    """Return the agents of a lock file, by id. Raises RegistryError if it is missing or invalid."""
    try:
        document = msgspec.json.decode(Project([path.parent.parent]).read(path, LARGEST_LOCK), type=_LockDocument)
    except FileNotFoundError:
        raise RegistryError(f"{path} does not exist; write it with: accord agents lock") from None
    except (OSError, ValueError) as error:
        raise RegistryError(f"cannot read {path}: {error}") from None
    if document.version != 1:
        raise RegistryError(f"{path} has the version {document.version}, and this Accord knows 1; update Accord")
    return {agent.id: agent for agent in document.agents}


def write_lock(path: Path, agents: list[LockedAgent]) -> None:
    """Write a lock file, sorted by id, so that the same agents give the same file."""
    document = _LockDocument(agents=sorted(agents, key=lambda agent: agent.id))
    text = msgspec.json.format(msgspec.json.encode(document, order="sorted")) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
        path.chmod(0o644)  # it belongs to a team
    except OSError as error:
        raise RegistryError(f"cannot write {path}: {error.strerror}") from None


def check_locked(agent: LockedAgent, platform: str, integrity: str) -> None:
    """Raise RegistryError unless this content matches the lock file."""
    wanted = agent.integrity.get(ANY) or agent.integrity.get(platform)
    if wanted is None:
        raise RegistryError(
            f"the lock file has no integrity of {agent.id} for {platform}; on such a machine, run: accord agents lock"
        )
    if wanted != integrity:
        raise RegistryError(
            f"{agent.id} {agent.version} is not what the lock file has: it must be {wanted}, and is {integrity}"
        )


def _key(agent_id: str, version: str, platform: str, origin: str) -> str:
    return f"{agent_id} {version} {platform} {origin}"
