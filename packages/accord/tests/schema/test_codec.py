"""The codec by example: each rule of how the protocol's types are read and written, and each helper of version 1."""

import contextlib
import json
import sys
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from accord.errors import DecodeError, EncodeError
from accord.schema import legacy, v1, v2
from accord.schema.base import Notification, Request, Shape, Tolerant, Unknown, result_type
from accord.schema.codec import convert, decode, encode, plain
from accord.schema.methods import LEGACY, MESSAGES, methods, row_for

HALF, OTHER_HALF = "\ud83d", "\ude00"
HOLOGRAM = {"type": "hologram", "depth": 3, "_meta": {"a": [None]}}


def read(hint, value):
    return decode(json.dumps(value).encode(), hint)


def problem(hint, value):
    with pytest.raises(DecodeError) as caught:
        read(hint, value)
    return caught.value.path, caught.value.problem


# What the marks say


def test_a_bad_tolerant_field_becomes_its_default():
    assert read(v1.TextContent, {"text": "hi", "annotations": "nonsense"}) == v1.TextContent("hi")
    assert read(v1.FileSystemCapabilities, {"readTextFile": "yes", "writeTextFile": True}).read_text_file is False


def test_a_bad_field_inside_a_tolerant_one_costs_only_the_inner_one():
    annotations = read(v1.TextContent, {"text": "hi", "annotations": {"priority": "high", "lastModified": "now"}})
    assert annotations.annotations == v1.Annotations(last_modified="now")


def test_a_bad_item_of_a_list_that_skips_them_is_dropped():
    step = {"content": "look", "priority": "high", "status": "pending"}
    entries = [step, 7, {"content": "no status"}, None, {**step, "priority": "highest"}, step]
    assert read(v1.Plan, {"entries": entries}).entries == [v1.PlanEntry("look", "high", "pending")] * 2


def test_a_tolerant_list_that_is_not_a_list_becomes_its_default():
    assert read(v1.ToolCall, {"toolCallId": "t", "title": "T", "locations": "here"}).locations == []


def test_a_required_tolerant_list_that_is_bad_becomes_empty_but_may_not_be_missing():
    assert read(v1.Plan, {"entries": "none"}).entries == []
    assert problem(v1.Plan, {}) == ("$.entries", "is missing")


def test_a_null_is_the_default_of_a_field_that_says_so():
    server = read(v1.McpServer, {"name": "s", "command": "c", "args": None, "env": None})
    assert (server.args, server.env) == ([], [])
    assert read(v1.CreateTerminalRequest, {"sessionId": "s", "command": "ls", "args": None}).args == []


def test_a_null_in_a_field_that_is_not_nullable_is_an_error():
    assert problem(v1.TextContent, {"text": None})[0] == "$.text"
    assert problem(v1.PromptRequest, {"sessionId": "s", "prompt": None})[0] == "$.prompt"


def test_a_bad_field_without_a_mark_is_an_error():
    path, text = problem(v1.ReadTextFileRequest, {"sessionId": "s", "path": "/a", "line": "3"})
    assert (path, text) == ("$.line", "expected an integer, got a string")


def test_an_unknown_stop_reason_is_kept_when_read_and_refused_when_written():
    answer = read(v1.PromptResponse, {"stopReason": "out_of_coffee"})
    assert answer.stop_reason == "out_of_coffee"
    with pytest.raises(EncodeError, match=r"stop_reason must be one of end_turn, .* got 'out_of_coffee'"):
        encode(answer)


def test_an_open_set_of_words_takes_any_word_both_ways():
    notice = read(v1.Notice, {"severity": "critical", "title": "Smoke"})
    assert decode(encode(notice), v1.Notice) == notice
    assert problem(v1.Notice, {"severity": 5, "title": "Smoke"})[0] == "$.severity"


def test_a_closed_set_of_words_takes_no_other():
    option = {"optionId": "a", "name": "A", "kind": "allow_twice"}
    path, text = problem(v1.PermissionOption, option)
    assert path == "$.kind"
    assert text == "expected one of 'allow_once', 'allow_always', 'reject_once', 'reject_always', got 'allow_twice'"


def test_unknown_keys_are_ignored():
    assert read(v1.TextContent, {"text": "hi", "color": "red"}) == v1.TextContent("hi")


