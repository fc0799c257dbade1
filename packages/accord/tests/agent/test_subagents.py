"""Subagents: turns in sessions of their own, for clients that show them, and tool calls for all others."""

import asyncio

import pytest

from accord import Agent, MemoryStore, RequestError, SqliteStore

SHOWN = {"subagents": {}}
ENDED = {"state": "idle", "stopReason": "end_turn"}


def agent_with(work, **options):
    agent = Agent("delegates", **options)
    agent.on_prompt(work)
    return agent


def prompt(client, text="go"):
    return client.call("session/prompt", {"sessionId": client.session, "prompt": [{"type": "text", "text": text}]})


async def next_update(client):
    """The next update, and the id of its session."""
    params = (await client.expect("session/update"))["params"]
    return params["sessionId"], params["update"]


async def turn_of(client, asked):
    """Everything until the answer: pairs of a session's id and an update, and the answer's result."""
    updates = []
    while "method" in (message := await client.receive()):
        assert message["method"] == "session/update"
        updates.append((message["params"]["sessionId"], message["params"]["update"]))
    assert message["id"] == asked
    return updates, message.get("result", message.get("error"))


def states(updates, subagent):
    """How the session says that a subagent stands, in order."""
    told = [it for _, it in updates if it["sessionUpdate"] == "subagent_update" and it["sessionId"] == subagent]
    return [it["state"] for it in told if "state" in it]


async def test_a_subagent_is_announced_works_in_its_own_session_and_ends(wire):
    async def work(turn):
        async with turn.subagent("Look for callers", "Who calls parse()?", description="Searches") as subagent:
            await subagent.think("Hm")
            await subagent.say("Two ")
            await subagent.say("places")
            async with subagent.tool("Search", kind="search"):
                pass
        await turn.say("Done")

    async with wire(agent_with(work), SHOWN) as client:
        updates, answer = await turn_of(client, prompt(client))
        session = client.session
    (_, announced), (_, sent), (child, received), *rest = updates
    assert answer == {"stopReason": "end_turn"}
    assert announced == {
        "sessionUpdate": "subagent_update",
        "sessionId": child,
        "title": "Look for callers",
        "description": "Searches",
        "capabilities": {},
        "state": {"state": "running"},
    }
    assert child != session
    text = [{"type": "text", "text": "Who calls parse()?"}]
    assert (sent["recipientSessionId"], sent["content"]) == (child, text)
    assert received == {
        "sessionUpdate": "session_message",
        "messageId": received["messageId"],
        "senderSessionId": session,
        "senderMessageId": sent["messageId"],
        "content": text,
    }
    kinds = [(whose == child, update["sessionUpdate"]) for whose, update in rest]
    assert list(dict.fromkeys(kinds)) == [
        (True, "agent_thought_chunk"),
        (True, "agent_message_chunk"),
        (True, "tool_call"),
        (True, "tool_call_update"),
        (False, "subagent_update"),
        (False, "agent_message_chunk"),
    ]
    assert rest[-2][1] == {
        "sessionUpdate": "subagent_update",
        "sessionId": child,
        "state": {"state": "idle", "stopReason": "end_turn"},
    }
    assert rest[1][1]["messageId"] == rest[2][1]["messageId"]


async def test_a_client_without_subagents_sees_a_tool_call_that_grows(wire):
    async def work(turn):
        async with turn.subagent("Look for callers", "Who calls parse()?") as subagent:
            await subagent.think("Hm")
            await subagent.plan("Search")
            await subagent.say("Two ")
            await subagent.say("places")
            async with subagent.tool("Search", kind="search"):
                pass

    async with wire(agent_with(work)) as client:
        updates, _ = await turn_of(client, prompt(client))
        assert {whose for whose, _ in updates} == {client.session}
    calls = {}
    for _, update in updates:
        assert update["sessionUpdate"] in ("tool_call", "tool_call_update")
        calls.setdefault(update["toolCallId"], {}).update(update)
    delegated, search = calls.values()
    assert (delegated["title"], delegated["kind"], delegated["status"]) == ("Look for callers", "other", "completed")
    assert delegated["rawInput"] == {"prompt": "Who calls parse()?"}
    assert delegated["content"] == [{"type": "content", "content": {"type": "text", "text": "Two places"}}]
    assert (search["title"], search["status"]) == ("Search", "completed")


