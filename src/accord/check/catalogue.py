"""Every check, passive and active, by its id."""

from __future__ import annotations

from accord.check.agent.checks import ACTIVE
from accord.check.checks import Check
from accord.check.passive.catalogue import PASSIVE

CHECKS: dict[str, Check] = {**PASSIVE, **ACTIVE}
"""Every check by its id, in reading order."""
