"""What the Rust SDK tests of its conductor and its proxies, what has been wrong there, and our tests of the same.

A behaviour that our conductor has in another way says so: it starts a fixed chain, where the Rust SDK may choose one by
the request, and it is untyped, so it judges no answer of an agent.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import accord
from tests.named_tests import named
from tests.proxy.conftest import CONDUCT, initialize
from tests.proxy.test_conduct import SHOUT
from tests.proxy.test_lending import lending
from tests.proxy.test_rust_trace import CALLER

BEHAVIOURS = {
    # Initialization
    "a single component gets initialize": [
        "test_initialization::test_the_last_component_gets_initialize_and_the_others_proxy_initialize",
    ],
    "two and three components: proxies get proxy/initialize": [
        "test_initialization::test_the_last_component_gets_initialize_and_the_others_proxy_initialize",
        "test_initialization::test_messages_that_follow_initialize_at_once_come_after_it",
    ],
    "a proxy/initialize that is passed on is refused": [
        "test_passing::test_neither_the_client_nor_the_agent_may_use_the_methods_of_proxies",
        "test_passing::test_a_proxy_may_not_wrap_the_methods_of_proxies",
    ],
    "unknown members of initialize and its answer survive": [
        "test_initialization::test_the_params_and_the_answer_pass_as_the_bytes_that_came",
    ],
    "a start that fails is answered, and so is what comes later": [
        "test_endings::test_a_component_that_cannot_be_started_answers_initialize",
    ],
    "an agent's answer without a version (untyped: it passes, and the client judges)": [
        "test_behaviours::test_an_answer_to_initialize_passes_whatever_version_it_has",
    ],
    "invalid versions get answers": [
        "test_initialization::test_nonsense_in_place_of_a_version_is_refused_and_a_second_try_is_not",
    ],
    "nested: an exact version passes unchanged, a future one becomes a known one": [
        "test_initialization::test_a_chain_of_proxies_is_initialized_as_one",
        "test_initialization::test_the_chain_is_offered_the_highest_version_that_is_known",
    ],
    "a proxy of version 1 takes the chain to it": [
        "test_initialization::test_a_proxy_of_the_first_version_takes_the_chain_to_it",
    ],
    "a proxy of version 1 before an agent of version 2 only fails": [
        "test_behaviours::test_an_agent_that_refuses_the_version_of_a_proxy_fails_initialize",
    ],
    # The wire
    "outcomes pass unchanged: data, positive codes, null results": [
        "test_passing::test_outcomes_pass_unchanged_in_both_directions",
        "test_proxy::test_an_error_passes_as_it_came_through_a_handler_that_does_not_catch_it",
    ],
    "params are optional": ["test_passing::test_a_message_without_params_stays_one"],
    "misplaced envelopes are refused": [
        "test_passing::test_neither_the_client_nor_the_agent_may_use_the_methods_of_proxies",
        "test_passing::test_a_proxy_may_not_wrap_the_methods_of_proxies",
        "test_passing::test_an_envelope_without_a_method_is_refused",
    ],
    "a repeated initialize goes through the chain": [
        "test_initialization::test_a_repeated_initialize_goes_through_the_chain_that_is_there",
    ],
    "a cancellation is plain on every hop, with its id, exactly once": [
        "test_passing::test_a_cancellation_is_plain_on_every_hop_and_has_its_id",
        "test_passing::test_a_cancellation_in_an_envelope_is_understood",
    ],
    "a prompt is cancelled through proxies": [
        "test_proxy::test_a_cancelled_request_is_cancelled_at_the_agent_and_its_answer_passes",
        "test_proxy::test_a_session_cancel_passes_at_once_and_again_after_a_prompt_that_was_held",
    ],
    "session/new is cancelled": ["test_behaviours::test_a_request_that_opens_a_session_can_be_cancelled"],
    "initialize is cancelled": ["test_passing::test_an_initialize_can_be_cancelled"],
    "an MCP request is cancelled down to its server": [
        "test_lending::test_cancelling_the_turn_cancels_the_tool_of_a_proxy",
    ],
    # Sessions
    "a replay comes before the answer to load or resume": [
        "test_behaviours::test_a_replay_comes_before_the_answer_that_ends_it",
        "test_proxy::test_an_answer_waits_for_the_updates_before_it",
    ],
    "an invalid success of session/new passes, and the link lives": [
        "test_behaviours::test_an_invalid_answer_to_a_new_session_passes_and_the_chain_goes_on",
    ],
    "_meta of prompts survives": [
        "test_passing::test_params_pass_as_the_bytes_that_came",
        "test_proxy::test_a_changed_prompt_keeps_what_the_handler_did_not_change",
    ],
    "two proxies change a text one after the other": [
        "test_proxy::test_two_proxies_change_a_text_one_after_the_other",
    ],
    # MCP
    "servers are added to new, load, resume and fork": [
        "test_lending::test_every_request_that_opens_a_session_gets_the_servers",
    ],
    "handlers run after a server was added": [
        "test_lending::test_handlers_of_the_proxy_see_the_request_with_its_servers",
    ],
    "a server of the client of the same name is refused": [
        "test_lending::test_a_name_that_the_client_uses_already_is_refused",
        "test_lending::test_a_server_of_one_session_may_not_have_a_name_that_the_client_uses",
    ],
    "unknown members of declarations survive": [
        "test_lending::test_what_the_client_sent_stays_beside_a_server_of_one_session",
    ],
    "tools answer with texts, integers and objects": [
        "test_behaviours::test_a_tool_of_a_proxy_answers_with_any_kind_of_value",
    ],
    "the list of tools changes": ["test_lending::test_a_change_of_a_proxy_s_tools_is_noticed"],
    # Traces
    "a trace shows a whole run": [
        "test_rust_trace::test_each_message_names_the_neighbours_that_it_passed_between",
        "test_rust_trace::test_each_request_has_its_answer_under_the_same_id_the_other_way_round",
    ],
    "calls to a server of the client go all the way back": [
        "test_behaviours::test_a_trace_shows_calls_to_a_server_of_the_client_on_every_hop",
    ],
}

FAULTS = {
    "the metadata of an envelope belongs to its hop": [
        "test_behaviours::test_the_metadata_of_an_envelope_stays_on_its_hop",
    ],
    "fast answers overtook updates": [
        "test_passing::test_two_hundred_updates_and_the_answer_stay_in_order",
        "test_proxy::test_an_awaited_answer_comes_after_the_updates_before_it",
    ],
    "a server of a proxy kept session/new from its handlers": [
        "test_lending::test_handlers_of_the_proxy_see_the_request_with_its_servers",
    ],
    "ids of cancellations were tunnelled": [
        "test_passing::test_a_cancellation_is_plain_on_every_hop_and_has_its_id",
        "test_lending::test_cancelling_the_turn_cancels_the_tool_of_a_proxy",
    ],
    "a handler that gave up left its request open": [
        "test_proxy::test_a_handler_that_fails_answers_and_the_error_is_logged",
        "test_proxy::test_open_handlers_end_with_the_connection",
    ],
    "a handler that waited for an answer stopped everything": [
        "test_proxy::test_a_handler_may_ask_the_client_while_it_holds_up_others",
        "test_proxy::test_a_handler_of_updates_may_ask_the_client",
    ],
    "typed proxies lost members of session setup": [
        "test_lending::test_what_the_client_sent_stays_beside_a_server_of_one_session",
        "test_merging::test_only_the_difference_is_applied",
    ],
    "values of env and headers were logged": [
        "test_conduct::test_a_trace_shows_each_hop_without_envelopes_and_without_secrets",
        "test_rust_trace::test_secrets_are_masked",
    ],
    "a component that cannot be started left initialize open": [
        "test_endings::test_a_component_that_cannot_be_started_answers_initialize",
    ],
    "an agent that died left the prompt open": [
        "test_endings::test_an_agent_that_ends_in_a_prompt_leaves_no_request_open",
    ],
    "a client that left killed the components at once": [
        "test_endings::test_all_components_end_when_the_client_leaves",
        "test_endings::test_what_the_client_asked_before_it_left_is_answered",
    ],
}


@pytest.mark.parametrize("behaviour", [*BEHAVIOURS, *FAULTS])
def test_a_behaviour_has_tests(behaviour):
    tests = (BEHAVIOURS | FAULTS)[behaviour]
    assert tests
    assert not set(tests) - named("proxy")


@pytest.mark.parametrize("answer", [{"more": 1}, {"protocolVersion": "x"}, {"protocolVersion": 7}])
async def test_an_answer_to_initialize_passes_whatever_version_it_has(line, answer):
    await line.open(line.component(), line.component())
    assert await initialize(line, answer=answer) == answer


async def test_an_agent_that_refuses_the_version_of_a_proxy_fails_initialize(line):
    await line.open(line.component(), line.component())
    asked = line.client.call("initialize", {"protocolVersion": 2})
    proxy = await line.proxies[0].there()
    outer = await proxy.expect("proxy/initialize")
    proxy.wrapped("initialize", {"protocolVersion": 1}, id="init")
    agent = await line.agent.there()
    request = await agent.expect("initialize")
    assert request["params"]["protocolVersion"] == 1
    agent.error(request, -32602, "this agent speaks version 2 only")
    refused = await proxy.expect_error("init")
    proxy.error(outer, refused["code"], refused["message"])
    error = await line.client.expect_error(asked)
    assert (error["code"], error["message"]) == (-32602, "this agent speaks version 2 only")


async def test_a_request_that_opens_a_session_can_be_cancelled(chain):
    line = await chain(0)
    asked = line.client.call("session/new", {"cwd": "/", "mcpServers": []})
    request = await line.agent.expect("session/new")
    line.client.tell("$/cancel_request", {"requestId": asked})
    cancelled = await line.agent.expect("$/cancel_request")
    assert cancelled["params"]["requestId"] == request["id"]
    line.agent.error(request, -32800, "Request cancelled")
    assert (await line.client.expect_error(asked))["code"] == -32800


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_replay_comes_before_the_answer_that_ends_it(chain, method):
    line = await chain(0)
    asked = line.client.call(method, {"sessionId": "s", "cwd": "/", "mcpServers": []})
    request = await line.agent.expect(method)
    for number in range(50):
        line.agent.tell("session/update", {"sessionId": "s", "update": {"number": number}})
    line.agent.answer(request, {})
    numbers = [(await line.client.expect("session/update"))["params"]["update"]["number"] for _ in range(50)]
    assert numbers == list(range(50))
    assert await line.client.expect_result(asked) == {}


async def test_an_invalid_answer_to_a_new_session_passes_and_the_chain_goes_on(chain):
    line = await chain(0)
    for answer in ({"sessionId": 7}, [], {"sessionId": "s"}):
        asked = line.client.call("session/new", {"cwd": "/", "mcpServers": []})
        line.agent.answer(await line.agent.expect("session/new"), answer)
        assert await line.client.expect_result(asked) == answer


async def test_the_metadata_of_an_envelope_stays_on_its_hop(chain):
    line = await chain(1)
    [proxy] = line.proxies
    proxy.tell("proxy/successor", {"method": "_x/told", "params": {"_meta": {"inner": 1}}, "_meta": {"outer": 1}})
    told = await line.agent.expect("_x/told")
    assert told["params"] == {"_meta": {"inner": 1}}
    assert "_meta" not in told


def word() -> str:
    """A text."""
    return "seven"


def number() -> int:
    """An integer."""
    return 7


def thing() -> dict[str, int]:
    """An object."""
    return {"seven": 7}


async def test_a_tool_of_a_proxy_answers_with_any_kind_of_value():
    found: dict[str, object] = {}
    agent = accord.Agent("caller")

    @agent.on_prompt
    async def call(turn):
        for name in ("word", "number", "thing"):
            result = await turn.session.mcp.call(turn, f"values/{name}", {})
            found[name] = result.structured

    async with accord.connect(accord.chain(lending(word, number, thing, name="values"), agent)) as remote:
        await (await remote.new_session("/")).prompt("go")
    assert found == {"word": {"result": "seven"}, "number": {"result": 7}, "thing": {"seven": 7}}


LENDING = """
import asyncio, sys
import accord

