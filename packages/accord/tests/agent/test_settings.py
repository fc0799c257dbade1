"""Modes and config options: offered, chosen from either side, and never out of step."""

import asyncio

import pytest

import accord
from accord import Agent, PeerError, RequestError, v1

BOOLEANS = v1.ClientCapabilities(
    session=v1.ClientSessionCapabilities(
        config_options=v1.SessionConfigOptionsCapabilities(v1.BooleanConfigOptionCapabilities())
    )
)


@pytest.fixture
def offering():
    """An agent that offers modes and options, and does not answer prompts yet."""
    agent = Agent("settings")

    @agent.on_session
    async def opened(session):
        await session.modes.offer([("ask", "Ask", "Asks first"), ("code", "Code")])
        await session.config.offer("model", "Model", {"Small": ["s"], "Large": [("l", "Big one")]}, category="model")
        await session.config.offer("web", "Web search", value=True)

    return agent


@pytest.fixture
def agent(offering):
    """The same agent, which tells what is chosen."""

    @offering.on_prompt
    async def show(turn):
        config = turn.session.config
        await turn.say(f"{turn.session.modes.current} {config['mode']} {config['model']} {config['web']}")

    return offering


async def opened(editor):
    return await editor.request(v1.NewSessionRequest("/project", []))


@pytest.mark.requirement(
    "config.value-always", "config.modes-also-sent", "mode.current-is-offered", "config.ids-unique"
)
async def test_a_new_session_tells_its_options_and_the_modes_that_are_one_of_them(serve, agent):
    async with serve(agent) as editor:
        session = await opened(editor)
        assert session.modes == v1.SessionModeState(
            "ask", [v1.SessionMode("ask", "Ask", "Asks first"), v1.SessionMode("code", "Code")]
        )
        mode, model = session.config_options
        assert (mode.category, mode.current_value) == ("mode", "ask")
        assert model.options == [
            v1.SessionConfigSelectGroup("Small", "Small", [v1.SessionConfigSelectOption("s", "s")]),
            v1.SessionConfigSelectGroup("Large", "Large", [v1.SessionConfigSelectOption("l", "Big one")]),
        ]
        assert editor.updates == [], "what the answer holds is not told again"


@pytest.mark.requirement("config.boolean.only-when-advertised", "config.boolean.null-is-unsupported")
@pytest.mark.parametrize("declare", [None, BOOLEANS], ids=["not declared", "declared"])
async def test_boolean_options_are_for_clients_that_declared_them(serve, agent, declare):
    async with serve(agent, declare=declare) as editor:
        session = await opened(editor)
        shown = [option.config_id for option in session.config_options]
        assert ("web" in shown) is (declare is not None)
        change = v1.SetSessionConfigOptionRequest.of(session.session_id, "web", False)
        if declare is None:
            with pytest.raises(PeerError) as raised:
                await editor.request(change)
            assert raised.value.code == -32602
        else:
            answer = await editor.request(change)
            assert [it.current_value for it in answer.config_options if it.config_id == "web"] == [False]
        await editor.prompt(session.session_id, "show")
        assert editor.text == f"ask ask s {declare is None}"


@pytest.mark.requirement("config.modes-in-step", "mode.set.any-time")
async def test_setting_the_mode_changes_its_option(serve, agent):
    async with serve(agent) as editor:
        session = (await opened(editor)).session_id
        await editor.request(v1.SetSessionModeRequest(session, v1.SessionModeId("code")))
        assert [it.current_value for it in editor.of(v1.ConfigOptionUpdate)[0].config_options] == ["code", "s"]
        await editor.prompt(session, "show")
        assert editor.text == "code code s True"


async def test_a_client_that_only_knows_models_is_told_them_and_sets_one(serve, agent):
    async with serve(agent) as editor:
        session = await opened(editor)
        assert session.models == v1.SessionModelState("s", [v1.ModelInfo("s", "s"), v1.ModelInfo("l", "Big one")])
        await editor.request(v1.SetSessionModelRequest(session.session_id, "l"), force=True)
        assert [it.current_value for it in editor.of(v1.ConfigOptionUpdate)[0].config_options] == ["ask", "l"]
        await editor.prompt(session.session_id, "show")
        assert editor.text == "ask ask l True"
        with pytest.raises(PeerError, match="unknown model") as raised:
            await editor.request(v1.SetSessionModelRequest(session.session_id, "xl"), force=True)
        assert (raised.value.code, raised.value.data) == (-32602, {"modelId": "xl"})


