"""`ScenarioRun`: one start of our agent by the client, with the turn and the probes; and our agent's answers."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from accord.trace import Direction
from accord_check.agent.raw_connection import Answers, Gone, Over, RawConnection, Recording, Unanswered
from accord_check.agent.scenario_context import RunResults
from accord_check.agent.settings import Patience
from accord_check.client.launch_command import AcceptedClient
from accord_check.conversation import Exchange, Frame, object_of, objects
from accord_check.passive.observer import Place, Verdict

SAMPLES: dict[str, Any] = json.loads(Path(__file__).with_name("samples.json").read_text("utf-8"))
"""Our agent's messages, as they go over the wire: its capabilities, its settings, and every stable update that needs no
capability of the client; by version where that differs. In an update, {folder} is the session's folder.
"""

INFO, CAPABILITIES, OPTION = SAMPLES["info"], SAMPLES["capabilities"], SAMPLES["option"]


def settings_of(version: int, *options: dict[str, Any]) -> dict[str, Any]:
    """Return the options in the answer that opens a session; in version 2 an id has another name."""
    named = "configId" if version == 2 else "id"
    return {"configOptions": [{named if key == "id" else key: it[key] for key in it} for it in options]}


@dataclass(frozen=True)
class AgentScript:
    """The role of our agent in a scenario; the members of its answers, by the version of the protocol."""

    capabilities: Mapping[int, Mapping[str, Any]] = field(
        default_factory=lambda: {1: CAPABILITIES["1"], 2: CAPABILITIES["2"]}
    )
    session: Mapping[int, Mapping[str, Any]] = field(
        default_factory=lambda: {1: {"modes": SAMPLES["modes"], **settings_of(1, OPTION)}, 2: settings_of(2, OPTION)}
    )
    """Further members of the answer that opens a session."""
    answer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further members of the answer to `initialize`."""
    late: bool = False
    """Whether answers come late."""

    def initialized(self, version: int) -> dict[str, Any]:
        """The answer to `initialize`, in this version."""
        can, info = ("capabilities", "info") if version == 2 else ("agentCapabilities", "agentInfo")
        said: dict[str, Any] = {"protocolVersion": version, can: self.capabilities[version], info: INFO}
        return {**said, "authMethods": [], **self.answer}


EMPTY_ANSWERS = ("authenticate", "logout", "auth/login", "auth/logout", "session/close", "session/set_mode")


class FakeAgent:
    """Answers the requests of one connection, except prompts."""

    def __init__(self, script: AgentScript, prompted: Callable[[Exchange], None], most: int) -> None:
        self.version = 1
        """The version that was agreed on: that of the client, and `most` at most."""
        self._most = most
        self.sessions: dict[str, str] = {}
        """The folder of each session."""
        self.script = script
        self.answers: Answers = {
            "session/prompt": prompted,
            "initialize": self._initialize,
            **dict.fromkeys(EMPTY_ANSWERS, lambda _: {}),
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._load,
            "session/list": self._list,
            "session/delete": self._delete,
            "session/set_config_option": self._set_option,
        }

    def _initialize(self, exchange: Exchange) -> Any:
        asked = exchange.params.get("protocolVersion")
        self.version = 2 if self._most == 2 and isinstance(asked, int) and asked >= 2 else 1
        return self.script.initialized(self.version)

    def _new(self, exchange: Exchange) -> Any:
        made = f"check-{len(self.sessions) + 1}"
        self.sessions[made] = str(exchange.params.get("cwd"))
        return {"sessionId": made, **self.script.session[self.version]}

    def _load(self, exchange: Exchange) -> Any:
        self.sessions[str(exchange.session_id)] = str(exchange.params.get("cwd"))
        return dict(self.script.session[self.version])

    def _list(self, exchange: Exchange) -> Any:
        cwd = exchange.params.get("cwd")
        found = [(given, folder) for given, folder in self.sessions.items() if cwd in (None, folder)]
        return {"sessions": [{"sessionId": given, "cwd": folder} for given, folder in found]}

    def _delete(self, exchange: Exchange) -> Any:
        self.sessions.pop(str(exchange.session_id), None)
        return {}

    def _set_option(self, exchange: Exchange) -> Any:
        return settings_of(self.version, {**OPTION, "currentValue": exchange.params.get("value")})


