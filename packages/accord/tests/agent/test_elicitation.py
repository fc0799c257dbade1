"""Elicitation: forms and URLs in their three scopes, and what happens where the client cannot ask."""

from typing import Annotated, Literal

import msgspec
import pytest

from accord import Agent, Handlers, PeerError, Unknown, v1
from tests.agent.both_kinds import ONLY_ASYNC, author_kind, of_kind  # noqa: F401 - a fixture

BOTH = v1.ClientCapabilities(
    elicitation=v1.ElicitationCapabilities(v1.ElicitationFormCapabilities(), v1.ElicitationUrlCapabilities())
)
FORMS = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities(v1.ElicitationFormCapabilities()))
URLS = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities(url=v1.ElicitationUrlCapabilities()))
EMPTY = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities())


class Approach(msgspec.Struct):
    strategy: Literal["careful", "fast"]
    name: Annotated[str, msgspec.Meta(min_length=2)] = "main"


SCHEMA = v1.ElicitationSchema({"name": v1.StringPropertySchema(min_length=2)}, ["name"])


def agent_with(work):
    agent = Agent("asks")
    agent.on_prompt(of_kind(work))
    return agent


def answering(answer):
    """A client whose user gives this answer, and what it was asked."""
    handlers, asked = Handlers(), []

    @handlers.on_request("elicitation/create")
    def create(params):
        asked.append(params)
        return answer

    return handlers, asked


def accepting(**content):
    return answering({"action": "accept", "content": content})


async def test_a_form_is_filled_in_as_the_class_it_was_made_of(serve):
    answers = []

    async def work(turn):
        answers.append(await turn.elicit("How?", Approach))

    handlers, asked = accepting(strategy="fast")
    async with serve(agent_with(work), handlers, declare=FORMS) as editor:
        session = await editor.open()
        await editor.prompt(session, "go")
        assert answers[0].accepted
        assert answers[0].value == Approach("fast", "main")
        assert asked[0]["message"] == "How?"
        assert asked[0]["mode"] == "form"
        assert asked[0]["sessionId"] == session
        assert asked[0]["requestedSchema"]["required"] == ["strategy"]
        assert asked[0]["requestedSchema"]["properties"]["strategy"]["enum"] == ["careful", "fast"]


async def test_a_form_may_be_a_schema(serve):
    answers = []

    async def work(turn):
        answers.append(await turn.elicit("Name?", SCHEMA))

    handlers, _ = accepting(name="main")
    async with serve(agent_with(work), handlers, declare=FORMS) as editor:
        await editor.prompt(await editor.open(), "go")
        assert answers[0].value == {"name": "main"}


@pytest.mark.requirement("elicitation.answer.unknown-action")
@pytest.mark.parametrize("action", ["decline", "cancel", "_postpone"])
async def test_no_answer_is_told_as_what_it_is(serve, action):
    answers = []

    async def work(turn):
        answers.append(await turn.elicit("How?", Approach, fallback=Approach("careful")))

    handlers, _ = answering({"action": action})
    async with serve(agent_with(work), handlers, declare=FORMS) as editor:
        await editor.prompt(await editor.open(), "go")
        assert (answers[0].action, answers[0].accepted, answers[0].value) == (action, False, None)


@pytest.mark.requirement("elicitation.answer.validated")
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "strategy: missing"),
        ({"strategy": "slow"}, "strategy: must be one of the choices"),
        ({"strategy": "fast", "name": "x"}, "name: must have at least 2 characters"),
    ],
    ids=["missing", "not offered", "too short"],
)
async def test_an_answer_that_does_not_fit_the_form_is_an_error(serve, caplog, content, problem):
    async def work(turn):
        await turn.elicit("How?", Approach)

    handlers, _ = accepting(**content)
    async with serve(agent_with(work), handlers, declare=FORMS) as editor:
        with pytest.raises(PeerError):
            await editor.prompt(await editor.open(), "go")
    assert problem in caplog.text