async def test_offered_models_are_a_config_option_and_the_older_models(serve):
    agent = Agent("offers models")

    @agent.on_session
    async def offer(session):
        assert session.models.current is None
        await session.models.offer(["fast", ("deep", "Deep", "Thinks longer")], current="deep")

    @agent.on_prompt
    async def change(turn):
        await turn.session.models.set("fast")
        await turn.say(str(turn.session.models.current))

    async with serve(agent) as editor:
        session = await opened(editor)
        assert session.models == v1.SessionModelState(
            "deep", [v1.ModelInfo("fast", "fast"), v1.ModelInfo("deep", "Deep", "Thinks longer")]
        )
        (option,) = session.config_options
        assert (option.config_id, option.category, option.current_value) == ("model", "model", "deep")
        await editor.prompt(session.session_id, "change")
        assert editor.text == "fast"
        assert [it.current_value for it in editor.of(v1.ConfigOptionUpdate)[0].config_options] == ["fast"]


async def test_an_agent_without_models_sends_none(serve):
    agent = Agent("plain")

    @agent.on_prompt
    async def nothing(turn):
        await turn.say("nothing to choose")

    async with serve(agent) as editor:
        session = await opened(editor)
        assert session.models is None
        with pytest.raises(PeerError, match="unknown model"):
            await editor.request(v1.SetSessionModelRequest(session.session_id, "any"), force=True)


@pytest.mark.requirement("config.modes-in-step", "config.set.whole-state", "config.category.agent-needs-none")
async def test_setting_the_mode_s_option_changes_the_mode(serve, agent):
    async with serve(agent) as editor:
        session = (await opened(editor)).session_id
        answer = await editor.request(v1.SetSessionConfigOptionRequest.of(session, "mode", "code"))
        assert [it.current_value for it in answer.config_options] == ["code", "s"]
        assert editor.updates == [v1.CurrentModeUpdate("code")]


@pytest.mark.requirement("mode.change-announced", "config.update.whole-state")
async def test_what_the_agent_changes_is_told(serve, offering):
    @offering.on_prompt
    async def change(turn):
        await turn.session.modes.set("code")
        await turn.session.config.set("model", "l")
        await turn.session.config.set("model", "l")

    async with serve(offering) as editor:
        session = (await opened(editor)).session_id
        await editor.prompt(session, "go")
        assert editor.of(v1.CurrentModeUpdate) == [v1.CurrentModeUpdate("code")]
        told = [[it.current_value for it in update.config_options] for update in editor.of(v1.ConfigOptionUpdate)]
        assert told == [["code", "s"], ["code", "l"]]


async def test_what_is_offered_can_change(serve, offering):
    @offering.on_prompt
    async def change(turn):
        await turn.session.config.offer("model", "Model", ["s", "m"])
        await turn.session.config.remove("mode")

    async with serve(offering) as editor:
        session = (await opened(editor)).session_id
        await editor.prompt(session, "go")
        first, last = editor.of(v1.ConfigOptionUpdate)
        assert [value.value for value in first.config_options[1].options] == ["s", "m"]
        assert [option.config_id for option in last.config_options] == ["model"]
        with pytest.raises(PeerError) as raised:
            await editor.request(v1.SetSessionModeRequest(session, v1.SessionModeId("code")))
        assert raised.value.code == -32602


async def test_an_option_that_is_offered_again_keeps_what_was_chosen(serve, offering):
    @offering.on_prompt
    async def again(turn):
        await turn.session.config.offer("web", "Search")
        await turn.session.config.offer("model", "Which model", ["m", "s"])
        await turn.say(f"{turn.session.config['web']} {turn.session.config['model']}")

    async with serve(offering) as editor:
        await editor.prompt((await opened(editor)).session_id, "go")
        assert editor.text == "True s"


