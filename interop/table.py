"""`docs/interop.md`, made from the results and the declared outcomes: `python -m interop.table`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
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

Which SDKs, clients and agents were tested with Accord, and the results of the last complete run.
`python -m interop record --agents` runs all of it and rewrites this page.

Of what did not pass, - is not offered by the other side, ✗ violates the protocol, with its fault
reproduced without our code, and ? was not run.
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
    yield from (
        "## SDKs",
        "",
        "Each SDK has a small client and a small agent, written with the SDK's own API only. All take the same",
        "steps, from `initialize` to messages of 10 MB, and must get the same results.",
        "",
    )
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
    yield from ("What did not pass, a client with an agent:", "")
    pairs: dict[str, dict[str, None]] = {}
    for row in rows():
        fault = f" (`interop/faults/{row.fault}`)" if row.fault else ""
        pairs.setdefault(f"{row.why}{fault}", {})[f"{row.client} with {row.agent}"] = None
    for why, found in pairs.items():
        yield f"- {', '.join(found)}: {why}."
    yield ""


def _clients(results: Results) -> Iterator[str]:
    yield from ("## Other clients, proxies and bridges", "")
    yield from (_row("tested", ["with", "passed"]), _row("---", ["---"] * 2))
    for client in OTHER_CLIENTS:
        found, sentences = results.clients.get(client.name, {}), list(client.sentences())
        passed = sum(found.get(it) == PASSED for it in sentences)
        yield _row(client.title, [client.agents, f"{passed} of {len(sentences)}"])
    yield ""
    facts = [f"- {client.title.partition(',')[0]}: {fact}." for client in OTHER_CLIENTS for fact in client.found]
    yield from (*facts, "")


def _agents(results: Results) -> Iterator[str]:
    yield from (
        "## Real agents",
        "",
        "Our client drives each agent without a network, with a model made of rules (`interop/model`), through",
        f"the parts of a conversation: {', '.join(PARTS)}; in version 2 of the protocol also",
        f"{' and '.join(it for it in parts_of(2) if it not in PARTS)}. The agents of pydantic-acp and deepagents-acp,",
        "which are frameworks, are the smallest possible.",
        "",
        _row("agent", ["passed", "in version 2"]),
        _row("---", ["---"] * 2),
    )
    for name, agent in AGENTS.items():
        first = _parts(results.agents.get(name, {}), agent.lacks, PARTS)
        second = _parts(results.agents_in_version_2.get(name, {}), agent.lacks, parts_of(2))
        yield _row(f"{name} {agent.version}", [first, second if name in SECOND_VERSION else ""])
    yield ""


def _parts(parts: Mapping[str, str], lacks: Mapping[str, Lack], names: Collection[str]) -> str:
    """How many parts passed, and the signs of the others."""
    signs = {name: _part(parts, lacks, name) for name in names}
    others = [f"{name} {sign}" for name, sign in signs.items() if sign != YES]
    return ": ".join([f"{len(names) - len(others)} of {len(names)}", *([", ".join(others)] if others else [])])


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