def test_unstable_fields_are_read_like_any_other():
    usage = {"totalTokens": 3, "inputTokens": 2, "outputTokens": 1}
    assert read(v1.PromptResponse, {"stopReason": "end_turn", "usage": usage}).usage == v1.Usage(3, 2, 1)


# Unions


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (v1.ContentBlock, HOLOGRAM),
        (v1.ToolCallContent, HOLOGRAM),
        (v1.SessionUpdate, {"sessionUpdate": "weather", "sun": True}),
        (v1.RequestPermissionOutcome, {"outcome": "asked_their_mother"}),
        (v1.SessionConfigOption, {"type": "slider", "id": "x", "min": 0}),
        (v1.ElicitationMode, {"mode": "dialect", "message": "Say it", "sessionId": "s"}),
        (v1.CreateElicitationResponse, {"action": "later"}),
        (v1.McpServer, {"type": "pigeon", "loft": "north"}),
        (v1.AuthMethod, {"type": "retina"}),
    ],
    ids=lambda value: value.get("type", "") if isinstance(value, dict) else None,
)
def test_an_unknown_variant_is_kept_as_it_came(hint, value):
    unknown = read(hint, value)
    assert unknown == Unknown(next(iter(value.values())), value)
    assert json.loads(encode(unknown)) == value


def test_unknown_variants_are_kept_in_lists_too_also_in_those_that_drop_bad_items():
    prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}, HOLOGRAM]}
    assert plain(read(v1.PromptRequest, prompt)) == prompt
    call = {"toolCallId": "t", "title": "T", "content": [HOLOGRAM, {"type": "diff"}, {"type": "content"}, 5]}
    assert read(v1.ToolCall, call).content == [Unknown("hologram", HOLOGRAM)]


def test_an_unknown_variant_survives_deep_inside_a_message():
    update = {"sessionUpdate": "agent_message_chunk", "content": HOLOGRAM}
    message = read(v1.SessionNotification, {"sessionId": "s", "update": update})
    assert isinstance(message.update, v1.AgentMessageChunk)
    assert json.loads(encode(message)) == {"sessionId": "s", "update": update}


def test_a_known_tag_with_a_bad_payload_is_an_error_and_not_unknown():
    assert problem(v1.ContentBlock, {"type": "image", "data": "AA=="}) == ("$.mimeType", "is missing")


def test_a_missing_tag_and_a_tag_that_is_not_a_string_are_errors():
    assert problem(v1.ContentBlock, {"text": "hi"}) == ("$.type", "is missing")
    assert problem(v1.ContentBlock, {"type": 7}) == ("$.type", "expected a string, got an integer")
    assert problem(v1.ContentBlock, "hi") == ("$", "expected an object, got a string")


def test_a_server_without_a_type_or_with_a_strange_one_is_a_process_if_it_has_the_shape_of_one():
    stdio = {"name": "s", "command": "c", "args": [], "env": []}
    for extra in ({}, {"type": "stdio"}, {"type": "pigeon"}, {"type": 5}):
        assert read(v1.McpServer, {**extra, **stdio}) == v1.McpServerStdio("s", "c", [], [])
    assert problem(v1.McpServer, {"type": "stdio", "name": "s"}) == ("$.command", "is missing")
    assert problem(v1.McpServer, {"type": "http", **stdio}) == ("$.url", "is missing")


def test_an_auth_method_without_a_type_or_with_a_strange_one_is_done_by_the_agent():
    for extra in ({}, {"type": "agent"}, {"type": "retina"}):
        assert read(v1.AuthMethod, {**extra, "id": "a", "name": "A"}) == v1.AuthMethodAgent("a", "A")


def test_a_resource_is_text_or_bytes_by_what_it_has():
    text, blob = {"uri": "u", "text": "t"}, {"uri": "u", "blob": "Yg=="}
    assert read(v1.EmbeddedResource, {"resource": text}).resource == v1.TextResourceContents("t", "u")
    assert read(v1.EmbeddedResource, {"resource": blob}).resource == v1.BlobResourceContents("Yg==", "u")
    assert problem(v1.EmbeddedResource, {"resource": {"uri": "u"}})[0] == "$.resource"


