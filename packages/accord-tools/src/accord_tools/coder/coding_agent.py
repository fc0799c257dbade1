"""`coding_agent`: the agent that `accord agent` runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from accord import Agent, ConfigurationError, Endpoint, RequestError, Session, Store, Turn, v1
from accord.paths import config_folder
from accord.project.git import find_repository
from accord_tools.coder.api_keys import forget_key, stored_key
from accord_tools.coder.coder_settings import CoderSettings
from accord_tools.coder.model import ModelConversation, ModelError
from accord_tools.coder.model_turn import DEFAULT_EFFORT, EFFORT, ModelTurn, compact, public_error
from accord_tools.coder.open_model import (
    FACTS,
    ModelSettings,
    OpenModels,
    api_at,
    api_of,
    context_of,
    key_of,
    model_name,
    price_of,
    url_of,
)
from accord_tools.coder.provider_client import Model
from accord_tools.coder.tool_definition import MODES
from accord_tools.configuration.trust import is_folder_trusted

MODELS = "models"
"""The provider that clients may configure."""

LISTING = 5.0
"""Seconds in which the provider must list its models, or only the chosen one is offered.

The answer to `session/new` waits for the list: a client such as `accord run --model X` relies on it.
"""

EFFORTS = {"As usual": [DEFAULT_EFFORT], "Thinks": ["low", "medium", "high"]}

INIT = (
    "Look at this project and write AGENTS.md: what it is, how it is laid out, how to build, test and check it, and "
    "the conventions that a newcomer would break. At most 60 lines. If there is one already, improve it."
)


def coding_agent(
    settings: ModelSettings,
    *,
    version: str,
    store: Store | str | Path | None,
    mode: str = "ask",
    unstable: bool = False,
    files: CoderSettings | None = None,
) -> Agent[ModelConversation]:
    """Return a coding agent with these settings; `files` add the project's to those of each session."""
    agent = Agent(
        "accord-agent",
        title="Accord",
        version=version,
        accepts=["image", "embedded"],
        local=True,
        prompt_while_working="steer",
        store=store,
        state=ModelConversation,
        system_prompts=["append", "override"],
        skills=skill_folders,
        unstable=unstable,
    )
    own = _own_endpoint(settings)
    agent.provider(MODELS, supports=["anthropic", "openai"], default=own, replaces_login=True)
    _offer_logins(agent, settings)
    _Sessions(agent, settings, mode, own, files).register()
    return agent


def skill_folders(session: Session[ModelConversation]) -> list[Path]:
    """Return the folders of skills: those of the project, if the user trusts its repository, and the user's own."""
    repository = find_repository(session.cwd)
    trusts = repository is not None and is_folder_trusted(repository)
    projects = [session.cwd / ".agents" / "skills", session.cwd / ".claude" / "skills"] if trusts else []
    return [*projects, config_folder() / "skills"]