@pytest.mark.parametrize("capabilities", [SHOWN, {}], ids=["subagents", "without"])
async def test_a_question_of_a_subagent_names_the_session_that_the_client_knows(wire, capabilities):
    async def work(turn):
        async with turn.subagent("Delete") as subagent, subagent.tool("rm -r build", kind="delete") as tool:
            await turn.say(str(bool(await tool.ask())))

    async with wire(agent_with(work), capabilities) as client:
        asked = prompt(client)
        seen = []
        while (message := await client.receive())["method"] == "session/update":
            seen.append(message["params"])
        whose = message["params"]["sessionId"]
        client.answer(message, {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        updates, _ = await turn_of(client, asked)
        assert (whose != client.session) == bool(capabilities)
        if capabilities:
            told = [(it["sessionId"], it["update"]) for it in seen] + updates
            assert [it["state"] for it in states(told, whose)] == ["running", "requires_action", "running", "idle"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RequestError.invalid_params("no such folder"), {"code": -32602, "message": "no such folder"}),
        (KeyError("secret path"), {"code": -32603, "message": "Internal error"}),
    ],
    ids=["chosen", "other"],
)
async def test_an_error_ends_the_subagent_and_goes_on_to_the_turn(wire, error, told):
    caught = []

    async def work(turn):
        try:
            async with turn.subagent("Fails"):
                raise error
        except type(error) as raised:
            caught.append(raised)

    async with wire(agent_with(work), SHOWN) as client:
        updates, answer = await turn_of(client, prompt(client))
    child = updates[0][1]["sessionId"]
    assert states(updates, child)[-1] == {"state": "idle", "stopReason": "error", "error": told}
    assert caught == [error]
    assert answer == {"stopReason": "end_turn"}


async def test_the_user_can_cancel_a_subagent_alone(wire):
    async def work(turn):
        async with turn.subagent("Waits", cancellable=True) as subagent:
            await asyncio.Event().wait()
        await turn.say(f"cancelled: {subagent.was_cancelled}")

    async with wire(agent_with(work), SHOWN) as client:
        asked = prompt(client)
        _, announced = await next_update(client)
        assert announced["capabilities"] == {"cancel": {}}
        client.tell("session/cancel", {"sessionId": announced["sessionId"]})
        updates, answer = await turn_of(client, asked)
    assert states(updates, announced["sessionId"]) == [{"state": "idle", "stopReason": "cancelled"}]
    assert updates[-1][1]["content"]["text"] == "cancelled: True"
    assert answer == {"stopReason": "end_turn"}


async def test_a_subagent_that_may_not_be_cancelled_goes_on(wire):
    goes_on = asyncio.Event()

    async def work(turn):
        async with turn.subagent("Works"):
            await goes_on.wait()

    async with wire(agent_with(work), SHOWN) as client:
        asked = prompt(client)
        _, announced = await next_update(client)
        client.tell("session/cancel", {"sessionId": announced["sessionId"]})
        client.tell("session/cancel", {"sessionId": "unknown/s1"})
        await client.request("session/list", {})  # its answer comes when both were handled
        goes_on.set()
        updates, _ = await turn_of(client, asked)
    assert states(updates, announced["sessionId"]) == [{"state": "idle", "stopReason": "end_turn"}]


