"""Whatever bytes arrive, `decode` gives a value or a DecodeError; and whatever value it gives, can be written again.

Texts of `corpus/v1.json` and `corpus/v2.json` (for each method, what it may carry) are damaged: as bytes, with the
fragments of `corpus/fragments.json`, and as values. `--seeds` says how many texts, `--seed` gives a run's texts again.
"""

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accord.errors import DecodeError, EncodeError
from accord.schema import v2
from accord.schema.codec import convert, decode, encode, loads
from accord.schema.methods import methods
from tests.schema.nodes import version_is_here
from tests.schema.strategies import each_version

CORPUS = Path(__file__).parent / "corpus"
FRAGMENTS = [fragment.encode("latin-1") for fragment in json.loads((CORPUS / "fragments.json").read_text("utf-8"))]
TEXTS = 40_000
PARTS = 4


def carried(version):
    """What each method carries: a type and its name in the corpus."""
    for row in methods(version):
        yield f"{row.name} {row.kind} params", row.params
        if row.kind == "request":
            yield f"{row.name} {row.kind} result", row.result


def seeds():
    """Each type that a method carries, and texts of it."""
    for version in (1, 2):
        if version_is_here(version):
            corpus = json.loads((CORPUS / f"v{version}.json").read_text("utf-8"))
            for name, hint in carried(version):
                yield hint, [json.dumps(value).encode() for value in corpus[name]]


def check(hint, data):
    value = unless_refused(DecodeError, decode, data, hint)
    if value is REFUSED:
        return
    # The strict decoder does not look at what it skips, such as 1e400 under a key that nobody knows.
    plain = unless_refused(DecodeError, loads, data)
    assert plain is REFUSED or convert(plain, hint) == value
    # What may be read with any word is written only with those that are known.
    written = unless_refused(EncodeError, encode, value)
    assert written is REFUSED or decode(written, hint) == value


REFUSED = object()


def unless_refused(error, function, *arguments):
    try:
        return function(*arguments)
    except error:
        return REFUSED


class Damage:
    """Damages JSON texts, in one way or in several."""

    def __init__(self, random, texts):
        self.random = random
        self.texts = texts

    def __call__(self, text):
        if self.random.random() < 0.4:
            text = self.in_a_value(text)
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 5))):
            text = self.random.choice(self.WAYS)(self, text)
        return text

    def in_a_value(self, text):
        """The value that the text says, with something else at one place."""
        whole = [json.loads(text)]
        holder, key = whole, 0
        while isinstance(inner := holder[key], dict | list) and inner and self.random.random() < 0.8:
            holder, key = inner, self.random.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        match self.random.randrange(4):
            case 0 if holder is not whole:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[self.random.choice(("type", "_meta", "id", "sessionId", ""))] = holder.pop(key)
            case 2:
                holder[key] = [holder[key]] * self.random.randrange(4)
            case _:
                holder[key] = self.random.choice(VALUES)
        return json.dumps(whole[0] if whole else None).encode()

    def insert_a_fragment(self, text):
        return self.cut(text, 0, self.random.choice(FRAGMENTS))

    def replace_by_a_fragment(self, text):
        return self.cut(text, self.random.randrange(12), self.random.choice(FRAGMENTS))

    def change_a_byte(self, text):
        return self.cut(text, 1, bytes([self.random.randrange(256)]))

    def cut_something_out(self, text):
        return self.cut(text, self.random.choice((1, 1, 2, 5, 30)), b"")

    def cut_off(self, text):
        return text[: self.random.randrange(len(text) + 1)]

    def repeat(self, text):
        start = self.random.randrange(len(text) + 1)
        return self.cut(text, 0, text[start : start + 20] * self.random.choice((1, 2, 400)))

    def splice(self, text):
        other = self.random.choice(self.texts)
        return text[: self.random.randrange(len(text) + 1)] + other[self.random.randrange(len(other)) :]

    def cut(self, text, count, new):
        at = self.random.randrange(len(text) + 1)
        return text[:at] + new + text[at + count :]

    WAYS = (insert_a_fragment, replace_by_a_fragment, change_a_byte, cut_something_out, cut_off, repeat, splice)


VALUES = (
    None, True, False, 0, -1, 1.0, 1.5, 2**31, 2**64, -(2**63), 10**30, 1e300, "", "x", "\ud83d", "_unknown", "text",
    [], {}, [[]], [None], [{}], {"type": "_unknown"}, {"type": 5}, {"": None}, {"_meta": {"a": 1}}, "x" * 999, [0] * 99,
)  # fmt: skip


FOUND = [
    (v2.ElicitationAcceptAction, b'{"action":"accept","content":{"a":1000000000000000000000000000000}}'),
]
"""Texts that one of these tests has failed on."""


@pytest.mark.parametrize(("hint", "data"), FOUND)
def test_what_was_wrong_once_stays_right(hint, data):
    check(hint, data)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_messages_give_a_value_or_a_decode_error(part, pytestconfig):
    seed = pytestconfig.option.seed
    if seed is None:
        seed = random.SystemRandom().randrange(10**9)
    dice = random.Random(f"{seed} {part}")
    types = list(seeds())
    damage = Damage(dice, [text for _, texts in types for text in texts])
    for _ in range((pytestconfig.option.seeds or TEXTS) // PARTS):
        hint, texts = dice.choice(types)
        data = damage(dice.choice(texts))
        try:
            check(hint, data)
        except BaseException as error:
            error.add_note(f"reading {data!r} as {hint} (pytest --seed {seed})")
            raise


@pytest.mark.parametrize("version", each_version())
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_bytes_give_a_value_or_a_decode_error(version, data):
    _, hint = data.draw(st.sampled_from(list(carried(version))))
    check(hint, data.draw(st.binary(max_size=200)))


@pytest.mark.parametrize("version", each_version())
def test_the_corpus_has_texts_of_everything_that_is_carried_and_all_of_them_fit(version):
    corpus = json.loads((CORPUS / f"v{version}.json").read_text("utf-8"))
    assert corpus.keys() == {name for name, _ in carried(version)}
    for name, hint in carried(version):
        assert corpus[name]
        for value in corpus[name]:
            convert(value, hint)
