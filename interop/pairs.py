"""Which client goes through which behaviours with which agent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from interop import script
from interop.peers import DEMO, LASTING, OURS, SDKS, THEIRS, Sdk, command
from interop.script import Behaviour, Outcome, run_behaviour


@dataclass(frozen=True)
class Pair:
    """One client and one agent."""

    client: Sdk
    agent: Sdk
    file: str
    """Where their behaviours are."""

    @property
    def key(self) -> str:
        return f"{self.client.name} -> {self.agent.name}"

    def behaviours(self) -> list[Behaviour]:
        return script.behaviours(self.file)

    def run(self, behaviour: Behaviour, folder: Path) -> Outcome:
        """Raises Unavailable where one of them cannot be built."""
        client, agent = command(self.client, "client"), command(self.agent, "agent")
        environment = {**self.client.environment, **self.agent.environment}
        return run_behaviour(behaviour, client, agent, folder, environment)


PAIRS = [
    *(Pair(SDKS[name], OURS, "protocol") for name in SDKS),
    *(Pair(OURS, SDKS[name], "protocol") for name in THEIRS),
    *(Pair(SDKS[name], DEMO, "demo") for name in SDKS),
    *(Pair(SDKS[name], LASTING, "lasting") for name in THEIRS),
]
