"""Sessions that last: listed, loaded, resumed, forked, closed and deleted, whichever store keeps them."""

import asyncio
from contextlib import asynccontextmanager
from datetime import datetime

import msgspec
import pytest

from accord import (
    Agent,
    MemoryStore,
    Peer,
    PeerError,
    RequestError,
    SqliteStore,
    Unknown,
    memory_pair,
    v1,
)
from accord.agent.record import title_of
from accord.schema import codec
from accord.session import SessionState
from accord.store import StoredSession

CWD = "/project"


class Count(msgspec.Struct):
    """What the author of these tests keeps for a session."""

    prompts: int = 0
    words: list[str] = []


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "sessions.sqlite3")


@pytest.fixture
def agent(store):
    """Repeats what it is told, and counts."""
    agent = Agent("parrot", store=store, state=Count)

    @agent.on_session
    async def opened(session):
        await session.modes.offer(["ask", "code"])
        await session.config.offer("model", "Model", ["small", "large"])

    @agent.on_prompt
    async def parrot(turn):
        count = turn.session.state
        count.prompts += 1
        count.words.append(turn.text)
        await turn.say(f"{count.prompts}: ")
        await turn.say(turn.text)

    return agent


def load(session_id, cwd=CWD, **fields):
    return v1.LoadSessionRequest(session_id, cwd, [], **fields)


def said(updates):
    """Who said what, chunks of one message joined."""
    messages = {}
    for update in updates:
        if isinstance(update, v1.UserMessageChunk | v1.AgentMessageChunk):
            key = type(update).__name__.removesuffix("MessageChunk").lower(), update.message_id
            messages[key] = messages.get(key, "") + update.content.text
    return [(speaker, text) for (speaker, _), text in messages.items()]


def folded(updates):
    """What these updates amount to."""
    state = SessionState()
    state.add_all(updates)
    return state


async def a_conversation(serve, agent, *prompts):
    """A session in which this was said; its connection has ended."""
    async with serve(agent) as editor:
        session = await editor.open(CWD)
        for prompt in prompts or ("hello", "again"):
            await editor.prompt(session, prompt)
        return session, editor.updates


@pytest.mark.requirement("session.load.replays-everything", "session.load.replay-before-answer")
async def test_a_load_replays_both_sides_before_its_answer(serve, agent):
    session, live = await a_conversation(serve, agent)
    async with serve(agent) as editor:
        await editor.request(load(session))
        assert said(editor.updates) == [
            ("user", "hello"),
            ("agent", "1: hello"),
            ("user", "again"),
            ("agent", "2: again"),
        ]
        replayed = [update for update in editor.updates if not isinstance(update, v1.UserMessageChunk)]
        assert folded(replayed).snapshot() == folded(live).snapshot()


@pytest.mark.requirement("session.load.goes-on")
async def test_a_loaded_session_goes_on_with_its_state(serve, agent):
    session, _ = await a_conversation(serve, agent)
    async with serve(agent) as editor:
        await editor.request(load(session))
        await editor.prompt(session, "more")
        assert said(editor.updates)[-1] == ("agent", "3: more")


@pytest.mark.requirement("session.resume.no-replay", "session.resume.ready-when-answered")
async def test_a_resume_replays_nothing_and_goes_on(serve, agent):
    session, _ = await a_conversation(serve, agent)
    async with serve(agent) as editor:
        answer = await editor.request(v1.ResumeSessionRequest(session, CWD))
        assert editor.updates == []
        assert answer.modes.current_mode_id == "ask"
        await editor.prompt(session, "more")
        assert editor.text == "3: more"


@pytest.mark.requirement("usage.after-restore")
@pytest.mark.parametrize("way", ["load", "resume", "fork"])
async def test_the_usage_that_was_told_last_is_told_again(serve, store, way):
    agent = Agent("counts", store=store)

    @agent.on_prompt
    async def count(turn):
        await turn.usage(len(turn.text), 100)
        await turn.say('no "usage_update" of its own')

    session, _ = await a_conversation(serve, agent, "one", "three")
    request = {"load": load, "resume": v1.ResumeSessionRequest, "fork": v1.ForkSessionRequest}[way](session, CWD)
    async with serve(agent) as editor:
        await editor.request(request)
        await editor.heard(v1.UsageUpdate)
        assert editor.of(v1.UsageUpdate)[-1] == v1.UsageUpdate(5, 100)
        assert way == "load" or len(editor.updates) == 1, "nothing else is replayed"


