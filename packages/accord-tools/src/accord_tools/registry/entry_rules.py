"""The registry's rules for an entry and its icon, as strict as its own checks, and the findings. PURE.

Each rule gets the entry as JSON and yields the problems, with the path of the value. A value of a wrong type is
reported once, by the rule of its shape; the other rules then skip it. Findings print as text, JSON and SARIF. An icon
is a square SVG of 16 by 16 in the colour of the surrounding text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast
from urllib.parse import unquote, urlsplit
from xml.parsers import expat

from accord_tools.registry.archives import REFUSED
from accord_tools.registry.entry import ID, INTERPRETERS, PLATFORMS, read_package

FindingLevel = Literal["error", "warning"]

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class EntryFinding:
    """A finding that the registry refuses (`error`) or warns of (`warning`)."""

    file: str
    path: str
    """The place in the file, such as `distribution.binary.linux-x86_64.archive`; empty for the whole file."""
    rule: str
    message: str
    level: FindingLevel = "error"

    def __str__(self) -> str:
        where = f"{self.file}: {self.path}" if self.path else self.file
        return f"{where}: {self.level}: {self.message} [{self.rule}]"


def as_json(findings: Iterable[EntryFinding]) -> list[dict[str, str]]:
    """The findings as plain values."""
    return [asdict(finding) for finding in findings]


def as_sarif(findings: Iterable[EntryFinding], version: str) -> dict[str, Any]:
    """Return the findings as SARIF 2.1.0, which code hosts show beside the lines of a change."""
    found = list(findings)
    rules = sorted({finding.rule for finding in found})
    driver = {"name": "accord agents check", "version": version, "rules": [{"id": rule} for rule in rules]}
    return {
        "$schema": SARIF,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(finding) for finding in found]}],
    }


def _result(finding: EntryFinding) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": finding.file}}}
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.path}]
    return {
        "ruleId": finding.rule,
        "level": finding.level,
        "message": {"text": f"{finding.path}: {finding.message}" if finding.path else finding.message},
        "locations": [location],
    }


SIDE = 16.0
LARGEST = 64 * 1024
PAINTS = ("fill", "stroke")
ALLOWED = {"currentcolor", "none", "inherit"}
_LENGTH = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(?:px)?\s*")
_DECLARED = re.compile(r"(?<![\w-])(fill|stroke|color|stop-color)\s*:\s*([^;}!]+)", re.IGNORECASE)

SKELETON = """\
<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16" fill="none">
  <path d="M3 4l4 4-4 4M8 12h5" stroke="currentColor" stroke-width="1.5" stroke-linecap="round"/>
