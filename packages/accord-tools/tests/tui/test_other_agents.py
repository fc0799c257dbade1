"""The most used flows in a real terminal, at two sizes, with agents of other SDKs and two real agents."""

import json

import pytest
from benchmarks.build import Unavailable
from interop.model.replies import CONTENT, SENTENCE
from interop.model.server import ModelServer
from interop.peers import SDKS, command
from interop.real_agents import CLAUDE, CODEX, command as command_of, environment

from tests.tui.real_terminal import SIZES, Terminal, needs_tmux
from tests.waiting import wait_until

pytestmark = [needs_tmux, pytest.mark.timeout(300), pytest.mark.parametrize("size", SIZES)]

ASKED = {
    "toolCall": {
        "toolCallId": "c1",
        "title": "Change a.txt",
        "kind": "edit",
        "status": "pending",
        "content": [{"type": "diff", "path": "/w/a.txt", "oldText": "one\n", "newText": "two\n"}],
    },
    "options": [
        {"optionId": "go", "name": "Go on", "kind": "allow_once"},
        {"optionId": "stop", "name": "Stop it", "kind": "reject_once"},
    ],
}


@pytest.fixture
def start(tmp_path):
    """Start a chat with a command: `start(size, command, **variables)`."""
    started = []

    def chat(size, tokens, **variables):
        started.append(Terminal(tmp_path, size, "--", *tokens, **variables))
        return started[-1]

    yield chat
    for one in started:
        one.close()


@pytest.fixture(params=["typescript", "python"])
def sdk_chat(request, size, start, tmp_path):
    """A chat with the agent of an SDK that is ready for prompts."""
    try:
        tokens = command(SDKS[request.param], "agent")
    except Unavailable as missing:
        pytest.skip(str(missing))
    it = start(size, [token.replace("{data}", str(tmp_path)) for token in tokens])
    it.sees("interop-agent ▸ project", "Ask", "enter send")
    return it


def actions(it, *done):
    it.send(json.dumps(done))


@pytest.mark.interop
def test_an_agent_of_another_sdk_is_talked_to_and_set(sdk_chat):
    it = sdk_chat
    it.send("hello")
    it.sees("❯ hello", "blocks: text, 5 letters")
    it.write("look at @READ")
    it.sees("README.md")
    it.press("Tab", "Enter")
    it.sees("[file: README.md, 5 characters]", "blocks: text resource")
    commands = [{"name": "deploy", "description": "Ship it"}]
    actions(it, {"update": {"sessionUpdate": "available_commands_update", "availableCommands": commands}})
    it.sees("Ship it")
    it.write("/dep")
    it.sees("/deploy")  # the list of commands has it
    it.press("Tab", "Enter")
    it.sees("❯ /deploy", "blocks: text, 8 letters")
    it.press("C-g")
    it.sees("Options", "Large")
    it.write("large")
    it.press("Enter")
    it.no_longer_sees("type to filter")
    it.press("M-m")
    wait_until(lambda: "Code" in it.screen().splitlines()[0])
    it.press("C-g")
    it.sees("● Large")


@pytest.mark.interop
def test_an_agent_of_another_sdk_asks_writes_and_runs(sdk_chat):
    it = sdk_chat
    asked = json.loads(json.dumps(ASKED).replace("/w/a.txt", str(it.project / "a.txt")))
    for key, option in (("y", "Go on"), ("n", "Stop it")):
        actions(it, {"ask": "session/request_permission", "params": asked})
        it.sees("? Allow this edit?", "Change a.txt", "- one", "+ two", "y Go on", "n Stop it")
        it.answer(key, "Allow this edit")
        it.sees(f"? Allow this edit?  {option}", '"selected"')
        it.sees_idle()
    path = it.project / "made.txt"
    actions(it, {"ask": "fs/write_text_file", "params": {"path": str(path), "content": "made\n"}})
    it.sees("? Allow this edit?", "made.txt", "+ made", "y Allow")
    it.answer("y", "Allow this edit")
    wait_until(path.exists)
    it.press("C-d")
    it.sees("1 changed file", "new file", "x undo part")
    it.press("x")
    wait_until(lambda: not path.exists())
    it.press("Escape")
    it.sees("Undone: made.txt", "enter send")
    content = [{"type": "terminal", "terminalId": "<terminal>"}]
    call = {"sessionUpdate": "tool_call", "toolCallId": "c2", "title": "Count", "kind": "execute", "content": content}
    created = {"command": "sh", "args": ["-c", "echo $((6 * 7)) things"]}
    actions(
        it,
        {"ask": "terminal/create", "params": created, "keep": {"terminal": "terminalId"}},
        {"ask": "terminal/wait_for_exit", "params": {"terminalId": "<terminal>"}},
        {"update": call},
    )
    it.sees("y Allow", "Allow this command?")
    it.answer("y", "")
    it.sees('"exitCode"')


