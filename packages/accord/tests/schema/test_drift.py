"""Our types against the official schema's facts, both ways, field by field.

The facts are in the JSON files beside this one (see `tools/schema_facts.py`). What differs on purpose is in the tables
of `tools/schema_drift.py`, with its reason; an entry that no longer differs fails too.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from accord.schema.methods import methods

HERE = Path(__file__).parent
specification = importlib.util.spec_from_file_location("schema_drift", HERE.parents[3] / "tools" / "schema_drift.py")
schema_drift = importlib.util.module_from_spec(specification)
specification.loader.exec_module(schema_drift)


@pytest.mark.parametrize("stability", ["stable", "unstable"])
@pytest.mark.parametrize("version", [1, 2])
def test_every_type_is_what_the_official_schema_says_or_a_named_exception(version, stability):
    older = schema_drift.legacy_names(version)
    found, intended = schema_drift.drift(version, stability), schema_drift.intended(version, stability)
    assert sorted(found - older) == sorted(intended - older)


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
    assert len(schema_drift.differences(theirs, ours, "")) == 1


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
