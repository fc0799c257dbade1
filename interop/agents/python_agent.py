"""The official Python SDK's agent for the interop suite. What every agent of it does is said in `agents/README.md`."""

import asyncio
import json
import re
from pathlib import PurePath
from typing import Any

from acp import Agent, RequestError, run_agent, schema as s
from acp.schema import (
    AgentCapabilities,
    AuthMethodAgent,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionInfo,
    SessionNotification,
    SetSessionConfigOptionResponse,
)
from pydantic import BaseModel, TypeAdapter

NOT_FOUND, INVALID_PARAMS, AUTH_REQUIRED = -32002, -32602, -32000
PAGE = 2
MODES = ["ask", "code"]
MODELS = ["small", "large"]

ASKING: dict[str, tuple[str, Any]] = {
    "fs/read_text_file": ("read_text_file", s.ReadTextFileRequest),
    "fs/write_text_file": ("write_text_file", s.WriteTextFileRequest),
    "terminal/create": ("create_terminal", s.CreateTerminalRequest),
    "terminal/output": ("terminal_output", s.TerminalOutputRequest),
    "terminal/wait_for_exit": ("wait_for_terminal_exit", s.WaitForTerminalExitRequest),
    "terminal/kill": ("kill_terminal", s.KillTerminalRequest),
    "terminal/release": ("release_terminal", s.ReleaseTerminalRequest),
    "session/request_permission": ("request_permission", s.RequestPermissionRequest),
}


def plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return value


class Session:
    def __init__(self, session_id: str, cwd: str) -> None:
        self.id = session_id
        self.cwd = cwd
        self.mode = MODES[0]
        self.model = MODELS[0]
        self.history: list[Any] = []
        self.cancelled = asyncio.Event()

    def settings(self) -> dict[str, Any]:
        modes = [{"id": name, "name": name.title()} for name in MODES]
        return {"modes": {"currentModeId": self.mode, "availableModes": modes}, "configOptions": self.options()}

    def options(self) -> list[Any]:
        values = [{"value": name, "name": name.title()} for name in MODELS]
        return [{"id": "model", "name": "Model", "type": "select", "currentValue": self.model, "options": values}]


