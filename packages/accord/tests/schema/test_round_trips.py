"""Whatever a type of ours may hold survives reading and writing, and what is broken costs what the marks say.

Every type of every version, made from its annotations (see `strategies`). Two kinds of instance: `covering` shows each
field, variant and word of a type in turn; hypothesis and dice mix them as they like.
"""

import json

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accord.errors import DecodeError
from accord.schema.codec import convert, decode, encode, plain
from accord.schema.describe import json_schema
from tests.schema.breakages import Becomes, Refused, breakages, has_strange_choice
from tests.schema.meanings import meaning, same
from tests.schema.nodes import types, version_is_here
from tests.schema.strategies import Maker, broken, covering, each_version, instances, rolled

ROLLED = 20
"""Instances of each type besides those that cover it."""
VALIDATED = 20
"""Instances of each type that are checked by our JSON Schema, which takes long."""


def each_type():
    """Parameters for a test of every type of every version."""
    return [
        pytest.param(version, name, id=f"v{version}-{name}")
        for version in (1, 2)
        if version_is_here(version)
        for name in types(version)
    ]


def valid_instances(version, name):
    hint = types(version)[name]
    maker = Maker(rolled(name))
    return hint, covering(hint) + [maker.make(hint) for _ in range(ROLLED)]


def as_text(value):
    return json.dumps(value).encode()


def check_round_trip(hint, value):
    read = decode(as_text(value), hint)
    assert same(meaning(hint, plain(read)), meaning(hint, value))
    assert decode(encode(read), hint) == read
    assert convert(value, hint) == read


def check_breakage(hint, found):
    try:
        became = Becomes(plain(decode(as_text(found.value), hint)))
    except DecodeError as error:
        became = Refused(error.path)
    if isinstance(found.outcome, Refused) or isinstance(became, Refused):
        assert became == found.outcome, str(found)
    else:
        assert same(meaning(hint, became.value), meaning(hint, found.outcome.value)), str(found)


# Valid


@pytest.mark.parametrize(("version", "name"), each_type())
def test_every_field_variant_and_word_is_read_as_it_was_written(version, name):
    hint, values = valid_instances(version, name)
    for value in values:
        check_round_trip(hint, value)


@pytest.mark.parametrize("version", each_version())
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_instance_of_any_type_is_read_as_it_was_written(version, data):
    hint = types(version)[data.draw(st.sampled_from(sorted(types(version))))]
    check_round_trip(hint, data.draw(instances(hint)))


@pytest.mark.parametrize("version", each_version())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_meta_comes_back_untouched_from_wherever_it_is(version, data):
    hint = types(version)[data.draw(st.sampled_from(sorted(types(version))))]
    value = data.draw(instances(hint))
    assert metas(plain(decode(as_text(value), hint))) == metas(meaning(hint, value))


def metas(value):
    """Every `_meta` in a value, in order."""
    if isinstance(value, dict):
        own = [value["_meta"]] if "_meta" in value else []
        return own + [meta for key in sorted(value) if key != "_meta" for meta in metas(value[key])]
    return [meta for each in value for meta in metas(each)] if isinstance(value, list) else []


# Broken


@pytest.mark.parametrize("version", each_version())
def test_what_is_broken_anywhere_costs_what_the_marks_say(version):
    seen = set()
    for hint in types(version).values():
        for value in covering(hint):
            for found in breakages(hint, value, seen):
                check_breakage(hint, found)


@pytest.mark.parametrize("version", each_version())
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_instance_of_any_type_breaks_as_the_marks_say(version, data):
    hint = types(version)[data.draw(st.sampled_from(sorted(types(version))))]
    check_breakage(hint, data.draw(broken(hint)))


# Our own JSON Schema


@pytest.mark.parametrize("version", each_version())
@pytest.mark.parametrize("unstable", [False, True], ids=["stable", "unstable"])
def test_our_json_schema_is_a_json_schema(version, unstable):
    jsonschema.Draft202012Validator.check_schema(json_schema(version, unstable=unstable))


@pytest.mark.parametrize("version", each_version())
def test_every_valid_instance_is_valid_by_our_json_schema(version):
    definitions = json_schema(version, unstable=True)["$defs"]
    for name in types(version).keys() & definitions.keys():
        validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})
        hint = types(version)[name]
        values = covering(hint)
        for value in values[:: len(values) // VALIDATED + 1]:
            if not has_strange_choice(hint, value):
                validator.validate(value)