</svg>
"""
"""An icon to begin with."""


class _EntityDeclared(Exception): ...


class _IconReader:
    """The parts of an icon that a reader of XML has seen."""

    def __init__(self) -> None:
        self.root: tuple[str, dict[str, str]] | None = None
        self.paints: list[tuple[str, str]] = []
        self.comments = 0
        self._style: list[str] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        plain = name.rpartition(":")[2]
        if self.root is None:
            self.root = (plain, attributes)
        self.paints += [(key, value) for key, value in attributes.items() if key in PAINTS]
        self.paints += _DECLARED.findall(attributes.get("style", ""))
        self._style = [] if plain == "style" else self._style

    def text(self, data: str) -> None:
        if self._style is not None:
            self._style.append(data)

    def end(self, name: str) -> None:
        if name.rpartition(":")[2] == "style" and self._style is not None:
            self.paints += _DECLARED.findall("".join(self._style))
            self._style = None


def check_icon(data: bytes, file: str) -> list[EntryFinding]:
    """The faults of an icon."""
    return [EntryFinding(file, "", "icon", message, level) for message, level in _problems(data)]


def _problems(data: bytes) -> Iterator[tuple[str, Literal["error", "warning"]]]:
    if len(data) > LARGEST:
        yield f"must have at most {LARGEST:,} bytes, has {len(data):,}", "error"
        return
    try:
        seen = _read_icon(data)
    except _EntityDeclared:
        yield "must not declare entities", "error"
        return
    except expat.ExpatError as error:
        yield f"must be well-formed XML: {expat.ErrorString(error.code)} in line {error.lineno}", "error"
        return
    if seen.root is None or seen.root[0] != "svg":
        yield f"must have the root element svg, got {seen.root[0] if seen.root else 'nothing'}", "error"
        return
    if seen.comments:
        yield "must have no comments", "error"
    yield from _sides(seen.root[1])
    wrong = sorted({f"{key}={value.strip()}" for key, value in seen.paints if value.strip().lower() not in ALLOWED})
    if wrong:
        yield f"must have only currentColor, none and inherit as colours, got {', '.join(wrong[:5])}", "error"
    if not any(value.strip().lower() == "currentcolor" for _, value in seen.paints):
        yield "must use currentColor, so that it is seen on any background", "error"


def _read_icon(data: bytes) -> _IconReader:
    seen = _IconReader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = seen.start
    parser.EndElementHandler = seen.end
    parser.CharacterDataHandler = seen.text

    def comment(_: str) -> None:
        seen.comments += 1

    def entity(*_: object) -> None:
        raise _EntityDeclared  # entities within entities could fill the memory

    parser.CommentHandler = comment
    parser.EntityDeclHandler = entity
    parser.Parse(data, True)
    return seen


def _sides(root: dict[str, str]) -> Iterator[tuple[str, Literal["error", "warning"]]]:
    """Return the width and the height of the root, or those of its view box."""
    given = [_number(root.get("width")), _number(root.get("height"))]
    box = [_number(part) for part in re.split(r"[\s,]+", root.get("viewBox", "").strip())] if "viewBox" in root else []
    sides = given if None not in given else box[2:4] if len(box) == 4 else []
    if len(sides) != 2 or None in sides:
        yield "must say its size by width and height or by viewBox", "error"
    elif sides != [SIDE, SIDE]:
        yield f"must be 16 by 16, got {sides[0]:g} by {sides[1]:g}", "error"


def _number(text: str | None) -> float | None:
    found = _LENGTH.fullmatch(text) if text is not None else None
    return float(found[1]) if found else None


VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+.*")
PREVIEW = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:-preview\.[0-9]+)?")
DIGEST = re.compile(r"[0-9a-fA-F]{64}")
IN_PATH = re.compile(r"(?<![0-9.])v?([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.]+?)?)(?=[/_-]|\.(?:tar|tgz|zip|tbz2)|$)")
"""A version in an archive's address."""

TEXTS = ("id", "name", "version", "description")
ADDRESSES = ("repository", "website", "license_url")
TARGET_KEYS = {"archive", "cmd", "args", "env", "sha256"}
PACKAGE_KEYS = {"package", "args", "env", "cmd"}
SYSTEMS = ("darwin", "linux", "windows")

Found = Iterator[tuple[str, str, str, FindingLevel]]
"""The path, the rule, the message and the level."""


def check_entry(raw: object, folder: str | None, file: str) -> list[EntryFinding]:
    """Return the problems of an entry; `folder` is the name of its folder in the registry's sources."""
    if not isinstance(raw, dict):
        return [EntryFinding(file, "", "json", f"must be an object, got {type(raw).__name__}")]
    entry = cast("dict[str, Any]", raw)
    found = [*_texts(entry), *_identity(entry, folder), *_others(entry)]
    found += _distribution(entry.get("distribution"), entry.get("version"), "distribution", is_preview=False)
    if "preview" in entry:
        found += _preview(entry["preview"])
    return [EntryFinding(file, path, rule, message, level) for path, rule, message, level in found]


def _texts(entry: Mapping[str, Any]) -> Found:
    for key in TEXTS:
        if key not in entry:
            yield key, "required", "is missing", "error"
        elif not isinstance(entry[key], str) or not entry[key].strip():
            yield key, "type", f"must be a text that is not empty, got {entry[key]!r}", "error"


