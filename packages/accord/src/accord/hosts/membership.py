"""One host's place in the directory: beats, reads the view, and learns of its own death.

    join ──▶ beat, every fifth of a lease ──┬──▶ the rows of all hosts ──▶ view
                                            ├──▶ declared dead ──▶ on_dead, a new id, beat
                                            └──▶ no answer ──▶ the last view stays

Only a host that has beaten without a gap for longer than a lease may declare others dead. A gap is a failed beat, or a
beat that came late: a process that was frozen, or whose machine slept, did not see what the others did meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from accord.errors import StoreError
from accord.hosts.directory import BEATS, Beat, Directory
from accord.hosts.view import HostRow, State, View, new_host_id

JUDGES_AFTER = 1.2
"""Leases that a host must have beaten without a gap before it declares others dead."""

LOOKS = 0.1
"""Seconds between two extra looks at the directory, for hosts that the view does not have."""

log = logging.getLogger("accord.hosts")


class Membership:
    """The row of this host, and the last view of all.

    `load` tells the load and the number of connections. `on_view` is called after each beat, `on_lost` when this host
    was declared dead, or could not beat for `fence` seconds, with the reason: its connections must end.
    """

    def __init__(
        self,
        directory: Directory,
        host: HostRow,
        *,
        lease: float,
        fence: float | None,
        load: Callable[[], tuple[float, int]],
        on_view: Callable[[View], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self.host = host
        self.view = View()
        self._directory = directory
        self._lease = lease
        self._fence = fence
        self._load = load
        self._on_view = on_view
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._latest = self._loop.time()
        """When the latest beat succeeded."""
        self._looked = 0.0
        self._steady_since: float | None = None
        self._is_fenced = False
        self._seen: dict[str, tuple[int, float]] = {}
        """Of each host how often it has beaten, and when that was read first, by the clock of this process."""
        self._beating = asyncio.Lock()

    @property
    def beat_age(self) -> float:
        """Seconds since the latest beat."""
        return self._loop.time() - self._latest

    async def join(self) -> None:
        """Beat for the first time; raises StoreError."""
        await self._beat()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            await asyncio.sleep(self._lease / BEATS)
            await self.beat()

    async def beat(self) -> bool:
        """Beat once; whether the directory answered."""
        try:
            await self._beat()
        except StoreError as error:
            self._failed(error)
            return False
        return True

    async def set_state(self, state: State) -> None:
        """Tell the other hosts at once that this one is draining or gone."""
        self.host = self.host._replace(state=state)
        await self.beat()

    async def find(self, host: str) -> HostRow | None:
        """The row of a host, from the directory itself if the view has none; raises StoreError."""
        if host not in self.view.hosts and self._loop.time() - self._looked > LOOKS:
            await self._beat()
            self._looked = self._loop.time()
        return self.view.hosts.get(host)

    async def _beat(self) -> None:
        async with self._beating:
            hosts = await self._round()
            if hosts is None:
                self._join_again()
                hosts = await self._round()
        self.view = View(hosts or ())
        self._on_view(self.view)

    async def _round(self) -> list[HostRow] | None:
        began = self._loop.time()
        is_late = began - self._latest > self._lease / 2
        steady = None if is_late else self._steady_since
        load, connections = self._load()
        self.host = self.host._replace(load=load, connections=connections)
        suspects: list[str] = []
        if steady is not None and began - steady > JUDGES_AFTER * self._lease:
            suspects = [host for host, (_, since) in self._seen.items() if began - since > self._lease / 2]
        try:
            hosts = await self._directory.beat(Beat(self.host, self._lease, suspects))
        except StoreError:
            self._steady_since = None
            raise
        self._steady_since = self._loop.time() if steady is None else steady
        self._latest = began
        self._is_fenced = False
        if hosts is not None:
            seen = self._seen
            self._seen = {
                it.id: was if (was := seen.get(it.id, (-1, 0.0)))[0] == it.beats else (it.beats, began) for it in hosts
            }
        return hosts

    def _join_again(self) -> None:
        log.warning("host %s was declared dead by another host; its connections end", self.host.id)
        self._on_lost("this host was declared dead: connect again; stored sessions can be loaded")
        self.host = self.host._replace(id=new_host_id())

    def _failed(self, error: StoreError) -> None:
        log.warning("host %s cannot beat: %s", self.host.id, error)
        if self._fence is not None and not self._is_fenced and self.beat_age > self._fence:
            self._is_fenced = True
            self._on_lost(f"this host could not reach the directory of hosts for {self._fence:g} seconds")
