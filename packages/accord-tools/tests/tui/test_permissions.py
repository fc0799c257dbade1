"""What was allowed always, where it holds, and how it is revoked."""

import pytest

import accord
from accord import v1
from accord.project.confined import Roots
from accord.project.git import find_repository
from accord_tools.configuration.trust import is_folder_trusted, trust_folder
from accord_tools.tui.connection import ConnectionOptions
from accord_tools.tui.questions import SCOPES, ScopedAnswers


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def writing():
    agent = accord.Agent("writes")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        for name in turn.text.split():
            await turn.client.write_text_file(turn.session.cwd / name, "text\n")
        await turn.say("written")

    return agent


def asking(answers):
    """Asks before it runs a command, with two options."""
    agent = accord.Agent("asks")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        async with turn.tool("Run the tests", kind="execute", raw_input={"command": turn.text}) as tool:
            answers.append(bool(await tool.ask()))
        await turn.say(f"answer {len(answers)}")

    return agent


async def test_what_was_allowed_always_is_listed_and_asked_about_again_when_it_is_revoked(chat):
    async with chat(writing()) as it:
        await it.send("a.txt")
        await it.sees("… Allow this edit?", "a.txt", "y Allow")
        await it.press("a")
        await it.sees("written")
        await it.send("/permissions ")
        await it.sees("write files of the session's folders", "until the session ends")
        await it.press("enter")
        await it.sees("You are asked again")
        await it.send("b.txt")
        await it.sees("… Allow this edit?", "b.txt", "y Allow")
        await it.press("n")


async def test_always_to_the_agents_question_covers_the_use_and_is_listed_and_revoked(chat):
    agent = accord.Agent("runs")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        if turn.text == "ask":
            async with turn.tool("Run it", kind="execute", raw_input={"command": "echo 'a b'"}) as tool:
                await tool.ask(v1.PermissionOption("p", "Always allow this", "allow_always"))
        for word in ("once", "twice"):
            await turn.client.run("echo", ["a b"])
            await turn.say(f"ran {word} ")

    async with chat(agent) as it:
        await it.send("ask")
        await it.sees("a Always allow this")
        await it.press("a")
        await it.sees("ran once ran twice", "Always allow this: /permissions revokes it here")
        await it.send("/permissions ")
        await it.sees("run echo 'a b'", "until the session ends")
        await it.press("enter")
        await it.sees("You are asked again: run echo 'a b'")
        await it.send("run")
        await it.sees("Allow this command?", "$ echo 'a b'")


async def test_an_always_that_only_the_agent_can_keep_is_shown_as_such(chat):
    agent = accord.Agent("asks")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        async with turn.tool("Search the web", kind="fetch") as tool:
            await tool.ask(v1.PermissionOption("p", "Always allow this", "allow_always"))

    async with chat(agent) as it:
        await it.send("ask")
        await it.sees("Allow this fetch?", "a Always allow this")
        await it.press("a")
        await it.sees("Always allow this: only the agent knows this")


async def test_an_answer_that_holds_in_later_chats_can_be_forgotten(chat, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with chat(writing(), connection=ConnectionOptions(remembers=True)) as it:
        await it.send("a.txt")
        await it.sees("y Allow")
        await it.press("a")
        await it.sees("written")
        kept = it.front.connection.answers
        assert len(list(kept)) == 1
        await it.send("/permissions ")
        await it.sees("allow edit", "Kept answers")
        await it.press("down", "enter")
        await it.sees("Forgotten")
        assert list(kept) == []


async def test_the_list_says_what_the_level_and_the_rules_decide(chat):
    policy = accord.PermissionPolicy.parse(
        '[[rules]]\nanswer = "reject"\npaths = ["**/.env"]\n[[rules]]\nanswer = "ask"', source="rules.toml"
    )
    async with chat(asking([]), connection=ConnectionOptions(policy=policy)) as it:
        await it.send("/permissions ")
        await it.sees("Level ask", "reading in the session's folders", "Rules of rules.toml", "reject paths **/.env")
        await it.sees("ask everything else")
        await it.press("down", "enter")
        await it.sees("Change this rule in its file")


async def test_what_a_rule_refuses_is_said_with_the_rule(chat):
    policy = accord.PermissionPolicy.parse('[[rules]]\nanswer = "reject"\n', source="rules.toml")
    async with chat(writing(), connection=ConnectionOptions(policy=policy)) as it:
        await it.send("go")
        await it.sees("Refused: ", "rule 1 of rules.toml refuses this; change it there")
        await it.idle()


async def test_a_folder_that_is_trusted_is_listed_and_the_trust_is_revoked(chat, tmp_path):
    (tmp_path / ".git").mkdir()
    repository = find_repository(tmp_path)
    trust_folder(repository)
    async with chat(writing()) as it:
        await it.send("/permissions ")
        await it.sees("What you trust", "run git in")
        await it.press("enter")
        await it.sees("You will be asked again whether you trust")
        assert not is_folder_trusted(repository)


async def answered(it, prompt, number):
    await it.send(prompt)
    await it.sees(f"answer {number}")
    await it.idle()


async def choose_always(it, prompt, number, *down):
    await it.send(prompt)
    await it.sees("A always, and where")
    await it.press("A")
    await it.sees("Always", "Allow in this session", "Reject in this session", "covers execute")
    await it.press(*down, "enter")
    await it.sees(f"answer {number}")
    await it.idle()


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "rejected"])
async def test_an_answer_may_hold_until_the_session_ends(chat, allowed):
    answers = []
    agent = asking(answers)
    async with chat(agent) as it:
        await choose_always(it, "npm test", 1, *([] if allowed else ["down"] * len(SCOPES)))
        await it.sees(f"{'allowed' if allowed else 'rejected'} in this session")
        await answered(it, "npm test", 2)
        assert answers == [allowed, allowed]
        await it.send("npm install")  # another command
        await it.sees("A always, and where")
        await it.press("n")
        await it.sees("answer 3")
        await it.send("/permissions ")
        await it.sees("execute: npm test", "until the session ends")
        await it.press("enter")
        await it.sees("Forgotten: npm test")
        await it.send("npm test")
        await it.sees("A always, and where")
        await it.press("n")
        await it.sees("answer 4")
    async with chat(agent) as it:
        await it.send("npm test")
        await it.sees("A always, and where")
        await it.press("n")
        await it.sees("answer 5")


