"""`Finding`: what is wrong with an entry, by its path, and findings as JSON and SARIF. PURE."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["error", "warning"]

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Finding:
    """One thing that the registry refuses (`error`) or warns of (`warning`)."""

    file: str
    path: str
    """Where in the file, such as `distribution.binary.linux-x86_64.archive`; empty for the whole file."""
    rule: str
    message: str
    level: Level = "error"

    def __str__(self) -> str:
        where = f"{self.file}: {self.path}" if self.path else self.file
        return f"{where}: {self.level}: {self.message} [{self.rule}]"


def as_json(findings: Iterable[Finding]) -> list[dict[str, str]]:
    """The findings as plain values."""
    return [asdict(finding) for finding in findings]


def as_sarif(findings: Iterable[Finding], version: str) -> dict[str, Any]:
    """The findings as SARIF 2.1.0, which code hosts show beside the lines of a change."""
    found = list(findings)
    rules = sorted({finding.rule for finding in found})
    driver = {"name": "accord agents check", "version": version, "rules": [{"id": rule} for rule in rules]}
    return {
        "$schema": SARIF,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(finding) for finding in found]}],
    }


def _result(finding: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": finding.file}}}
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.path}]
    return {
        "ruleId": finding.rule,
        "level": finding.level,
        "message": {"text": f"{finding.path}: {finding.message}" if finding.path else finding.message},
        "locations": [location],
    }
