"""Every check, passive and active, by its id."""

from __future__ import annotations

from accord_check.agent.checks import ACTIVE
from accord_check.checks import Check
from accord_check.client.checks import ACTIVE_OF_CLIENT
from accord_check.passive.catalogue import PASSIVE

CHECKS: dict[str, Check] = {**PASSIVE, **ACTIVE, **ACTIVE_OF_CLIENT}
"""Every check by its id, in reading order."""

CHECKS_OF_AGENTS = [check for check in CHECKS.values() if check.of != "client" and check.id not in ACTIVE_OF_CLIENT]
"""The checks that a run against an agent can exercise."""

CHECKS_OF_CLIENTS = [check for check in CHECKS.values() if check.of != "agent"]
"""The checks that a run against a client can exercise."""