# What a list says


@pytest.mark.requirement("session.list.entries-complete", "session.list.times-iso-8601", "session.list.needs-no-params")
async def test_a_list_names_every_session_the_latest_active_first(serve, agent):
    first, _ = await a_conversation(serve, agent, "the first")
    second, _ = await a_conversation(serve, agent, "the second")
    async with serve(agent) as editor:
        found = (await editor.request(v1.ListSessionsRequest())).sessions
        assert [it.session_id for it in found] == [second, first]
        assert [it.cwd for it in found] == [CWD, CWD]
        assert [it.title for it in found] == ["the second", "the first"]
        times = [datetime.fromisoformat(it.updated_at) for it in found]
        assert times == sorted(times, reverse=True)
        assert all(it.tzinfo is not None for it in times)


@pytest.mark.requirement("session.list.filtered-by-cwd", "session.list.empty-list")
async def test_a_list_may_be_of_one_folder(serve, agent):
    async with serve(agent) as editor:
        here, there = await editor.open("/here"), await editor.open("/there/")
        for cwd, wanted in (("/here", [here]), ("/here/", [here]), ("/there", [there]), ("/nowhere", [])):
            found = await editor.request(v1.ListSessionsRequest(cwd))
            assert [it.session_id for it in found.sessions] == wanted
        with pytest.raises(PeerError) as error:
            await editor.request(v1.ListSessionsRequest("here"))
        assert error.value.code == -32602


@pytest.mark.requirement("session.list.pages-bounded", "session.list.cursor-goes-on", "session.new.unique-id")
async def test_a_long_list_comes_in_pages(serve, agent):
    async with serve(agent) as editor:
        opened = [await editor.open() for _ in range(250)]
        found, request = [], v1.ListSessionsRequest()
        while True:
            page = await editor.request(request)
            assert 0 < len(page.sessions) <= 100
            found += [it.session_id for it in page.sessions]
            if page.next_cursor is None:
                break
            request = v1.ListSessionsRequest(cursor=page.next_cursor)
        assert found == opened[::-1]
        assert len(set(opened)) == len(opened)


@pytest.mark.requirement("session.list.cursor-invalid")
async def test_a_cursor_that_no_page_had_is_an_error(serve, agent):
    async with serve(agent) as editor:
        with pytest.raises(PeerError) as error:
            await editor.request(v1.ListSessionsRequest(cursor="nonsense"))
        assert error.value.code == -32602


@pytest.mark.requirement(
    "session.list.roots-complete", "session.roots.absent-means-none", "session.roots.taken-everywhere"
)
async def test_roots_are_listed_and_never_restored_by_themselves(serve, agent):
    async with serve(agent) as editor:
        session = await editor.open(additional_directories=["/lib", "/docs"])
        (listed,) = (await editor.request(v1.ListSessionsRequest())).sessions
        assert listed.additional_directories == ["/lib", "/docs"]
        await editor.request(load(session, additional_directories=["/docs"]))
        (listed,) = (await editor.request(v1.ListSessionsRequest())).sessions
        assert listed.additional_directories == ["/docs"]
        await editor.request(v1.ResumeSessionRequest(session, CWD, ["/docs"]))
        (listed,) = (await editor.request(v1.ListSessionsRequest())).sessions
        assert listed.additional_directories == ["/docs"]
        await editor.request(v1.ResumeSessionRequest(session, CWD))
        (listed,) = (await editor.request(v1.ListSessionsRequest())).sessions
        assert listed.additional_directories == []


@pytest.mark.requirement("session.list.changes-nothing")
async def test_listing_opens_nothing(serve, agent):
    session, _ = await a_conversation(serve, agent)
    async with serve(agent) as editor:
        before = await editor.request(v1.ListSessionsRequest())
        with pytest.raises(PeerError) as error:
            await editor.prompt(session, "hello")
        assert error.value.code == -32002
        assert await editor.request(v1.ListSessionsRequest()) == before


