"""How the last whole run went: `results.json`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

FILE = Path(__file__).resolve().parent / "results.json"


@dataclass
class Results:
    """The status of each behaviour of each pair, of what each other client does, of each part of a conversation."""

    pairs: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    clients: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    agents: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    agents_in_version_2: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    @classmethod
    def read(cls) -> Self:
        return cls(**json.loads(FILE.read_text())) if FILE.exists() else cls()

    def write(self) -> None:
        FILE.write_text(json.dumps(asdict(self), indent=1) + "\n")
