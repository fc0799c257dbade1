"""What an agent of another framework does as an ACP agent: the same for each framework."""

import asyncio
import base64
import json
from contextlib import suppress

import pytest

import accord
import accord_adapters
from accord import updates, v1
from accord.session import Message
from tests.adapters.script import READ, TODOS, WRITTEN, Call, Refuse, Say, Think, Wait
from tests.waiting import DEADLINE, PAUSE

# Frameworks warn of their own code; Claude's SDK of tools that run without a question, and of its own streams.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:can_use_tool", "ignore:Unclosed <MemoryObject"
)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="

CONVERSATION = [
    [Think("I should "), Think("add."), Say("I add. "), Call("add", {"left": 2, "right": 3})],
    [Say("It is "), Say("5.")],
]


async def test_text_streams_as_the_model_says_it(opened, script):
    script.says([Say("One "), Say("two "), Say("three.")])
    async with opened() as session:
        reply = session.prompt("Count")
        assert [text async for text in reply.iter_text()] == ["One ", "two ", "three."]
        assert (await reply).stop_reason == "end_turn"


async def test_thoughts_stream_beside_the_text(opened, script):
    script.says([Think("Hm, "), Think("well."), Say("Yes.")])
    async with opened() as session:
        updates = [it async for it in session.prompt("Really?")]
        assert [it.content.text for it in updates if isinstance(it, v1.AgentThoughtChunk)] == ["Hm, ", "well."]
        assert [(it.speaker, it.text) for it in session.state.messages][1:] == [
            ("thought", "Hm, well."),
            ("agent", "Yes."),
        ]


async def test_a_tool_call_has_its_arguments_and_its_result(opened, script):
    script.says([Call("add", {"left": 2, "right": 3})], [Say("5.")])
    async with opened(kinds={"add": "think"}) as session:
        reply = session.prompt("Add")
        statuses = [it.status for it in [u async for u in reply] if isinstance(it, updates.ToolCallUpdate)]
        assert (statuses[0], statuses[-1]) == ("pending", "completed")
        [call] = (await reply).tool_calls
        assert (call.name, call.kind, call.status) == ("add", "think", "completed")
        assert call.raw_input == {"left": 2, "right": 3}
        assert call.text == "5"
    assert "5" in script.asked[1]


async def test_a_tool_that_fails_is_shown_as_failed_and_the_model_goes_on(opened, script):
    script.says([Call("fail", {"why": "no disk"})], [Say("It did not work.")])
    async with opened() as session:
        outcome = await session.prompt("Fail")
        [call] = outcome.tool_calls
        assert (call.status, outcome.text) == ("failed", "It did not work.")
        assert "no disk" in call.text
    assert "no disk" in script.asked[1]


@pytest.mark.parametrize("allow", [True, False])
async def test_a_tool_that_needs_approval_asks_the_user(opened, script, allow):
    questions = []

    def decide(question):
        questions.append((question.title, question.tool_call.raw_input))
        return allow

    script.says([Call("publish", {"text": "news"})], [Say("Done.")])
    async with opened(client=accord.Client(permissions=decide)) as session:
        outcome = await session.prompt("Publish")
        [call] = outcome.tool_calls
        assert questions == [("publish", {"text": "news"})]
        assert call.status == ("completed" if allow else "failed")
        assert ("Published news" in call.text) is allow
        assert outcome.text == "Done."
    assert ("Published news" in script.asked[1]) is allow


async def test_a_plan_is_shown_as_a_plan(opened, script):
    script.says([Call("write_todos", {"todos": TODOS})], [Say("Planned.")])
    async with opened() as session:
        await session.prompt("Plan")
        assert [(it.content, it.status) for it in session.state.plan] == [
            ("Read", "completed"),
            ("Write", "in_progress"),
        ]


