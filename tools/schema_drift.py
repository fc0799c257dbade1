"""Compares our types with newer sources of the protocol's schema, and prints what to edit.

    make schema-drift     the newest crate, TypeScript SDK and official Python SDK, pre-releases of the last one too

Each source is compared with our types in both versions, stable and unstable. A row names what is missing, superfluous
or different, and the place to edit. What differs on purpose is in the tables below, with its reason. The SDKs may be
older than the crate that we follow (see `schema_facts.py`): where they differ from that crate, too, they are not
reported. A source that cannot be fetched is named.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from accord.schema import v1, v1_nes
from accord.schema.base import public_names
from accord.schema.describe import json_schema
from accord.schema.methods import methods

HERE = Path(__file__).parent
specification = importlib.util.spec_from_file_location("schema_facts", HERE / "schema_facts.py")
assert specification is not None
assert specification.loader is not None
schema_facts = importlib.util.module_from_spec(specification)
specification.loader.exec_module(schema_facts)

# What differs on purpose, with its reason


LEGACY = "an older form that is still read: see accord.schema.legacy"
OURS_IS_OPEN = "a tag that is newer than we are becomes Unknown instead of an error"
FLATTENED = (
    "the schema includes this part into other types by reference; here its fields stand in those types themselves"
)
NO_NAME_THERE = "the schema writes this variant in place, without a name; a class needs one"
TAGGED_ALONE = "always written, as a tag; the schema gives it a type of its own"
PROPOSED = "proposed in diff-delete, in no schema yet, sent by real agents"
AS_IN_VERSION_2 = "content and places have one class in both versions, which is that of version 2"
ABSENT_IS_NONE = "absent is None here, and never written"

IN_BOTH_VERSIONS = {
    "types.MultiSelectItems: theirs has open": "ours is as open: its Unknown comes from the choice by tag",
    "types: ours has ElicitationCancelAction": NO_NAME_THERE,
    "types: ours has ElicitationDeclineAction": NO_NAME_THERE,
    "types: theirs has ElicitationSessionScope": FLATTENED,
    "types: theirs has ElicitationRequestScope": FLATTENED,
    "types: theirs has ErrorStopReason": FLATTENED,
    "types.ElicitationAcceptAction.fields: ours has _meta": FLATTENED,
    **{
        f"types.CreateElicitationRequest.variants.mode={mode}: ours has {field}": FLATTENED
        for mode in ("form", "url")
        for field in ("requestId", "sessionId", "toolCallId")
    },
    **{
        f"types.Elicitation{mode}Mode: {difference}": FLATTENED
        for mode in ("Form", "Url")
        for difference in ("ours has fields", "theirs has variants")
    },
    "types.ElicitationSchema.fields: theirs has type": TAGGED_ALONE,
    "types: theirs has ElicitationSchemaType": TAGGED_ALONE,
    "types.ErrorCode: differs": "any int32 is a code; the schema lists the known ones, accord.errors names them",
    "types.IdleStateUpdate: ours has fields": FLATTENED,
    "types.IdleStateUpdate: theirs has open": FLATTENED,
    "types.IdleStateUpdate: theirs has variants": FLATTENED,
    "types.StateUpdate.variants.state=idle: ours has error": FLATTENED,
    "types.MessageMcpResponse: ours has fields": "one class, checked to hold a result or an error",
    "types.MessageMcpResponse: theirs has variants": "one class, checked to hold a result or an error",
    **{
        f"types.SessionConfig{kind}.fields: ours has {field}": FLATTENED
        for kind in ("Select", "Boolean")
        for field in ("_meta", "category", "description", "name")
    },
}

EXPECTED_V1 = {
    **IN_BOTH_VERSIONS,
    "types.ContentBlock.variants: ours has type=skill": AS_IN_VERSION_2,
    "types: ours has SkillReference": AS_IN_VERSION_2,
    "types.InitialSessionConfigOption.variants: ours has InitialSessionConfigValue": NO_NAME_THERE,
    "types.InitialSessionConfigOption.variants: theirs has with value": NO_NAME_THERE,
    "types: ours has InitialSessionConfigBoolean": NO_NAME_THERE,
    "types: ours has InitialSessionConfigValue": NO_NAME_THERE,
    "types.Annotations.fields.priority: differs": AS_IN_VERSION_2,
    "types.ContentBlock.variants.type=resource_link.size: differs": AS_IN_VERSION_2,
    "types.ContentBlock.variants.type=resource_link: ours has icons": AS_IN_VERSION_2,
    "types.ResourceLink.fields.size: differs": AS_IN_VERSION_2,
    "types.ResourceLink.fields: ours has icons": AS_IN_VERSION_2,
    "types.Role: differs": AS_IN_VERSION_2,
    "types: ours has Icon": AS_IN_VERSION_2,
    "types: ours has IconTheme": AS_IN_VERSION_2,
    "types.ContentBlock: ours has open": OURS_IS_OPEN,
    "types.PlanUpdateContent: ours has open": OURS_IS_OPEN,
    "types.RequestPermissionOutcome: ours has open": OURS_IS_OPEN,
    "types.SessionConfigOption: ours has open": OURS_IS_OPEN,
    "types.SessionUpdate: ours has open": OURS_IS_OPEN,
    "types.ToolCallContent: ours has open": OURS_IS_OPEN,
    "types: ours has CancelledPermissionOutcome": NO_NAME_THERE,
    "types.SessionConfigSelect.fields: ours has id": FLATTENED,
    "types.SessionConfigBoolean.fields: ours has id": FLATTENED,
    "types.SetSessionConfigOptionRequest: ours has fields": "one class, checked that boolean values say so",
    "types.SetSessionConfigOptionRequest: theirs has variants": "one class, checked that boolean values say so",
    "types.SessionUpdate.variants.sessionUpdate=tool_call.kind: differs": ABSENT_IS_NONE,
    "types.SessionUpdate.variants.sessionUpdate=tool_call.status: differs": ABSENT_IS_NONE,
    "types.ToolCall.fields.kind: differs": ABSENT_IS_NONE,
    "types.ToolCall.fields.status: differs": ABSENT_IS_NONE,
    "types.AgentCapabilities.fields: ours has nes": LEGACY,
    "types.AgentCapabilities.fields: ours has positionEncoding": LEGACY,
    "types.ClientCapabilities.fields: ours has nes": LEGACY,
    "types.ClientCapabilities.fields: ours has positionEncodings": LEGACY,
    "types.AuthMethod.variants: ours has type=env_var": LEGACY,
    **{f"types.{kind}SessionResponse.fields: ours has models": LEGACY for kind in ("New", "Load", "Resume", "Fork")},
    "types: ours has SetSessionModelRequest": LEGACY,
    "types: ours has SetSessionModelResponse": LEGACY,
    "types.Diff.fields: ours has deleted": PROPOSED,
    "types.ToolCallContent.variants.type=diff: ours has deleted": PROPOSED,
    "types: ours has AuthEnvVar": LEGACY,
    "types: ours has AuthMethodEnvVar": LEGACY,
}

EXPECTED_V2 = {
    **IN_BOTH_VERSIONS,
    "types: ours has InitialSessionConfigBoolean": NO_NAME_THERE,
    "types: ours has InitialSessionConfigValue": NO_NAME_THERE,
    "types.SessionConfigSelect.fields: ours has configId": FLATTENED,
    "types.SessionConfigBoolean.fields: ours has configId": FLATTENED,
    "types: ours has SetSessionConfigOptionId": NO_NAME_THERE,
    "types: ours has SetSessionConfigOptionBoolean": NO_NAME_THERE,
    **{
        f"types.Diff{kind}Change.fields: ours has {field}": FLATTENED
        for kind in ("Path", "PathPair")
        for field in ("_meta", "fileType", "mimeType")
    },
}

ONLY_IN_UNSTABLE = {
    1: (
        "MessageMcp", "nes", "positionEncoding", "AuthEnvVar", "env_var", "EnvVar", "ours has models",
        "SetSessionModel", "ours has deleted", "skill", "SkillReference", "InitialSession",
    ),
    2: ("MessageMcp", "InitialSession"),
}  # fmt: skip

ONLY_IN_STABLE = {
    "types.SessionConfigOptionCategory: differs": "`speed` is unstable there; a word of an open set has no mark here"
}

IN_OFFICIAL_PYTHON = {
    r"v2.* (nes/|document/|nes$|positionEncodings?$)": "its version 2 is alpha.5; next edit suggestions have left it",
    r"v2.*StringPropertySchema.*pattern": "its version 2 is alpha.5, and the member was removed since",
    r"mcp/|(ConnectMcp|MessageMcp)\w+\.fields: theirs has (connectionId|serverId)": (
        "MCP over ACP as an older proposal has it: connections are `v1.McpConnectionRequest` and others here"
    ),
}
"""What its classes have on purpose beside ours, by the version and stability and the place."""


# The comparison


OLDER_NAMES = re.compile(
    "Nes|McpConnection|onnectMcp|AnyMcp|^Model|SessionModelState|PositionEncoding|TextDocumentSync"
)
"""What version 1 has of older forms, besides all of `v1_nes`."""


def legacy_names(version: int) -> set[str]:
    """The names of older forms, types and methods."""
    older = {*public_names(vars(v1_nes)), *filter(OLDER_NAMES.search, dir(v1))} if version == 1 else set[str]()
    rows = {f"methods: ours has {row.name} ({row.kind})" for row in methods(version) if row.legacy}
    return {f"types: ours has {name}" for name in older if name[0].isupper()} | rows


def differences(theirs: Any, ours: Any, place: str) -> set[str]:
    """The places at which two facts differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        there, here = cast("Facts", theirs), cast("Facts", ours)
        found = {f"{place}: theirs has {key}" for key in there.keys() - here.keys()}
        found |= {f"{place}: ours has {key}" for key in here.keys() - there.keys()}
        for key in there.keys() & here.keys():
            found |= differences(there[key], here[key], f"{place}.{key}")
        return found
    return set() if theirs == ours else {f"{place}: differs"}


