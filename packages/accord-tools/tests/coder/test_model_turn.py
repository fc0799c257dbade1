"""Turns of the coding agent: tools, permission, modes, models, cancel, steering."""

import asyncio
import json
import subprocess

import msgspec
import pytest
from interop.model.replies import ToolCall

import accord
from accord.project.git import find_repository
from accord_tools.coder.coding_agent import coding_agent
from accord_tools.configuration.trust import trust_folder
from tests.coder.conftest import call, text_of

REVIEW = "Review what you have changed"
OVERRIDE = accord.v1.SystemPrompt(mode="override", content=[accord.v1.TextContent("Be a poet.")])


async def test_the_model_s_words_reach_the_user_as_they_come(opened, script):
    script.say(["Hello, ", "Ada."])
    async with opened() as session:
        reply = await session.prompt("Hello")
    assert reply.text == "Hello, Ada."
    assert reply.stop_reason == "end_turn"


async def test_a_file_is_read_changed_and_tested(opened, script, project, questions):
    script.say(
        call("read_file", path="hello.txt"),
        call("edit_file", path="hello.txt", old="world", new="moon"),
        call("run_command", command="cat hello.txt"),
        "Done.",
    )
    async with opened() as session:
        reply = await session.prompt("Greet the moon")
        calls = list(session.state.tool_calls.values())
    assert reply.text == "Done."
    assert (project / "hello.txt").read_text() == "hello\nmoon\n"
    assert [(it.title, it.kind, it.status) for it in calls] == [
        ("Read hello.txt", "read", "completed"),
        ("Edit hello.txt", "edit", "completed"),
        ("cat hello.txt", "execute", "completed"),
    ]
    assert questions.titles == ["Edit hello.txt", "cat hello.txt"]


async def test_the_model_reads_what_tools_give(opened, script, model):
    script.say(
        call("read_file", path="hello.txt"),
        call("list_files"),
        call("search_files", pattern="w.rld"),
        call("run_command", command="echo told; exit 3"),
        "Done.",
    )
    async with opened(mode="auto") as session:
        await session.prompt("Look around")
    told = text_of(model.bodies[-1])
    for words in ("1\\thello", "hello.txt:2:world", "told", "Exit code 3."):
        assert words in told


async def test_a_change_that_the_user_refuses_is_not_made(opened, script, project, questions, model):
    questions.allow = False
    script.say(call("write_file", path="new.txt", content="x"), "As you like.")
    async with opened() as session:
        assert (await session.prompt("Write")).text == "As you like."
        (tool,) = session.state.tool_calls.values()
    assert not (project / "new.txt").exists()
    assert tool.status == "failed"
    assert "The user does not allow this" in text_of(model.bodies[-1])


@pytest.mark.parametrize(
    ("work", "suggested"),
    [
        ([call("write_file", path="a", content="x")], ["Run the tests", "Review what you have changed"]),
        ([call("write_file", path="a", content="x"), call("run_command", command="true")], [REVIEW]),
        ([call("edit_file", path="none", old="x", new="y")], []),
        ([call("read_file", path="hello.txt")], []),
    ],
)
async def test_what_a_turn_has_changed_decides_what_is_suggested_after_it(opened, script, work, suggested):
    script.say(*work, "Done.")
    async with opened(mode="auto", suggests=True) as session:
        await session.prompt("Go")
        assert [it.prompt[0].text for it in session.state.suggestions] == suggested
        script.say("Nothing to do.")
        await session.prompt("And now?")
        assert session.state.suggestions == []


@pytest.mark.parametrize(
    ("mode", "asked"),
    [("ask", ["Write new.txt", "true"]), ("edit", ["true"]), ("auto", [])],
)
async def test_a_mode_says_what_is_asked_before(opened, script, questions, mode, asked):
    script.say(call("write_file", path="new.txt", content="x"), call("run_command", command="true"), "Done.")
    async with opened() as session:
        await session.set_mode(mode)
        await session.prompt("Go")
    assert questions.titles == asked