@pytest.mark.requirement(
    "elicitation.answer-not-needed",
    "elicitation.absent-is-unsupported",
    "elicitation.goes-on-without",
    "elicitation.declared-modes-only",
    "elicitation.empty-means-form",
)
@pytest.mark.parametrize(
    ("declare", "can_form", "can_url"),
    [(None, False, False), (EMPTY, True, False), (FORMS, True, False), (URLS, False, True), (BOTH, True, True)],
    ids=["nothing", "an empty object", "forms", "urls", "both"],
)
async def test_a_client_is_asked_in_the_modes_it_declared_and_else_the_agent_goes_on(serve, declare, can_form, can_url):
    answers = []

    async def work(turn):
        answers.append(await turn.elicit("How?", Approach, fallback=Approach("careful")))
        answers.append(await turn.elicit_url("Go", "https://example.com/connect"))
        await answers[1].complete()

    handlers, asked = accepting(strategy="fast")
    completed = []
    handlers.on(v1.CompleteElicitationNotification)(completed.append)
    async with serve(agent_with(work), handlers, declare=declare) as editor:
        await editor.prompt(await editor.open(), "go")
        assert [it["mode"] for it in asked] == ["form"] * can_form + ["url"] * can_url
        assert answers[0].value == Approach("fast" if can_form else "careful")
        assert (answers[0].action == "unavailable") is not can_form
        assert answers[1].accepted is can_url
        assert len(completed) == can_url


@pytest.mark.requirement("elicitation.complete.carries-id", "elicitation.url.valid")
async def test_a_url_has_an_id_that_its_completion_names(serve):
    async def work(turn):
        visit = await turn.elicit_url("Sign in", "https://example.com/connect")
        assert visit.accepted
        await visit.complete()

    handlers, asked = answering({"action": "accept"})
    completed = []
    handlers.on(v1.CompleteElicitationNotification)(completed.append)
    async with serve(agent_with(work), handlers, declare=URLS) as editor:
        await editor.prompt(await editor.open(), "go")
        assert asked[0]["url"] == "https://example.com/connect"
        assert [it.elicitation_id for it in completed] == [asked[0]["elicitationId"]]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("example.com", "url must have a scheme and a host, got 'example.com'"),
        ("https://me:hidden@example.com/", "must not contain a user name or password (example.com)"),
    ],
)
async def test_what_is_no_url_to_send_anybody_to_is_an_error_of_the_author(serve, caplog, url, problem):
    async def work(turn):
        await turn.elicit_url("Sign in", url)

    async with serve(agent_with(work), declare=URLS) as editor:
        with pytest.raises(PeerError):
            await editor.prompt(await editor.open(), "go")
    assert problem in caplog.text


@pytest.mark.requirement("elicitation.scope")
async def test_a_tool_s_question_names_its_tool_call(serve):
    async def work(turn):
        async with turn.tool("Rename") as tool:
            await tool.elicit("Name?", SCHEMA)

    handlers, asked = accepting(name="main")
    async with serve(agent_with(work), handlers, declare=FORMS) as editor:
        session = await editor.open()
        await editor.prompt(session, "go")
        assert asked[0]["sessionId"] == session
        assert asked[0]["toolCallId"] == editor.of(v1.ToolCall)[0].tool_call_id


@pytest.mark.requirement("elicitation.scope")
async def test_a_login_s_question_names_its_request(serve):
    agent, names = Agent("asks"), []
    agent.on_prompt(lambda _: None)

    @agent.login("account", "Account")
    async def log_in(login):
        names.append((await login.elicit("Workspace?", SCHEMA)).value["name"])

    handlers, asked = accepting(name="main")
    async with serve(agent, handlers, declare=FORMS) as editor:
        await editor.request(v1.AuthenticateRequest(v1.AuthMethodId("account")))
        assert names == ["main"]
        assert "sessionId" not in asked[0]
        assert isinstance(asked[0]["requestId"], int)


class SignIn(msgspec.Struct):
    user: str
    password: str


