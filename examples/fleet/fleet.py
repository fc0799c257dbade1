"""A fleet of agents behind one URL: each has a path of its own, and can be changed while the others go on.

pip install 'accord[http]' starlette uvicorn   (from the source: './accord/packages/accord[http]')
FLEET_TOKEN=s3cret python fleet.py fleet.toml

    /agents                what there is: how many connections, how many of them work
    /agents/NAME/acp       the endpoint of an agent, for `accord.connect(url, token=...)` and editors
    /healthz               200, and 503 while the fleet ends

SIGHUP reads the file again: new agents are there at once; one that changed or went drains, that is, its connections
may end their prompts, while new clients get what the file says now. SIGTERM drains all of them.
"""

import asyncio
import hmac
import os
import signal
import socket
import sys
import tomllib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

import accord

GRACE = 30.0
"""Seconds that running prompts have to end."""


class Listed(msgspec.Struct, frozen=True):
    """An agent as the file lists it."""

    command: list[str]
    most: int = 100


class Fleet:
    """The agents, by their names, and those that drain."""

    def __init__(self, file: Path, access: accord.http.Access) -> None:
        self._file = file
        self._access = access
        self._listed: dict[str, Listed] = {}
        self._serving: dict[str, accord.http.App] = {}
        self._draining: dict[asyncio.Task[None], accord.http.App] = {}
        self.is_ending = False

    def read(self) -> None:
        """Serve what the file lists; raises ValueError and leaves all as it is if the file is wrong."""
        table = tomllib.loads(self._file.read_text(encoding="utf-8")).get("agents", {})
        wanted = msgspec.convert(table, dict[str, Listed])
        for name in [name for name, listed in self._listed.items() if wanted.get(name) != listed]:
            self._drain(self._serving.pop(name))
        for name in wanted.keys() - self._serving.keys():
            limits = accord.http.ServerLimits(processes=wanted[name].most)
            self._serving[name] = accord.http.app(wanted[name].command, access=self._access, limits=limits)
        self._listed = wanted
        print(f"serving {', '.join(sorted(wanted)) or 'no agent'}", flush=True)

    def read_again(self) -> None:
        """Read the file after a change; a mistake in it changes nothing."""
        try:
            self.read()
        except (OSError, ValueError) as error:
            print(f"{self._file} is not used: {error}", flush=True)

    def _drain(self, app: accord.http.App) -> None:
        task = asyncio.create_task(app.close(GRACE))
        self._draining[task] = app
        task.add_done_callback(self._draining.pop)

    async def end(self) -> None:
        """Drain all agents."""
        self.is_ending = True
        while self._serving:
            self._drain(self._serving.popitem()[1])
        if self._draining:
            await asyncio.wait(self._draining)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request for /agents/NAME/... to its agent; one of a connection that drains, to the app that has it."""
        name, _, _ = scope["path"].removeprefix(scope["root_path"]).lstrip("/").partition("/")
        connection = dict(scope["headers"]).get(b"acp-connection-id", b"").decode("latin-1")
        draining = next((app for app in self._draining.values() if app.has(connection)), None)
        app = draining or self._serving.get(name)
        if app is None:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await PlainTextResponse(f"no agent {name!r}", 404)(scope, receive, send)
            return
        await app({**scope, "root_path": f"{scope['root_path']}/{name}"}, receive, send)

    def state(self) -> dict[str, dict[str, int]]:
        """Each agent's connections, and how many of them work on a prompt."""
        return {
            name: {"connections": app.connections, "running": app.running}
            for name, app in sorted(self._serving.items())
        }


def application(fleet: Fleet, token: str) -> Starlette:
    """The routes of the fleet."""

    async def healthz(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ending", 503) if fleet.is_ending else PlainTextResponse("ok")

    async def agents(request: Request) -> JSONResponse:
        if not same(request.headers.get("authorization", ""), f"Bearer {token}"):
            return JSONResponse({"error": "missing or wrong bearer token"}, 401)
        return JSONResponse(fleet.state())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        fleet.read()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, fleet.read_again)
        yield
        await fleet.end()

    routes = [Route("/healthz", healthz), Route("/agents", agents), Mount("/agents", fleet)]
    return Starlette(routes=routes, lifespan=lifespan)


def same(given: str, wanted: str) -> bool:
    """Whether two secrets are the same; the time that this takes reveals nothing of them."""
    return hmac.compare_digest(given.encode(), wanted.encode())


class Server(uvicorn.Server):
    """Ends the agents first: uvicorn waits for open streams, and those of an agent stay open."""

    def __init__(self, config: uvicorn.Config, fleet: Fleet) -> None:
        super().__init__(config)
        self._fleet = fleet

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._fleet.end()
        await super().shutdown(sockets)


def main() -> None:
    token = os.environ["FLEET_TOKEN"]
    access = accord.http.Access(lambda given: "operator" if same(given, token) else None)
    fleet = Fleet(Path(sys.argv[1] if len(sys.argv) > 1 else "fleet.toml"), access)
    config = uvicorn.Config(application(fleet, token), port=int(os.environ.get("PORT", "8000")))
    Server(config, fleet).run()


if __name__ == "__main__":
    main()
