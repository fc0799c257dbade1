"""The Python and TypeScript SDKs' clients with the agents of `examples/`: turns, files, refusals, restarts."""

import pytest
from benchmarks.build import Unavailable
from interop.examples import example
from interop.model.replies import AFTERWARDS, CONTENT, SENTENCE
from interop.model.server import ModelServer
from interop.peers import SDKS, command
from interop.script import Behaviour, run_behaviour, runs_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

ALLOWED, REFUSED = {"permission": "allow_once"}, {"permission": "reject_once"}
END_OF_TURN = {"stopReason": "end_turn"}
KNOWN_SESSION = {"sessionId": "<session>", "cwd": "<folder>", "mcpServers": []}


def says(words, text, **more):
    """A prompt, and the answer that must come."""
    answers = more.pop("answers", {})
    return {"prompt": words, "answers": answers, "expect": {"result": END_OF_TURN, "text": text, **more}}


def call(method, params, **expected):
    return {"call": method, "params": params, "expect": expected}


RESTART = {"restart": True}
RESUME = call("session/resume", KNOWN_SESSION, text="")


@pytest.fixture(params=["python", "typescript"])
def go_through(request, tmp_path):
    """`go_through(agent, step, ...)`: this client takes these steps with that agent, and all comes out as expected."""
    sdk = SDKS[request.param]
    try:
        client = command(sdk, "client")
    except Unavailable as missing:
        pytest.skip(str(missing))

    def go_through(agent, *steps, files=None):
        behaviour = Behaviour("example", "an example of ours", runs_of({"steps": steps}), files or {})
        outcome = run_behaviour(behaviour, client, agent, tmp_path, sdk.environment)
        assert outcome.status == "passed", outcome.problems

    return go_through


@pytest.fixture
def lent(tmp_path):
    """The folder that the client lends."""
    return tmp_path / "lent"


def test_the_echo_says_what_it_hears(go_through):
    go_through(example("echo_agent.py"), says("anybody there?", "You said: anybody there?"), says("ü", "You said: ü"))


WISH = "notes.txt: colour -> color"


def asks(answer):
    return {"method": "session/request_permission", "result": {"outcome": answer}}


def test_the_careful_editor_changes_the_file_when_it_is_allowed(go_through, lent):
    diff = {
        "type": "diff",
        "path": "<folder>/notes.txt",
        "oldText": "colour by colour\n",
        "newText": "color by color\n",
    }
    go_through(
        example("careful_editor.py"),
        says(
            WISH,
            "I replaced 2 of them.",
            answers=ALLOWED,
            asked=[{"method": "fs/read_text_file"}, asks({"outcome": "selected"}), {"method": "fs/write_text_file"}],
            updates=[
                {"sessionUpdate": "tool_call", "kind": "edit", "title": "Replace colour in notes.txt"},
                {"sessionUpdate": "tool_call_update", "content": [diff]},
                {"sessionUpdate": "tool_call_update", "status": "completed"},
            ],
        ),
        files={"notes.txt": "colour by colour\n"},
    )
    assert (lent / "notes.txt").read_text() == "color by color\n"


@pytest.mark.parametrize(("answer", "outcome"), [("reject_once", "selected"), ("nothing", "cancelled")])
def test_the_careful_editor_leaves_the_file_when_it_is_refused(go_through, lent, answer, outcome):
    go_through(
        example("careful_editor.py"),
        says(
            WISH,
            "I left it as it was.",
            answers={"permission": answer},
            asked=[{"method": "fs/read_text_file"}, asks({"outcome": outcome})],
            updates=[{"sessionUpdate": "tool_call", "kind": "edit"}, {"status": "failed"}],
        ),
        files={"notes.txt": "colour\n"},
    )
    assert (lent / "notes.txt").read_text() == "colour\n"


NOTEBOOK = example("lasting_agent.py", "{data}/notes.db")
LISTED = {"sessionId": "<session>", "cwd": "<folder>", "title": "milk"}


def test_the_notebook_has_its_notes_again_after_each_restart(go_through):
    replayed = [
        {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "milk"}},
        {"sessionUpdate": "tool_call", "title": "Write it down", "kind": "edit", "status": "completed"},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "1. milk\n"}},
    ]
    go_through(
        NOTEBOOK,
        says("milk", "1. milk\n"),
        RESTART,
        call("session/list", {"cwd": "<folder>"}, result={"sessions": [LISTED]}),
        call("session/load", KNOWN_SESSION, text="1. milk\n", updates=replayed),
        says("bread", "1. milk\n2. bread\n"),
        says("/recall", "You began with: milk"),
        RESTART,
        RESUME,
        says("salt", "1. milk\n2. bread\n3. salt\n"),
        call("session/close", {"sessionId": "<session>"}, result={}),
        {"prompt": "anybody there?", "expect": {"error": {"code": -32002}}},
        RESTART,
        RESUME,
        says("/forget", "Forgotten."),
        says("tea", "1. tea\n"),
    )