async def test_cancelling_the_turn_cancels_its_subagents_and_theirs(wire):
    async def work(turn):
        async with turn.subagent("Outer", cancellable=True) as outer, outer.subagent("Inner") as inner:
            await inner.say("here")
            await asyncio.Event().wait()

    async with wire(agent_with(work), SHOWN) as client:
        asked = prompt(client)
        (_, outer), (whose, inner), (said_by, _) = [await next_update(client) for _ in range(3)]
        assert (whose, said_by) == (outer["sessionId"], inner["sessionId"])
        client.tell("session/cancel", {"sessionId": client.session})
        updates, answer = await turn_of(client, asked)
    ended = [{"state": "idle", "stopReason": "cancelled"}]
    assert states(updates, inner["sessionId"]) == states(updates, outer["sessionId"]) == ended
    assert answer == {"stopReason": "cancelled"}


async def test_cancelling_the_outer_of_two_subagents_ends_both_and_the_turn_goes_on(wire):
    async def work(turn):
        async with turn.subagent("Outer", cancellable=True) as outer, outer.subagent("Inner"):
            await asyncio.Event().wait()
        await turn.say("after")

    async with wire(agent_with(work), SHOWN) as client:
        asked = prompt(client)
        (_, outer), (_, inner) = [await next_update(client) for _ in range(2)]
        client.tell("session/cancel", {"sessionId": outer["sessionId"]})
        updates, answer = await turn_of(client, asked)
    ended = [{"state": "idle", "stopReason": "cancelled"}]
    assert states(updates, inner["sessionId"]) == states(updates, outer["sessionId"]) == ended
    assert updates[-1][1]["content"]["text"] == "after"
    assert answer == {"stopReason": "end_turn"}


async def test_what_a_subagent_has_started_ends_before_it_does(wire):
    async def work(turn):
        async with turn.subagent("Starts") as subagent:
            begun = asyncio.Event()

            async def later():
                begun.set()
                await asyncio.sleep(0)
                await subagent.say("later")

            subagent.start(later())
            await begun.wait()

    async with wire(agent_with(work), SHOWN) as client:
        updates, _ = await turn_of(client, prompt(client))
    assert [it["sessionUpdate"] for _, it in updates] == ["subagent_update", "agent_message_chunk", "subagent_update"]


async def test_a_subagent_says_nothing_after_its_block(wire):
    problems = []

    async def work(turn):
        async with turn.subagent("Short") as subagent:
            pass
        try:
            await subagent.say("too late")
        except RuntimeError as error:
            problems.append(str(error))

    async with wire(agent_with(work), SHOWN) as client:
        updates, _ = await turn_of(client, prompt(client))
    assert len(updates) == 2
    assert "over" in problems[0]


async def test_messages_pass_between_a_session_and_its_subagent(wire):
    async def work(turn):
        await turn.say("before ")
        async with turn.subagent("Find") as subagent:
            await subagent.instruct("More, please")
            await subagent.report("Two places")
        await turn.say("after")

    async with wire(agent_with(work), SHOWN) as client:
        updates, _ = await turn_of(client, prompt(client))
        session = client.session
    child = updates[1][1]["sessionId"]
    messages = [(whose, it) for whose, it in updates if it["sessionUpdate"] == "session_message"]
    (_, sent), (_, got), (_, reported), (_, arrived) = messages
    assert [whose for whose, _ in messages] == [session, child, child, session]
    assert (got["senderSessionId"], got["senderMessageId"]) == (session, sent["messageId"])
    assert (arrived["senderSessionId"], arrived["senderMessageId"]) == (child, reported["messageId"])
    assert reported["recipientSessionId"] == session
    before, after = [it["messageId"] for _, it in updates if it["sessionUpdate"] == "agent_message_chunk"]
    assert before != after


async def test_the_tokens_of_a_subagent_are_told_when_it_ends(wire):
    async def work(turn):
        async with turn.subagent("Counts") as subagent:
            subagent.tokens(10, 5)
            await subagent.retitle("Counted")

    async with wire(agent_with(work), SHOWN) as client:
        updates, answer = await turn_of(client, prompt(client))
    (_, _), (_, retitled), (_, ended) = updates
    assert retitled["title"] == "Counted"
    assert ended["state"]["usage"] == {"totalTokens": 15, "inputTokens": 10, "outputTokens": 5}
    assert answer == {"stopReason": "end_turn"}


