"""Recorded conversations with real agents, made fit to be kept: no paths or accounts of a machine, nothing long.

trace0.jsonl, trace1.jsonl (a run each) ──▶ places renamed, long texts and lists cut ──▶ recorded/NAME.jsonl
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

RECORDED = Path(__file__).resolve().parent / "recorded"
RUNS = ("trace0.jsonl", "trace1.jsonl")
LONGEST_TEXT, LONGEST_LIST = 160, 12


def keep(name: str, folder: Path, places: Mapping[str, str]) -> None:
    """Keep the runs that an agent's conversation left in this folder; `places` are the names to put over paths."""
    RECORDED.mkdir(exist_ok=True)
    lines: list[str] = []
    for run in RUNS:
        if (folder / run).exists():
            lines += [renamed(line, places) for line in (folder / run).read_text().splitlines()]
    (RECORDED / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def renamed(line: str, places: Mapping[str, str]) -> str:
    for place, name in places.items():
        line = line.replace(place, name)
    return json.dumps(shortened(json.loads(line)), ensure_ascii=False, separators=(",", ":"))


def shortened(value: Any) -> Any:
    """The same, with long texts and lists cut."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}..."
    if isinstance(value, list):
        return [shortened(item) for item in cast("list[Any]", value)[:LONGEST_LIST]]
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
