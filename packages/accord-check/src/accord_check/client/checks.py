"""The active checks of a client: each takes a scenario that asks for it."""

from __future__ import annotations

from pathlib import Path

from accord_check.checks import active_checks

ACTIVE_OF_CLIENT = active_checks(Path(__file__).with_suffix(".toml"))
"""Every check that only the scenarios for clients have, by its id."""