class InteropAgent(Agent):
    _client: Any

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.told: list[Any] = []
        self.created = 0
        self.logged_in = False

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    def session(self, session_id: str) -> Session:
        try:
            return self.sessions[session_id]
        except KeyError:
            raise RequestError(NOT_FOUND, f"no such session: {session_id}") from None

    def create(self, cwd: str) -> Session:
        session = Session(f"session_{self.created}", cwd)
        self.created += 1
        self.sessions[session.id] = session
        return session

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=1,
            agent_info=Implementation(name="interop-agent", version="1.0.0"),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=True, embedded_context=True),
                session_capabilities=s.SessionCapabilities(
                    list=s.SessionListCapabilities(),
                    resume=s.SessionResumeCapabilities(),
                    close=s.SessionCloseCapabilities(),
                    fork=s.SessionForkCapabilities(),
                ),
            ),
            auth_methods=[AuthMethodAgent(id="token", name="Token")],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        if method_id != "token":
            raise RequestError(INVALID_PARAMS, f"no such method: {method_id}")
        self.logged_in = True

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        if PurePath(cwd).name == "private" and not self.logged_in:
            raise RequestError(AUTH_REQUIRED, "Authentication required")
        session = self.create(cwd)
        return NewSessionResponse.model_validate({"sessionId": session.id, **session.settings()})

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        there = [session for session in self.sessions.values() if cwd in (None, session.cwd)]
        begin = int(cursor or 0)
        page = [SessionInfo(session_id=it.id, cwd=it.cwd) for it in there[begin : begin + PAGE]]
        more = begin + PAGE < len(there)
        return ListSessionsResponse(sessions=page, next_cursor=str(begin + PAGE) if more else None)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        session = self.session(session_id)
        for update in session.history:
            await self._client.session_update(session_id=session_id, update=update)
        return LoadSessionResponse.model_validate(session.settings())

    async def resume_session(self, session_id: str, cwd: str, **_: Any) -> ResumeSessionResponse:
        return ResumeSessionResponse.model_validate(self.session(session_id).settings())

    async def fork_session(self, session_id: str, cwd: str, **_: Any) -> ForkSessionResponse:
        original = self.session(session_id)
        session = self.create(cwd)
        session.history = list(original.history)
        return ForkSessionResponse.model_validate({"sessionId": session.id, **session.settings()})

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        self.session(session_id).cancelled.set()
        return CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        session = self.session(session_id)
        if mode_id not in MODES:
            raise RequestError(INVALID_PARAMS, f"no such mode: {mode_id}")
        session.mode = mode_id
        await self.send(session, {"sessionUpdate": "current_mode_update", "currentModeId": mode_id})

    async def set_config_option(self, config_id: str, session_id: str, value: Any, **_: Any) -> Any:
        session = self.session(session_id)
        if config_id != "model" or value not in MODELS:
            raise RequestError(INVALID_PARAMS, f"no such option or value: {config_id}, {value}")
        session.model = value
        return SetSessionConfigOptionResponse.model_validate({"configOptions": session.options()})

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.session(session_id).cancelled.set()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method != "interop.example/echo":
            raise RequestError.method_not_found(f"_{method}")
        return {"echo": params}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.told.append(params)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        session = self.session(session_id)
        session.cancelled.clear()
        texts = [block.text for block in prompt if block.type == "text"]
        if texts and texts[0].startswith("["):
            return PromptResponse(stop_reason=await Turn(self, session).act(json.loads(texts[0])))
        kinds = " ".join(block.type for block in prompt)
        await self.say(session, f"blocks: {kinds}, {sum(len(text) for text in texts)} letters")
        return PromptResponse(stop_reason="end_turn")

    async def send(self, session: Session, update: dict[str, Any]) -> None:
        typed = SessionNotification.model_validate({"sessionId": session.id, "update": update})
        session.history.append(typed.update)
        await self._client.session_update(session_id=session.id, update=typed.update, **(typed.field_meta or {}))

    async def say(self, session: Session, text: str) -> None:
        await self.send(session, {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


class Turn:
    """The actions of one prompt."""

    def __init__(self, agent: InteropAgent, session: Session) -> None:
        self.agent = agent
        self.client = agent._client  # noqa: SLF001
        self.session = session
        self.known: dict[str, Any] = {}

    async def act(self, actions: list[dict[str, Any]]) -> Any:
        for action in actions:
            match action:
                case {"update": update}:
                    template = json.dumps(update)
                    for number in range(action.get("times", 1)):
                        text = template.replace("{n}", str(number)).replace("{pad}", "x" * action.get("pad", 0))
                        await self.agent.send(self.session, json.loads(text))
                case {"ask": method}:
                    await self.ask(method, action.get("params", {}), action.get("keep", {}))
                case {"tell": "elicitation/complete"}:
                    await self.client.complete_elicitation(elicitation_id=action["params"]["elicitationId"])
                case {"tell": method}:
                    await self.client.ext_notification(method[1:], self.filled(action["params"]))
                case {"said": _}:
                    await self.agent.say(self.session, json.dumps(self.agent.told))
                case {"wait": _}:
                    await self.session.cancelled.wait()
                    return "cancelled"
                case {"fail": error}:
                    raise RequestError(error["code"], error["message"], error.get("data"))
                case {"stop": reason}:
                    return reason
        return "end_turn"

    async def ask(self, method: str, params: dict[str, Any], keep: dict[str, str]) -> None:
        try:
            result = plain(await self.typed(method, self.filled({"sessionId": self.session.id, **params})))
        except RequestError as error:
            answer: dict[str, Any] = {"error": {"code": error.code, "message": str(error)}}
        else:
            answer = {"result": result}
            self.known |= {name: result[field] for name, field in keep.items()}
        await self.agent.say(self.session, json.dumps(answer) + "\n")

    async def typed(self, method: str, params: dict[str, Any]) -> Any:
        if method.startswith("_"):
            return await self.client.ext_method(method[1:], params)
        if method == "elicitation/create":
            names = {"form": "Form", "url": "Url"}
            mode = getattr(s, f"Elicitation{names[params['mode']]}SessionMode")
            fields = {key: value for key, value in params.items() if key not in ("message", "mode")}
            return await self.client.create_elicitation(message=params["message"], mode=mode.model_validate(fields))
        name, model = ASKING[method]
        typed = TypeAdapter(model).validate_python(params)
        return await getattr(self.client, name)(**{key: getattr(typed, key) for key in typed.model_fields_set})

    def filled(self, params: dict[str, Any]) -> Any:
        text = json.dumps(params)
        return json.loads(re.sub(r"<(\w+)>", lambda place: str(self.known.get(place[1], place[0])), text))


if __name__ == "__main__":
    asyncio.run(run_agent(InteropAgent(), use_unstable_protocol=True))