async def test_in_plan_mode_nothing_can_be_changed(opened, script, project, model):
    script.say(call("write_file", path="new.txt", content="x"), "Here is the plan.")
    async with opened(mode="plan") as session:
        assert (await session.prompt("Go")).text == "Here is the plan."
    assert not (project / "new.txt").exists()
    assert "There is no tool" in text_of(model.bodies[-1])


async def test_a_plan_is_shown_with_its_steps(opened, script):
    steps = [{"text": "Look", "status": "completed"}, {"text": "Change", "status": "in_progress"}]
    script.say(call("show_plan", steps=steps), "Done.")
    async with opened() as session:
        await session.prompt("Go")
        plan = session.state.plan
    assert [(it.content, it.status) for it in plan] == [("Look", "completed"), ("Change", "in_progress")]


async def test_arguments_that_do_not_fit_are_told_to_the_model(opened, script, model):
    script.say(call("edit_file", path="hello.txt"), call("no_such_tool"), call("read_file", path="/etc/shadow"), "Ah.")
    async with opened() as session:
        assert (await session.prompt("Go")).text == "Ah."
    told = text_of(model.bodies[-1])
    assert "The arguments do not fit" in told
    assert "There is no tool" in told
    assert "It failed" in told


async def test_what_is_outside_of_the_session_s_folders_is_told_to_the_model(opened, script, model, project):
    (project / "out").symlink_to("/etc")
    script.say(
        call("search_files", pattern="root", folder="/etc"),
        call("list_files", folder="out"),
        call("read_file", path="../secret.png"),
        "I see.",
    )
    async with opened(mode="auto") as session:
        assert (await session.prompt("Look")).text == "I see."
        assert [it.status for it in session.state.tool_calls.values()] == ["failed"] * 3
    assert text_of(model.bodies[-1]).count(": outside the session's folders") == 3


async def test_a_client_s_system_prompt_is_added_or_takes_the_place_of_ours(
    settings, script, model, project, questions
):
    agent = coding_agent(settings, version="0", store=None)
    async with accord.connect(agent, accord.Client(permissions=questions), unstable=True) as remote:
        for prompt in ("Speak Latin.", OVERRIDE):
            session = await remote.new_session(project, system_prompt=prompt)
            script.say("Yes.")
            await session.prompt("Go")
    added, instead = map(text_of, model.bodies)
    assert "Speak Latin." in added
    assert "You are a coding agent." in added
    assert "Be a poet." in instead
    assert "You are a coding agent." not in instead


async def test_an_mcp_server_s_tools_are_offered_and_called(opened, script, model, questions):
    def search(word: str) -> str:
        """Find a note."""
        return f"a note about {word}"

    script.say(call("notes__search", word="milk"), "There is one.")
    async with opened(mcp_servers=[accord.tools(search, name="notes")]) as session:
        assert (await session.prompt("Any notes on milk?")).text == "There is one."
    assert questions.titles == ["search"]
    assert "a note about milk" in text_of(model.bodies[-1])


async def test_a_subagent_has_a_conversation_of_its_own(opened, script, model):
    script.say(call("delegate", title="Look for callers", task="Who calls parse()?"), "Two places.", "It is two.")
    async with opened() as session:
        assert (await session.prompt("Who?")).text == "It is two."
        (subagent,) = session.subagents.values()
    assert (subagent.title, subagent.text) == ("Look for callers", "Two places.")
    assert "Who calls parse()?" in text_of(model.bodies[1])
    assert '"Who?"' not in text_of(model.bodies[1])
    assert "Two places." in text_of(model.bodies[2])


async def test_usage_and_cost_are_told(opened, script):
    script.say("Yes.")
    async with opened() as session:
        outcome = await session.prompt("Go")
        usage = session.state.usage
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (10, 5)
    assert (usage.used, usage.size) == (15, 128_000)
    assert usage.cost.amount == pytest.approx((10 * 3 + 5 * 15) / 1e6)


