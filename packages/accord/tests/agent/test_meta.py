"""`_meta` on an agent's side: what requests bring, what answers carry, and what lists say of a session."""

import pytest

from accord import MemoryStore, SqliteStore, v1
from tests.agent import feature_agents

SENT = {"_example.com/trace": [1, {"a": None}]}


async def test_what_a_client_sends_is_read_and_answered_from_both_ends(reach):
    async with reach("meta") as remote:
        session = await remote.new_session("/", meta=SENT)
        assert session.meta == {"got": SENT}
        assert (await session.prompt("go", meta=SENT)).meta == {"got": SENT}
        assert (await session.fork(meta={"b": 2})).meta == {"got": {"b": 2}}
        await session.close()
        loaded = await remote.load(session.id, "/", meta={"c": 3})
        assert loaded.meta == {"got": {"c": 3}}
        await loaded.close()
        assert (await remote.resume(session.id, "/")).meta == {"got": {}}


async def test_an_agent_describes_its_sessions_in_lists(reach):
    async with reach("meta") as remote:
        session = await remote.new_session("/")
        await session.prompt("describe")
        assert session.state.meta == {"_example.com/colour": "red"}
        assert [info.meta async for info in remote.sessions()] == [{"_example.com/colour": "red"}]
        await session.prompt("describe again")
        assert session.state.meta == {"_example.com/size": [1]}
        assert [info.meta async for info in remote.sessions()] == [{"_example.com/size": [1]}]
        await session.prompt("describe")
        await session.close()
        resumed = await remote.resume(session.id, "/")
        assert (await resumed.prompt("go")).text == "{'_example.com/colour': 'red'}"
        copy = await resumed.fork()
        await resumed.prompt("forget")
        assert {info.session_id: info.meta async for info in remote.sessions()} == {
            session.id: None,
            copy.id: {"_example.com/colour": "red"},
        }


async def test_a_title_leaves_the_description_as_it_is_and_the_other_way_round(serve):
    agent = feature_agents.meta()

    @agent.command("name", "Give a title")
    async def name(turn):
        await turn.session.set_title("T")

    async with serve(agent) as editor:
        session = await editor.open()
        await editor.prompt(session, "describe")
        await editor.prompt(session, "/name")
        [info] = (await editor.request(v1.ListSessionsRequest())).sessions
        assert (info.title, info.meta) == ("T", {"_example.com/colour": "red"})


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_what_lists_say_of_a_session_is_kept_in_the_store(serve, kind, tmp_path):
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "sessions.sqlite3")
    async with serve(feature_agents.meta(store=store)) as editor:
        await editor.prompt(await editor.open(), "describe")
    async with serve(feature_agents.meta(store=store)) as editor:
        [info] = (await editor.request(v1.ListSessionsRequest())).sessions
        assert info.meta == {"_example.com/colour": "red"}


async def test_a_description_that_is_no_dict_is_refused_by_its_argument(serve):
    agent, raised = feature_agents.meta(), []

    @agent.command("wrong", "Describe wrongly")
    async def wrong(turn):
        try:
            await turn.session.set_info_meta(["red"])
        except TypeError as error:
            raised.append(str(error))

    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "/wrong")
    assert raised == ["session.set_info_meta() takes a dict of JSON values by name, got list ['red']"]
