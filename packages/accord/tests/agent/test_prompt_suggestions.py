"""`session.suggest`: prompts that the agent expects next."""

from __future__ import annotations

import pytest

from accord import Agent, Client, connect, v1

VERSIONS = pytest.mark.parametrize("version", [1, 2])
IMAGE = v1.ImageContent("AAAA", "image/png")
LINK = v1.ResourceLink("a.py", "file:///a.py")


def suggesting(*prompts, **options):
    """An agent that suggests these prompts after each of the user's, and says whether they were sent."""
    agent = Agent("suggests", **options)

    @agent.on_prompt
    async def answer(turn):
        await turn.say(str(await turn.session.suggest(*prompts)))

    return agent


def texts(session):
    return [[getattr(block, "text", type(block).__name__) for block in it.prompt] for it in session.state.suggestions]


@VERSIONS
async def test_suggestions_reach_a_client_that_offers_them_and_can_be_sent(version):
    agent = suggesting("Run the tests", ["Look at", LINK])
    async with connect(agent, Client(prompt_suggestions=True), versions=(version,)) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("hello")).text == "True"
        assert texts(session) == [["Run the tests"], ["Look at", "ResourceLink"]]
        assert (await session.prompt(session.state.suggestions[1].prompt)).text == "True"


@VERSIONS
async def test_a_client_that_offers_none_is_sent_none(version):
    async with connect(suggesting("Run the tests"), versions=(version,), unstable=True) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("hello")).text == "False"
        assert session.state.suggestions == []


@VERSIONS
async def test_no_suggestions_take_back_those_before(version):
    agent = Agent("takes back")

    @agent.on_prompt
    async def answer(turn):
        await turn.session.suggest(*turn.text.split())

    async with connect(agent, Client(prompt_suggestions=True), versions=(version,)) as remote:
        session = await remote.new_session("/")
        await session.prompt("one two")
        assert texts(session) == [["one"], ["two"]]
        await session.prompt(" ")
        assert texts(session) == []


async def test_suggestions_are_not_part_of_the_conversation():
    agent = suggesting("Run the tests")
    async with connect(agent, Client(prompt_suggestions=True)) as remote:
        session = await remote.new_session("/")
        await session.prompt("hello")
    async with connect(agent, Client(prompt_suggestions=True)) as remote:
        assert (await remote.load(session.id, "/")).state.suggestions == []


async def test_content_that_the_client_does_not_offer_is_left_out(serve):
    agent = suggesting("Run the tests", [IMAGE], accepts=["image"])
    offers = v1.ClientSessionCapabilities(prompt_suggestions=v1.PromptSuggestionsCapabilities())
    async with serve(agent, declare=v1.ClientCapabilities(session=offers)) as editor:
        await editor.prompt(await editor.open(), "hello")
        [update] = editor.of(v1.PromptSuggestionsUpdate)
        assert update.suggestions == [v1.PromptSuggestion.of("Run the tests")]
    async with connect(agent, Client(prompt_suggestions=True)) as remote:
        session = await remote.new_session("/")
        await session.prompt("hello")
        assert texts(session) == [["Run the tests"], ["ImageContent"]]


@pytest.mark.parametrize(
    ("prompt", "error", "words"),
    [
        ("  ", ValueError, "not empty"),
        ([], ValueError, "not empty"),
        ([IMAGE], ValueError, "ImageContent, which the agent does not take"),
        (7, TypeError, "session.suggest"),
    ],
)
async def test_what_the_user_could_not_send_is_refused_whatever_the_client_offers(prompt, error, words):
    agent, refused = Agent("wrong"), []

    @agent.on_prompt
    async def answer(turn):
        with pytest.raises(error, match=words) as told:
            await turn.session.suggest(prompt)
        refused.append(told)

    async with connect(agent) as remote:
        await (await remote.new_session("/")).prompt("hello")
    assert refused
