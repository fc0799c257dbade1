"""Mistakes of an agent's author: the cause and the remedy are the last words that a person reads."""

from __future__ import annotations

import contextlib
import sys

import pytest

import accord
from accord.mistakes import ARGUMENTS
from accord.schema import v1

HEAD = "import accord\nagent = accord.Agent('mine')\n@agent.on_prompt\n"


def test_a_forgotten_await_is_named_with_its_line_and_the_turn_goes_on(user):
    user.write("mine.py", HEAD + "async def reply(turn):\n    turn.say('lost')\n    await turn.say('said')\n")
    done = user.accord("run", "hi", "--", "mine.py")
    assert (done.returncode, done.stdout) == (0, "said\n")
    say = "turn.say('lost')"
    assert done.stderr == f"the agent: mine.py, line 5: {say} is not awaited, so it does nothing: write `await {say}`\n"


def test_a_forgotten_await_of_what_was_kept_in_a_variable_is_named_too(user):
    user.write("mine.py", HEAD + "async def reply(turn):\n    kept = turn.think('lost')\n")
    assert "Turn.think is not awaited, so it does nothing" in user.accord("run", "hi", "--", "mine.py").stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("async def f(): g()\n    await f()", "g() is not awaited, so it does nothing: write `await g()`"),
        (
            "if turn.text: turn.say('a')",
            "turn.say('a') is not awaited, so it does nothing: write `await turn.say('a')`",
        ),
        ("await g(); turn.say(\n        'a'\n    )", "write `await turn.say( 'a' )`"),
        ("x = [turn.say('a')]\n    x = 5", "line 10: a call of Turn.say is not awaited, so it does nothing"),
    ],
)
def test_only_the_forgotten_call_of_a_line_is_shown(user, line, says):
    program = "import accord\nasync def g(): ...\n\n\nagent = accord.Agent('mine')\n@agent.on_prompt\n"
    user.write("mine.py", f"{program}async def reply(turn):\n    await g()\n    {line}\nagent.run()\n")
    (said,) = user.accord("run", "hi", "--", "mine.py").stderr.splitlines()
    assert says in said


def test_a_plain_dialogue_names_a_forgotten_await(user):
    user.write("mine.py", HEAD + "async def reply(turn):\n    turn.say('lost')\n")
    done = user.accord("chat", "--plain", "--", "mine.py", input="hi\n")
    assert "mine.py, line 5: turn.say('lost') is not awaited" in done.stderr


def test_an_error_of_a_function_ends_with_its_own_frames_and_its_last_line(user):
    user.write("mine.py", HEAD + "async def reply(turn):\n    helper()\n\ndef helper():\n    return {}['missing']\n")
    done = user.accord("run", "hi", "--", "mine.py")
    assert done.returncode == 1
    frames = [line.split(", ")[1:] for line in done.stderr.splitlines() if line.lstrip().startswith("File ")]
    assert frames == [["line 5", "in reply"], ["line 8", "in helper"]]
    assert done.stderr.endswith("the agent's last line on standard error: KeyError: 'missing'\n")


def test_a_wrong_return_value_names_the_function_and_its_line(user):
    user.write("mine.py", HEAD + "async def reply(turn):\n    return 'done!'\n")
    last = user.accord("run", "hi", "--", "mine.py").stderr.splitlines()[-1]
    assert "reply() in mine.py, line 3, must return None or one of end_turn" in last
    assert "got str 'done!'; to show text to the user, write `await turn.say(...)`" in last


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (HEAD + "async def reply(turn): ...\n", "(exit code 0); does the program call agent.run()?"),
        (
            f"import asyncio\n{HEAD}async def reply(turn): ...\nasync def main(): agent.run()\nasyncio.run(main())\n",
            "run() starts an event loop, and one is running already: call it outside of async code",
        ),
        (
            f"{HEAD}async def reply(): ...\nagent.run()\n",
            "@agent.on_prompt calls its function with (turn), and reply() in ",
        ),
    ],
)
def test_a_program_that_cannot_serve_says_what_is_missing(user, program, says):
    user.write("mine.py", program)
    done = user.accord("run", "hi", "--", sys.executable, "mine.py")
    assert done.returncode == 1
    assert says in done.stderr.splitlines()[-1]
    assert "never awaited" not in done.stderr


def test_components_in_the_wrong_order_are_named_with_the_right_one(user):
    user.write("mine.py", HEAD + "async def reply(turn): ...\n")
    chain = [sys.executable, "-m", "accord", "conduct", "mine.py", "mine.py"]
    last = user.accord("run", "hi", "--", *chain).stderr.splitlines()[-1]
    assert "is not a proxy: it does not know proxy/initialize; name the proxies first and the agent last" in last


async def failed_turn(reply) -> BaseException:
    """What a function for prompts raises in its turn."""
    agent, raised = accord.Agent("mine"), []

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        try:
            await reply(turn)
        except Exception as error:  # the test looks at it
            raised.append(error)

    async with accord.connect(agent) as remote:
        await (await remote.new_session("/")).prompt("hi")
    return raised[0]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda turn: turn.tool("x", kind="reed"), "got 'reed'; did you mean read?"),
        (lambda turn: turn.plan(v1.PlanEntry("x", "hihg", "pending")), "got 'hihg'; did you mean high?"),
        (lambda turn: turn.plan(v1.PlanEntry("x", "high", "complete")), "got 'complete'; did you mean completed?"),
        (lambda turn: turn.notice("x", severity="warn"), "got 'warn'; did you mean warning?"),
        (
            lambda turn: turn.session.config.offer("tone", "Tone", {"polite": "Polite"}),
            'for an id with a name, write a pair: [("id", "Name")]',
        ),
    ],
)
async def test_a_wrong_word_is_an_error_at_the_call(call, says):
    async def reply(turn):
        made = call(turn)
        if not isinstance(made, accord.Tool):
            await made

    assert says in str(await failed_turn(reply))


