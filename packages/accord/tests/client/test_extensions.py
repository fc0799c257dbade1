"""Extensions of agents in the field: display terminals, steering, goals."""

import pytest

import accord
from accord import v1
from accord.client import extensions


def agent_that_steers(outcome):
    agent, steered = accord.Agent("steers"), []

    @agent.on_request("_session/steering")
    async def steer(params):
        steered.append(params)
        return {"outcome": outcome}

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("ok")

    return agent, steered


@pytest.mark.parametrize(
    ("said", "meant"),
    [("injected", "injected"), ("promptRequired", "promptRequired"), ("new word", "failed"), (None, "failed")],
)
async def test_a_message_is_sent_into_the_running_turn(said, meant):
    agent, steered = agent_that_steers(said)
    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        assert not extensions.can_steer(remote)
        assert await extensions.steer(remote, session.id, "the other file") == meant
        assert steered == [{"sessionId": session.id, "prompt": [{"type": "text", "text": "the other file"}]}]


def test_the_output_of_a_display_terminal_is_replaced_or_grows_and_is_bounded():
    terminals = extensions.DisplayTerminals()

    def tell(**meta):
        return terminals.add(v1.ToolCallProgress(v1.ToolCallId("c"), meta=meta))

    tell(terminal_info={"terminal_id": "t", "cwd": "/p"})
    tell(terminal_output_delta={"terminal_id": "t", "data": "one "})
    tell(terminal_output_delta={"terminal_id": "t", "data": "two"})
    assert (terminals["t"].text, terminals["t"].cwd, terminals["t"].has_ended) == ("one two", "/p", False)
    tell(terminal_output={"terminal_id": "t", "data": "all"}, terminal_exit={"terminal_id": "t", "exit_code": 1})
    assert (terminals["t"].text, terminals["t"].exit_code, terminals["t"].has_ended) == ("all", 1, True)
    for _ in range(30):
        tell(terminal_output_delta={"terminal_id": "t", "data": "x" * 100_000})
    assert len(terminals["t"].text) <= 2 * extensions.KEPT
    assert terminals["t"].forgotten > 0


@pytest.mark.parametrize(
    "meta", [{"terminal_info": "t"}, {"terminal_output": {"terminal_id": 3}}, {"terminal_exit": {}}]
)
def test_meta_of_another_shape_is_ignored(meta):
    terminals = extensions.DisplayTerminals()
    assert terminals.add(v1.ToolCallProgress(v1.ToolCallId("c"), meta=meta)) == []
    assert len(terminals) == 0


def test_a_client_that_shows_display_terminals_says_so():
    declared = extensions.with_display_terminals(v1.ClientCapabilities(meta={"mine": 1}))
    assert declared.meta == {"mine": 1, "terminal_output": True}


def test_a_goal_is_read_from_meta():
    goal = extensions.goal_of({"goal": {"objective": "ship it", "status": "active", "tokensUsed": 42}})
    assert goal == extensions.Goal("ship it", "active")
    for none in ({"goal": "ship it"}, {"goal": None}, {"goal": {"objective": ""}}, {}, None):
        assert extensions.goal_of(none) is None


def agent_with_goals(said):
    """An agent that announces this about goals, and the requests that it gets."""
    agent, requests = accord.Agent("aims"), []

    @agent.on(v1.InitializeRequest)
    def answer(request: v1.InitializeRequest) -> v1.InitializeResponse:
        return v1.InitializeResponse(1, meta={} if said is None else {"goal": said})

    @agent.on_request("_session/goal")
    async def control(params):
        requests.append(params)
        return {}

    @agent.on_request("_mine/goal")
    async def control_mine(params):
        requests.append({"method": "_mine/goal", **params})
        return {}

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("ok")

    return agent, requests


async def test_a_goal_is_set_paused_resumed_and_cleared():
    agent, requests = agent_with_goals({"version": 1, "actions": ["clear", "set", "pause", "resume", 7, "explode"]})
    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        assert extensions.goal_actions(remote) == ("set", "pause", "resume", "clear")
        await extensions.control_goal(remote, session.id, "set", "ship it")
        for action in ("pause", "resume", "clear"):
            await extensions.control_goal(remote, session.id, action)
        with pytest.raises(ValueError, match="needs an objective"):
            await extensions.control_goal(remote, session.id, "set", " ")
    assert requests == [
        {"sessionId": session.id, "action": "set", "objective": "ship it"},
        *({"sessionId": session.id, "action": action} for action in ("pause", "resume", "clear")),
    ]


