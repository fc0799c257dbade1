"""A URL that an agent asks its user to visit, and what about it should make them look twice. Pure.

It is taken apart and never fetched. The whole of it is shown, in the characters that a browser would send, so that two
letters which look the same do not stand for each other.
"""

from __future__ import annotations

import ipaddress
import unicodedata
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from accord.errors import RequestError


@dataclass(frozen=True, slots=True)
class Link:
    """A URL, its domain, and warnings about it."""

    url: str
    domain: str
    """Where it really leads, in ASCII: as punycode where it has other letters."""
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> Link:
        """Raises RequestError for what no browser should be sent to.

        >>> link = Link.of("https://xn--mnchen-3ya.example/login")
        >>> link.domain, link.warnings
        ('xn--mnchen-3ya.example', ('the domain has letters of other alphabets: it reads “münchen.example”',))
        """
        parts = _taken_apart(url)
        domain = _in_ascii(parts.hostname or "")
        return cls(url, domain, tuple(_warnings(parts, domain)))

    @property
    def marked(self) -> tuple[str, str, str]:
        """The whole URL in three parts: before the domain, the domain as it is written, and behind it."""
        host = urlsplit(self.url).hostname or ""
        start = self.url.lower().find(host, self.url.index("//") + 2 + self._behind_user())
        return self.url[:start], self.url[start : start + len(host)], self.url[start + len(host) :]

    def _behind_user(self) -> int:
        return urlsplit(self.url).netloc.rfind("@") + 1


def _taken_apart(url: str) -> SplitResult:
    if any(character.isspace() or unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in url):
        raise RequestError.invalid_params("the URL has characters that cannot be shown", url=ascii(url)[:300])
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise RequestError.invalid_params("not a URL", url=url[:300]) from error
    if parts.scheme not in ("https", "http") or not parts.hostname or "\\" in url:
        raise RequestError.invalid_params("not a web address (https or http)", url=url[:300])
    return parts


def _in_ascii(host: str) -> str:
    if host.isascii():
        return host
    try:
        return ".".join(_label_in_ascii(label) for label in unicodedata.normalize("NFKC", host).lower().split("."))
    except UnicodeError as error:
        raise RequestError.invalid_params("the URL's domain cannot be one", domain=host[:300]) from error


def _label_in_ascii(label: str) -> str:
    return label if label.isascii() else "xn--" + label.encode("punycode").decode()


def _warnings(parts: SplitResult, domain: str) -> list[str]:
    found: list[str] = []
    if "xn--" in domain:
        found.append(f"the domain has letters of other alphabets: it reads “{_readable(domain)}”")
    if parts.username is not None or parts.password is not None:
        found.append(f"what stands before the @ is not the domain: it leads to {domain}")
    if _is_address(domain):
        found.append("it leads to a bare address, not to a named site")
    if parts.scheme == "http" and not is_here(domain):
        found.append("it is not encrypted (http)")
    return found


def _readable(domain: str) -> str:
    labels: list[str] = []
    for label in domain.split("."):
        try:
            labels.append(label[4:].encode().decode("punycode") if label.startswith("xn--") else label)
        except UnicodeError:
            labels.append(label)
    return ".".join(labels)


def _is_address(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.replace(".", "").isdecimal() or host.startswith("0x")


def is_here(host: str) -> bool:
    """Whether this is the machine that we run on."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