async def test_usage_is_told_for_the_context_and_for_the_turn(opened, script, models):
    script.says([Call("add", {"left": 2, "right": 3})], [Say("5.")])
    async with opened() as session:
        reply = session.prompt("Add")
        updates = [it async for it in reply if isinstance(it, v1.UsageUpdate)]
        told = [(it.used, it.size) for it in updates if it.cost is None]
        outcome = await reply
        spent = (outcome.usage.input_tokens, outcome.usage.output_tokens)
        assert len(told) == 2
        assert sum(used for used, _ in told) == sum(spent)
        if models.counts_tokens:
            assert (told, spent) == ([(READ + WRITTEN, 1000)] * 2, (2 * READ, 2 * WRITTEN))


async def test_a_cancel_ends_a_model_call_and_the_next_turn_knows_of_the_prompt(opened, script):
    script.says([Say("One "), Wait()], [Say("Here.")])
    async with opened() as session:
        reply = session.prompt("Count to a million")
        async for _ in reply.iter_text():
            break
        assert (await reply.cancel()).stop_reason == "cancelled"
        assert (await session.prompt("Are you there?")).text == "Here."
    assert "Count to a million" in script.asked[1]


async def test_a_cancel_ends_a_tool_and_the_next_turn_works(opened, script):
    script.says([Call("wait", {})], [Say("Here.")])
    async with opened() as session:
        reply = session.prompt("Wait")
        async for update in reply:
            if isinstance(update, updates.ToolCallUpdate):
                break
        outcome = await reply.cancel()
        assert outcome.stop_reason == "cancelled"
        assert [it.is_finished for it in outcome.tool_calls] == [True]
        assert (await session.prompt("Are you there?")).text == "Here."


async def test_a_session_is_continued_after_a_restart_with_all_that_the_model_knew(opened, script, tmp_path):
    store = tmp_path / "sessions.db"
    script.says(*CONVERSATION)
    async with opened(store=store) as session:
        await session.prompt("Add 2 and 3")
        before = folded(session)
    script.says([Say("5, as I said.")])
    async with opened(store=store, load=session.id) as again:
        assert folded(again) == before
        assert (await again.prompt("How much was it?")).text == "5, as I said."
    for known in ("Add 2 and 3", "I add. ", "left", "It is 5.", "How much was it?"):
        assert known in script.asked[-1]


async def test_a_refusal_of_the_provider_is_told_in_its_own_words_and_the_session_goes_on(opened, script):
    script.says([Refuse("Your credit is used up\x1b[2J")], [Say("Here.")])
    async with opened() as session:
        with pytest.raises(accord.PeerError, match="Your credit is used up") as refused:
            await session.prompt("Go")
        assert "\x1b" not in str(refused.value)
        assert (await session.prompt("Are you there?")).text == "Here."


async def test_a_turn_is_kept_while_a_tool_runs(opened, models, script, tmp_path):
    store = accord.SqliteStore(tmp_path / "sessions.db")
    script.says([Say("I wait. "), Call("wait", {})])
    async with store, opened(store=store) as session:
        reply = session.prompt("Wait for me")
        async for update in reply:
            if isinstance(update, updates.ToolCallUpdate):
                break
        await kept(store, session.id, models.kept_in_a_turn)
        assert (await reply.cancel()).stop_reason == "cancelled"


async def test_a_session_that_is_taken_from_a_turn_goes_on_from_what_was_kept(opened, models, script, tmp_path):
    if not models.keeps_the_conversation:
        pytest.skip("its program keeps the transcript itself, and two of them cannot work on one")
    store = accord.SqliteStore(tmp_path / "sessions.db")
    script.says([Say("I wait. "), Call("wait", {})], [Say("Here.")])
    async with store, opened(store=store) as session:
        with suppress(accord.PeerError):  # its session is taken from it, as if it had ended
            reply = session.prompt("Wait for me")
            async for update in reply:
                if isinstance(update, updates.ToolCallUpdate):
                    break
            await kept(store, session.id, models.kept_in_a_turn)
            async with opened(store=store, load=session.id) as again:
                assert (await again.prompt("Are you there?")).text == "Here."
            await reply.cancel()
    for known in ("Wait for me", *models.kept_in_a_turn):
        assert known in script.asked[-1]


