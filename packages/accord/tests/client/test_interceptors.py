"""What comes before the handlers of a client: `before` functions, and the handlers of single sessions."""

import sys
from pathlib import Path

import msgspec
import pytest

import accord
from accord import Client, RequestError, v1
from tests.client.conftest import staged
from tests.client.v2.conftest import staged_v2

PROGRAM = Path(__file__).with_name("delegating_agent.py")
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def stage(request):
    """A client of ours, and an agent of either version that the test plays."""
    return staged if request.param == 1 else staged_v2


async def asked(on, session_id="s", title="Delete"):
    """The option that the client chooses when the agent asks for permission."""
    if on.remote.version == 1:
        params = {"toolCall": {"toolCallId": "t", "title": title}}
    else:
        params = {"title": title, "subject": {"type": "tool_call", "toolCall": {"toolCallId": "t", "title": title}}}
    call = on.agent.call("session/request_permission", {"sessionId": session_id, "options": OPTIONS, **params})
    answer = await on.agent.expect_answer(call)
    return answer["result"]["outcome"]["optionId"] if "result" in answer else answer["error"]["code"]


def allowed(request):
    return v1.RequestPermissionResponse.selected(request.options[0])


async def test_a_session_answers_its_questions_alone_until_that_is_removed(stage):
    async with stage() as on:
        session = await on.session()
        await on.session("other")
        asking = session.on(v1.RequestPermissionRequest)

        @asking
        async def ask(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
            return allowed(request)

        assert (await asked(on), await asked(on, "other")) == ("yes", "no")
        asking.remove()
        assert await asked(on) == "no"


async def test_a_function_sees_a_question_before_the_service_does(stage):
    client = Client()
    seen = []

    @client.before(v1.RequestPermissionRequest)
    def judge(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse | None:
        seen.append(request.tool_call.title)
        if request.tool_call.title == "Refused":
            raise RequestError.invalid_request("not now")
        return allowed(request) if request.tool_call.title == "Delete" else None

    async with stage(client) as on:
        await on.session()
        assert [await asked(on, title=title) for title in ("Delete", "Other", "Refused")] == ["yes", "no", -32600]
    assert seen == ["Delete", "Other", "Refused"]


async def test_handlers_of_a_session_end_with_it():
    async with staged() as on:
        session = await on.session()
        session.on(v1.RequestPermissionRequest)(allowed)
        assert await asked(on) == "yes"
        await session.close()
        assert await asked(on) == -32002


async def test_a_handler_of_a_session_is_a_function_also_without_async():
    # Else the question would be that of the subagent's session.
    plain = Client("editor", capabilities=lambda declared: msgspec.structs.replace(declared, subagents=None))
    with accord.sync.connect([sys.executable, str(PROGRAM)], client=plain) as remote:
        session = remote.new_session("/")
        asking = session.on(v1.RequestPermissionRequest)
        asking(allowed)
        assert "True" in session.prompt("ask").outcome().tool_calls[0].text
        asking.remove()
        assert "False" in session.prompt("ask").outcome().tool_calls[0].text


async def test_updates_reach_the_state_whatever_is_registered(stage):
    """Session updates are the stream, which has a way of its own through the engine."""
    async with stage() as on:
        session = await on.session()
        heard = []
        listening = session.on(v1.SessionNotification)
        listening(lambda notification: heard.append(notification.update.content.text))
        on.say("one")
        await on.agent.expect_error(on.agent.call("_nothing"))
        listening.remove()
        on.say("two")
        await on.agent.expect_error(on.agent.call("_nothing"))
        assert heard == ["one"]
        assert "".join(message.text for message in session.state.messages) == "onetwo"
