"""`accord trace`: records what an editor and an agent say to each other, and looks at recordings."""

from __future__ import annotations

import argparse

from accord import AccordError
from accord_tools.cli import printing, target, trace_exchange, trace_figures, trace_rows
from accord_tools.cli.endings import WrongUsage, one_line
from accord_tools.cli.parser import Command, add_commands
from accord_tools.cli.sizes import size

EPILOG = """\
Name it in an editor's settings in place of the agent's command:
  accord trace -- gemini --acp                  keep a trace; `accord trace list` finds it, also while it grows
  accord trace -o wire.jsonl -- gemini --acp    record in this file
  accord trace -a gemini                        an agent that `accord agents` lists

Then look at it. Without a FILE it is the newest kept trace; a part of a kept file's name is enough:
  accord trace list                             the traces that are kept, and those that grow now
  accord trace show --follow                    what was said and what it means, also while it goes on
  accord trace show wire.jsonl method:prompt    only some of it, see accord trace show --help
  accord trace stats                            latencies, and where the time of each turn went

Bytes, signals and the exit status pass through unchanged, and are recorded by another process: a full disk or a failure
of the recorder does not end the conversation. Recognisable secrets are masked in the trace, which only you can read. It
holds prompts, answers and files all the same."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    group = parser.add_argument_group("recording")
    group.add_argument("-o", "--output", metavar="FILE", help="record in this file; FILE.gz is compressed at the end")
    group.add_argument("--gzip", action="store_true", help="compress each file when it is complete")
    group.add_argument("--secrets", action="store_true", help="do not mask secrets")
    group.add_argument(
        "--max-size", metavar="SIZE", default="256M", help="begin another file at this size (default: %(default)s)"
    )
    group.add_argument(
        "--keep",
        metavar="SIZE",
        default="2G",
        help="remove the oldest kept traces beyond this size in all (default: %(default)s)",
    )
    target.arguments(parser, is_remote=False, about=target.ABOUT_RECORDED)
    add_commands(parser, COMMANDS, "trace_command")
    # Set last: the usage of the commands would begin with it.
    parser.usage = (
        "accord trace [options] -- COMMAND...\n       accord trace show|grep|stats|list|export|import [options] [FILE]"
    )


def run(options: argparse.Namespace) -> int:
    from accord_tools.tap.plan import RecordingPlan
    from accord_tools.tap.tapped import check_writable, end_like, run_tapped

    plan = RecordingPlan(
        path=options.output,
        secrets=options.secrets,
        compress=options.gzip,
        most_file=size("--max-size", options.max_size),
        most_folder=size("--keep", options.keep),
    )
    if not options.agent and options.named is None:  # the default agent is nothing that an editor would start here
        raise WrongUsage("name the agent: accord trace -- COMMAND..., or -a AGENT; see accord trace --help")
    command = target.local_command(options)
    if options.output is not None:
        try:
            check_writable(options.output)
        except AccordError as error:
            raise WrongUsage(f"--output: {error}") from error
    code, problem = run_tapped(command.words, plan, cwd=command.cwd, env=command.env)
    if problem is not None:
        printing.complain(f"accord trace: the recording is incomplete: {one_line(AccordError(problem))}")
    return end_like(code)


COMMANDS = {
    "show": Command("Show the messages of a trace, and what they mean.", trace_rows.show_arguments, trace_rows.show),
    "grep": Command("Search traces for a regular expression.", trace_rows.grep_arguments, trace_rows.grep),
    "stats": Command(
        "Show a trace's latencies, and where the time of each turn went.",
        trace_figures.stats_arguments,
        trace_figures.stats,
    ),
    "list": Command(
        "List the traces that are kept, and those that grow now.", trace_figures.list_arguments, trace_figures.listed
    ),
    "export": Command(
        "Write a trace for other people or programs, without secrets.",
        trace_exchange.export_arguments,
        trace_exchange.export,
    ),
    "import": Command("Convert a trace of another program.", trace_exchange.import_arguments, trace_exchange.import_),
}
