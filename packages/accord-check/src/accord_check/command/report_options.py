"""How `accord check` gives its report: at the terminal, and as files for programs and CI systems."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from accord_tools.cli.command import OutputLost, WrongUsage, paint, print_line, terminal_width, write_out

if TYPE_CHECKING:
    from accord_check.report import Report

WIDEST = 110
"""Columns beyond which the report does not grow: long lines are hard to read."""

FILES = {
    "report": "JSON, as --json prints it",
    "junit": "JUnit XML, for the test pages of CI systems",
    "sarif": "SARIF 2.1.0, for code scanning",
    "html": "one self-contained page",
    "markdown": "Markdown, for a job summary",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is printed and written."""
    group = parser.add_argument_group("the report")
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("-v", "--verbose", action="store_true", help="list what passed and what was not exercised")
    group.add_argument("--strict", action="store_true", help="let warnings count as failures")
    group.add_argument("--expect", metavar="FILE", help="the expected failures (TOML); one that passes fails the run")
    group.add_argument(
        "--requirements",
        type=_revision,
        metavar="REVISION",
        help="let only the checks of this revision count (2026-11)",
    )
    group.add_argument(
        "--schema",
        metavar="VERSION",
        type=_schema,
        help="leave out what came with a later version of the protocol's schema (1.15, 1.20)",
    )
    for name, what in FILES.items():
        group.add_argument(f"--{name}", metavar="FILE", help=f"write {what}")


def _revision(word: str) -> str:
    from accord import ConfigurationError
    from accord_check.checks import checks_of

    try:
        checks_of(word)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return word


def _schema(word: str) -> str:
    from accord_check.checks import SCHEMAS

    if word not in SCHEMAS:
        raise argparse.ArgumentTypeError(f"must be {' or '.join(SCHEMAS)}, got {word!r}")
    return word


def give(report: Report, options: argparse.Namespace) -> int:
    """Print the report, write the files that were asked for, and return the exit code."""
    report.strict = options.strict
    if options.schema is not None:
        from accord_check.checks import newer_than

        report.leave_out(newer_than(options.schema), f"newer than schema {options.schema}")
    if options.requirements is not None:
        from accord_check.checks import checks_of

        report.count_only(checks_of(options.requirements), options.requirements)
    if options.expect is not None:
        from accord_check.expected_failures import ExpectationError, apply, read

        try:
            apply(read(options.expect), report)
        except ExpectationError as error:
            raise WrongUsage(str(error)) from error
    _print(report, options)
    for name in FILES:
        if (file := getattr(options, name)) is not None:
            _write(file, _rendered(report, name))
    return report.exit_code


def _print(report: Report, options: argparse.Namespace) -> None:
    if options.json:
        print_line(_rendered(report, "report").rstrip("\n"))
        return
    from accord_check.report_text import as_text

    lines = as_text(report, paint, width=min(terminal_width() or WIDEST, WIDEST), verbose=options.verbose)
    write_out("".join(f"{line}\n" for line in lines))


def _rendered(report: Report, form: str) -> str:
    from accord_check.report_formats import as_html, as_json, as_junit, as_markdown, as_sarif

    forms: dict[str, Callable[[Report], str]] = {
        "report": lambda report: json.dumps(as_json(report), indent=2, ensure_ascii=False) + "\n",
        "junit": as_junit,
        "sarif": as_sarif,
        "html": as_html,
        "markdown": as_markdown,
    }
    return forms[form](report)


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise OutputLost(f"cannot write {file}: {error.strerror}") from error
