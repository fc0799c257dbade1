"""Every client against every agent: does each pair keep the contract, and how fast is it?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.build import Built
from benchmarks.measure import Failed, Side, converse
from benchmarks.peers import DEFAULT_LOOP
from benchmarks.report import columns, figure

PROMPTS = (
    "stream 1000",
    "stream 200 100 nowait",
    "tools 100",
    "read 200",
    "conc 400 20",
    "big 10000000",
    "echo 1000000",
    "permission",
    "fail -32050 not today",
    "throw something broke",
    "wait",
    "hello",
)


@dataclass(frozen=True)
class Cell:
    """One client against one agent."""

    client: str
    agent: str
    rate: float
    """Updates a second of the first prompt."""
    broken: tuple[str, ...]
    """The prompts that did not end as promised, or why there was no end at all."""

    def to_json(self) -> dict[str, Any]:
        return {
            "client": self.client,
            "agent": self.agent,
            "perSec": self.rate,
            "ok": not self.broken,
            "broken": list(self.broken),
        }


def name(side: Side) -> str:
    """A peer's name, and its loop where that is not the usual one."""
    return side.name if side.loop in {"", DEFAULT_LOOP} else f"{side.name}/{side.loop}"


def sides(built: Sequence[Built]) -> list[Side]:
    """Each peer on each of its loops."""
    return [Side(one, loop) for one in built for loop in (one.peer.loops or ("",))]


def pair(client: Side, agent: Side) -> Cell:
    """Run every prompt of the contract once."""
    try:
        lines = converse(client, agent, PROMPTS, unsound=True)
    except Failed as error:
        return Cell(name(client), name(agent), 0.0, (str(error),))
    broken = tuple(f"{line['prompt']}: {line['error'] or line['stopReason']}" for line in lines if not line["ok"])
    return Cell(name(client), name(agent), round(lines[0]["perSec"], 1), broken)


def matrix(built: Sequence[Built], say: Callable[[str], None]) -> list[Cell]:
    """Every pair there is."""
    every = sides(built)
    cells: list[Cell] = []
    for client in every:
        for agent in every:
            cell = pair(client, agent)
            say(f"client {cell.client}, agent {cell.agent}: {'; '.join(cell.broken) or 'ok'}")
            cells.append(cell)
    return cells


def draw(cells: Sequence[Cell]) -> str:
    """Updates a second, a row for each client and a column for each agent, and what went wrong below."""
    agents = list(dict.fromkeys(cell.agent for cell in cells))
    clients = list(dict.fromkeys(cell.client for cell in cells))
    found = {(cell.client, cell.agent): cell for cell in cells}
    rows = [["client \\ agent", *agents]]
    rows += [
        [
            client,
            *(("BROKEN " if (cell := found[client, agent]).broken else "") + figure(cell.rate) for agent in agents),
        ]
        for client in clients
    ]
    wrong = [f"client {cell.client}, agent {cell.agent}: {text}" for cell in cells for text in cell.broken]
    sound = sum(not cell.broken for cell in cells)
    return "\n".join([*columns(rows, [0]), "", f"{sound} of {len(cells)} pairs keep the contract", *wrong])
