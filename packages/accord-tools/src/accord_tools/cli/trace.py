"""`accord trace`: records the messages between an editor and an agent, and shows recordings."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from accord import AccordError
from accord_tools.cli.agent_options import ABOUT_RECORDED, agent_arguments, local_command
from accord_tools.cli.command_table import Command, add_commands, option
from accord_tools.cli.console import output_error, print_error, print_json, print_line, print_table
from accord_tools.cli.exit_codes import WrongUsage
from accord_tools.cli.trace_options import TRACE_HELP, find_trace, readable_trace, record_agent, size_option
from accord_tools.presentation.quantities import counted, seconds_in_words, size_in_words

if TYPE_CHECKING:
    from accord import TraceEvent
    from accord.trace import TraceHeader
    from accord.trace.statistics import MethodFigures, TraceFigures, TurnFigures, Unanswered
    from accord_tools.tap import KeptTrace

# Figures, and the list of traces


MOST_OPEN = 20
"""Requests without an answer that are listed."""


def stats_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help=TRACE_HELP)
    option(parser, "--json", "print JSON")


def list_arguments(parser: argparse.ArgumentParser) -> None:
    option(parser, "--json", "print JSON")


def run_stats(options: argparse.Namespace) -> None:
    from accord.trace import read, read_header
    from accord.trace.statistics import figures
    from accord.trace.trace_entries import entries

    path = find_trace(options.file)
    with readable_trace(path):
        found = figures(entries(read(path)), read_header(path).role)
    if options.json:
        print_json(_plain_figures(found))
        return
    _print_figures(found)


def run_list(options: argparse.Namespace) -> None:
    from accord_tools.tap import kept_traces, traces_folder

    kept = kept_traces()
    if options.json:
        import msgspec

        print_json(msgspec.to_builtins(kept))
    elif not kept:
        print_line("No trace is kept yet. Record one: accord trace -- COMMAND...")
    else:
        print_table(("CHANGED", "SIZE", "FILE", "AGENT"), [_trace_row(trace) for trace in kept], cut=3)
        print_line(f"folder: {traces_folder()}")


def _print_figures(found: TraceFigures) -> None:
    rest = [counted(*it) for it in _figure_counts(found) if it[0]]
    print_line(f"{found.incoming + found.outgoing:,} messages in {found.seconds:.1f} s: {', '.join(rest)}")
    if found.methods:
        print_line("")
        rows = [_method_row(it) for it in sorted(found.methods.values(), key=lambda it: -sum(it.durations))]
        print_table(("METHOD OR UPDATE", "COUNT", "ERRORS", "P50", "P95", "MAX", "BYTES"), rows)
    if found.turns:
        print_line("")
        head = ("TURN", "TOOK", "FIRST", "SILENCE", "USER", "CLIENT", "TOOLS", "END", "PROMPT")
        print_table(head, [_turn_row(number, it) for number, it in enumerate(found.turns, 1)])
        print_line("FIRST: until an update. SILENCE: the longest. USER, CLIENT: questions to them.")
    if found.unanswered:
        print_line("")
        heads = ("WITHOUT AN ANSWER", "ASKED BY", "WAITS FOR", "ASKED AT", "OPEN FOR", "MESSAGE")
        print_table(heads, [_open_row(it) for it in found.unanswered[:MOST_OPEN]])
        if len(found.unanswered) > MOST_OPEN:
            print_line(f"and {len(found.unanswered) - MOST_OPEN:,} more")


def _figure_counts(found: TraceFigures) -> list[tuple[int, str, str]]:
    return [
        (len(found.sessions), "session", ""),
        (len(found.turns), "turn", ""),
        (found.errors, "error", ""),
        (found.malformed, "malformed message", ""),
        (found.stderr, "line of standard error", "lines of standard error"),
        (len(found.unanswered), "request without an answer", "requests without an answer"),
    ]


def _method_row(it: MethodFigures) -> tuple[str, ...]:
    times = (it.percentile(50), it.percentile(95), it.percentile(100))
    return (it.method, f"{it.messages:,}", str(it.errors or ""), *map(_took, times), f"{it.size:,}")


def _turn_row(number: int, it: TurnFigures) -> tuple[str, ...]:
    took = None if it.ended is None else it.ended - it.began
    times = map(_took, (took, it.first_update, it.longest_silence, it.user or None, it.client or None))
    return (str(number), *times, str(it.tools or ""), it.outcome or "open", it.prompt)


def _took(seconds: float | None) -> str:
    return "" if seconds is None else seconds_in_words(seconds)


def _open_row(it: Unanswered) -> tuple[str, ...]:
    return (it.method, it.asked_by, it.waits_for, f"{it.since:.1f} s", seconds_in_words(it.waited), f"#{it.number:,}")


def _plain_figures(found: TraceFigures) -> dict[str, Any]:
    import msgspec

    names = ("events", "seconds", "incoming", "outgoing", "errors", "malformed", "stderr", "sessions")
    return {
        **{name: getattr(found, name) for name in names},
        "unanswered": [{"t": it.since, **msgspec.to_builtins(it)} for it in found.unanswered],
        "methods": [
            {
                "method": it.method,
                "messages": it.messages,
                "bytes": it.size,
                "errors": it.errors,
                **{f"p{percent}": it.percentile(percent) for percent in (50, 95, 100)},
            }
            for it in found.methods.values()
        ],
        "turns": [msgspec.to_builtins(it) for it in found.turns],
    }


def _trace_row(trace: KeptTrace) -> tuple[str, ...]:
    changed = datetime.fromtimestamp(trace.changed, UTC).astimezone()
    command = trace.live.command if trace.live is not None else trace.header.command if trace.header else ()
    described = shlex.join([Path(word).name for word in command[:1]] + list(command[1:])) or (
        trace.header.peer if trace.header else "not a trace"
    )
    is_kept = Path(trace.path).parent.name == "traces"
    state = "live" if trace.live is not None else "damaged" if trace.header is None else f"{changed:%m-%d %H:%M}"
    return state, size_in_words(trace.size), Path(trace.path).name if is_kept else trace.path, described


# Export and import


EXPORT_EPILOG = """\
Other people may read what you export, so secrets are replaced: values of env and headers, members such as apiKey,
secret parts of URLs, tokens in all texts, and options such as --api-key in commands. The rest of the conversation
stays: prompts, answers and files. --shape replaces all texts by as many x. What was replaced is counted on standard
error, and in the file. --raw replaces nothing.

