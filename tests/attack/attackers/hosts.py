"""Between hosts: requests that were signed and then changed, an observer's token, and a quota that several hosts share.

Only here something of Accord is used: what signs a request as a host does, so that there is one to change.
"""

from __future__ import annotations

import json
import time

from accord.hosts.signed_forward import Signer
from tests.attack.attackers import Attacker, attack
from tests.attack.attackers.wire import INITIALIZE, Socket, connected, cut_off, head, leave, response
from tests.attack.bounds import BURST, POSTS

FILLER = b"\r\n\r\n" + b"?" * 2000 + b"\r\n\r\n"
"""Completes whatever the host waits for, and is no request."""

PATH = "/acp"
KIND = {"content-type": "application/json"}
NOTE = b'{"jsonrpc":"2.0","method":"_example/note","params":{"number":"%04d"}}'

OWNERS_METHODS = (
    *("authenticate", "logout", "auth/login", "auth/logout", "providers/list", "providers/set", "providers/disable"),
    *("session/new", "session/fork", "session/delete", "session/prompt", "session/set_mode", "session/close"),
    *("session/set_config_option", "session/archive", "_example.com/anything", "terminal/cancel", "mcp/message"),
)
"""What no observer may do."""

HOPS_AT_ONCE = 50


class ForgedHost:
    """A network between two hosts that can change all that passes."""

    def __init__(self, attacker: Attacker) -> None:
        self._facts = attacker.targets["hosts"]
        key = self._facts["key"].encode()
        self._signer = Signer([key], lambda: "forged")

    def signed(self, method: str, headers: dict[str, str], body: bytes) -> bytes:
        """The request, as a host sends it."""
        forward = self._signer.forward(self._facts["id"], time.monotonic(), "ada", body)
        fields = [f"{name}: {value}" for name, value in headers.items()]
        signature = self._signer.sign(forward, method, PATH, headers)
        return head(method, *fields, f"accord-hop: {signature}", f"content-length: {len(body)}") + body

    def send(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = connected(self._facts["peer"])
        try:
            connection.sendall(request + FILLER)
            return response(connection)
        finally:
            connection.close()

    def opened(self) -> dict[str, str]:
        """The headers of requests on a connection that was opened in an owner's name."""
        _, headers, _ = self.send(self.signed("POST", KIND, json.dumps(INITIALIZE).encode()))
        return {**KIND, "acp-connection-id": headers["acp-connection-id"]}


@attack
def changed_signed_requests(attacker: Attacker) -> None:
    """Signed requests with a changed byte, with another body, or sent again; and some that are as they were signed."""
    forged, chance = ForgedHost(attacker), attacker.random
    while attacker.going:
        with cut_off():
            headers = forged.opened()
            for _ in range(HOPS_AT_ONCE):
                body, other = NOTE % chance.randrange(1_000), NOTE % (1_000 + chance.randrange(1_000))
                request = bytearray(forged.signed("POST", headers, body))
                match how := chance.choice(("a byte", "the body", "again", "nothing")):
                    case "a byte":  # but none of the name of the server, which is not used
                        request[chance.randrange(request.index(b"content-type"), len(request))] ^= (
                            1 << chance.randrange(3)
                        )
                    case "the body":
                        request[-len(body) :] = other
                    case "again":
                        forged.send(bytes(request))
                with cut_off():
                    status, _, _ = forged.send(bytes(request))
                    if (status == 202) is not (how == "nothing"):
                        attacker.wrong(
                            f"a signed request with a change of {how} was answered with {status}: {request!r}"
                        )
                attacker.made()
            forged.send(forged.signed("DELETE", headers, b""))


@attack
def unsigned_requests_to_a_host(attacker: Attacker) -> None:
    """The peer port is asked for its health, its figures and an agent, without a signature."""
    facts = attacker.targets["hosts"]
    while attacker.going:
        with cut_off():
            connection = connected(facts["peer"])
            connection.sendall(head("GET", target=attacker.random.choice(("/healthz", "/metrics", PATH))))
            status, _, body = response(connection)
            if facts["id"].encode() in body or (status == 200 and body != b"ok"):
                attacker.wrong(f"the peer port answered {status} {body[:100]!r}")
            leave(attacker, [connection])
        attacker.made()
        time.sleep(0.005)


@attack
def observers_token(attacker: Attacker) -> None:
    """An observer does what only the owner may."""
    while attacker.going:
        with cut_off():
            socket = Socket(attacker.port("agents", "front"), token="0ther").initialized()
            for number in range(1, 30):
                method = attacker.random.choice(OWNERS_METHODS)
                params = {"sessionId": "s", "cwd": "/", "mcpServers": [], "prompt": []}
                socket.send({"jsonrpc": "2.0", "method": method, "params": params})
                socket.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
                if socket.answer_to(number).get("error", {}).get("data") != {"reason": "watching"}:
                    attacker.wrong(f"an observer may {method}")
                attacker.made()
            leave(attacker, [socket.connection])


@attack
def posts_past_the_quota(attacker: Attacker) -> None:
    """An owner sends as fast as it can through two hosts, and counts what is taken of it."""
    connections = {}
    accepted, began = 0, time.monotonic()
    while attacker.going:
        with cut_off():
            port = attacker.port("agents", "front")
            connection = connections.get(port) or connections.setdefault(port, connected(port))
            connection.sendall(
                head("POST", "Authorization: Bearer few", "Content-Type: text/plain", "Content-Length: 0")
            )
            status, _, _ = response(connection)
            accepted += status != 429
            attacker.made()
            continue
        connections.pop(port, None)
    # Another attacker may have the same token at the same time, so less may be left; more never is.
    if accepted > (allowed := BURST + POSTS * (time.monotonic() - began) + 1):
        attacker.wrong(f"{accepted} posts of an owner were accepted, {allowed:.0f} are allowed")