def test_options_are_flat_or_in_groups():
    option = {"value": "v", "name": "V"}
    flat = read(v1.SessionConfigSelectOptions, [option])
    groups = read(v1.SessionConfigSelectOptions, [{"group": "g", "name": "G", "options": [option, 3]}])
    assert flat == groups[0].options == [v1.SessionConfigSelectOption("v", "V")]
    assert (
        problem(v1.SessionConfigSelectOptions, [{"group": "g", "name": "G", "options": []}, option])[0] == "$[0].value"
    )


def test_the_value_of_an_option_goes_with_its_type():
    request = {"sessionId": "s", "configId": "c"}
    assert read(v1.SetSessionConfigOptionRequest, {**request, "value": "on"}).value == "on"
    assert read(v1.SetSessionConfigOptionRequest, {**request, "type": "boolean", "value": True}).value is True
    assert read(v1.SetSessionConfigOptionRequest, {**request, "type": "select", "value": "on"}).type is None
    for wrong in ({"value": True}, {"type": "boolean", "value": "on"}, {"type": "select", "value": True}):
        assert problem(v1.SetSessionConfigOptionRequest, {**request, **wrong})[0] == "$"


def test_an_elicitation_belongs_to_a_session_or_to_a_request():
    form = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    assert read(v1.ElicitationMode, {**form, "sessionId": "s"}).request_id is UNSET
    assert read(v1.ElicitationMode, {**form, "requestId": None}).request_id is None
    assert problem(v1.ElicitationMode, form)[0] == "$"


def test_an_elicitation_of_version_2_belongs_to_one_of_them_and_not_to_both():
    form = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    assert read(v2.ElicitationMode, {**form, "requestId": 3}).session_id is None
    for scopes in ({}, {"sessionId": "s", "requestId": 3}):
        assert problem(v2.ElicitationMode, {**form, **scopes})[0] == "$"


# Absent, null and a value


def test_absent_null_and_a_value_are_three_things_in_a_session_info_update():
    def title_of(**fields):
        return read(v1.SessionUpdate, {"sessionUpdate": "session_info_update", **fields}).title

    assert [title_of(), title_of(title=None), title_of(title="T"), title_of(title=5)] == [UNSET, None, "T", UNSET]
    written = [json.loads(encode(v1.SessionInfoUpdate(title=title))) for title in (UNSET, None, "T")]
    tag = {"sessionUpdate": "session_info_update"}
    assert written == [tag, {**tag, "title": None}, {**tag, "title": "T"}]


def test_elsewhere_null_and_absent_are_the_same_and_neither_is_written():
    assert read(v1.TextContent, {"text": "hi", "annotations": None, "_meta": None}) == v1.TextContent("hi")
    assert json.loads(encode(v1.TextContent("hi"))) == {"type": "text", "text": "hi"}


def test_defaults_are_not_written_and_what_was_set_is():
    assert json.loads(encode(v1.PromptCapabilities(image=False, audio=True))) == {"audio": True}
    assert json.loads(encode(v1.ToolCall("t", "T", content=[]))) == {
        "sessionUpdate": "tool_call", "toolCallId": "t", "title": "T",
    }  # fmt: skip


def test_an_empty_list_in_a_tool_call_update_clears_and_is_therefore_written():
    assert json.loads(encode(v1.ToolCallUpdate("t", content=[]))) == {"toolCallId": "t", "content": []}


def test_meta_is_anything_and_comes_back_as_it_was():
    meta = {"trace": {"id": 2**63, "flags": [None, 1.5, True, "é"]}, "": {}, "sessionId": "not the session's"}
    request = read(v1.CancelNotification, {"sessionId": "s", "_meta": meta})
    assert (request.session_id, request.meta) == ("s", meta)
    assert json.loads(encode(request))["_meta"] == meta


def test_a_meta_that_is_not_an_object_is_ignored():
    assert read(v1.CancelNotification, {"sessionId": "s", "_meta": [1]}).meta is None


# Where the error is


def chunk(text):
    return {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}


SERVER = {"name": "n", "command": "c", "args": [], "env": []}