def test_the_notebook_forks_a_session_of_before_the_restart(go_through):
    fork = call("session/fork", KNOWN_SESSION, result={"sessionId": {"$any": True}}) | {"keep": {"other": "sessionId"}}
    go_through(
        NOTEBOOK,
        says("milk", "1. milk\n"),
        RESTART,
        fork,
        says("bread", "1. milk\n2. bread\n") | {"session": "<other>"},
        RESUME,
        says("salt", "1. milk\n2. salt\n"),
    )


@pytest.mark.parametrize("go_through", ["typescript"], indirect=True)  # the Python SDK's client cannot say it
def test_the_notebook_deletes_a_session_of_before_the_restart(go_through):
    go_through(
        NOTEBOOK,
        says("milk", "1. milk\n"),
        RESTART,
        call("session/delete", {"sessionId": "<session>"}, result={}),
        call("session/delete", {"sessionId": "<session>"}, result={}),
        RESTART,
        call("session/list", {}, result={"sessions": []}),
        call("session/load", KNOWN_SESSION, error={"code": -32002}),
    )


@pytest.fixture
def chat_loop():
    """The chat loop, with a model that is made of rules."""
    with ModelServer() as model:
        variables = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_MODEL": "fake"}
        yield example("chat_loop.py", **variables, CHAT_LOOP_STORE="{data}/sessions.db")


def test_the_chat_loop_streams_and_goes_on_after_a_restart(go_through, chat_loop):
    go_through(
        chat_loop,
        says("Hello", SENTENCE, updates=[{"sessionUpdate": "usage_update", "used": 15}]),
        RESTART,
        call("session/load", KNOWN_SESSION, text=SENTENCE),
        says("Once more", SENTENCE),
    )


def test_the_chat_loop_writes_a_file_when_it_is_allowed(go_through, chat_loop, lent):
    go_through(
        chat_loop,
        says("EDIT refused.txt", AFTERWARDS, answers=REFUSED, updates=[{"status": "failed"}]),
        says(
            "EDIT made.txt",
            AFTERWARDS,
            answers=ALLOWED,
            updates=[
                {"content": [{"type": "diff", "path": "<folder>/made.txt", "newText": CONTENT}]},
                {"sessionUpdate": "tool_call_update", "status": "completed"},
            ],
        ),
    )
    assert [path.name for path in lent.iterdir()] == ["made.txt"]
    assert (lent / "made.txt").read_text() == CONTENT


def test_a_framework_s_agent_streams_writes_when_allowed_and_is_resumed(go_through, framework_agent, lent):
    thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Hm."}}
    go_through(
        framework_agent,
        says("one", "You said one", updates=[thought, {"sessionUpdate": "usage_update"}]),
        says(
            "write",
            "The tool said: Written.",
            answers=ALLOWED,
            asked=[asks({"outcome": "selected"}), {"method": "fs/write_text_file"}],
            updates=[
                {"sessionUpdate": "tool_call", "kind": "edit"},
                {"content": [{"type": "diff", "path": "<folder>/a.txt", "newText": "new"}]},
                {"sessionUpdate": "tool_call_update", "status": "completed"},
            ],
        ),
        RESTART,
        RESUME,
        says("two", "You said one/write/two"),
    )
    assert (lent / "a.txt").read_text() == "new"


def test_a_framework_s_agent_hears_that_the_user_refuses(go_through, framework_agent, lent):
    refusal = "The tool said: The user does not allow this."
    go_through(framework_agent, says("write", refusal, answers=REFUSED, updates=[{"status": "failed"}]))
    assert not list(lent.iterdir())


def test_a_framework_s_agent_is_cancelled_and_the_next_turn_is_clean(go_through, framework_agent):
    go_through(
        framework_agent,
        {"prompt": "wait", "aside": "turn"},
        {"await": "agent_message_chunk"},
        {"tell": "session/cancel", "params": {"sessionId": "<session>"}},
        {"finish": "turn", "expect": {"result": {"stopReason": "cancelled"}}},
        {"prompt": "hello", "expect": {"result": END_OF_TURN, "text": {"$contains": "hello"}}},
    )
