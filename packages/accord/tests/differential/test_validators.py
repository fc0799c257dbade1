"""Our types accept the same JSON as the TypeScript SDK's validators, and read the same from it.

Every type that both have, in both versions, stable and unstable: valid values, and values broken at every place. What
is read differently on purpose has a row in `known_differences` and in `docs/design/differences.md`; a row that no
difference needs fails, too.

`--seeds 2000` compares that many random values of each type, and as many broken ones; `--seed` chooses others.
"""

import functools
import itertools
import json
from pathlib import Path

import pytest

from accord.errors import DecodeError
from accord.schema import v1
from accord.schema.codec import decode, plain
from tests.differential.comparison import arbitrary, comparable, differences, systematic
from tests.differential.known_differences import FILLED_LISTS, ROWS, TEXT_ROWS, VALID_TEXTS, explained, tables
from tests.schema.meanings import same
from tests.schema.strategies import Maker, each_version, rolled

pytestmark = pytest.mark.interop

STABILITIES = ("unstable",)
"""With "stable" as soon as the SDK has the schema that we follow: what is stable today was only proposed in its."""

RANDOM_VALUES = 25
AT_ONCE = 200
PAGE = Path(__file__).parents[4] / "docs" / "design" / "differences.md"


@pytest.fixture
def count(pytestconfig):
    return pytestconfig.option.seeds or RANDOM_VALUES


@pytest.fixture
def seed(pytestconfig):
    return pytestconfig.option.seed or 0


def all_differences(version, validators, seed, count):
    for stability in STABILITIES:
        module, unstable, seen = f"v{version} {stability}", stability == "unstable", set()
        for name, hint in comparable(version, validators.types[module]).items():
            maker = Maker(rolled((seed, module, name)), unstable, False, VALID_TEXTS, FILLED_LISTS)
            cases = itertools.chain(systematic(hint, unstable=unstable, seen=seen), arbitrary(hint, maker, count))
            judge = functools.partial(validators.judge, module, f"z{name}")
            while some := list(itertools.islice(cases, AT_ONCE)):
                yield from differences(version, name, hint, some, judge)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", each_version())
def test_both_read_the_same_but_for_the_differences_that_have_a_row(version, validators, seed, count):
    used, unexplained = set(), []
    for difference in all_differences(version, validators, seed, count):
        rows = explained(difference)
        used |= rows
        if not rows:
            unexplained.append(str(difference))
    assert not unexplained, f"{len(unexplained)} differences (--seed {seed}):\n" + "\n".join(unexplained[:20])
    unused = [row for row in ROWS if version in row.versions and row not in used]
    assert not unused, "no difference needs these rows any more"


@pytest.mark.parametrize("version", each_version())
def test_hardly_a_type_is_left_out(version, validators):
    for stability in STABILITIES:
        theirs = validators.types[f"v{version} {stability}"]
        left_out = {name[1:] for name in theirs} - comparable(version, theirs).keys()
        parts = {"ElicitationRequestScope", "ElicitationSchemaType", "ElicitationSessionScope", "ErrorStopReason"}
        envelopes = {f"{side}{kind}" for side in SIDES for kind in ("Request", "Response", "Notification")}
        assert left_out <= parts | envelopes | {"NesSuggestionId", "PlanFile"}


SIDES = ("Agent", "Client", "Proxy")

TEXTS = {
    "a byte order mark at the start": '\ufeff{"type":"text","text":""}',
    "a number like `1e400`": '{"type":"text","text":"","_meta":{"a":1e400}}',
    "a whole number of 40 digits in `_meta`": '{"type":"text","text":"","_meta":{"a":%s}}' % ("1" * 40),
    "a whole number of 5,000 digits": '{"type":"text","text":"","_meta":{"a":%s}}' % ("1" * 5000),
    "a key `__proto__` in `_meta`": '{"type":"text","text":"","_meta":{"__proto__":1}}',
    "nothing": "",
    "space around it": ' \n\t\r{"type":"text","text":""}\n ',
    "another space before it": '\u00a0{"type":"text","text":""}',
    "two values": '{"type":"text","text":""}{}',
    "half an object": '{"type":"text","text":"',
    "a comma too many": '{"type":"text","text":"",}',
    "other quotes": "{'type':'text'}",
    "a comment": '{"type":"text","text":""} // text',
    "the same key twice": '{"type":"text","text":"a","text":"b"}',
    "the same tag twice": '{"type":"text","text":"a","type":"image","data":"d","mimeType":"m"}',
    "the same tag twice, the other way": '{"type":"image","text":"a","data":"d","mimeType":"m","type":"text"}',
    "the first half of an emoji": '{"type":"text","text":"\\ud83d"}',
    "the second half of an emoji": '{"type":"text","text":"\\ude00x"}',
    "both halves": '{"type":"text","text":"\\uD83D\\ude00"}',
    "a control character": '{"type":"text","text":"\x01"}',
    "an escaped control character": '{"type":"text","text":"\\u0000\x7f"}',
    "an unknown escape": '{"type":"text","text":"\\x41"}',
    "a short escape": '{"type":"text","text":"\\u041"}',
    "not a number": '{"type":"text","text":"","_meta":{"a":NaN}}',
    "minus infinity": '{"type":"text","text":"","_meta":{"a":-Infinity}}',
    "a zero in front": '{"type":"text","text":"","_meta":{"a":01}}',
    "a plus in front": '{"type":"text","text":"","_meta":{"a":+1}}',
    "no digit behind the point": '{"type":"text","text":"","_meta":{"a":1.}}',
    "minus zero": '{"type":"text","text":"","_meta":{"a":-0}}',
    "a number with an exponent": '{"type":"text","text":"","_meta":{"a":[1E2,1e-400,0.10000000000000000555]}}',
    "a long text": '{"type":"text","text":"%s"}' % ("x" * 100_000),
    "a hundred levels": '{"type":"text","text":"","_meta":{"a":%s%s}}' % ("[" * 100, "]" * 100),  # noqa: UP031
}


def test_both_take_the_same_texts_for_json_but_for_those_that_have_a_row(validators):
    theirs = validators.judge_texts("v1 stable", "zContentBlock", list(TEXTS.values()))
    different = set()
    for (name, text), judged in zip(TEXTS.items(), theirs, strict=True):
        try:
            ours = plain(decode(text.encode("utf-8"), v1.ContentBlock))
        except DecodeError:
            ours = None
        if not same(ours, json.loads(judged["text"]) if judged["ok"] else None):
            different.add(name)
    assert different == {row.text for row in TEXT_ROWS}


def test_the_page_has_exactly_these_rows():
    in_tables = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
    if in_tables != [line for line in tables().splitlines() if line]:
        pytest.fail(f"{PAGE.name} should have these tables:\n\n{tables()}", pytrace=False)
