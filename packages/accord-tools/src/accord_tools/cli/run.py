"""`accord run`: one turn with an agent, for people and scripts.

This file owns the options and the prompt; `TurnRunner` runs the turn, and a `View` shows it. The result is on stdout.
An error is one line on stderr; a trace that could not be written has its own line. The exit code is the outcome of the
turn, and no process of the agent is left.

    accord run                    the prompt is what comes on standard input, until its end
    git diff | accord run "Why?"  what comes is a second block of the prompt

The second form reads only input that somebody sent: a file or a pipe, never a terminal or /dev/null. A pipe may be one
with which the program was started by chance, as jobs of cron and CI are, and that nobody will ever write to or close.
So the first byte has `FIRST_BYTE_WITHIN` seconds to come, and the command continues without it and reports that. Once
it has come, the rest is meant: past the limit it is an error, because half of a diff is not what the user asked about.
Reading has its own thread, which a read that never returns does not keep alive.
"""

from __future__ import annotations

import argparse
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord import AccordError, Timeout
from accord.installation import missing_extra
from accord_tools.cli.agent_options import agent_arguments, protocol_versions
from accord_tools.cli.command_table import option
from accord_tools.cli.console import output_error, print_error
from accord_tools.cli.exit_codes import ENDED_WELL, INTERRUPTED, UNWRITABLE, OutputLost, WrongUsage
from accord_tools.cli.permission_options import NON_INTERACTIVE, permission_arguments, policy_of
from accord_tools.cli.session_options import budget_arguments, prepare_session, read_mcp_file, session_arguments
from accord_tools.cli.trace_options import trace_arguments

if TYPE_CHECKING:
    import asyncio

    from accord_tools.cli.events import WireUpdates
    from accord_tools.cli.output import Output
    from accord_tools.cli.permission_options import View
    from accord_tools.cli.run_turn import TurnRunner


LARGEST_INPUT = 10_000_000
"""Bytes: more is no prompt for any model."""
FIRST_BYTE_WITHIN = 5.0
"""Seconds in which a pipe must send its first byte: programs like `git diff` take a moment."""


def whole_input() -> str:
    """Return all of standard input, however long that takes."""
    if os.isatty(0):
        print_error("accord run: type the prompt; Ctrl-D on an empty line ends it")
    return InputReader().text() if _input_mode() is not None else ""


def piped_input(within: float) -> str | None:
    """Return the text of a file or pipe at standard input; None for anything else, and for a pipe without a writer.

    Raises Timeout if a pipe that has begun does not end within this many seconds.
    """
    if (mode := _input_mode()) is None or stat.S_IFMT(mode) not in (stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK):
        return None
    reader = InputReader()
    if not reader.has_begun(FIRST_BYTE_WITHIN):
        print_error(
            f"accord run: nothing came on standard input in {FIRST_BYTE_WITHIN:g} s, so the prompt goes without it"
        )
        return None
    return reader.text(within)


def _input_mode() -> int | None:
    """Return the kind of file of standard input; None if the program that started us has closed it."""
    try:
        return os.fstat(0).st_mode
    except OSError:
        return None


class InputReader:
    """Reads standard input in a thread."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._begun, self._ended = threading.Event(), threading.Event()
        threading.Thread(target=self._read, name="accord standard input", daemon=True).start()

    def has_begun(self, within: float) -> bool:
        """Wait this many seconds for the first byte or the end."""
        return self._begun.wait(within)

    def text(self, within: float | None = None) -> str:
        if not self._ended.wait(within):
            raise Timeout(f"standard input did not end within --start-timeout {within:g}")
        if len(self._data) > LARGEST_INPUT:
            raise WrongUsage(
                f"standard input has more than {LARGEST_INPUT:,} bytes; name a file that the agent can read"
            )
        return self._data.decode("utf-8", "replace")

    def _read(self) -> None:
        try:
            with suppress(OSError):  # a folder, or a stream that cannot be read
                while len(self._data) <= LARGEST_INPUT and (chunk := os.read(0, 65536)):
                    self._data += chunk
                    self._begun.set()
        finally:
            self._begun.set()
            self._ended.set()


class SchemaFile:
    """A JSON Schema in a file, as a type for `session.prompt(output=...)`.

    It has the two methods of pydantic models. Raises WrongUsage for a file that is no JSON Schema.
    """

    def __init__(self, path: str) -> None:
        import json  # help needs none of it

        try:
            from jsonschema import SchemaError, validators
        except ModuleNotFoundError as missing:
            raise missing_extra("cli", "--schema") from missing
        self.__name__ = path
        try:
            self._schema: Any = json.loads(Path(path).read_text(encoding="utf-8"))
            kind: Any = validators.validator_for(self._schema)
            kind.check_schema(self._schema)
        except OSError as error:
            raise WrongUsage(f"--schema {path}: {error.strerror or error}") from None
        except ValueError as error:
            raise WrongUsage(f"--schema {path}: this is not JSON: {error}") from None
        except SchemaError as error:
            raise WrongUsage(f"--schema {path}: this is not a JSON Schema: {error.message}") from None
        self._validator: Any = kind(self._schema)

    def model_json_schema(self) -> Any:
        """The schema."""
        return self._schema

    def model_validate_json(self, text: str) -> Any:
        """The value in this JSON; raises ValueError, with the path, if it does not fit."""
        import json

        value = json.loads(text)
        wrong = sorted(self._validator.iter_errors(value), key=lambda it: len(it.path))
        if wrong:
            raise ValueError("; ".join(f"{it.message} - at `{it.json_path}`" for it in wrong[:5]))
        return value


EPILOG = """\
examples:
  accord run "Say hello"                            use the built-in agent
  accord run "What is in here?" -- gemini --acp     start an agent by command
  accord run "Hi" -- https://agents.example/acp     connect to an agent by URL
  git diff | accord run "Review this" -- my-agent   send piped text after the prompt
  accord run < prompt.txt                           read the whole prompt from a file
  accord run "What is this?" --attach shot.png      send a file with it
  accord run "Hi" -a gemini                         use an agent that `accord agents` lists
  accord run "Hi" -- my_agent.py                    start an agent of a Python file
  accord run "Go on" --continue                     continue the latest session of this folder
  accord run "Go on" --session 3f2a -- my-agent     continue a session; the start of its id is enough
  accord run "Fix it" --allow auto --json -- my-agent | jq -c .
  accord run "List the tests" --schema list.json -- my-agent | jq .

