"""Our own agent for the interop suite. What every agent of the suite does is said in `interop/agents/README.md`."""

import asyncio
import json
import re
from pathlib import PurePath
from typing import Any

from accord import Context, Handlers, Peer, PeerError, RequestError, StdioTransport, run, v1
from accord.schema.codec import decode, encode

NOT_FOUND, INVALID_PARAMS, AUTH_REQUIRED = -32002, -32602, -32000
PAGE = 2
MODES = ["ask", "code"]
MODELS = ["small", "large"]

handlers = Handlers()


class Session:
    """One conversation, and what its turns have sent."""

    def __init__(self, session_id: v1.SessionId, cwd: str) -> None:
        self.id = session_id
        self.cwd = cwd
        self.mode = MODES[0]
        self.model = MODELS[0]
        self.history: list[v1.SessionUpdate] = []
        self.cancelled = asyncio.Event()

    def modes(self) -> v1.SessionModeState:
        modes = [v1.SessionMode(v1.SessionModeId(name), name.title()) for name in MODES]
        return v1.SessionModeState(v1.SessionModeId(self.mode), modes)

    def options(self) -> list[v1.SessionConfigOption]:
        values = [v1.SessionConfigSelectOption(v1.SessionConfigValueId(name), name.title()) for name in MODELS]
        return [
            v1.SessionConfigSelect(v1.SessionConfigId("model"), "Model", v1.SessionConfigValueId(self.model), values)
        ]


class State:
    sessions: dict[str, Session] = {}  # noqa: RUF012
    told: list[Any] = []  # noqa: RUF012
    created = 0
    logged_in = False


def session_of(session_id: str) -> Session:
    try:
        return State.sessions[session_id]
    except KeyError:
        raise RequestError(NOT_FOUND, f"no such session: {session_id}") from None


def create(cwd: str) -> Session:
    session = Session(v1.SessionId(f"session_{State.created}"), cwd)
    State.created += 1
    State.sessions[session.id] = session
    return session


@handlers.on(v1.InitializeRequest)
def initialize(_: v1.InitializeRequest) -> v1.InitializeResponse:
    return v1.InitializeResponse(
        protocol_version=1,
        agent_info=v1.Implementation("interop-agent", "1.0.0"),
        agent_capabilities=v1.AgentCapabilities(
            load_session=True,
            prompt_capabilities=v1.PromptCapabilities(image=True, audio=True, embedded_context=True),
            session_capabilities=v1.SessionCapabilities(
                list=v1.SessionListCapabilities(),
                resume=v1.SessionResumeCapabilities(),
                close=v1.SessionCloseCapabilities(),
                delete=v1.SessionDeleteCapabilities(),
                fork=v1.SessionForkCapabilities(),
            ),
            auth=v1.AgentAuthCapabilities(logout=v1.LogoutCapabilities()),
        ),
        auth_methods=[v1.AuthMethodAgent(v1.AuthMethodId("token"), "Token")],
    )


@handlers.on(v1.AuthenticateRequest)
def authenticate(request: v1.AuthenticateRequest) -> None:
    if request.method_id != "token":
        raise RequestError(INVALID_PARAMS, f"no such method: {request.method_id}")
    State.logged_in = True


@handlers.on(v1.LogoutRequest)
def logout(_: v1.LogoutRequest) -> None:
    State.logged_in = False


@handlers.on(v1.NewSessionRequest)
def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
    if PurePath(request.cwd).name == "private" and not State.logged_in:
        raise RequestError(AUTH_REQUIRED, "Authentication required")
    session = create(request.cwd)
    return v1.NewSessionResponse(session.id, session.modes(), session.options())


@handlers.on(v1.ListSessionsRequest)
def list_sessions(request: v1.ListSessionsRequest) -> v1.ListSessionsResponse:
    there = [it for it in State.sessions.values() if request.cwd in (None, it.cwd)]
    begin = int(request.cursor or 0)
    page = [v1.SessionInfo(it.id, it.cwd) for it in there[begin : begin + PAGE]]
    more = begin + PAGE < len(there)
    return v1.ListSessionsResponse(page, str(begin + PAGE) if more else None)


@handlers.on(v1.LoadSessionRequest)
async def load_session(request: v1.LoadSessionRequest, context: Context) -> v1.LoadSessionResponse:
    session = session_of(request.session_id)
    for update in session.history:
        await context.peer.notify(v1.SessionNotification(session.id, update))
    return v1.LoadSessionResponse(session.modes(), session.options())


@handlers.on(v1.ResumeSessionRequest)
def resume_session(request: v1.ResumeSessionRequest) -> v1.ResumeSessionResponse:
    session = session_of(request.session_id)
    return v1.ResumeSessionResponse(session.modes(), session.options())


@handlers.on(v1.ForkSessionRequest)
def fork_session(request: v1.ForkSessionRequest) -> v1.ForkSessionResponse:
    original = session_of(request.session_id)
    session = create(request.cwd)
    session.history = list(original.history)
    return v1.ForkSessionResponse(session.id, session.modes(), session.options())


