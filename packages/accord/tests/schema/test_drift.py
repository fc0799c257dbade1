"""Our types against the official schema's facts, both ways, field by field.

The facts are in the JSON files beside this one (see `tools/schema_facts.py`). What differs on purpose is in the tables
below, with its reason; an entry that no longer differs fails too.
"""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accord.schema import v1, v1_nes
from accord.schema.base import public_names
from accord.schema.describe import json_schema
from accord.schema.methods import methods

HERE = Path(__file__).parent
specification = importlib.util.spec_from_file_location("schema_facts", HERE.parents[3] / "tools" / "schema_facts.py")
schema_facts = importlib.util.module_from_spec(specification)
specification.loader.exec_module(schema_facts)

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
        "ErrorStopReason", "IdleState", "StateUpdate", "MessageMcp", "nes", "positionEncoding", "AuthEnvVar", "env_var",
        "EnvVar", "PlanUpdateContent", "ours has models", "SetSessionModel", "ours has deleted",
    ),
    2: ("MessageMcp",),
}  # fmt: skip


OLDER_NAMES = re.compile(
    "Nes|McpConnection|onnectMcp|AnyMcp|^Model|SessionModelState|PositionEncoding|TextDocumentSync"
)
"""What version 1 has of older forms, besides all of `v1_nes`."""


def legacy_names(version: int) -> set[str]:
    """The names of older forms, types and methods."""
    older = {*public_names(vars(v1_nes)), *filter(OLDER_NAMES.search, dir(v1))} if version == 1 else set[str]()
    rows = {f"methods: ours has {row.name} ({row.kind})" for row in methods(version) if row.legacy}
    return {f"types: ours has {name}" for name in older if name[0].isupper()} | rows


def differences(theirs: object, ours: object, place: str) -> set[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        found = {f"{place}: theirs has {key}" for key in theirs.keys() - ours.keys()}
        found |= {f"{place}: ours has {key}" for key in ours.keys() - theirs.keys()}
        for key in theirs.keys() & ours.keys():
            found |= differences(theirs[key], ours[key], f"{place}.{key}")
        return found
    return set() if theirs == ours else {f"{place}: differs"}


def without_names_of_text(facts: Any) -> Any:
    """The facts without the names that only version 2 gives to kinds of text, though both versions share its types."""
    named = ("MediaType", "AbsolutePath")
    types = {name: said for name, said in facts["types"].items() if name not in named}
    return json.loads(re.sub(rf"\b({'|'.join(named)})\b", "string", json.dumps({**facts, "types": types})))


def drift(version: int, stability: str) -> set[str]:
    theirs = without_names_of_text(json.loads((HERE / f"v{version}.{stability}.json").read_text()))
    ours = without_names_of_text(schema_facts.facts(json_schema(version, unstable=stability == "unstable")))
    return differences(theirs["types"], ours["types"], "types") | differences(
        theirs["methods"], ours["methods"], "methods"
    )


@pytest.mark.parametrize(("version", "expected"), [(1, EXPECTED_V1), (2, EXPECTED_V2)])
def test_every_type_is_what_the_official_schema_says_or_a_named_exception(version, expected):
    assert sorted(drift(version, "unstable") - legacy_names(version)) == sorted(expected)


@pytest.mark.parametrize(("version", "expected"), [(1, EXPECTED_V1), (2, EXPECTED_V2)])
def test_the_stable_part_is_exactly_the_official_stable_schema(version, expected):
    stable = {place for place in expected if not any(word in place for word in ONLY_IN_UNSTABLE[version])}
    assert sorted(drift(version, "stable")) == sorted(stable)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("stability", ["stable", "unstable"])
def test_the_version_s_methods_are_the_official_ones(version, stability):
    theirs = json.loads((HERE / f"v{version}.{stability}.json").read_text())["methods"]
    ours = {
        f"{row.name} ({row.kind})": row.to
        for row in methods(version)
        if not row.legacy and (stability == "unstable" or not row.unstable)
    }
    assert ours == {name: method["side"] for name, method in theirs.items()}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("damage", ["a field", "a mark", "requiredness", "a variant", "an enum's word", "a method"])
def test_the_comparison_sees(damage, version):
    theirs = json.loads((HERE / f"v{version}.stable.json").read_text())
    ours = json.loads(json.dumps(theirs))
    prompt = ours["types"]["PromptRequest"]["fields"]
    match damage:
        case "a field":
            del prompt["prompt"]
        case "a mark":
            prompt["_meta"] = prompt["_meta"].replace(", default-on-error", "")
        case "requiredness":
            prompt["prompt"] = prompt["prompt"].replace("required", "optional")
        case "a variant":
            del ours["types"]["ContentBlock"]["variants"]["type=audio"]
        case "an enum's word":
            ours["types"]["Role"] = '"user"'
        case "a method":
            del ours["methods"]["session/prompt (request)"]
    assert len(differences(theirs, ours, "")) == 1


def test_the_schema_names_a_set_of_words_whatever_order_another_module_has_them_in():
    program = (
        "from typing import Literal, Optional; Optional[Literal['uri', 'date', 'email', 'date-time']]; "
        "from accord.schema.describe import json_schema; "
        "print(json_schema(1)['$defs']['StringPropertySchema']['properties']['format'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "#/$defs/StringFormat" in done.stdout


REVERSED_WORDS = """
import sys
from typing import Annotated, Literal, Optional
from accord.schema.base import Mark, UnsetType
kept = []
for words in {words!r}:
    known = Literal[tuple(reversed(words))]
    kept += [Optional[known], known | UnsetType | None, known | UnsetType, list[known]]
    kept += [Annotated[known, Mark.READ_OPEN], Annotated[Optional[known], Mark.DEFAULT_ON_ERROR]]
"""
DOCUMENTS = """
import json
from accord.schema.describe import json_schema
print(json.dumps([json_schema(version, unstable=unstable) for version in (1, 2) for unstable in (False, True)]))
"""


def sets_of_words(described):
    """Every set of words in a JSON Schema."""
    if isinstance(described, dict):
        named = described.get("oneOf") or described.get("anyOf") or []
        found = [described.get("enum") or [], [it["const"] for it in named if isinstance(it, dict) and "const" in it]]
        inner = list(described.values())
    else:
        found, inner = [], described if isinstance(described, list) else []
    return {tuple(words) for words in found if words}.union(*map(sets_of_words, inner))


def test_the_schema_does_not_depend_on_what_was_imported_before():
    def printed(before):
        return subprocess.run(
            [sys.executable, "-c", before + DOCUMENTS], capture_output=True, text=True, check=True
        ).stdout

    alone = printed("")
    words = sorted(sets_of_words(json.loads(alone)))
    assert ("high", "medium", "low") in words
    assert printed(REVERSED_WORDS.format(words=words)) == alone
    assert printed("import accord.schema.v2, accord.http, accord.mcp, accord.schema.v1_nes\n") == alone