Profile = Literal["smoke", "default"]
"""`smoke` starts the client three times; `default` about ten times."""


@dataclass(frozen=True, slots=True)
class ClientSettings(Patience):
    """The settings of a run."""

    profile: Profile = "default"
    versions: tuple[int, ...] = (1,)
    """The versions of the protocol to judge; of both, those that the client speaks."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that are set for the client."""
    cwd: Path | None = None
    """The folder in which the client runs; None for a scratch folder."""
    start_within: float = 30.0
    """Seconds until the client has started the agent, and until it sends a prompt."""
    answer_within: float = 10.0
    """Seconds for the answer to a request that needs no user."""
    asks_within: float = 5.0
    """Seconds for the answer to a question that a user may be asked: a permission or a form."""
    end_within: float = 10.0
    """Seconds that the client has to end after its turn, or after the agent is gone."""
    late: float = 1.5
    """Seconds by which the agent's answers are late, in the scenario about that."""


ALIVE = "_accord.check/alive"
"""A request that no client knows: its answer, an error as a rule, shows that the client continues."""


class ScenarioRun(RawConnection):
    """One start of our agent, with a script."""

    def __init__(
        self, transport: AcceptedClient, script: AgentScript, results: RunResults, settings: ClientSettings, most: int
    ) -> None:
        self.record = Recording()
        """The record of this start alone."""
        self.settings = settings
        self.client = transport
        self.turn: Exchange | None = None
        """The prompt whose turn a scenario plays."""
        self.skip = results.skip
        self.asked: list[Frame] = []
        """The requests and notifications of the client."""
        self.agent = FakeAgent(script, self._take_prompt, most)
        self._late = settings.late if script.late else 0.0
        self._answers_custom = True
        self._works = False
        """Whether the turn has begun, and has not ended; in version 2."""
        self._turns = 0
        super().__init__(transport, self.agent.answers, self.record, settings, side="agent")

    # Results of checks

    def judged(self, name: str, verdict: Verdict, *places: Place | None) -> None:
        """Count that this check had something to judge, with this result."""
        self.judge.tally.judge(name, verdict, *places, by="client", session=self.session)

    # The turn

    @property
    def session(self) -> str | None:
        """The session of the turn."""
        return self.turn.session_id if self.turn is not None else None

    @property
    def folder(self) -> Path:
        """The folder of the turn's session."""
        return Path(os.path.realpath(self.agent.sessions.get(self.session or "", "/")))

    def declares(self, path: str) -> bool:
        """Whether the client declared this capability."""
        return self.judge.conversation.declares("client", path)

    async def prompted(self) -> Exchange:
        """Wait for the first prompt. Raises Over if the client ends without one, or sends none in time."""
        try:
            await self.until(lambda: self.turn is not None, self.settings.start_within)
        except (TimeoutError, Gone):
            raise Over from None
        assert self.turn is not None
        if self.version == 2:
            self._begin(self.turn)
            self._works = True
        return self.turn

    def _begin(self, prompt: Exchange) -> None:
        """Take a prompt of version 2: its message is echoed, it gets its receipt, and the work begins."""
        self._turns += 1
        given, session = f"check-user-{self._turns}", prompt.session_id
        self.update_of(session, "user_message", messageId=given, content=prompt.params.get("prompt"))
        self.send({"id": prompt.id, "result": {"messageId": given}})
        self.update_of(session, "state_update", state="running")

    @property
    def version(self) -> int:
        """The version of the protocol that is spoken."""
        return self.agent.version

    def say(self, text: str) -> Frame:
        """Send a text of the agent."""
        named = {"messageId": f"check-answer-{self._turns}"} if self.version == 2 else {}
        return self.update("agent_message_chunk", **named, content={"type": "text", "text": text})

    def tool(self, call: str, **fields: Any) -> Frame:
        """Announce a tool call."""
        return self.update("tool_call_update" if self.version == 2 else "tool_call", toolCallId=call, **fields)

    def update(self, kind: str, /, **fields: Any) -> Frame:
        """Send an update of the turn's session."""
        return self.update_of(self.session, kind, **fields)

    def update_of(self, session: str | None, kind: str, /, **fields: Any) -> Frame:
        """Send an update of this session."""
        return self.notify("session/update", {"sessionId": session, "update": {"sessionUpdate": kind, **fields}})

    def send_sample(self, update: dict[str, Any]) -> Frame:
        """Send an update of `SAMPLES`, in the turn's session."""
        folder = json.dumps(str(self.folder)).strip('"')
        filled = json.loads(json.dumps(update).replace("{folder}", folder))
        return self.notify("session/update", {"sessionId": self.session, "update": filled})

    def call_here(self, method: str, /, **params: Any) -> Exchange:
        """Send a request about the turn's session."""
        return self.call(method, {"sessionId": self.session, **params})

    async def ask_here(self, method: str, /, **params: Any) -> Exchange:
        """Send a request about the turn's session that needs no user, and judge that it is answered."""
        exchange = self.call_here(method, **params)
        await self.must_answer(exchange, "lint.client.answers")
        return exchange

    async def must_answer(self, exchange: Exchange, name: str) -> Exchange:
        """Wait for an answer that needs no user, as this check. Raises Over if none comes."""
        try:
            await self.answer(exchange)
        except Unanswered as error:
            self.judged(name, str(error), exchange.frame)
            raise Over from None
        self.judged(name, None, exchange.answered)
        return exchange

    def finish(self, reason: str = "end_turn") -> None:
        """End the turn."""
        if self._works:
            self._works = False
            self.update("state_update", state="idle", stopReason=reason)
        elif self.turn is not None and self.turn.answered is None:
            self._end_short(self.turn, reason)

    def _end_short(self, prompt: Exchange, reason: str) -> None:
        """End the turn of a prompt that no scenario has begun."""
        if self.version == 2:
            self._begin(prompt)
            self.update_of(prompt.session_id, "state_update", state="idle", stopReason=reason)
        else:
            self.send({"id": prompt.id, "result": {"stopReason": reason}})

    @property
    def text(self) -> str:
        """The text of the prompt."""
        blocks = objects(self.turn.params.get("prompt")) if self.turn is not None else ()
        return "".join(str(block.get("text", "")) for block in blocks)

    # Probes

    async def answers_custom(self) -> None:
        """Ask something that the client does not know. The probes that follow use the same request."""
        try:
            await self.must_answer(self.call(ALIVE, {}), "extension.request-answered")
        except Over:
            self._answers_custom = False

    async def alive(self, name: str, after: str, *places: Frame) -> None:
        """Judge that the client continues after the messages sent to it. Raises Over if it does not."""
        try:
            await self._answers_something()
        except Unanswered:
            self.judged(name, f"the client answered no request after {after}", *places)
            raise Over from None
        except Gone as error:
            self.judged(name, f"{error} after {after}", *places)
            raise Over from None
        self.judged(name, None)

    async def _answers_something(self) -> None:
        """Wait for an answer; of a client that answers no custom request, only wait for a while."""
        if self._answers_custom:
            await self.ask(ALIVE, {})
            return
        await self.quiet()
        if self.end is not None:
            raise Gone(self._how_it_ended())

    # Callbacks of the base class

    def _take_prompt(self, exchange: Exchange) -> None:
        if self.turn is None:
            self.turn = exchange
        else:  # a scenario plays one turn; the others are short
            self._end_short(exchange, "end_turn")

    def _seen(self, direction: Direction, data: bytes) -> Frame:
        frame = super()._seen(direction, data)
        if direction == "in" and "method" in frame.members:
            self.asked.append(frame)
        return frame

    def _serve(self, exchange: Exchange) -> None:
        if self._late and exchange.method in ("initialize", "session/new"):
            asyncio.get_running_loop().call_later(self._late, self._serve_now, exchange)
        else:
            self._serve_now(exchange)

    def _serve_now(self, exchange: Exchange) -> None:
        super()._serve(exchange)
        if self.version == 2 and exchange.succeeded and exchange.method in ("session/new", "session/resume"):
            opened = exchange.fields.get("sessionId", exchange.session_id)
            self.update_of(opened, "state_update", state="idle")


def refused(exchange: Exchange) -> str:
    """Return why a request failed, as a reason for what could not be judged."""
    error = object_of(exchange.error)
    return f"the client refused {exchange.method}: {error.get('code')} {str(error.get('message', ''))[:80]}".rstrip()