@pytest.mark.interop
def test_a_turn_of_an_agent_of_another_sdk_is_cancelled_and_a_queued_prompt_goes_back_to_the_editor(sdk_chat):
    it = sdk_chat
    actions(it, {"wait": True})
    it.sees("working 0:0")
    it.send("hello")
    it.sees("1 queued")
    it.press("Escape")
    it.sees("Stopped.", "\n hello\n")
    it.press("Enter")
    it.sees("blocks: text, 5 letters")


@pytest.mark.interop
def test_sessions_of_an_agent_of_another_sdk_are_listed_loaded_and_forked(sdk_chat):
    it = sdk_chat
    it.send("hello")
    it.sees("blocks: text, 5 letters")
    it.press("C-n")
    it.sees("2 interop-agent")
    it.press("M-1")
    it.sees("❯ hello")
    it.press("C-w")
    wait_until(lambda: "2 interop-agent" not in it.screen() and "❯ hello" not in it.screen())
    it.press("C-s")
    it.sees("Sessions", "hello")
    it.write("hello")
    it.sees("> hello", "blocks: text, 5 letters")
    it.press("Enter")
    it.sees("2 interop-agent", "blocks: text, 5 letters")  # this agent replays what it said


@pytest.mark.agents
@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", [CLAUDE, CODEX], ids=lambda agent: agent.name)
def test_a_real_agent_in_the_chat(agent, size, start, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with ModelServer() as model:
        try:
            variables = environment(agent, model.url, home)
            tokens = command_of(agent, home)
        except Unavailable as missing:
            pytest.skip(str(missing))
        it = start(size, tokens, **variables)
        it.sees("enter send", "shift+tab allow")
        if agent.mode is not None:
            it.sees("Default")  # its settings are in the heading: the session is open
            it.press("C-g")
            it.sees("Options", "type to filter")
            it.write(agent.mode)
            it.press("Enter")
            wait_until(lambda: agent.mode in it.screen().splitlines()[0].casefold())
        it.send("Say hello.")
        it.sees("❯ Say hello.", SENTENCE)
        for name, key in (("no.txt", "n"), ("yes.txt", "y")):
            it.send(f"EDIT {it.project / name}")
            it.sees("y ", "n ", "reject and say why")
            it.answer(key, "")
            it.no_longer_sees("reject and say why")
            it.sees_idle()
            assert (it.project / name).exists() == (key == "y"), it.screen()
        assert (it.project / "yes.txt").read_text().strip() == CONTENT.strip()
        it.send("STREAM")
        it.sees("tick 3")
        it.send("Say hello again.")
        it.sees("1 queued")
        it.press("Escape")
        it.sees("Stopped.", "\n Say hello again.\n")
        it.press("Enter")
        it.sees("❯ Say hello again.")
        it.sees_idle()
        it.press("C-g")
        it.sees("Options", "type to filter")
        it.press("Escape")
        it.sees("enter send")
        it.press("C-q")
        wait_until(it.has_ended)
        it = start(size, tokens, **variables)
        it.sees("enter send", "shift+tab allow")
        it.press("C-s")
        it.sees("Sessions", "Say hello.")
        it.write("Say hello")
        it.press("Enter")
        it.sees("❯ Say hello again.")
