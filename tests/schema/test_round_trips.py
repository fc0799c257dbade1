"""Whatever a type of ours may hold survives reading and writing, and what is broken costs what the marks say.

Every type of every version, made from its annotations (see `strategies`). Two kinds of instance: `covering` shows each
field, variant and word of a type in turn; hypothesis and dice mix them as they like.
"""

import json

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from strategies import (
    Becomes,
    Maker,
    Refused,
    breakages,
    broken,
    covering,
    each_version,
    instances,
    meaning,
    rolled,
    same,
    types,
    version_is_here,
)

from accord.errors import DecodeError
from accord.schema.codec import convert, decode, encode, plain
from accord.schema.describe import json_schema

ROLLED = 20
"""Instances of each type besides those that cover it."""


def each_type():
    """Parameters for a test of every type of every version."""
    return [
        pytest.param(version, name, id=f"v{version}-{name}")
        for version in (1, 2)
        if version_is_here(version)
        for name in types(version)
    ]


def as_text(value):
    return json.dumps(value).encode()


def check_round_trip(hint, value):
    read = decode(as_text(value), hint)
    assert same(meaning(hint, plain(read)), meaning(hint, value))
    assert decode(encode(read), hint) == read
    assert convert(value, hint) == read


def what_becomes_of(hint, value):
    try:
        return Becomes(plain(decode(as_text(value), hint)))
    except DecodeError as error:
        return Refused(error.path)


def check_breakage(hint, found):
    became = what_becomes_of(hint, found.value)
    if isinstance(found.outcome, Refused) or isinstance(became, Refused):
        assert became == found.outcome, str(found)
    else:
        assert same(meaning(hint, became.value), meaning(hint, found.outcome.value)), str(found)


@pytest.fixture(scope="module")
def validators():
    """By version: what checks that a value is what our own JSON Schema says of a type, if it says anything."""
    made = {}
    for version in (1, 2):
        if version_is_here(version):
            document = json_schema(version, unstable=True)
            whole = jsonschema.Draft202012Validator(document)
            made[version] = {
                name: whole.evolve(schema={"$ref": f"#/$defs/{name}"}, _resolver=whole._resolver)
                for name in document["$defs"]
            }
    return made
