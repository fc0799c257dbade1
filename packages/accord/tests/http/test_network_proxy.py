"""Agents behind HTTP and SOCKS5 proxies: little proxies that run here, with TLS inside the tunnel."""

import asyncio
import socket
import ssl
from base64 import b64encode
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

import accord
from accord.http import Access, connect_transport, serving
from accord.transports.server_access import NetworkProxy, network_proxy
from accord_check.agent.raw_http import raw_http
from accord_check.agent.scenario_context import ScenarioContext
from accord_check.agent.settings import Settings
from tests.check.test_raw_http import never, serving as answers_of_a_server
from tests.http.talking import an_agent, editor_of, nobody_is_connected
from tests.waiting import DEADLINE

PASSWORD = "s3 cret/ä"
WRITTEN = "s3%20cret%2F%C3%A4"


class LittleProxy:
    """Opens tunnels to one server, whatever host it is asked for, and notes what it was asked for."""

    def __init__(self, to, *, wants_login=False, refuses=False):
        self._to = to
        self.wants_login, self.refuses = wants_login, refuses
        self.asked = []

    async def connected(self, reader, writer):
        try:
            first = await reader.readexactly(1)
            if not await (self._socks if first == b"\x05" else self._http)(reader, writer):
                return
            there, to = await asyncio.open_connection(*self._to)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(reader, to))
                both.create_task(self._pass(there, writer))
        except* (OSError, EOFError):
            pass
        finally:
            writer.close()

    async def _pass(self, reader, writer):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _http(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.split()[1])
        login = b64encode(f"ada:{PASSWORD}".encode()).decode()
        if self.wants_login and f"\r\nProxy-Authorization: Basic {login}\r\n" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        elif self.refuses:
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\nVia: little\r\n\r\n")
            return True
        return False

    async def _socks(self, reader, writer):
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        if self.wants_login and 2 not in methods:
            writer.write(b"\x05\xff")
            return False
        writer.write(b"\x05\x02" if self.wants_login else b"\x05\x00")
        if self.wants_login:
            user = await reader.readexactly((await reader.readexactly(2))[1])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            is_right = (user.decode(), password.decode()) == ("ada", PASSWORD)
            writer.write(b"\x01\x00" if is_right else b"\x01\x01")
            if not is_right:
                return False
        _, _, _, kind = await reader.readexactly(4)
        size = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        host = await reader.readexactly(size)
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{host.decode() if kind == 3 else '.'.join(map(str, host))}:{port}")
        writer.write(b"\x05\x02\x00\x01" + b"\0" * 6 if self.refuses else b"\x05\x00\x00\x03\x04here\0\0")
        return not self.refuses


@asynccontextmanager
async def a_proxy(to, *, certificate=None, **how):
    proxy = LittleProxy(to, **how)
    tls = None
    if certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*certificate)
    async with await asyncio.start_server(proxy.connected, "127.0.0.1", 0, ssl=tls) as listening:
        yield proxy, f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"


def place_of(server):
    host, _, port = server.url.split("/")[2].rpartition(":")
    return host, int(port)


# The tunnel


PROXIES = ["http://", "http://ada:{}@", "https://ada:{}@", "socks5://", "socks5h://ada:{}@"]
WAYS = ["https over HTTP/2", "https over HTTP/1.1", "wss", "http", "ws"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("written", PROXIES)
async def test_a_conversation_goes_through_a_proxy(way, written, certificate, monkeypatch):
    scheme, _, over = way.partition(" over ")
    is_secure = scheme in ("https", "wss")
    own = {"certificate": certificate[0], "key": certificate[1]} if is_secure else {}
    options = {"tls": ssl.create_default_context(cafile=certificate[0])} if is_secure else {}
    if over:
        options["http2"] = None if over == "HTTP/2" else False
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))  # for the certificate of the proxy itself
    proxys_own = certificate if written.startswith("https") else None
    async with (
        serving(an_agent(), **own) as server,
        a_proxy(place_of(server), certificate=proxys_own, wants_login="@" in written) as (proxy, place),
    ):
        url = f"{scheme}://127.0.0.1:{place_of(server)[1]}/acp"
        link = connect_transport(url, proxy=written.format(WRITTEN) + place, **options)
        async with editor_of(link) as editor:
            session = await editor.open_session()
            await editor.prompt(session, "count 300")
            assert editor.text(session) == "".join(f"{number} " for number in range(300))
        assert set(proxy.asked) == {f"127.0.0.1:{place_of(server)[1]}"}
        await nobody_is_connected(server)


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize("kind", ["http", "socks5h"])
async def test_the_proxy_of_the_environment_looks_the_agent_up(scheme, kind, monkeypatch):
    async with (
        serving(an_agent(), access=Access(hosts=["agents.example", "127.0.0.1"])) as server,
        a_proxy(place_of(server)) as (proxy, place),
    ):
        monkeypatch.setenv("http_proxy", f"{kind}://{place}")
        async with accord.connect(f"{scheme}://agents.example/acp", timeout=DEADLINE) as remote:
            session = await remote.new_session("/project")
            assert (await session.prompt("through a proxy")).text == "through a proxy "
        assert set(proxy.asked) == {"agents.example:80"}
        asked = len(proxy.asked)
        url = server.url.replace("http", scheme, 1)
        async with accord.connect(url, timeout=DEADLINE):  # a loopback address needs none
            assert len(proxy.asked) == asked


