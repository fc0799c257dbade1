"""Mistakes of an agent's author: the cause and the remedy are the last words that a person reads."""

from __future__ import annotations

import sys

import pytest

import accord
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
            lambda turn: turn.session.config.select("tone", "Tone", {"polite": "Polite"}),
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