MISTAKES = [
    (v1.PromptRequest, [], "$"),
    (v1.PromptRequest, {"prompt": []}, "$.sessionId"),
    (
        v1.PromptRequest,
        {"sessionId": "s", "prompt": [{"type": "text", "text": "a"}, {"type": "text"}]},
        "$.prompt[1].text",
    ),
    (v1.SessionNotification, {"sessionId": "s", "update": chunk(1)}, "$.update.content.text"),
    (v1.NewSessionRequest, {"cwd": "/", "mcpServers": [SERVER, {**SERVER, "args": [1]}]}, "$.mcpServers[1].args[0]"),
    (v1.SetProviderRequest, {"providerId": "p", "apiType": "x", "baseUrl": "u", "headers": {"a": 1}}, "$.headers.a"),
    (v1.RequestPermissionRequest, {"sessionId": "s", "toolCall": {}, "options": []}, "$.toolCall.toolCallId"),
]


@pytest.mark.parametrize(("hint", "value", "path"), MISTAKES, ids=[path for _, _, path in MISTAKES])
def test_an_error_names_its_place_in_the_words_of_the_wire(hint, value, path):
    assert problem(hint, value)[0] == path


def test_an_error_says_path_and_problem_in_one_line():
    with pytest.raises(DecodeError, match=r"^expected a string, got null at \$\.text$"):
        read(v1.TextContent, {"text": None})


def test_an_error_quotes_no_more_than_a_line_of_what_was_sent():
    _, text = problem(v1.PlanEntry, {"content": "c", "priority": "x" * 10**6, "status": "pending"})
    assert len(text) < 200
    _, text = problem(v1.InitializeRequest, {"protocolVersion": 10**4000})
    assert len(text) < 200
    with pytest.raises(DecodeError, match="got a number of many digits"):
        convert({"protocolVersion": 10**5000}, v1.InitializeRequest)


# Texts


def test_half_an_emoji_is_read_kept_and_written():
    chunk = decode(
        b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\ud83d"}}', v1.SessionUpdate
    )
    assert chunk == v1.AgentMessageChunk.of(HALF)
    assert encode(chunk) == b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\ud83d"}}'


def test_half_an_emoji_is_kept_in_meta_in_keys_and_in_unknown_variants():
    value = {"type": HALF, HALF: HALF, "_meta": {HALF: [HALF]}}
    assert json.loads(encode(read(v1.ContentBlock, value))) == value


def test_two_halves_in_one_text_are_one_emoji():
    assert decode(b'{"text":"\\ud83d\\ude00"}', v1.TextContent).text == "😀"
    assert encode(v1.TextContent(HALF + OTHER_HALF)).endswith(b'"\\ud83d\\ude00"}')


def test_invalid_utf8_is_replaced():
    assert decode(b'{"text":"caf\xe9"}', v1.TextContent).text == "caf\ufffd"


def test_a_byte_order_mark_is_skipped():
    assert decode(b'\xef\xbb\xbf{"text":"hi"}', v1.TextContent).text == "hi"


@pytest.mark.parametrize(
    "data", [b"", b" ", b"{", b'{"text":"hi"', b'{"text":"hi"}}', b"{'text':'hi'}", b"\xff", b"nul"]
)
def test_invalid_json_is_an_error_at_its_root(data):
    with pytest.raises(DecodeError, match=r"^not JSON: .* at \$$"):
        decode(data, v1.TextContent)


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" * 5000, "01", "+1", "1.", ".5", "0x1"]
)
def test_nan_and_infinity_are_errors_when_read(number):
    with pytest.raises(DecodeError) as caught:
        decode(b'{"text":"hi","_meta":{"a":%s}}' % number.encode(), v1.TextContent)
    assert caught.value.path == "$"


def test_a_whole_number_may_have_many_digits_where_anything_may_be():
    data = b'{"type":"text","text":"hi","_meta":{"a":123456789012345678901234567890}}'
    assert encode(decode(data, v1.TextContent)) == data


@pytest.mark.parametrize("opening", [b'{"a":', b"["])
def test_endless_nesting_is_an_error(opening):
    with pytest.raises(DecodeError, match="nested too deeply"):
        decode(b'{"text":"hi","_meta":{"a":' + opening * 10_000, v1.TextContent)


def test_of_duplicate_keys_the_last_one_counts():
    assert decode(b'{"text":"a","text":"b"}', v1.TextContent).text == "b"
    assert decode(b'{"type":"image","text":"a","type":"text"}', v1.ContentBlock) == v1.TextContent("a")