@pytest.mark.requirement("session.list.own-only")
async def test_an_owner_sees_and_opens_only_what_is_his_own(agent):
    async with as_owner(agent, "ada") as ada, as_owner(agent, "eve") as eve:
        session = (await ada.request(v1.NewSessionRequest(CWD, []))).session_id
        assert (await eve.request(v1.ListSessionsRequest())).sessions == []
        for theft in (load(session), v1.ResumeSessionRequest(session, CWD), v1.ForkSessionRequest(session, CWD)):
            with pytest.raises(PeerError) as error:
                await eve.request(theft)
            assert error.value.code == -32002
        await eve.request(v1.DeleteSessionRequest(session))
        assert len((await ada.request(v1.ListSessionsRequest())).sessions) == 1


@asynccontextmanager
async def as_owner(agent, owner):
    here, there = memory_pair()
    serving = asyncio.create_task(agent.serve(there, owner=owner))
    async with Peer(here, role="client", unstable=True) as client:
        await client.initialize(v1.InitializeRequest(1))
        yield client
    await serving


# Titles


@pytest.mark.requirement("session.info.shown-in-list")
async def test_the_first_prompt_is_the_title_until_the_author_gives_another(serve, store):
    agent = Agent("titles", store=store)

    @agent.on_prompt
    async def titled(turn):
        if turn.text == "name it":
            await turn.session.set_title("A better name")

    async with serve(agent) as editor:
        session = await editor.open()
        await editor.prompt(session, "\n  Fix   the\tparser \nplease")
        assert editor.updates == [v1.SessionInfoUpdate("Fix the parser")]
        await editor.prompt(session, "name it")
        assert editor.updates[1:] == [v1.SessionInfoUpdate("A better name")]
        (listed,) = (await editor.request(v1.ListSessionsRequest())).sessions
        assert listed.title == "A better name"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", None),
        (" \n ", None),
        ("one\ntwo", "one"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "\u2026"),
        ("\x1b[1mbold\0", "[1mbold"),
    ],
)
def test_a_title_is_one_short_line(text, title):
    assert title_of(text) == title


async def test_without_a_store_of_the_author_s_choice_nothing_is_said_that_the_author_did_not_say(serve):
    agent = Agent("plain")
    agent.on_prompt(lambda _: None)
    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "hello")
        assert editor.updates == []


# Taking up again


async def test_another_folder_is_refused_and_the_session_is_as_it_was(serve, agent):
    session, _ = await a_conversation(serve, agent)
    async with serve(agent) as editor:
        for request in (load(session, "/elsewhere"), v1.ResumeSessionRequest(session, "/elsewhere")):
            with pytest.raises(PeerError) as error:
                await editor.request(request)
            assert error.value.code == -32602
        assert editor.updates == []
        await editor.request(load(session, f"{CWD}/"))
        assert said(editor.updates)[0] == ("user", "hello")


async def test_a_session_that_never_was_is_not_found(serve, agent):
    nobody = v1.SessionId("nobody")
    async with serve(agent) as editor:
        for request in (load(nobody), v1.ResumeSessionRequest(nobody, CWD), v1.ForkSessionRequest(nobody, CWD)):
            with pytest.raises(PeerError) as error:
                await editor.request(request, force=True)
            assert (error.value.code, error.value.data) == (-32002, {"sessionId": "nobody"})


async def test_what_the_user_chose_is_chosen_again(serve, agent):
    async with serve(agent) as editor:
        session = await editor.open()
        await editor.request(v1.SetSessionModeRequest(session, "code"))
        await editor.request(v1.SetSessionConfigOptionRequest(session, "model", "large"))
    async with serve(agent) as editor:
        for request in (load(session), v1.ResumeSessionRequest(session, CWD)):
            answer = await editor.request(request)
            assert answer.modes.current_mode_id == "code"
            assert {it.config_id: it.current_value for it in answer.config_options} == {
                "mode": "code",
                "model": "large",
            }


@pytest.mark.requirement("session.load.message-ids-unique", "message.id.on-user-messages")
async def test_every_message_of_a_replay_has_an_id_of_its_own(serve, agent):
    session, _ = await a_conversation(serve, agent, "same", "same")
    async with serve(agent) as editor:
        await editor.request(load(session))
        ids = [it.message_id for it in editor.updates if hasattr(it, "message_id")]
        assert None not in ids
        assert len(set(ids)) == 4