# Kept with the session


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "sessions.sqlite3")


async def delegate(turn):
    async with turn.subagent("Outer") as outer, outer.subagent("Inner") as inner:
        await inner.say("Two places")
    await turn.say("Done")


async def replayed(client, session, method="session/load"):
    """What loading a session replays."""
    asked = client.call(method, {"sessionId": session, "cwd": "/project", "mcpServers": []})
    updates, _ = await turn_of(client, asked)
    return [it for it in updates if it[1]["sessionUpdate"] not in ("user_message_chunk", "session_info_update")]


async def test_loading_a_session_replays_its_subagents_under_their_own_ids(scripted, store):
    agent = agent_with(delegate, store=store)
    async with scripted(agent, SHOWN) as client:
        client.session = (await client.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]
        told, _ = await turn_of(client, prompt(client))
    async with scripted(agent, SHOWN) as client:
        again = await replayed(client, told[0][0])
    outer, inner, words, done = (
        it for it in told if it[1].get("state") != ENDED and it[1]["sessionUpdate"] != "session_info_update"
    )
    assert again == [
        (outer[0], {**outer[1], "state": ENDED}),
        (inner[0], {**inner[1], "state": ENDED}),
        words,
        done,
    ]


async def test_a_client_without_subagents_gets_no_update_of_them_when_it_loads(scripted, store):
    agent = agent_with(delegate, store=store)
    async with scripted(agent, SHOWN) as client:
        client.session = (await client.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]
        await turn_of(client, prompt(client))
    async with scripted(agent) as other:
        again = await replayed(other, client.session)
    assert [it["sessionUpdate"] for _, it in again] == ["agent_message_chunk"]


async def test_a_fork_does_not_replay_the_subagents_of_its_source(scripted, store):
    agent = agent_with(delegate, store=store)
    async with scripted(agent, SHOWN) as client:
        client.session = (await client.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]
        await turn_of(client, prompt(client))
        fork = await client.request("session/fork", {"sessionId": client.session, "cwd": "/project", "mcpServers": []})
    async with scripted(agent, SHOWN) as client:
        again = await replayed(client, fork["sessionId"])
    assert [it["sessionUpdate"] for _, it in again] == ["agent_message_chunk"]


async def test_history_holds_the_subagents_but_not_what_they_said(wire):
    histories = []

    async def work(turn):
        await delegate(turn)
        histories.append(await turn.session.history())

    async with wire(agent_with(work), SHOWN) as client:
        await turn_of(client, prompt(client))
    (history,) = histories
    assert [it.title for it in history.subagents.values()] == ["Outer"]
    assert [message.text for message in history.messages] == ["go", "Done"]
    assert history.unknown == []


async def test_subagents_that_a_crash_has_ended_are_replayed_as_ended(scripted, store):
    """The first connection is lost with everything open; the store has what was told until then."""

    async def work(turn):
        async with turn.subagent("Outer") as outer, outer.subagent("Inner") as inner, inner.tool("Search"):
            await inner.say("still at it")
            crashed.set()
            await asyncio.Event().wait()

    crashed = asyncio.Event()
    agent = agent_with(work, store=store)
    async with scripted(agent, SHOWN) as client:
        client.session = (await client.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]
        prompt(client)
        await crashed.wait()
        async with scripted(agent_with(work, store=store), SHOWN) as other:
            again = await replayed(other, client.session)
    outer, inner = (it["sessionId"] for _, it in again if "title" in it and it["sessionUpdate"] == "subagent_update")
    for subagent in outer, inner:
        assert states(again, subagent)[-1]["stopReason"] == "error"
    (tool_ended,) = [it for whose, it in again if it.get("status") == "failed"]
    assert (inner, tool_ended) in again
