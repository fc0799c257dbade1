"""Every check, passive and active, by its id."""

from __future__ import annotations

from accord.check.checks import Check
from accord.check.passive.catalogue import PASSIVE

CHECKS: dict[str, Check] = dict(PASSIVE)
"""Every check by its id, in reading order."""
