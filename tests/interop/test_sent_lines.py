"""Each line that our client and our agent send is valid by the schemas that others generate their types from."""

import json
import sys
import tempfile
from pathlib import Path

import jsonschema
import pytest
from benchmarks.build import Unavailable
from interop.peers import built
from tools import schema_facts

import accord
from accord import trace

pytestmark = pytest.mark.timeout(900)

PROMPTS = (
    "hello",
    "/plan",
    "/think",
    "/read notes.txt",
    "/edit notes.txt",
    "/image",
    "/usage",
    "/title A title",
    "/form",
)
NEWER = {"cursor_update", "prompt_suggestions_update", "replay_complete"}
"""Updates that came after the schema of the TypeScript SDK."""


def of_typescript():
    try:
        folder = built("typescript").folder / "node_modules/@agentclientprotocol/sdk/schema"
    except Unavailable as missing:
        pytest.skip(str(missing))
    return {version: json.loads((folder / f"v{version}/schema.unstable.json").read_text()) for version in (1, 2)}


def of_crate():
    with tempfile.TemporaryDirectory() as folder:
        _, schemas = schema_facts.crate_schemas(f"={schema_facts.VERSION}", Path(folder))
    return {version: schemas[f"v{version}.unstable"] for version in (1, 2)}


async def recorded(version, folder):
    """The trace of a conversation in which most of what the demo agent can do happens."""
    (folder / "notes.txt").write_text("one line\n")
    command = [sys.executable, "-m", "accord", "demo", "--pace", "0", "--store", str(folder / "sessions")]
    client = accord.Client(files=True, terminals=True, permissions=lambda _: True)
    file = folder / "wire.jsonl"
    async with accord.connect(command, client, cwd=folder, versions=(version,), trace=file) as remote:
        session = await remote.new_session(folder)
        for prompt in PROMPTS:
            await session.prompt(prompt)
        fork = await session.fork()
        await fork.prompt("hello")
        await fork.close()
        await session.close()
        assert [it async for it in remote.sessions(folder)]
        await (await remote.load(session.id, folder)).prompt("hello")
    return list(trace.read(file))


def lines(events):
    """Each message as its method, whether it is a result, and its params or result."""
    open_requests = {}
    for event in events:
        frame = json.loads(event.frame) if event.frame else {}
        if "method" in frame:
            open_requests[event.direction, str(frame.get("id"))] = frame["method"]
            yield frame["method"], False, frame.get("params")
        elif "result" in frame:
            asker = "in" if event.direction == "out" else "out"
            yield open_requests[asker, str(frame["id"])], True, frame["result"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "schemas",
    [
        pytest.param(of_typescript, marks=pytest.mark.interop, id="TypeScript SDK"),
        pytest.param(of_crate, marks=pytest.mark.rust, id="crate"),
    ],
)
async def test_each_line_is_valid_by_the_schema_of_others(schemas, version, tmp_path):
    document = schemas()[version]
    rows = {
        (it["x-method"], name.endswith("Response")): name
        for name, it in document["$defs"].items()
        if "x-method" in it and name.endswith(("Request", "Response", "Notification"))
    }
    checked = 0
    for method, is_result, value in lines(await recorded(version, tmp_path)):
        update = value.get("update", {}).get("sessionUpdate") if isinstance(value, dict) else None
        if schemas is of_typescript and update in NEWER:
            continue
        place = {"$ref": f"#/$defs/{rows[method, is_result]}", "$defs": document["$defs"]}
        errors = [error.message for error in jsonschema.Draft202012Validator(place).iter_errors(value)]
        assert errors == [], f"{method} {value}"
        checked += 1
    assert checked > len(PROMPTS) * 3
