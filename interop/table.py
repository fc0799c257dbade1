"""`docs/interop.md`, made from the results and the declared outcomes: `python -m interop.table`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from interop.conversation import NOT_OFFERED, PARTS, PASSED, parts_of
from interop.other_clients import OTHER_CLIENTS
from interop.outcomes import THEIR_FAULT, UNSUPPORTED, declared, rows
from interop.pairs import PAIRS, Pair
from interop.real_agents import AGENTS, SECOND_VERSION, Lack
from interop.results import Results
from interop.script import behaviours

PAGE = Path(__file__).resolve().parent.parent / "docs" / "interop.md"
YES, NO, UNABLE, BROKEN, UNKNOWN = "✓", "**failed**", "-", "✗", "?"

FILES = ("protocol", "demo", "lasting")

BEGINNING = """\
# Interop

This page shows which SDKs, clients and agents were tested with Accord, and the results of the last
complete run. `make interop` runs the part with SDKs, `make interop-agents` the part with real agents;
`python -m interop record --agents` runs all of it and rewrites this page.

Each SDK has a small client and a small agent in `interop/clients` and `interop/agents`, written
with the SDK's own API only. All clients run the same steps from `interop/behaviours`, one for each
behaviour, and must get the same results: from `initialize` and logins over every kind of content, update
and question to cancelled turns, restarts, unknown values, and messages of 10 MB.

| sign | means |
|---|---|
| ✓ | as expected |
| - | the SDK has no API for it, or the agent does not offer it |
| ✗ | the other side violates the protocol; its fault is reproduced without our code |
| ? | not run |
"""


def page(results: Results) -> str:
    return "\n".join(
        [BEGINNING, *_pairs(results), *_reasons(), *_clients(results), *_agents(results), *_agent_reasons()]
    )


def _pairs(results: Results) -> Iterator[str]:
    columns = [
        "its client, our agent",
        "our client, its agent",
        "its client, `accord demo`",
        "its client, our agent restarted",
    ]
    yield from ("## SDKs", "", "How many behaviours passed; each that did not is below.", "")
    yield from (_row("SDK", columns), _row("---", ["---"] * len(columns)))
    for peer, title in {it.client.name: it.client.title for it in PAIRS}.items():
        ends = ((peer, "accord"), ("accord", peer), (peer, "demo"), (peer, "lasting"))
        yield _row(title, [_passed(results, *it) for it in ends])
    yield ""


def _passed(results: Results, client: str, agent: str) -> str:
    pairs = [it for it in PAIRS if (it.client.name, it.agent.name) == (client, agent)]
    signs = [_sign(results, pair, it.name) for pair in pairs for it in behaviours(pair.file)]
    return f"{signs.count(YES)} of {len(signs)}" + f", {NO}" * (NO in signs) if signs else ""


def _sign(results: Results, pair: Pair, behaviour: str) -> str:
    status = results.pairs.get(pair.key, {}).get(behaviour)
    if status in (None, "passed"):
        return UNKNOWN if status is None else YES
    row = declared(pair.client.name, pair.agent.name, behaviour)
    return NO if row is None else {UNSUPPORTED: UNABLE, THEIR_FAULT: BROKEN}[row.status]


def _reasons() -> Iterator[str]:
    yield from ("What did not pass:", "", "| client | agent | behaviour | reason |", "|---|---|---|---|")
    titles = {it.name: it.title for file in FILES for it in behaviours(file)}
    for row in rows():
        what = "; ".join(titles[name] for name in row.behaviours)
        fault = f" (`interop/faults/{row.fault}`)" if row.fault else ""
        yield _row(row.client, [row.agent, what, f"{row.why}{fault}"])
    yield ""


def _clients(results: Results) -> Iterator[str]:
    yield from ("## Other clients, proxies and bridges", "", "Each test is a sentence that says what it shows.", "")
    yield from (_row("tested", ["with", "tests", "passed"]), _row("---", ["---"] * 3))
    for client in OTHER_CLIENTS:
        found, sentences = results.clients.get(client.name, {}), list(client.sentences())
        passed = sum(found.get(it) == PASSED for it in sentences)
        yield _row(client.title, [client.agents, f"`{client.tests.name}`", f"{passed} of {len(sentences)}"])
    yield ""
    facts = [f"- {client.title.partition(',')[0]}: {fact}." for client in OTHER_CLIENTS for fact in client.found]
    yield from (*facts, "")


def _agents(results: Results) -> Iterator[str]:
    yield from (
        "## Real agents",
        "",
        "Our client drives each agent without a network, with a model made of rules (`interop/model`).",
        "pydantic-acp and deepagents-acp are frameworks; their agents are the smallest possible.",
        "",
        _row("agent", ["version", *PARTS]),
        _row("---", ["---"] * (len(PARTS) + 1)),
    )
    for name, agent in AGENTS.items():
        parts = results.agents.get(name, {})
        yield _row(name, [agent.version, *(_part(parts, agent.lacks, part) for part in PARTS)])
    yield from ("", "In version 2 of the protocol:", "")
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
