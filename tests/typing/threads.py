"""A program without async: checkers know what everything of `accord.sync` gives."""

from collections.abc import Sequence
from typing import assert_type

import accord
from accord import updates, v1


def may_it(question: accord.PermissionQuestion) -> bool:
    return question.tool_call.kind == "read"


with accord.sync.connect(["agent"], accord.Client(permissions=may_it), timeout=5) as remote:
    assert_type(remote, accord.sync.RemoteAgent)
    session = remote.new_session(".")
    assert_type(session, accord.sync.RemoteSession)
    reply = session.prompt("Hello", timeout=60)
    assert_type(reply, accord.sync.Reply)
    for update in reply:
        assert_type(update, updates.Update)
    for text in reply.iter_text():
        assert_type(text, str)
    assert_type(reply.outcome(), accord.Outcome)
    assert_type(reply.text, str)
    assert_type(reply.prompt, Sequence[v1.ContentBlock])
    assert_type(session.state.title, str | None)
    assert_type([info.session_id for info in remote.sessions()], list[v1.SessionId])
    assert_type(remote.request(v1.ListSessionsRequest()), v1.ListSessionsResponse)
    with session.prompt("Wait") as waiting:
        assert_type(waiting.cancel(within=5), accord.Outcome)

    @remote.on(v1.RequestPermissionRequest)
    def answer(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        return v1.RequestPermissionResponse.selected(request.options[0])

    @remote.on(v1.RequestPermissionRequest)  # error
    def wrong(request: v1.RequestPermissionRequest) -> int:
        return len(request.options)

    session.prompt(5)  # error
    remote.new_session(folder=".")  # error
    print(remote.peer)  # error

assert_type(accord.ask("Hello", agent="agent").text, str)
opened = accord.sync.open("agent")
assert_type(opened, accord.sync.RemoteAgent)
opened.close()


async def main() -> None:
    remote = await accord.open(["agent"])
    assert_type(remote, accord.RemoteAgent)
    await remote.close()
    await accord.open(["agent"], colour="red")  # error
