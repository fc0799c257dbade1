"""`RegistryEntry`: an agent's description in the index, read leniently, with its packages and versions. PURE.

The published index has entries that break the registry's own rules, and later versions of it will have more. The rule
here: every usable part is used. An unknown key is ignored, a distribution that cannot be understood is left out with a
note, and only an entry without an id or without any known distribution is not usable. It stays in the list, with the
reason. `entry_rules` is the strict reading, for authors.

Published versions are not always semantic versions: real ones are `1.50.1`, `2026.10.01` and `3000.5.20`. So they are
compared as numbers. An unknown form must not hide an agent: what is not a number is compared after the numbers, as
text.

Chooses the distribution of an agent for a platform, and the command that the registry means by it.

Platforms have the registry's names, such as `linux-x86_64`. We install once and then start the program itself, so an
entry's commands with npx and uvx are not what we run. An archive needs no other program, so it is preferred; then npm,
then PyPI.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from platform import uname
from typing import Any, Literal, NamedTuple, cast

from accord.trace.meaning import body_of, items_of
from accord_tools.registry import InstallError

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
    """A package and the requested version; None for the newest."""

    name: str
    version: str | None = None
    extras: str = ""

    @property
    def short(self) -> str:
        """The name without its scope, which is the usual name of its program."""
        return self.name.rpartition("/")[2]


def read_package(kind: str, written: str) -> PackageName | None:
    """Return the package that an entry names; None for a form that npm or PyPI does not have.

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
    """Describe where agents of this kind come from."""
    return {"binary": "a download", "npx": "npm", "uvx": "PyPI"}[kind]


_NUMBER = re.compile(r"\d+")
_UNSAFE = re.compile(r"[^0-9A-Za-z.+_-]")


def order_of(version: str) -> tuple[tuple[int, ...], bool, tuple[tuple[int, str], ...]]:
    """Return the key by which versions are sorted; a preview precedes its release.

    >>> sorted(["0.10.0", "0.9.1", "0.10.0-preview.2"], key=order_of)
    ['0.9.1', '0.10.0-preview.2', '0.10.0']
    """
    release, dash, preview = version.partition("-")
    numbers = [int(it) for it in _NUMBER.findall(release)[:8] if len(it) < 20]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    parts = tuple((int(it), "") if it.isdecimal() and len(it) < 20 else (-1, it) for it in preview.split("."))
    return tuple(numbers), not dash, parts


def is_newer(version: str, than: str) -> bool:
    """Whether one version is newer than another."""
    return order_of(version) > order_of(than)


def folder_part(version: str) -> str:
    """Return a version as a part of a folder's name, whatever characters it contains.

    >>> folder_part("../../1.0")
    '_.._.._1.0'
    """
    safe = _UNSAFE.sub("_", version)[:80]
    return safe if safe[:1].isalnum() else f"_{safe}"


ID = re.compile(r"[a-z][a-z0-9-]*")
LONGEST_ID = 100


@dataclass(frozen=True)
class PackageSource:
    """A package of npm or PyPI that has the agent."""

    package: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cmd: str | None = None
    """The package's program, if it is not the package's default."""


@dataclass(frozen=True)
class BinarySource:
    """An archive, or a bare program, for one platform."""

    archive: str
    cmd: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    sha256: str | None = None


@dataclass(frozen=True)
class RegistryEntry:
    """An agent as the index describes it."""

    id: str
    name: str
    version: str
    description: str = ""
    binary: Mapping[str, BinarySource] = field(default_factory=dict[str, BinarySource])
    npx: PackageSource | None = None
    uvx: PackageSource | None = None
    authors: tuple[str, ...] = ()
    license: str | None = None
    license_url: str | None = None
    repository: str | None = None
    website: str | None = None
    icon: str | None = None
    notes: tuple[str, ...] = ()
    """The parts of the entry that could not be understood, for people."""
    preview: RegistryEntry | None = None
    """The preview of the agent, in registries that have one."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of distribution that the agent has, on any platform."""
        has = {"binary": bool(self.binary), "npx": self.npx is not None, "uvx": self.uvx is not None}
        return tuple(cast("Kind", kind) for kind, is_there in has.items() if is_there)

    def named(self, prefix: str) -> RegistryEntry:
        """Return the same entry with an id that names its registry."""
        preview = None if self.preview is None else self.preview.named(prefix)
        return replace(self, id=f"{prefix}/{self.id}", preview=preview)


