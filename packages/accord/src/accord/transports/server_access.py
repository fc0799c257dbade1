"""Access to an agent behind a URL: headers, cookies, a proxy, and errors with advice.

    https://agents.example/acp ──▶ network_proxy ──▶ NetworkProxy.tunnel ──▶ CONNECT or SOCKS5 ──▶ TLS, then HTTP

All connections go through a tunnel, even those without TLS: an event stream or a WebSocket must not meet a proxy that
reads and buffers. So the proxy sees the agent's host and port, and with TLS nothing else.

Without a proxy from the user, the environment names it: `HTTPS_PROXY` for `https` and `wss`, `HTTP_PROXY` for `http`
and `ws`, and `ALL_PROXY` for both; a name in lower case takes precedence over the same one in upper case. `NO_PROXY`
lists hosts that are reached directly. The loopback addresses always are: there, a proxy on another machine would reach
itself.

`checked_headers` checks the user's headers before anything is sent. A line break in a value would inject a header, or a
request. A header that frames the message would contradict the transport's own. Both are refused where they are passed,
with the name of the header. Values are secrets, so no error shows one.

The two common mistakes look like broken connections: TLS spoken to a port without it, and the other way round. Their
marks on the wire are few and stable: the names of OpenSSL's reasons, and the first bytes of a TLS alert.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from accord.errors import AccordError
from accord.redaction import mask_urls

PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
"""The kinds of proxies, with the port of each. With `socks5` names are looked up here, with `socks5h` by the proxy."""

NONE = "none"
"""The value of a setting instead of a URL, so that no proxy is used."""

LONGEST_HEAD = 64 * 1024
"""The most bytes of a proxy's response to CONNECT."""

STATUS = re.compile(rb"HTTP/1\.\d ([0-9]{3}[^\r\n]*)\r\n")

Socket = TypeVar("Socket", bound=asyncio.BaseProtocol)


class ProxyError(OSError):
    """The proxy cannot be reached, or refuses the tunnel."""


