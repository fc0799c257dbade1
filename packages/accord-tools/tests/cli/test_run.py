"""`accord run` and `accord login`: what their options do."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import accord
from accord.services import LEVELS
from accord_tools.cli.permission_options import ALLOW
from accord_tools.configuration.agent_settings import Allow

NO_READ = "accord run: refused (read) read; --allow ask, or a rule of --policy FILE, would allow it"
NO_EDIT = "accord run: refused (edit) edit; --allow auto, or a rule of --policy FILE, would allow it"
AGENT = str(Path(__file__).with_name("noting_agent.py"))


class Bench:
    """An agent that notes what it is asked, and `accord` run against it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"

    def accord(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        agent = [sys.executable, AGENT, str(self.log)]
        return subprocess.run(
            [sys.executable, "-m", "accord", *arguments, "--", *agent],
            check=False,
            capture_output=True,
            timeout=120,
            cwd=self.folder,
            **{"text": True, **options},
        )

    def noted(self, method: str) -> str:
        return next(line for line in self.log.read_text().splitlines() if line.startswith(method + " "))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(
    ("allow", "said", "told"),
    [
        ("auto", ["read allow_once", "edit allow_once"], []),
        ("ask", ["read allow_once", "edit reject_once"], [NO_EDIT]),
        ("none", ["read reject_once", "edit reject_once"], [NO_READ, NO_EDIT]),
    ],
)
def test_allow_decides_what_the_agent_may_use_and_a_refusal_names_the_option_that_would_allow_it(
    bench: Bench, allow: str, said: list[str], told: list[str]
) -> None:
    done = bench.accord("run", "Hi", "--allow", allow)
    assert (done.returncode, done.stdout.splitlines(), done.stderr.splitlines()) == (0, said, told)


def test_mode_options_servers_and_folder_reach_the_session(bench: Bench) -> None:
    (bench.folder / "sub").mkdir()
    servers = {"mcpServers": {"files": {"command": sys.executable, "args": ["-v"], "env": {"A": "1"}}}}
    (bench.folder / "mcp.json").write_text(json.dumps(servers))
    done = bench.accord(
        "run", "Hi", "--mode", "code", "--set", "fast=true", "--cwd", "sub", "--mcp", "mcp.json", "--trace", "wire"
    )
    assert (done.returncode, done.stderr.splitlines()) == (0, [NO_EDIT])
    assert str(bench.folder / "sub") in bench.noted("session/new")
    assert "'args': ['-v'], 'env': [{'name': 'A', 'value': '1'}]" in bench.noted("session/new")
    assert "'modeId': 'code'" in bench.noted("session/set_mode")
    assert "'value': True" in bench.noted("session/set_config_option")
    assert "session/set_mode" in (bench.folder / "wire").read_text()


def test_the_model_is_set_in_the_form_that_the_agent_has(bench: Bench) -> None:
    assert bench.accord("run", "Hi", "--model", "l").returncode == 0
    assert "'modelId': 'l'" in bench.noted("session/set_model")


def test_an_attached_file_follows_the_prompt(bench: Bench) -> None:
    (bench.folder / "shot.png").write_bytes(b"\x89PNG")
    assert bench.accord("run", "What is this?", "--attach", "shot.png", input="piped").returncode == 0
    noted = bench.noted("session/prompt")
    link = noted.index((bench.folder / "shot.png").as_uri())
    assert noted.index("What is this?") < noted.index("piped") < link
    assert "'mimeType': 'image/png'" in noted


STEPS = """
import asyncio
import accord

agent = accord.Agent("steps")


@agent.on_prompt
async def reply(turn: accord.Turn) -> None:
    if turn.text == "fail":
        raise RuntimeError
    async with turn.tool("first"), turn.tool("at once"):
        pass
    async with turn.tool("second"):
        pass
    if turn.text == "long":
        async with turn.tool("third"):
            await asyncio.Event().wait()
    await turn.say("done")
"""


def test_max_turns_stops_an_agent_that_goes_on_using_tools(user: Any) -> None:
    user.write("steps.py", STEPS)
    stopped = user.accord("run", "long", "--max-turns", "2", "--", "steps.py")
    assert (stopped.returncode, stopped.stdout) == (4, "")
    assert "accord run: the agent was stopped by --max-turns 2\n" in stopped.stderr
    assert user.said("run", "short", "--max-turns", "2", "--", "steps.py") == "done\n"


def test_the_result_says_which_limit_of_the_budget_stopped_the_agent(user: Any) -> None:
    user.write("steps.py", STEPS)
    stopped = user.accord("run", "long", "--max-time", "1", "--json", "--", "steps.py")
    result = json.loads(stopped.stdout.splitlines()[-1])
    assert (stopped.returncode, result["stopReason"], result["exceeded"]) == (4, "cancelled", "max_time")


def test_a_turn_that_fails_says_how_to_go_on(user: Any) -> None:
    user.write("steps.py", STEPS)
    failed = user.accord("run", "fail", "--", "steps.py")
    assert failed.returncode == 1
    assert re.search(r"session \w+, continue it with: accord run --session \w+ PROMPT -- steps.py\n", failed.stderr)


def test_run_continues_a_session(bench: Bench) -> None:
    done = bench.accord("run", "Hi", "--session", "s", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["type"] for event in events] == ["session", "prompt", "update", "update", "result"]
    assert events[-1] == {"type": "result", "stopReason": "end_turn", "sessionId": "s"}
    assert "'sessionId': 's'" in bench.noted("session/resume")


def test_the_agent_learns_the_version_of_accord(bench: Bench) -> None:
    assert bench.accord("run", "Hi").returncode == 0
    assert f"'clientInfo': {{'name': 'accord', 'version': '{accord.__version__}'" in bench.noted("initialize")


@pytest.mark.parametrize("arguments", [["-"], [], ["-v"]])
def test_the_prompt_can_come_from_standard_input(bench: Bench, arguments: list[str]) -> None:
    assert bench.accord("run", *arguments, input="Grüße", encoding="utf-8").returncode == 0
    assert "Grüße" in bench.noted("session/prompt")


def test_what_a_pipe_gives_is_a_second_block_of_the_prompt(bench: Bench) -> None:
    assert bench.accord("run", "Review", input="+ a line\n").returncode == 0
    noted = bench.noted("session/prompt")
    assert noted.index("'text': 'Review'") < noted.index("'text': '\\nStandard input:\\n+ a line\\n'")


def test_what_a_file_gives_is_a_second_block_of_the_prompt(bench: Bench) -> None:
    (bench.folder / "change.diff").write_text("+ a line\n")
    with (bench.folder / "change.diff").open() as file:
        assert bench.accord("run", "Review", stdin=file).returncode == 0
    assert "Standard input:\\n+ a line" in bench.noted("session/prompt")


def test_a_pipe_that_nobody_writes_to_is_left_out_with_a_word(bench: Bench) -> None:
    reads, writes = os.pipe()
    with os.fdopen(reads) as idle, os.fdopen(writes, "w"):
        done = bench.accord("run", "Hi", stdin=idle)
    assert done.returncode == 0
    assert "nothing came on standard input in 5 s, so the prompt goes without it" in done.stderr
    assert "Standard input" not in bench.noted("session/prompt")


def test_a_pipe_that_has_begun_and_does_not_end_is_an_error(bench: Bench) -> None:
    reads, writes = os.pipe()
    with os.fdopen(reads) as begun, os.fdopen(writes, "w", buffering=1) as writer:
        writer.write("half of it\n")
        done = bench.accord("run", "Hi", "--start-timeout", "0.2", stdin=begun)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "accord run: standard input did not end within --start-timeout 0.2\n"


def test_more_than_a_prompt_can_hold_is_wrong_usage(bench: Bench) -> None:
    done = bench.accord("run", "Hi", input="x" * 10_000_001)
    assert done.returncode == 2
    assert "standard input has more than 10,000,000 bytes" in done.stderr


@pytest.mark.parametrize("stdin", [subprocess.DEVNULL, None])
def test_no_pipe_and_no_file_is_no_part_of_the_prompt(bench: Bench, stdin: int | None) -> None:
    closed = {"preexec_fn": lambda: os.close(0)} if stdin is None else {"stdin": stdin}
    done = bench.accord("run", "Hi", **closed)
    assert done.returncode == 0
    assert "Standard input" not in bench.noted("session/prompt")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--mode", "fly"], "--mode fly: the agent has no mode 'fly'; it has ask, code"),
        (["--model", "xl"], "--model xl: the agent has no model 'xl'; did you mean l? It has s, l"),
        (["--attach", "no.png"], "--attach no.png: no such file"),
        (["--max-cost", "free"], "argument --max-cost: must be a positive number, got 'free'"),
        (["--max-turns", "0"], "argument --max-turns: must be a whole number from 1 on, got '0'"),
        (["--set", "slow=true"], "--set slow=true: the agent has no config option 'slow'; it has fast"),
        (["--set", "fast=perhaps"], "--set fast=perhaps: 'fast' has no value 'perhaps'; it has true, false"),
        (["--set", "fast"], "KEY=VALUE"),
        (["--cwd", "nowhere"], "no such folder"),
        (["--mcp", "nowhere.json"], "nowhere.json"),
        (["--timeout", "-1"], "--timeout"),
    ],
)
def test_wrong_usage_is_reported_with_its_own_exit_code(bench: Bench, arguments: list[str], says: str) -> None:
    done = bench.accord("run", "Hi", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a current folder cannot be deleted there")
def test_a_deleted_current_folder_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = f'rmdir "$PWD" && exec "{sys.executable}" -m accord run Hi'
    command = ["/bin/sh", "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=tmp_path / "gone")
    assert (done.returncode, done.stderr) == (2, "accord run: --cwd .: no such folder\n")


def test_debug_shows_where_it_failed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "accord", "--debug", "run", "Hi", "--", "no-such-agent"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "Traceback" in done.stderr
    assert done.returncode == 1


WANTS_A_KEY = """
import json, os, sys
hello = json.loads(sys.stdin.readline())
variables = [{"name": "TEST_KEY"}, {"name": "SITE", "secret": False}]
method = {"type": "env_var", "id": "k", "name": "Key", "vars": variables}
def answer(call, result):
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
answer(hello, {"protocolVersion": 1, "authMethods": [method]})
for line in sys.stdin:
    call = json.loads(line)
    if call.get("method") == "authenticate":
        print(os.environ["TEST_KEY"], os.environ["SITE"], file=open("noted", "w"))
        answer(call, {})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
@pytest.mark.requirement("auth.environment.secrets-hidden", "auth.environment.set-at-start")
def test_a_secret_is_not_echoed_while_it_is_typed(tmp_path: Path) -> None:
    import os
    import pty

    (tmp_path / "agent.py").write_text(WANTS_A_KEY)
    command = [sys.executable, "-m", "accord", "login", "--no-check", "--", sys.executable, "agent.py"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, start_new_session=True
    )
    os.close(theirs)
    screen = b""
    for prompt, typed in ((b"TEST_KEY: ", b"hush\n"), (b"SITE: ", b"here\n"), (b"Logged in", b"")):
        while prompt not in screen:
            screen += os.read(ours, 4096)
        os.write(ours, typed)
    assert process.wait(timeout=120) == 0
    os.close(ours)
    assert b"hush" not in screen
    assert b"here" in screen
    assert (tmp_path / "noted").read_text() == "hush here\n"


def test_login_lists_the_methods_and_uses_the_only_one(bench: Bench) -> None:
    assert bench.accord("login", "--list").stdout == "web  In the browser\n"
    done = bench.accord("login")
    assert (done.returncode, done.stderr) == (0, "")
    assert "'methodId': 'web'" in bench.noted("authenticate")
    assert bench.accord("login", "--method", "paper").returncode == 1


ASKING = [sys.executable, str(Path(__file__).with_name("asking_agent.py"))]


class Run:
    """`accord run` with the asking agent, in pipes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, agent: list[str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "accord", "run", *arguments, "--", *(agent or ASKING)],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.folder,
            env={**os.environ, "XDG_STATE_HOME": str(self.folder / "state")},
        )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "project").mkdir()
    return Run(tmp_path / "project")