def read_entry(given: object) -> RegistryEntry | str:
    """The entry that an item of the index describes; a text with the reason if it has no usable id."""
    if not isinstance(given, dict):
        return f"an entry is {type(given).__name__}, not an object"
    raw = cast("dict[str, Any]", given)
    name = raw.get("id")
    if not isinstance(name, str) or not ID.fullmatch(name) or len(name) > LONGEST_ID:
        return f"an entry has the id {str(name)[:LONGEST_ID]!r}; an id has lower-case letters, digits and -"
    entry = _distributed(name, _text(raw, "version") or "0", raw, raw.get("distribution"))
    preview = raw.get("preview")
    if not isinstance(preview, dict):
        return entry
    ahead = cast("dict[str, Any]", preview)
    return replace(entry, preview=_distributed(name, _text(ahead, "version") or "0", raw, ahead.get("distribution")))


def _distributed(name: str, version: str, raw: dict[str, Any], distribution: object) -> RegistryEntry:
    kinds = body_of(distribution)
    notes: list[str] = [] if kinds else ["it has no distribution"]
    notes += [f"unknown kind of distribution {kind!r}" for kind in kinds if kind not in ("binary", "npx", "uvx")]
    return RegistryEntry(
        id=name,
        name=_text(raw, "name") or name,
        version=version,
        description=_text(raw, "description") or "",
        binary=_binaries(kinds.get("binary"), notes),
        npx=_package("npx", kinds.get("npx"), notes),
        uvx=_package("uvx", kinds.get("uvx"), notes),
        authors=_authors(raw.get("authors")),
        license=_text(raw, "license"),
        license_url=_text(raw, "license_url"),
        repository=_text(raw, "repository"),
        website=_text(raw, "website"),
        icon=_text(raw, "icon"),
        notes=tuple(notes),
    )


def _authors(given: object) -> tuple[str, ...]:
    """The names of authors; some entries have objects with a name."""
    found: list[str] = []
    for author in items_of(given):
        name: Any = body_of(author).get("name") if isinstance(author, dict) else author
        found += [name] if isinstance(name, str) else []
    return tuple(found)


def _binaries(given: object, notes: list[str]) -> dict[str, BinarySource]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        notes.append("distribution.binary is not an object")
        return {}
    found: dict[str, BinarySource] = {}
    for platform, target in cast("dict[str, Any]", given).items():
        try:
            found[platform] = _binary(target)
        except ValueError as error:
            notes.append(f"distribution.binary.{platform}: {error}")
    return found


def _binary(given: object) -> BinarySource:
    raw = _object(given)
    digest = _text(raw, "sha256")
    return BinarySource(
        _required(raw, "archive"),
        _required(raw, "cmd"),
        _words(raw),
        _variables(raw),
        digest.lower().removeprefix("sha256:") if digest else None,
    )


def _package(kind: Literal["npx", "uvx"], given: object, notes: list[str]) -> PackageSource | None:
    if given is None:
        return None
    try:
        raw = _object(given)
        return PackageSource(_required(raw, "package"), _words(raw), _variables(raw), _text(raw, "cmd"))
    except ValueError as error:
        notes.append(f"distribution.{kind}: {error}")
        return None


def _object(given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"must be an object, got {type(given).__name__}")  # noqa: TRY004
    return cast("dict[str, Any]", given)


def _text(raw: Mapping[str, Any], key: str) -> str | None:
    value = raw.get(key)
    return value if isinstance(value, str) and value else None


def _required(raw: Mapping[str, Any], key: str) -> str:
    value = _text(raw, key)
    if value is None or "\0" in value:
        raise ValueError(f"{key!r} must be a text that is not empty, got {raw.get(key)!r}")
    return value


def _words(raw: Mapping[str, Any]) -> tuple[str, ...]:
    value = raw.get("args")
    if value is None:
        return ()
    found = tuple(word for word in items_of(value) if isinstance(word, str) and "\0" not in word)
    if not isinstance(value, list) or len(found) < len(items_of(value)):
        raise ValueError(f"'args' must be a list of texts, got {value!r}")
    return found


def _variables(raw: Mapping[str, Any]) -> dict[str, str]:
    value = raw.get("env")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"'env' must be an object, got {value!r}")  # noqa: TRY004
    found: dict[str, str] = {}
    for name, given in cast("dict[str, Any]", value).items():
        if not name or "=" in name or "\0" in f"{name}{given}" or not isinstance(given, str | int | float):
            raise ValueError(f"'env' must have texts by their names, got {name!r}: {given!r}")
        found[name] = given if isinstance(given, str) else str(given).lower()
    return found


SYSTEMS = {"darwin": "darwin", "linux": "linux", "windows": "windows"}
MACHINES = {"arm64": "aarch64", "aarch64": "aarch64", "x86_64": "x86_64", "amd64": "x86_64", "x64": "x86_64"}