@pytest.mark.parametrize("number", ["3", "3.0", "30e-1", "0.3e1"])
def test_a_whole_number_may_be_written_as_a_fraction(number):
    location = decode(b'{"path":"/a","line":%s}' % number.encode(), v1.ToolCallLocation)
    assert (location.line, type(location.line)) == (3, int)


def test_a_fraction_is_not_an_integer_and_a_boolean_is_not_a_number():
    for wrong in (3.5, True, -1, 2**32):
        assert problem(v1.ReadTextFileRequest, {"sessionId": "s", "path": "/a", "line": wrong})[0] == "$.line"


def test_a_whole_number_will_do_for_a_fraction():
    assert read(v1.Cost, {"amount": 1, "currency": "EUR"}).amount == 1.0
    assert problem(v1.Cost, {"amount": 10**400, "currency": "EUR"})[0] == "$.amount"


def test_whole_numbers_have_the_bounds_of_their_types():
    assert read(v1.UsageUpdate, {"used": 2**64 - 1, "size": 0}).used == 2**64 - 1
    assert read(v1.RequestId, -(2**63)) == -(2**63)
    assert problem(v1.RequestId, 2**63)[0] == "$"
    assert problem(v1.InitializeRequest, {"protocolVersion": 65536})[0] == "$.protocolVersion"


def test_a_request_id_keeps_its_type():
    assert [read(v1.RequestId, each) for each in (3, "3", None)] == [3, "3", None]


def test_raw_json_of_an_envelope_is_read_like_bytes():
    assert decode(msgspec.Raw(b'{"text":"hi"}'), v1.TextContent) == v1.TextContent("hi")
    assert decode(msgspec.Raw(b'{"text":"\\ud83d","annotations":1}'), v1.TextContent) == v1.TextContent(HALF)


def test_plain_values_are_read_like_the_text_that_they_stand_for():
    value = {"sessionId": "s", "prompt": [{"type": "text", "text": "hi", "annotations": 5}, HOLOGRAM]}
    assert convert(value, v1.PromptRequest) == read(v1.PromptRequest, value)


# Older forms


def test_a_mode_update_with_the_older_name_is_read():
    update = {"sessionUpdate": "current_mode_update", "modeId": "code"}
    assert read(v1.SessionUpdate, update) == v1.CurrentModeUpdate("code")
    assert read(v1.SessionUpdate, {**update, "currentModeId": "ask"}) == v1.CurrentModeUpdate("ask")
    assert json.loads(encode(v1.CurrentModeUpdate("code")))["currentModeId"] == "code"


@pytest.mark.parametrize(("name", "older", "newer"), [
    (name, older, newer) for name, fields in legacy.RENAMED_FIELDS.items() for older, newer in fields.items()
])  # fmt: skip
def test_every_older_name_stands_for_a_field_that_there_is(name, older, newer):
    from accord.schema.type_tree import fields_of

    classes = [getattr(version, name) for version in (v1, v2) if hasattr(version, name)]
    assert classes
    for cls in classes:
        wires = {field.wire for field in fields_of(cls)}
        assert newer in wires
        assert older not in wires


def test_environment_variables_as_an_auth_method_are_read():
    method = {
        "type": "env_var",
        "id": "key",
        "name": "API key",
        "vars": [{"name": "KEY", "optional": True}],
        "link": "u",
    }
    read_method = read(v1.AuthMethod, method)
    assert read_method == v1.AuthMethodEnvVar("key", "API key", [v1.AuthEnvVar("KEY", optional=True)], link="u")
    assert read_method.vars[0].secret is True


@pytest.mark.parametrize("version", [v1, v2])
@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "done"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
    ],
    ids=lambda block: block["type"],
)
def test_a_bare_content_block_of_a_tool_call_is_its_content(version, block):
    known = {"type": "content", "content": {"type": "text", "text": "first"}}
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [known, block]}
    content = read(version.SessionUpdate, update).content
    assert [type(part) for part in content] == [version.Content, version.Content]
    assert plain(content[1].content) == block


def test_a_bare_block_that_does_not_fit_is_dropped_and_unknown_content_is_kept():
    content = [{"type": "text"}, {"type": "hologram", "depth": 3}]
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": content}
    assert read(v1.SessionUpdate, update).content == [Unknown("hologram", content[1])]