def _identity(entry: Mapping[str, Any], folder: str | None) -> Found:
    name, version = entry.get("id"), entry.get("version")
    if isinstance(name, str) and name:
        if not ID.fullmatch(name):
            yield (
                "id",
                "id",
                f"must have lower-case letters, digits and -, and begin with a letter; got {name!r}",
                "error",
            )
        elif folder is not None and folder != name:
            yield "id", "id", f"must be the name of its folder, {folder!r}; got {name!r}", "error"
    if isinstance(version, str) and version and not VERSION.fullmatch(version):
        yield "version", "version", f"must begin with three numbers, as in 1.2.3; got {version!r}", "error"


def _others(entry: Mapping[str, Any]) -> Found:
    for key in ADDRESSES:
        if key in entry and not _is_address(entry[key]):
            yield key, "address", f"must be an address that begins with https://, got {entry[key]!r}", "error"
    authors = entry.get("authors", [])
    if not isinstance(authors, list) or not all(isinstance(it, str) for it in cast("list[Any]", authors)):
        yield "authors", "type", "must be a list of texts", "error"
    for key in ("license", "icon"):
        if key in entry and not isinstance(entry[key], str):
            yield key, "type", f"must be a text, got {entry[key]!r}", "error"
    if "license" not in entry:
        yield "license", "license", "is missing; clients show it before an installation", "warning"