async def test_everything_is_replayed_but_notices_and_commands(serve, store):
    agent = Agent("tells", store=store)

    @agent.command("again", "Once more")
    async def again(turn):
        await turn.session.send(v1.Notice("info", "only now"))
        await turn.think("hm")
        await turn.session.send(v1.UsageUpdate(10, 100))
        async with turn.tool("Look", kind="read") as tool:
            await tool.text("seen")
        await turn.say(v1.ImageContent("aGk=", "image/png"))

    capabilities = v1.ClientCapabilities(session=v1.ClientSessionCapabilities(notices=v1.NoticeCapabilities()))
    async with serve(agent, declare=capabilities) as editor:
        session = await editor.open()
        await editor.prompt(session, "/again")
        live = [it for it in editor.updates if not isinstance(it, v1.Notice | v1.AvailableCommandsUpdate)]
        assert editor.of(v1.Notice)
    async with serve(agent, declare=capabilities) as editor:
        await editor.request(load(session))
        await editor.heard(v1.AvailableCommandsUpdate)
        replayed = [it for it in editor.updates if not isinstance(it, v1.UserMessageChunk)]
        assert folded(replayed[:-1]).snapshot() == folded(live).snapshot()
        assert isinstance(replayed[-1], v1.AvailableCommandsUpdate), "the commands come after the replay"


async def test_a_client_is_not_replayed_what_it_never_said_it_knows(serve, store):
    agent = Agent("compacts", store=store)

    @agent.on_prompt
    async def compact(turn):
        await turn.session.send(v1.CompactionUpdate("c1", "completed"))
        await turn.say("done")

    knows = v1.ClientCapabilities(session=v1.ClientSessionCapabilities(compaction=v1.CompactionCapabilities()))
    async with serve(agent, declare=knows) as editor:
        session = await editor.open()
        await editor.prompt(session, "go")
    async with serve(agent) as editor:
        await editor.request(load(session))
        assert said(editor.updates) == [("user", "go"), ("agent", "done")]
        assert not editor.of(v1.CompactionUpdate)
    async with serve(agent, declare=knows) as editor:
        await editor.request(load(session))
        assert len(editor.of(v1.CompactionUpdate)) == 1


async def test_half_an_emoji_and_what_nobody_knows_come_back_as_they_were(serve, store):
    agent = Agent("odd", store=store)
    odd = [v1.AgentMessageChunk.of("\ud83d"), Unknown("hologram", {"sessionUpdate": "hologram", "depth": [1, None]})]

    @agent.on_prompt
    async def say(turn):
        for update in odd:
            await turn.session.send(update)

    async with serve(agent) as editor:
        session = await editor.open()
        await editor.prompt(session, "go")
    async with serve(agent) as editor:
        await editor.request(load(session))
        assert [it for it in editor.updates if not isinstance(it, v1.UserMessageChunk | v1.SessionInfoUpdate)] == odd


async def test_history_is_all_that_was_said_and_done(serve, store):
    agent = Agent("remembers", store=store)
    seen = []

    @agent.on_prompt
    async def remember(turn):
        history = await turn.session.history()
        seen.append([(message.speaker, message.text) for message in history.messages])
        await turn.say("Yes.")

    async with serve(agent) as editor:
        session = await editor.open()
        await editor.prompt(session, "one")
    async with serve(agent) as editor:
        await editor.request(v1.ResumeSessionRequest(session, CWD))
        await editor.prompt(session, "two")
    assert seen == [[("user", "one")], [("user", "one"), ("agent", "Yes."), ("user", "two")]]


# Tool calls that a crash left open


async def crashed(store, session_id, *updates):
    """What is kept when an agent dies in the middle: these updates, and nothing of its end."""
    held = await store.create(StoredSession(id=session_id, cwd=CWD))
    await store.write(held, [codec.encode(update) for update in updates])


@pytest.mark.requirement("prompt.refusal.forgotten")
async def test_a_refused_turn_is_forgotten_with_its_prompt(serve, store):
    agent = Agent("choosy", store=store)
    known = []

    @agent.on_prompt
    async def answer(turn):
        known.append([message.text for message in (await turn.session.history()).messages])
        await turn.say("let me see")
        if turn.text == "something bad":
            async with turn.tool("Search"):
                await turn.say("no, not that")
            return "refusal"
        return None

    def titles(editor):
        return [update.title for update in editor.of(v1.SessionInfoUpdate)]

    async with serve(agent) as editor:
        session = await editor.open()
        assert (await editor.prompt(session, "something bad")).stop_reason == "refusal"
        assert titles(editor) == ["something bad", None]
        await editor.prompt(session, "something good")
        await editor.prompt(session, "something bad")
        await editor.prompt(session, "something else")
        assert titles(editor) == ["something bad", None, "something good"]
    assert known == [
        ["something bad"],
        ["something good"],
        ["something good", "let me see", "something bad"],
        ["something good", "let me see", "something else"],
    ]
    async with serve(agent) as editor:
        await editor.request(v1.LoadSessionRequest(session, CWD, []))
        assert [update.content.text for update in editor.of(v1.UserMessageChunk)] == [
            "something good",
            "something else",
        ]
        assert editor.text == "let me see" * 2
        assert editor.of(v1.ToolCall) == []


