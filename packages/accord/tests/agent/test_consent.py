"""An answer of the user is true only if the user agreed, so that `if await tool.ask():` does nothing they refused."""

import inspect

import pytest

import accord
from accord import Agent, Handlers, v1
from accord._internal import Consent
from accord.agent.session_mcp import SessionServers
from accord.mcp.catalog import McpResult

SAYS_YES = {"allowed", "accepted", "agreed", "confirmed"}
"""Attributes by which a class would tell that the user said yes."""

ANSWERS = {
    accord.Decision: (accord.Decision(allowed=True), accord.Decision(allowed=False)),
    accord.Elicited: (accord.Elicited("accept", {}), accord.Elicited("decline")),
    accord.ElicitedUrl: (
        accord.ElicitedUrl(None, "accept", v1.ElicitationId("1")),
        accord.ElicitedUrl(None, "cancel", v1.ElicitationId("1")),
    ),
    accord.sync.ElicitedUrl: (
        accord.sync.ElicitedUrl(None, accord.ElicitedUrl(None, "accept", v1.ElicitationId("1"))),
        accord.sync.ElicitedUrl(None, accord.ElicitedUrl(None, "cancel", v1.ElicitationId("1"))),
    ),
    McpResult: (McpResult([]), McpResult([], failed=True)),
}
"""Each class of answers, with one that says yes and one that says no."""

ASKING = [
    accord.Turn.ask,
    accord.Tool.ask,
    accord.Turn.elicit,
    accord.Turn.elicit_url,
    SessionServers.call,
]
"""The methods that ask the user."""


def public_classes():
    found = [getattr(package, name) for package in (accord, accord.sync) for name in package.__all__]
    return [it for it in found if inspect.isclass(it)]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: f"{answer.__module__}.{answer.__name__}")
def test_the_truth_of_an_answer_is_what_the_user_said(answer):
    yes, no = ANSWERS[answer]
    assert yes
    assert not no


def test_an_answer_of_an_unknown_kind_is_not_true():
    assert not accord.Elicited("unavailable", {"name": "a fallback"})
    assert not accord.Elicited("postponed")


def test_every_public_class_that_tells_of_a_yes_is_an_answer():
    tells = {cls for cls in public_classes() if SAYS_YES & set(dir(cls))}
    assert tells == {cls for cls in public_classes() if issubclass(cls, Consent)}
    assert tells <= set(ANSWERS)


@pytest.mark.parametrize("method", ASKING, ids=lambda method: method.__qualname__)
def test_every_method_that_asks_the_user_returns_an_answer(method):
    returned = inspect.signature(method).return_annotation
    names = {cls.__name__ for cls in ANSWERS}
    assert returned.partition("[")[0] in names


@pytest.mark.parametrize(("choice", "said"), [("allow_once", "pushed"), ("reject_once", "not pushed")])
async def test_a_turn_that_branches_on_its_question_does_what_the_user_said(serve, choice, said):
    agent = Agent("pushes")

    @agent.on_prompt
    async def push(turn):
        await turn.say("pushed" if await turn.ask("Push") else "not pushed")

    handlers = Handlers()

    @handlers.on(v1.RequestPermissionRequest)
    def choose(request):
        option = next(option for option in request.options if option.kind == choice)
        return v1.RequestPermissionResponse(v1.SelectedPermissionOutcome(option.option_id))

    async with serve(agent, handlers) as editor:
        await editor.prompt(await editor.open(), "go")
        assert editor.text == said


async def log_in(login):
    return await login.elicit_url("Sign in", "https://example.com/login")


def log_in_plainly(login):
    return login.elicit_url("Sign in", "https://example.com/login")


@pytest.mark.parametrize("function", [log_in, log_in_plainly])
async def test_a_login_whose_page_the_user_declines_does_not_succeed(serve, function):
    agent = Agent("logs in")
    agent.on_prompt(lambda _: None)
    agent.login("account", "Account")(function)
    handlers = Handlers()
    handlers.on(v1.CreateElicitationRequest)(lambda _: v1.ElicitationDeclineAction())
    shows = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities(url=v1.ElicitationUrlCapabilities()))
    async with serve(agent, handlers, declare=shows, unstable=True) as editor:
        with pytest.raises(accord.PeerError, match="did not succeed"):
            await editor.request(v1.AuthenticateRequest(v1.AuthMethodId("account")), timeout=30)