# Errors


async def refusal(url, **options):
    with pytest.raises(accord.ConnectionClosed) as raised:
        async with accord.connect(url, timeout=DEADLINE, **options):
            pass
    assert PASSWORD not in str(raised.value)
    assert WRITTEN not in str(raised.value)
    return str(raised.value)


REFUSALS = {
    "no login": ("{kind}://", {"wants_login": True}, "write USER:PASSWORD@ before the host in its URL"),
    "a wrong login": ("{kind}://ada:wrong@", {"wants_login": True}, "check the user and the password in its URL"),
    "not allowed": ("{kind}://", {"refuses": True}, "it refused a tunnel to agents.example:8000: "),
}


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize("kind", ["http", "socks5h"])
@pytest.mark.parametrize("name", REFUSALS)
async def test_a_proxy_that_refuses_is_a_clear_error(name, kind, scheme, monkeypatch):
    written, how, why = REFUSALS[name]
    async with a_proxy(("127.0.0.1", 1), **how) as (_, place):
        monkeypatch.setenv("ALL_PROXY", written.format(kind=kind) + place)
        error = await refusal(f"{scheme}://agents.example:8000/acp")
        user = "***@" if "@" in written else ""
        assert f"cannot be reached through the proxy {kind}://{user}{place} (from ALL_PROXY): " in error
        assert why in error


@pytest.mark.parametrize("kind", ["http", "socks5"])
async def test_a_dead_proxy_is_a_clear_error(kind, monkeypatch, unused_place):
    monkeypatch.setenv("HTTPS_PROXY", f"{kind}://ada:{WRITTEN}@{unused_place}")
    error = await refusal("https://agents.example/acp")
    proxy = f"{kind}://***@{unused_place} (from HTTPS_PROXY)"
    assert f"agents.example:443 cannot be reached through the proxy {proxy}: it cannot be reached: " in error


