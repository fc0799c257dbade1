"""The handshake: what comes first, which version is chosen, and who says what about itself."""

from __future__ import annotations

from typing import Any

from accord_check.conversation import Exchange, Frame, objects
from accord_check.passive.observer import Observer


class Opening(Observer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._initializations = 0
        self._logins: set[Any] = set()

    def request(self, exchange: Exchange) -> None:
        if exchange.method == "initialize":
            if exchange.by == "client":
                self._initialization(exchange)
        elif exchange.by == "client":
            if exchange.row is not None:
                early = (
                    None
                    if self.conversation.is_initialized
                    else f"{exchange.method} was sent before initialize was answered"
                )
                self.judge("initialize.client-goes-first", early, exchange.frame)
        else:
            early = (
                None
                if self.conversation.is_initialized
                else f"{exchange.method} was sent before initialize was answered"
            )
            self.judge("lint.before-initialize", early, exchange.frame)
        if exchange.method in ("authenticate", "auth/login") and exchange.by == "client":
            self._login(exchange)

    def answer(self, exchange: Exchange) -> None:
        if exchange.method == "initialize" and exchange.succeeded and exchange.answered is not None:
            self._chosen(exchange, exchange.answered)
            self._introduced(exchange, exchange.answered)
            self._ways_in(exchange, exchange.answered)

    def _initialization(self, exchange: Exchange) -> None:
        params, frame = exchange.params, exchange.frame
        self._initializations += 1
        again = "a second initialize on one connection" if self.conversation.initialize is not exchange else None
        self.judge("initialize.once", again, frame)
        self.judge("initialize.client-states-version", _absent(params, "protocolVersion"), frame)
        is_second = params.get("protocolVersion") == 2
        self.judge(
            "initialize.client-states-capabilities",
            _absent(params, "clientCapabilities", *(("capabilities",) if is_second else ())),
            frame,
        )
        self.judge(
            "initialize.client-states-info", _absent(params, "clientInfo", *(("info",) if is_second else ())), frame
        )

    def _introduced(self, exchange: Exchange, frame: Frame) -> None:
        fields = exchange.fields
        is_second = fields.get("protocolVersion") == 2
        self.judge("initialize.agent-states-version", _absent(fields, "protocolVersion"), frame)
        name = "capabilities" if is_second else "agentCapabilities"
        self.judge("initialize.agent-states-capabilities", _absent(fields, name), frame)
        self.judge("initialize.agent-states-info", _absent(fields, "info" if is_second else "agentInfo"), frame)

    def _chosen(self, exchange: Exchange, frame: Frame) -> None:
        asked, chosen = exchange.params.get("protocolVersion"), exchange.fields.get("protocolVersion")
        if type(asked) is not int or type(chosen) is not int:
            return
        said = f"asked for version {asked}, answered version {chosen}"
        if asked == 1:
            wrong = None if chosen == 1 else said
            self.judge("initialize.version.agent-echoes-supported", wrong, exchange.frame, frame)
        elif asked > 2:
            wrong = said if chosen == asked else None
            self.judge("initialize.version.agent-answers-latest", wrong, exchange.frame, frame)
        elif chosen > asked:
            self.judge("initialize.version.agent-answers-latest", said, exchange.frame, frame)

    def _ways_in(self, exchange: Exchange, frame: Frame) -> None:
        ways = list(objects(exchange.fields.get("authMethods")))
        named = "methodId" if self.conversation.version == 2 else "id"
        ids = [way[named] for way in ways if isinstance(way.get(named), str)]
        twice = sorted({given for given in ids if ids.count(given) > 1}, key=str)
        self.judge("lint.auth.ids-unique", f"two auth methods have the id {twice[0]!r}" if twice else None, frame)
        self._logins = set(ids)
        at_terminal = [way for way in ways if way.get("type") == "terminal"]
        # A client may also say it in the older way; what it then gets is what it asked for.
        allowed = self.conversation.declares("client", "auth.terminal") or self.conversation.declares(
            "client", "_meta.terminal-auth"
        )
        if not allowed:
            wrong = f"the auth method {at_terminal[0].get(named)!r} has the type terminal" if at_terminal else None
            self.judge("auth.terminal.only-when-advertised", wrong, frame)
        for way in at_terminal:
            wrong = f"the auth method {way.get(named)!r} has a command" if "command" in way else None
            self.judge("auth.terminal.no-command", wrong, frame)

    def _login(self, exchange: Exchange) -> None:
        method = exchange.params.get("methodId")
        if isinstance(method, str) and self.conversation.is_initialized:
            wrong = None if method in self._logins else f"the agent offered no auth method {method!r}"
            self.judge("auth.authenticate.offered-method", wrong, exchange.frame)


def _absent(fields: dict[str, Any], *names: str) -> str | None:
    if any(fields.get(name) is not None for name in names):
        return None
    return f"{names[0]} is missing"