def events_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_pipe_gets_the_answer_alone_and_with_verbose_the_work_beside_it(run: Run) -> None:
    assert (run("all").stdout, run("all").stderr) == ("First part.Second part.\n", "")
    done = run("all", "--verbose")
    assert done.stdout == "First part.Second part.\n"
    lines = done.stderr.splitlines()
    assert lines[0].startswith("~ Let me think about this for longer than one row of a terminal of eighty columns")
    assert lines[1:11] == [
        "Plan",
        "  ○ one",
        "  ○ two",
        "▸ one",
        "▸ Edit a.txt",
        "✓ Edit a.txt  +2 -1",
        "  1 - old",
        "  1 + new",
        "  2 + more",
        "✓ one  1 of 2",
    ]
    assert "\x1b" not in done.stderr


def test_the_last_line_names_the_session_and_the_command_that_continues_it(run: Run) -> None:
    last = run("all", "--verbose").stderr.splitlines()[-1]
    found = re.fullmatch(
        r"session (\w+), continue it with: (accord run --session \1 PROMPT -- .*asking_agent.py)", last
    )
    assert found is not None
    assert shlex.split(found[2])[-2:] == ASKING


def test_a_turn_that_is_lost_with_its_agent_leaves_the_session_and_the_command_that_continues_it(run: Run) -> None:
    done = run("die")
    assert done.returncode != 0
    *_, hint, problem = done.stderr.splitlines()
    found = re.fullmatch(
        r"session (\w+), continue it with: (accord run --session \1 PROMPT -- .*asking_agent.py)", hint
    )
    assert found is not None, done.stderr
    assert "exit code 9" in problem


