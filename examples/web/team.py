"""An application for a team around one agent: a page with routes of its own, and the agent's endpoint for editors.

pip install 'accord[http]' fastapi uvicorn pyjwt   (from the source: './accord/packages/accord[http]')
SECRET=... python team.py, and then http://127.0.0.1:8000

Users log in and see only their own sessions, in the page and in their editors alike: both reach the same agent, with
the same token, and all sessions are in one store. The page shows those in the user's own folder on the server. Answers
stream to it as server-sent events.
"""

import json
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from accounts import owner_of, token_for
from desk import Desk
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

import accord
from accord_tools.demo import demo_agent

HERE = Path(__file__).parent
DATA = Path(os.environ.get("TEAM_DATA", "team-data"))
DATA.mkdir(parents=True, exist_ok=True)

agent = demo_agent(pace=float(os.environ.get("PACE", "0.02")), store=DATA / "sessions.sqlite3")  # your agent goes here
agents = accord.http.app(agent, access=accord.http.Access(owner_of))
desks: dict[str, Desk] = {}


async def end_all(grace: float = 0.0) -> None:
    """End the connections of editors, and then those of the page."""
    await agents.close(grace)
    while desks:
        await desks.popitem()[1].close()


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    yield
    await end_all()  # for servers other than the one below, which has done it already


app = FastAPI(lifespan=lifespan)
app.mount("/agents", agents)


def desk_of(credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> Desk:
    """The desk of the user who sends this request."""
    user = owner_of(credentials.credentials)
    if user is None:
        raise HTTPException(401, "log in again")
    return desks.setdefault(user, Desk(agent, user, (DATA / user).resolve()))


Mine = Annotated[Desk, Depends(desk_of)]


class Login(BaseModel):
    name: str
    password: str


class Prompt(BaseModel):
    text: str


class Answer(BaseModel):
    allow: bool


@app.get("/")
def page() -> FileResponse:
    return FileResponse(HERE / "team.html")


@app.post("/login")
def log_in(login: Login) -> dict[str, str]:
    if (token := token_for(login.name, login.password)) is None:
        raise HTTPException(401, "wrong name or password")
    return {"token": token}


@app.get("/sessions")
async def list_sessions(desk: Mine) -> list[dict[str, str | None]]:
    return [{"id": info.session_id, "title": info.title} for info in await desk.sessions()]


@app.post("/sessions")
async def begin_session(desk: Mine) -> dict[str, str]:
    return {"id": (await desk.new_session()).id}


@app.get("/sessions/{session_id}")
async def read_session(session_id: str, desk: Mine) -> list[dict[str, str]]:
    session = await found(desk, session_id)
    return [{"speaker": message.speaker, "text": message.text} for message in session.state.messages]


@app.post("/sessions/{session_id}/prompts")
async def send_prompt(session_id: str, prompt: Prompt, desk: Mine) -> StreamingResponse:
    session = await found(desk, session_id)
    if session.is_busy:
        raise HTTPException(409, "the agent still works on the last prompt")

    async def events() -> AsyncGenerator[str]:
        async for event in desk.turn(session, prompt.text):
            yield f"data: {json.dumps(event)}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@app.post("/questions/{number}")
async def answer_question(number: int, answer: Answer, desk: Mine) -> dict[str, bool]:
    if not desk.answer(number, allow=answer.allow):
        raise HTTPException(404, "this question is not open")
    return {"allow": answer.allow}


async def found(desk: Desk, session_id: str) -> accord.RemoteSession:
    """A session of this user; those of others do not exist here."""
    try:
        return await desk.session(session_id)
    except accord.PeerError as error:
        raise HTTPException(404, "no such session") from error


class Server(uvicorn.Server):
    """Ends the agents first: uvicorn waits for open streams, and those of an agent stay open."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await end_all(grace=10.0)
        await super().shutdown(sockets)


if __name__ == "__main__":
    options: dict[str, Any] = {"port": int(os.environ.get("PORT", "8000")), "timeout_graceful_shutdown": 10}
    Server(uvicorn.Config(app, **options)).run()
