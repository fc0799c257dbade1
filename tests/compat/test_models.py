"""The models: the official SDK's classes and ours hold, refuse and write the same."""

import json
from pathlib import Path

import acp.schema as official
import jsonschema
import pydantic
import pytest

from accord.compat.acp import schema as ours
from accord.compat.models import ValidationError

RECORDED = Path(__file__).parents[2] / "interop" / "recorded"
OTHERS = {"ConnectMcpRequest", "MessageMcpRequest", "MessageMcpNotification"}
"""Messages of a proposal that has changed since the official release: ours have its present fields."""

SHARED = sorted(
    name
    for name in ours.__all__
    if isinstance(getattr(official, name, None), type) and name not in OTHERS | {"BaseModel"}
)


def plain(value):
    """A default as plain values, without what only one of the two has."""
    return value.model_dump(exclude_none=True) if hasattr(value, "model_dump") else value


def test_every_model_of_the_official_sdk_is_there():
    theirs = {
        name
        for name, it in vars(official).items()
        if isinstance(it, type) and issubclass(it, pydantic.BaseModel) and it.__module__ == "acp.schema"
    }
    named = {name for name in theirs if not name.startswith(("_", "RootModel["))}
    assert named <= set(ours.__all__)
    assert len(named) > 250


@pytest.mark.parametrize("name", SHARED)
def test_a_model_has_the_fields_of_the_official_one(name):
    mine = getattr(ours, name).model_fields
    for field, theirs in getattr(official, name).model_fields.items():
        assert mine[field].alias == (theirs.alias or field)
        if (name, field) != ("ElicitationSchema", "type"):
            assert mine[field].is_required() == theirs.is_required()
            if not theirs.is_required():
                expected = plain(theirs.get_default(call_default_factory=True))
                assert plain(mine[field].default) == ({} if expected == {"auth": {}} else expected)