def test_allow_all_tells_which_files_were_written(run: Run) -> None:
    (run.folder / "b c.txt").write_text("old")
    done = run("write b c.txt", "--allow", "auto")
    assert (done.returncode, done.stdout) == (0, "written\n")
    assert done.stderr == "1 file written\n  b c.txt  5 bytes\n"


# Permission without a user


def test_rules_allow_exact_uses_where_no_user_can_be_asked(run: Run) -> None:
    rules = '[[rules]]\nanswer = "allow"\nkinds = ["edit"]\npaths = ["*.txt"]\n'
    (run.folder / "rules.toml").write_text(rules)
    assert run("write a.txt", "--policy", "rules.toml").stdout == "written\n"
    done = run("write a.py", "--policy", "rules.toml")
    assert (done.returncode, done.stdout) == (0, "nobody was there to ask; a client of level 'edit' allows this\n")
    assert done.stderr == (
        "accord run: refused (edit) write a.py; --allow edit, or a rule of --policy FILE, would allow it\n"
    )
    assert (run.folder / "a.txt").exists()
    assert not (run.folder / "a.py").exists()


def test_the_rules_of_the_guide_are_valid() -> None:
    guide = Path(__file__).parents[4] / "docs" / "run.md"
    [rules] = re.findall(r"```toml\n(.*?)```", guide.read_text(), re.DOTALL)
    assert len(accord.PermissionPolicy.parse(rules).rules) == 2


