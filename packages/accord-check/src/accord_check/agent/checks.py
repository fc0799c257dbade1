"""The active checks of an agent: each takes a scenario that asks for it."""

from __future__ import annotations

from pathlib import Path

from accord_check.checks import active_checks

ACTIVE = active_checks(Path(__file__).with_suffix(".toml"))
"""Every active check by its id."""

FIRST_VERSION = {"mode.set.any-time"}
"""The active checks that only version 1 can show."""

SECOND_VERSION = {
    "lint.prompt.empty-refused",
    "lint.resume.unknown-cursor",
    "lint.tool.cancel-unknown",
    "lint.close.unknown-succeeds",
}
"""The active checks that only version 2 can show."""