async def test_without_a_price_the_tokens_are_told_and_no_cost(opened, script, settings):
    script.say("Yes.", "Yes.")
    async with opened(changed=msgspec.structs.replace(settings, price=None)) as session:
        await session.prompt("Go")
        await session.prompt("Go on")
        assert (session.state.usage.used, session.state.usage.cost) == (15, None)
        status = (await session.prompt("/status")).text
    assert "20 read and 10 written so far; no cost, as no price is given" in status
    assert "$" not in status


async def test_the_models_of_the_provider_are_offered_and_another_is_used(opened, script, model):
    async with opened() as session:
        await session.set_model("fake")
        script.say("Yes.")
        await session.prompt("Go")
        await session.set_config("effort", "high")
        script.say("Yes.")
        await session.prompt("Go")
    assert model.asked[-1][0] == "fake"
    assert "high" in text_of(model.bodies[-1])
    assert "high" not in text_of(model.bodies[-2])


async def test_a_prompt_with_a_picture_and_a_file_reaches_the_model(opened, script, model):
    script.say("I see.")
    blocks = [
        accord.v1.TextContent("Look"),
        accord.v1.ImageContent("iVBORw0KGgo=", "image/png"),
        accord.v1.EmbeddedResource(accord.v1.TextResourceContents("file:///a.txt", "inside of it")),
    ]
    async with opened() as session:
        await session.prompt(blocks)
    told = text_of(model.bodies[-1])
    assert "iVBORw0KGgo=" in told
    assert "inside of it" in told


async def test_the_project_s_instructions_are_read(opened, script, model, project):
    (project / "AGENTS.md").write_text("Always use tabs.")
    script.say("Yes.")
    async with opened() as session:
        await session.prompt("Go")
    assert "Always use tabs." in text_of(model.bodies[-1])


@pytest.mark.parametrize("api", ["openai"])
@pytest.mark.parametrize("trusts", [True, False])
async def test_the_model_knows_the_folder_and_what_git_says_if_the_user_trusts_it(
    opened, script, model, project, trusts
):
    begin_repository(project)
    if trusts:
        trust_folder(find_repository(project))
    script.say("Yes.", "Yes.")
    async with opened() as session:
        await session.prompt("Go")
        (project / "later.txt").touch()
        await session.prompt("Go on")
    said = text_of(model.bodies[-1])
    for line in ("hello.txt", "src/deep/ (files: 2)"):
        assert f"\\n{line}" in said
    assert "two\\nlines.txt" not in said, "a name with a line break is one line"
    assert ("branch work; files changed since the last commit: 3." in said) is trusts
    assert ("\\nsrc/deep/b.c" in said) is trusts
    assert "later.txt" not in said, "a prompt that changes is not cached"