examples:
  accord trace export -o for-an-issue.jsonl
  accord trace export wire.jsonl --shape -o shape.jsonl.gz
  accord trace export wire.jsonl --format devtools -o wire.json
  accord trace export wire.jsonl --format otlp | curl -H 'Content-Type: application/json' --data-binary @- \\
      http://localhost:4318/v1/traces"""

IMPORT_EPILOG = """\
Reads {formats}.

examples:
  accord trace import session.json -o wire.jsonl
  accord trace import ~/.acp-devtools/sessions.db --session 3 -o wire.jsonl"""


def export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXPORT_EPILOG
    parser.add_argument("file", nargs="?", metavar="FILE", help=TRACE_HELP)
    option(parser, "-o --to FILE", "write this file (default: standard output)")
    option(
        parser,
        "--format",
        "a trace of Accord, JSON of acp-devtools, or spans of OpenTelemetry (default: %(default)s)",
        choices=("accord", "devtools", "otlp"),
        default="accord",
    )
    option(parser, "--shape", "replace all texts by as many x")
    option(parser, "--raw", "replace nothing")
    option(parser, "--content", "with --format otlp: include prompts, outputs, arguments")


def import_arguments(parser: argparse.ArgumentParser) -> None:
    from accord.trace.foreign_traces import FORMATS

    parser.epilog = IMPORT_EPILOG.format(formats=";\n".join(FORMATS.values()))
    parser.add_argument("file", metavar="FILE", help="the other program's file")
    option(parser, "-o --to FILE", "the trace to write", required=True)
    option(parser, "--session N", "of a database: the session (default: the newest)", type=int)


def run_export(options: argparse.Namespace) -> None:
    from accord.trace import read, read_header
    from accord.trace.trace_redaction import Redaction

    if options.raw and options.shape:
        raise WrongUsage("--raw and --shape exclude each other; leave one out")
    if options.content and options.format != "otlp":
        raise WrongUsage("--content is for --format otlp")
    path = find_trace(options.file)
    with readable_trace(path):
        header, events = read_header(path), list(read(path))
    redaction = None
    if not options.raw:
        redaction = Redaction(shape=options.shape)
        events = list(redaction.events(events))
        header = redaction.header(header)
    with _export_target(options.to, path) as target:
        _write_trace(target, header, events, options)
    if redaction is not None:
        counts = ", ".join(f"{count:,} {what}" for what, count in sorted(redaction.counts.items()) if count)
        print_error(f"accord trace export: replaced {counts or 'nothing'}")


def run_import(options: argparse.Namespace) -> None:
    from accord import TraceFile, __version__
    from accord.trace import FORMAT, TraceHeader
    from accord.trace.foreign_traces import import_trace
    from accord.trace.trace_file import now

    with readable_trace(options.file):
        found = import_trace(options.file, session=options.session)
    header = TraceHeader(
        FORMAT,
        found.started or now(),
        found.role,
        tool=f"accord {__version__}",
        command=found.command,
        imported=found.format,
    )
    try:
        trace = TraceFile(options.to, header=header, began=0.0)
    except OSError as error:
        raise WrongUsage(f"--to: cannot write {options.to}: {error.strerror}") from error
    for event in found.events:
        trace(event)
    trace.close()
    if trace.problem is not None:
        raise output_error(trace.problem)
    print_line(f"{len(found.events):,} events of {found.format} are in {options.to}")


