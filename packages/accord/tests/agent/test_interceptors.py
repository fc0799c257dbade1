"""What comes before the handlers of an agent: `before` functions, and the handlers of single sessions."""

import asyncio

import pytest

from accord import Agent, Model, Notification, Request, RequestError, v1


class Answer(Model):
    text: str


class Ask(Request[Answer], method="_example.com/ask"):
    session_id: v1.SessionId


class Tell(Notification, method="_example.com/tell"):
    session_id: v1.SessionId


@pytest.fixture
def agent():
    agent = Agent("echo")

    @agent.on_prompt
    async def echo(turn):
        await turn.say(turn.text)

    return agent


async def said_to(client, text="go", session=None):
    """What the agent says to this prompt, or the code of its error."""
    session = session or client.session
    asked = client.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})
    said = ""
    while "method" in (message := await client.receive()):
        said += message["params"]["update"]["content"]["text"]
    assert message["id"] == asked
    return message["error"]["code"] if "error" in message else said or message["result"]["stopReason"]


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
async def test_a_function_sees_a_known_message_before_the_agent_does(wire, agent, is_async):
    seen = []

    def look(request, context):
        seen.append((request.prompt[0].text, context.peer.role))

    async def look_later(request, context):
        look(request, context)

    agent.before(v1.PromptRequest)(look_later if is_async else look)
    async with wire(agent) as client:
        assert await said_to(client) == "go"
    assert seen == [("go", "agent")]


async def test_it_can_answer_change_or_refuse_the_message(wire, agent):
    @agent.before(v1.PromptRequest)
    async def judge(request: v1.PromptRequest) -> v1.PromptRequest | v1.PromptResponse | None:
        match request.prompt[0].text:
            case "answer":
                return v1.PromptResponse("max_tokens")
            case "change":
                return v1.PromptRequest.of(request.session_id, "changed")
            case "refuse":
                raise RequestError.invalid_params("not this one")
        return None

    async with wire(agent) as client:
        said = [await said_to(client, text) for text in ("pass", "answer", "change", "refuse")]
    assert said == ["pass", "max_tokens", "changed", -32602]


async def test_functions_run_in_the_order_of_registration_until_one_answers(wire, agent):
    order = []

    @agent.before(v1.PromptRequest)
    def first(_):
        order.append("first")

    @agent.before(v1.PromptRequest)
    async def second(_):
        order.append("second")
        return v1.PromptResponse("refusal")

    @agent.before(v1.PromptRequest)
    def third(_):
        order.append("third")

    async with wire(agent) as client:
        assert await said_to(client) == "refusal"
    assert order == ["first", "second"]


async def test_a_notification_can_be_stopped(wire, agent):
    stops = [True, False]
    stopped = []

    @agent.before(v1.CancelNotification)
    def stop(notification):
        stopped.append(notification.session_id)
        return stops.pop(0) or None

    @agent.command("wait", "Wait to be cancelled")
    async def wait(turn):
        await turn.say("here")
        await asyncio.Event().wait()

    async with wire(agent) as client:
        await client.expect("session/update")  # the commands
        asked = client.call(
            "session/prompt", {"sessionId": client.session, "prompt": [{"type": "text", "text": "/wait"}]}
        )
        await client.expect("session/update")
        client.tell("session/cancel", {"sessionId": client.session})
        await client.request("session/list", {})
        client.tell("session/cancel", {"sessionId": client.session})
        assert await client.expect_result(asked) == {"stopReason": "cancelled"}
        assert stopped == [client.session, client.session]


async def test_a_function_can_be_removed_while_the_agent_runs(wire, agent):
    before = agent.before(v1.PromptRequest)
    before(lambda _: v1.PromptResponse("refusal"))
    async with wire(agent) as client:
        assert await said_to(client) == "refusal"
        before.remove()
        assert await said_to(client) == "go"


async def test_a_session_handles_a_message_alone_until_that_is_removed(wire, agent):
    sessions = {}

    @agent.on_session
    def opened(session):
        sessions[session.id] = session

    async with wire(agent) as client:
        other = (await client.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]
        asking = sessions[client.session].on(Ask)

        @asking
        async def answer(request: Ask) -> Answer:
            return Answer(f"for {request.session_id == client.session}")

        assert await client.request("_example.com/ask", {"sessionId": client.session}) == {"text": "for True"}
        asked = client.call("_example.com/ask", {"sessionId": other})
        await client.expect_error(asked, -32601)
        asking.remove()
        asking.remove()
        asked = client.call("_example.com/ask", {"sessionId": client.session})
        await client.expect_error(asked, -32601)


async def test_a_session_can_handle_a_known_message_in_place_of_the_agent(wire, agent):
    sessions = {}

    @agent.on_session
    def opened(session):
        sessions[session.id] = session

    async with wire(agent) as client:
        other = (await client.request("session/new", {"cwd": "/project", "mcpServers": []}))["sessionId"]
        sessions[client.session].on(v1.PromptRequest)(lambda _: v1.PromptResponse("refusal"))
        assert await said_to(client) == "refusal"
        assert await said_to(client, session=other) == "go"


async def test_handlers_of_a_session_end_with_it(wire, agent):
    told = []

    @agent.on_session
    def opened(session):
        session.on(Tell)(lambda notification: told.append(notification.session_id))

    async with wire(agent) as client:
        client.tell("_example.com/tell", {"sessionId": client.session})
        await client.request("session/close", {"sessionId": client.session})
        client.tell("_example.com/tell", {"sessionId": client.session})
        await client.request("session/list", {})
        assert told == [client.session]


async def test_a_message_that_names_no_session_belongs_to_the_connection(wire, agent):
    problems = []

    @agent.on_session
    def opened(session):
        try:
            session.on(v1.ListSessionsRequest)(lambda _: None)
        except ValueError as error:
            problems.append(str(error))

    async with wire(agent):
        assert problems == ["ListSessionsRequest names no session; handle it for the whole connection"]


async def test_a_raw_handler_gets_what_a_function_before_it_lets_through(wire, agent):
    got = []

    @agent.on_request("session/prompt")
    async def prompt(params):
        got.append(params["prompt"][0]["text"])
        return {"stopReason": "end_turn"}

    agent.before(v1.PromptRequest)(lambda request: v1.PromptRequest.of(request.session_id, "changed"))
    async with wire(agent) as client:
        assert await said_to(client) == "end_turn"
    assert got == ["changed"]


def test_a_message_with_no_known_method_is_refused():
    class Odd(Request[Answer], method="odd/method"):
        pass

    with pytest.raises(ValueError, match="must begin with an underscore"):
        Agent("echo").before(Odd)
