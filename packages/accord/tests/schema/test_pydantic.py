"""The protocol's types as fields of pydantic models and as bodies of FastAPI, with the real packages."""

import subprocess
import sys
from typing import Annotated, get_origin

import pytest

from accord import updates, v1, v2
from accord.schema import codec
from accord.schema.base import Unknown

pydantic = pytest.importorskip("pydantic")
jsonschema = pytest.importorskip("jsonschema")

SELECT = {
    "type": "select",
    "id": "model",
    "name": "Model",
    "currentValue": "big",
    "options": [{"value": "big", "name": "Big"}],
}
CHUNK = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}
STDIO = {"name": "clock", "command": "clock", "args": [], "env": []}
HTTP = {"name": "clock", "url": "https://clock.example", "headers": []}
VALUES = [
    (v1.TextContent, {"type": "text", "text": "hi"}, v1.TextContent("hi")),
    (v1.ContentBlock, {"type": "text", "text": "hi"}, v1.TextContent("hi")),
    (v1.ContentBlock, {"type": "hologram", "depth": 3}, Unknown("hologram", {"type": "hologram", "depth": 3})),
    (updates.AgentMessageChunk, CHUNK, v1.AgentMessageChunk.of("hi")),
    (v1.SessionUpdate, CHUNK, v1.AgentMessageChunk.of("hi")),
    (v2.SessionUpdate, {"sessionUpdate": "plan_removed", "planId": "p"}, updates.PlanRemoved("p")),
    (v1.SessionConfigOption, SELECT, codec.convert(SELECT, v1.SessionConfigSelect)),
    (v1.StopReason, "end_turn", "end_turn"),
    (v1.PromptResponse, {"stopReason": "refusal", "_meta": {"a": 1}}, v1.PromptResponse("refusal", meta={"a": 1})),
    (v1.NewSessionResponse, {"sessionId": "s"}, v1.NewSessionResponse("s")),
    (updates.Update, CHUNK, v1.AgentMessageChunk.of("hi")),
    (updates.Update, {"sessionUpdate": "hologram"}, Unknown("hologram", {"sessionUpdate": "hologram"})),
    (v1.McpServer, STDIO, v1.McpServerStdio("clock", "clock", args=[], env=[])),
    (v1.McpServer, {"type": "http", **HTTP}, v1.McpServerHttp("clock", "https://clock.example", headers=[])),
    (v1.SessionConfigSelectOptions, SELECT["options"], [v1.SessionConfigSelectOption("big", "Big")]),
]


@pytest.mark.parametrize(("wanted", "plain", "value"), VALUES)
def test_a_type_is_read_and_written_as_on_the_wire_and_described_as_json_schema(wanted, plain, value):
    model = pydantic.create_model("Holder", value=(wanted, ...), more=(list[wanted], []))
    for made in (
        model(value=value, more=[value]),
        model.model_validate({"value": plain, "more": [plain]}),
        model.model_validate_json(model(value=value, more=[value]).model_dump_json()),
    ):
        assert made.value == value
        assert made.more == [value]
        assert made.model_dump(mode="json") == {"value": plain, "more": [plain]}
    schema = model.model_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"value": plain, "more": [plain]}, schema)


@pytest.mark.parametrize("module", [v1, v2, updates])
def test_every_type_of_a_module_can_be_a_field(module):
    for wanted in (getattr(module, name) for name in dir(module)):
        if (isinstance(wanted, type) or get_origin(wanted)) and wanted is not Unknown:
            pydantic.TypeAdapter(wanted).json_schema()


@pytest.mark.parametrize(
    ("wanted", "plain", "said"),
    [
        (v1.TextContent, {"type": "text"}, r"is missing at \$\.text"),
        (v1.ContentBlock, {"type": "image", "data": 3, "mimeType": "image/png"}, r"\$\.data"),
        (v1.SessionUpdate, {}, r"\$\.sessionUpdate"),
        (v1.TextContent, v1.ImageContent("aGk=", "image/png"), "value"),
        (v1.TextContent, 3, "value"),
    ],
)
def test_a_value_that_does_not_fit_is_a_validation_error_with_its_path(wanted, plain, said):
    with pytest.raises(pydantic.ValidationError, match=said):
        pydantic.create_model("Holder", value=(wanted, ...))(value=plain)


def test_fastapi_reads_describes_and_answers_with_them():
    fastapi = pytest.importorskip("fastapi")
    client_of = pytest.importorskip("fastapi.testclient").TestClient
    app = fastapi.FastAPI()

    @app.post("/last")
    def last(blocks: list[v1.ContentBlock]) -> v1.ContentBlock:
        return blocks[-1]

    @app.post("/same")
    def same(server: Annotated[v1.McpServer, fastapi.Body()]) -> v1.McpServer:
        return server

    with client_of(app) as client:
        text = {"type": "text", "text": "hi"}
        assert client.post("/last", json=[text, text]).json() == text
        wrong = client.post("/last", json=[{"type": "text"}])
        assert (wrong.status_code, wrong.json()["detail"][0]["loc"]) == (422, ["body", 0])
        assert client.post("/same", json=STDIO).json() == STDIO
        described = client.get("/openapi.json").json()["paths"]["/last"]["post"]
        items = described["requestBody"]["content"]["application/json"]["schema"]["items"]
        assert "TextContent" in {variant.get("title") for variant in items["anyOf"]}


def test_pydantic_is_not_loaded_for_programs_that_do_not_use_it():
    script = "import sys; from accord import v1, v2; v1.TextContent('hi'); print('pydantic_core' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