output:
  The answer goes to standard output. At a terminal, the work is shown beside it on
  standard error: tool calls, changes, plans, thoughts, usage. In a pipe, --verbose
  shows it, too. Text of an agent cannot act on the terminal; pipes get it unchanged.
  NO_COLOR=1 turns colours off, FORCE_COLOR=1 turns them on.

--allow says what the agent may do without a question:
  none  nothing; it gets no files and no commands
  ask   read files in the session's folder (the default)
  edit  change files there, too
  auto  run commands, and everything else
You are asked about everything else at the terminal. Without a terminal, it is
refused, and a message says which option would allow it. The rules of --policy FILE
are applied first.

exit codes:
  0    the turn ended normally
  1    the agent failed, or its answer does not fit --schema
  2    wrong usage
  3    a timeout passed
  4    the turn ended for another reason (max_tokens, refusal, --max-cost, ...)
  5    standard output or standard error could not be written
  6    permission was refused, with --non-interactive fail
  130  interrupted

An agent with a URL gets the variable ACCORD_TOKEN as its bearer token.
Ctrl-C asks the agent to stop. Press it again to end the agent at once.
The guide is docs/command-line.md."""

IDLE = 600.0
"""The default of `--idle-timeout`, in seconds: an agent that hangs must not hang us."""
START = 120.0
"""The default of `--start-timeout`, in seconds: wrappers such as npx may have to fetch the agent first."""
FLUSH = 0.5
"""Seconds that the last output has when the command was interrupted."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.usage = "accord run [options] [PROMPT] [-a NAME | -- COMMAND...]"
    parser.add_argument(
        "prompt",
        nargs="?",
        default="-",
        metavar="PROMPT",
        help="the prompt; a file or pipe at standard input is sent after it, or is the prompt if this is - or absent",
    )
    option(
        parser,
        "--attach FILE...",
        "send this file with the prompt, as an image, a sound or text by its type; may be repeated",
    )
    option(session_arguments(parser), "--replay", "with --json: print the history of the continued session first")
    _output_options(parser.add_argument_group("output"))
    _permission_options(parser.add_argument_group("permission"))
    _limit_options(parser.add_argument_group("limits"))
    agent_arguments(parser)