class NetworkProxy(msgspec.Struct, frozen=True):
    """An HTTP or SOCKS5 proxy."""

    scheme: str
    host: str
    port: int
    user: str
    password: str
    name: str
    """Return the proxy with this URL, from this variable; raises AccordError for an invalid one."""

    @classmethod
    def read(cls, url: str, variable: str | None = None) -> NetworkProxy:
        """The proxy with this URL, from this variable; raises AccordError for an invalid one.

        Without a scheme it is an HTTP proxy.
        """
        source = f" (from {variable})" if variable else ""
        url = url if "://" in url else f"http://{url}"
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = SplitResult("", "", "", "", ""), None
        if parts.scheme not in PORTS or not parts.hostname:
            kinds = ", ".join(f"{it}://HOST:PORT" for it in PORTS)
            raise AccordError(f"invalid proxy {mask_urls(url)!r}{source}: it must be one of {kinds}")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if parts.scheme.startswith("socks") and max(len(user.encode()), len(password.encode())) > 255:
            raise AccordError(f"invalid proxy{source}: a user name or password of SOCKS5 has at most 255 bytes")
        name = mask_urls(f"{parts.scheme}://{parts.netloc}") + source
        return cls(parts.scheme, parts.hostname, port or PORTS[parts.scheme], user, password, name)

    @property
    def credentials(self) -> dict[str, str]:
        """Return the header that logs in to an HTTP proxy; none without a user."""
        if not self.user:
            return {}
        encoded = b64encode(f"{self.user}:{self.password}".encode()).decode()
        return {"Proxy-Authorization": f"Basic {encoded}"}

    async def tunnel(self, host: str, port: int) -> asyncio.Transport:
        """Open a tunnel to this host; its transport is paused. Raises ProxyError."""
        loop = asyncio.get_running_loop()
        tls = ssl.create_default_context() if self.scheme == "https" else None
        reader = asyncio.StreamReader(LONGEST_HEAD)
        try:
            transport, _ = await loop.create_connection(
                lambda: asyncio.StreamReaderProtocol(reader), self.host, self.port, ssl=tls
            )
        except (OSError, ValueError) as error:
            raise ProxyError(f"it cannot be reached: {getattr(error, 'strerror', None) or error}") from error
        try:
            if self.scheme.startswith("socks"):
                await self._socks(reader, transport, host, port)
            else:
                await self._connect(reader, transport, host, port)
        except asyncio.LimitOverrunError as error:
            transport.abort()
            raise ProxyError("it does not answer like an HTTP proxy") from error
        except (EOFError, ConnectionError) as error:
            transport.abort()
            raise ProxyError("it closed the connection and opened no tunnel") from error
        except BaseException:
            transport.abort()
            raise
        transport.pause_reading()
        return transport

    async def _connect(
        self, reader: asyncio.StreamReader, transport: asyncio.WriteTransport, host: str, port: int
    ) -> None:
        """Ask an HTTP proxy for a tunnel (RFC 9110, 9.3.6)."""
        name = f"[{host}]" if ":" in host else host.encode("idna").decode()
        target = f"{name}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        lines += [f"{name}: {value}" for name, value in self.credentials.items()]
        transport.write("\r\n".join([*lines, "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        found = STATUS.match(head)
        if found is None:
            raise ProxyError("it does not answer like an HTTP proxy")
        status = found[1].decode("latin-1")
        if status.startswith("407"):
            raise ProxyError(f"it answered {status}; {self._wanted_credentials}")
        if not status.startswith("2"):
            ports = "" if port == 443 else "; many proxies allow tunnels to port 443 only"
            raise ProxyError(f"it refused a tunnel to {target}: {status}{ports}")

    async def _socks(
        self, reader: asyncio.StreamReader, transport: asyncio.WriteTransport, host: str, port: int
    ) -> None:
        """Ask a SOCKS5 proxy for a tunnel (RFC 1928), with user and password (RFC 1929) if it has them."""
        transport.write(b"\x05\x02\x00\x02" if self.user else b"\x05\x01\x00")
        version, method = await reader.readexactly(2)
        if version != 5:
            raise ProxyError("it does not answer like a SOCKS5 proxy")
        if method == 2 and self.user:
            user, password = self.user.encode(), self.password.encode()
            transport.write(bytes([1, len(user)]) + user + bytes([len(password)]) + password)
            if (await reader.readexactly(2))[1] != 0:
                raise ProxyError(f"it refused the login; {self._wanted_credentials}")
        elif method != 0:
            raise ProxyError(f"it wants a login; {self._wanted_credentials}")
        address = _packed(host if self.scheme == "socks5h" else await _looked_up(host, port))
        transport.write(b"\x05\x01\x00" + address + port.to_bytes(2, "big"))
        _, code = await reader.readexactly(2)
        if code != 0:
            raise ProxyError(f"it refused a tunnel to {host}:{port}: {SOCKS_REFUSALS.get(code, f'code {code}')}")
        # The address that the proxy connects from, whose length depends on its kind, and the port.
        _, kind = await reader.readexactly(2)
        size = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        await reader.readexactly(size + 2)

    @property
    def _wanted_credentials(self) -> str:
        if self.user:
            return "check the user and the password in its URL"
        return "write USER:PASSWORD@ before the host in its URL"


SOCKS_REFUSALS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "the time to live has expired",
    7: "it cannot open tunnels",
    8: "it does not know this kind of address",
}


async def open_connection(
    create: Callable[[], Socket], host: str, port: int, *, tls: ssl.SSLContext | None, proxy: NetworkProxy | None
) -> Socket:
    """Connect this protocol to a host, through the proxy if there is one. Raises OSError."""
    loop = asyncio.get_running_loop()
    if proxy is None:
        _, direct = await loop.create_connection(create, host, port, ssl=tls)
        return direct
    transport = await proxy.tunnel(host, port)
    protocol = create()
    try:
        if tls is not None:
            encrypted = await loop.start_tls(transport, protocol, tls, server_hostname=host)
            if encrypted is None:
                raise ConnectionResetError("the connection was closed during the TLS handshake")  # noqa: TRY301
            transport = encrypted
        else:
            transport.set_protocol(protocol)
            transport.resume_reading()
    except BaseException:
        transport.abort()
        raise
    protocol.connection_made(transport)
    return protocol


def unreachable(name: str, proxy: NetworkProxy | None, reason: str) -> str:
    """Return the error for an agent that cannot be reached; it names the proxy, if there is one."""
    return f"{name} cannot be reached{'' if proxy is None else f' through the proxy {proxy.name}'}: {reason}"


def network_proxy(url: str, given: str | bool, environment: Mapping[str, str] | None = None) -> NetworkProxy | None:
    """Return the proxy for this URL. `given` is its URL, False for none, or True for that of the environment.

    Raises AccordError for an invalid proxy.
    """
    if isinstance(given, str):
        return None if given == NONE else NetworkProxy.read(given)
    if not given:
        return None
    environment = os.environ if environment is None else environment
    parts = urlsplit(url)
    is_secure = parts.scheme in ("https", "wss")
    for name in ("https_proxy" if is_secure else "http_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if variable == "HTTP_PROXY" and "REQUEST_METHOD" in environment:
                continue  # in a CGI program it is the request's header `Proxy`, which an attacker may have sent
            if variable in environment:  # an empty one means no proxy
                if not environment[variable] or is_direct(parts, environment):
                    return None
                return NetworkProxy.read(environment[variable], variable)
    return None


def is_direct(url: SplitResult, environment: Mapping[str, str]) -> bool:
    """Whether this URL is reached without the environment's proxy: a loopback address, or one in `NO_PROXY`."""
    host = (url.hostname or "").rstrip(".")
    port = url.port or (443 if url.scheme in ("https", "wss") else 80)
    address = _address(host)
    if host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback):
        return True
    rules = environment.get("no_proxy", environment.get("NO_PROXY", ""))
    return any(_matches(rule.lower(), host, port, address) for rule in rules.replace(",", " ").split())


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _matches(rule: str, host: str, port: int, address: Address | None) -> bool:
    """Whether a rule of `NO_PROXY` matches: `*`, a domain with those below it, an address, or a network."""
    if rule == "*":
        return True
    name, colon, number = rule.rpartition(":")
    if colon and number.isdecimal() and (":" not in name or name.endswith("]")):
        if int(number) != port:
            return False
        rule = name
    if address is not None:
        try:
            return address in ipaddress.ip_network(rule.strip("[]"), strict=False)
        except ValueError:
            return False
    domain = rule.removeprefix("*").strip(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _address(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _packed(host: str) -> bytes:
    """A host as SOCKS5 writes it (RFC 1928, 5)."""
    if (address := _address(host)) is not None:
        return (b"\x01" if address.version == 4 else b"\x04") + address.packed
    name = host.encode("idna")
    return bytes([3, len(name)]) + name


async def _looked_up(host: str, port: int) -> str:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port)
    except OSError as error:
        raise ProxyError(
            f"{host} cannot be looked up here: {error.strerror}; socks5h:// lets the proxy do it"
        ) from error
    return str(found[0][4][0])


OWN = frozenset(
    {"connection", "content-length", "content-type", "host", "keep-alive", "te", "trailer", "transfer-encoding"}
    | {"upgrade", "accept", "last-event-id", "acp-connection-id", "acp-session-id", "accord-message"}
)
"""Headers that the transport sends itself."""

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def checked_headers(headers: Mapping[str, str] | None, token: str | None = None) -> dict[str, str]:
    """Return these headers, and the one with the bearer token if there is one; raises AccordError for an invalid one.

    >>> checked_headers({"X-Team": "blue"}, token="s3cret")
    {'X-Team': 'blue', 'Authorization': 'Bearer s3cret'}
    """
    for name, value in (headers or {}).items():
        _check(name, value)
    given = dict(headers or {})
    if token is not None:
        if not token.strip():
            raise AccordError("'token' is empty: pass None to send none")
        if not _VALUE.fullmatch(token):
            raise AccordError("'token' contains a line break or another control character: pass the token alone")
        given["Authorization"] = f"Bearer {token}"
    return given


def _check(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise AccordError(f"'headers' has the name {name!r}: a name has letters, digits and hyphens only")
    if name.lower() in OWN or name.lower().startswith("sec-websocket-"):
        raise AccordError(f"'headers' must not contain {name}: Accord sends this header itself")
    if not _VALUE.fullmatch(value):
        raise AccordError(f"the value of {name} in 'headers' contains a line break or another control character")


class Cookies:
    """Cookies that a server has set, and the header that returns them.

    >>> cookies = Cookies()
    >>> cookies.keep(["home=seven; Path=/; HttpOnly", "gone=1", "gone=; Max-Age=0"])
    >>> cookies.header
    'home=seven'
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def keep(self, set_cookies: Iterable[str]) -> None:
        """Store the cookies of these `Set-Cookie` headers, and remove those that expire."""
        for line in set_cookies:
            pair, *attributes = (part.strip() for part in line.split(";"))
            name, equals, value = pair.partition("=")
            if not (name and equals):
                continue
            if any(_expires(attribute) for attribute in attributes):
                self._values.pop(name, None)
            else:
                self._values[name] = value

    @property
    def header(self) -> str:
        """Return the value of the `Cookie` header; empty if there are no cookies."""
        return "; ".join(f"{name}={value}" for name, value in self._values.items())


def _expires(attribute: str) -> bool:
    # A server removes a cookie by Max-Age 0 (RFC 6265, 5.2.2) or, more often, by a date in 1970.
    name, _, value = attribute.partition("=")
    match name.strip().lower():
        case "max-age":
            return value.strip().startswith(("0", "-"))
        case "expires":
            return "1970" in value
        case _:
            return False


USUAL_PATH = "/acp"
"""The usual path of agents."""

ALERT = b"\x15\x03"
"""The beginning of a TLS alert, which a TLS server sends in answer to a request without TLS."""

HANDSHAKE = b"\x16\x03"
"""The beginning of a TLS handshake, which a client with TLS sends to a server without it."""

_NOT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG", "BAD_PACKET_LENGTH"}
"""OpenSSL's reasons for an answer that is not TLS at all."""

NO_TLS_THERE = "it does not speak TLS; for a server without TLS, the URL begins with http:// or ws://"
TLS_THERE = "it speaks TLS; the URL must begin with https:// or wss://"
MAYBE_TLS_THERE = "if it speaks TLS, the URL must begin with https:// or wss://"


def without_tls(error: BaseException) -> str | None:
    """Return the explanation of an error that a server without TLS causes; None for other errors."""
    return NO_TLS_THERE if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS else None


def no_answer(received: bytes, *, tls: bool) -> str:
    """Return the addition to "the server closed the connection before it answered", given what it has sent
    until then.
    """
    if tls:
        return ""
    return f"; {TLS_THERE}" if received.startswith(ALERT) else "" if received else f"; {MAYBE_TLS_THERE}"


def not_found(url: str, status: int) -> str:
    """Return the addition to a refused connection's error, if there is no agent at this URL."""
    path = urlsplit(url).path or "/"
    if status == 404:
        problem = f"no agent is served at the path {path}"
    elif status in (301, 302, 303, 307, 308):
        problem = "redirects are not followed, so give the agent's own URL"
    else:
        return ""
    usual = "" if path == USUAL_PATH else f"; agents are usually served at {USUAL_PATH}"
    return f" ({problem}{usual})"