def test_the_option_and_the_settings_know_the_levels_of_the_library() -> None:
    assert tuple(ALLOW) == get_args(Allow) == LEVELS


def test_rules_come_before_what_is_allowed(run: Run) -> None:
    (run.folder / "rules.toml").write_text('[[rules]]\nanswer = "reject"\npaths = ["secret*"]\n')
    assert run("write a.txt", "--policy", "rules.toml", "--allow", "auto").stdout == "written\n"
    done = run("write secret", "--policy", "rules.toml", "--allow", "auto")
    assert done.stdout == "rule 1 of rules.toml refuses this; change it there\n"
    assert (
        "accord run: refused (edit) write secret; rule 1 of rules.toml refuses this; change it there\n" in done.stderr
    )
    assert done.returncode == 0
    assert run("write secret", "--policy", "rules.toml", "--allow", "auto", "--non-interactive", "fail").returncode == 6


def test_a_file_of_rules_that_cannot_be_read_is_wrong_usage(run: Run) -> None:
    (run.folder / "rules.toml").write_text('[[rules]]\nanswer = "perhaps"\n')
    done = run("all", "--policy", "rules.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--policy rules.toml: rule 1: answer must be allow, reject or ask, got 'perhaps'" in done.stderr


@pytest.mark.parametrize(("mode", "code"), [("deny", 0), ("fail", 6)])
def test_non_interactive_decides_whether_a_refusal_is_a_failure(run: Run, mode: str, code: int) -> None:
    done = run("command ls", "--non-interactive", mode)
    assert done.returncode == code
    assert "accord run: refused (execute) Tidy up; --allow auto, or a rule of --policy FILE," in done.stderr


def test_ask_without_a_user_lends_what_rules_allow(run: Run) -> None:
    done = run("write a.txt", "--allow", "ask", "--non-interactive", "deny")
    assert (done.returncode, done.stdout) == (0, "nobody was there to ask; a client of level 'edit' allows this\n")


# Limits


def hanging(where: str) -> list[str]:
    """An agent that answers until this method, and then sends nothing more."""
    script = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    call = json.loads(line)\n"
        f"    if call.get('method') == {where!r}:\n"
        "        continue\n"
        "    result = {'protocolVersion': 1} if call['method'] == 'initialize' else {'sessionId': 's'}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': call['id'], 'result': result}), flush=True)\n"
    )
    return [sys.executable, "-c", script]


