"""`accord` as people and scripts run it."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

ACCORD = [sys.executable, "-c", "import sys; from accord_tools.cli import main; sys.exit(main())"]


def accord(*arguments, **options):
    return subprocess.run([*ACCORD, *arguments], check=False, capture_output=True, text=True, timeout=60, **options)


def test_options_without_a_command_print_the_help_as_wrong_usage():
    done = accord("--debug")
    assert done.returncode == 2
    assert "schema" in done.stdout


def test_an_unknown_command_is_one_line_and_wrong_usage():
    done = accord("dance")
    assert done.returncode == 2
    assert "unknown command 'dance'" in done.stderr
    assert "Traceback" not in done.stderr


def test_version_is_printed():
    assert accord("--version").stdout.startswith("accord ")


def test_every_command_has_a_help():
    from accord_tools.cli.command_table import commands_for

    for command, declared in commands_for().items():
        done = accord(command, "--help")
        assert done.returncode == 0
        assert declared.summary.split(",")[0] in " ".join(done.stdout.split())


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("unstable", [[], ["--unstable"]])
def test_the_schema_is_valid_json_schema_with_the_official_names(version, unstable):
    done = accord("schema", "--version", version, *unstable)
    assert done.returncode == 0
    document = json.loads(done.stdout)
    Draft202012Validator.check_schema(document)
    prompt = document["$defs"]["PromptRequest"]
    assert (prompt["x-method"], prompt["x-side"]) == ("session/prompt", "agent")
    assert ("ForkSessionRequest" in document["$defs"]) == bool(unstable)


def test_the_schema_tells_good_messages_from_bad_ones():
    document = json.loads(accord("schema").stdout)
    validator = Draft202012Validator({**document, "anyOf": [{"$ref": "#/$defs/PromptRequest"}]})
    assert validator.is_valid({"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}]})
    assert not validator.is_valid({"sessionId": "s", "prompt": [{"type": "text"}]})


def test_a_reader_that_closes_the_pipe_is_not_an_error():
    process = subprocess.Popen([*ACCORD, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    "arguments",
    [
        ["schema"],
        ["--help"],
        ["run", "--help"],
        ["--version"],
        ["login", "--list"],
        ["run", "Say hello", "--quiet"],
        ["run", "Say hello", "--json", "--quiet"],
        ["serve", "--port", "0"],
    ],
    ids=" ".join,
)
def test_output_that_cannot_be_written_has_its_own_exit_code(arguments, buffered):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environment |= {} if buffered else {"PYTHONUNBUFFERED": "1"}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*ACCORD, *arguments],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            timeout=60,
        )
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1
    assert "cannot write to standard output: No space left on device" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["schema"], ["--help"], ["run", "Say hello", "--quiet"], ["login", "--list"]], ids=" ".join
)
def test_a_closed_pipe_ends_a_command_without_an_error(arguments):
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([*ACCORD, *arguments], check=False, stdout=theirs, stderr=subprocess.PIPE, timeout=60)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_warning_that_no_handler_takes_is_printed_without_what_acts_on_a_terminal_and_without_secrets():
    script = (
        "import logging, sys; from accord_tools.cli import main; code = main(['schema']); "
        "logging.getLogger('accord').warning('it said %s', '\\x1b[2J\\u202e at https://ada:s3cret@e.example/?k=s3cret')"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert done.stderr == "it said ␛[2J<U+202E> at https://***@e.example/?k=***\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rnu", "Hi"], "unknown command 'rnu'; did you mean run?"),
        (["agents", "lst"], "unknown command 'lst'; did you mean list?"),
        (["run", "Hi", "--jsn"], "unknown option --jsn; did you mean --json?"),
        (["run", "Hi", "--jsn=1"], "unknown option --jsn; did you mean --json?"),
        (["run", "Hi", "--xyzzy"], "unknown option --xyzzy; accord run --help lists all options"),
        (["run", "Hi", "--debug"], "--debug goes before the command: accord --debug run"),
        (["run", "Hi", "--allow", "edti"], "argument --allow: invalid choice: 'edti'; did you mean edit?"),
        (["agents", "add", "a", "--evn", "A=1"], "unknown option --evn; did you mean --env?"),
        (["schema", "more"], "unexpected argument 'more'"),
        (["schema", "--", "gemini"], "accord schema takes no agent; remove -- and what follows it"),
        (["help", "rnu"], "accord has no command 'rnu'; did you mean run?"),
        (["completion", "tcsh"], "argument SHELL: invalid choice: 'tcsh'; known are bash, zsh, fish"),
    ],
)
def test_a_wrong_word_is_answered_with_what_is_meant(arguments, says):
    done = accord(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["run"], ["agents", "add"], ["sessions"]])
def test_the_help_command_prints_what_the_option_prints(words):
    assert accord("help", *words).stdout == accord(*words, "--help").stdout
    assert accord("help").stdout == accord("--help").stdout


def test_the_help_shows_first_what_most_people_need_and_each_command_once():
    from accord_tools.cli.command_table import commands_for, parser_of

    lines = parser_of(commands_for()).format_help().splitlines()
    listed = [line.split()[0] for line in lines if re.match(r"  \w+  ", line)]
    assert listed[:6] == ["run", "chat", "new", "dev", "check", "serve"]
    assert sorted(listed) == sorted(commands_for())


def test_no_line_of_a_help_is_wider_than_a_terminal_of_80_columns(monkeypatch):
    from accord_tools.cli.command_table import commands_for, commands_of, parser_of

    monkeypatch.setenv("COLUMNS", "80")
    parsers, wide = [parser_of(commands_for())], list[str]()
    while parsers:
        parser = parsers.pop()
        parsers += commands_of(parser).values()
        text = parser.format_help()
        wide += [line for line in text.splitlines() if len(line) > 80]
    assert wide == []


def test_each_command_has_one_line_in_the_help_of_80_columns(monkeypatch):
    from accord_tools.cli.command_table import commands_for, parser_of

    monkeypatch.setenv("COLUMNS", "80")
    lines = parser_of(commands_for()).format_help().splitlines()
    assert [line for line in lines if line.startswith(" " * 4)] == []


def test_the_options_that_choose_an_agent_are_explained_once():
    in_run, once = accord("run", "--help").stdout, accord("help", "agent-options").stdout
    for option in ("--yes", "--clean-env", "--env-file", "--token-file", "--header", "--ca", "--proxy", "--protocol"):
        assert f"  {option}" in once
        assert f"  {option}" not in in_run
    assert "accord help agent-options" in " ".join(in_run.split())


def test_a_command_does_not_load_the_others():
    script = (
        "import sys; from accord_tools.cli import main\n"
        "try: main(['demo', '--help'])\n"
        "finally: print(*sorted(m for m in sys.modules if m.startswith('accord')), 'ssl' in sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True).stdout.split()
    assert "accord_tools.cli.command_table" in loaded
    assert not {
        "accord_tools.cli.run",
        "accord_tools.cli.serve",
        "accord.schema.codec",
        "accord_tools.configuration.agent_settings",
    } & set(loaded)
    assert loaded[-1] == "False"


def test_help_and_version_load_no_event_loop_no_schema_and_no_settings():
    script = (
        "import sys; from accord_tools.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print('loaded', *{'asyncio', 'json', 'logging', 'msgspec', 'hashlib'} & sys.modules.keys())"
    )
    for words in (["run", "--help"], ["--version"]):
        done = subprocess.run([sys.executable, "-c", script, *words], check=False, capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == "loaded"


def test_every_command_of_the_guide_exists():
    """Each command in the page's blocks is parsed, and none is run."""
    from accord_tools.cli import agent_options
    from accord_tools.cli.command_table import commands_for, parser_of

    page = (Path(__file__).parents[4] / "docs" / "command-line.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("accord ")]
    assert len(lines) > 20
    for line in lines:
        before, _ = agent_options.split_agent(shlex.split(line, comments=True)[1:])
        assert parser_of(commands_for()).parse_known_args(before)[1] == [], line
