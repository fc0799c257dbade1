"""How a chain begins: who gets which `initialize`, with which version, and what is answered if it cannot begin."""

from __future__ import annotations

import pytest

from tests.proxy.conftest import initialize

PARAMS = b'{ "_meta":{"k":1.0}, "protocolVersion":1,"later":[null]}'


async def test_the_last_component_gets_initialize_and_the_others_proxy_initialize(chain):
    line = await chain(2)
    heard = [peer.conversation[0][1] for peer in line.scripts]
    assert [b'"proxy/initialize"' in frame for frame in heard] == [True, True, False]


async def test_the_params_and_the_answer_pass_as_the_bytes_that_came(line):
    await line.open(line.component(), line.component())
    line.client.send_raw(b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":' + PARAMS + b"}")
    proxy = await line.proxies[0].there()
    at_proxy = await proxy.receive_raw()
    assert at_proxy.endswith(b',"method":"proxy/initialize","params":' + PARAMS + b"}")
    proxy.send_raw(
        b'{"jsonrpc":"2.0","id":9,"method":"proxy/successor","params":{"method":"initialize","params":' + PARAMS + b"}}"
    )
    agent = await line.agent.there()
    at_agent = await agent.receive_raw()
    assert at_agent.endswith(b',"method":"initialize","params":' + PARAMS + b"}")
    result = b'{"protocolVersion":1 ,"odd":[1.0]}'
    agent.send_raw(at_agent.split(b',"method"')[0] + b',"result":' + result + b"}")
    assert await proxy.receive_raw() == b'{"jsonrpc":"2.0","id":9,"result":' + result + b"}"


@pytest.mark.parametrize(("asked", "offered"), [(0, 1), (1, 1), (2, 2), (3, 2), (40, 2)])
async def test_the_chain_is_offered_the_highest_version_that_is_known(line, asked, offered):
    await line.open(line.component())
    line.client.call("initialize", {"protocolVersion": asked, "more": {"a": 1}})
    agent = await line.agent.there()
    assert (await agent.expect("initialize"))["params"] == {"protocolVersion": offered, "more": {"a": 1}}


@pytest.mark.parametrize("version", [None, "1", True, 1.5, -1, {}])
async def test_nonsense_in_place_of_a_version_is_refused_and_a_second_try_is_not(line, version):
    await line.open(line.component())
    refused = line.client.call("initialize", {"protocolVersion": version})
    await line.client.expect_error(refused, -32602)
    assert not line.agent.started.is_set()
    assert await initialize(line) == {"protocolVersion": 1}
    again = line.client.call("initialize", {"protocolVersion": version})
    await line.client.expect_error(again, -32602)


async def test_a_request_before_initialize_is_refused_and_the_client_may_go_on(line):
    await line.open(line.component())
    line.client.tell("_x/early", {})
    early = line.client.call("session/new", {})
    error = await line.client.expect_error(early, -32600)
    assert "initialize must come before session/new" in error["message"]
    assert await initialize(line) == {"protocolVersion": 1}
    line.client.tell("_x/next", {})
    await line.agent.expect("_x/next")


async def test_a_repeated_initialize_goes_through_the_chain_that_is_there(chain):
    line = await chain(1)
    again = line.client.call("initialize", {"protocolVersion": 1})
    proxy, agent = line.proxies[0], line.agent
    at_proxy = await proxy.expect("proxy/initialize")
    forwarded = proxy.wrapped("initialize", at_proxy["params"])
    agent.error(await agent.expect("initialize"), -32600, "once is enough")
    error = await proxy.expect_error(forwarded)
    proxy.error(at_proxy, error["code"], error["message"])
    assert (await line.client.expect_error(again, -32600))["message"] == "once is enough"


