"""Version 2's own shapes: upserts, second tags, unions that are open, and what is the same as in version 1."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec import UNSET

from accord.errors import DecodeError
from accord.schema import codec, content, v1, v2
from accord.schema.base import Shape, Unknown
from accord.schema.methods import HANDSHAKES, is_handshake, message_of, methods, row_for
from accord.schema.type_tree import fields_of, node_of, second_union

HERE = Path(__file__).parent


def decoded(text, hint):
    return codec.decode(text.encode(), hint)


def test_a_program_that_uses_only_version_1_never_loads_version_2():
    code = (
        "import sys; from accord.schema import codec, v1; from accord.schema.methods import methods, row_for;"
        "methods(1); row_for(v1.PromptRequest, 'agent');"
        "print([name for name in sys.modules if name.startswith('accord.schema.v2')])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


SAME_IN_THE_FACTS_BUT_NOT_HERE = {
    "SessionInfoUpdate": "an upsert: its _meta is a patch",
    "UsageUpdate": "its cost is a patch",
    "SessionConfigBoolean": "holds the fields that the schema includes in it",
    "SessionStatusRequest": "its answer differs",
}
ONE_FOR_BOTH = "read as version 2 has it in both versions"
DIFFERENT_IN_THE_FACTS_BUT_NOT_HERE = {
    **dict.fromkeys((*vars(content), "CompactionSummaryChunk", "Content", "SystemPrompt"), ONE_FOR_BOTH),
    **dict.fromkeys(("SessionMessageChunk", "PromptSuggestion", "PromptSuggestionsUpdate"), ONE_FOR_BOTH),
    "ErrorCode": "any int32 is a code",
    "MessageMcpResponse": "its variant Error is no type",
}


def test_what_does_not_differ_is_the_very_type_of_version_1():
    facts = {version: json.loads((HERE / f"v{version}.unstable.json").read_text())["types"] for version in (1, 2)}
    names = {name for name in facts[2] if hasattr(v2, name)}
    words = {name: set(re.findall(r"\w+", json.dumps(facts[2][name]))) for name in names}
    differing = {name for name in names if facts[1].get(name) != facts[2][name]}
    while more := {name for name in names - differing if differing & words[name]}:
        differing |= more
    differing = (differing | SAME_IN_THE_FACTS_BUT_NOT_HERE.keys()) - DIFFERENT_IN_THE_FACTS_BUT_NOT_HERE.keys()
    assert {name for name in names if getattr(v1, name, None) is not getattr(v2, name)} == differing


def test_the_table_of_upserts_names_every_field_that_may_be_left_out_cleared_or_set():
    rows = re.findall(r"^\| (.+) \| .+ \| (.+) \|$", inspect.getdoc(v2), flags=re.MULTILINE)[1:]
    table = {cls: re.findall(r"`(\w+)`", fields) for names, fields in rows for cls in re.findall(r"`(\w+)`", names)}
    values = {name: getattr(v2, name) for name in dir(v2)}
    types = {name: cls for name, cls in values.items() if isinstance(cls, type) and issubclass(cls, Shape)}
    patches = {
        name: {field.wire for field in fields_of(cls) if field.unset}
        for name, cls in types.items()
        if name not in ("McpError", "MessageMcpResponse", "ToolCallProgress") and "Elicitation" not in name
    }
    assert {name: set(fields) for name, fields in table.items()} == {
        name: fields for name, fields in patches.items() if fields
    }


@pytest.mark.parametrize(("text", "means"), [("", UNSET), (',"title":null', None), (',"title":"Read"', "Read")])
def test_left_out_null_and_a_value_are_three_things_and_stay_so(text, means):
    update = f'{{"sessionUpdate":"tool_call_update","toolCallId":"t"{text}}}'
    read = decoded(update, v2.SessionUpdate)
    assert read.title is means or read.title == means
    assert codec.encode(read).decode() == update


def test_an_empty_list_of_an_upsert_is_written_and_shown():
    emptied = v2.AgentMessage(v2.MessageId("m"), [])
    assert codec.encode(emptied) == b'{"sessionUpdate":"agent_message","messageId":"m","content":[]}'
    assert repr(emptied) == "AgentMessage(message_id='m', content=[])"


def test_a_bad_field_of_an_upsert_changes_nothing():
    read = decoded('{"terminalId":"t","exitStatus":"soon","sessionUpdate":"terminal_update"}', v2.SessionUpdate)
    assert read == v2.TerminalUpdate(v2.TerminalId("t"))


# State: a variant of session updates that is itself a union


def test_a_state_update_is_all_variants_of_its_union_in_one_class():
    union = second_union(v2.SessionStateUpdate)
    assert union == node_of(v2.StateUpdate)
    inner = {field.wire: field.node for _, cls in union.variants for field in fields_of(cls)}
    flat = {field.wire: field.node for field in fields_of(v2.SessionStateUpdate)}
    assert flat.pop(union.tag_field).known == tuple(tag for tag, _ in union.variants)
    assert flat == inner


def test_the_strict_decoder_reads_state_updates():
    text = b'{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn","background":[]}'
    read = msgspec.json.Decoder(v2.SessionStateUpdate).decode(text)
    assert read == v2.SessionStateUpdate("idle", "end_turn", background=[])
    assert json.loads(codec.encode(read)) == json.loads(text)


def test_an_unknown_state_is_kept_whole():
    text = '{"sessionUpdate":"state_update","state":"dreaming","of":["sheep"]}'
    read = decoded(text, v2.SessionUpdate)
    assert read == Unknown("state_update", json.loads(text))
    assert codec.encode(read).decode() == text


def test_an_unknown_stop_reason_still_ends_the_turn():
    read = decoded('{"sessionUpdate":"state_update","state":"idle","stopReason":"_quota"}', v2.SessionUpdate)
    assert (read.state, read.stop_reason) == ("idle", "_quota")


def test_a_known_state_with_a_bad_payload_is_an_error():
    with pytest.raises(DecodeError, match=r"\$\.state"):
        decoded('{"sessionUpdate":"state_update","state":7}', v2.SessionUpdate)


# Open unions


@pytest.mark.parametrize(
    ("union", "text"),
    [
        (v2.PlanUpdateContent, '{"type":"sketch","planId":"p"}'),
        (v2.AuthMethod, '{"type":"passkey","methodId":"m","name":"Passkey"}'),
        (v2.AvailableCommand, '{"type":"macro","name":"n","description":"d"}'),
        (v2.SessionConfigOption, '{"type":"slider","configId":"c","name":"n","currentValue":3}'),
        (v2.SetSessionConfigOption, '{"type":"number","sessionId":"s","configId":"c","value":3}'),
    ],
)
def test_an_unknown_variant_has_the_fields_that_every_variant_has(union, text):
    read = decoded(text, union)
    assert codec.encode(read).decode() == text
    assert isinstance(read, Unknown)
    for name in read.raw.keys() - {"type", "currentValue", "value"}:
        with pytest.raises(DecodeError, match=rf"is missing at \$\.{name}"):
            codec.convert({key: value for key, value in read.raw.items() if key != name}, union)
        with pytest.raises(DecodeError, match=rf"expected a string, got an integer at \$\.{name}"):
            codec.convert({**read.raw, name: 7}, union)


def test_a_union_of_one_is_read_without_its_tag_and_written_with_it():
    plain, strange = '{"hint":"what"}', '{"type":"voice","language":"en"}'
    read = decoded(f"[{plain},{strange}]", list[v2.AvailableCommandInput])
    assert read == [v2.TextCommandInput("what"), Unknown("voice", json.loads(strange))]
    assert codec.encode(read[0]) == b'{"type":"text","hint":"what"}'


def test_changes_are_told_apart_by_their_operation():
    text = '{"type":"diff","changes":[{"operation":"move","oldPath":"/a","path":"/b"},{"operation":"chmod","mode":7}]}'
    read = decoded(text, v2.ToolCallContent)
    assert read.changes == [v2.DiffMove("/a", "/b"), Unknown("chmod", {"operation": "chmod", "mode": 7})]
    assert codec.encode(read).decode() == text


# Errors


@pytest.mark.parametrize(
    ("data", "means"),
    [
        ('{"sessionId":"s"}', v2.SessionNotFoundErrorData(v2.SessionId("s"))),
        ('{"requested":3,"supported":[1,2]}', v2.UnsupportedProtocolVersionErrorData(3, [1, 2])),
        ('{"sessionId":"s","detail":"x"}', {"sessionId": "s", "detail": "x"}),
        ('{"requested":3,"supported":["2"]}', {"requested": 3, "supported": ["2"]}),
        ('{"requested":true,"supported":[]}', {"requested": True, "supported": []}),
        ('{"sessionId":"s","_meta":7}', {"sessionId": "s", "_meta": 7}),
        ('"text"', "text"),
        ("[1]", [1]),
    ],
)
def test_an_error_s_data_have_a_known_shape_only_if_nothing_is_lost(data, means):
    text = f'{{"code":-32002,"message":"m","data":{data}}}'
    assert decoded(text, v2.Error).data == means
    assert codec.encode(decoded(text, v2.Error)).decode() == text


# Methods


def test_a_request_whose_params_are_one_of_several_classes_says_so_by_itself():
    for request in (v2.SetSessionConfigOptionRequest, v2.CreateElicitationRequest):
        assert row_for(request, "agent").params is not request
        assert methods(2).request(request.__method__).params == row_for(request, "agent").params


@pytest.mark.parametrize(
    "removed", ["session/load", "session/set_mode", "authenticate", "logout", "fs/read_text_file", "terminal/create"]
)
def test_methods_that_version_2_removed_are_unknown_there(removed):
    assert methods(1).request(removed) is not None
    assert methods(2).request(removed) is None


def traits(message):
    names = ("__handshake__", "__immediate__", "__stream__")
    return {name: getattr(message, name) for name in names if getattr(message, name, False)}


def test_a_method_has_the_same_traits_in_both_versions():
    other = {(row.name, row.kind): traits(row.message) for row in methods(1)}
    assert {key: traits(row.message) for row in methods(2) if (key := (row.name, row.kind)) in other} == {
        key: other[key] for row in methods(2) if (key := (row.name, row.kind)) in other
    }
    assert not [row for row in methods(2) if (row.name, row.kind) not in other and traits(row.message)]


@pytest.mark.parametrize(
    ("method", "kind", "found"),
    [
        ("initialize", "request", {"__handshake__": True}),
        ("proxy/initialize", "request", {"__handshake__": True}),
        ("_proxy/initialize", "request", {"__handshake__": True}),
        ("session/cancel", "notification", {"__immediate__": True}),
        ("session/update", "notification", {"__stream__": True}),
        ("initialize", "notification", {}),
        ("session/prompt", "request", {}),
        ("_example.com/own", "request", {}),
    ],
)
def test_the_traits_of_a_method_are_found_by_its_name(method, kind, found):
    assert traits(message_of(method, kind)) == found


def test_the_handshakes_are_known_without_the_table_of_methods():
    marked = {
        row.name for version in (1, 2) for row in methods(version) if getattr(row.message, "__handshake__", False)
    }
    assert marked == HANDSHAKES
    assert all(is_handshake(method) for method in (*HANDSHAKES, "_proxy/initialize"))
    assert not is_handshake("session/new")


# Older forms, from the proposals' pages


@pytest.mark.parametrize(
    ("hint", "older", "today"),
    [
        (v2.PlanUpdateContent, {"type": "items", "id": "p", "entries": []}, v2.PlanItems(v2.PlanId("p"), [])),
        (v1.PlanUpdateContent, {"type": "markdown", "id": "p", "content": "a"}, v1.PlanMarkdown(v1.PlanId("p"), "a")),
        (v2.SessionUpdate, {"sessionUpdate": "plan_removed", "id": "p"}, v2.PlanRemoved(v2.PlanId("p"))),
        (v2.DiffPatch, {"format": "git_patch", "diff": "d"}, v2.DiffPatch("git_patch", "d")),
    ],
)
def test_the_forms_of_the_proposals_pages_are_read(hint, older, today):
    assert codec.decode(json.dumps(older).encode(), hint) == today
