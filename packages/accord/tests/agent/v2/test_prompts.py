"""The life of a prompt in version 2: held, inserted, worked on, idle; and what cancels it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import make_dataclass

import pytest

from accord import Agent, MemoryStore, RequestError, SqliteStore, connect, v1


class Stage:
    """An agent that works on a prompt until it is told to end it."""

    def __init__(self, **options):
        self.agent = Agent("stage", **options)
        self.agent.on_prompt(self.work)
        self.ends = {}

    async def work(self, turn):
        await turn.say(turn.text)
        await self.ends.setdefault(turn.text, asyncio.Event()).wait()

    def end(self, text):
        self.ends.setdefault(text, asyncio.Event()).set()


async def begun(client, session_id, text):
    """Send a prompt and see it begin."""
    await client.inserted(client.prompt(session_id, text), text)
    assert await client.said() == text


async def test_a_prompt_is_echoed_answered_told_as_running_worked_on_and_told_as_idle(speak):
    agent = Agent("greeter")

    @agent.on_prompt
    async def greet(turn):
        await turn.think("hm")
        await turn.say("Hel")
        await turn.say("lo")

    async with speak(agent) as client:
        session_id = await client.new()
        message_id = await client.inserted(client.prompt(session_id))
        thought = await client.update("agent_thought_chunk")
        first = await client.update("agent_message_chunk")
        second = await client.update("agent_message_chunk")
        assert [it["content"]["text"] for it in (thought, first, second)] == ["hm", "Hel", "lo"]
        assert first["messageId"] == second["messageId"]
        assert len({message_id, thought["messageId"], first["messageId"]}) == 3
        await client.state("idle", stopReason="end_turn")
        await client.expect_silence()


async def test_a_prompt_of_which_nothing_comes_goes_through_the_same_states(speak):
    agent = Agent("mute")
    agent.command("nothing", "Do nothing")(lambda _: None)
    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new(), "/nothing"), "/nothing")
        await client.state("idle", stopReason="end_turn")


async def test_a_slash_command_goes_through_the_same_states(speak):
    agent = Agent("short")

    @agent.command("ping", "Answer at once")
    async def ping(turn):
        await turn.say("pong")

    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new(), "/ping"), "/ping")
        assert await client.said() == "pong"
        await client.state("idle", stopReason="end_turn")


@pytest.mark.parametrize("reason", ["max_tokens", "max_turn_requests", "refusal"])
async def test_the_idle_state_has_the_stop_reason_of_the_function(speak, reason):
    agent = Agent("ends")
    agent.on_prompt(lambda _: reason)
    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new()))
        await client.state("idle", stopReason=reason)


async def test_the_idle_state_has_the_usage_and_the_meta_of_the_turn(speak):
    agent = Agent("counts", unstable=True)

    @agent.on_prompt
    def count(turn):
        turn.tokens(3, 5)
        turn.answer_meta["_example.com/cost"] = 1

    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new()))
        usage = {"totalTokens": 8, "inputTokens": 3, "outputTokens": 5}
        await client.state("idle", stopReason="end_turn", usage=usage, _meta={"_example.com/cost": 1})


@pytest.mark.parametrize(
    "params",
    [
        {"prompt": []},
        {"prompt": [{"type": "image", "data": "", "mimeType": "image/png"}]},
        {"prompt": [{"type": "hologram"}]},
        {},
    ],
)
async def test_a_prompt_that_cannot_be_taken_is_answered_with_an_error_and_inserted_nowhere(speak, params):
    stage = Stage()
    async with speak(stage.agent) as client:
        session_id = await client.new()
        await client.expect_error(client.call("session/prompt", {"sessionId": session_id, **params}), -32602)
        await client.expect_silence()


async def test_a_prompt_to_a_session_that_is_not_open_names_the_session(speak):
    async with speak(Stage().agent) as client:
        error = await client.expect_error(client.prompt("nowhere"), -32002)
        assert error["data"] == {"sessionId": "nowhere"}


# Failures


async def test_an_error_of_the_author_s_choosing_is_told_by_the_idle_state(speak):
    agent = Agent("picky")

    @agent.on_prompt
    async def refuse(turn):
        await turn.say("Let me see.")
        raise RequestError(-32000, "log in first", {"url": "there"})

    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new()))
        await client.said()
        error = {"code": -32000, "message": "log in first", "data": {"url": "there"}}
        await client.state("idle", stopReason="error", error=error)
        await client.expect_silence()


async def test_a_failure_is_told_without_its_details_and_logged_with_them(speak, caplog):
    agent = Agent("broken")

    @agent.on_prompt
    def fail(turn):
        raise LookupError("the secret cupboard is empty")

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        await client.state("idle", stopReason="error", error={"code": -32603, "message": "Internal error"})
        await client.inserted(client.prompt(session_id))
    assert "the secret cupboard is empty" in caplog.text


async def test_a_prompt_without_a_login_is_answered_with_an_error(speak):
    agent = Stage().agent
    agent.login("account", "Account")(lambda: None)
    agent.on_logout(lambda: None)
    async with speak(agent) as client:
        await client.request("auth/login", {"methodId": "account"})
        session_id = await client.new()
        await client.request("auth/logout", {})
        await client.expect_error(client.prompt(session_id), -32000)
        await client.expect_silence()


# Prompts while the agent works


async def test_a_second_prompt_is_held_and_inserted_when_the_first_is_done(speak):
    stage = Stage()
    async with speak(stage.agent) as client:
        session_id = await client.new()
        await begun(client, session_id, "one")
        two, three = client.prompt(session_id, "two"), client.prompt(session_id, "three")
        await client.expect_silence()
        for text, request in ("two", two), ("three", three):
            stage.end("one")
            await client.state("idle", stopReason="end_turn")
            await client.inserted(request, text)
            assert await client.said() == text
            stage.end(text)
        await client.state("idle", stopReason="end_turn")


async def test_a_held_prompt_can_be_withdrawn(speak):
    stage = Stage()
    async with speak(stage.agent) as client:
        session_id = await client.new()
        await begun(client, session_id, "one")
        two = client.prompt(session_id, "two")
        client.tell("$/cancel_request", {"requestId": two})
        await client.expect_error(two, -32800)
        stage.end("one")
        await client.state("idle", stopReason="end_turn")
        await client.expect_silence()


async def test_withdrawing_an_answered_prompt_does_nothing(speak):
    stage = Stage()
    async with speak(stage.agent) as client:
        session_id = await client.new()
        one = client.prompt(session_id, "one")
        await client.inserted(one, "one")
        assert await client.said() == "one"
        client.tell("$/cancel_request", {"requestId": one})
        await client.expect_silence()
        stage.end("one")
        await client.state("idle", stopReason="end_turn")


async def test_a_prompt_can_take_the_place_of_the_one_before(speak):
    stage = Stage(prompt_while_working="cancel_first")
    async with speak(stage.agent) as client:
        session_id = await client.new()
        await begun(client, session_id, "one")
        two = client.prompt(session_id, "two")
        await client.state("idle", stopReason="cancelled")
        await client.inserted(two, "two")
        assert await client.said() == "two"
        stage.end("two")
        await client.state("idle", stopReason="end_turn")


# Cancelling


async def test_a_cancelled_turn_is_idle_after_its_last_updates(speak):
    agent = Agent("tidy")

    @agent.on_prompt
    async def work(turn):
        async with turn.tool("Wait", kind="execute") as tool:
            try:
                await tool.text("half")
                await asyncio.Event().wait()
            finally:
                await turn.say("I stop.")

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        await client.until("tool_call_update", status="in_progress")
        client.cancel(session_id)
        assert await client.said() == "I stop."
        assert (await client.update("tool_call_update"))["status"] == "cancelled"
        await client.state("idle", stopReason="cancelled")
        await client.expect_silence()


async def test_cancelling_ends_held_prompts_and_spares_those_that_come_later(speak):
    stage = Stage()
    async with speak(stage.agent) as client:
        session_id = await client.new()
        await begun(client, session_id, "one")
        two = client.prompt(session_id, "two")
        client.cancel(session_id)
        three = client.prompt(session_id, "three")
        answers = [await client.receive() for _ in range(2)]
        by_id = {it.get("id"): it for it in answers}
        assert by_id[two]["error"]["code"] == -32800
        assert by_id[None]["params"]["update"]["stopReason"] == "cancelled"
        await client.inserted(three, "three")
        assert await client.said() == "three"
        stage.end("three")
        await client.state("idle", stopReason="end_turn")


async def test_cancelling_an_idle_session_or_an_unknown_one_does_nothing(speak):
    async with speak(Stage().agent) as client:
        client.cancel(await client.new())
        client.cancel("nowhere")
        await client.expect_silence()


async def test_an_error_in_a_cancelled_turn_is_not_told(speak):
    agent = Agent("clumsy")

    @agent.on_prompt
    async def stumble(turn):
        try:
            await turn.say("working")
            await asyncio.Event().wait()
        finally:
            raise LookupError("on the way out")

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        await client.said()
        client.cancel(session_id)
        await client.state("idle", stopReason="cancelled")


async def test_a_turn_that_ignores_its_cancelling_is_idle_without_it_and_says_no_more(speak):
    released, refused = asyncio.Event(), asyncio.Event()
    agent = Agent("stubborn", cancel_grace=0.01)

    @agent.on_prompt
    async def linger(turn):
        await turn.say("working")
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await released.wait()
        try:
            await turn.say("too late")
        except RuntimeError:
            refused.set()

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        await client.said()
        client.cancel(session_id)
        await client.state("idle", stopReason="cancelled")
        released.set()
        await refused.wait()
        await client.expect_silence()


# Questions


async def asked(client, **state):
    """See the question of a tool call, and the state around it."""
    await client.state("requires_action", **state)
    return await client.expect("session/request_permission")


async def test_a_question_has_a_title_a_subject_and_a_state_around_it(speak):
    agent = Agent("careful")

    @agent.on_prompt
    async def work(turn):
        async with turn.tool("Run the tests", kind="execute") as tool:
            await turn.say("yes" if await tool.ask("allow_once", "reject_once") else "no")

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        tool_call_id = (await client.update("tool_call_update"))["toolCallId"]
        question = await asked(client)
        params = question["params"]
        assert params["title"] == "Run the tests"
        assert params["subject"]["type"] == "tool_call"
        assert params["subject"]["toolCall"]["toolCallId"] == tool_call_id
        assert [option["kind"] for option in params["options"]] == ["allow_once", "reject_once"]
        client.answer(question, {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        await client.state("running")
        seen = await client.until("state_update", state="idle")
        assert [it["content"]["text"] for it in seen if "content" in it and "messageId" in it] == ["yes"]


@pytest.mark.parametrize("outcome", [{"outcome": "cancelled"}, {"outcome": "later"}])
async def test_an_outcome_that_is_no_choice_is_a_refusal_and_the_turn_goes_on(speak, outcome):
    agent = Agent("careful")

    @agent.on_prompt
    async def work(turn):
        allowed = bool(await turn.ask("Push"))
        await turn.say(f"allowed: {allowed}")

    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new()))
        await client.update("tool_call_update")
        client.answer(await asked(client), {"outcome": outcome})
        await client.state("running")
        seen = await client.until("state_update", state="idle", stopReason="end_turn")
        assert "allowed: False" in str(seen)


async def test_the_open_question_of_a_cancelled_turn_is_withdrawn(speak):
    agent = Agent("careful")

    @agent.on_prompt
    async def work(turn):
        await turn.ask("Push")

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        await client.update("tool_call_update")
        question = await asked(client)
        client.cancel(session_id)
        messages = [await client.receive()]
        while messages[-1].get("params", {}).get("update", {}).get("state") != "idle":
            messages.append(await client.receive())
        withdrawn = [it["params"] for it in messages if it.get("method") == "$/cancel_request"]
        assert withdrawn == [{"requestId": question["id"]}]
        assert messages[-1]["params"]["update"]["stopReason"] == "cancelled"
        client.answer(question, {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        await client.expect_silence()


async def test_a_question_beside_other_work_leaves_the_session_running(speak):
    working = asyncio.Event()
    agent = Agent("busy")

    @agent.on_prompt
    async def work(turn):
        turn.start(working.wait())
        await turn.ask("Push")
        working.set()

    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new()))
        await client.update("tool_call_update")
        question = await client.expect("session/request_permission")
        client.answer(question, {"outcome": {"outcome": "cancelled"}})
        seen = await client.until("state_update", state="idle")
        assert [it["state"] for it in seen if "state" in it] == ["idle"]


async def test_a_form_is_asked_for_as_in_version_1(speak):
    agent = Agent("curious")

    @agent.on_prompt
    async def ask(turn):
        answer = await turn.elicit("Who?", make_dataclass("Who", [("name", str)]))
        await turn.say(answer.value.name)

    async with speak(agent, capabilities={"elicitation": {"form": {}}}) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id))
        await client.state("requires_action")
        question = await client.expect("elicitation/create")
        assert question["params"]["sessionId"] == session_id
        assert question["params"]["requestedSchema"]["type"] == "object"
        client.answer(question, {"action": "accept", "content": {"name": "Ada"}})
        await client.state("running")
        assert await client.said() == "Ada"
        await client.state("idle", stopReason="end_turn")


async def test_a_message_is_sent_whole_and_replaced_and_taken_back_under_its_id(speak):
    agent = Agent("corrects")

    @agent.on_prompt
    async def correct(turn):
        await turn.say("Hm.")
        message = await turn.message("Searching ...")
        await message.replace("Found ", v1.ResourceLink("a.py", "file:///a.py"))
        assert await message.clear()
        await turn.say("Done.")

    async with speak(agent) as client:
        session_id = await client.new()
        await client.inserted(client.prompt(session_id, "go"), "go")
        first = await client.update("agent_message_chunk")
        sent, replaced, cleared = [await client.update("agent_message") for _ in range(3)]
        last = await client.update("agent_message_chunk")
        assert sent["content"] == [{"type": "text", "text": "Searching ..."}]
        assert [block["type"] for block in replaced["content"]] == ["text", "resource_link"]
        assert cleared["content"] == []
        assert sent["messageId"] == replaced["messageId"] == cleared["messageId"]
        assert len({first["messageId"], sent["messageId"], last["messageId"]}) == 3
        await client.state("idle", stopReason="end_turn")


async def test_what_replaces_a_message_is_another_message_in_version_1():
    agent = Agent("corrects")

    @agent.on_prompt
    async def correct(turn):
        message = await turn.message("Searching ...")
        before = message.id
        await message.replace("Found 3 places.")
        assert message.id != before
        assert not await message.clear()

    async with connect(agent) as remote:
        session = await remote.new_session("/")
        await session.prompt("go")
        assert [it.text for it in session.state.messages if it.speaker == "agent"] == [
            "Searching ...",
            "Found 3 places.",
        ]


async def test_a_replaced_message_is_replayed_as_it_was_in_the_end():
    agent = Agent("corrects", store=MemoryStore())

    @agent.on_prompt
    async def correct(turn):
        message = await turn.message("Searching ...")
        await message.replace("Found 3 places.")

    async with connect(agent, versions=(2,)) as remote:
        session = await remote.new_session("/")
        await session.prompt("go")
    for version in (1, 2):
        async with connect(agent, versions=(version,)) as remote:
            again = await remote.load(session.id, "/")
            assert [it.text for it in again.state.messages] == ["go", "Found 3 places."]


async def test_a_message_that_says_nothing_is_refused():
    agent = Agent("says nothing")

    @agent.on_prompt
    async def work(turn):
        with pytest.raises(ValueError, match=r"turn.message\(\) needs text"):
            await turn.message()
        message = await turn.message("Here.")
        with pytest.raises(ValueError, match=r"clear\(\) takes a message back"):
            await message.replace()

    async with connect(agent) as remote:
        assert (await (await remote.new_session("/")).prompt("go")).stop_reason == "end_turn"


# Retries under an idempotency key


def keyed(client, session_id, key, text="hello"):
    prompt = [{"type": "text", "text": text}]
    return client.call("session/prompt", {"sessionId": session_id, "prompt": prompt, "idempotencyKey": key})


def counting(**options):
    agent = Agent("counting", **options)
    agent.runs = []

    @agent.on_prompt
    async def work(turn):
        agent.runs.append(turn.text)
        await turn.say("done")

    return agent


async def test_a_retry_under_the_same_key_gets_the_first_message_and_runs_nothing(speak):
    async with speak(agent := counting()) as client:
        session_id = await client.new()
        message_id = await client.inserted(keyed(client, session_id, "k"))
        await client.until("state_update", state="idle")
        assert await client.expect_result(keyed(client, session_id, "k")) == {"messageId": message_id}
        await client.state("idle", stopReason="end_turn")
        await client.expect_silence()
        other = await client.inserted(keyed(client, session_id, "K"))
        await client.until("state_update", state="idle")
    assert other != message_id
    assert agent.runs == ["hello", "hello"]


@pytest.mark.parametrize("key", ["", "k" * 256, 7, ["k"], False])
async def test_a_malformed_key_is_refused(speak, key):
    async with speak(agent := counting()) as client:
        session_id = await client.new()
        error = await client.expect_error(keyed(client, session_id, key))
        assert (error["code"], error["data"]["path"]) == (-32602, "$.idempotencyKey")
        await client.expect_silence()
    assert agent.runs == []


@pytest.mark.parametrize("key", ["k", "k" * 255, ',"', '"]', 'a" b\\', "\u20ac" * 255, "\ud83d"])
async def test_any_key_of_1_to_255_characters_is_known_after_a_restart(speak, key, tmp_path):
    answers = []
    for _ in range(2):
        async with SqliteStore(tmp_path / "sessions.sqlite3") as store, speak(counting(store=store)) as client:
            if not answers:
                session_id = await client.new()
                keyed(client, session_id, key)
                answers.append((await client.update("user_message"))["messageId"])
                await client.receive()
                await client.until("state_update", state="idle")
            else:
                resuming = client.call("session/resume", {"sessionId": session_id, "cwd": "/project"})
                await client.until("state_update", state="idle")
                await client.expect_result(resuming)
                retry = keyed(client, session_id, key)
                answers.append((await client.expect_result(retry))["messageId"])
                await client.state("idle", stopReason="end_turn")
                await client.expect_silence()
    assert answers[0] == answers[1]


async def test_two_attempts_at_the_same_moment_insert_once(speak):
    stage = Stage()
    async with speak(stage.agent) as client:
        session_id = await client.new()
        await begun(client, session_id, "first")
        attempts = [keyed(client, session_id, "k", "second") for _ in range(3)]
        await client.expect_silence()
        stage.end("first")
        stage.end("second")
        seen = await client.until("state_update", state="idle")
        echoes = [it for it in seen if it["sessionUpdate"] == "user_message"]
        answers = [await client.expect_result(attempt) for attempt in attempts] if echoes else []
    assert answers == [{"messageId": echo["messageId"]} for echo in echoes * 3]


async def test_a_retry_after_a_prompt_that_was_cancelled_before_its_insertion_is_a_new_one(speak):
    stage = Stage()
    async with speak(stage.agent) as client:
        session_id = await client.new()
        await begun(client, session_id, "first")
        held, retry = keyed(client, session_id, "k", "second"), keyed(client, session_id, "k", "second")
        client.tell("$/cancel_request", {"requestId": held})
        assert (await client.expect_error(held))["code"] == -32800
        stage.end("first")
        await client.until("state_update", state="idle")
        await client.inserted(retry, "second")
        stage.end("second")
        await client.until("state_update", state="idle")


async def test_a_fork_does_not_know_the_keys_of_its_source(speak):
    async with speak(agent := counting()) as client:
        session_id = await client.new()
        await client.inserted(keyed(client, session_id, "k"))
        await client.until("state_update", state="idle")
        fork = (await client.request("session/fork", {"sessionId": session_id, "cwd": "/project"}))["sessionId"]
        await client.inserted(keyed(client, fork, "k"))
        await client.until("state_update", state="idle")
        await client.request("session/close", {"sessionId": fork})
        resuming = client.call("session/resume", {"sessionId": fork, "cwd": "/project"})
        await client.state("idle")
        await client.expect_result(resuming)
        await client.expect_result(keyed(client, fork, "k"))
    assert len(agent.runs) == 2


async def test_each_prompt_of_our_client_has_a_key_with_which_it_can_be_sent_again():
    agent = counting()
    async with connect(agent, versions=(2,)) as remote:
        session = await remote.new_session("/")
        first, second = session.prompt("a"), session.prompt("b")
        await second
        again = session.prompt("a", idempotency_key=first.idempotency_key)
        assert await again.inserted == await first.inserted
        assert len({first.idempotency_key, second.idempotency_key}) == 2
        with pytest.raises(ValueError, match="idempotency_key must have 1 to 255 characters, got 256"):
            session.prompt("c", idempotency_key="k" * 256)
    assert agent.runs == ["a", "b"]