def _is_address(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://")) and bool(urlsplit(value).netloc)


def _preview(given: object) -> Found:
    if not isinstance(given, dict) or set(cast("dict[str, Any]", given)) != {"version", "distribution"}:
        yield "preview", "preview", "must have 'version' and 'distribution', and nothing else", "error"
        return
    preview = cast("dict[str, Any]", given)
    version = preview["version"]
    if not isinstance(version, str) or not PREVIEW.fullmatch(version):
        yield "preview.version", "preview", f"must be X.Y.Z-preview.N or X.Y.Z, got {version!r}", "error"
    yield from _distribution(preview["distribution"], version, "preview.distribution", is_preview=True)


def _distribution(given: object, version: object, path: str, *, is_preview: bool) -> Found:
    if not isinstance(given, dict) or not given:
        yield path, "required", "must be an object with 'binary', 'npx' or 'uvx'", "error"
        return
    for kind, value in cast("dict[str, Any]", given).items():
        place = f"{path}.{kind}"
        if kind == "binary" and not is_preview:
            yield from _binary(value, version, place)
        elif kind in ("npx", "uvx"):
            yield from _package(kind, value, version, place)
        else:
            allowed = "npx or uvx in a preview" if is_preview else "binary, npx or uvx"
            yield place, "kind", f"must be {allowed}", "error"


def _binary(given: object, version: object, path: str) -> Found:
    if not isinstance(given, dict) or not given:
        yield path, "type", "must be an object with a target for each platform", "error"
        return
    targets = cast("dict[str, Any]", given)
    for platform, target in targets.items():
        place = f"{path}.{platform}"
        if platform not in PLATFORMS:
            yield place, "platform", f"is not a platform; known are {', '.join(PLATFORMS)}", "error"
        yield from _target(target, version, place, is_windows=platform.startswith("windows"))
    absent = [system for system in SYSTEMS if not any(key.startswith(f"{system}-") for key in targets)]
    if absent:
        yield path, "platforms", f"has nothing for {', '.join(absent)}", "warning"


def _target(given: object, version: object, path: str, *, is_windows: bool) -> Found:
    if not isinstance(given, dict):
        yield path, "type", f"must be an object, got {given!r}", "error"
        return
    target = cast("dict[str, Any]", given)
    yield from _shape(target, TARGET_KEYS, ("archive", "cmd"), path)
    archive, cmd, digest = target.get("archive"), target.get("cmd"), target.get("sha256")
    if isinstance(archive, str) and archive:
        yield from _archive(archive, version, f"{path}.archive")
    if isinstance(cmd, str) and cmd:
        yield from _command(cmd, f"{path}.cmd", is_windows=is_windows)
    if digest is None:
        yield f"{path}.sha256", "sha256", "is missing; without it, a changed archive is not noticed", "warning"
    elif not isinstance(digest, str) or not DIGEST.fullmatch(digest):
        yield f"{path}.sha256", "sha256", f"must have 64 hexadecimal digits, got {digest!r}", "error"


def _archive(archive: str, version: object, path: str) -> Found:
    if not archive.startswith("https://"):
        yield path, "address", f"must begin with https://, got {archive!r}", "error"
        return
    place = unquote(urlsplit(archive).path)
    if REFUSED.search(place):
        yield (
            path,
            "archive",
            "must be .zip, .tar.gz, .tgz, .tar.bz2, .tbz2 or the program itself, not an installer",
            "error",
        )
    if place.endswith((".tar.xz", ".txz")):
        yield path, "archive", "should be .tar.gz or .tar.bz2: not every client unpacks .xz", "warning"
    if "/latest/" in place:
        yield path, "latest", "must name a version, not /latest/", "error"
    versions = set(IN_PATH.findall(place))
    if isinstance(version, str) and versions and version not in versions:
        named = ", ".join(sorted(versions))
        yield path, "version", f"names the version {named}, and the entry has {version}", "error"


def _command(cmd: str, path: str, *, is_windows: bool) -> Found:
    plain = cmd.replace("\\", "/") if is_windows else cmd
    if plain.startswith("/") or ".." in plain.split("/") or (is_windows and ":" in plain):
        yield path, "cmd", f"must be a relative path inside of the archive, got {cmd!r}", "error"
    elif not plain.startswith("./") and cmd not in INTERPRETERS:
        yield path, "cmd", f"should begin with ./, because some clients need it; got {cmd!r}", "warning"


def _package(kind: str, given: object, version: object, path: str) -> Found:
    if not isinstance(given, dict):
        yield path, "type", f"must be an object, got {given!r}", "error"
        return
    source = cast("dict[str, Any]", given)
    yield from _shape(source, PACKAGE_KEYS, ("package",), path)
    written = source.get("package")
    if not isinstance(written, str) or not written:
        return
    package = read_package(kind, written)
    form = "@scope/name@1.2.3" if kind == "npx" else "name==1.2.3"
    if package is None:
        yield f"{path}.package", "package", f"must be like {form}, got {written!r}", "error"
    elif package.version == "latest":
        yield f"{path}.package", "latest", f"must name a version, as in {form}; got {written!r}", "error"
    elif package.version is None:
        yield f"{path}.package", "package", f"should name a version, as in {form}; got {written!r}", "warning"
    elif isinstance(version, str) and package.version != version:
        message = f"names the version {package.version}, and the entry has {version}"
        yield f"{path}.package", "version", message, "error"


def _shape(given: Mapping[str, Any], known: set[str], required: tuple[str, ...], path: str) -> Found:
    """The keys of a target or a package, and their types."""
    for key in given:
        if key not in known:
            yield f"{path}.{key}", "unknown", f"is not a key here; known are {', '.join(sorted(known))}", "error"
    for key in required:
        if not isinstance(given.get(key), str) or not given[key]:
            yield f"{path}.{key}", "required", f"must be a text that is not empty, got {given.get(key)!r}", "error"
    args, env = given.get("args", []), given.get("env", {})
    if not isinstance(args, list) or not all(isinstance(it, str) for it in cast("list[Any]", args)):
        yield f"{path}.args", "type", f"must be a list of texts, got {args!r}", "error"
    if not isinstance(env, dict) or not all(isinstance(it, str) for it in cast("dict[str, Any]", env).values()):
        yield f"{path}.env", "type", f"must be an object of texts, got {env!r}", "error"