def _differing(theirs: Any, ours: Any) -> set[str]:
    """The places at which two sets of facts differ."""
    return {place for part in ("types", "methods") for place in differences(theirs[part], ours[part], part)}


def without_names_of_text(facts: Any) -> Any:
    """The facts without the names that only version 2 gives to kinds of text, though both versions share its types."""
    named = ("MediaType", "AbsolutePath")
    types = {name: said for name, said in facts["types"].items() if name not in named}
    return json.loads(re.sub(rf"\b({'|'.join(named)})\b", "string", json.dumps({**facts, "types": types})))


@functools.cache
def pinned(version: int, stability: str) -> Any:
    """The facts of the schema that our types follow."""
    return json.loads((schema_facts.FACTS / f"v{version}.{stability}.json").read_text())


def drift(version: int, stability: str, theirs: Any = None) -> set[str]:
    """The places at which our types differ from these facts, by default from those of the pinned schema."""
    theirs = without_names_of_text(pinned(version, stability) if theirs is None else theirs)
    ours = without_names_of_text(schema_facts.facts(json_schema(version, unstable=stability == "unstable")))
    return _differing(theirs, ours)


def intended(version: int, stability: str) -> set[str]:
    """The places at which our types differ from the pinned schema on purpose."""
    expected = {1: EXPECTED_V1, 2: EXPECTED_V2}[version].keys()
    if stability == "unstable":
        return {*expected, *legacy_names(version)}
    stable = {place for place in expected if not any(word in place for word in ONLY_IN_UNSTABLE[version])}
    return {*stable, *ONLY_IN_STABLE}


