"""Fetches over HTTPS: the index, and archives with their progress.

This uses urllib of the standard library and not our own HTTP client: a download needs proxies, certificates of the
system and redirects, which urllib has, and none of the streams that our client is made for. It also keeps `accord
agents` working without the extra `http`. Calls block; a caller in an event loop uses a thread.

HTTPS only: plain HTTP is allowed to this machine, where a test or a mirror may listen. A redirect may go to HTTPS, and
to plain HTTP only from plain HTTP on this machine to this machine. Credentials in an address are sent to its host, and
never with a redirect.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from accord.redaction import mask_urls
from accord_tools.registry import Progress, RegistryError

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
    """Write what is at this address to a file, and return its SHA-256.

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
    """Why this address does not answer; None if it does. HEAD is tried first, then GET."""
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
    """Why a request failed, in a few words."""
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
        # Unredirected: a redirect, even to the same host, goes without it.
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
    try:
        return _opener().open(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        error.close()
        raise _NotFetched(f"{mask_urls(url)} answered {error.code} {error.reason}", error.code) from None
    except FAILURES as error:
        raise _NotFetched(f"cannot fetch {mask_urls(url)}: {reason(error)}") from None


def _opener() -> urllib.request.OpenerDirector:
    """What opens addresses: HTTP and HTTPS by the system's proxies and certificates, and nothing else."""
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