async def kept(store, session_id, words):
    """Until the state of a session in the store has these words."""
    async with asyncio.timeout(DEADLINE):
        while not has_all(words, await store.find(session_id)):  # noqa: ASYNC110
            await asyncio.sleep(PAUSE)


def has_all(words, session):
    return all(word in plainly(session.state) for word in words)


def plainly(state):
    """A state with the text of what is in base64 in it."""
    data = (state or {}).get("data")
    return json.dumps(state) + (base64.b64decode(data).decode("latin-1") if data else "")


async def test_images_and_embedded_files_reach_the_model(opened, script):
    script.says([Say("I see.")])
    async with opened() as session:
        text = v1.EmbeddedResource(v1.TextResourceContents("Buy milk", "file:///notes.txt"))
        blob = v1.EmbeddedResource(v1.BlobResourceContents(PNG, "file:///a.png", "image/png"))
        await session.prompt(["Look", v1.ImageContent(PNG, "image/png"), text, blob])
    assert "Buy milk" in script.asked[0]
    assert "file:///notes.txt" in script.asked[0]
    assert script.asked[0].translate(str.maketrans("-_", "+/")).count(PNG) == 2  # some write base64 for URLs


async def test_an_image_that_is_not_base64_is_told_to_the_model_as_unreadable(opened, script):
    script.says([Say("I cannot see it.")])
    async with opened() as session:
        assert (await session.prompt(["Look", v1.ImageContent("%%%", "image/png")])).text == "I cannot see it."
    assert "cannot be read" in script.asked[0]


async def test_the_same_conversation_is_the_same_session_with_each_framework(opened, script):
    script.says(*CONVERSATION)
    async with opened() as session:
        await session.prompt("Add 2 and 3")
        assert folded(session) == [
            ("user", "Add 2 and 3"),
            ("thought", "I should add."),
            ("agent", "I add. "),
            ("add", "other", "completed", {"left": 2, "right": 3}, "5"),
            ("agent", "It is 5."),
        ]


async def test_a_tool_reaches_the_client_by_the_current_turn(opened, script, tmp_path):
    (tmp_path / "notes.txt").write_text("Buy milk")
    script.says([Call("read_notes", {})], [Say("Milk.")])

    async def read_notes() -> str:
        """Read the notes."""
        return await accord_adapters.current_turn().client.read_text_file("notes.txt")

    async with opened(client=accord.Client(files=True), tools=[read_notes]) as session:
        outcome = await session.prompt("What do I need?")
        assert [(it.status, it.text) for it in outcome.tool_calls] == [("completed", "Buy milk")]


async def test_an_acp_agent_is_a_tool_of_the_framework(opened, models, script):
    helper = accord.Agent("helper")

    @helper.on_prompt
    async def answer(turn):
        await turn.say(f"I did: {turn.text}")

    script.says([Call("ask_agent", {"task": "Tidy up"})], [Say("It is tidy.")])
    async with opened(tools=[models.tool(accord.connect(helper))]) as session:
        outcome = await session.prompt("Let it tidy up")
        assert [(it.name, it.status, it.text) for it in outcome.tool_calls] == [
            ("ask_agent", "completed", "I did: Tidy up")
        ]
    assert "I did: Tidy up" in script.asked[1]


async def test_the_error_of_an_acp_agent_that_is_a_tool_reaches_the_model(opened, models, script):
    script.says([Call("ask_agent", {"task": "Tidy up"})], [Say("It is not there.")])
    async with opened(tools=[models.tool(accord.connect(["no-such-agent-program"]))]) as session:
        outcome = await session.prompt("Let it tidy up")
        assert [it.status for it in outcome.tool_calls] == ["failed"]
    assert "no-such-agent-program" in script.asked[1]


def folded(session):
    """What a client shows of a session, without ids."""
    return [
        (it.speaker, it.text) if isinstance(it, Message) else (it.name, it.kind, it.status, it.raw_input, it.text)
        for it in session.state.timeline
    ]