PLATFORMS = tuple(f"{system}-{machine}" for system in SYSTEMS.values() for machine in ("aarch64", "x86_64"))
"""Every platform for which the registry has a name."""


class Platform(NamedTuple):
    """An operating system and a processor, in the registry's words."""

    system: str
    machine: str

    @property
    def key(self) -> str:
        """The platform's name in an entry."""
        return f"{self.system}-{self.machine}"

    @property
    def is_windows(self) -> bool:
        """Whether programs end in .exe or .cmd, and paths may have backslashes."""
        return self.system == "windows"

    @classmethod
    def of(cls, key: str) -> Platform:
        """The platform with this name."""
        system, _, machine = key.partition("-")
        return cls(system, machine)


def here() -> Platform:
    """Return the platform of this program; one without a name in the registry keeps its own name."""
    system, machine = uname().system.lower(), uname().machine.lower()
    return Platform(SYSTEMS.get(system, system), MACHINES.get(machine, machine))


INTERPRETERS = frozenset({"node", "python", "python3", "java", "ruby"})
"""Programs of the system that an archive's `cmd` may name."""


@dataclass(frozen=True)
class Distribution:
    """One distribution of an agent."""

    kind: Kind
    source: BinarySource | PackageSource

    @property
    def args(self) -> tuple[str, ...]:
        """The arguments of the agent's program."""
        return self.source.args

    @property
    def env(self) -> Mapping[str, str]:
        """The variables of the agent's process."""
        return self.source.env

    @property
    def origin(self) -> str:
        """The archive's address, or the package."""
        return self.source.archive if isinstance(self.source, BinarySource) else self.source.package

    def command(self, platform: Platform) -> list[str]:
        """Return the command that the entry means, by the registry's page on its format."""
        source = self.source
        if isinstance(source, BinarySource):
            return [program_path(source.cmd, platform), *source.args]
        if self.kind == "npx":
            start = ["npx", "-y", source.package] if not source.cmd else ["npx", "-y", "--package", source.package]
        else:
            start = ["uvx", source.package] if not source.cmd else ["uvx", "--from", source.package]
        return [*start, *([source.cmd] if source.cmd else []), *source.args]


def choices(entry: RegistryEntry, platform: Platform) -> list[Distribution]:
    """The distributions that fit this platform, the best first."""
    found: list[Distribution] = []
    if (binary := entry.binary.get(platform.key)) is not None:
        found.append(Distribution("binary", binary))
    if entry.npx is not None:
        found.append(Distribution("npx", entry.npx))
    if entry.uvx is not None:
        found.append(Distribution("uvx", entry.uvx))
    return found


def choose(
    entry: RegistryEntry, platform: Platform, kind: Kind | None = None, tools: Collection[str] = KINDS
) -> Distribution | str:
    """Return the distribution to install; a text with the reason if none fits.

    `kind` requests one; `tools` are the kinds for which this machine has the programs.
    """
    fitting = choices(entry, platform)
    if kind is not None:
        return next((it for it in fitting if it.kind == kind), None) or _without(entry, platform, kind)
    if not fitting:
        return _without(entry, platform, None)
    return next((it for it in fitting if it.kind in tools), fitting[0])


def _without(entry: RegistryEntry, platform: Platform, kind: Kind | None) -> str:
    """Return why an entry has nothing for this platform, or nothing of this kind."""
    if kind is not None and kind not in entry.kinds:
        return f"{entry.id} has no {kind}; it has {', '.join(entry.kinds) or 'nothing that is known here'}"
    if entry.binary:
        known = [it for it in PLATFORMS if it in entry.binary] or sorted(entry.binary)
        return f"{entry.id} has nothing for {platform.key}; it has {', '.join(known)}"
    return f"{entry.id} cannot be installed: {'; '.join(entry.notes) or 'it has no distribution'}"


def program_path(cmd: str, platform: Platform) -> str:
    """Return the program in an archive as a relative path with slashes; the name of a program of the system is not
    changed.

    Raises InstallError for a path that leaves the archive. A backslash separates folders on Windows only.
    """
    path = cmd.replace("\\", "/") if platform.is_windows else cmd
    parts = [part for part in path.split("/") if part not in ("", ".")]
    is_outside = path.startswith("/") or ".." in parts or (platform.is_windows and ":" in path)
    if not parts or is_outside or "\0" in path:
        raise InstallError(f"'cmd' must be a relative path inside of the archive, got {cmd!r}")
    return "/".join(parts)
