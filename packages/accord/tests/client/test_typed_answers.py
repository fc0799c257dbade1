"""Answers as data: `session.prompt(..., output=T)`, `accord.ask(..., output=T)` and `accord.sync`."""

import enum
import json
from dataclasses import dataclass
from typing import Literal, TypedDict

import msgspec
import pytest

import accord
from accord.client.typed_answer import OutputType


@dataclass
class Place:
    path: str
    line: int = 1


class Finding(msgspec.Struct):
    text: str
    places: list[Place]


class Row(TypedDict):
    name: str
    size: int


class Colour(enum.Enum):
    RED = "red"


def agent_that_says(*answers):
    """An agent that gives these answers, one for each prompt, and keeps the prompts."""
    agent = accord.Agent("answers")
    agent.heard = []

    @agent.on_prompt
    async def reply(turn):
        agent.heard.append(turn.text)
        await turn.say(answers[len(agent.heard) - 1])

    return agent


@pytest.fixture(params=[1, 2])
def versions(request):
    return [request.param]


FITTING = [
    ('{"path": "a.py", "line": 3}', Place, Place("a.py", 3)),
    ('Here it is:\n\n```json\n{"path": "a.py"}\n```\nDone.', Place, Place("a.py")),
    ('```\n["a"]\n```\n\n```json\n["b"]\n```', list[str], ["b"]),
    ('It is {"path": "a.py"}, as far as I can [see].', Place, Place("a.py")),
    ('I read {this} and [that]: {"text": "x", "places": [{"path": "b"}]}', Finding, Finding("x", [Place("b")])),
    ('{"name": "a", "size": 2, "more": null}', Row, {"name": "a", "size": 2}),
    ('["a", "b"]', list[str], ["a", "b"]),
    ("yes", Literal["yes", "no"], "yes"),
    ('"yes"', Literal["yes", "no"], "yes"),
    ("two words", str, "two words"),
    ("42", int, 42),
    ("red", Colour, Colour.RED),
    ("null", str | None, None),
]


@pytest.mark.parametrize(("text", "wanted", "value"), FITTING)
def test_an_answer_is_read_as_its_type(text, wanted, value):
    assert OutputType(wanted).read(text) == value


@pytest.mark.parametrize(
    ("text", "wanted", "problem"),
    [
        ('{"path": 3}', Place, "Expected `str`, got `int` - at `$.path`"),
        ('{"text": "x", "places": [{"line": 1}]}', Finding, "missing required field `path` - at `$.places[0]`"),
        ("maybe", Literal["yes", "no"], "Invalid enum value 'maybe'"),
        ("I cannot\nsay {that} [either", Place, "there is no JSON in it"),
        ("[" * 100_000, Place, "there is no JSON in it"),
        ("", Place, "there is no JSON in it"),
    ],
)
def test_an_answer_that_does_not_fit_says_where_and_what_was_wanted(text, wanted, problem):
    with pytest.raises(accord.OutputError) as caught:
        OutputType(wanted).read(text)
    assert problem in caught.value.problem
    assert problem in str(caught.value)
    assert caught.value.text == text


@pytest.mark.parametrize("wanted", [Finding, list[Finding], Place])
def test_the_schema_of_the_type_is_in_the_request(wanted):
    assert json.dumps(OutputType(wanted).schema) in OutputType(wanted).request
    assert '"path"' in OutputType(wanted).request


def test_what_is_no_type_is_refused_before_a_prompt_is_sent():
    with pytest.raises(TypeError, match=r"session.prompt\(output=...\).*dataclass"):
        OutputType(object())


def test_a_model_of_pydantic_is_read_by_pydantic():
    pydantic = pytest.importorskip("pydantic")

    class Score(pydantic.BaseModel):
        points: int = pydantic.Field(ge=0, le=10)

    assert OutputType(Score).read('```json\n{"points": 7}\n```') == Score(points=7)
    assert OutputType(list[Score]).read('[{"points": 7}]') == [Score(points=7)]
    with pytest.raises(accord.OutputError, match=r"less than or equal to 10, got 11 - at `\$\.points`"):
        OutputType(Score).read('{"points": 11}')


async def test_a_prompt_gives_its_answer_as_data(versions, tmp_path):
    agent = agent_that_says('{"path": "a.py"}')
    async with accord.connect(agent, versions=versions) as remote:
        session = await remote.new_session(tmp_path)
        typed = session.prompt("Where?", output=Place)
        assert "".join([text async for text in typed.reply.iter_text()]) == '{"path": "a.py"}'
        assert await typed == Place("a.py")
        assert await typed == Place("a.py")
        assert typed.repair is None
    [heard] = agent.heard
    assert heard.startswith("Where?")
    assert OutputType(Place).request in heard


async def test_an_answer_that_does_not_fit_is_repaired_once(versions, tmp_path):
    agent = agent_that_says('{"path": 3}', '{"path": "a.py"}')
    async with accord.connect(agent, versions=versions) as remote:
        typed = (await remote.new_session(tmp_path)).prompt("Where?", output=Place)
        assert await typed == await typed == Place("a.py")
        assert (await typed.repair).text == '{"path": "a.py"}'
    assert len(agent.heard) == 2
    assert "Expected `str`, got `int` - at `$.path`" in agent.heard[1]


async def test_an_answer_that_does_not_fit_twice_is_an_error_with_its_text(versions, tmp_path):
    agent = agent_that_says("Well.\n", "I cannot\nsay.")
    async with accord.connect(agent, versions=versions) as remote:
        session = await remote.new_session(tmp_path)
        with pytest.raises(accord.OutputError, match="does not fit Place: there is no JSON in it") as caught:
            await session.prompt("Where?", output=Place)
    assert caught.value.text == "I cannot\nsay."


async def test_a_turn_that_was_refused_is_not_repaired(tmp_path):
    agent = accord.Agent("refuses")

    @agent.on_prompt
    async def refuse(turn):
        await turn.say("No.")
        return "refusal"

    async with accord.connect(agent) as remote:
        typed = (await remote.new_session(tmp_path)).prompt("Where?", output=Place)
        with pytest.raises(accord.OutputError, match="the turn ended with 'refusal'"):
            await typed
        assert typed.repair is None


def test_without_async_the_answer_is_there(tmp_path):
    agent = agent_that_says('["a"]', "7", '["b"]')
    assert accord.ask("Which?", agent=agent, cwd=tmp_path, output=list[str]) == ["a"]
    with accord.sync.connect(agent) as remote:
        session = remote.new_session(tmp_path)
        assert session.prompt("How many?", output=int) == 7
        assert session.prompt("Which?", output=list[str]) == ["b"]


def test_the_error_names_the_type():
    for wanted, name in ((Place, "Place"), (list[Place], "list"), (Literal["yes", "no"], "Literal")):
        with pytest.raises(accord.OutputError, match=f"the answer does not fit .*{name}"):
            OutputType(wanted).read("a\nb")