async def test_a_title_of_the_author_s_outlasts_a_refused_turn(serve, store):
    agent = Agent("choosy", store=store)

    @agent.on_prompt
    async def answer(turn):
        await turn.session.set_title("Mine")
        return "refusal"

    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "go")
        listed = await editor.request(v1.ListSessionsRequest())
        assert [session.title for session in listed.sessions] == ["Mine"]


async def test_tool_calls_left_open_by_a_crash_are_replayed_as_failed_once(serve, agent, store):
    await crashed(
        store,
        "s",
        v1.ToolCall("done", "Done", status="pending"),
        v1.ToolCallProgress("done", status="completed"),
        v1.ToolCall("pending", "Pending"),
        v1.ToolCall("running", "Running", status="pending"),
        v1.ToolCallProgress("running", status="in_progress"),
        v1.ToolCallProgress("running", title="Still running"),
    )
    for _ in range(2):
        async with serve(agent) as editor:
            await editor.request(load("s"))
            calls = folded(editor.updates).tool_calls.values()
            assert [(call.id, call.title, call.status) for call in calls] == [
                ("done", "Done", "completed"),
                ("pending", "Pending", "failed"),
                ("running", "Still running", "failed"),
            ]
    [page] = [page async for page in store.updates("s")]
    assert len(page) == 8, "each is closed in the store once"


# Forking


@pytest.mark.requirement("session.fork.advertised", "session.fork.leaves-source", "session.fork.roots-not-inherited")
async def test_a_fork_goes_its_own_way_from_then_on(serve, agent):
    async with serve(agent, unstable=True) as editor:
        source = await editor.open(additional_directories=["/lib"])
        await editor.prompt(source, "hello")
        await editor.request(v1.SetSessionModeRequest(source, "code"))
        answer = await editor.request(v1.ForkSessionRequest(source, "/other"))
        assert answer.modes.current_mode_id == "code"
        fork = answer.session_id
        await editor.prompt(fork, "of the fork")
        await editor.prompt(source, "of the source")
        listed = {it.session_id: it for it in (await editor.request(v1.ListSessionsRequest())).sessions}
        assert (listed[fork].cwd, listed[fork].additional_directories) == ("/other", [])
    for session, cwd, last in ((source, CWD, "of the source"), (fork, "/other", "of the fork")):
        async with serve(agent) as editor:
            await editor.request(load(session, cwd))
            assert said(editor.updates) == [
                ("user", "hello"),
                ("agent", "1: hello"),
                ("user", last),
                ("agent", f"2: {last}"),
            ]


# Ending


@pytest.mark.requirement("session.delete.leaves-list", "session.delete.idempotent", "session.delete.empty-result")
async def test_a_deleted_session_is_gone_and_deleting_it_again_is_fine(serve, agent):
    session, _ = await a_conversation(serve, agent)
    async with serve(agent) as editor:
        for _ in range(2):
            assert await editor.request_raw("session/delete", {"sessionId": session}) == {}
        assert (await editor.request(v1.ListSessionsRequest())).sessions == []
        with pytest.raises(PeerError) as error:
            await editor.request(load(session))
        assert error.value.code == -32002


@pytest.fixture
def waiting(store):
    """Says that it began, and then waits for ever."""
    agent = Agent("waits", store=store)

    @agent.on_prompt
    async def wait(turn):
        async with turn.tool("Wait"):
            await turn.say("begun")
            await asyncio.Event().wait()

    return agent


@pytest.mark.requirement("session.close.empty-result")
async def test_a_close_is_answered_with_an_empty_object(serve, agent):
    async with serve(agent) as editor:
        session = await editor.open()
        assert await editor.request_raw("session/close", {"sessionId": session}) == {}


