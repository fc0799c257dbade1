"""`IndexSource`: where the index is: an address, a file or a folder, as the variable ACCORD_REGISTRY says.

    ACCORD_REGISTRY=https://mirror.example/registry.json            a mirror instead of the public registry
    ACCORD_REGISTRY=/srv/agents                                     a folder with registry.json, or with ID/agent.json
    ACCORD_REGISTRY="default company=https://agents.example/r.json" two; ids of the second are company/ID
    ACCORD_REGISTRY=off                                             no registry

A folder is what a company keeps in a repository, or what the author of an agent is about to publish.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from accord import ConfigurationError
from accord.file_uris import path_of_uri
from accord.masking import mask_urls

VARIABLE = "ACCORD_REGISTRY"
PUBLIC = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"
OFF = "off"

_PREFIX = re.compile(r"(?P<prefix>[a-z][a-z0-9-]*)=(?P<where>.+)")


@dataclass(frozen=True)
class IndexSource:
    """One registry: its address or path, and what stands before its ids."""

    where: str
    prefix: str = ""

    @property
    def is_remote(self) -> bool:
        """Whether the index is fetched, and not a file of this machine."""
        return self.where.startswith(("https://", "http://"))

    @property
    def shown(self) -> str:
        """The address or the path, for people."""
        return mask_urls(self.where)

    @property
    def path(self) -> Path:
        """The file or the folder of a registry on this machine."""
        return Path(self.where).expanduser().absolute()

    @property
    def cache_name(self) -> str:
        """The name of the file that keeps a fetched index."""
        return f"{hashlib.sha256(self.where.encode()).hexdigest()[:24]}.index"

    def archive(self, named: str) -> str:
        """The address of an archive that this index names; a relative one is beside the index."""
        if urlsplit(named).scheme in ("https", "http"):
            return named
        if self.is_remote:
            return urljoin(self.where, named)
        base = self.path if self.path.is_dir() else self.path.parent
        return str(base / (path_of_uri(named) or named))


def index_sources() -> list[IndexSource]:
    """The registries in the order in which they are asked. Raises ConfigurationError for an invalid setting."""
    given = os.environ.get(VARIABLE, "").split()
    if not given:
        return [IndexSource(PUBLIC)]
    if given == [OFF]:
        return []
    found = [_source(word) for word in given]
    prefixes = [source.prefix for source in found]
    if len(set(prefixes)) < len(prefixes):
        raise ConfigurationError(
            f"{VARIABLE} must give each registry but one a name, as in company=https://agents.example/registry.json; "
            f"got {os.environ[VARIABLE]!r}"
        )
    return found


def _source(word: str) -> IndexSource:
    named = _PREFIX.fullmatch(word)
    prefix, where = (named["prefix"], named["where"]) if named else ("", word)
    if where.startswith("http://") and urlsplit(where).hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ConfigurationError(f"{VARIABLE} must have addresses that begin with https://, got {where!r}")
    return IndexSource(PUBLIC if where == "default" else str(path_of_uri(where) or where), prefix)
