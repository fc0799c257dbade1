"""The figures of a server: what they count, who may read them, and where they go."""

import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

import accord
from accord.http import Access, MeasuredHost, serving
from accord.metrics import ServerMetrics
from accord.metrics.server_metrics import MeasuredConversation
from accord.trace import IN, OUT, TraceEvent

CLIENTS = ("http", "ws")


def an_agent():
    agent = accord.Agent("counted")

    @agent.on_prompt
    async def answer(turn):
        if turn.text == "fail":
            raise accord.RequestError(-32000, "it fails")
        if turn.text == "ask":
            await turn.ask("Delete it")
        await turn.say("done")

    return agent


def a_client():
    return accord.Client(permissions=lambda _: True)


def read(server, path="/metrics", method="GET", **headers):
    """What the server answers at this path: its status and its text."""
    url = server.url.removesuffix("/acp") + path
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=headers), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


async def figures(server, **headers):
    status, text = await asyncio.to_thread(read, server, **headers)
    assert status == 200
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


@pytest.fixture
def metrics():
    return ServerMetrics()


@pytest.mark.parametrize("scheme", CLIENTS)
async def test_a_server_counts_connections_sessions_and_turns(metrics, scheme):
    async with (
        serving(MeasuredHost(an_agent(), metrics)) as server,
        accord.connect(server.url.replace("http", scheme, 1), a_client()) as remote,
    ):
        session = await remote.new_session("/")
        await session.prompt("hello")
        with pytest.raises(accord.PeerError):
            await session.prompt("fail")
        found = await figures(server)
        assert (found["accord_connections"], found["accord_sessions"]) == ("1", "1")
        assert found['accord_turns_total{outcome="end_turn"}'] == "1"
        assert found['accord_turns_total{outcome="error"}'] == "1"
        assert found['accord_turn_seconds_count{outcome="end_turn"}'] == "1"
        assert found["accord_turns"] == "0"
        assert int(found["accord_received_bytes_total"]) > 100
        assert int(found["accord_sent_bytes_total"]) > 100
    assert (metrics.connections.value(), metrics.sessions.value(), metrics.opened.value()) == (0, 0, 1)


async def test_waits_for_the_user_are_counted(metrics):
    async with serving(MeasuredHost(an_agent(), metrics)) as server:
        async with accord.connect(server.url, a_client()) as remote:
            await (await remote.new_session("/")).prompt("ask")
        found = await figures(server)
    assert found['accord_user_wait_seconds_count{outcome="answered"}'] == "1"


async def test_a_turn_whose_connection_ends_is_counted_as_closed(metrics):
    begun, never = asyncio.Event(), asyncio.Event()
    agent = accord.Agent("slow")

    @agent.on_prompt
    async def wait(turn):
        begun.set()
        await never.wait()

    async with serving(MeasuredHost(agent, metrics)) as server:
        async with accord.connect(server.url.replace("http", "ws", 1)) as remote:
            reply = (await remote.new_session("/")).prompt("go")
            await begun.wait()
            assert metrics.running.value() == 1
        with pytest.raises(accord.AccordError):
            await reply
    assert metrics.turns.value(outcome="closed") + metrics.turns.value(outcome="cancelled") == 1
    assert metrics.running.value() == 0


def test_what_is_open_when_a_connection_ends_is_counted_as_closed(metrics):
    conversation = MeasuredConversation(metrics)
    for number, (direction, method) in enumerate([(IN, "session/prompt"), (OUT, "session/request_permission")]):
        asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"sessionId": "s"}}
        conversation(TraceEvent(1.0, direction, json.dumps(asked).encode()))
    assert metrics.running.value() == 1
    conversation.close(3.0)
    assert metrics.turns.value(outcome="closed") == 1
    assert (metrics.running.value(), metrics.connections.value()) == (0, 0)
    assert 'accord_user_wait_seconds_sum{outcome="closed"} 2' in metrics.text()


async def test_refused_requests_are_counted_by_status(metrics):
    access = Access({"s3cret": "ada"})
    async with serving(MeasuredHost(an_agent(), metrics), access=access) as server:
        assert (await asyncio.to_thread(read, server))[0] == 401
        assert (await asyncio.to_thread(read, server, "/nowhere", Authorization="Bearer s3cret"))[0] == 404
        assert (await asyncio.to_thread(read, server, "/metrics", "DELETE", Authorization="Bearer s3cret"))[0] == 405
        found = await figures(server, Authorization="Bearer s3cret")
    refused = {name: value for name, value in found.items() if name.startswith("accord_refused")}
    assert refused == {f'accord_refused_requests_total{{status="{status}"}}': "1" for status in (401, 404, 405)}


async def test_a_server_without_metrics_has_no_such_path():
    async with serving(an_agent()) as server:
        assert (await asyncio.to_thread(read, server))[0] == 404


async def test_a_page_of_another_site_cannot_read_the_figures(metrics):
    async with serving(MeasuredHost(an_agent(), metrics)) as server:
        assert (await asyncio.to_thread(read, server, Host="evil.example"))[0] in (403, 421)
        assert (await asyncio.to_thread(read, server, Origin="https://evil.example"))[0] == 403


def test_the_host_is_a_label_of_every_figure():
    metrics = ServerMetrics(host='a"b\\c\n')
    metrics.end_turn("something new", 2.0)
    metrics.note_request(200)
    lines = [line for line in metrics.text().splitlines() if not line.startswith("#")]
    assert all('host="a\\"b\\\\c\\n"' in line for line in lines)
    assert 'accord_turns_total{host="a\\"b\\\\c\\n",outcome="other"} 1' in lines
    assert 'accord_turn_seconds_bucket{host="a\\"b\\\\c\\n",outcome="other",le="2.5"} 1' in lines


async def test_the_figures_go_to_opentelemetry_too(metrics):
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = sdk.MeterProvider([reader])
    metrics.export(provider.get_meter("test"))
    async with serving(MeasuredHost(an_agent(), metrics)) as server, accord.connect(server.url) as remote:
        await (await remote.new_session("/")).prompt("hello")
    data = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    found = {it.name: it.data.data_points[0] for it in data}
    assert found["acp.server.turns"].attributes == {"outcome": "end_turn"}
    assert found["acp.server.turn.duration"].count == 1
    assert found["acp.server.connections"].value == 0
    assert found["acp.server.received"].value == metrics.received.value()
    provider.shutdown()


async def test_a_turn_of_version_2_ends_with_the_idle_state(metrics):
    async with (
        serving(MeasuredHost(an_agent(), metrics)) as server,
        accord.connect(server.url, versions=[2]) as remote,
    ):
        outcome = await (await remote.new_session("/")).prompt("hello")
        assert outcome.stop_reason == "end_turn"
    assert metrics.turns.value(outcome="end_turn") == 1


def test_serve_gives_figures_only_where_they_are_asked_for():
    command = [sys.executable, "-m", "accord", "serve", "--port", "0"]
    for words, status in ([], 404), (["--metrics"], 200):
        process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = process.stdout.readline().split()[-1]
            server = type("Served", (), {"url": url})
            assert read(server)[0] == status
        finally:
            process.terminate()
            process.wait(timeout=30)
            process.stdout.close()


@pytest.mark.parametrize("path", ["metrics", "/acp", "/a b", "/healthz", "/readyz"])
def test_a_path_that_cannot_be_is_refused(path):
    command = [sys.executable, "-m", "accord", "serve", "--port", "0", "--metrics", path]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "--metrics must be a path such as /metrics" in ended.stderr