@pytest.mark.parametrize("ending", [v1.CloseSessionRequest, v1.DeleteSessionRequest])
@pytest.mark.requirement("session.close.cancels-work")
async def test_closing_or_deleting_a_session_cancels_its_turn(serve, waiting, ending):
    async with serve(waiting) as editor:
        session = await editor.open()
        prompt = asyncio.create_task(editor.prompt(session, "go"))
        await editor.heard(v1.AgentMessageChunk)
        await editor.request(ending(session))
        assert (await prompt).stop_reason == "cancelled"
        with pytest.raises(PeerError) as error:
            await editor.prompt(session, "more")
        assert error.value.code == -32002


async def test_a_closed_session_can_be_loaded(serve, agent):
    async with serve(agent) as editor:
        session = await editor.open()
        await editor.prompt(session, "hello")
        await editor.request(v1.CloseSessionRequest(session))
        editor.updates.clear()
        await editor.request(load(session))
        assert said(editor.updates) == [("user", "hello"), ("agent", "1: hello")]


# Open in two places


async def test_loading_an_idle_session_that_is_open_here_opens_it_again(serve, store):
    agent, opened = Agent("parrot", store=store), []
    agent.on_session(opened.append)
    agent.on_prompt(lambda turn: turn.say(turn.text))

    async with serve(agent) as editor:
        session = await editor.open()
        await editor.prompt(session, "hello")
        editor.updates.clear()
        await editor.request(load(session))
        assert said(editor.updates) == [("user", "hello"), ("agent", "hello")]
        assert [it.id for it in opened] == [session, session]
        assert opened[0] is not opened[1]


STEPS = ["one ", "Look", "first", "second", "hm", "two ", "three"]
"""What the last update of each step of a turn of `stepwise` says. How many come depends on the time: some merge."""


def stepwise(store):
    """An agent whose turn takes a step for each item of its queue; a tool call stays open for three."""
    agent, steps = Agent("stepwise", store=store), asyncio.Queue()
    agent.command("review", "Review")(lambda _: None)

    @agent.on_prompt
    async def work(turn):
        await steps.get()
        await turn.say("one ")
        await steps.get()
        async with turn.tool("Look", kind="read") as tool:
            await steps.get()
            await tool.text("first")
            await steps.get()
            await tool.text("second")
            await steps.get()
        await turn.think("hm")
        await steps.get()
        await turn.say("two ")
        await steps.get()
        await turn.say("three")

    return agent, steps


class ReadStore(MemoryStore):
    """A store that tells when a replay reads it, and reads in many turns of the loop."""

    def __init__(self):
        super().__init__()
        self.is_read = asyncio.Event()

    async def updates(self, session_id, *, owner="", after=0):
        self.is_read.set()
        async for page in super().updates(session_id, owner=owner, after=after):
            for entry in page:
                await asyncio.sleep(0)
                yield [entry]


@pytest.mark.parametrize("goes_on", ["after the replay", "during the replay"])
@pytest.mark.parametrize("count", range(len(STEPS)))
async def test_a_load_at_any_step_of_a_turn_lets_it_go_on_and_loses_and_repeats_nothing(scripted, count, goes_on):
    agent, steps = stepwise(store := ReadStore())
    async with scripted(agent) as client:
        session = (await client.request("session/new", {"cwd": CWD, "mcpServers": []}))["sessionId"]
        await client.expect("session/update")  # the commands
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}
        prompt = client.call("session/prompt", params)
        await client.expect("session/update")  # the title
        for words in STEPS[:count]:
            steps.put_nowait(None)
            while words not in str(await client.expect("session/update")):
                pass
        loading = client.call("session/load", {"sessionId": session, "cwd": CWD, "mcpServers": []})
        await store.is_read.wait()
        if goes_on == "during the replay":
            for _ in STEPS[count:]:
                steps.put_nowait(None)
        replayed = []
        while (message := await client.receive()).get("id") != loading:
            replayed.append(message["params"]["update"])
        assert "result" in message, message
        assert len([it for it in replayed if it.get("status") in ("completed", "failed")]) == (count >= 5)
        if goes_on == "after the replay":
            for _ in STEPS[count:]:
                steps.put_nowait(None)
        live, answer, commands = [], None, None
        while answer is None or commands is None:
            if (message := await client.receive()).get("id") == prompt:
                answer = message["result"]
            elif (update := message["params"]["update"])["sessionUpdate"] == "available_commands_update":
                commands = update
            else:
                assert answer is None, message
                live.append(update)
        assert answer["stopReason"] == "end_turn"
        state = folded([codec.convert(it, v1.SessionUpdate) for it in (*replayed, *live)])
        assert [(it.speaker, it.text) for it in state.messages] == [
            ("user", "hello"),
            ("agent", "one "),
            ("thought", "hm"),
            ("agent", "two three"),
        ]
        [call] = state.tool_calls.values()
        assert (call.title, call.status, call.content) == ("Look", "completed", [v1.Content.of("firstsecond")])


