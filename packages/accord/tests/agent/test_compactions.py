"""Compactions of the agent's context, and notices between turns."""

import asyncio

import pytest

from accord import Agent, RequestError

SHOWN = {"session": {"compaction": {}, "notices": {}}}


def agent_with(work):
    agent = Agent("compacts")
    agent.on_prompt(work)
    return agent


async def turn_of(client, text="go"):
    """The updates of a turn, and its answer."""
    asked = client.call("session/prompt", {"sessionId": client.session, "prompt": [{"type": "text", "text": text}]})
    updates = []
    while "method" in (message := await client.receive()):
        updates.append(message["params"]["update"])
    assert message["id"] == asked
    return updates, message.get("result", message.get("error"))


async def test_a_compaction_is_told_from_its_beginning_to_its_end(wire):
    async def work(turn):
        async with turn.session.compaction() as compaction:
            await compaction.summary("So far: ")
            await compaction.summary("nothing")

    async with wire(agent_with(work), SHOWN) as client:
        (begun, first, second, ended), _ = await turn_of(client)
    identity = begun["compactionId"]
    assert begun == {"sessionUpdate": "compaction_update", "compactionId": identity, "status": "in_progress"}
    assert [it["content"]["text"] for it in (first, second)] == ["So far: ", "nothing"]
    assert first["sessionUpdate"] == "compaction_summary_chunk"
    assert ended == {"sessionUpdate": "compaction_update", "compactionId": identity, "status": "completed"}


@pytest.mark.requirement("compaction.own-id")
async def test_each_compaction_of_a_session_has_an_id_of_its_own(wire):
    async def work(turn):
        for _ in range(2):
            async with turn.session.compaction():
                pass

    async with wire(agent_with(work), SHOWN) as client:
        told = [update for _ in range(2) for update in (await turn_of(client))[0]]
    assert len({update["compactionId"] for update in told}) == 4


@pytest.mark.requirement("compaction.summary-only-completed")
@pytest.mark.parametrize(
    ("error", "text"),
    [(RequestError.invalid_request("the model is busy"), "the model is busy"), (KeyError("secret"), "Internal error")],
    ids=["chosen", "other"],
)
async def test_an_error_fails_the_compaction_and_takes_back_its_summary(wire, error, text):
    async def work(turn):
        async with turn.session.compaction() as compaction:
            await compaction.summary("So far")
            raise error

    async with wire(agent_with(work), SHOWN) as client:
        updates, answer = await turn_of(client)
    assert (updates[-1]["status"], updates[-1]["error"]) == ("failed", text)
    assert updates[-1]["summary"] is None
    assert "code" in answer


async def test_a_cancelled_turn_cancels_its_compaction(wire):
    async def work(turn):
        async with turn.session.compaction():
            await asyncio.Event().wait()

    async with wire(agent_with(work), SHOWN) as client:
        asked = client.call("session/prompt", {"sessionId": client.session, "prompt": [{"type": "text", "text": "go"}]})
        await client.expect("session/update")
        client.tell("session/cancel", {"sessionId": client.session})
        ended = (await client.expect("session/update"))["params"]["update"]
        assert await client.expect_result(asked) == {"stopReason": "cancelled"}
    assert (ended["status"], ended.get("error", "none")) == ("cancelled", "none")


async def test_an_author_can_fail_a_compaction_in_words(wire):
    async def work(turn):
        async with turn.session.compaction() as compaction:
            await compaction.fail("there is nothing to compact")

    async with wire(agent_with(work), SHOWN) as client:
        (_, failed), answer = await turn_of(client)
    assert (failed["status"], failed["error"]) == ("failed", "there is nothing to compact")
    assert answer == {"stopReason": "end_turn"}


@pytest.mark.requirement("compaction.only-when-advertised", "notice.only-when-advertised")
async def test_a_client_without_compactions_and_notices_is_told_of_neither(wire):
    shown = []

    async def work(turn):
        async with turn.session.compaction() as compaction:
            await compaction.summary("So far")
            shown.append(compaction.is_shown)
        shown.append(await turn.session.notice("Quota", "nearly used"))

    async with wire(agent_with(work)) as client:
        updates, _ = await turn_of(client)
    assert updates == []
    assert shown == [False, False]


@pytest.mark.parametrize("capabilities", [SHOWN, {}], ids=["notices", "without"])
async def test_a_session_sends_a_notice_between_turns(wire, capabilities):
    sessions, results = [], []

    async def work(turn):
        sessions.append(turn.session)

    async with wire(agent_with(work), capabilities) as client:
        await turn_of(client)
        results.append(await sessions[0].notice("Quota", "nearly used", severity="warning", fallback=True))
        told = (await client.expect("session/update"))["params"]["update"]
    assert results == [True]
    if capabilities:
        assert told == {
            "sessionUpdate": "notice",
            "severity": "warning",
            "title": "Quota",
            "description": "nearly used",
        }
    else:
        assert told["sessionUpdate"] == "agent_message_chunk"
        assert told["content"]["text"] == "Quota: nearly used"
