"""The types' values: the helpers that construct them, what they look like in a log, and when they are equal."""

import base64
import copy
import json
import pickle
from typing import Any

import pytest

from accord.schema import v1
from accord.schema.base import Unknown
from accord.schema.codec import encode


def test_text_and_blocks_become_chunks():
    assert v1.UserMessageChunk.of("hi") == v1.UserMessageChunk(v1.TextContent("hi"))
    image = v1.ImageContent("AA==", "image/png")
    assert v1.AgentThoughtChunk.of(image, v1.MessageId("m")) == v1.AgentThoughtChunk(image, "m")
    assert v1.as_block(image) is image


def test_a_prompt_is_made_of_texts_and_blocks():
    link = v1.ResourceLink("a", "file:///a")
    assert v1.PromptRequest.of("s", "look at", link).prompt == [v1.TextContent("look at"), link]


def test_images_and_sounds_are_made_from_bytes_and_files(tmp_path):
    data = bytes(range(256))
    encoded = base64.b64encode(data).decode()
    assert v1.ImageContent.from_bytes(data, "image/webp", uri="u") == v1.ImageContent(encoded, "image/webp", "u")
    assert v1.AudioContent.from_bytes(data, "audio/ogg") == v1.AudioContent(encoded, "audio/ogg")
    for name, mime_type in (("a.jpg", "image/jpeg"), ("b", "image/png")):
        (tmp_path / name).write_bytes(data)
        image = v1.ImageContent.from_file(tmp_path / name)
        assert image == v1.ImageContent(encoded, mime_type, (tmp_path / name).as_uri())
    (tmp_path / "c.wav").write_bytes(data)
    sound = v1.AudioContent.from_file(str(tmp_path / "c.wav"))
    assert (sound.data, sound.mime_type in ("audio/wav", "audio/x-wav")) == (encoded, True)