def _output_options(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    option(group, "--json", "print one JSON object per line: each update as received, then the result")
    option(
        group,
        "--schema FILE",
        "ask for JSON that fits the JSON Schema in this file, and print nothing else on standard output",
    )
    option(group, "-v --verbose", "show the work with its changes and outputs, also in a pipe")
    option(group, "--stderr", "show everything that the agent prints on standard error")
    option(group, "-q --quiet", "print only the answer, errors and refusals")
    trace_arguments(group)


def _permission_options(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    permission_arguments(group)
    option(
        group,
        "--non-interactive",
        "ask no questions; after a refusal continue (deny), or end the turn with exit code 6 (fail)",
        choices=NON_INTERACTIVE,
    )


def _limit_options(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    option(group, "--timeout S", "stop after this many seconds in total", type=_seconds)
    budget_arguments(group)
    option(
        group,
        "--start-timeout S",
        "stop if the agent has not opened the session after this many seconds (default: %(default)g)",
        type=_seconds,
        default=START,
    )
    option(
        group,
        "--idle-timeout S",
        "stop after this many seconds without a message from the agent, from its start on "
        "(default: %(default)g; 0: never)",
        type=_seconds,
        default=IDLE,
    )


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (seconds := float(text)) < float("inf"):
            return seconds
    raise argparse.ArgumentTypeError(f"must be a number of seconds from 0 on, got {text!r}")


def run(options: argparse.Namespace) -> int:
    from accord import run as run_loop

    if not options.debug:
        # The one line on stderr has the essentials; the library's warnings would repeat it.
        import logging

        logging.getLogger("accord").addHandler(logging.NullHandler())
        logging.getLogger("accord").propagate = False
    try:
        prepare_session(options)
        _check(options)
    except AccordError as error:
        if options.json:
            from accord_tools.cli.events import report

            report(error)
        raise
    return run_loop(_run(options))


def _check(options: argparse.Namespace) -> None:
    """Report wrong usage before an agent is started."""
    if options.replay and not ((options.session or options.continues) and options.json):
        raise WrongUsage("--replay needs --json, and --session ID or --continue")
    if options.json and options.schema:
        raise WrongUsage("--json and --schema exclude each other; leave one out")
    if options.quiet and options.verbose:
        raise WrongUsage("--quiet and --verbose exclude each other; leave one out")
    policy_of(options)
    protocol_versions(options)
    options.servers = read_mcp_file(options.mcp, options.cwd) if options.mcp else []
    if options.schema:
        options.schema = SchemaFile(options.schema)
    options.content = _content(options)


def _content(options: argparse.Namespace) -> list[str | Path]:
    """Return the prompt: the user's text, standard input, and the attached files."""
    files = [Path(file).absolute() for file in options.attach]
    for given, file in zip(options.attach, files, strict=True):
        if not file.is_file():
            raise WrongUsage(f"--attach {given}: no such file")
    if options.prompt == "-":
        text, piped = whole_input(), None
    else:
        text = options.prompt
        piped = piped_input(options.start_timeout) if text.strip() else None
    if not text.strip():
        raise WrongUsage("PROMPT must not be empty; write it, or send it to standard input")
    # Some agents join the blocks without a space.
    return [text, *([f"\nStandard input:\n{piped}"] if piped else []), *files]


async def _run(options: argparse.Namespace) -> int:
    import asyncio

    from accord_tools.cli.output import Output
    from accord_tools.cli.run_turn import TurnRunner, interrupts

    with interrupts() as control:
        output = Output(_duplicate(1) or os.open(os.devnull, os.O_WRONLY), _duplicate(2))
        view, early = _view(options, output)
        runner = TurnRunner(options, output, view, control, early)
        turn = asyncio.ensure_future(runner.play())
        closed = asyncio.ensure_future(output.closed.wait())
        try:
            await asyncio.wait([turn, closed], return_when=asyncio.FIRST_COMPLETED)
            problem = None if output.problem is None else output_error(output.problem)
            if problem is not None and (not turn.done() or isinstance(problem, OutputLost)):
                raise problem
            return _code(turn.result(), output)
        except asyncio.CancelledError:
            if control.count:
                return INTERRUPTED
            raise
        finally:
            closed.cancel()
            await _end(turn, runner)
            view.stop()
            with suppress(TimeoutError):
                await asyncio.wait_for(output.flush(), FLUSH)


def _view(options: argparse.Namespace, output: Output) -> tuple[View, WireUpdates | None]:
    """Return the view of the turn, and for JSON the collector of updates before the prompt."""
    if options.json:
        from accord_tools.cli.events import Events, WireUpdates

        early = WireUpdates()
        return Events(output, early), early
    from accord_tools.cli.console import streams
    from accord_tools.cli.display import Display

    both = streams()
    display = Display(
        output,
        both,
        str(Path(options.cwd).absolute()),
        shows_work=not options.quiet and (both.aside.is_terminal or options.verbose),
        details=options.verbose,
        is_quiet=options.quiet,
        shows_answer=not options.schema,
    )
    return display, None


def _code(code: int, output: Output) -> int:
    """Return the exit code of the turn; standard error that cannot be written is an error unless its reader has closed
    it.
    """
    if output.problem_aside is None or isinstance(output_error(output.problem_aside), BrokenPipeError):
        return code
    return UNWRITABLE if code == ENDED_WELL else code


async def _end(turn: asyncio.Future[int], runner: TurnRunner) -> None:
    """Wait for the turn to clean up, however often the wait itself is interrupted."""
    import asyncio

    if turn.done():
        return
    runner.hurry()
    turn.cancel()
    while not turn.done():
        try:
            await asyncio.wait([turn])
        except asyncio.CancelledError:
            continue


def _duplicate(fd: int) -> int | None:
    """Return our own descriptor for this stream; None if the program that started us has closed it."""
    try:
        return os.dup(fd)
    except OSError:
        return None