@pytest.mark.parametrize("where", ["initialize", "session/new"])
@pytest.mark.parametrize("option", ["--start-timeout", "--idle-timeout"])
def test_an_agent_that_does_not_start_is_ended_by_the_limit_that_says_so(run: Run, where: str, option: str) -> None:
    done = run("hi", option, "1", agent=hanging(where))
    assert done.returncode == 3
    assert option in done.stderr


@pytest.mark.parametrize("where", ["initialize", "session/new", "session/prompt"])
def test_the_limit_of_the_whole_turn_is_the_only_one_that_its_error_names(run: Run, where: str) -> None:
    done = run("hi", "--timeout", "1", agent=hanging(where))
    assert done.returncode == 3
    assert re.findall(r"--[a-z-]*timeout", done.stderr) == ["--timeout"]
    assert done.stderr.count(" within ") == 1


def test_the_idle_limit_goes_on_in_the_turn_and_the_limit_of_the_start_does_not(run: Run) -> None:
    done = run("hi", "--start-timeout", "30", "--idle-timeout", "1", agent=hanging("session/prompt"))
    assert done.returncode == 3
    assert "no answer after 1 seconds without a message" in done.stderr


# Errors and JSON


def test_an_error_in_a_pipe_has_the_last_lines_of_the_agents_standard_error(run: Run) -> None:
    done = run("raise")
    assert (done.returncode, done.stdout) == (1, "so far\n")
    lines = done.stderr.splitlines()
    assert lines[-1].startswith("accord run: session/prompt: Internal error")
    assert lines[-3] == "  ValueError: broken by hand"
    assert "continue it with: accord run --session " in lines[-2]
    error = events_of(run("raise", "--json"))[-1]
    assert (error["type"], error["exitCode"]) == ("error", 1)
    assert error["stderr"].rstrip().endswith("ValueError: broken by hand")