async def test_a_resume_lets_the_work_of_its_connection_go_on(serve, store):
    agent, steps = stepwise(store)
    async with serve(agent) as editor:
        session = await editor.open()
        prompt = asyncio.create_task(editor.prompt(session, "go"))
        steps.put_nowait(None)
        await editor.heard(v1.AgentMessageChunk)
        editor.updates.clear()
        await editor.request(v1.ResumeSessionRequest(session, CWD))
        await editor.heard(v1.AvailableCommandsUpdate)
        with pytest.raises(PeerError) as error:
            await editor.request(v1.ResumeSessionRequest(session, CWD, additional_directories=["/more"]))
        assert error.value.data["path"] == "$.additionalDirectories"
        for _ in STEPS[1:]:
            steps.put_nowait(None)
        assert (await prompt).stop_reason == "end_turn"
        assert editor.text == "two three"


async def test_a_session_that_was_loaded_elsewhere_is_no_longer_written_here(serve, agent):
    async with serve(agent) as first, serve(agent) as second:
        session = await first.open()
        await first.prompt(session, "one")
        await second.request(load(session))
        with pytest.raises(PeerError) as error:
            await first.prompt(session, "lost")
        assert (error.value.code, error.value.data["reason"]) == (-32600, "taken")
        with pytest.raises(PeerError) as error:
            await first.prompt(session, "still not")
        assert error.value.code == -32002
        await second.prompt(session, "two")
        first.updates.clear()
        await first.request(load(session))
        assert said(first.updates) == [("user", "one"), ("agent", "1: one"), ("user", "two"), ("agent", "2: two")]


async def test_loads_of_one_session_at_once_come_one_after_another(serve, agent):
    session, _ = await a_conversation(serve, agent)
    async with serve(agent) as editor:
        await asyncio.gather(*[editor.request(load(session)) for _ in range(3)])
        once = editor.updates[: len(editor.updates) // 3]
        assert editor.updates == once * 3
        await editor.prompt(session, "more")


# The author's state


async def test_state_that_changes_between_turns_is_kept_when_the_session_closes(serve, store):
    agent, opened = Agent("counts", store=store, state=Count), []
    agent.on_prompt(lambda _: None)
    agent.on_session(opened.append)
    async with serve(agent) as editor:
        session = await editor.open()
        opened[0].state = Count(7, ["later"])
    async with serve(agent) as editor:
        await editor.request(v1.ResumeSessionRequest(session, CWD))
        assert opened[1].state == Count(7, ["later"])


async def test_without_a_class_for_it_state_is_whatever_the_author_likes_and_is_not_kept(serve, store):
    agent = Agent("holds", store=store)

    @agent.on_prompt
    async def hold(turn):
        turn.session.state = object()

    async with serve(agent) as editor:
        assert (await editor.prompt(await editor.open(), "go")).stop_reason == "end_turn"


async def test_a_session_that_its_author_refuses_is_not_kept(serve, store):
    agent = Agent("refuses", store=store)
    agent.on_prompt(lambda _: None)

    @agent.on_session
    def refuse(session):
        raise RequestError.invalid_params("not in this folder")

    async with serve(agent) as editor:
        with pytest.raises(PeerError):
            await editor.open()
        assert (await editor.request(v1.ListSessionsRequest())).sessions == []


async def test_sessions_wait_for_the_login(serve, store):
    agent = Agent("private", store=store)
    agent.on_prompt(lambda _: None)
    agent.login("key", "A key")(lambda _: None)
    async with serve(agent) as editor:
        for request in (v1.ListSessionsRequest(), load("s"), v1.DeleteSessionRequest("s")):
            with pytest.raises(PeerError) as error:
                await editor.request(request)
            assert error.value.code == -32000