@pytest.mark.parametrize("kind", ["http", "socks5h"])
@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-x\r\n\r\n", b"\x04\x00", b"x" * 200_000])
async def test_what_is_no_proxy_is_a_clear_error(kind, answer):
    async def answering(reader, writer):
        await reader.read(1)
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(answering, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        error = await refusal("https://agents.example/acp", proxy=f"{kind}://127.0.0.1:{port}")
    assert "does not answer like a" in error or "closed the connection and opened no tunnel" in error


@pytest.fixture
def unused_place():
    with socket.create_server(("127.0.0.1", 0)) as held:
        return f"127.0.0.1:{held.getsockname()[1]}"


# Which proxy


def chosen(url, given=True, **environment):
    found = network_proxy(url, given, environment)
    return None if found is None else f"{found.scheme}://{found.host}:{found.port}"


def test_the_scheme_of_the_agent_chooses_the_variable():
    both = {"HTTPS_PROXY": "http://s:1", "HTTP_PROXY": "http://p:2", "ALL_PROXY": "socks5://a:3"}
    assert [chosen(f"{it}://x.example/", **both) for it in ("https", "wss")] == ["http://s:1"] * 2
    assert [chosen(f"{it}://x.example/", **both) for it in ("http", "ws")] == ["http://p:2"] * 2
    assert chosen("https://x.example/", HTTP_PROXY="p", all_proxy="socks5h://a") == "socks5h://a:1080"
    assert chosen("https://x.example/") is None


def test_names_in_lower_case_go_first_and_an_empty_one_means_none():
    assert chosen("https://x.example/", https_proxy="low:1", HTTPS_PROXY="high:2") == "http://low:1"
    assert chosen("https://x.example/", https_proxy="", HTTPS_PROXY="high:2", ALL_PROXY="all:3") is None


def test_a_program_of_a_web_server_ignores_the_variable_that_a_request_can_set():
    assert chosen("http://x.example/", HTTP_PROXY="evil:1", REQUEST_METHOD="GET") is None
    assert chosen("http://x.example/", http_proxy="mine:1", REQUEST_METHOD="GET") == "http://mine:1"


def test_what_the_user_gives_goes_before_the_environment():
    environment = {"HTTPS_PROXY": "http://s:1", "NO_PROXY": "*"}
    assert chosen("https://x.example/", "https://mine", **environment) == "https://mine:443"
    assert chosen("https://localhost/", "http://mine", **environment) == "http://mine:80"
    assert chosen("https://x.example/", False, HTTPS_PROXY="http://s:1") is None
    assert chosen("https://x.example/", "none", HTTPS_PROXY="http://s:1") is None


@pytest.mark.parametrize(
    "url", ["http://localhost:8/", "http://a.localhost/", "http://127.0.0.1:80/", "ws://127.9.9.9/", "http://[::1]:8/"]
)
def test_a_loopback_address_is_never_reached_through_the_proxy_of_the_environment(url):
    assert chosen(url, HTTP_PROXY="p:1", ALL_PROXY="p:1") is None


NO_PROXY = {
    "*": (["https://x.example/", "https://10.0.0.1/"], []),
    "example": (["https://example/", "https://x.example/"], ["https://anexample/", "https://example.org/"]),
    ".corp.example": (["https://corp.example/", "https://a.corp.example"], ["https://xcorp.example/"]),
    "*.corp.example": (["https://a.corp.example"], ["https://corp.example.org/"]),
    "UPPER.example": (["https://upper.EXAMPLE./"], []),
    "a.example, b.example c.example": (["https://a.example", "https://b.example", "https://c.example"], ["https://d/"]),
    "a.example:8443": (["https://a.example:8443/", "wss://x.a.example:8443"], ["https://a.example/"]),
    "a.example:443": (["https://a.example/", "wss://a.example/"], ["http://a.example/"]),
    "10.0.0.1": (["https://10.0.0.1/"], ["https://10.0.0.2/", "https://x10.0.0.1/"]),
    "10.0.0.1:80": (["http://10.0.0.1/"], ["https://10.0.0.1/"]),
    "10.0.0.0/8": (["https://10.200.0.1/"], ["https://11.0.0.1/", "https://ten.example/"]),
    "fd00::1": (["https://[fd00::1]/"], ["https://[fd00::2]/"]),
    "[fd00::1]:443": (["https://[fd00::1]/"], ["https://[fd00::1]:8443/"]),
    "fd00::/16": (["https://[fd00::7]/"], ["https://[fe00::7]/"]),
    ", ,.,": ([], ["https://x.example/", "https://10.0.0.1/"]),
}


@pytest.mark.parametrize("rules", NO_PROXY)
def test_no_proxy_lists_the_hosts_that_are_reached_directly(rules):
    direct, through = NO_PROXY[rules]
    for name in ("NO_PROXY", "no_proxy"):
        known = {"ALL_PROXY": "p:1", name: rules}
        assert {url: chosen(url, **known) for url in direct} == dict.fromkeys(direct)
        assert {url: chosen(url, **known) for url in through} == dict.fromkeys(through, "http://p:1")


@pytest.mark.parametrize("written", ["ftp://p:1", "socks4://p:1", "http://", "http://p:x", "http://p:99999", "//"])
def test_an_invalid_proxy_is_one_clear_error(written):
    with pytest.raises(accord.AccordError, match=r"^invalid proxy .*\(from ALL_PROXY\): it must be one of http://HOST"):
        network_proxy("https://x.example/", True, {"ALL_PROXY": written})
    with pytest.raises(accord.AccordError, match=r"^invalid proxy"):
        accord.http.UrlTarget("https://x.example/acp", proxy=written)


def test_a_user_name_that_socks_cannot_carry_is_refused():
    with pytest.raises(accord.AccordError, match="at most 255 bytes"):
        NetworkProxy.read(f"socks5://{'u' * 256}@p")


# Checks


async def test_the_raw_requests_of_a_check_go_through_the_http_proxy_and_log_in_there(tmp_path):
    with answers_of_a_server("") as url:
        address = urlsplit(url)
        proxy = LittleProxy((address.hostname, address.port), wants_login=True)
        async with await asyncio.start_server(proxy.connected, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            through = f"http://ada:{WRITTEN}@127.0.0.1:{port}"
            settings = Settings(url=f"http://agent.invalid:8000{address.path}", proxy=through, answer_within=20)
            context = ScenarioContext(never, settings, tmp_path)
            await raw_http(context)
    assert context.tally.findings == []
    assert set(proxy.asked) == {"agent.invalid:8000"}