# The sources: each is fetched with the ordinary client of its registry, into a folder that is removed afterwards.


Facts = dict[str, Any]


def newest_crate(folder: Path) -> tuple[str, dict[str, Facts]]:
    """The newest crate with major version 1, built with cargo."""
    version, schemas = schema_facts.crate_schemas("1", folder)
    return f"crate {version}", {name: schema_facts.facts(document) for name, document in schemas.items()}


def typescript(folder: Path) -> tuple[str, dict[str, Facts]]:
    """The newest TypeScript SDK, which ships schema files."""
    subprocess.run(["npm", "pack", "--silent", "@agentclientprotocol/sdk"], cwd=folder, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extractall(folder, filter="data")
    package = folder / "package"
    files = {"stable": "schema.json", "unstable": "schema.unstable.json"}
    found = {
        f"v{version}.{stability}": schema_facts.facts(json.loads((package / f"schema/v{version}/{file}").read_text()))
        for version in (1, 2)
        for stability, file in files.items()
    }
    return f"TypeScript SDK {json.loads((package / 'package.json').read_text())['version']}", found


def python(folder: Path) -> tuple[str, dict[str, Facts]]:
    """The newest official Python SDK. It has classes and no schema: names of members and methods can be compared."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--pre", "--no-deps", "agent-client-protocol"]
    subprocess.run([*command, "--dest", str(folder)], check=True, capture_output=True)
    wheel = next(folder.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    found = {f"v{v}.unstable": _of_classes(folder / "acp" / place) for v, place in ((1, ""), (2, "experimental/v2"))}
    return f"official Python SDK {wheel.name.split('-')[1]}", found


def _of_classes(folder: Path) -> Facts:
    types: dict[str, Any] = {}
    for node in ast.parse((folder / "schema.py").read_text()).body:
        if isinstance(node, ast.ClassDef):
            types[node.name] = {"fields": dict.fromkeys(_members(node), "")}
    names = re.findall(r': "([^"]+)"', (folder / "meta.py").read_text())
    return {"types": types, "methods": dict.fromkeys(names, "")}


def _members(node: ast.ClassDef) -> Iterator[str]:
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            alias = re.search(r"alias='([^']+)'", ast.unparse(line))
            yield alias[1] if alias else line.target.id


SOURCES: dict[str, Callable[[Path], tuple[str, dict[str, Facts]]]] = {
    "the crate (needs cargo)": newest_crate,
    "the TypeScript SDK (needs npm)": typescript,
    "the official Python SDK (needs pip)": python,
}


# The report


def rows(found: dict[str, Facts], *, follows: bool) -> Iterator[tuple[str, str, str]]:
    """What a source has otherwise than we have: the version and stability, the place, and the file to edit.

    `follows`: the source may be older than the pinned schema, so only what that schema lacks counts.
    """
    for name, theirs in found.items():
        version, stability = int(name[1]), name[3:]
        if "" in theirs["methods"].values():
            expected = re.compile("|".join(IN_OFFICIAL_PYTHON))
            missing = {it for it in _missing_names(version, theirs) if not expected.search(f"{name} {it}")}
        else:
            missing = drift(version, stability, theirs) - intended(version, stability)
            if follows:
                missing -= _differing(without_names_of_text(theirs), without_names_of_text(pinned(version, stability)))
        for place in sorted(missing):
            yield name, place, _place_to_edit(place, version)


def _missing_names(version: int, theirs: Facts) -> set[str]:
    ours = schema_facts.facts(json_schema(version, unstable=True))
    named = {row.name for row in methods(version)}
    found = {f"methods: theirs has {method}" for method in theirs["methods"] if method not in named}
    for name, described in theirs["types"].items():
        described_here: Any = ours["types"].get(name)
        if isinstance(described_here, dict) and "fields" in described_here:
            fields = cast("Facts", described_here["fields"])
            unnamed = {"field_meta", "_meta", "root", "sessionUpdate", "type", "action", "outcome", "state", "mode"}
            found |= {f"types.{name}.fields: theirs has {it}" for it in described["fields"].keys() - fields - unnamed}
    return found


def _place_to_edit(place: str, version: int) -> str:
    if place.startswith("methods"):
        return "schema/methods.py"
    found = re.match(r"types: \w+ has (\w+)|types\.(\w+)", place)
    name = "" if found is None else found[1] or found[2]
    for module in ("content", "v1_nes", f"v{version}", "v1_and_v2"):
        path = f"schema/{module}.py"
        text = (HERE.parent / "packages/accord/src/accord" / path).read_text()
        if found := re.search(rf"^(class )?{name}\b(?! as)", text, re.MULTILINE):
            return f"{path}:{text.count(chr(10), 0, found.start()) + 1}"
    return f"schema/v{version}.py (new)"


def main() -> int:
    print(f"Our types follow {schema_facts.CRATE} {schema_facts.VERSION}.")
    drifted = False
    for source, fetch in SOURCES.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                name, found = fetch(Path(folder))
            except (OSError, subprocess.SubprocessError, StopIteration) as error:
                print(f"\nNot compared: {source} could not be fetched: {error or 'no file came'}")
                continue
        table = list(rows(found, follows=fetch is not newest_crate))
        drifted |= bool(table)
        print(f"\n{name}: {len(table) or 'no'} differences without a reason")
        for row in table:
            print("  {:<12} {:<80} {}".format(*row))
    return int(drifted)


if __name__ == "__main__":
    sys.exit(main())