async def test_an_answer_may_hold_in_a_folder_in_later_chats_too(chat, tmp_path):
    answers = []
    agent = asking(answers)
    async with chat(agent) as it:
        await choose_always(it, "npm test", 1, "down")
        await it.sees("allowed in this folder, also in later chats")
    async with chat(agent) as it:
        await answered(it, "npm test", 2)
        await it.send("/permissions ")
        await it.sees("allow execute: npm test", "Kept answers")
        await it.press("escape")
    other = tmp_path / "other"
    other.mkdir()
    async with chat(agent, folder=other) as it:
        await it.send("npm test")
        await it.sees("A always, and where")
        await it.press("n")
        await it.sees("answer 3")
    assert answers == [True, True, False]


async def test_an_answer_may_hold_in_every_folder(chat, tmp_path):
    answers = []
    agent = asking(answers)
    async with chat(agent) as it:
        await choose_always(it, "npm test", 1, "down", "down")
        await it.sees("allowed in every folder, also in later chats")
    other = tmp_path / "other"
    other.mkdir()
    async with chat(agent, folder=other) as it:
        await answered(it, "npm test", 2)
        await it.send("/permissions ")
        await it.sees("allow execute: npm test", "in every folder")
    assert answers == [True, True]


async def test_leaving_the_list_of_places_leaves_the_question_open(chat):
    answers = []
    async with chat(asking(answers)) as it:
        await it.send("npm test")
        await it.sees("A always, and where")
        await it.press("A")
        await it.sees("Allow in this session")
        await it.press("escape")
        await it.sees("A always, and where")
        await it.press("y")
        await it.sees("answer 1")
        await it.send("npm test")
        await it.sees("A always, and where")
        await it.press("y")
        await it.sees("answer 2")


async def test_a_question_that_was_withdrawn_meanwhile_keeps_nothing(chat):
    answers = []
    async with chat(asking(answers)) as it:
        await it.send("npm test")
        await it.sees("A always, and where")
        await it.press("A")
        await it.sees("Allow in this session")
        await it.front.stop()
        await it.pilot.pause()
        await it.press("down", "enter")
        await it.sees("the agent has withdrawn its question: nothing was saved")
        assert list(it.front.connection.answers) == []


class AskingSession:
    """A session as questions see it."""

    agent = program = "writes"

    def __init__(self, identifier, folder):
        self.id, self.cwd, self.roots = identifier, folder, Roots([folder])


def test_an_answer_for_the_session_holds_only_there_and_is_not_stored(tmp_path):
    call = accord.session.ToolCallState(accord.v1.ToolCallId("t"), title="run make", kind="execute")
    here, there = (accord.PermissionQuestion(AskingSession(it, tmp_path), call, ()) for it in ("one", "two"))
    answers = ScopedAnswers(remembers=True)
    answers.keep(here, "session", allowed=True)
    assert [answers.recall(it) for it in (here, there)] == [True, None]
    answers.keep(here, "everywhere", allowed=False)
    assert [answers.recall(it) for it in (here, there)] == [True, False]
    assert [ScopedAnswers().recall(it) for it in (here, there)] == [False, False]
