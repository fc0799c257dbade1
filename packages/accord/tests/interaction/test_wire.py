"""What everything that we send looks like on the wire, and what a process's standard streams carry."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys

import pytest

from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.schema import v1, v2
from accord.testing import FaultyTransport, connected
from accord.transports.stdio_transport import StdioTransport
from tests.interaction.staging import chunk, prompt_params
from tests.interaction.versions import spoken

MEMBERS = {"jsonrpc", "id", "method", "params", "result", "error"}

AWKWARD = 'line\nbreak\r\n\u2028\u2029\x00\t"quoted" \\ ümlaut 🦊 \x7f'


def edit():
    """A tool call with a bit of everything."""
    told = {
        "tool_call_id": v1.ToolCallId("t"),
        "title": "Edit",
        "kind": "edit",
        "status": "in_progress",
        "raw_input": {"as_it_was": {"snake_case": 1, "camelCase": 2}},
    }
    if spoken.version == 1:
        diff = v1.Diff(path="/f", old_text=None, new_text=AWKWARD)
        return v1.ToolCall(content=[diff], locations=[v1.ToolCallLocation(path="/f", line=3)], **told)
    diff = v2.Diff([v2.DiffAdd("/f", "text")], v2.DiffPatch("git_patch", AWKWARD))
    return v2.ToolCallProgress(content=[diff], locations=[v2.ToolCallLocation(path="/f", line=3)], **told)


EDIT = {
    "toolCallId": "t",
    "title": "Edit",
    "kind": "edit",
    "status": "in_progress",
    "locations": [{"path": "/f", "line": 3}],
    "rawInput": {"as_it_was": {"snake_case": 1, "camelCase": 2}},
}
DIFFS = {
    1: {"type": "diff", "path": "/f", "newText": AWKWARD},
    2: {
        "type": "diff",
        "changes": [{"operation": "add", "path": "/f", "fileType": "text"}],
        "patch": {"format": "git_patch", "text": AWKWARD},
    },
}


def permission(session):
    options = [spoken.PermissionOption.of("allow_once"), spoken.PermissionOption.of("reject_once")]
    if spoken.version == 1:
        about = v1.ToolCallUpdate(tool_call_id=v1.ToolCallId("t"), status="pending")
        return v1.RequestPermissionRequest(session_id=session, tool_call=about, options=options)
    about = v2.ToolCallPermissionSubject(v2.ToolCallUpdate(v1.ToolCallId("t"), status="pending"))
    return v2.RequestPermissionRequest(session, "Edit it?", options, subject=about)


def busy(handlers, stage):
    """Says a bit of everything."""

    @handlers.on(spoken.PromptRequest)
    async def prompt(request, context):
        await context.peer.notify(chunk(AWKWARD))
        await context.peer.notify(spoken.SessionNotification(request.session_id, edit()))
        asked = permission(request.session_id)
        answer = await context.peer.request(asked)
        await context.peer.notify(chunk(answer.outcome.option_id))
        return spoken.ended("end_turn")

    @handlers.on_request("_example.com/print")
    def stray(params):
        print("a stray line")
        os.write(1, b"a line from deep below\n")
        print("a log line", file=sys.stderr)
        return {}

    @handlers.on_request("_example.com/echo")
    def echo(params):
        return params


def frames_sent_by(script):
    return [frame for way, frame in script.conversation if way == "in"]


async def talk(script):
    asked = script.call("session/prompt", prompt_params(AWKWARD))
    await script.expect("session/update")
    await script.expect("session/update")
    permission = await script.expect("session/request_permission")
    script.answer(permission, {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
    await script.expect("session/update")
    await script.expect_result(asked)
    script.send({"jsonrpc": "2.0", "id": "x", "method": "session/prompt"})
    await script.expect_error("x")
    await script.expect_silence()


@pytest.mark.requirement(
    "jsonrpc.version-member",
    "jsonrpc.params-by-name",
    "jsonrpc.request.id-type",
    "jsonrpc.request.id-not-null",
    "jsonrpc.request.id-not-fractional",
    "jsonrpc.answer.result-or-error",
    "jsonrpc.error.code-and-message",
    "stdio.no-batches",
)
async def test_every_message_we_send_is_good_json_rpc(connect):
    async with connect.as_client(busy) as script:
        await talk(script)
        for frame in frames_sent_by(script):
            message = json.loads(frame)
            assert message["jsonrpc"] == "2.0"
            assert set(message) <= MEMBERS
            assert isinstance(message.get("params", {}), dict)
            if "method" in message:
                assert not {"result", "error"} & set(message)
                assert isinstance(message.get("id", 0), int | str)
                assert not isinstance(message.get("id", 0), bool)
            else:
                assert ("result" in message) is not ("error" in message)
            if "error" in message:
                assert type(message["error"]["code"]) is int
                assert type(message["error"]["message"]) is str


def names_and_tags(value, path=""):
    """Every member's name in this JSON, and every tag, apart from what belongs to the author."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield "name", name
            if name in ("sessionUpdate", "type", "outcome", "kind", "status", "stopReason") and isinstance(inner, str):
                yield "tag", inner
            if name not in ("rawInput", "rawOutput", "_meta", "data"):
                yield from names_and_tags(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names_and_tags(inner)


@pytest.mark.requirement("wire.names-cased", "types.no-own-fields", "meta.is-object")
async def test_names_are_in_camel_case_and_tags_in_snake_case_with_nothing_of_our_own(connect):
    async with connect.as_client(busy) as script:
        await talk(script)
        told = [it for frame in frames_sent_by(script) for it in names_and_tags(json.loads(frame))]
        names, tags = {it for what, it in told if what == "name"}, {it for what, it in told if what == "tag"}
        assert {"sessionUpdate", "toolCallId", "rawInput", "optionId", *spoken.ending()} <= names
        tool_call = "tool_call" if spoken.version == 1 else "tool_call_update"
        assert {"agent_message_chunk", tool_call, "allow_once", "in_progress"} <= tags
        assert all(re.fullmatch("[a-z][a-zA-Z0-9]*", name) for name in names)
        assert all(re.fullmatch("[a-z][a-z0-9_]*", tag) for tag in tags)
        params = json.loads(frames_sent_by(script)[2])["params"]
        content = [DIFFS[spoken.version]]
        assert params == {"sessionId": "s", "update": {"sessionUpdate": tool_call, **EDIT, "content": content}}


@pytest.mark.needs("a process")
@pytest.mark.requirement(
    "wire.utf-8",
    "stdio.newline-ends-message",
    "stdio.no-newline-inside",
    "stdio.no-batches",
    "stdio.agent-on-standard-streams",
    "stdio.stdout-only-messages",
    "stdio.supported",
)
async def test_an_agent_s_stdout_is_one_message_a_line_in_utf_8_and_nothing_else(connect):
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": spoken.hello},
        *({"jsonrpc": "2.0", "id": n, "method": "_example.com/echo", "params": {"t": AWKWARD}} for n in range(1, 20)),
        {"jsonrpc": "2.0", "id": 20, "method": "_example.com/print"},
        {"jsonrpc": "2.0", "id": 21, "method": "_example.com/echo", "params": {"t": AWKWARD}},
    ]
    pipe = asyncio.subprocess.PIPE
    async with connect.command(busy) as (command, _):
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        output, stderr = await process.communicate(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert output.endswith(b"\n")
    messages = [json.loads(line.decode("utf-8")) for line in output.split(b"\n")[:-1]]
    assert [message["id"] for message in messages] == [*range(22)]
    assert messages[1]["result"] == {"t": AWKWARD}
    assert "🦊".encode() in output
    for words in (b"a stray line", b"a line from deep below", b"a log line"):
        assert words not in output
        assert words in stderr


@pytest.mark.needs("a process")
@pytest.mark.requirement(
    "stdio.stdin-only-messages", "stdio.newline-ends-message", "stdio.no-newline-inside", "wire.utf-8"
)
async def test_what_a_client_writes_is_one_message_a_line_in_utf_8_and_nothing_else(connect, capfd):
    (their_reads, our_writes), (our_reads, their_writes) = os.pipe(), os.pipe()
    async with Peer(StdioTransport(our_reads, our_writes), role="client") as peer:
        for number in range(10):
            await peer.notify_raw("_example.com/note", {"number": number, "text": AWKWARD})
        print("printed by the client")
        asking = asyncio.create_task(peer.request_raw("_example.com/ask", {"text": AWKWARD}))
        await asyncio.sleep(0)
    with pytest.raises(Exception, match="closed"):
        await asking
    os.close(their_writes)
    written = os.read(their_reads, 100_000)
    os.close(their_reads)
    assert written.endswith(b"\n")
    messages = [json.loads(line.decode("utf-8")) for line in written.split(b"\n")[:-1]]
    assert [message["method"] for message in messages] == ["_example.com/note"] * 10 + ["_example.com/ask"]
    assert all(message["params"]["text"] == AWKWARD for message in messages)


@pytest.mark.needs("a process")
@pytest.mark.requirement("stdio.stderr-is-no-protocol", "stdio.client-launches-agent", "stdio.supported")
async def test_what_an_agent_logs_and_prints_does_no_harm(connect):
    async with connect(busy) as link:
        for _ in range(3):
            assert await link.client.request_raw("_example.com/print") == {}
        assert link.statistics.pollution == link.statistics.malformed == 0
        assert await link.client.request_raw("_example.com/echo", {"a": 1}) == {"a": 1}


@pytest.mark.needs("a process")
@pytest.mark.requirement("stdio.client-closes-stdin")
async def test_an_agent_that_is_closed_ends_by_itself(connect):
    async with connect(busy) as link:
        end = await link.connection.close()
        assert (end.reason, end.exit_code) == ("closed", 0)


@pytest.mark.requirement("transport.custom-keeps-protocol")
async def test_a_transport_of_ones_own_carries_the_same_protocol():
    agent, client, texts = Handlers(), Handlers(), []

    @agent.on(spoken.PromptRequest)
    async def prompt(request, context):
        for word in ("one", "two"):
            await context.peer.notify(chunk(word))
        return spoken.ended("end_turn")

    @client.on(spoken.SessionNotification)
    async def update(notification):
        await asyncio.sleep(0)
        texts.append(notification.update.content.text)

    async with connected(agent, client, through=FaultyTransport) as link:
        answer = await link.client.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go"))
        assert spoken.end_of(answer) == "end_turn"
        assert texts == ["one", "two"]
        await link.client.close()
        assert (await link.agent.connection.closed()).reason == "peer_closed"


@pytest.mark.parametrize("text", ["\ud83d", "a\udfffb", "\ud83d\ude00"], ids=ascii)
async def test_half_of_an_emoji_goes_through_both_ways(connect, text):
    async with connect(busy) as link:
        answer = await link.client.request_raw("_example.com/echo", {"text": text})
        assert answer["text"].encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 5_000_000])
async def test_messages_of_any_size_go_through(connect, size):
    async with connect.as_client(busy) as script:
        answer = await script.request("_example.com/echo", {"text": "x" * size})
        assert len(answer["text"]) == size