async def test_the_author_hears_of_a_choice_and_may_change_what_depends_on_it(serve, agent):
    heard = []

    @agent.on_config
    async def chosen(session, option_id, value):
        heard.append((option_id, value, session.config["model"]))
        await session.config.offer("effort", "Effort", ["low", "high"])

    async with serve(agent) as editor:
        session = (await opened(editor)).session_id
        answer = await editor.request(v1.SetSessionConfigOptionRequest.of(session, "model", "l"))
        assert heard == [("model", "l", "l")]
        assert [it.config_id for it in answer.config_options] == ["mode", "model", "effort"]
        assert editor.updates == [], "the answer holds it"


@pytest.mark.requirement("config.set.invalid-refused")
async def test_a_choice_that_the_author_refuses_is_not_made(serve, agent):
    @agent.on_config
    def chosen(session, option_id, value):
        raise RequestError.invalid_params("not with this plan")

    async with serve(agent) as editor:
        session = (await opened(editor)).session_id
        with pytest.raises(PeerError, match="not with this plan"):
            await editor.request(v1.SetSessionConfigOptionRequest.of(session, "model", "l"))
        await editor.prompt(session, "show")
        assert editor.text == "ask ask s True"


@pytest.mark.requirement("config.set.any-time", "mode.set.any-time")
async def test_a_choice_can_be_made_while_a_turn_runs(serve, offering):
    chosen, running = asyncio.Event(), asyncio.Event()

    @offering.on_prompt
    async def wait(turn):
        running.set()
        await chosen.wait()
        await turn.say(f"{turn.session.modes.current} {turn.session.config['model']}")

    async with serve(offering) as editor:
        session = (await opened(editor)).session_id
        asking = asyncio.create_task(editor.prompt(session, "go"))
        await running.wait()
        await editor.request(v1.SetSessionModeRequest(session, v1.SessionModeId("code")))
        await editor.request(v1.SetSessionConfigOptionRequest.of(session, "model", "l"))
        chosen.set()
        await asking
        assert editor.text == "code l"


@pytest.mark.requirement("config.untouched-works", "session.independent")
async def test_settings_of_two_sessions_are_two(serve, agent):
    async with serve(agent) as editor:
        one, two = (await opened(editor)).session_id, (await opened(editor)).session_id
        await editor.request(v1.SetSessionModeRequest(one, v1.SessionModeId("code")))
        await editor.prompt(two, "show")
        assert editor.text == "ask ask s True"


@pytest.mark.requirement("mode.ids-unique")
@pytest.mark.parametrize("values", [[], ["a", "a"]], ids=["no values", "the same value twice"])
async def test_an_option_that_cannot_be_chosen_from_is_an_error_of_the_author(serve, caplog, values):
    agent = Agent("wrong")
    agent.on_prompt(lambda _: None)

    @agent.on_session
    async def opened(session):
        if session.cwd.name == "modes":
            await session.modes.offer(values)
        await session.config.offer("model", "Model", values)

    async with serve(agent) as editor:
        for cwd in ("/project", "/modes"):
            with pytest.raises(PeerError):
                await editor.open(cwd)
    assert "option 'model' must have at least one value, and their ids must differ" in caplog.text
    assert "option 'mode' must have at least one value, and their ids must differ" in caplog.text


@pytest.mark.requirement("config.category.own-underscore")
async def test_a_category_of_one_s_own_begins_with_an_underscore(serve, caplog):
    agent = Agent("sorted")
    agent.on_prompt(lambda _: None)

    @agent.on_session
    async def opened(session):
        category = session.cwd.name
        await session.config.offer("a", "A", ["x"], category=category)
        await session.config.offer("b", "B", category=category)

    async with serve(agent, declare=BOOLEANS) as editor:
        answer = await editor.request(v1.NewSessionRequest("/_example.com", []))
        assert [option.category for option in answer.config_options] == ["_example.com", "_example.com"]
        for cwd in ("/model", "/model_config", "/thought_level"):
            await editor.open(cwd)
        with pytest.raises(PeerError):
            await editor.open("/personality")
    assert "or begin with an underscore, got 'personality'" in caplog.text


async def test_an_option_without_values_is_on_or_off():
    agent = Agent("options")
    agent.on_prompt(lambda _: None)

    @agent.on_session
    async def opened(session):
        with pytest.raises(
            TypeError, match=r"config.offer\('web'\) without values takes value=True or value=False, got str"
        ):
            await session.config.offer("web", "Web search", value="on")

    async with accord.connect(agent) as remote:
        assert (await remote.new_session("/")).state.config == []
