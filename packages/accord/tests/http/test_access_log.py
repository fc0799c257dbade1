"""The access log: one line for each request and connection, without secrets."""

import asyncio
import json
import logging
import re
import subprocess
from contextlib import asynccontextmanager

import pytest

import accord
from accord.http import Access, connect_transport, serving
from accord.http.server.access_log import AccessRecord, JsonFormatter, TextFormatter
from tests.http.processes import serving_process
from tests.http.talking import an_agent, editor_of, nobody_is_connected, transport_to
from tests.waiting import DEADLINE

SECRET, QUERY, WORDS = "s3cret-token", "key=in-the-query", "words of a prompt"


@asynccontextmanager
async def logged(*arguments, tmp_path):
    """`accord serve`, a prompt to it in each way, and what it wrote on standard error by its end."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{SECRET} ada\n")
    arguments = ("--token-file", str(tokens), *arguments)
    async with serving_process(*arguments, stderr=subprocess.PIPE) as (process, url):
        for scheme in "http", "ws":
            target = f"{url.replace('http', scheme, 1)}?{QUERY}"
            async with editor_of(connect_transport(target, token=SECRET)) as editor:
                await editor.prompt(await editor.open_session(), WORDS)
        with pytest.raises(accord.ConnectionClosed, match="401"):
            async with editor_of(connect_transport(url, token="wrong-token")):
                pass
        process.terminate()
        async with asyncio.timeout(DEADLINE):
            _, written = await process.communicate()
        yield written.decode().splitlines()


async def test_text_is_one_line_for_each_request(tmp_path):
    async with logged(tmp_path=tmp_path) as lines:
        form = re.compile(
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z 127\.0\.0\.1 \S+ (GET|POST|DELETE|WEBSOCKET) /acp \d{3,4} "
            r"in=\d+ out=\d+ [\d.]+m?s( connection=[\w-]{8})?"
        )
        requests = [line for line in lines if not line.startswith("accord serve: ")]
        assert [line for line in requests if not form.fullmatch(line)] == []
        assert len([line for line in lines if " ada POST /acp 202 " in line]) == 2
        assert len([line for line in lines if " ada GET /acp 200 " in line]) == 2
        assert len([line for line in lines if " ada WEBSOCKET /acp 1000 " in line]) == 1
        assert len([line for line in lines if " - POST /acp 401 " in line]) == 1
        nothing_secret(lines)


async def test_json_has_the_same_fields(tmp_path):
    async with logged("--log-format", "json", tmp_path=tmp_path) as lines:
        started, *told = [json.loads(line) for line in lines]
        assert started.keys() == {"time", "level", "text"}
        assert {frozenset(it) for it in told} == {
            frozenset(
                ("time", "client", "user", "method", "path", "status", "received", "sent", "seconds", "connection")
            )
        }
        assert {(it["client"], it["path"]) for it in told} == {("127.0.0.1", "/acp")}
        socket = next(it for it in told if it["method"] == "WEBSOCKET")
        assert (socket["user"], socket["status"], len(socket["connection"])) == ("ada", 1000, 8)
        assert socket["received"] > len(WORDS)
        assert socket["sent"] > 0
        (refused,) = [it for it in told if it["status"] == 401]
        assert (refused["user"], refused["connection"]) == (None, None)
        nothing_secret(lines)


async def test_no_access_log_is_written_with_log_format_none(tmp_path):
    async with logged("--log-format", "none", tmp_path=tmp_path) as lines:
        assert lines == []


def nothing_secret(lines):
    for secret in SECRET, "wrong-token", QUERY, "in-the-query", WORDS, "Bearer":
        assert not any(secret in line for line in lines)


async def test_a_program_gets_the_access_log_through_a_logger(caplog, way):
    caplog.set_level(logging.INFO, "accord.http.access")
    async with serving(an_agent(), access=Access({"a": "ada"})) as server:
        async with editor_of(transport_to(server.url, way, headers={"Authorization": "Bearer a"})) as editor:
            await editor.open_session()
        await nobody_is_connected(server)
    told = [record.args[0] for record in caplog.records if record.name == "accord.http.access"]
    assert {exchange.user for exchange in told} == {"ada"}
    assert all(exchange.status and exchange.seconds > 0 for exchange in told)


def test_line_breaks_in_names_and_methods_are_escaped():
    exchange = AccessRecord("GET\nFORGED", "1.2.3.4", "/acp\nFORGED " + "x" * 500)
    exchange.user = "ada\n2026 eve POST 200\x1b[2J"
    exchange.connection = "0123456789abcdef"
    assert "\n" not in str(exchange)
    assert "\x1b" not in str(exchange)
    assert exchange.method == "OTHER"
    assert "0123456789" not in str(exchange)
    record = logging.LogRecord("accord.http.access", logging.INFO, "", 0, "%s", (exchange,), None)
    assert TextFormatter().format(record) == str(exchange)
    assert json.loads(JsonFormatter().format(record))["user"] == exchange.user


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        (("203.0.113.7", 1), None, "203.0.113.7"),
        (("203.0.113.7", 1), "198.51.100.2", "203.0.113.7"),
        (("10.1.2.3", 1), None, "10.1.2.3"),
        (("10.1.2.3", 1), "198.51.100.2", "198.51.100.2"),
        (("10.1.2.3", 1), "6.6.6.6, 198.51.100.2, 127.0.0.1", "198.51.100.2"),
        (("10.1.2.3", 1), "198.51.100.2, evil\x1b[2J", "10.1.2.3"),
        (("127.0.0.1", 1), "2001:DB8::7", "2001:db8::7"),
        (("::1", 1), "198.51.100.2", "::1"),
        (None, "198.51.100.2", ""),
    ],
)
def test_only_trusted_proxies_say_who_the_client_is(peer, forwarded, client):
    access = Access(proxies=["127.0.0.1", "10.0.0.0/8"])
    headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
    assert access.client(peer, headers) == client


def test_a_proxy_that_is_no_address_is_refused():
    with pytest.raises(ValueError, match=r"takes addresses and networks like '10\.0\.0\.0/8', got 'nginx'"):
        Access(proxies=["nginx"])


def test_other_log_records_are_formatted_as_lines():
    record = logging.LogRecord("accord.http", logging.WARNING, "", 0, "a %s happened", ("thing",), None)
    assert TextFormatter().format(record).endswith("Z a thing happened")
    assert json.loads(JsonFormatter().format(record))["text"] == "a thing happened"


def test_control_characters_in_a_line_of_text_are_escaped():
    said = "\x1b]0;EVIL\x07\n2026-11-22T00:00:00.000Z forged \x9b31m \u202e\ud83d é"
    record = logging.LogRecord("accord.http", logging.WARNING, "", 0, "the agent ended: %s", (said,), None)
    line = TextFormatter().format(record)
    assert line.isprintable()
    assert line.endswith(r"the agent ended: \x1b]0;EVIL\x07\n2026-11-22T00:00:00.000Z forged \x9b31m \u202e\ud83d é")
