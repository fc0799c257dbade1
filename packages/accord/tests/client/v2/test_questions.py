"""Questions to the user from an agent of version 2."""

from __future__ import annotations

import asyncio

import pytest

import accord
from accord.schema import v1, v2
from tests.client.v2.conftest import staged_v2

OPTIONS = [
    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    {"optionId": "n", "name": "No", "kind": "reject_once"},
]
ALLOWED = {"outcome": {"outcome": "selected", "optionId": "y"}}
REFUSED = {"outcome": {"outcome": "selected", "optionId": "n"}}
CANCELLED = {"outcome": {"outcome": "cancelled"}}


def asking(subject=None, title="May I?", **more):
    return {
        "sessionId": "s",
        "title": title,
        "options": OPTIONS,
        **({} if subject is None else {"subject": subject}),
        **more,
    }


async def asked(params, answer=True, client=None):
    """The question that the client's function gets for this request, the session, and the agent's answer."""
    questions = []

    def ask(question):
        questions.append(question)
        return answer

    async with staged_v2(client or accord.Client(permissions=ask)) as stage:
        session = await stage.session()
        result = await stage.agent.request("session/request_permission", params)
        return (questions or [None])[0], session, result


async def test_a_question_about_a_tool_call_is_applied_to_it_and_keeps_its_own_words():
    subject = {"type": "tool_call", "toolCall": {"toolCallId": "t", "title": "Edit a.py", "kind": "edit"}}
    question, session, result = await asked(asking(subject, "May I edit?", description="one line"))
    assert (question.title, question.description, question.asked) == ("May I edit?", "one line", "May I edit?")
    assert (question.tool_call.id, question.tool_call.title, question.tool_call.kind) == ("t", "Edit a.py", "edit")
    assert session.state.tool_calls["t"].title == "Edit a.py"
    assert isinstance(question.subject, v2.ToolCallPermissionSubject)
    assert result == ALLOWED


async def test_a_question_about_a_command_is_judged_by_the_command():
    question, session, result = await asked(asking({"type": "command", "command": "rm -r /w", "cwd": "/w"}))
    assert (question.command, question.tool_call.kind, question.title) == ("rm -r /w", "execute", "May I?")
    assert session.state.tool_calls == {}, "it is a description, and not a tool call"
    assert result == ALLOWED


@pytest.mark.parametrize("subject", [None, {"type": "hologram", "depth": 3}])
async def test_a_question_about_nothing_that_is_known_is_asked_by_its_title(subject):
    question, session, result = await asked(asking(subject), answer=False)
    assert (question.title, question.tool_call.title, question.command) == ("May I?", "May I?", None)
    assert session.state.tool_calls == {}
    assert result == REFUSED


async def test_the_files_of_a_diff_are_those_of_all_its_changes():
    changes = [
        {"operation": "modify", "path": "/w/a.py", "fileType": "text"},
        {"operation": "move", "oldPath": "/w/b.py", "path": "/w/c.py"},
    ]
    call = {"toolCallId": "t", "title": "Edit", "content": [{"type": "diff", "changes": changes}]}
    question, _, _ = await asked(asking({"type": "tool_call", "toolCall": call}))
    assert [str(path) for path in question.paths] == ["/w/a.py", "/w/b.py", "/w/c.py"]


async def test_a_policy_refuses_a_command_of_version_2_as_it_does_one_of_version_1():
    policy = accord.PermissionPolicy.parse('[[rules]]\nanswer = "reject"\ncommands = ["rm *"]\n')
    client = accord.Client(permissions=accord.Permissions(lambda _: True, policy=policy))
    _, _, result = await asked(asking({"type": "command", "command": "rm -r /w", "cwd": "/w"}), client=client)
    assert result == REFUSED


async def test_a_question_that_the_agent_withdraws_is_answered_with_cancelled():
    shown, gone = asyncio.Event(), asyncio.Event()

    async def ask(_: accord.PermissionQuestion) -> bool:
        shown.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            gone.set()
        return True

    async with staged_v2(accord.Client(permissions=ask)) as stage:
        await stage.session()
        question = stage.agent.call("session/request_permission", asking())
        await shown.wait()
        stage.agent.tell("$/cancel_request", {"requestId": question})
        assert await stage.agent.expect_result(question) == CANCELLED
        assert gone.is_set(), "the window was closed"


async def test_cancelling_a_turn_leaves_questions_to_the_agent_which_knows_whose_they_are():
    shown, decide = asyncio.Event(), asyncio.Event()

    async def ask(_: accord.PermissionQuestion) -> bool:
        shown.set()
        await decide.wait()
        return True

    async with staged_v2(accord.Client(permissions=ask)) as stage:
        session = await stage.session()
        reply = session.prompt("go")
        await stage.insertion("u1")
        stage.state("running")
        of_the_background = stage.agent.call("session/request_permission", asking())
        await shown.wait()
        await reply.inserted
        reply.request_cancel()
        await stage.agent.expect("session/cancel")
        stage.idle("cancelled")
        assert (await reply).stop_reason == "cancelled"
        decide.set()
        assert await stage.agent.expect_result(of_the_background) == ALLOWED


async def test_a_handler_for_the_request_of_version_1_answers_in_version_2():
    client = accord.Client()
    seen = []

    @client.on(v1.RequestPermissionRequest)
    def answer(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        seen.append((request.tool_call.title, request.options[0].option_id))
        return v1.RequestPermissionResponse.selected(request.options[0].option_id)

    _, _, result = await asked(asking({"type": "command", "command": "ls", "cwd": "/"}), client=client)
    assert (seen, result) == ([("May I?", "y")], ALLOWED)


FORM = {
    "mode": "form",
    "sessionId": "s",
    "message": "Who?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}


async def test_a_form_is_filled_in_as_in_version_1():
    async with staged_v2(accord.Client(elicitation=lambda _: {"name": "Ada"})) as stage:
        await stage.session()
        assert await stage.agent.request("elicitation/create", FORM) == {"action": "accept", "content": {"name": "Ada"}}


async def test_a_form_that_the_agent_withdraws_is_answered_with_cancel():
    shown = asyncio.Event()

    async def fill(_: accord.FormQuestion):
        shown.set()
        await asyncio.get_running_loop().create_future()

    async with staged_v2(accord.Client(elicitation=fill)) as stage:
        await stage.session()
        form = stage.agent.call("elicitation/create", FORM)
        await shown.wait()
        stage.agent.tell("$/cancel_request", {"requestId": form})
        assert await stage.agent.expect_result(form) == {"action": "cancel"}


async def test_files_and_terminals_are_not_there_for_an_agent_of_version_2(caplog):
    caplog.set_level("INFO", "accord")
    async with staged_v2(accord.Client(files=True, terminals=True)) as stage:
        await stage.session()
        read = stage.agent.call("fs/read_text_file", {"sessionId": "s", "path": "/etc/hosts"})
        await stage.agent.expect_error(read, -32601)
        run = stage.agent.call("terminal/create", {"sessionId": "s", "command": "ls"})
        await stage.agent.expect_error(run, -32601)
        assert "lend no files and no terminals" in caplog.text
