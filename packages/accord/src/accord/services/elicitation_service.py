"""Asks the user an agent's questions: forms to fill in, and links to visit.

    elicitation/create ─▶ a FormQuestion ─▶ fill(question) ─▶ checked against the schema ─▶ accept, decline or cancel
                      └─▶ a LinkQuestion ─▶ visit(question) ─▶ consent, and later `elicitation/complete`

The client declares the modes for which it has a function. This module never fetches a link; `visit` opens it after the
user has agreed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import msgspec

from accord.engine.handlers import Handlers
from accord.errors import RequestError
from accord.mistakes import check_handler
from accord.schema import v1
from accord.schema.base import Json, JsonObject, Unknown
from accord.services.form_fields import FormField, asked_for, defaults, fields_of, form_excess, problems, secrets_in
from accord.services.service import OpenQuestions, ServedSession, Service, SessionOf, TurnCancelledError
from accord.services.url_to_visit import UrlToVisit

MOST_WAITING = 1_000
"""Links of one connection that may wait for `elicitation/complete`; the oldest are dropped."""

LONGEST_MESSAGE = 20_000
"""Characters that the message of a question may have."""

LONGEST_NAME = 80
"""Characters of a field's name that an error quotes."""


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """A form to fill in."""

    message: str
    """The agent's text about the form."""
    schema: v1.ElicitationSchema
    """The fields as the agent sent them; `fields` are easier to use."""
    session: ServedSession | None
    """The session; None for a question outside any session, such as one during login."""
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The content so far: the defaults, or the last answer if it was invalid."""
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    """The problems of the last answer, by field."""
    meta: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """The `_meta` of the request."""
    answer_meta: JsonObject = field(default_factory=dict[str, Json])
    """The `_meta` of the answer: fill it in before you answer."""

    @property
    def fields(self) -> list[FormField]:
        """The fields to display."""
        return fields_of(self.schema)


@dataclass(frozen=True, slots=True, eq=False)
class LinkQuestion:
    """A link to visit. Display all of it, its domain highlighted, and its warnings before the user agrees."""

    message: str
    """The agent's text about the visit."""
    link: UrlToVisit
    """The URL, its parts and its warnings."""
    session: ServedSession | None
    """The session; None for a question outside any session, such as one during login."""
    completed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the agent reports that the visit is complete, which may never happen."""
    meta: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """The `_meta` of the request."""
    answer_meta: JsonObject = field(default_factory=dict[str, Json])
    """The `_meta` of the answer: fill it in before you answer."""


Filled: TypeAlias = "Mapping[str, Any] | Literal[False] | None"
"""An answer: the content; False if the user declined, None if they dismissed the form."""
Fill: TypeAlias = "Callable[[FormQuestion], Filled | Awaitable[Filled]]"
Visit: TypeAlias = "Callable[[LinkQuestion], bool | Awaitable[bool | None] | None]"


class Elicitation(Service):
    """Lets agents ask the user.

    `fill(question)` returns the content of the form, False if the user declines, or None if they dismiss it. If the
    content does not fit the schema, `fill` is called again with the problems. `visit(question)` opens the link if the
    user agrees, and returns whether they did; None if they dismissed the question. `on_complete(question)` is called
    when the agent reports that the visit is complete.

    The answer contains only the fields of the form. A form that asks for a secret, or has more fields, choices or text
    than `accord.services.form_fields` allows, is refused without asking the user.

        async def fill(question: accord.FormQuestion):
            return await my_window.form(question.message, question.fields, question.content, question.problems)

        client = accord.Client(elicitation=accord.Elicitation(fill))
    """

    def __init__(
        self,
        fill: Fill | None = None,
        visit: Visit | None = None,
        *,
        on_complete: Callable[[LinkQuestion], object] | None = None,
    ) -> None:
        for name, function in (("fill", fill), ("visit", visit)):
            if function is not None:
                check_handler(f"Elicitation({name})", function)
        self._fill = fill
        self._visit = visit
        self._on_complete = on_complete
        self._questions = OpenQuestions()

    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Declare the modes for which there is a function."""
        if self._fill is None and self._visit is None:
            return capabilities
        modes = v1.ElicitationCapabilities(
            None if self._fill is None else v1.ElicitationFormCapabilities(),
            None if self._visit is None else v1.ElicitationUrlCapabilities(),
        )
        return msgspec.structs.replace(capabilities, elicitation=modes)

    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Handle `elicitation/create` and `elicitation/complete`."""
        waited_for: dict[v1.ElicitationId, LinkQuestion] = {}

        @handlers.on(v1.CreateElicitationRequest)
        async def create(request: v1.CreateElicitationRequest | Unknown) -> v1.CreateElicitationResponse:
            if isinstance(request, v1.ElicitationFormMode) and self._fill is not None:
                return await self._form(self._fill, request, _session(request, session_of))
            if isinstance(request, v1.ElicitationUrlMode) and self._visit is not None:
                return await self._link(self._visit, request, _session(request, session_of), waited_for)
            raise RequestError.invalid_params("unsupported elicitation mode; use one that this client declared")

        @handlers.on(v1.CompleteElicitationNotification)
        def complete(notification: v1.CompleteElicitationNotification) -> None:
            question = waited_for.pop(notification.elicitation_id, None)
            if question is not None:
                question.completed.set()
                if self._on_complete is not None:
                    self._on_complete(question)

    def turn_cancelled(self, session: ServedSession) -> None:
        """Answer the open questions of the session with `cancel`."""
        self._questions.cancel(session)

    async def release(self, session: ServedSession) -> None:
        """Cancel the open questions of a session that has ended."""
        self.turn_cancelled(session)

    async def _form(
        self, fill: Fill, request: v1.ElicitationFormMode, session: ServedSession | None
    ) -> v1.CreateElicitationResponse:
        schema = request.requested_schema
        _refuse_unfit(request.message, schema)
        # Checking the defaults may take milliseconds for each pattern; other sessions need not wait for that.
        content = await asyncio.to_thread(defaults, schema)
        question = FormQuestion(request.message, schema, session, content, meta=request.meta or {})
        while True:
            filled = await self._answered(session, fill, question)
            if filled is None or isinstance(filled, bool):
                return _answer(question, agreed=None if filled is None else False)
            content = asked_for(schema, filled)
            wrong = await asyncio.to_thread(problems, schema, content)
            if not wrong:
                return _answer(question, agreed=True, content=content)
            if question.problems and content == question.content:
                raise ValueError(f"`fill` returned the same invalid content again: {wrong}")
            question = replace(question, content=content, problems=wrong)

    async def _link(
        self,
        visit: Visit,
        request: v1.ElicitationUrlMode,
        session: ServedSession | None,
        waited_for: dict[v1.ElicitationId, LinkQuestion],
    ) -> v1.CreateElicitationResponse:
        _refuse_long(request.message)
        question = LinkQuestion(request.message, UrlToVisit.of(request.url), session, meta=request.meta or {})
        # Before the user is asked: `elicitation/complete` may arrive before the answer is sent.
        waited_for[request.elicitation_id] = question
        while len(waited_for) > MOST_WAITING:
            del waited_for[next(iter(waited_for))]
        agreed = None
        try:
            agreed = await self._answered(session, visit, question)
        finally:
            if not agreed:
                waited_for.pop(request.elicitation_id, None)
        return _answer(question, agreed=agreed)

    async def _answered(self, session: ServedSession | None, ask: Callable[[Any], Any], question: Any) -> Any:
        """Return the user's answer; None if the turn was cancelled before."""
        try:
            return await self._questions.ask(session, ask, question)
        except TurnCancelledError:
            return None


