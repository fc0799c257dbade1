"""What a run against a client may do, and how long it may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Profile = Literal["smoke", "default"]
"""`smoke` starts the client three times; `default` about ten times."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of a run."""

    profile: Profile = "default"
    versions: tuple[int, ...] = (1,)
    """The versions of the protocol to judge; of both, those that the client speaks."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that are set for the client."""
    cwd: Path | None = None
    """The folder in which the client runs; None for a scratch folder."""
    start_within: float = 30.0
    """Seconds until the client has started the agent, and until it sends a prompt."""
    answer_within: float = 10.0
    """Seconds for the answer to a request that needs no user."""
    asks_within: float = 5.0
    """Seconds for the answer to a question that a user may be asked: a permission or a form."""
    end_within: float = 10.0
    """Seconds that the client has to end after its turn, or after the agent is gone."""
    late: float = 1.5
    """Seconds by which the agent's answers are late, in the scenario about that."""
    quiet: float = 0.5
    """Seconds without a message after which nothing more is expected."""