@handlers.on(v1.CloseSessionRequest)
def close_session(request: v1.CloseSessionRequest) -> None:
    session_of(request.session_id).cancelled.set()


@handlers.on(v1.DeleteSessionRequest)
def delete_session(request: v1.DeleteSessionRequest) -> None:
    State.sessions.pop(request.session_id, None)


@handlers.on(v1.SetSessionModeRequest)
async def set_mode(request: v1.SetSessionModeRequest, context: Context) -> None:
    session = session_of(request.session_id)
    if request.mode_id not in MODES:
        raise RequestError(INVALID_PARAMS, f"no such mode: {request.mode_id}")
    session.mode = request.mode_id
    await context.peer.notify(v1.SessionNotification(session.id, v1.CurrentModeUpdate(request.mode_id)))


@handlers.on(v1.SetSessionConfigOptionRequest)
def set_option(request: v1.SetSessionConfigOptionRequest) -> v1.SetSessionConfigOptionResponse:
    session = session_of(request.session_id)
    if request.config_id != "model" or request.value not in MODELS:
        raise RequestError(INVALID_PARAMS, f"no such option or value: {request.config_id}, {request.value}")
    session.model = str(request.value)
    return v1.SetSessionConfigOptionResponse(session.options())


@handlers.on_request("_interop.example/echo")
def echo(params: Any) -> Any:
    return {"echo": params}


@handlers.on_notification("_interop.example/told")
def remember(params: Any) -> None:
    State.told.append(params)


@handlers.on(v1.CancelNotification)
def cancel(notification: v1.CancelNotification) -> None:
    session_of(notification.session_id).cancelled.set()


@handlers.on(v1.PromptRequest)
async def prompt(request: v1.PromptRequest, context: Context) -> v1.PromptResponse:
    turn = Turn(context.peer, session_of(request.session_id))
    turn.session.cancelled.clear()
    texts = [block.text for block in request.prompt if isinstance(block, v1.TextContent)]
    if texts and texts[0].startswith("["):
        return v1.PromptResponse(await turn.act(json.loads(texts[0])))
    kinds = " ".join(json.loads(encode(block))["type"] for block in request.prompt)
    await turn.say(f"blocks: {kinds}, {sum(len(text) for text in texts)} letters")
    return v1.PromptResponse("end_turn")


class Turn:
    """The actions of one prompt."""

    def __init__(self, peer: Peer, session: Session) -> None:
        self.peer = peer
        self.session = session
        self.known: dict[str, Any] = {}

    async def act(self, actions: list[dict[str, Any]]) -> Any:
        for action in actions:
            match action:
                case {"update": update}:
                    await self.update(update, action.get("times", 1), action.get("pad", 0))
                case {"ask": method}:
                    await self.ask(method, action.get("params", {}), action.get("keep", {}))
                case {"tell": method}:
                    await self.peer.notify_raw(method, self.filled(action["params"]))
                case {"said": _}:
                    await self.say(json.dumps(State.told))
                case {"wait": _}:
                    await self.session.cancelled.wait()
                    return "cancelled"
                case {"fail": error}:
                    raise RequestError(error["code"], error["message"], error.get("data"))
                case {"stop": reason}:
                    return reason
                case _:
                    raise RequestError(INVALID_PARAMS, f"no such action: {action}")
        return "end_turn"

    async def update(self, update: dict[str, Any], times: int, pad: int) -> None:
        template = json.dumps(update)
        for number in range(times):
            text = template.replace("{n}", str(number)).replace("{pad}", "x" * pad)
            await self.send(decode(text.encode(), v1.SessionUpdate))

    async def send(self, update: v1.SessionUpdate) -> None:
        self.session.history.append(update)
        await self.peer.notify(v1.SessionNotification(self.session.id, update), force=True)

    async def say(self, words: str) -> None:
        await self.send(v1.AgentMessageChunk.of(words))

    async def ask(self, method: str, params: dict[str, Any], keep: dict[str, str]) -> None:
        asked = self.filled({"sessionId": self.session.id, **params})
        try:
            result = await self.peer.request_raw(method, asked)
        except PeerError as error:
            answer: dict[str, Any] = {"error": {"code": error.code, "message": error.message}}
        else:
            answer = {"result": result}
            self.known |= {name: result[field] for name, field in keep.items()} if isinstance(result, dict) else {}
        await self.say(json.dumps(answer) + "\n")

    def filled(self, params: dict[str, Any]) -> Any:
        return json.loads(re.sub(r"<(\w+)>", lambda place: str(self.known.get(place[1], place[0])), json.dumps(params)))


async def main() -> None:
    async with Peer(StdioTransport.standard(), handlers, role="agent", unstable=True) as peer:
        await peer.connection.closed()


if __name__ == "__main__":
    run(main())