def add(left: int, right: int) -> int:
    "The sum."
    return left + right

async def main():
    async with accord.connect(sys.argv[1:]) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(add, name="sums")])
        print((await session.prompt("go")).text)

asyncio.run(main())
"""


def test_a_trace_shows_calls_to_a_server_of_the_client_on_every_hop(tmp_path):
    for name, text in {"client": LENDING, "shout": SHOUT, "caller": CALLER}.items():
        (tmp_path / f"{name}.py").write_text(text)
    command = [sys.executable, "client.py", *CONDUCT, "--trace", "chain.jsons", "shout.py", "caller.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=tmp_path, check=True)
    assert done.stdout == "5\n"
    lines = [json.loads(line) for line in (tmp_path / "chain.jsons").read_text().splitlines()]
    calls = [it for it in lines if it.get("method") == "tools/call"]
    assert [(it["from"], it["to"]) for it in calls] == [("Agent", "Proxy(0)"), ("Proxy(0)", "Client")]
    answers = [it for call in calls for it in lines if it["type"] == "response" and it["id"] == call["id"]]
    assert [(it["from"], it["to"]) for it in answers] == [("Proxy(0)", "Agent"), ("Client", "Proxy(0)")]
    assert [it["payload"]["structuredContent"] for it in answers] == [{"result": 5}] * 2