def messages():
    """The params and results of the recorded conversations, each with the model that it belongs to."""
    by_method = {
        "initialize": "InitializeRequest",
        "session/new": "NewSessionRequest",
        "session/load": "LoadSessionRequest",
        "session/prompt": "PromptRequest",
        "session/update": "SessionNotification",
        "session/request_permission": "RequestPermissionRequest",
        "fs/write_text_file": "WriteTextFileRequest",
        "fs/read_text_file": "ReadTextFileRequest",
    }
    for path in sorted(RECORDED.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            frame = json.loads(line).get("frame")
            if isinstance(frame, dict) and (model := by_method.get(frame.get("method"))):
                yield model, frame["params"]


def test_recorded_messages_are_read_and_written_as_the_official_models_do():
    seen = set()
    for name, params in messages():
        options = {"mode": "json", "by_alias": True, "exclude_none": True, "exclude_unset": True}
        try:
            theirs = getattr(official, name).model_validate(params).model_dump(**options)
        except pydantic.ValidationError:
            assert params["update"]["sessionUpdate"] == "notice"  # newer than the official release
            continue
        mine = getattr(ours, name).model_validate(params).model_dump(**options)
        assert subset(theirs, mine), (theirs, mine)
        seen.add((name, params.get("update", {}).get("sessionUpdate")))
    assert len(seen) > 8


def subset(theirs, mine):
    """Whether ours has all that theirs has; ours may know newer fields."""
    if isinstance(theirs, dict):
        return all(key in mine and subset(value, mine[key]) for key, value in theirs.items())
    if isinstance(theirs, list):
        return len(theirs) == len(mine) and all(map(subset, theirs, mine))
    return theirs == mine


def test_a_model_takes_names_of_both_kinds_and_plain_objects():
    by_name = ours.NewSessionResponse(session_id="s", modes={"currentModeId": "m", "availableModes": []})
    by_alias = ours.NewSessionResponse(
        sessionId="s", modes=ours.SessionModeState(current_mode_id="m", available_modes=[])
    )
    assert by_name == by_alias
    assert by_name.sessionId == "s"
    assert isinstance(by_name.modes, ours.SessionModeState)


def test_a_wrong_value_names_its_place():
    with pytest.raises(ValidationError, match=r"update\.content\.text: must be a string, got int"):
        ours.SessionNotification(
            session_id="s",
            update={"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 5}},
        )
    with pytest.raises(ValidationError, match="PromptResponse: stopReason: is required"):
        ours.PromptResponse()


def test_an_attribute_that_is_no_field_cannot_be_set():
    block = ours.TextContentBlock(text="x")
    with pytest.raises(ValueError, match="TextContentBlock has no field 'txt'; for extensions use field_meta"):
        block.txt = "y"


def test_a_changed_field_is_written_and_a_default_that_was_only_read_is_not():
    answer = ours.InitializeResponse(protocol_version=1)
    assert answer.agent_capabilities.load_session is False
    assert answer.model_dump(by_alias=True, exclude_unset=True) == {"protocolVersion": 1}
    answer.agent_info = ours.Implementation(name="x", version="1")
    dumped = answer.model_dump(by_alias=True, exclude_unset=True)
    assert dumped == {"protocolVersion": 1, "agentInfo": {"name": "x", "version": "1"}}


def test_a_deep_copy_shares_nothing():
    start = ours.ToolCallStart(tool_call_id="1", title="t", content=[{"type": "diff", "path": "/a", "newText": "x"}])
    copied = start.model_copy(update={"title": "other"}, deep=True)
    copied.content[0].path = "/b"
    assert (start.title, start.content[0].path) == ("t", "/a")
    assert ours.ToolCallStart.model_validate_json(start.model_dump_json(by_alias=True)) == start


@pytest.mark.parametrize("name", SHARED)
def test_the_json_schema_of_a_model_has_the_official_one_s_members(name):
    theirs, mine = getattr(official, name).model_json_schema(), getattr(ours, name).model_json_schema()
    assert set(theirs.get("properties", ())) <= set(mine.get("properties", ()))
    if name != "ElicitationSchema":
        required = set(mine.get("required", ())) & set(theirs.get("properties", ()))
        assert required == set(theirs.get("required", ()))


def test_recorded_messages_fit_the_json_schema_of_their_models():
    one_of_each = {(name, params.get("update", {}).get("sessionUpdate")): params for name, params in messages()}
    for (name, _), params in one_of_each.items():
        jsonschema.validate(params, getattr(ours, name).model_json_schema())
    assert len(one_of_each) > 8


def test_a_json_schema_refuses_what_the_model_refuses():
    wrong = {"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}}}
    with pytest.raises(ValidationError):
        ours.SessionNotification.model_validate(wrong)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, ours.SessionNotification.model_json_schema())


def test_a_json_schema_has_names_and_references_as_asked():
    schema = ours.AvailableCommand.model_json_schema(by_alias=False, ref_template="#/components/{model}")
    assert set(schema["properties"]) == {"name", "description", "input", "field_meta"}
    assert {"$ref": "#/components/AvailableCommandInput"} in schema["properties"]["input"]["anyOf"]
    assert set(schema["$defs"]) == {"AvailableCommandInput", "UnstructuredCommandInput"}


def test_a_field_tells_its_type():
    fields = ours.ToolCallLocation.model_fields
    assert (fields["path"].annotation, fields["line"].annotation) == (str, int | None)
    assert ours.NewSessionResponse.model_fields["modes"].annotation == ours.SessionModeState | None


def test_our_models_have_their_place_in_a_json_schema_of_pydantic_s():
    class Held(pydantic.BaseModel):
        updates: list[ours.AgentMessageChunk]

    schema = Held.model_json_schema()
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}
    jsonschema.validate({"updates": [chunk]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"updates": [{**chunk, "content": {"type": "text"}}]}, schema)


def test_our_models_are_fields_of_pydantic_s():
    class Held(pydantic.BaseModel):
        update: ours.AgentMessageChunk

    held = Held(update={"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}})
    assert held.update.content.text == "hi"
    assert json.loads(held.model_dump_json())["update"]["content"] == {"type": "text", "text": "hi"}
    with pytest.raises(pydantic.ValidationError, match="content: is required"):
        Held(update={"sessionUpdate": "agent_message_chunk"})
