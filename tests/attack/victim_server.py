"""The server that is attacked: two event loops in two threads, one agent each, one store for both, a chain, and two
hosts.

python -m tests.attack.victim_server STORE CERTIFICATE KEY
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from contextlib import AsyncExitStack
from typing import Any

import accord
from accord.http import Access, Observer, Quotas, ServerLimits, serving
from tests.attack.bounds import BURST, POSTS, SERVER_LIMITS
from tests.attack.honest_agent import honest_agent, honest_proxy
from tests.attack.measuring import Probe, counted
from tests.attack.puppet import obey

HOSTS_KEY = "a key of more than thirty-two bytes for the attacks"

ACCESS = Access({"s3cret": "ada", "few": "bob", "0ther": Observer("ada")})


class Victim:
    """Servers in the main loop and in one of a second thread, and a probe in each."""

    def __init__(self, store: str, certificate: str, key: str) -> None:
        self.urls: dict[str, str] = {}
        self.hosts: dict[str, Any] = {}
        self.probes = [Probe(), Probe()]
        self.loops: list[asyncio.AbstractEventLoop] = []
        self._store = store
        self._tls = {"certificate": certificate, "key": key}
        self._limits = ServerLimits(**SERVER_LIMITS)
        self._ready = threading.Event()

    async def run(self) -> None:
        threading.Thread(target=self._second_loop, daemon=True).start()
        agent = honest_agent(accord.SqliteStore(self._store))
        command = [sys.executable, "-m", "tests.attack.honest_agent", self._store]
        chain = accord.chain(honest_proxy(), agent)
        served = (("plain", agent, {}), ("tls", agent, self._tls), ("command", command, {}), ("chain", chain, {}))
        async with AsyncExitStack() as stack:
            for name, hosted, more in served:
                server = await stack.enter_async_context(serving(hosted, limits=self._limits, **more))
                self.urls[name] = server.url
            for name, weight in (("agents", 1.0), ("front", 0.0)):
                hosts = accord.Hosts(f"{self._store}.hosts", key=HOSTS_KEY, weight=weight)
                quotas = Quotas(posts=POSTS, burst=BURST)
                more = {"hosts": hosts, "quotas": quotas, "access": ACCESS, "limits": self._limits}
                server = await stack.enter_async_context(serving(agent, **more))
                self.urls[name] = server.url
                host = server.app.cluster.membership.host
                self.hosts.setdefault("id", host.id)
                self.hosts.setdefault("peer", int(host.address.rpartition(":")[2]))
            self.hosts["key"] = HOSTS_KEY
            self.loops.insert(0, asyncio.get_running_loop())
            beating = asyncio.create_task(self.probes[0].beat())
            await asyncio.to_thread(self._ready.wait)
            await obey({"where": self.where, "measure": self.measure})
            beating.cancel()

    def _second_loop(self) -> None:
        async def run() -> None:
            agent = honest_agent(accord.SqliteStore(self._store))
            async with serving(agent, limits=self._limits) as server:
                self.urls["second"] = server.url
                self.loops.append(asyncio.get_running_loop())
                self._ready.set()
                await self.probes[1].beat()

        try:
            import uvloop
        except ImportError:
            asyncio.run(run())
        else:
            uvloop.run(run())

    async def where(self) -> dict[str, Any]:
        return {"urls": self.urls, "hosts": self.hosts}

    async def measure(self) -> dict[str, Any]:
        return {**counted(*self.loops), "standstill": max(probe.read() for probe in self.probes)}


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(Victim(*sys.argv[1:]).run())