@pytest.mark.requirement("elicitation.form.no-secrets")
@pytest.mark.parametrize(
    ("form", "named"),
    [
        (SignIn, "(password)"),
        (v1.ElicitationSchema({"apiKey": v1.StringPropertySchema()}), "(apiKey)"),
        (v1.ElicitationSchema({"x": v1.StringPropertySchema(title="Your access token")}), "(x)"),
    ],
)
async def test_a_form_that_asks_for_a_secret_is_an_error_of_the_author(serve, caplog, form, named):
    async def work(turn):
        await turn.elicit("Sign in", form)

    handlers, asked = accepting()
    async with serve(agent_with(work), handlers, declare=BOTH) as editor:
        with pytest.raises(PeerError):
            await editor.prompt(await editor.open(), "go")
    assert asked == []
    assert f"a form must not ask for secrets {named}" in caplog.text


async def test_what_only_sounds_like_a_secret_is_asked_for(serve):
    fields = {
        "maxTokens": v1.StringPropertySchema(),
        "remember_password": v1.BooleanPropertySchema(),
        "by": v1.StringPropertySchema(title="Access token or password", enum=["token", "password"]),
    }

    async def work(turn):
        await turn.elicit("How?", v1.ElicitationSchema(fields))

    handlers, asked = accepting()
    async with serve(agent_with(work), handlers, declare=FORMS) as editor:
        await editor.prompt(await editor.open(), "go")
    assert list(asked[0]["requestedSchema"]["properties"]) == list(fields)


@pytest.mark.requirement("elicitation.form.own-types-underscore")
async def test_a_field_of_a_type_of_one_s_own_has_an_underscore(serve, caplog):
    def schema(tag):
        return v1.ElicitationSchema({"colour": Unknown(tag, {"type": tag})})

    async def work(turn):
        await turn.elicit("Which?", schema(turn.text))

    handlers, asked = accepting()
    async with serve(agent_with(work), handlers, declare=FORMS) as editor:
        session = await editor.open()
        await editor.prompt(session, "_example.com/colour")
        with pytest.raises(PeerError):
            await editor.prompt(session, "colour")
    assert [it["requestedSchema"]["properties"]["colour"]["type"] for it in asked] == ["_example.com/colour"]
    assert "must begin with an underscore, got 'colour'" in caplog.text


@pytest.mark.requirement("elicitation.form.no-links")
async def test_a_link_in_a_form_is_warned_of(serve, caplog):
    async def work(turn):
        await turn.elicit("Name? Or go to https://example.com/names", SCHEMA)

    handlers, _ = accepting(name="main")
    async with serve(agent_with(work), handlers, declare=FORMS) as editor:
        await editor.prompt(await editor.open(), "go")
    assert "use `elicit_url`" in caplog.text


@pytest.mark.requirement("elicitation.url.https")
@pytest.mark.parametrize(
    ("url", "is_warned_of"),
    [
        ("https://example.com/connect", False),
        ("http://localhost:8000/connect", False),
        ("http://127.0.0.1/connect", False),
        ("http://example.com/connect", True),
    ],
)
async def test_a_page_without_encryption_is_warned_of_outside_of_development(serve, caplog, url, is_warned_of):
    async def work(turn):
        await turn.elicit_url("Sign in", url)

    handlers, _ = answering({"action": "accept"})
    async with serve(agent_with(work), handlers, declare=URLS) as editor:
        await editor.prompt(await editor.open(), "go")
    assert ("is not encrypted" in caplog.text) is is_warned_of


@ONLY_ASYNC
@pytest.mark.requirement("elicitation.complete.same-client", "elicitation.url.accept-is-consent")
async def test_agreeing_to_a_page_completes_nothing_and_its_end_is_told_to_who_was_asked(serve):
    visits = []

    async def work(turn):
        visits.append(await turn.elicit_url("Sign in", "https://example.com/connect"))

    def client():
        handlers, _ = answering({"action": "accept"})
        completed = []
        handlers.on(v1.CompleteElicitationNotification)(completed.append)
        return handlers, completed

    agent = agent_with(work)
    (one, told_one), (two, told_two) = client(), client()
    async with serve(agent, one, declare=URLS) as first, serve(agent, two, declare=URLS) as second:
        for editor in (first, second):
            await editor.prompt(await editor.open(), "go")
        assert [visit.accepted for visit in visits] == [True, True]
        assert told_one == told_two == []
        await visits[0].complete()
        for editor in (first, second):
            await editor.open()
        assert [it.elicitation_id for it in told_one] == [visits[0].id]
        assert told_two == []
