"""Writes the bill of materials of the wheels: what they install, as CycloneDX JSON, checked against its schema.

    python tools/bill_of_materials.py FOLDER    writes FOLDER/accord.cdx.json for the wheels in FOLDER

The wheels' metadata says what they need. The environment that runs this tool says which versions were tested with it,
and what those need in turn. Packages of extras have the scope `optional`. Requirements that are not installed here,
such as the frameworks of `accord_adapters`, are listed without a version. The result is the same for the same wheel
and the same environment.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.bom_ref import BomRef
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "accord.cdx.json"
EPOCH = 1_577_836_800
"""The time in the document, if SOURCE_DATE_EPOCH does not tell one: the documents of one wheel are then the same."""


def bill_of_materials(wheels: Sequence[Path]) -> str:
    """The document for the wheels of a release; its root stands for all of them."""
    own = {canonicalize_name(about["Name"]): (about, path) for path in wheels for about in [metadata(path)]}
    version = own["accord"][0]["Version"]
    root = Component(name="accord", version=version, type=ComponentType.APPLICATION, bom_ref=BomRef("release"))
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, " ".join(f"{it.name} {digest(it)}" for it in wheels)))
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH)), UTC)
    needed: dict[str, list[Requirement]] = {}
    for name, (about, _) in own.items():
        extras = {"", *about.get_all("Provides-Extra", [])}
        needed[name] = [it for it in map(Requirement, about.get_all("Requires-Dist", [])) if applies(it, extras)]
    core, found = (
        reached(it for it in needed["accord"] if applies(it, {""})),
        reached(it for its in needed.values() for it in its),
    )
    components = {name: of_installed(name, is_core=name in core) for name in sorted({*found, *own})}
    for name, (about, path) in own.items():
        made = component(about["Name"], version, about["License-Expression"])
        made.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=digest(path)))
        made.scope = ComponentScope.REQUIRED if name == "accord" else ComponentScope.OPTIONAL
        components[name] = made
    bom.components = components.values()
    bom.register_dependency(root, [components[it] for it in own])
    for name, needs in {**found, **{it: {canonicalize_name(of.name) for of in needed[it]} for it in own}}.items():
        bom.register_dependency(components[name], [components[it] for it in sorted(needs - {name})])
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(archive.read(name).decode())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    """Whether a requirement holds with one of these extras on this system."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)


def reached(requirements: Iterable[Requirement]) -> dict[str, set[str]]:
    """The packages that requirements lead to, and what each of them needs."""
    found: dict[str, set[str]] = {}
    waiting = [(canonicalize_name(it.name), frozenset(it.extras)) for it in requirements]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        if (entry := waiting.pop()) in seen:
            continue
        seen.add(entry)
        name, extras = entry
        needs = [it for it in needs_of(name) if applies(it, {"", *extras})]
        found.setdefault(name, set()).update(canonicalize_name(it.name) for it in needs)
        waiting += [(canonicalize_name(it.name), frozenset(it.extras)) for it in needs]
    return found


def needs_of(name: str) -> Iterator[Requirement]:
    try:
        needed = distribution(name).requires or []
    except PackageNotFoundError:
        return
    yield from (Requirement(it) for it in needed)


def of_installed(name: str, *, is_core: bool) -> Component:
    """The component of a package: with its version if it is installed here."""
    try:
        about = distribution(name).metadata
        licence = about.get("License-Expression")
        made = component(about["Name"], about["Version"], licence)
    except PackageNotFoundError:
        made = component(name, None, None)
    made.scope = ComponentScope.REQUIRED if is_core else ComponentScope.OPTIONAL
    return made


def component(name: str, version: str | None, licence: str | None) -> Component:
    url = PackageURL("pypi", name=canonicalize_name(name), version=version)
    made = Component(name=name, version=version, type=ComponentType.LIBRARY, purl=url, bom_ref=BomRef(str(url)))
    if licence:
        made.licenses.add(LicenseFactory().make_from_string(licence))
    return made


def problems(document: str) -> str:
    """What the schema of CycloneDX 1.6 says against a document; empty if it is valid."""
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(document)
    return "" if error is None else str(error)


def main(words: list[str]) -> int:
    wheels = sorted(Path(words[0]).glob("*.whl")) if len(words) == 1 else []
    if not wheels:
        print("tools/bill_of_materials.py: give a folder with wheels; `make dist` makes dist/", file=sys.stderr)
        return 2
    document = bill_of_materials(wheels)
    if told := problems(document):
        print(f"tools/bill_of_materials.py: the document is not valid: {told}", file=sys.stderr)
        return 1
    Path(words[0], NAME).write_text(document, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
