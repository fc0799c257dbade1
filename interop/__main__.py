"""Builds the programs of the suite, or runs it and writes down how it went.

python -m interop build              the SDKs' programs where their tools are, frameworks, acpx, Toad, crow-cli
python -m interop build-rust         Rust's conductor and its examples of version 2
python -m interop record [--agents]  every pair, acpx and Toad (and real agents), into `results.json` and the page
python -m interop record WORD ...    only pairs and clients with one of these names, such as `go`, `demo` or `toad`;
                                     with --agents, real agents of this name too
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.build import Unavailable

from interop import acpx, crow, recordings, table, toad
from interop.frameworks import PACKAGES, python_with
from interop.other_clients import OTHER_CLIENTS
from interop.pairs import PAIRS, Pair
from interop.peers import RUST_V2, SDKS, built, conductor, had
from interop.results import Results


def build() -> None:
    for name, sdk in SDKS.items():
        if sdk.peer is not None:
            attempt(built, name)
    for framework in PACKAGES:
        attempt(python_with, framework)
    attempt(acpx.installed)
    attempt(toad.installed)
    attempt(crow.installed)


def build_rust() -> None:
    attempt(conductor)
    attempt(had, RUST_V2)


def attempt(make: Callable[..., object], *arguments: object) -> None:
    try:
        make(*arguments)
    except Unavailable as missing:
        say(f"left out: {missing}")


def record(chosen: list[str], only: str | None, *, with_agents: bool) -> None:
    for pair in PAIRS:
        if chosen and not any(word in (pair.client.name, pair.agent.name) for word in chosen):
            continue
        try:
            keep(Results(pairs={pair.key: outcomes(pair, only)}))
        except Unavailable as missing:
            say(f"left out: {missing}")
    for client in OTHER_CLIENTS:
        if not chosen or client.name in chosen:
            keep(Results(clients={client.name: client.run(only)}))
    if with_agents:
        keep(Results(agents=asyncio.run(conversations(chosen))))
        keep(Results(agents_in_version_2=asyncio.run(conversations(chosen, 2))))


def keep(fresh: Results) -> None:
    results = Results.read()
    for key, found in fresh.pairs.items():
        results.pairs[key] = results.pairs.get(key, {}) | found
    for client in OTHER_CLIENTS:
        found = results.clients.get(client.name, {}) | fresh.clients.get(client.name, {})
        results.clients[client.name] = {it: found[it] for it in client.sentences() if it in found}
    results.agents |= fresh.agents
    results.agents_in_version_2 |= fresh.agents_in_version_2
    results.write()
    table.write(results)


def outcomes(pair: Pair, only: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for behaviour in pair.behaviours():
        if only and behaviour.name != only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcome = pair.run(behaviour, Path(folder))
        found[behaviour.name] = outcome.status
        say(f"{pair.key}: {behaviour.name}: {outcome.status} {' '.join(outcome.problems)[:200]}")
    return found


async def conversations(chosen: list[str], version: int = 1) -> dict[str, dict[str, str]]:
    from interop.conversation import converse
    from interop.model.server import ModelServer
    from interop.real_agents import AGENTS, SECOND_VERSION, cache_folder

    found: dict[str, dict[str, str]] = {}
    for name, agent in AGENTS.items():
        if (chosen and name not in chosen) or (version == 2 and name not in SECOND_VERSION):
            continue
        with tempfile.TemporaryDirectory() as folder, ModelServer() as model:
            try:
                found[name] = await converse(agent, model, Path(folder), version)
                if version == 1:
                    places = {folder: "/home/me", str(cache_folder()): "/opt", model.url: "MODEL"}
                    recordings.keep(name, Path(folder), places)
            except Unavailable as missing:
                say(f"left out: {missing}")
                continue
        say(f"{name}: {json.dumps(found[name])}")
    return found


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m interop", description=__doc__)
    parser.add_argument("what", choices=["build", "build-rust", "record"])
    parser.add_argument("chosen", nargs="*", metavar="WORD", help="only those with one of these in their name")
    parser.add_argument("--only", metavar="WHAT", help="only this behaviour, or what is shown by these words")
    parser.add_argument("--agents", action="store_true", help="real agents too")
    options = parser.parse_args()
    if options.what == "build":
        build()
    elif options.what == "build-rust":
        build_rust()
    else:
        record(options.chosen, options.only, with_agents=options.agents)


if __name__ == "__main__":
    main()
