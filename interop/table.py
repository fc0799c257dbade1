"""`docs/interop.md`, made from the results and the declared outcomes: `python -m interop.table`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from interop.conversation import NOT_OFFERED, PARTS, PASSED, parts_of
from interop.other_clients import OTHER_CLIENTS, SKIPPED
from interop.outcomes import THEIR_FAULT, UNSUPPORTED, declared, rows
from interop.pairs import PAIRS, Pair
from interop.peers import THEIRS
from interop.real_agents import AGENTS, SECOND_VERSION, Lack
from interop.results import Results
from interop.script import behaviours

PAGE = Path(__file__).resolve().parent.parent / "docs" / "interop.md"
YES, NO, UNABLE, BROKEN, UNKNOWN = "✓", "**failed**", "-", "✗", "?"

FILES = ("protocol", "demo", "lasting")

BEGINNING = """\
# Interop

This page shows which SDKs, clients and agents were tested with Accord, and the results. `python -m
interop.table` generates it from the last complete run of the suite, `python -m interop record
--agents`. `make interop` runs the part with SDKs, `make interop-agents` the part with real agents.

Each SDK has a small client and a small agent in `interop/clients` and `interop/agents`, written
with the SDK's own API only. All clients run the same steps from `interop/behaviours` and must get
the same results. The Python and TypeScript SDKs' clients also run our `examples`
(`tests/interop/test_examples_of_ours.py`).

`tests/interop/test_lending.py` tests what our client lends with the same agents, through
`accord.connect` and its services: the agents read and write files, run commands, ask for
permission, and ask the user for forms and URLs.

| sign | means |
|---|---|
| ✓ | as expected |
| - | the SDK has no API for it, or the agent does not offer it |
| ✗ | the other side violates the protocol; the reason is below, with a reproduction without our code |
| ? | not run |
"""


def page(results: Results) -> str:
    return "\n".join(
        [BEGINNING, *_pairs(results), *_reasons(), *_clients(results), *_agents(results), *_agent_reasons()]
    )


def _pairs(results: Results) -> Iterator[str]:
    for file, ours, title in (
        ("protocol", "accord", "Their client, our agent; and our client, our agent"),
        ("protocol", "", "Our client, their agent"),
        ("demo", "demo", "Clients with `accord demo`"),
        ("lasting", "lasting", "Clients with our agent that is restarted"),
    ):
        pairs = [it for it in PAIRS if it.file == file and (it.agent.name == ours if ours else it.agent.name in THEIRS)]
        names = [it.client.title if ours else it.agent.title for it in pairs]
        yield from (f"## {title}", "", _row("", names), _row("---", ["---"] * len(names)))
        for behaviour in behaviours(file):
            yield _row(behaviour.title, [_sign(results, pair, behaviour.name) for pair in pairs])
        yield ""


def _sign(results: Results, pair: Pair, behaviour: str) -> str:
    status = results.pairs.get(pair.key, {}).get(behaviour)
    if status in (None, "passed"):
        return UNKNOWN if status is None else YES
    row = declared(pair.client.name, pair.agent.name, behaviour)
    return NO if row is None else {UNSUPPORTED: UNABLE, THEIR_FAULT: BROKEN}[row.status]


def _reasons() -> Iterator[str]:
    yield from ("## Reasons", "", "| client | agent | behaviour | reason |", "|---|---|---|---|")
    titles = {it.name: it.title for file in FILES for it in behaviours(file)}
    for row in rows():
        what = "; ".join(titles[name] for name in row.behaviours)
        fault = f" (`interop/faults/{row.fault}`)" if row.fault else ""
        yield _row(row.client, [row.agent, what, f"{row.why}{fault}"])
    yield ""


def _clients(results: Results) -> Iterator[str]:
    for client in OTHER_CLIENTS:
        yield from (f"## {client.title}", "", f"With {client.agents} (`tests/interop/{client.tests.name}`).", "")
        yield from (_row("shown", [""]), _row("---", ["---"]))
        for sentence in client.sentences():
            signs = {None: UNKNOWN, PASSED: YES, SKIPPED: UNKNOWN}
            yield _row(sentence, [signs.get(results.clients.get(client.name, {}).get(sentence), NO)])
        yield ""
        for fact in client.found:
            yield f"- {fact}."
        yield from [""] * bool(client.found)


def _agents(results: Results) -> Iterator[str]:
    yield from (
        "## Real agents",
        "",
        "Our client drives each agent without a network, with a model made of rules (`interop/model`). The",
        "agent starts, opens a session, answers in text, writes a file when it is allowed to, is cancelled",
        "while it streams, is restarted, opens the session again, and leaves no process behind. pydantic-acp",
        "and deepagents-acp are frameworks; their agents are the smallest possible (`interop/agents`).",
        "",
        _row("agent", ["version", *PARTS]),
        _row("---", ["---"] * (len(PARTS) + 1)),
    )
    for name, agent in AGENTS.items():
        parts = results.agents.get(name, {})
        yield _row(name, [agent.version, *(_part(parts, agent.lacks, part) for part in PARTS)])
    yield from ("", "The same in version 2 of the protocol, with prompts that are held while a turn runs:", "")
    yield from (_row("agent", ["version", *parts_of(2)]), _row("---", ["---"] * (len(parts_of(2)) + 1)))
    for name in SECOND_VERSION:
        parts, agent = results.agents_in_version_2.get(name, {}), AGENTS[name]
        yield _row(name, [agent.version, *(_part(parts, agent.lacks, part) for part in parts_of(2))])
    yield ""


def _part(parts: Mapping[str, str], lacks: Mapping[str, Lack], part: str) -> str:
    signs = {None: UNKNOWN, PASSED: YES, NOT_OFFERED: UNABLE}
    return signs.get(parts.get(part), BROKEN if part in lacks else NO)


def _agent_reasons() -> Iterator[str]:
    for name, agent in AGENTS.items():
        for what, lack in agent.lacks.items():
            yield f"- {name}, {what}: {lack.why} (`interop/faults/{lack.fault}`)."
    yield ""


def _row(first: str, others: list[str]) -> str:
    return f"| {' | '.join([first, *others])} |"


def write(results: Results) -> None:
    PAGE.write_text(page(results))


if __name__ == "__main__":
    write(Results.read())