async def test_the_agent_names_the_method_for_goals():
    agent, requests = agent_with_goals({"controlMethod": "_mine/goal", "actions": ["clear"]})
    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        await extensions.control_goal(remote, session.id, "clear")
    assert requests == [{"method": "_mine/goal", "sessionId": session.id, "action": "clear"}]


@pytest.mark.parametrize("said", [None, "goals", {}, {"actions": "set"}, {"actions": ["pause"]}])
async def test_what_an_agent_does_not_offer_for_goals_is_not_asked_for(said):
    agent, requests = agent_with_goals(said)
    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        with pytest.raises(accord.CapabilityMissing):
            await extensions.control_goal(remote, session.id, "set", "ship it")
    assert requests == []


async def test_what_an_agent_announces_in_meta_is_read_from_it():
    """`RemoteAgent.meta` is the `_meta` of the answer to `initialize`."""
    agent, _ = agent_that_steers("injected")
    silent, _ = agent_that_steers("injected")

    @agent.on(v1.InitializeRequest)
    def answer(request: v1.InitializeRequest) -> v1.InitializeResponse:
        return v1.InitializeResponse(1, meta={"steering": {"supported": True}})

    async with accord.connect(agent) as remote:
        assert remote.meta == {"steering": {"supported": True}}
        assert extensions.can_steer(remote)
    async with accord.connect(silent) as remote:
        assert remote.meta == {"accord.dev/watch": True}


def agent_that_writes():
    agent = accord.Agent("writes", unstable=True)

    @agent.on_prompt
    async def write(turn: accord.Turn) -> None:
        name, _, text = turn.text.partition(" ")
        await turn.files.write(name, text)
        await turn.say("written")

    return agent


@pytest.mark.parametrize("version", [1, 2])
async def test_an_agent_restores_what_it_wrote_itself_since_a_cursor(tmp_path, version):
    async with accord.connect(agent_that_writes(), unstable=True, versions=(version,)) as remote:
        session = await remote.new_session(tmp_path)
        for text in ("a.txt one", "a.txt two", "b.txt new", "c.txt new"):
            await session.prompt(text)
        (tmp_path / "c.txt").write_text("by the user")
        first = next(it.id for it in session.state.messages if it.speaker == "agent")
        cursor = session.state.cursor_at(first)
        done = await extensions.rewind_files(remote, session.id, cursor.id)
        assert (done.restored, done.left) == (
            [str(tmp_path / it) for it in ("a.txt", "b.txt")],
            [str(tmp_path / "c.txt")],
        )
        assert (tmp_path / "a.txt").read_text() == "one"
        assert not (tmp_path / "b.txt").exists()
        assert (tmp_path / "c.txt").read_text() == "by the user"
        done = await extensions.rewind_files(remote, session.id, cursor.id, overwrite=True)
        assert (done.restored, done.left) == ([str(tmp_path / "c.txt")], [])
        fork = await session.fork(at=first)
        done = await extensions.rewind_files(remote, fork.id)  # what the session before wrote is known in the fork
        assert done.restored == [str(tmp_path / "a.txt")]
        assert list(tmp_path.iterdir()) == []


async def test_files_are_restored_at_known_cursors_and_sessions_only(tmp_path):
    async with accord.connect(agent_that_writes(), unstable=True) as remote:
        session = await remote.new_session(tmp_path)
        await session.prompt("a.txt one")
        with pytest.raises(accord.PeerError, match="no such cursor"):
            await extensions.rewind_files(remote, session.id, "agent-none")
        with pytest.raises(accord.PeerError):
            await extensions.rewind_files(remote, "none")
        with pytest.raises(accord.PeerError) as refused:
            await remote.request_raw("_accord/rewind_files", {"cursorId": 3})
        assert refused.value.code == -32602
        assert (tmp_path / "a.txt").read_text() == "one"


async def test_another_agent_says_that_it_restores_no_files():
    agent, _ = agent_that_steers("injected")

    @agent.on_request("_accord/rewind_files")
    async def refuse(params):
        raise accord.RequestError.method_not_found("_accord/rewind_files")

    async with accord.connect(agent) as remote:
        assert await extensions.rewind_files(remote, "any") is None
