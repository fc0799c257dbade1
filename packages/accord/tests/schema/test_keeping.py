"""Members that no type knows survive `decode_keeping` and `encode`, in every object of every type."""

import copy
import json
import pickle

import msgspec
import pytest

from accord.errors import EncodeError
from accord.schema import codec, v1
from accord.schema.base import unknown_members, with_unknown_members
from accord.schema.conversion import to_v1, to_v2
from accord.schema.type_tree import fields_of, node_of
from tests.schema.meanings import meaning, same
from tests.schema.nodes import MapOf, Object, bare, meant, types
from tests.schema.strategies import covering, each_version

STRANGE = "x-tomorrow"
HALF = "\ud83d"


def with_strange_members(node, value, strange, seen):
    """The value with a strange member in each object that a type describes, and how many were put in."""
    node = meant(node, value)
    match bare(node):
        case Object(cls) if isinstance(value, dict):
            seen.add(cls.__name__)
            inner = {field.wire: field.node for field in fields_of(cls)}
            return {
                **{
                    name: with_strange_members(inner[name], item, strange, seen) if name in inner else item
                    for name, item in value.items()
                },
                STRANGE: strange,
            }
        case MapOf(item) if isinstance(value, dict):
            return {name: with_strange_members(item, each, strange, seen) for name, each in value.items()}
        case inner if isinstance(value, list) and hasattr(inner, "item"):
            return [with_strange_members(inner.item, each, strange, seen) for each in value]
        case _:
            return value


def strange_members(value):
    """Every strange member of a value, with the path to it."""
    if isinstance(value, dict):
        own = [("", value[STRANGE])] if STRANGE in value else []
        return own + [(f".{k}{p}", m) for k in sorted(value) if k != STRANGE for p, m in strange_members(value[k])]
    if isinstance(value, list):
        return [(f"[{i}]{p}", m) for i, each in enumerate(value) for p, m in strange_members(each)]
    return []


@pytest.mark.parametrize("version", each_version())
def test_an_unknown_member_of_any_object_of_any_type_survives(version):
    seen = set()
    for hint in types(version).values():
        for value in covering(hint):
            sent = with_strange_members(node_of(hint), value, {"deep": [1, None]}, seen)
            read = codec.decode_keeping(json.dumps(sent).encode(), hint)
            written = json.loads(codec.encode(read))
            assert strange_members(written) == strange_members(sent)
            assert same(meaning(hint, written), meaning(hint, sent))
            assert codec.plain(read) == written
    every_class = {
        cls.__name__ for cls in types(version).values() if isinstance(cls, type) and issubclass(cls, msgspec.Struct)
    }
    assert every_class <= seen


@pytest.mark.parametrize("version", each_version())
def test_a_value_without_unknown_members_is_read_as_ever(version):
    for hint in types(version).values():
        for value in covering(hint):
            data = json.dumps(value).encode()
            assert codec.decode_keeping(data, hint) == codec.decode(data, hint)


def read(text, hint=v1.TextContent):
    return codec.decode_keeping(text if isinstance(text, bytes) else json.dumps(text).encode(), hint)


WARM = {"type": "text", "text": "hi", "tone": "warm"}


def test_a_value_with_unknown_members_is_still_of_its_class():
    block = read(WARM)
    assert isinstance(block, v1.TextContent)
    assert block.__class__ is v1.TextContent
    assert unknown_members(block) == {"tone": "warm"}
    assert block != v1.TextContent("hi")
    assert block == read(WARM)
    assert repr(block) == "TextContent(text='hi', unknown_members={'tone': 'warm'})"


def test_unknown_members_are_written_inside_another_value():
    chunk = v1.SessionNotification(v1.SessionId("s"), v1.AgentMessageChunk(read(WARM)))
    assert json.loads(codec.encode(chunk))["update"]["content"] == WARM


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda it: pickle.loads(pickle.dumps(it)),
        lambda it: msgspec.structs.replace(it, text="hi"),
        lambda it: with_unknown_members(v1.TextContent("hi"), unknown_members(it)),
    ],
    ids=["copy", "deepcopy", "pickle", "replace", "with_unknown_members"],
)
def test_a_copy_keeps_unknown_members(again):
    assert json.loads(codec.encode(again(read(WARM)))) == WARM


def test_an_unknown_member_never_replaces_a_known_one():
    block = with_unknown_members(v1.TextContent("ours"), {"text": "theirs", "tone": "warm"})
    assert json.loads(codec.encode(block)) == {"type": "text", "text": "ours", "tone": "warm"}


def test_unknown_members_may_hold_half_an_emoji():
    sent = WARM | {"tone": HALF}
    assert json.loads(codec.encode(read(sent))) == sent


def test_unknown_members_that_are_not_json_are_refused():
    block = with_unknown_members(v1.TextContent("hi"), {"tone": object()})
    with pytest.raises(EncodeError, match="TextContent cannot be written as JSON"):
        codec.encode(block)


def test_reading_with_unknown_members_makes_one_class_for_each_type():
    made = {type(read(WARM | {f"x{number}": 1})) for number in range(100)}
    assert len(made) == 1


def test_unknown_members_are_forgotten_by_an_ordinary_decode():
    assert unknown_members(codec.decode(json.dumps(WARM).encode(), v1.TextContent)) == {}


@pytest.mark.parametrize(
    "name",
    [
        "AgentMessageChunk",
        "ToolCallLocation",
        "AvailableCommand",
        "PlanEntry",
        "ResourceLink",
        "PermissionOption",
        "McpServerStdio",
    ],
)
def test_a_converted_value_keeps_unknown_members(name):
    hint = types(1)[name]
    value = codec.decode_keeping(
        json.dumps(with_strange_members(node_of(hint), covering(hint)[-1], 1, set())).encode(), hint
    )
    there = to_v2(msgspec.structs.replace(value, message_id="m") if name == "AgentMessageChunk" else value)
    assert strange_members(codec.plain(there)) == strange_members(codec.plain(value)) != []
    assert strange_members(codec.plain(to_v1(there))) == strange_members(codec.plain(value))


def test_the_conversion_gives_an_unknown_member_no_meaning():
    chunk = {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "m",
        "content": {"type": "resource_link", "uri": "file:///a", "name": "a", "icons": [], "tone": "warm"},
    }
    there = to_v2(read(chunk, v1.AgentMessageChunk))
    assert "icons" in {field.wire for field in fields_of(type(there.content))}
    assert unknown_members(there.content) == {"tone": "warm"}