@dataclass
class _Sessions:
    """The options of sessions and the work of their turns."""

    agent: Agent[ModelConversation]
    settings: ModelSettings
    mode: str
    own: Endpoint
    """The endpoint while the client has set no other."""
    files: CoderSettings | None

    def __post_init__(self) -> None:
        self.models = OpenModels(self.settings)
        self.of_sessions: WeakKeyDictionary[Session[ModelConversation], ModelSettings] = WeakKeyDictionary()

    def register(self) -> None:
        agent = self.agent
        agent.on_session(self.opened)
        agent.on_rewind(self.rewound)
        agent.on_prompt(self.answer_prompt)
        agent.command("compact", "Replace the conversation so far by a summary, to make room")(self.compact)
        agent.command("clear", "Forget the conversation so far")(self.clear)
        agent.command("status", "Show the model, the mode and how full the context is")(self.status)
        agent.command("init", "Write AGENTS.md for this project")(self.init)

    async def opened(self, session: Session[ModelConversation]) -> None:
        self.models.keep_for(session)
        if self.files is not None:
            try:
                files = await asyncio.to_thread(self.files.with_project, session.cwd)
                self.of_sessions[session] = files.model_settings
            except ConfigurationError as error:
                raise RequestError.invalid_request(str(error)) from None
            given = {getattr(it, "name", "") for it in session.mcp_servers}
            session.mcp_servers += tuple(it for it in files.mcp_servers if getattr(it, "name", "") not in given)
        settings = self._settings_of(session)
        modes = [(mode.id, mode.name, mode.description) for mode in MODES]
        await session.modes.offer(modes, current=self.mode)
        first = self._first_model(session)
        await session.models.offer(await self._models(session, first), current=first)
        await session.config.offer(
            EFFORT, "Effort", EFFORTS, value=settings.effort or DEFAULT_EFFORT, category="thought_level"
        )
        if session.mcp_servers:
            session.mcp.start()

    async def rewound(self, session: Session[ModelConversation]) -> None:
        session.state.follow(await session.history())

    async def _models(self, session: Session[ModelConversation], first: str) -> list[str]:
        """The first model and all others that the provider lists."""
        endpoint = session.provider(MODELS)
        if endpoint is None:
            return [first]
        known = list(self._settings_of(session).models)
        model = await self.models.get(self._set_by_client(endpoint))  # takes its time on a busy machine
        try:
            async with asyncio.timeout(LISTING):
                names = await model.names()
        except (ModelError, TimeoutError):
            names = []
        return list(dict.fromkeys([first, *known, *names]))

    def _settings_of(self, session: Session[ModelConversation]) -> ModelSettings:
        return self.of_sessions.get(session, self.settings)

    async def answer_prompt(self, turn: Turn[ModelConversation]) -> str | None:
        return await self.answer(turn, turn.prompt)

    async def answer(self, turn: Turn[ModelConversation], prompt: Sequence[v1.ContentBlock]) -> str | None:
        model, hidden = await self._model(turn)
        work = ModelTurn(turn, model, self._settings_of(turn.session), self._name(turn.session), hidden)
        stop_reason = await work.answer(prompt)
        await turn.session.suggest(*work.suggestions(stop_reason))
        return stop_reason

    async def _model(self, turn: Turn[ModelConversation]) -> tuple[Model, Callable[[str], str]]:
        """Return the model of a turn, and the function that masks the secrets of its endpoint in a text."""
        used = turn.provider(MODELS)
        if used is None:
            raise RequestError.invalid_request(f"the client has disabled the provider {MODELS!r}: set it to go on")
        endpoint = self._set_by_client(used)
        if endpoint is None:
            self._check_key()
        return await self.models.get(endpoint), str if endpoint is None else endpoint.hidden

    def _set_by_client(self, endpoint: Endpoint) -> Endpoint | None:
        """Return this endpoint if the client has set it; None for our own, which has a key and settings of the user."""
        return None if endpoint is self.own else endpoint

    def _first_model(self, session: Session[ModelConversation]) -> str:
        """Return the first model of a session; the user's choice applies if the same kind of API is spoken."""
        endpoint, settings = session.provider(MODELS), self._settings_of(session)
        if endpoint is None or endpoint.api_type == self.own.api_type:
            return model_name(settings, api_of(settings))
        return FACTS[api_at(endpoint)].default_model

    def _check_key(self) -> None:
        api = api_of(self.settings)
        if not _has_key(self.settings):
            named, usual = self.settings.key_variable, FACTS[api].key_variable
            raise RequestError.auth_required(
                f"there is no API key: set {named}"
                if named
                else f"there is no API key: set {usual}, or store one with 'accord agent login'"
            )

    def _name(self, session: Session[ModelConversation]) -> str:
        return session.models.current or self._first_model(session)

    async def compact(self, turn: Turn[ModelConversation]) -> None:
        conversation = turn.session.state
        if len(conversation.messages) < 2:
            await turn.say("There is nothing to summarise yet.")
            return
        model, hidden = await self._model(turn)
        try:
            await compact(turn.session, model, self._name(turn.session), conversation)
        except ModelError as error:
            raise public_error(error, hidden) from error
        await turn.say("The conversation so far was replaced by a summary.")

    async def clear(self, turn: Turn[ModelConversation]) -> None:
        conversation = turn.session.state
        conversation.messages, conversation.summary, conversation.used = [], None, 0
        await turn.say("The conversation so far is forgotten.")

    async def status(self, turn: Turn[ModelConversation]) -> None:
        conversation, name = turn.session.state, self._name(turn.session)
        settings = self._settings_of(turn.session)
        size = context_of(settings, name)
        used = f"{conversation.used:,} of {size:,} tokens"
        total = f"{conversation.read:,} read and {conversation.written:,} written so far"
        known = price_of(settings, name) is not None
        cost = f"${conversation.cost:.4f}" if known else "no cost, as no price is given"
        await turn.say(f"Model {name}, mode {turn.session.modes.current}, {used}; {total}; {cost}.")

    async def init(self, turn: Turn[ModelConversation]) -> str | None:
        return await self.answer(turn, [v1.TextContent(INIT)])


def _own_endpoint(settings: ModelSettings) -> Endpoint:
    """Return the endpoint of the user's own models, which the client may read."""
    api = api_of(settings)
    try:
        return Endpoint(FACTS[api].kind, url_of(api, settings) or FACTS[api].url)
    except ValueError as error:
        raise ConfigurationError(f"the address of the models cannot be used: {error}") from None


def _has_key(settings: ModelSettings) -> bool:
    """Whether there is a key, or the models are somewhere that may need none."""
    api = api_of(settings)
    needs_none = settings.base_url is not None and settings.key_variable is None
    return key_of(api, settings) is not None or needs_none or bool(os.environ.get(FACTS[api].url_variable))


def _offer_logins(agent: Agent[ModelConversation], settings: ModelSettings) -> None:
    api = api_of(settings)
    variable = settings.key_variable or FACTS[api].key_variable

    agent.terminal_login("api-key", "Enter an API key", args=["login"], description="Stores the key on this machine.")(
        partial(_has_key, settings)
    )
    agent.environment_login("environment", f"Set {variable}", [variable])

    @agent.on_logout
    def forget() -> None:
        if stored_key(api) is not None:
            forget_key(api)