EARLY = """
import json, sys

def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def update(session, text):
    said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, "extra": 1}
    send({"method": "session/update", "params": {"sessionId": session, "update": said}})

for line in sys.stdin:
    call = json.loads(line)
    method, result = call["method"], {}
    if method == "initialize":
        offers = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
        result = {"protocolVersion": 1, "agentCapabilities": offers}
    elif method == "session/new":
        update("s", "before the answer")
        update("other", "of another session")
        result = {"sessionId": "s"}
    elif method == "session/load":
        for number in range(1500):
            update("s", f"past {number}")
        result = {}
    elif method == "session/prompt":
        update("s", "in the turn")
        result = {"stopReason": "end_turn"}
    send({"id": call["id"], "result": result})
"""


def test_json_tells_what_the_session_says_from_its_beginning_as_it_came(run: Run) -> None:
    (run.folder / "early.py").write_text(EARLY)
    events = events_of(run("hi", "--json", agent=[sys.executable, "early.py"]))
    assert events[0] == {"type": "session", "sessionId": "s", "protocolVersion": 1}
    assert [event["type"] for event in events[1:]] == ["update", "prompt", "update", "result"]
    assert events[1]["update"]["content"]["text"] == "before the answer"
    assert events[1]["update"]["extra"] == 1
    assert events[3]["update"]["content"]["text"] == "in the turn"


def test_json_replays_the_past_on_request(run: Run) -> None:
    (run.folder / "early.py").write_text(EARLY)
    agent = [sys.executable, "early.py"]
    events = events_of(run("hi", "--json", "--session", "s", "--replay", agent=agent))
    replayed = [event["update"]["content"]["text"] for event in events[1:1501]]
    assert replayed == [f"past {number}" for number in range(1500)]
    assert [event["type"] for event in events[1501:]] == ["prompt", "update", "result"]
    events = events_of(run("hi", "--json", "--session", "s", agent=agent))
    assert [event["type"] for event in events] == ["session", "prompt", "update", "result"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--cwd", "nowhere"], "--cwd nowhere: no such folder"),
        (["--timeout", "soon"], "argument --timeout: must be a number of seconds from 0 on, got 'soon'"),
        (["--allow", "some"], "invalid choice: 'some'"),
        (["--replay"], "--replay needs --json, and --session ID or --continue"),
        (["--mode", "fly"], "--mode fly: the agent has no mode 'fly'"),
    ],
)
def test_wrong_usage_is_json_too(run: Run, arguments: list[str], says: str) -> None:
    done = run("all", "--json", *arguments)
    event = events_of(done)[-1]
    assert (done.returncode, event["type"], event["exitCode"]) == (2, "error", 2)
    assert says in event["message"]
    assert says in done.stderr


UTF8 = os.environ | {"LC_ALL": "C.UTF-8"}


def run_demo(folder: Path, prompt: str, *options: str) -> subprocess.CompletedProcess[str]:
    """`accord run` with the built-in agent, which works at once."""
    (folder / "notes.md").write_text("notes\n")
    program = [
        sys.executable,
        "-m",
        "accord",
        "run",
        prompt,
        *(options or ["--verbose"]),
        "--",
        sys.executable,
        "-m",
        "accord",
        "demo",
    ]
    return subprocess.run(program, check=True, capture_output=True, timeout=120, cwd=folder, encoding="utf-8", env=UTF8)


