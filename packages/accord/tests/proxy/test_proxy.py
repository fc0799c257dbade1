"""An author's proxy between a client and an agent that scripts play."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import accord
from accord import v1, v2
from accord.testing import ScriptedPeer
from tests.proxy.conftest import InMemory, Script
from tests.waiting import DEADLINE

PROMPT = {"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}]}


def update(text, session="s"):
    content = {"type": "text", "text": text}
    return {"sessionId": session, "update": {"sessionUpdate": "agent_message_chunk", "content": content}}


def said(message):
    return message["params"]["update"]["content"]["text"]


class Around:
    """A proxy with a script on each side."""

    def __init__(self, *proxies):
        self.agent = Script()
        self.target = accord.chain(*proxies, InMemory(self.agent))
        self.client = ScriptedPeer(self.target.dial(), deadline=DEADLINE)

    async def __aenter__(self):
        await self.client.open()
        return self

    async def __aexit__(self, *_):
        await self.client.close()
        await self.agent.close()
        await self.target.release()

    async def begin(self, version=1, answer=None):
        asked = self.client.call("initialize", {"protocolVersion": version})
        agent = await self.agent.there()
        agent.answer(await agent.expect("initialize"), answer or {"protocolVersion": version})
        await self.client.expect_result(asked)
        return self.client, agent


@pytest.fixture
async def around():
    """`await around(proxy, version=2)`: the client's script and the agent's, initialized."""
    async with asyncio.timeout(60):
        open_ones = []

        async def build(*proxies, version=1, answer=None):
            open_ones.append(await Around(*proxies).__aenter__())
            return await open_ones[-1].begin(version, answer)

        yield build
        for one in open_ones:
            await one.__aexit__()


@pytest.fixture
def proxy():
    return accord.Proxy("tried", version="1.0")


# Changing


async def test_a_changed_prompt_keeps_what_the_handler_did_not_change(around, proxy):
    @proxy.from_client(v1.PromptRequest)
    async def add(request, hop):
        note = v1.TextContent("be brief")
        return await hop.forward(msgspec.structs.replace(request, prompt=[note, *request.prompt]))

    client, agent = await around(proxy)
    block = {"type": "text", "text": "hi", "new": 1.0, "_meta": None}
    asked = client.call("session/prompt", {"sessionId": "s", "unknown": [1], "prompt": [block], "_meta": {"t": 1}})
    at_agent = await agent.expect("session/prompt")
    assert at_agent["params"] == {
        "sessionId": "s",
        "unknown": [1],
        "prompt": [{"type": "text", "text": "be brief"}, block],
        "_meta": {"t": 1},
    }
    agent.answer(at_agent, {"stopReason": "end_turn", "mine": 5})
    assert await client.expect_result(asked) == {"stopReason": "end_turn", "mine": 5}


async def test_an_answer_can_be_changed_on_its_way_back(around, proxy):
    @proxy.from_client(v1.PromptRequest)
    async def refuse(request, hop):
        response = await hop.forward(request)
        return msgspec.structs.replace(response, stop_reason="refusal")

    client, agent = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    agent.answer(await agent.expect("session/prompt"), {"stopReason": "end_turn", "mine": 5})
    assert await client.expect_result(asked) == {"stopReason": "refusal", "mine": 5}


async def test_a_def_handler_returns_the_request_that_is_sent_on(around, proxy):
    @proxy.from_client(v1.NewSessionRequest)
    def elsewhere(request):
        return msgspec.structs.replace(request, cwd="/elsewhere")

    client, agent = await around(proxy)
    asked = client.call("session/new", {"cwd": "/here", "mcpServers": [], "x": 1})
    at_agent = await agent.expect("session/new")
    assert at_agent["params"] == {"cwd": "/elsewhere", "mcpServers": [], "x": 1}
    agent.send_raw(b'{"jsonrpc":"2.0","id":%d,"result":{ "sessionId":"s" }}' % at_agent["id"])
    assert await client.receive_raw() == b'{"jsonrpc":"2.0","id":%d,"result":{ "sessionId":"s" }}' % asked


async def test_a_handler_may_answer_without_the_agent(around, proxy):
    @proxy.from_client(v1.PromptRequest)
    def answer(request, hop):
        hop.client.tell(v1.SessionNotification(request.session_id, v1.AgentMessageChunk.of("no")))
        return v1.PromptResponse("refusal")

    client, agent = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    assert said(await client.expect("session/update")) == "no"
    assert await client.expect_result(asked) == {"stopReason": "refusal"}
    client.tell("_x/next")
    await agent.expect("_x/next")  # and not the prompt


async def test_updates_are_changed_and_dropped(around, proxy):
    @proxy.updates
    def redact(update):
        if not isinstance(update, v1.AgentMessageChunk):
            return update
        if "drop" in update.content.text:
            return None
        return v1.AgentMessageChunk.of(update.content.text.replace("s3cret", "***"))

    client, agent = await around(proxy)
    for text in ("the s3cret", "drop me", "end"):
        agent.tell("session/update", update(text))
    agent.tell("session/update", {"sessionId": "s", "update": {"sessionUpdate": "hologram", "depth": 3}})
    assert said(await client.expect("session/update")) == "the ***"
    assert said(await client.expect("session/update")) == "end"
    assert (await client.expect("session/update"))["params"]["update"] == {"sessionUpdate": "hologram", "depth": 3}


@pytest.mark.parametrize("version", [1, 2])
async def test_a_new_chunk_without_an_id_is_part_of_the_message_that_it_changes(around, proxy, version):
    @proxy.updates
    def shout(update):
        return v1.AgentMessageChunk.of(update.content.text.upper())

    client, agent = await around(proxy, version=version)
    agent.tell("session/update", NEW_UPDATE)
    changed = (await client.expect("session/update"))["params"]["update"]
    assert changed == {**NEW_UPDATE["update"], "content": {"type": "text", "text": "X"}}


async def test_a_wrong_return_of_an_updates_function_is_logged_with_what_to_return(around, proxy, caplog):
    returns = iter(["text", True, v1.AgentMessageChunk.of("new"), None])

    @proxy.updates
    def wrong(update):
        return next(returns)

    client, agent = await around(proxy, version=2)
    for _ in range(3):
        agent.tell(
            "session/update", {"sessionId": "s", "update": {"sessionUpdate": "state_update", "state": "running"}}
        )
    agent.tell("session/update", NEW_UPDATE)
    agent.tell("_x/next")
    await client.expect("_x/next")  # and none of the updates
    errors = [str(it.exc_info[1]) for it in caplog.records if it.exc_info]
    place = f"{wrong.__qualname__}() in {__file__}, line {wrong.__code__.co_firstlineno}, "
    assert [error.removeprefix(place).partition(";")[0] for error in errors] == [
        "must return an update of a session, or None to drop it, got str",
        "must return an update of a session, or None to drop it, got bool",
        "returned an update AgentMessageChunk without a message_id in place of SessionStateUpdate",
    ]


async def test_what_has_no_handler_passes_as_bytes(around, proxy):
    @proxy.updates
    def look(update):
        return update

    client, agent = await around(proxy)
    params = b'{ "sessionId":"s","update":{"sessionUpdate":"x","n":1.0}}'
    odd = b'{"jsonrpc":"2.0","method":"session/update","params":' + params + b"}"
    agent.send_raw(odd)
    assert await client.receive_raw() == odd
    mine = b'{"jsonrpc":"2.0","method":"_mine","params":{ "n":1e3 }}'
    client.send_raw(mine)
    assert await agent.receive_raw() == mine


async def test_two_proxies_change_a_text_one_after_the_other(around):
    def arrows():
        proxy = accord.Proxy("arrow")

        @proxy.prompts
        def add(prompt, hop):
            return [hop.text(">" + prompt[0].text)]

        return proxy

    client, agent = await around(arrows(), arrows())
    client.call("session/prompt", PROMPT)
    assert (await agent.expect("session/prompt"))["params"]["prompt"] == [{"type": "text", "text": ">>hi"}]


# Versions


async def test_the_handler_of_the_version_that_was_agreed_is_called(around, proxy, caplog):
    seen = []

    @proxy.from_agent(v1.SessionNotification)
    def first(notification):
        seen.append(1)
        return notification

    @proxy.from_agent(v2.UpdateSessionNotification)
    def second(notification):
        seen.append(2)
        return notification

    for version in (1, 2):
        client, agent = await around(proxy, version=version)
        agent.tell("session/update", update("x") if version == 1 else NEW_UPDATE)
        await client.expect("session/update")
    assert seen == [1, 2]


NEW_UPDATE = {
    "sessionId": "s",
    "update": {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "x"}},
}


async def test_the_version_is_the_one_that_the_agent_answers(around, proxy):
    seen = []

    @proxy.prompts
    def look(prompt, hop):
        seen.append((hop.version, type(prompt[0]).__module__))
        return [hop.text("mine"), *prompt]

    client, agent = await around(proxy, version=2, answer={"protocolVersion": 1})
    client.call("session/prompt", PROMPT)
    assert (await agent.expect("session/prompt"))["params"]["prompt"][0] == {"type": "text", "text": "mine"}
    assert seen == [(1, "accord.schema.content")]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_handler_of_a_message_that_both_versions_share_is_called_in_each(around, proxy, version):
    @proxy.from_client(v1.CloseSessionRequest)
    async def close(request, hop):
        return await hop.forward(v1.CloseSessionRequest(f"changed {request.session_id}"))

    client, agent = await around(proxy, version=version)
    asked = client.call("session/close", {"sessionId": "s"})
    call = await agent.expect("session/close")
    assert call["params"] == {"sessionId": "changed s"}
    agent.answer(call, {})
    assert await client.expect_result(asked) == {}


async def test_a_handler_of_the_other_version_is_not_called_and_the_log_says_so_once(around, proxy, caplog):
    @proxy.from_client(v1.PromptRequest)
    def never(request):
        raise AssertionError

    client, agent = await around(proxy, version=2)
    for _ in range(2):
        client.call("session/prompt", PROMPT)
        await agent.expect("session/prompt")
    warnings = [it for it in caplog.records if "passes unseen" in it.message]
    assert len(warnings) == 1
    assert "session/prompt passes unseen" in warnings[0].message


async def test_prompts_and_updates_are_seen_in_both_versions(around, proxy):
    @proxy.prompts
    def add(prompt, hop):
        return [*prompt, hop.text("!")]

    @proxy.updates
    async def look(update, hop):
        hop.state["seen"] = hop.state.get("seen", 0) + 1
        return update

    for version in (1, 2):
        client, agent = await around(proxy, version=version)
        client.call("session/prompt", PROMPT)
        assert (await agent.expect("session/prompt"))["params"]["prompt"][1] == {"type": "text", "text": "!"}
        agent.tell("session/update", NEW_UPDATE)
        await client.expect("session/update")


# Permissions


ASK = {
    "sessionId": "s",
    "title": "May I?",
    "toolCall": {"toolCallId": "t", "title": "rm"},
    "options": [
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "a", "name": "Always", "kind": "allow_always"},
        {"optionId": "n", "name": "No", "kind": "reject_once"},
    ],
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("choice", "chosen"), [(True, "y"), (False, "n"), ("a", "a")])
async def test_a_policy_answers_a_permission_request(around, proxy, version, choice, chosen):
    @proxy.permissions
    def policy(request):
        return choice

    client, agent = await around(proxy, version=version)
    asked = agent.call("session/request_permission", ASK)
    assert await agent.expect_result(asked) == {"outcome": {"outcome": "selected", "optionId": chosen}}
    client.tell("_x/next")
    await agent.expect("_x/next")  # and the client was never asked


async def test_a_policy_leaves_the_rest_to_the_user(around, proxy):
    @proxy.permissions
    async def policy(request, hop):
        await asyncio.sleep(0)

    client, agent = await around(proxy)
    asked = agent.call("session/request_permission", ASK)
    client.answer(await client.expect("session/request_permission"), {"outcome": {"outcome": "cancelled"}})
    assert await agent.expect_result(asked) == {"outcome": {"outcome": "cancelled"}}


async def test_what_cannot_be_allowed_once_is_the_user_s_to_decide(around, proxy):
    @proxy.permissions
    def policy(request):
        return True

    client, agent = await around(proxy)
    agent.call("session/request_permission", {**ASK, "options": ASK["options"][1:]})
    await client.expect("session/request_permission")


# Instructions

BLOCK = "<instructions>\nbe kind\n</instructions>"


@pytest.mark.parametrize("version", [1, 2])
async def test_instructions_stand_before_the_first_prompt_of_each_session(around, proxy, version):
    proxy.instructions("be kind")
    client, agent = await around(proxy, version=version)
    texts = []
    for session in ("a", "a", "b"):
        client.call("session/prompt", {**PROMPT, "sessionId": session})
        asked = await agent.expect("session/prompt")
        texts.append([block["text"] for block in asked["params"]["prompt"]])
    assert texts == [[BLOCK, "hi"], ["hi"], [BLOCK, "hi"]]


async def test_instructions_are_left_out_of_what_the_agent_tells_again(around, proxy):
    proxy.instructions("be kind")
    client, agent = await around(proxy)
    for text in (BLOCK, f"{BLOCK}\nhi", "hi"):
        content = {"type": "text", "text": text, "k": 1}
        agent.tell(
            "session/update", {"sessionId": "s", "update": {"sessionUpdate": "user_message_chunk", "content": content}}
        )
    for _ in range(2):
        told = (await client.expect("session/update"))["params"]["update"]["content"]
        assert told == {"type": "text", "text": "hi", "k": 1}
    agent.tell("_x/next")
    await client.expect("_x/next")


async def test_instructions_are_left_out_of_a_whole_message_of_the_second_version(around, proxy):
    proxy.instructions("be kind")
    client, agent = await around(proxy, version=2)
    content = [{"type": "text", "text": BLOCK}, {"type": "text", "text": "hi"}]
    update = {"sessionUpdate": "user_message", "messageId": "m", "content": content}
    agent.tell("session/update", {"sessionId": "s", "update": update})
    told = await client.expect("session/update")
    assert told["params"]["update"]["content"] == [{"type": "text", "text": "hi"}]


async def test_an_agent_that_takes_additions_to_its_system_prompt_gets_the_instructions_there(around, proxy):
    proxy.instructions("be kind")
    declared = {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"systemPrompt": {}}}}
    client, agent = await around(proxy, answer=declared)
    client.call("session/new", {"cwd": "/", "mcpServers": []})
    given = (await agent.expect("session/new"))["params"]["systemPrompt"]
    assert given == {"mode": "append", "content": [{"type": "text", "text": "be kind"}]}
    theirs = {"mode": "override", "content": [{"type": "text", "text": "theirs"}]}
    client.call("session/new", {"cwd": "/", "mcpServers": [], "systemPrompt": theirs})
    given = (await agent.expect("session/new"))["params"]["systemPrompt"]
    assert given == {"mode": "override", "content": [*theirs["content"], {"type": "text", "text": "be kind"}]}
    client.call("session/prompt", PROMPT)
    assert (await agent.expect("session/prompt"))["params"] == PROMPT


# Order


async def test_an_answer_waits_for_the_updates_before_it(around, proxy):
    may_go_on = asyncio.Event()

    @proxy.updates
    async def slowly(update):
        await may_go_on.wait()
        return update

    client, agent = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    at_agent = await agent.expect("session/prompt")
    for number in range(50):
        agent.tell("session/update", update(str(number)))
    agent.answer(at_agent, {"stopReason": "end_turn"})
    agent.tell("session/update", update("later"))
    agent.tell("session/update", update("elsewhere", "other"))
    may_go_on.set()
    texts = [said(await client.expect("session/update")) for _ in range(50)]
    assert texts == [str(number) for number in range(50)]
    rest = [await client.receive() for _ in range(3)]
    assert rest[0].get("id") == asked or said(rest[0]) == "elsewhere"
    assert {it.get("id") or said(it) for it in rest} == {asked, "later", "elsewhere"}


async def test_an_awaited_answer_comes_after_the_updates_before_it(around, proxy):
    seen = []

    @proxy.updates
    async def note(update):
        await asyncio.sleep(0)
        seen.append(update.content.text)
        return update

    @proxy.from_client(v1.PromptRequest)
    async def wait(request, hop):
        response = await hop.forward(request)
        seen.append("answer")
        return response

    client, agent = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    at_agent = await agent.expect("session/prompt")
    for number in range(5):
        agent.tell("session/update", update(str(number)))
    agent.answer(at_agent, {"stopReason": "end_turn"})
    for _ in range(5):
        await client.expect("session/update")
    await client.expect_result(asked)
    assert seen == ["0", "1", "2", "3", "4", "answer"]


async def test_later_messages_wait_until_a_request_has_been_sent_on(around, proxy):
    may_go_on = asyncio.Event()

    @proxy.from_client(v1.PromptRequest)
    async def slowly(request, hop):
        await may_go_on.wait()
        return await hop.forward(request)

    client, agent = await around(proxy)
    client.call("session/prompt", PROMPT)
    client.call("session/set_mode", {"sessionId": "s", "modeId": "m"})
    client.tell("_x/elsewhere", {"sessionId": "other"})
    await agent.expect("_x/elsewhere")
    may_go_on.set()
    await agent.expect("session/prompt")
    await agent.expect("session/set_mode")


async def test_a_handler_may_ask_the_client_while_it_holds_up_others(around, proxy):
    @proxy.from_client(v1.PromptRequest)
    async def check(request, hop):
        answer = await hop.client.request(v1.ReadTextFileRequest("s", "/rules"))
        return await hop.forward(msgspec.structs.replace(request, prompt=[v1.TextContent(answer.content)]))

    client, agent = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    client.call("session/set_mode", {"sessionId": "s", "modeId": "m"})
    client.answer(await client.expect("fs/read_text_file"), {"content": "rules"})
    at_agent = await agent.expect("session/prompt")
    assert at_agent["params"]["prompt"][0]["text"] == "rules"
    await agent.expect("session/set_mode")
    agent.answer(at_agent, {"stopReason": "end_turn"})
    await client.expect_result(asked)


async def test_a_handler_of_updates_may_ask_the_client(around, proxy):
    @proxy.updates
    async def check(update, hop):
        answer = await hop.client.request(v1.ReadTextFileRequest("s", "/rules"))
        return v1.AgentMessageChunk.of(answer.content)

    client, agent = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    at_agent = await agent.expect("session/prompt")
    agent.tell("session/update", update("x"))
    agent.answer(at_agent, {"stopReason": "end_turn"})
    client.answer(await client.expect("fs/read_text_file"), {"content": "rules"})
    assert said(await client.expect("session/update")) == "rules"
    await client.expect_result(asked)


# Cancelling


async def test_a_cancelled_request_is_cancelled_at_the_agent_and_its_answer_passes(around, proxy):
    @proxy.from_client(v1.PromptRequest)
    async def forward(request, hop):
        return await hop.forward(request)

    client, agent = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    at_agent = await agent.expect("session/prompt")
    client.tell("$/cancel_request", {"requestId": asked})
    assert (await agent.expect("$/cancel_request"))["params"] == {"requestId": at_agent["id"]}
    agent.answer(at_agent, {"stopReason": "cancelled"})
    assert await client.expect_result(asked) == {"stopReason": "cancelled"}


async def test_a_handler_that_has_not_sent_on_is_cancelled(around, proxy):
    started = asyncio.Event()

    @proxy.from_client(v1.PromptRequest)
    async def stuck(request):
        started.set()
        await asyncio.Event().wait()

    client, _ = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    await started.wait()
    client.tell("$/cancel_request", {"requestId": asked})
    await client.expect_error(asked, -32800)


async def test_a_session_cancel_passes_at_once_and_again_after_a_prompt_that_was_held(around, proxy):
    may_go_on = asyncio.Event()

    @proxy.from_client(v1.PromptRequest)
    async def slowly(request, hop):
        await may_go_on.wait()
        return await hop.forward(request)

    client, agent = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    client.tell("session/cancel", {"sessionId": "s"})
    await agent.expect("session/cancel")
    may_go_on.set()
    at_agent = await agent.expect("session/prompt")
    await agent.expect("session/cancel")
    agent.answer(at_agent, {"stopReason": "cancelled"})
    assert await client.expect_result(asked) == {"stopReason": "cancelled"}


# What goes wrong


async def test_an_error_passes_as_it_came_through_a_handler_that_does_not_catch_it(around, proxy):
    @proxy.from_client(v1.PromptRequest)
    async def forward(request, hop):
        return await hop.forward(request)

    client, agent = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    at_agent = await agent.expect("session/prompt")
    error = b'"error":{"code":7,"message":"no","data":{"n":1.50},"more":1}}'
    agent.send_raw(b'{"jsonrpc":"2.0","id":%d,%b' % (at_agent["id"], error))
    assert await client.receive_raw() == b'{"jsonrpc":"2.0","id":%d,%b' % (asked, error)


async def test_a_handler_chooses_the_error(around, proxy):
    @proxy.from_client(v1.PromptRequest)
    def refuse(request):
        raise accord.RequestError(-32050, "not on Sundays", {"day": 7})

    client, _ = await around(proxy)
    error = await client.expect_error(client.call("session/prompt", PROMPT), -32050)
    assert error == {"code": -32050, "message": "not on Sundays", "data": {"day": 7}}


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_handler_that_fails_answers_and_the_error_is_logged(around, proxy, caplog, kind):
    if kind == "def":

        @proxy.from_client(v1.PromptRequest)
        def broken(request):
            raise LookupError("mine")
    else:

        @proxy.from_client(v1.PromptRequest)
        async def broken(request):
            raise LookupError("mine")

    client, agent = await around(proxy)
    error = await client.expect_error(client.call("session/prompt", PROMPT), -32603)
    assert error["message"] == "Internal error"
    assert "the handler of session/prompt failed" in caplog.text
    client.tell("_x/next")
    await agent.expect("_x/next")  # and not the prompt


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_an_update_whose_handler_fails_does_not_pass(around, proxy, caplog, kind):
    def check(update):
        if "s3cret" in update.content.text:
            raise LookupError("mine")
        return update

    async def check_later(update):
        return check(update)

    proxy.updates(check if kind == "def" else check_later)
    client, agent = await around(proxy)
    agent.tell("session/update", update("a s3cret"))
    agent.tell("session/update", update("fine"))
    assert said(await client.expect("session/update")) == "fine"
    assert "the message was dropped" in caplog.text


async def test_an_update_whose_handler_returns_nonsense_does_not_pass(around, proxy, caplog):
    @proxy.from_agent(v1.SessionNotification)
    def wrong(notification):
        return "text" if notification.update.content.text == "bad" else notification

    client, agent = await around(proxy)
    agent.send(*({"jsonrpc": "2.0", "method": "session/update", "params": update(text)} for text in ("bad", "good")))
    assert said(await client.expect("session/update")) == "good"
    assert "returns a notification or None, got str" in caplog.text


async def test_a_handler_that_returns_nothing_after_it_forwarded_passes_the_answer(around, proxy):
    @proxy.from_client(v1.PromptRequest)
    async def look(request, hop):
        await hop.forward()

    client, agent = await around(proxy)
    asked = client.call("session/prompt", PROMPT)
    agent.answer(await agent.expect("session/prompt"), {"stopReason": "end_turn", "mine": 1})
    assert await client.expect_result(asked) == {"stopReason": "end_turn", "mine": 1}


async def test_a_handler_that_returns_nothing_for_a_prompt_is_an_error(around, proxy, caplog):
    @proxy.from_client(v1.PromptRequest)
    def forgets(request): ...

    client, _ = await around(proxy)
    await client.expect_error(client.call("session/prompt", PROMPT), -32603)
    assert "returns a request to send on or an answer, got None" in caplog.text


async def test_a_proxy_that_gets_initialize_says_how_it_is_started(proxy):
    here, there = accord.memory_pair()
    serving = asyncio.create_task(proxy.serve(there))
    async with ScriptedPeer(here) as client:
        error = await client.expect_error(client.call("initialize", {"protocolVersion": 1}), -32600)
        assert "accord conduct PROXY AGENT" in error["message"]
    await serving


async def test_open_handlers_end_with_the_connection(proxy):
    ended = asyncio.Event()

    @proxy.from_client(v1.PromptRequest)
    async def wait(request, hop):
        try:
            return await hop.forward(request)
        finally:
            ended.set()

    around = Around(proxy)
    async with around:
        client, agent = await around.begin()
        client.call("session/prompt", PROMPT)
        await agent.expect("session/prompt")
    assert ended.is_set()


async def test_the_state_belongs_to_a_session(around):
    class Count:
        def __init__(self):
            self.prompts = 0

    proxy = accord.Proxy("counting", state=Count)
    seen = []

    @proxy.prompts
    def count(prompt, hop):
        hop.state.prompts += 1
        seen.append((hop.session_id, hop.state.prompts))

    client, agent = await around(proxy)
    for session in ("a", "b", "a"):
        client.call("session/prompt", {**PROMPT, "sessionId": session})
        await agent.expect("session/prompt")
    client.call("session/close", {"sessionId": "a"})
    client.call("session/prompt", {**PROMPT, "sessionId": "a"})
    await agent.expect("session/close")
    await agent.expect("session/prompt")
    assert seen == [("a", 1), ("b", 1), ("a", 2), ("a", 1)]


# Registering


def test_a_message_has_one_handler(proxy):
    proxy.from_client(v1.PromptRequest)(lambda request: request)
    with pytest.raises(ValueError, match="PromptRequest from this side has a handler already"):
        proxy.from_client(v1.PromptRequest)(lambda request: request)


def test_what_is_no_message_is_refused(proxy):
    with pytest.raises(TypeError, match=r"@proxy.from_client\(\) takes a message class, such as v1.PromptRequest"):
        proxy.from_client(v1.TextContent)
    with pytest.raises(TypeError, match="takes a function"):
        proxy.from_client(v1.PromptRequest)(5)


async def test_a_message_of_the_author_s_own_is_seen_in_every_version(around, proxy):
    class Ping(accord.Notification, method="_mine/ping"):
        number: int

    @proxy.from_client(Ping)
    def add(ping):
        return Ping(ping.number + 1)

    for version in (1, 2):
        client, agent = await around(proxy, version=version)
        client.tell("_mine/ping", {"number": 1})
        assert (await agent.expect("_mine/ping"))["params"] == {"number": 2}


async def test_a_notification_whose_params_are_invalid_passes_unseen_and_the_log_says_so(around, proxy, caplog):
    @proxy.from_client(v1.CancelNotification)
    def never(notification):
        raise AssertionError

    client, agent = await around(proxy)
    client.tell("session/cancel", {"sessionId": 7})
    assert (await agent.expect("session/cancel"))["params"] == {"sessionId": 7}
    assert "session/cancel passes unseen: its params are invalid" in caplog.text
