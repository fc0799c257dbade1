"""Every check, passive and active, by its id."""

from __future__ import annotations

from accord.check.agent.checks import ACTIVE
from accord.check.checks import Check
from accord.check.client.checks import ACTIVE_OF_CLIENT
from accord.check.passive.catalogue import PASSIVE

CHECKS: dict[str, Check] = {**PASSIVE, **ACTIVE, **ACTIVE_OF_CLIENT}
"""Every check by its id, in reading order."""
