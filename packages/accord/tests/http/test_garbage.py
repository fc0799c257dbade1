"""When a server looks for cyclic garbage."""

import asyncio
import gc
import weakref

import pytest

from accord.http.server import serve as serve_module
from accord.http.server.serve import (
    LEAST_ENDED,
    LEAST_NEW,
    NEVER,
    OF_A_CONNECTION,
    GarbagePolicy,
    garbage_collected_for,
)


class Connections:
    """A server, as far as its connections are counted."""

    def __init__(self, open_=0, ended=0):
        self.connections = open_
        self.ended = ended


@pytest.mark.parametrize(
    ("connections", "ended", "new", "is_due"),
    [
        (0, 0, 0, False),
        (0, LEAST_ENDED - 1, 0, False),
        (0, LEAST_ENDED, 0, True),
        (2 * LEAST_ENDED, LEAST_ENDED, 0, True),
        (2 * LEAST_ENDED + 2, LEAST_ENDED, 0, False),
        (10_000, 5_000, 0, True),
        (0, 0, LEAST_NEW - 1, False),
        (0, 0, LEAST_NEW, True),
        (10_000, 0, 10_000 * OF_A_CONNECTION, False),
        (10_000, 0, 10_000 * OF_A_CONNECTION + LEAST_NEW, True),
    ],
)
def test_it_looks_after_connections_have_ended_and_for_what_no_connection_accounts_for(connections, ended, new, is_due):
    server = Connections()
    deciding = GarbagePolicy(server)
    server.connections, server.ended = connections, ended
    assert deciding.is_due(new) is is_due
    deciding.collected()
    assert not deciding.is_due(0)


def test_connections_that_are_closed_account_for_nothing():
    server = Connections(open_=1_000)
    deciding = GarbagePolicy(server)
    server.connections = 0
    assert deciding.is_due(LEAST_NEW)


class Cyclic:
    def __init__(self):
        self.itself = self


async def test_old_garbage_goes_once_connections_have_ended_and_not_before(monkeypatch):
    monkeypatch.setattr(serve_module, "GARBAGE_EVERY", 0)
    server = Connections()
    gone = asyncio.Event()
    with garbage_collected_for(server):
        assert gc.get_threshold()[2] == NEVER
        old = Cyclic()
        gc.collect()  # now it belongs to the oldest generation
        noticed = weakref.ref(old, lambda _: gone.set())
        del old
        for _ in range(10):  # as often as the server would have looked
            await asyncio.sleep(0)
        assert noticed() is not None
        server.ended = LEAST_ENDED
        await asyncio.wait_for(gone.wait(), 60)


async def test_the_collector_is_afterwards_as_it_was():
    before = gc.get_threshold()
    with garbage_collected_for(Connections()):
        assert gc.get_threshold() == (*before[:2], NEVER)
    assert gc.get_threshold() == before


async def test_a_program_that_collects_by_itself_goes_on_to_do_so():
    before = gc.get_threshold()
    gc.disable()
    try:
        with garbage_collected_for(Connections()):
            assert gc.get_threshold() == before
            assert not gc.isenabled()
    finally:
        gc.enable()
