"""Makes the metadata that depends on where the repository is: links of the README, and the project's URLs.

The README links to its neighbours (`docs/quickstart.md`), which is right in a checkout. In a wheel there are no
neighbours, so its copy of the README has absolute links. The repository's address is not known to the source. It is, in
this order: the variable `ACCORD_REPOSITORY`; for a build from an unpacked sdist, the address in its PKG-INFO; the
address of `origin` in a checkout. Without any of them the links become plain text, so that none leads nowhere.
"""

from __future__ import annotations

import os
import re
import subprocess
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PROTOCOL = "https://agentclientprotocol.com"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")
REMOTE = re.compile(r"(?:git@|ssh://git@)([^:/]+)[:/](.+)")


class CustomMetadataHook(MetadataHookInterface):
    """Fills in `readme` and `urls`, which pyproject.toml declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        repository = repository_of(root)
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_absolute_links(text, repository)}
        metadata["urls"] = urls(repository)


def urls(repository: str | None) -> dict[str, str]:
    """The project's URLs."""
    if repository is None:
        return {"Protocol": PROTOCOL}
    return {
        "Repository": repository,
        "Documentation": f"{repository}/blob/HEAD/docs/README.md",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Protocol": PROTOCOL,
    }


def with_absolute_links(text: str, repository: str | None) -> str:
    """A page whose links work anywhere."""

    def absolute(found: re.Match[str]) -> str:
        image, label, target = found.groups()
        if repository is None:
            return label
        kind = "raw" if image else "blob"
        return f"{image}[{label}]({repository}/{kind}/HEAD/{target})"

    return LINK.sub(absolute, text)


def repository_of(root: Path) -> str | None:
    """The repository's address for browsers; None if it is not known."""
    if given := os.environ.get("ACCORD_REPOSITORY"):
        return given.rstrip("/")
    if (info := root / "PKG-INFO").is_file():
        told = HeaderParser().parsestr(info.read_text(encoding="utf-8")).get_all("Project-URL", [])
        return next((url for name, _, url in (line.partition(", ") for line in told) if name == "Repository"), None)
    return browsable(_origin(root)) if (root / ".git").exists() else None


def browsable(remote: str) -> str | None:
    """The address for browsers of a remote; None for one that browsers cannot open, such as a folder.

    Credentials are left out: an address in a wheel is public.
    """
    if found := REMOTE.fullmatch(remote):
        remote = f"https://{found[1]}/{found[2]}"
    if not remote.startswith("https://"):
        return None
    host, _, path = remote.removeprefix("https://").partition("/")
    return f"https://{host.rpartition('@')[2]}/{path.rstrip('/').removesuffix('.git')}"


def _origin(root: Path) -> str:
    command = ["git", "-C", str(root), "config", "--get", "remote.origin.url"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""
