"""The victims and the honest peers of a run: started, watched, measured, ended."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.attack.bounds import MIB, Bounds
from tests.attack.measuring import forget_peak, memory_of
from tests.attack.puppet import Puppet
from tests.attack.victim_client import IN_MEMORY

WARMING = 2.0
"""Seconds that honest peers work before the base is measured."""

AGAIN = 0.25
"""Seconds between two measurements while a victim settles."""


class Field:
    """A server with two hosts and a client that are attacked, and honest peers of them."""

    def __init__(self, folder: Path, bounds: Bounds) -> None:
        self.store = str(folder / "store.sqlite3")
        self.bounds = bounds
        self._folder = folder
        self._base: dict[str, dict[str, Any]] = {}
        self._turns = 0
        self._allowed: dict[str, int] = {}

    async def start(self, seed: int) -> None:
        certificate, key = certified(self._folder)
        self.server = await self._start("server", "tests.attack.victim_server", self.store, str(certificate), str(key))
        where = await self.server.ask("where")
        urls, self.hosts = where["urls"], where["hosts"]
        self.ports = {name: urlsplit(url).port for name, url in urls.items()}
        everywhere = [urls["plain"], urls["tls"], urls["second"], urls["command"], urls["chain"]]
        honest = [*everywhere, *(url.replace("http", "ws", 1) for url in everywhere)]
        honest += [f"s3cret {urls['front']}"]  # every request is forwarded to the other host
        trusting = {"SSL_CERT_FILE": str(certificate)}
        arguments = (str(seed), json.dumps(honest), "[]")
        self.honest = await self._start("honest peers", "tests.attack.victim_client", *arguments, **trusting)
        in_memory, process = IN_MEMORY + self.store, [sys.executable, "-m", "tests.attack.honest_agent", self.store]
        first, second = [process, in_memory, urls["plain"]], [urls["second"].replace("http", "ws", 1), in_memory]
        arguments = (str(seed + 7), json.dumps(first), json.dumps(second))
        self.client = await self._start("client", "tests.attack.victim_client", *arguments)
        self.victims = [self.server, self.client]
        await self.work()
        await asyncio.sleep(WARMING)
        await self.rest()
        for victim in self.victims:
            self._base[victim.name] = await victim.ask("measure")

    async def _start(self, name: str, module: str, *arguments: str, **more: str) -> Puppet:
        return await Puppet.start(name, module, *arguments, folder=self._folder, **more)

    async def work(self, attacks_on_server: int = 1) -> None:
        """Let the honest peers begin, and count peaks of memory from now on, under so many attacks on the server."""
        peak = self.bounds.peak
        self._allowed = {"server": max(1, attacks_on_server) * peak, "client": peak + self.bounds.message}
        for victim in self.victims:
            forget_peak(victim.pid)
        for peers in (self.honest, self.client):
            await peers.ask("begin")

    async def rest(self) -> None:
        """Wait until the honest peers have finished what they do, and have left."""
        for peers in (self.honest, self.client):
            await peers.ask("rest", within=2 * self.bounds.turn)

    async def honest_work(self) -> dict[str, int]:
        """What honest peers have done so far; RuntimeError if something was wrong."""
        done: dict[str, int] = {}
        for peers in (self.honest, self.client):
            said = await peers.ask("so_far")
            if said["problems"]:
                raise RuntimeError("\n".join(said["problems"][:5]))
            for name, number in said["done"].items():
                done[name] = done.get(name, 0) + number
        return done

    def memory(self) -> dict[str, int]:
        """MiB of each victim."""
        return {victim.name: memory_of(victim.pid) // MIB for victim in self.victims}

    @property
    def alive(self) -> bool:
        return all(victim.exit_code is None for victim in self.victims)

    def dead(self) -> Iterator[str]:
        """Victims that have ended, which none may."""
        for victim in self.victims:
            if victim.exit_code is not None:
                yield f"the {victim.name} ended with exit code {victim.exit_code}"
                yield from victim.troubles()

    def peaks(self) -> dict[str, int]:
        """MiB over the base that each victim has had since `work`."""
        return {
            victim.name: (memory_of(victim.pid, "VmHWM") - self._base[victim.name]["memory"]) // MIB
            for victim in self.victims
        }

    def overweight(self) -> Iterator[str]:
        """Victims that take, or took since `work`, more memory than they may under attack."""
        for name, peak in self.peaks().items():
            if peak > (allowed := self._allowed[name] // MIB):
                yield f"the {name} took {peak} MiB over its base; {allowed} are allowed"

    async def remains(self) -> list[str]:
        """What is left of a round, once everything has had its time to go; for honest peers that rest."""
        found: list[str] = []
        for victim in self.victims:
            standstill = 0.0
            ends = asyncio.get_running_loop().time() + self.bounds.settle
            while True:
                numbers = await victim.ask("measure")
                standstill = max(standstill, numbers["standstill"])
                left = list(self._left(victim.name, numbers))
                if not left or asyncio.get_running_loop().time() > ends:
                    break
                await asyncio.sleep(AGAIN)
            found += left + victim.troubles()
            if standstill > self.bounds.standstill:
                found.append(
                    f"an event loop of the {victim.name} was busy for {standstill:.1f} s at a stretch; "
                    f"{self.bounds.standstill} s are allowed"
                )
        return [*found, *self.overweight(), *self.honest.troubles()]

    def _left(self, name: str, numbers: dict[str, Any]) -> Iterator[str]:
        base, bounds = self._base[name], self.bounds
        for what, most in (("descriptors", bounds.descriptors), ("children", 1), ("tasks", bounds.tasks)):
            if numbers[what] > base[what] + most:
                yield f"the {name} has {numbers[what]} {what}, and had {base[what]}"
        if (grown := numbers["memory"] - base["memory"]) > bounds.left:
            yield f"the {name} has {grown // MIB} MiB over its base; {bounds.left // MIB} are allowed"
        grown = {
            kind: f"{number}, and had {base['objects'].get(kind, 0)}"
            for kind, number in numbers["objects"].items()
            if number > base["objects"].get(kind, 0) + bounds.objects
        }
        if grown:
            shown = "; ".join(f"{kind}: {counts}" for kind, counts in sorted(grown.items())[:12])
            yield f"the {name} has living objects of {len(grown)} classes over its base: {shown}"

    async def end(self) -> None:
        for puppet in (self.client, self.honest, self.server):
            await puppet.end()


@asynccontextmanager
async def field(folder: Path, seed: int, bounds: Bounds | None = None) -> AsyncIterator[Field]:
    made = Field(folder, bounds or Bounds())
    try:
        await made.start(seed)
        yield made
    finally:
        await made.end()


def certified(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    if shutil.which("openssl") is None:
        raise RuntimeError("an attack on TLS needs a certificate: install openssl")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    command = ["openssl", "req", "-x509", *kind, *names, "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return certificate, key