def test_a_link_to_a_file_knows_its_type_and_its_size(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    link = v1.ResourceLink.to(path, title="Notes", description="What I wrote")
    assert link == v1.ResourceLink("notes.txt", path.as_uri(), "Notes", "What I wrote", "text/plain", 5)
    gone = v1.ResourceLink.to(str(tmp_path / "gone"))
    assert (gone.name, gone.mime_type, gone.size) == ("gone", None, None)


def test_a_resource_is_made_from_text_bytes_or_a_file_of_either(tmp_path):
    (tmp_path / "t.txt").write_text("é", "utf-8")
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe")
    text, blob = (v1.EmbeddedResource.from_file(tmp_path / name).resource for name in ("t.txt", "b.bin"))
    assert text == v1.TextResourceContents("é", (tmp_path / "t.txt").as_uri(), "text/plain")
    assert (type(blob), blob.blob) == (v1.BlobResourceContents, "//4=")
    assert v1.EmbeddedResource.from_text("t", "u").resource == v1.TextResourceContents("t", "u")
    assert v1.EmbeddedResource.from_bytes(b"b", "u", "x/y").resource == v1.BlobResourceContents("Yg==", "u", "x/y")


def test_tool_calls_say_what_they_read_and_change():
    reading = v1.ToolCall.reading("t", "/a")
    assert (reading.title, reading.kind, reading.status) == ("Read /a", "read", "pending")
    assert reading.locations == [v1.ToolCallLocation("/a")]
    editing = v1.ToolCall.editing("t", "/a", "new", "old", title="Fix it")
    assert (editing.title, editing.kind, editing.status) == ("Fix it", "edit", "pending")
    assert (editing.content, editing.locations) == ([v1.Diff("/a", "new", "old")], [v1.ToolCallLocation("/a")])
    assert v1.ToolCall.editing("t", "/a", "new").content == [v1.Diff("/a", "new")]
    assert v1.Content.of("hi") == v1.Content(v1.TextContent("hi"))


def test_a_plan_is_made_of_texts_and_entries():
    done = v1.PlanEntry.of("look", status="completed", priority="low")
    assert v1.Plan.of(done, "fix").entries == [done, v1.PlanEntry("fix", "medium", "pending")]


def test_permission_options_have_usual_names_and_answers_name_them():
    option = v1.PermissionOption.of("allow_always")
    assert option == v1.PermissionOption("allow_always", "Always allow", "allow_always")
    assert v1.PermissionOption.of("reject_once", "No way").name == "No way"
    chosen = v1.RequestPermissionResponse(v1.SelectedPermissionOutcome("allow_always"))
    assert v1.RequestPermissionResponse.selected(option) == chosen
    assert v1.RequestPermissionResponse.selected(option.option_id) == chosen
    assert json.loads(encode(v1.RequestPermissionResponse.cancelled())) == {"outcome": {"outcome": "cancelled"}}


def test_commands_have_a_hint_where_they_take_something():
    assert v1.AvailableCommand.of("plan", "Plan it").input is None
    assert v1.AvailableCommand.of("ask", "Ask", "what?").input == v1.UnstructuredCommandInput("what?")


def test_setting_an_option_says_boolean_where_its_value_is_one():
    assert v1.SetSessionConfigOptionRequest.of("s", "c", True).type == "boolean"
    assert v1.SetSessionConfigOptionRequest.of("s", "c", "on").type is None
    with pytest.raises(ValueError, match="boolean"):
        v1.SetSessionConfigOptionRequest("s", "c", True)


# What they look like and how they compare


def test_a_value_is_shown_as_it_would_be_constructed_without_what_was_not_said():
    assert repr(v1.TextContent("hi")) == "TextContent(text='hi')"
    assert repr(v1.Plan.of("look")) == "Plan(entries=[PlanEntry(content='look', priority='medium', status='pending')])"
    assert repr(Unknown("x", {"type": "x"})) == "Unknown('x', {'type': 'x'})"


@pytest.mark.parametrize(
    "value",
    [
        v1.ImageContent.from_bytes(bytes(10**6), "image/png"),
        v1.ContentChunk.of("x" * 10**6),
        Unknown("x" * 10**6, {"type": "x" * 10**6, "y" * 10**6: ["z"] * 10**6}),
        v1.TextContent("hi", meta={"a": [[["x" * 1000] * 1000] * 1000]}),
        v1.TextContent("hi", meta={"a": 10**5000}),
        v1.TerminalOutputResponse("line\n" * 10**6, True),
    ],
    ids=["an image", "a text", "an unknown variant", "lists in lists", "digits", "terminal output"],
)
def test_a_large_value_is_shown_on_a_line(value):
    assert len(repr(value)) < 300


def test_a_list_of_many_is_shown_by_its_first_and_their_number():
    shown = repr(v1.PromptRequest.of("s", *["word"] * 1000))
    assert "… 992 more" in shown
    assert len(shown) < 300


def test_endless_nesting_is_shown_without_exhausting_the_stack():
    meta: dict[str, Any] = {}
    for _ in range(100_000):
        meta = {"a": meta}
    assert (
        repr(v1.TextContent("hi", meta=meta)) == "TextContent(text='hi', meta={'a': {'a': {'a': {'a': {… 1 more}}}}})"
    )
    meta["self"] = meta
    assert len(repr(v1.TextContent("hi", meta=meta))) < 200


def test_values_are_equal_by_what_they_hold_and_their_type():
    assert v1.TextContent("hi") == v1.TextContent("hi", annotations=None)
    assert v1.TextContent("hi") != v1.TextContent("ho")
    assert v1.UserMessageChunk.of("hi") != v1.AgentMessageChunk.of("hi")
    assert Unknown("x", {"a": 1}) == Unknown("x", {"a": 1})
    assert Unknown("x", {"a": 1}) != Unknown("y", {"a": 1})
    assert Unknown("x", {}) != "x"


def test_an_unknown_variant_is_its_own_copy_and_can_be_matched_and_copied():
    raw = {"type": "hologram"}
    unknown = Unknown("hologram", raw)
    raw["type"] = "changed"
    match unknown:
        case Unknown("hologram", {"type": kind}):
            assert kind == "hologram"
    assert copy.deepcopy(unknown) == pickle.loads(pickle.dumps(unknown)) == unknown


def test_values_do_not_change():
    with pytest.raises(AttributeError):
        v1.TextContent("hi").text = "ho"


def test_two_values_do_not_share_a_list_that_neither_was_given():
    one, other = v1.ToolCall("t", "T"), v1.ToolCall("t", "T")
    one.content.append(v1.Content.of("hi"))
    assert other.content == []