async def test_words_of_a_program_s_own_begin_with_an_underscore():
    async def reply(turn):
        async with turn.tool("x", kind="_mine"):
            raise LookupError("allowed")

    assert isinstance(await failed_turn(reply), LookupError)


async def test_a_token_in_place_of_an_access_is_an_error_that_shows_the_right_form():
    with pytest.raises(TypeError, match=r"access takes an Access, got str 's3cret'; for a token, write Access"):
        async with accord.http.serving(accord.Agent("mine"), access="s3cret"):
            ...


async def test_connect_starts_a_python_file_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(HEAD + "async def reply(turn): ...\n")
    monkeypatch.chdir(tmp_path)
    async with accord.connect("mine.py") as remote:
        assert remote.info is not None
        assert remote.info.name == "mine"


# Functions of other decorators


async def agents_log(caplog, agent, work):
    """What the log of an agent says while this works with a client of it."""
    async with accord.connect(agent) as remote:
        with contextlib.suppress(accord.AccordError):
            await work(remote)
    return caplog.text


def decorators():
    """Each decorator of an agent and a client, with the kind of function that it takes and what an error says of it."""
    agent, client = accord.Agent("mine", unstable=True), accord.Client()
    provider = agent.provider("main", supports=["openai"])
    of_message = "(message) or (message, context)"
    of_params = "(params) or (params, context)"
    return {
        "@agent.on_prompt": (agent.on_prompt, "(turn)"),
        "@agent.on_session": (agent.on_session, "(session)"),
        "@agent.on_rewind": (agent.on_rewind, "(session)"),
        "@agent.on_config": (agent.on_config, "(session, option_id, value)"),
        "@agent.command('x', ...)": (agent.command("x", "X"), "(turn) or (turn, text)"),
        "@agent.on_suggest": (agent.on_suggest, "(request)"),
        "@agent.on_suggestion_outcome": (agent.on_suggestion_outcome, "(suggestion, outcome)"),
        "@agent.on_document_save": (agent.on_document_save, "(document)"),
        "@agent.on_document_focus": (agent.on_document_focus, "(document, offset)"),
        "@agent.login('a', ...)": (agent.login("a", "A"), "() or (login)"),
        "@agent.terminal_login('t', ...)": (agent.terminal_login("t", "T"), "()"),
        "@agent.on_login_check": (agent.on_login_check, "()"),
        "@agent.on_logout": (agent.on_logout, "()"),
        "@agent.on_auth_status": (agent.on_auth_status, "()"),
        "@provider.check": (provider.check, "(endpoint)"),
        "@agent.on(ListSessionsRequest)": (agent.on(v1.ListSessionsRequest), of_message),
        "@agent.on_request('_mine/ask')": (agent.on_request("_mine/ask"), of_params),
        "@agent.on_notification('_mine/tell')": (agent.on_notification("_mine/tell"), of_params),
        "before(Message)": (agent.before(v1.ListSessionsRequest), of_message),
        "@client.on(SessionNotification)": (client.on(v1.SessionNotification), of_message),
        "@client.on_request('_mine/ask')": (client.on_request("_mine/ask"), of_params),
        "@client.on_notification('_mine/tell')": (client.on_notification("_mine/tell"), of_params),
        "Permissions(ask)": (accord.Permissions, "(question)"),
        "Elicitation(fill)": (accord.Elicitation, "(question)"),
    }


@pytest.mark.parametrize("name", decorators())
def test_a_function_with_other_arguments_is_an_error_at_its_decorator(name):
    decorator, given = decorators()[name]

    async def reply(a, b, c, d):
        """No function gets as much."""

    line = reply.__code__.co_firstlineno
    with pytest.raises(TypeError) as raised:
        decorator(reply)
    function = f"{reply.__qualname__}() in {__file__}, line {line}"
    assert str(raised.value) == f"{name} calls its function with {given}, and {function}, takes (a, b, c, d)"
    with pytest.raises(TypeError, match="takes a function, got int 5"):
        decorator(5)


def test_every_decorator_of_an_agent_and_a_client_is_tried_above():
    tried = {name.partition("(")[0].rpartition(".")[2] for name in decorators()}
    assert tried == set(ARGUMENTS)


async def test_an_answer_of_a_wrong_class_names_the_handler_and_its_line_and_no_line_of_ours(caplog):
    agent = accord.Agent("mine")
    agent.on_prompt(lambda turn: None)  # noqa: ARG005

    @agent.on(v1.ListSessionsRequest)
    def listed(request):
        return 5

    async def ask(remote):
        await remote.request(v1.ListSessionsRequest())

    log = await agents_log(caplog, agent, ask)
    place = f"{listed.__qualname__}() in {__file__}, line {listed.__code__.co_firstlineno}"
    assert f"WrongReturn: {place}, returned what is no answer to session/list: " in log
    assert "must return ListSessionsResponse, got int" in log
    assert 'File "' not in log


async def test_a_wrong_stop_reason_is_told_without_a_line_of_ours(caplog):
    agent = accord.Agent("mine")

    @agent.on_prompt
    async def reply(turn):
        return "done!"

    async def prompt(remote):
        await (await remote.new_session("/")).prompt("hi")

    log = await agents_log(caplog, agent, prompt)
    assert f"WrongReturn: {reply.__qualname__}() in {__file__}, line " in log
    assert 'File "' not in log