def _answer(
    question: FormQuestion | LinkQuestion, *, agreed: bool | None, content: dict[str, Any] | None = None
) -> v1.CreateElicitationResponse:
    meta = question.answer_meta or None
    if agreed is None:
        return v1.ElicitationCancelAction(meta=meta)
    return v1.ElicitationAcceptAction(content, meta=meta) if agreed else v1.ElicitationDeclineAction(meta=meta)


def _refuse_unfit(message: str, schema: v1.ElicitationSchema) -> None:
    """Raise RequestError for a form that must not be displayed."""
    _refuse_long(message)
    if (problem := form_excess(schema)) is not None:
        raise RequestError.invalid_params(problem)
    # rfd-elicitation, Restricted JSON Schema: the agent, and often a model, sees the user's input in a form.
    if secrets := secrets_in(schema):
        problem = "a form must not ask for secrets: send the user to a page by a question of mode 'url'"
        raise RequestError.invalid_params(problem, fields=[name[:LONGEST_NAME] for name in secrets])


def _refuse_long(message: str) -> None:
    if len(message) > LONGEST_MESSAGE:
        problem = f"the message has {len(message):,} characters, at most {LONGEST_MESSAGE:,} are allowed"
        raise RequestError.invalid_params(problem)


def _session(request: v1.CreateElicitationRequest, session_of: SessionOf) -> ServedSession | None:
    return None if request.session_id is None else session_of(request.session_id)