async def test_a_proxy_of_the_first_version_takes_the_chain_to_it(line):
    await line.open(line.component(), line.component())
    asked = line.client.call("initialize", {"protocolVersion": 2})
    proxy = await line.proxies[0].there()
    at_proxy = await proxy.expect("proxy/initialize")
    proxy.wrapped("initialize", {"protocolVersion": 1}, id="p")
    agent = await line.agent.there()
    at_agent = await agent.expect("initialize")
    assert at_agent["params"] == {"protocolVersion": 1}
    agent.answer(at_agent, {"protocolVersion": 1})
    proxy.answer(at_proxy, await proxy.expect_result("p"))
    assert await line.client.expect_result(asked) == {"protocolVersion": 1}


async def test_messages_that_follow_initialize_at_once_come_after_it(line):
    await line.open(line.component())
    line.client.send(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {}},
        {"jsonrpc": "2.0", "method": "_x/next"},
    )
    agent = await line.agent.there()
    for method in ("initialize", "session/new", "_x/next"):
        await agent.expect(method)


# As a proxy


async def test_a_chain_of_proxies_is_initialized_as_one(line):
    await line.open(line.component(), as_proxy=True)
    asked = line.client.call("proxy/initialize", {"protocolVersion": 1})
    proxy = await line.agent.there()  # the last component, a proxy here
    at_proxy = await proxy.expect("proxy/initialize")
    proxy.wrapped("initialize", at_proxy["params"], id="p")
    inner = await line.client.expect_wrapped("initialize")
    line.client.answer(inner, {"protocolVersion": 1})
    proxy.answer(at_proxy, await proxy.expect_result("p"))
    assert await line.client.expect_result(asked) == {"protocolVersion": 1}


async def test_a_chain_of_proxies_refuses_initialize_and_says_what_is_needed(line):
    await line.open(line.component(), as_proxy=True)
    error = await line.client.expect_error(line.client.call("initialize", {"protocolVersion": 1}), -32600)
    assert "proxy/initialize" in error["message"]
    assert not line.agent.started.is_set()


async def test_a_conductor_of_an_older_sdk_is_answered_in_its_words(line):
    await line.open(as_proxy=True)
    asked = line.client.call("_proxy/initialize", {"protocolVersion": 1})
    envelope = await line.client.expect("_proxy/successor")
    assert envelope["params"] == {"method": "initialize", "params": {"protocolVersion": 1}}
    line.client.answer(envelope, {"protocolVersion": 1})
    assert await line.client.expect_result(asked) == {"protocolVersion": 1}
    line.client.tell("_proxy/successor", {"method": "session/update", "params": {"a": 1}})
    assert (await line.client.expect("session/update"))["params"] == {"a": 1}


async def test_a_proxy_of_an_older_sdk_is_asked_in_its_words(line):
    await line.open(line.component(), line.component())
    asked = line.client.call("initialize", {"protocolVersion": 1})
    proxy = await line.proxies[0].there()
    proxy.error(await proxy.expect("proxy/initialize"), -32601)
    at_proxy = await proxy.expect("_proxy/initialize")
    assert at_proxy["params"] == {"protocolVersion": 1}
    forwarded = proxy.call("_proxy/successor", {"method": "initialize", "params": {"protocolVersion": 1}}, id="p")
    agent = await line.agent.there()
    agent.answer(await agent.expect("initialize"), {"protocolVersion": 1})
    proxy.answer(at_proxy, await proxy.expect_result(forwarded))
    await line.client.expect_result(asked)
    agent.tell("session/update", {"a": 1})
    assert (await proxy.expect("_proxy/successor"))["params"] == {"method": "session/update", "params": {"a": 1}}


async def test_a_component_that_is_no_proxy_answers_for_itself(line):
    await line.open(line.component(), line.component())
    asked = line.client.call("initialize", {"protocolVersion": 1})
    proxy = await line.proxies[0].there()
    proxy.error(await proxy.expect("proxy/initialize"), -32601, "Method not found")
    proxy.error(await proxy.expect("_proxy/initialize"), -32601, "Method not found")
    await line.client.expect_error(asked, -32601)
