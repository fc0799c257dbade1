"""Findings of a review: what the agent reports, and how a workflow and people see it.

The agent's words go into lines that GitHub's runner obeys, and into Markdown. So both forms escape them.
"""

import html
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

Severity = Literal["notice", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


class Finding(msgspec.Struct, frozen=True):
    """One problem."""

    file: str
    line: int
    severity: Severity
    title: str
    message: str

    def annotation(self) -> str:
        """The workflow command that shows it beside the line."""
        place = f"file={escaped(self.file, ':,')},line={self.line},title={escaped(self.title, ':,')}"
        return f"::{self.severity} {place}::{escaped(self.message)}"

    def text(self) -> str:
        """One line for a terminal."""
        return f"{self.file}:{self.line}: {self.severity}: {self.title}"


def escaped(text: str, more: str = "") -> str:
    """Text in a workflow command: it cannot end the line and begin another command."""
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def summary(findings: Sequence[Finding], files: int) -> str:
    """The review in Markdown, the worst first."""
    if not findings:
        return f"## Review\n\nNo findings in {files} changed files.\n"
    rows = sorted(findings, key=lambda it: (-SEVERITIES.index(it.severity), it.file, it.line))
    lines = [
        f"| {it.severity} | {cell(it.file)}:{it.line} | **{cell(it.title)}** <br> {cell(it.message)} |" for it in rows
    ]
    head = [f"## Review\n\n{len(findings)} findings in {files} changed files.\n"]
    return "\n".join([*head, "| severity | place | finding |", "|---|---|---|", *lines]) + "\n"


def cell(text: str) -> str:
    """Text in a cell of a table: without HTML, links and images of its own."""
    plain = html.escape(" ".join(text.split()), quote=False)
    for character in "\\|[]!*_`":
        plain = plain.replace(character, f"&#{ord(character)};")
    return plain