def test_the_work_of_a_subagent_names_it_and_its_words_follow_its_end(tmp_path: Path) -> None:
    done = run_demo(tmp_path, "/subagent")
    assert done.stdout.strip() == "My subagent has looked around for me."
    rows = [row.strip() for row in done.stderr.splitlines()]
    begun, ended = rows.index("• subagent Look around"), rows.index("• subagent Look around: done")
    assert any(row.startswith("Look around: ") and "List the folder" in row for row in rows[begun:ended])
    assert "`notes.md`" in rows[ended + 1]  # what it said


def test_plans_and_compactions_are_shown(tmp_path: Path) -> None:
    plans = run_demo(tmp_path, "/plans").stderr
    assert "# Design" in plans
    assert "Read the design" in plans
    assert "a plan was removed" in plans
    assert "the context was shortened" in run_demo(tmp_path, "/compact").stderr


def test_json_gets_a_subagent_as_a_tool_call(tmp_path: Path) -> None:
    events = [json.loads(line) for line in run_demo(tmp_path, "/subagent", "--json").stdout.splitlines()]
    kinds = {event["update"]["sessionUpdate"] for event in events if event["type"] == "update"}
    assert "subagent_update" not in kinds
    assert "tool_call" in kinds


@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
@pytest.mark.parametrize("allowed", [("--allow", "auto"), ("--policy", "rules.toml")])
def test_a_tool_call_whose_lent_command_failed_is_shown_as_failed_with_its_exit_code(user, allowed) -> None:
    user.write("rules.toml", '[[rules]]\nanswer = "allow"\ncommands = ["*"]\n')
    user.write(
        "mine.py",
        "import accord\nagent = accord.Agent('mine')\n@agent.on_prompt\nasync def reply(turn):\n"
        "    for code in (0, 3):\n"
        "        async with turn.tool(f'Command {code}', kind='execute') as tool:\n"
        "            async with tool.command(['sh', '-c', f'exit {code}']) as running:\n"
        "                await running.wait()\n",
    )
    done = user.accord("run", "hi", "--verbose", *allowed, "--", "mine.py")
    shown = [line for line in done.stderr.splitlines() if line.startswith(("✓", "✗"))]
    assert shown == ["✓ Command 0", "✗ Command 3 failed, exit code 3"]


SCHEMA = {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}}
ANSWERS = """
import accord

answers = iter({answers!r})
agent = accord.Agent("answers")


@agent.on_prompt
async def reply(turn):
    await turn.say(next(answers))


agent.run()
"""


@pytest.mark.parametrize(
    ("answers", "printed", "code", "said"),
    [
        (['Here:\n```json\n{"names": ["a"]}\n```'], '{"names": ["a"]}\n', 0, ""),
        (['{"names": [1]}', '{"names": []}'], '{"names": []}\n', 0, ""),
        (['{"names": [1]}'] * 2, "", 1, "1 is not of type 'string' - at `$.names[0]`"),
    ],
)
def test_with_a_schema_only_json_that_fits_is_printed(
    tmp_path: Path, answers: list[str], printed: str, code: int, said: str
) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "answers.py").write_text(ANSWERS.format(answers=answers))
    command = [sys.executable, "-m", "accord", "run", "Names?", "-q", "--schema", "schema.json"]
    done = subprocess.run(
        [*command, "--", sys.executable, "answers.py"], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.stdout, done.returncode) == (printed, code)
    assert said in done.stderr


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (None, [], "--schema schema.json: No such file"),
        ("{", [], "--schema schema.json: this is not JSON"),
        ('{"type": 3}', [], "--schema schema.json: this is not a JSON Schema"),
        ("{}", ["--json"], "--json and --schema exclude each other"),
    ],
)
def test_a_schema_that_cannot_be_used_is_wrong_usage(
    bench: Bench, text: str | None, options: list[str], said: str
) -> None:
    if text is not None:
        (bench.folder / "schema.json").write_text(text)
    done = bench.accord("run", "Names?", "--schema", "schema.json", *options)
    assert done.returncode == 2
    assert said in done.stderr + done.stdout
    assert not bench.log.exists()