def test_next_edit_suggestions_keep_meta_wherever_the_snapshot_of_the_proposal_has_it():
    position = {"line": 1, "character": 2, "_meta": {"a": 1}}
    action = {"action": "insertChar", "uri": "u", "position": position, "timestampMs": 3, "_meta": {"b": 2}}
    assert plain(read(v1.NesUserAction, action)) == action


def test_a_terminal_login_in_meta_is_found_where_it_makes_sense():
    def found(said):
        return legacy.terminal_auth({"terminal-auth": said})

    login = {"command": "agent", "args": ["login", 7], "env": {"A": 1}, "label": "Log in"}
    assert found(login) == legacy.TerminalAuth("agent", ["login", "7"], {"A": "1"}, "Log in")
    assert found({"command": "agent"}) == legacy.TerminalAuth("agent", [], {}, None)
    for nonsense in (None, 5, [], {}, {"command": 5}, {"command": "a", "args": "login"}, {"command": "a", "env": [1]}):
        assert found(nonsense) is None
    assert legacy.terminal_auth(None) is None
    assert legacy.terminal_auth({"other": 1}) is None


def test_a_null_result_stands_for_an_empty_one():
    assert decode(legacy.empty_result(b"null"), v1.SetSessionModeResponse) == v1.SetSessionModeResponse()
    assert legacy.empty_result(b'{"a":null}') == b'{"a":null}'
    with pytest.raises(DecodeError):
        decode(legacy.empty_result(b"null"), v1.PromptResponse)


def test_each_name_in_the_table_of_methods_is_a_message_of_a_version():
    names = [name for table in (MESSAGES, LEGACY) for side in table.values() for name in side]
    assert len(names) == len(set(names))
    assert [name for name in names if not (hasattr(v1, name) or hasattr(v2, name))] == []
    assert [name for side in LEGACY.values() for name in side if not hasattr(v1, name)] == []


def test_older_messages_have_a_row_of_their_own():
    older = {row.name for row in methods(1) if row.legacy}
    assert {"nes/suggest", "document/didOpen", "mcp/connect", "mcp/disconnect"} <= older
    assert set(legacy.RENAMED_METHODS.values()) <= {row.name for row in methods(1)}


# Writing


def test_json_is_written_on_one_line_in_the_words_of_the_wire():
    request = v1.ReadTextFileRequest("s", "/a\n", line=3)
    assert encode(request) == b'{"sessionId":"s","path":"/a\\n","line":3}'


def cycle():
    meta: dict[str, Any] = {}
    meta["self"] = meta
    return v1.TextContent("hi", meta=meta)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        v1.TextContent("hi", meta={"a": object()}),
        v1.TextContent(HALF, meta={"a": object()}),
        v1.TextContent("hi", meta={("a", "b"): 1}),
        v1.TextContent("hi", meta={"a": 10**5000}),
        cycle(),
        Unknown("x", {"type": "x", "f": print}),
    ],
    ids=[
        "an object",
        "in meta",
        "beside half an emoji",
        "a key",
        "too many digits",
        "a cycle",
        "in an unknown variant",
    ],
)
def test_a_value_without_a_json_form_is_an_error_that_names_the_type(value):
    with pytest.raises(EncodeError, match=rf"^{type(value).__name__} cannot be written as JSON: "):
        encode(value)


def test_bytes_are_written_in_base64_as_the_protocol_carries_them():
    assert decode(encode(v1.ImageContent(b"\x00\xff", "image/png")), v1.ImageContent).data == "AP8="


def test_nan_and_infinity_are_written_as_null_like_javascript_does():
    assert json.loads(encode(v1.Cost(float("nan"), "EUR")))["amount"] is None


def test_plain_gives_what_would_be_on_the_wire():
    chunk = v1.AgentMessageChunk.of("hi", v1.MessageId("m"))
    assert plain(chunk) == json.loads(encode(chunk))
    with pytest.raises(EncodeError):
        plain(cycle())


# Messages of one's own


class Greeting(Shape):
    text: str


class Greet(Request[Greeting], method="_example.com/greet"):
    name: str
    times: Tolerant[int] = 1


class Waved(Notification, method="_example.com/waved"):
    both_hands: bool = False


def test_a_request_of_ones_own_is_read_and_written_like_a_built_in_one():
    greet = read(Greet, {"name": "Ada", "times": "often", "_meta": {"a": 1}})
    assert greet == Greet("Ada", meta={"a": 1})
    assert json.loads(encode(Greet("Ada", 2))) == {"name": "Ada", "times": 2}
    assert problem(Greet, {"name": 5})[0] == "$.name"
    assert result_type(Greet) is Greeting


