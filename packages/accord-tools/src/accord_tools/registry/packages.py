"""Packages as entries name them, `@scope/name@1.2.3` and `name==1.2.3`: their names and versions. PURE."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Kind = Literal["binary", "npx", "uvx"]

KINDS: tuple[Kind, ...] = ("binary", "npx", "uvx")

# A version, a range or a tag. npm would read other texts as an alias (npm:), a folder, a file or an address.
_NPM_VERSION = r"(?!(?i:.*\.(?:tgz|tar|tar\.gz))$)[A-Za-z0-9^~<>=*][^@\s/\\:]*"
_NPM = re.compile(
    r"(?P<name>(?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*)"
    rf"(?:@(?P<version>{_NPM_VERSION}))?"
)
_PYPI = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?P<extras>\[[A-Za-z0-9._, -]+\])?"
    r"(?:(?:==|@)\s*(?P<version>[^@=\s/\\:]+))?"
)


class PackageName(NamedTuple):
    """A package and the version that is asked for; None for the newest."""

    name: str
    version: str | None = None
    extras: str = ""

    @property
    def short(self) -> str:
        """The name without its scope, which is the usual name of its program."""
        return self.name.rpartition("/")[2]


def read_package(kind: str, written: str) -> PackageName | None:
    """The package that an entry names; None for a form that npm or PyPI does not have.

    >>> read_package("npx", "@google/gemini-cli@0.56.0")
    PackageName(name='@google/gemini-cli', version='0.56.0', extras='')
    >>> read_package("uvx", "fast-agent-acp==0.10.1").version
    '0.10.1'
    """
    found = (_NPM if kind == "npx" else _PYPI).fullmatch(written.strip())
    if found is None or found["name"].startswith("-") or (found["version"] or "").startswith("-"):
        return None
    return PackageName(found["name"], found["version"], (found["extras"] or "") if kind == "uvx" else "")


def in_words(kind: Kind) -> str:
    """Where agents of this kind come from, for people."""
    return {"binary": "a download", "npx": "npm", "uvx": "PyPI"}[kind]
