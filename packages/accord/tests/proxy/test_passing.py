"""What passes through a chain of scripts: requests, notifications, answers, cancellations; and what is refused."""

from __future__ import annotations

import json

import pytest

PROMPT = {"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}]}
UPDATE = {
    "sessionId": "s",
    "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "yo"}},
}

OUTCOMES = [
    b'"result":null',
    b'"result":{"b":1.0,"a":[1e2,"\\u00e9"],"_meta":{"x":null}}',
    b'"result":[ 1, 2 ]',
    b'"result":"text"',
    b'"error":{"code":7,"message":"mine","data":{"z":1.50,"a":null}}',
    b'"error":{"message":"odd","code":-32603,"data":[1e2],"more":true}',
]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_turn_goes_through_two_proxies_and_back(chain, version):
    line = await chain(2, version=version)
    client, (first, second), agent = line.client, line.proxies, line.agent
    prompt = client.call("session/prompt", PROMPT)
    at_first = await first.expect("session/prompt")
    forwarded = first.wrapped("session/prompt", at_first["params"])
    at_second = await second.expect("session/prompt")
    passed_on = second.wrapped("session/prompt", {**at_second["params"], "more": 1})
    asked = await agent.expect("session/prompt")
    assert asked["params"] == {**PROMPT, "more": 1}

    agent.tell("session/update", UPDATE)
    assert (await second.expect_wrapped("session/update"))["params"] == UPDATE
    second.tell("session/update", UPDATE)
    assert (await first.expect_wrapped("session/update"))["params"] == UPDATE
    first.tell("session/update", UPDATE)
    assert (await client.expect("session/update"))["params"] == UPDATE

    question = agent.call("session/request_permission", {"sessionId": "s"})
    inner = await second.expect_wrapped("session/request_permission")
    second_asks = second.call("session/request_permission", inner["params"], id="s1")
    inner_first = await first.expect_wrapped("session/request_permission")
    first_asks = first.call("session/request_permission", inner_first["params"], id="f1")
    client.answer(await client.expect("session/request_permission"), {"outcome": {"outcome": "cancelled"}})
    first.answer(inner_first, await first.expect_result(first_asks))
    second.answer(inner, await second.expect_result(second_asks))
    assert await agent.expect_result(question) == {"outcome": {"outcome": "cancelled"}}

    agent.answer(asked, {"stopReason": "end_turn"})
    second.answer(at_second, await second.expect_result(passed_on))
    first.answer(at_first, await first.expect_result(forwarded))
    assert await client.expect_result(prompt) == {"stopReason": "end_turn"}


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_outcomes_pass_unchanged_in_both_directions(chain, outcome):
    line = await chain(1)
    client, proxy, agent = line.client, line.proxies[0], line.agent

    down = client.call("_x/down", {})
    proxy.wrapped("_x/down", (await proxy.expect("_x/down"))["params"], id="p")
    agent.send_raw(answer_to((await agent.expect("_x/down"))["id"], outcome))
    assert outcome in await proxy.receive_raw()
    proxy.send_raw(answer_to(await pending_of(proxy, "_x/down"), outcome))
    assert await client.receive_raw() == answer_to(down, outcome)

    agent.call("_x/up", {}, id="g")
    envelope = await proxy.expect_wrapped("_x/up")
    proxy.call("_x/up", {}, id="q")
    client.send_raw(answer_to((await client.expect("_x/up"))["id"], outcome))
    assert await proxy.receive_raw() == answer_to("q", outcome)
    proxy.send_raw(answer_to(envelope["id"], outcome))
    assert await agent.receive_raw() == answer_to("g", outcome)


async def pending_of(proxy, method):
    """The id of the request with this method that the proxy received."""
    frames = [json.loads(frame) for way, frame in proxy.conversation if way == "in"]
    return next(message["id"] for message in frames if message.get("method") == method)


def answer_to(request_id, outcome):
    return b'{"jsonrpc":"2.0","id":%b,%b}' % (json.dumps(request_id).encode(), outcome)


async def test_params_pass_as_the_bytes_that_came(chain):
    line = await chain(1)
    odd = b'{ "z" : 1.0, "a":[1e3,"\\u00e9\\/"],"n":12345678901234567890123,"_meta":{"k":null}}'
    line.client.send_raw(b'{"jsonrpc":"2.0","method":"_x/odd","params":' + odd + b"}")
    assert odd in await line.proxies[0].receive_raw()
    line.proxies[0].send_raw(
        b'{"jsonrpc":"2.0","method":"proxy/successor","params":{"_meta":{"hop":1},"params":'
        + odd
        + b',"method":"_x/odd"}}'
    )
    assert await line.agent.receive_raw() == b'{"jsonrpc":"2.0","method":"_x/odd","params":' + odd + b"}"


async def test_half_an_emoji_passes_in_an_envelope(chain):
    line = await chain(1)
    half = b'{"text":"\\ud83d"}'
    line.agent.send_raw(b'{"jsonrpc":"2.0","method":"_x/half","params":' + half + b"}")
    assert half in await line.proxies[0].receive_raw()
    line.proxies[0].send_raw(
        b'{"jsonrpc":"2.0","id":"h","method":"proxy/successor","params":{"method":"_x/half","params":' + half + b"}}"
    )
    assert half in await line.agent.receive_raw()


@pytest.mark.parametrize("envelope", [{"method": "_x/bare"}, {"method": "_x/bare", "params": None}])
async def test_a_message_without_params_stays_one(chain, envelope):
    line = await chain(1)
    line.proxies[0].tell("proxy/successor", envelope)
    assert await line.agent.receive_raw() == b'{"jsonrpc":"2.0","method":"_x/bare"}'
    line.agent.tell("_x/bare")
    assert (await line.proxies[0].expect("proxy/successor"))["params"] == {"method": "_x/bare"}


async def test_two_hundred_updates_and_the_answer_stay_in_order(chain):
    line = await chain(1)
    client, proxy, agent = line.client, line.proxies[0], line.agent
    prompt = client.call("session/prompt", PROMPT)
    at_proxy = await proxy.expect("session/prompt")
    forwarded = proxy.wrapped("session/prompt", PROMPT)
    asked = await agent.expect("session/prompt")
    for number in range(200):
        agent.tell("session/update", {"sessionId": "s", "number": number})
    agent.answer(asked, {"stopReason": "end_turn"})
    for number in range(200):
        inner = await proxy.expect_wrapped("session/update")
        assert inner["params"]["number"] == number
        proxy.tell("session/update", inner["params"])
    proxy.answer(at_proxy, await proxy.expect_result(forwarded))
    for number in range(200):
        assert (await client.expect("session/update"))["params"]["number"] == number
    assert await client.expect_result(prompt) == {"stopReason": "end_turn"}


# Cancelling


async def test_a_cancellation_is_plain_on_every_hop_and_has_its_id(chain):
    line = await chain(1)
    client, proxy, agent = line.client, line.proxies[0], line.agent
    prompt = client.call("session/prompt", PROMPT, id="mine")
    at_proxy = await proxy.expect("session/prompt")
    forwarded = proxy.wrapped("session/prompt", PROMPT)
    asked = await agent.expect("session/prompt")

    client.tell("$/cancel_request", {"requestId": prompt})
    client.tell("$/cancel_request", {"requestId": prompt})
    assert (await proxy.expect("$/cancel_request"))["params"] == {"requestId": at_proxy["id"]}
    proxy.tell("$/cancel_request", {"requestId": forwarded})
    assert (await agent.expect("$/cancel_request"))["params"] == {"requestId": asked["id"]}
    agent.error(asked, -32800)
    await proxy.expect_error(forwarded, -32800)
    proxy.error(at_proxy, -32800)
    await client.expect_error(prompt, -32800)


async def test_a_cancellation_in_an_envelope_is_understood(chain):
    line = await chain(1)
    proxy, agent = line.proxies[0], line.agent
    forwarded = proxy.wrapped("_x/long", {})
    asked = await agent.expect("_x/long")
    proxy.tell_wrapped("$/cancel_request", {"requestId": forwarded})
    assert (await agent.expect("$/cancel_request"))["params"] == {"requestId": asked["id"]}


async def test_a_cancellation_of_an_unknown_request_is_ignored(chain):
    line = await chain(0)
    for wrong in ({"requestId": 99}, {"requestId": None}, {}, {"requestId": []}):
        line.client.tell("$/cancel_request", wrong)
    line.client.tell("_x/next", {})
    await line.agent.expect("_x/next")


async def test_an_initialize_can_be_cancelled(line):
    await line.open(line.component())
    asked = line.client.call("initialize", {"protocolVersion": 1})
    at_agent = await (await line.agent.there()).expect("initialize")
    line.client.tell("$/cancel_request", {"requestId": asked})
    assert (await line.agent.expect("$/cancel_request"))["params"] == {"requestId": at_agent["id"]}


# What is refused


@pytest.mark.parametrize("method", ["proxy/initialize", "proxy/successor", "_proxy/initialize", "_proxy/successor"])
async def test_neither_the_client_nor_the_agent_may_use_the_methods_of_proxies(chain, method):
    line = await chain(1)
    params = {"method": "session/prompt", "params": PROMPT, "protocolVersion": 1}
    for side in (line.client, line.agent):
        side.tell(method, params)
        await side.expect_error(side.call(method, params, id="bad"), -32600)
    line.client.tell("_x/next", {})
    await line.proxies[0].expect("_x/next")  # and nothing before it


@pytest.mark.parametrize("method", ["proxy/initialize", "proxy/successor"])
async def test_a_proxy_may_not_wrap_the_methods_of_proxies(chain, method):
    line = await chain(1)
    proxy = line.proxies[0]
    proxy.tell_wrapped(method, {"method": "_x/y"})
    await proxy.expect_error(proxy.wrapped(method, {"method": "_x/y"}, id="bad"), -32600)
    proxy.tell_wrapped("_x/next", {})
    await line.agent.expect("_x/next")


@pytest.mark.parametrize("params", [None, {}, {"method": 5}, {"params": {}}])
async def test_an_envelope_without_a_method_is_refused(chain, params):
    line = await chain(1)
    proxy = line.proxies[0]
    proxy.tell("proxy/successor", params)
    await proxy.expect_error(proxy.call("proxy/successor", params, id="bad"), -32602)


async def test_a_second_request_with_the_id_of_an_open_one_is_refused(chain):
    line = await chain(0)
    line.client.call("_x/one", {}, id=5)
    line.client.call("_x/two", {}, id=5)
    await line.client.expect_error(None, -32600)
    line.agent.answer(await line.agent.expect("_x/one"), {"is": "one"})
    assert await line.client.expect_result(5) == {"is": "one"}


async def test_a_batch_of_the_client_is_refused(chain):
    line = await chain(0)
    line.client.send_raw(b'[{"jsonrpc":"2.0","id":1,"method":"_x/y"}]')
    await line.client.expect_error(None, -32600)


async def test_what_a_proxy_prints_is_ignored(chain):
    line = await chain(1)
    proxy = line.proxies[0]
    proxy.send_raw(b"loading rules ...")
    proxy.tell("_x/next", {})
    await line.client.expect("_x/next")
    proxy.tell_wrapped("_x/next", {})
    await line.agent.expect("_x/next")


async def test_a_request_whose_answer_cannot_be_read_fails(chain):
    line = await chain(0)
    asked = line.client.call("_x/y", {})
    line.agent.send({"jsonrpc": "2.0", "id": (await line.agent.expect("_x/y"))["id"]})
    await line.client.expect_error(asked, -32603)


# Chains in chains


async def test_a_chain_is_a_component_of_another(line):
    nested = line.nested(line.component(), line.component())
    await line.open(nested, line.component())
    first, second, agent = line.scripts
    asked = line.client.call("initialize", {"protocolVersion": 2, "more": 1})
    at_first = await (await first.there()).expect("proxy/initialize")
    first.wrapped("initialize", at_first["params"], id=1)
    at_second = await (await second.there()).expect("proxy/initialize")
    second.wrapped("initialize", at_second["params"], id=1)
    at_agent = await (await agent.there()).expect("initialize")
    assert at_agent["params"] == {"protocolVersion": 2, "more": 1}
    agent.answer(at_agent, {"protocolVersion": 2})
    second.answer(at_second, await second.expect_result(1))
    first.answer(at_first, await first.expect_result(1))
    assert await line.client.expect_result(asked) == {"protocolVersion": 2}

    agent.tell("session/update", UPDATE)
    second.tell("session/update", (await second.expect_wrapped("session/update"))["params"])
    first.tell("session/update", (await first.expect_wrapped("session/update"))["params"])
    assert (await line.client.expect("session/update"))["params"] == UPDATE
    second.wrapped("_x/deep", {"a": 1}, id="deep")
    agent.answer(await agent.expect("_x/deep"), {"b": 2})
    assert await second.expect_result("deep") == {"b": 2}


async def test_a_chain_of_no_proxies_passes_everything(line):
    await line.open(line.nested(), line.nested(), line.component())
    asked = line.client.call("initialize", {"protocolVersion": 1})
    agent = await line.agent.there()
    agent.answer(await agent.expect("initialize"), {"protocolVersion": 1})
    await line.client.expect_result(asked)
    prompt = line.client.call("session/prompt", PROMPT)
    at_agent = await agent.expect("session/prompt")
    agent.tell("session/update", UPDATE)
    agent.answer(at_agent, {"stopReason": "end_turn"})
    await line.client.expect("session/update")
    assert await line.client.expect_result(prompt) == {"stopReason": "end_turn"}
