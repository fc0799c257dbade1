"""The clients of the TypeScript and Python SDKs through three hosts, behind a balancer that sends each request on."""

import json

import pytest

from tests.http.test_interop import COUNTED, peer, program  # noqa: F401 - a fixture

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_their_client_works_through_three_hosts(hosts, peer, scheme):  # noqa: F811 - the fixture
    async with program(peer, peer.peer.client, hosts.url.replace("http", scheme, 1)) as client:
        told = json.loads(await client.stdout.read())
    assert told == {
        "stops": ["end_turn"] * 3,
        "said": [f"{COUNTED}allowed", COUNTED],
        "replayed": f"{COUNTED}allowed",
    }
    assert scheme == "ws" or all(hosts.balancer.taken.values())
