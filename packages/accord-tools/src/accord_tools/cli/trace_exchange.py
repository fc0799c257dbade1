"""`accord trace export` and `import`: traces for other people and other programs, and from them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from accord_tools.cli import printing, trace_files
from accord_tools.cli.endings import ENDED_WELL, WrongUsage

if TYPE_CHECKING:
    from accord import TraceEvent
    from accord.trace import TraceHeader

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
    parser.set_defaults(takes_agent=False)
    parser.add_argument("file", nargs="?", metavar="FILE", help=trace_files.HELP)
    parser.add_argument("-o", "--to", metavar="FILE", help="write this file (default: standard output)")
    parser.add_argument(
        "--format",
        choices=("accord", "devtools", "otlp"),
        default="accord",
        help="a trace of Accord, JSON of acp-devtools, or spans of OpenTelemetry (default: %(default)s)",
    )
    parser.add_argument("--shape", action="store_true", help="replace all texts by as many x")
    parser.add_argument("--raw", action="store_true", help="replace nothing")
    parser.add_argument(
        "--content", action="store_true", help="with --format otlp: include prompts, outputs, arguments"
    )


def import_arguments(parser: argparse.ArgumentParser) -> None:
    from accord.trace.importing import FORMATS

    parser.epilog = IMPORT_EPILOG.format(formats=";\n".join(FORMATS.values()))
    parser.set_defaults(takes_agent=False)
    parser.add_argument("file", metavar="FILE", help="the other program's file")
    parser.add_argument("-o", "--to", metavar="FILE", required=True, help="the trace to write")
    parser.add_argument("--session", type=int, metavar="N", help="of a database: the session (default: the newest)")


def export(options: argparse.Namespace) -> int:
    from accord.trace import read, read_header
    from accord.trace.redacting import Redaction

    if options.raw and options.shape:
        raise WrongUsage("--raw and --shape exclude each other; leave one out")
    if options.content and options.format != "otlp":
        raise WrongUsage("--content is for --format otlp")
    path = trace_files.find(options.file)
    with trace_files.readable(path):
        header, events = read_header(path), list(read(path))
    redaction = None
    if not options.raw:
        redaction = Redaction(shape=options.shape)
        events = list(redaction.events(events))
        header = redaction.header(header)
    with _opened(options.to, path) as target:
        _write(target, header, events, options)
    if redaction is not None:
        counts = ", ".join(f"{count:,} {what}" for what, count in sorted(redaction.counts.items()) if count)
        printing.complain(f"accord trace export: replaced {counts or 'nothing'}")
    return ENDED_WELL


def import_(options: argparse.Namespace) -> int:
    from accord import TraceFile, __version__
    from accord.trace import FORMAT, TraceHeader
    from accord.trace.header import now
    from accord.trace.importing import import_trace

    with trace_files.readable(options.file):
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
        raise printing.lost(trace.problem)
    printing.say(f"{len(found.events):,} events of {found.format} are in {options.to}")
    return ENDED_WELL


def _write(target: IO[bytes], header: TraceHeader, events: list[TraceEvent], options: argparse.Namespace) -> None:
    from accord import __version__

    if options.format == "devtools":
        from accord.trace.devtools_export import as_devtools

        document = as_devtools(header, events, exported=datetime.now(UTC), tool=f"accord {__version__}")
        target.write(json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    elif options.format == "otlp":
        from accord.trace import genai
        from accord.trace.entries import entries
        from accord.trace.otlp import as_otlp

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
def _opened(path: str | None, source: str) -> Generator[IO[bytes]]:
    """The file that is written, or standard output; a name that ends with .gz is compressed."""
    from accord.trace.private import open_private

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
        raise printing.lost(error) from error