def _write_trace(target: IO[bytes], header: TraceHeader, events: list[TraceEvent], options: argparse.Namespace) -> None:
    from accord import __version__

    if options.format == "devtools":
        from accord.trace.foreign_traces import as_devtools

        document = as_devtools(header, events, exported=datetime.now(UTC), tool=f"accord {__version__}")
        target.write(json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    elif options.format == "otlp":
        from accord.trace import genai
        from accord.trace.otlp import as_otlp
        from accord.trace.trace_entries import entries

        content = options.content or os.environ.get(genai.CAPTURE, "").lower() == "true"
        document = as_otlp(header, entries(events), content=content)
        target.write(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    else:
        from accord import TraceFile

        trace = TraceFile(target, secrets=not header.masked, header=header, began=0.0)
        for event in events:
            trace(event)
        if trace.problem is not None:
            raise trace.problem


@contextmanager
def _export_target(path: str | None, source: str) -> Generator[IO[bytes]]:
    """The file that is written, or standard output; a name that ends with .gz is compressed."""
    from accord.trace.trace_file import open_private

    try:
        if path is None:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        if Path(path).exists() and Path(path).samefile(source):
            raise WrongUsage(f"--to {path} is the trace itself; choose another file")
        with open_private(path) as file:
            if not path.endswith(".gz"):
                yield file
                return
            import gzip

            with gzip.GzipFile(fileobj=file, mode="wb") as packed:
                yield cast("IO[bytes]", packed)
    except OSError as error:
        raise output_error(error) from error


EPILOG = """\
Name it in an editor's settings in place of the agent's command:
  accord trace -- gemini --acp                  keep a trace; `accord trace list` finds it, even while it grows
  accord trace -o wire.jsonl -- gemini --acp    record in this file
  accord trace -a gemini                        an agent that `accord agents` lists

Then look at it. Without a FILE it is the newest kept trace; a part of a kept file's name is enough:
  accord trace list                             the kept traces, and those being recorded
  accord trace show --follow                    the messages and their meaning, even while it grows
  accord trace show wire.jsonl method:prompt    only some messages, see accord trace show --help
  accord trace stats                            latencies, and where the time of each turn went

Bytes, signals and the exit status pass through unchanged, and are recorded by another process: a full disk or a failure
of the recorder does not end the conversation. Recognisable secrets are masked in the trace, which only you can read. It
holds prompts, answers and files all the same."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    group = parser.add_argument_group("recording")
    option(group, "-o --output FILE", "record in this file; FILE.gz is compressed at the end")
    option(group, "--gzip", "compress each file when it is complete")
    option(group, "--secrets", "do not mask secrets")
    option(group, "--max-size SIZE", "begin another file at this size (default: %(default)s)", default="256M")
    option(
        group,
        "--keep SIZE",
        "remove the oldest kept traces beyond this size in all (default: %(default)s)",
        default="2G",
    )
    agent_arguments(parser, is_remote=False, about=ABOUT_RECORDED)
    add_commands(parser, COMMANDS, "trace_command")
    # Set last: the usage of the commands would begin with it.
    parser.usage = (
        "accord trace [options] -- COMMAND...\n       accord trace show|grep|stats|list|export|import [options] [FILE]"
    )


def run(options: argparse.Namespace) -> int:
    from accord_tools.tap.recorder_protocol import RecordingPlan
    from accord_tools.tap.tapped_agent import check_writable

    plan = RecordingPlan(
        path=options.output,
        secrets=options.secrets,
        compress=options.gzip,
        most_file=size_option("--max-size", options.max_size),
        most_folder=size_option("--keep", options.keep),
    )
    if not options.agent and options.named is None:  # the default agent is not one that an editor would start here
        raise WrongUsage("name the agent: accord trace -- COMMAND..., or -a AGENT; see accord trace --help")
    command = local_command(options)
    if options.output is not None:
        try:
            check_writable(options.output)
        except AccordError as error:
            raise WrongUsage(f"--output: {error}") from error
    return record_agent("accord trace", command, plan)


_COMMANDS = (
    ("show", "trace_rows", "Show the messages of a trace, and what they mean."),
    ("grep", "trace_rows", "Search traces for a regular expression."),
    ("stats", "trace", "Show a trace's latencies, and where the time of each turn went."),
    ("list", "trace", "List the kept traces, and those being recorded."),
    ("export", "trace", "Write a trace for other people or programs, without secrets."),
    ("import", "trace", "Convert a trace of another program."),
)

COMMANDS = {name: Command.of_module(f"accord_tools.cli.{module}", summary, name) for name, module, summary in _COMMANDS}
