"""A URL that an agent asks the user to visit, with warnings about what is suspicious. Pure.

The URL is parsed and never fetched. All of it is displayed, in the characters that a browser would send, so that no
letter can be mistaken for another that looks the same.

Letters of different alphabets may look the same: the Cyrillic U+0430 and the Latin a, for one. So a label of an
internationalised domain is displayed in its own letters only if they belong to one alphabet, are plain lower-case
letters, and at least one of them does not look like a Latin letter. Browsers have longer tables. In doubtful cases the
ASCII form is displayed.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit

from accord.errors import RequestError

LONGEST_URL = 8_192
"""Characters that a URL may have: few browsers and servers accept more."""


@dataclass(frozen=True, slots=True)
class UrlToVisit:
    """A URL to display to the user, with its domain and warnings."""

    url: str
    domain: str
    """Where the URL really leads, in ASCII (punycode)."""
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> UrlToVisit:
        """Parse a URL; raises RequestError for one that no browser should open.

        >>> link = UrlToVisit.of("https://xn--mnchen-3ya.example/login")
        >>> link.domain, link.warnings
        ('xn--mnchen-3ya.example', ('the domain has letters of other alphabets: it reads “münchen.example”',))
        """
        parts = _parsed(url)
        domain = _in_ascii(parts.hostname or "")
        return cls(url, domain, tuple(_warnings(parts, domain)))

    @property
    def marked(self) -> tuple[str, str, str]:
        """Return the whole URL in three parts: before the domain, the domain, and after it.

        The domain is in its own letters if none of them can be mistaken for another, and in ASCII otherwise. The rest
        is in ASCII, as browsers send it.
        """
        start = self.url.index("//") + 2 + urlsplit(self.url).netloc.rfind("@") + 1
        written = _HOST.match(self.url, start)
        start, end = written.span("host") if written else (start, start)
        host = self.url[start:end]
        shown = host if host.isascii() or readable(self.domain) == host.lower() else self.domain
        return _as_sent(self.url[:start]), shown, _as_sent(self.url[end:])


_HOST = re.compile(r"\[?(?P<host>(?<=\[)[^]]*|[^:/?#\[]*)")
_ASCII = "".join(map(chr, range(0x21, 0x7F)))


def _as_sent(part: str) -> str:
    return part if part.isascii() else quote(part, safe=_ASCII)


def _parsed(url: str) -> SplitResult:
    if len(url) > LONGEST_URL:
        problem = f"the URL has {len(url):,} characters, at most {LONGEST_URL:,} are allowed"
        raise RequestError.invalid_params(problem, url=ascii(url[:100]))
    if any(
        character.isspace() or unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") for character in url
    ):
        raise RequestError.invalid_params("the URL contains characters that cannot be displayed", url=ascii(url)[:300])
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise RequestError.invalid_params("malformed URL", url=url[:300]) from error
    if parts.scheme not in ("https", "http") or not parts.hostname or "\\" in url:
        raise RequestError.invalid_params("the URL must be an https or http address with a domain", url=url[:300])
    return parts


def _in_ascii(host: str) -> str:
    try:
        return in_ascii(host)
    except UnicodeError as error:
        raise RequestError.invalid_params("invalid domain name in the URL", domain=ascii(host[:300])) from error


def _warnings(parts: SplitResult, domain: str) -> list[str]:
    found: list[str] = []
    if "xn--" in domain:
        letters = readable(domain)
        reads = _MISTAKABLE if letters is None else f": it reads “{letters}”"
        found.append(f"the domain has letters of other alphabets{reads}")
    if parts.username is not None or parts.password is not None:
        found.append(f"the part before the @ is not the domain: it leads to {domain}")
    if _is_address(domain):
        found.append("it leads to a bare address, not to a named site")
    if parts.scheme == "http" and not is_here(domain):
        found.append("it is not encrypted (http)")
    return found


_MISTAKABLE = " that may be taken for those of another domain"


def _is_address(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.replace(".", "").isdecimal() or host.startswith("0x")


def is_here(host: str) -> bool:
    """Whether the host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# ruff: noqa: RUF001


LONGEST_LABEL, LONGEST_DOMAIN = 63, 253
"""Characters of a label and of a domain, in ASCII (RFC 1035, 2.3.4)."""

_ALPHABETS = (
    frozenset({"LATIN"}),
    frozenset({"CYRILLIC"}),
    frozenset({"GREEK"}),
    frozenset({"CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"HANGUL"}),
)
_LATIN = frozenset("abcdefghijklmnopqrstuvwxyzßæœøðþł")
_LOOK_LATIN = frozenset("асԁеһіјӏорԛѕԝхуъьбгзптмнквѵѡғүұѐёїўќѓ" + "αοινρυκτχωγηςσεβάόίύώήέ" + "一ニハ工口力夕卜〇ー")
_LOOK_LIKE_MARKS = frozenset("ノソン丶〳〵゠・ゝヽ")
_HYPHEN_AND_DIGITS = frozenset("-0123456789")


def in_ascii(host: str) -> str:
    """Return the host in ASCII, as in DNS; raises UnicodeError if it is invalid.

    >>> in_ascii("München.example")
    'xn--mnchen-3ya.example'
    """
    labels = unicodedata.normalize("NFKC", host[: LONGEST_DOMAIN + 1]).lower().split(".")
    domain = ".".join(_label_in_ascii(label) for label in labels)
    if len(host) > LONGEST_DOMAIN or len(domain) > LONGEST_DOMAIN:
        raise UnicodeError(f"domain is too long: at most {LONGEST_DOMAIN} characters are allowed")
    if any(len(label) > LONGEST_LABEL for label in domain.split(".")):
        raise UnicodeError(f"part of a domain is too long: at most {LONGEST_LABEL} characters are allowed")
    return domain


def readable(domain: str) -> str | None:
    """Return the domain in its own letters; None if one of its labels could be mistaken for another.

    >>> readable("xn--mnchen-3ya.example"), readable("xn--pple-43d.com")
    ('münchen.example', None)
    """
    labels = [_own_letters(label) for label in domain.split(".")]
    return None if None in labels else ".".join(label or "" for label in labels)


def _label_in_ascii(label: str) -> str:
    return label if label.isascii() else "xn--" + label.encode("punycode").decode()


def _own_letters(label: str) -> str | None:
    if not label.startswith("xn--"):
        return label
    try:
        letters = label[4:].encode().decode("punycode")
    except UnicodeError:
        return None
    return letters if _label_in_ascii(letters) == label and _is_unmistakable(letters) else None


def _is_unmistakable(label: str) -> bool:
    letters = set(label) - _HYPHEN_AND_DIGITS
    if unicodedata.normalize("NFKC", label) != label or letters & _LOOK_LIKE_MARKS:
        return False
    if not all(unicodedata.category(letter) in ("Ll", "Lo") for letter in letters):
        return False
    alphabets = {unicodedata.name(letter, "").split(" ")[0] for letter in letters}
    if not any(alphabets <= allowed for allowed in _ALPHABETS):
        return False
    if alphabets == {"LATIN"}:
        return all(unicodedata.normalize("NFD", letter)[0] in _LATIN for letter in letters)
    return not letters <= _LOOK_LATIN