def begin_repository(folder):
    """A commit of `hello.txt`, and three new files."""
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    for command in (["init", "-q", "-b", "work"], ["add", "hello.txt"], [*identity, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", "-C", folder, *command], check=True)
    (folder / "src" / "deep" / "er").mkdir(parents=True)
    for name in ("src/deep/er/a.c", "src/deep/b.c", "two\nlines.txt"):
        (folder / name).touch()


def add_skill(project, folder, name, text):
    place = project / folder / "skills" / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(f"---\nname: {name}\ndescription: How to {name}.\n---\n{text}\n")


@pytest.mark.parametrize("trusts", [True, False])
async def test_skills_of_a_project_are_offered_only_if_the_user_trusts_it(opened, script, model, project, trusts):
    add_skill(project, ".claude", "release", "Tag it first.")
    add_skill(project, ".agents", "pdf", "Use pdftotext.")
    (project / ".git").mkdir()
    if trusts:
        trust_folder(find_repository(project))
    script.say("Hello.", ToolCall("use_skill", {"name": "release"}), "Done.", "Done.")
    async with opened() as session:
        await session.prompt("Hello")
        names = {it.name for it in session.state.commands}
        assert ({"release", "pdf"} <= names) is trusts
        assert ("- release: How to release." in text_of(model.bodies[-1])) is trusts
        await session.prompt("Release it")
        assert ("Tag it first." in text_of(model.bodies[-1])) is trusts
        await session.prompt("/pdf a.pdf")
        assert ("Use pdftotext." in text_of(model.bodies[-1])) is trusts


# Cancel and steer


class Waiting:
    """Lets a test wait until the model was asked, and lets the model wait for the test."""

    def __init__(self):
        self._loop = asyncio.get_running_loop()
        self.asked = asyncio.Event()

    def forever(self, _):
        """The model begins, and goes on until nobody listens."""
        self._loop.call_soon_threadsafe(self.asked.set)
        return (f"tick {number} " for number in range(10**9))


async def test_a_cancel_ends_a_model_s_answer_and_the_conversation_goes_on(opened, script, model):
    waiting = Waiting()
    script.entries.append(lambda asked: list_of(waiting.forever(asked)))
    async with opened() as session:
        prompt = session.prompt("Go on for ever")
        await waiting.asked.wait()
        await session.cancel()
        assert (await prompt).stop_reason == "cancelled"
        script.say("Here I am.")
        assert (await session.prompt("Are you there?")).text == "Here I am."
    assert "Go on for ever" in text_of(model.bodies[-1])


def list_of(endless):
    """An entry of a script that yields without end."""
    return Endless(endless)


class Endless(list):
    def __init__(self, pieces):
        super().__init__()
        self._pieces = pieces

    def __iter__(self):
        return iter(self._pieces)


async def test_a_cancel_ends_a_command_and_its_call_is_closed_for_the_model(opened, script, model):
    script.say(call("run_command", command="sleep 1000"))
    async with opened(mode="auto") as session:
        prompt = session.prompt("Sleep")
        async for update in prompt:
            if isinstance(update, accord.updates.ToolCallUpdate) and update.status == "in_progress":
                break
        await session.cancel()
        assert (await prompt).stop_reason == "cancelled"
        script.say("Awake.")
        assert (await session.prompt("Wake up")).text == "Awake."
    assert "The user cancelled this." in text_of(model.bodies[-1])


async def test_what_the_user_adds_meanwhile_is_taken_between_two_steps(opened, script, model):
    async with opened(mode="auto") as session:
        added = []

        def add(_):
            future = asyncio.run_coroutine_threadsafe(began(), loop)
            future.result()
            return call("run_command", command="true")

        async def began():
            added.append(session.prompt("And use tabs"))
            await asyncio.sleep(0)

        loop = asyncio.get_running_loop()
        script.say(add, "Done with tabs.")
        reply = await session.prompt("Go")
        await added[0]
    assert reply.text == "Done with tabs."
    assert "And use tabs" in json.dumps(model.bodies[1])


# Commands


async def test_a_long_conversation_is_replaced_by_a_summary(opened, script, model):
    script.say("A long answer.", "We spoke of much.", "Yes.")
    async with opened() as session:
        await session.prompt("Tell me")
        assert "replaced by a summary" in (await session.prompt("/compact")).text
        (compaction,) = session.state.compactions.values()
        assert compaction.status == "completed"
        await session.prompt("Go on")
    told = text_of(model.bodies[-1])
    assert "We spoke of much." in told
    assert "A long answer." not in told


async def test_a_context_that_is_nearly_full_is_made_shorter_by_itself(opened, script, model, settings):
    script.say("First.", "In short: first.", "Second.")
    async with opened(changed=msgspec.structs.replace(settings, context=16)) as session:
        await session.prompt("One")
        assert (await session.prompt("Two")).text == "Second."
    told = text_of(model.bodies[-1])
    assert "In short: first." in told
    assert "Two" in told
    assert '"First."' not in told


async def test_the_status_is_told_without_the_model(opened, script, model):
    async with opened() as session:
        assert "Model fake, mode ask, 0 of" in (await session.prompt("/status")).text
    assert model.bodies == []
