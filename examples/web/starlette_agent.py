"""An agent inside a Starlette application, for the application's own users.

pip install 'accord[http]' starlette uvicorn pyjwt   (from the source: './accord/packages/accord[http]')
SECRET=... python starlette_agent.py

Users log in at /login and get a token, which editors send as a bearer token to /agents/acp. Each user has sessions of
their own. On SIGTERM and Ctrl-C, prompts that run have ten seconds to end.
"""

import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import jwt
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

import accord

SECRET = os.environ["SECRET"]
"""Signs the tokens: 32 random bytes or more."""

USERS = {"ada": "lovelace", "bob": "ross"}
"""Stands for your table of users; keep hashes of passwords there."""

agent = accord.Agent("greeter", version="1.0.0")


@agent.on_prompt
async def greet(turn: accord.Turn) -> None:
    await turn.say(f"You said: {turn.text}")


def owner_of(token: str) -> str | None:
    """The user of a token; None for one that is expired or not ours."""
    try:
        return str(jwt.decode(token, SECRET, algorithms=["HS256"], options={"require": ["exp", "sub"]})["sub"])
    except jwt.InvalidTokenError:
        return None


agents = accord.http.app(agent, access=accord.http.Access(owner_of))


async def log_in(request: Request) -> JSONResponse:
    login = await request.json()
    name = login.get("name")
    if name not in USERS or USERS[name] != login.get("password"):
        return JSONResponse({"detail": "wrong name or password"}, 401)
    claims = {"sub": name, "exp": datetime.now(UTC) + timedelta(hours=8)}
    return JSONResponse({"token": jwt.encode(claims, SECRET, algorithm="HS256")})


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncGenerator[None]:
    yield
    await agents.close()  # for servers other than the one below, which has closed it already


app = Starlette(routes=[Route("/login", log_in, methods=["POST"]), Mount("/agents", agents)], lifespan=lifespan)


class Server(uvicorn.Server):
    """Ends the agents first: uvicorn waits for open streams, and those of an agent stay open."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await agents.close(grace=10.0)
        await super().shutdown(sockets)


if __name__ == "__main__":
    Server(uvicorn.Config(app, port=int(os.environ.get("PORT", "8000")))).run()