def test_a_notification_of_ones_own_is_written_in_camel_case():
    assert json.loads(encode(Waved(both_hands=True))) == {"bothHands": True}


def test_messages_of_ones_own_make_a_row_like_the_others():
    row = row_for(Greet, "agent")
    assert (row.name, row.kind, row.to, row.params, row.result) == (
        "_example.com/greet",
        "request",
        "agent",
        Greet,
        Greeting,
    )
    row = row_for(Waved, "client")
    assert (row.name, row.kind, row.result) == ("_example.com/waved", "notification", None)


def test_a_request_class_without_a_result_type_is_told_how_to_declare_it():
    class Silent(Request, method="_example.com/silent"):
        pass

    with pytest.raises(TypeError, match=r"class Silent\(Request\[ResultType\]\)"):
        result_type(Silent)


def test_a_request_may_be_answered_by_any_type_that_can_be_read():
    class Count(Request[dict[str, list[int]]], method="_example.com/count"):
        pass

    assert decode(b'{"a":[1,2.0]}', result_type(Count)) == {"a": [1, 2]}
    assert problem(result_type(Count), {"a": [1, "2"]})[0] == "$.a[1]"


# How much work it is


def calls(work):
    """How many calls this takes, of Python and of C."""
    work()  # what is made once is made now
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


STEP = {"content": "look", "priority": "high", "status": "pending"}
TEXT = {"type": "text", "text": "hi"}

GROWING = {
    "bad items": (v1.Plan, lambda size: {"entries": [{**STEP, "status": 1}] * size}),
    "bad items among good ones": (v1.Plan, lambda size: {"entries": [STEP, 5] * size}),
    "unknown variants": (v1.PromptRequest, lambda size: {"sessionId": "s", "prompt": [TEXT, HOLOGRAM] * size}),
    "bad fields in items": (v1.PromptRequest, lambda size: {"sessionId": "s", "prompt": [{**TEXT, "_meta": 1}] * size}),
    "lists in lists": (
        v1.ListSessionsResponse,
        lambda size: {"sessions": [{"sessionId": "s", "cwd": "/", "additionalDirectories": [1, "/a"] * size}] * 3},
    ),
    "unknown variants in lists in lists": (
        v1.SetSessionConfigOptionResponse,
        lambda size: {"configOptions": [{"type": "slider", "at": [1] * size}] * size},
    ),
    "fields of a form": (
        v1.ElicitationSchema,
        lambda size: {"properties": {f"p{index}": {"type": "string", "title": 5} for index in range(size)}},
    ),
    "servers": (
        v1.NewSessionRequest,
        lambda size: {"cwd": "/", "mcpServers": [{"type": "pigeon", "name": "n"}] * size},
    ),
    "keys that nobody knows": (v1.TextContent, lambda size: {"text": 5, **{f"k{index}": 1 for index in range(size)}}),
}  # fmt: skip


@pytest.mark.parametrize("name", GROWING)
def test_reading_tolerantly_takes_work_in_proportion_to_what_was_sent(name):
    hint, make = GROWING[name]

    def work(size):
        data = json.dumps(make(size)).encode()

        def attempt():
            with contextlib.suppress(DecodeError):
                decode(data, hint)

        return calls(attempt)

    once, twice, four_times = work(200), work(400), work(800)
    assert twice <= 2.1 * once
    assert four_times <= 2.1 * twice


def test_what_is_large_but_good_costs_nothing_beside_something_bad():
    def work(size):
        data = json.dumps({"text": "x" * size, "annotations": 5, "_meta": {"a": [1] * size}}).encode()
        return calls(lambda: decode(data, v1.TextContent))

    assert work(100_000) < work(10) + 500  # it is counted in blocks


def test_good_traffic_is_read_and_written_in_a_handful_of_calls():
    update = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t",
        "title": "T",
        "content": [{"type": "content", "content": TEXT}],
    }
    data = json.dumps({"sessionId": "s", "update": update}).encode()
    message = decode(data, v1.SessionNotification)
    assert calls(lambda: decode(data, v1.SessionNotification)) <= 5
    assert calls(lambda: encode(message)) <= 6
