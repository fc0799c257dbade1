"""An agent's questions to its user: for permission, for values in a form, or to visit a URL.

If the client cannot ask, nothing is sent: a permission counts as refused, and the answer to a form is `unavailable`,
with the author's fallback as its value. So an agent that asks works with every client.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast, get_args, overload
from urllib.parse import urlsplit

import msgspec

from accord._internal import Consent
from accord.agent.remote_client import ClientLink, Requester
from accord.errors import METHOD_NOT_FOUND, PeerError
from accord.mistakes import shown, wrong_type
from accord.schema import v1
from accord.schema.base import Json, JsonObject, Unknown
from accord.schema.sendable import check_meta, check_sendable, with_meta

if TYPE_CHECKING:
    from accord.agent.form_schema import Content


log = logging.getLogger("accord")

Offered: TypeAlias = v1.PermissionOption | v1.PermissionOptionKind
"""An answer to offer: an option, or a kind, which stands for its usual option."""

KINDS: tuple[str, ...] = get_args(v1.PermissionOptionKind)

USUAL: tuple[Offered, ...] = ("allow_once", "allow_always", "reject_once")

Remembered = Literal["session", "agent"]
"""How far an "always" reaches: the session in which it was said, or all sessions of the agent, as long as it runs."""

Subject: TypeAlias = tuple[str, str]
"""The subject of a question: the kind of tool, and its title or the author's name for it."""


class Decision(Consent, msgspec.Struct, frozen=True):
    """The user's decision; it is true if the user allowed it.

    >>> async def work(turn):
    ...     if await turn.ask("Push to the server"):
    ...         await turn.say("Pushing.")
    """

    allowed: bool
    """Whether the user allowed it."""
    option: v1.PermissionOption | None = None
    """The option that they chose; None if they chose none, or were not asked again."""
    remembered: bool = False
    """Whether they had said "always" before, and were not asked."""
    meta: JsonObject = msgspec.field(default_factory=dict[str, Json])
    """The `_meta` of the client's answer."""

    def _agreed(self) -> bool:
        return self.allowed


class PermissionMemory:
    """The remembered "always" answers, by subject."""

    def __init__(self) -> None:
        self._answers: dict[Subject, bool] = {}

    def recall(self, subject: Subject) -> Decision | None:
        allowed = self._answers.get(subject)
        return None if allowed is None else Decision(allowed, remembered=True)

    def learn(self, subject: Subject, option: v1.PermissionOption) -> None:
        if option.kind in ("allow_always", "reject_always"):
            self._answers[subject] = option.kind == "allow_always"

    def forget(self) -> None:
        """Forget the answers, so that the user is asked again."""
        self._answers.clear()


def options_of(offered: Sequence[Offered]) -> list[v1.PermissionOption]:
    """Return these answers as options, each with its own id."""
    options = [_option(it) for it in offered or USUAL]
    if len({option.option_id for option in options}) < len(options):
        # tool-calls, Permission Options: "Unique identifier for this option".
        raise ValueError("the ids of a permission request's options must differ")
    return options


def _option(offered: Offered) -> v1.PermissionOption:
    """An answer to offer as an option; raises TypeError or ValueError for an invalid one."""
    if isinstance(offered, v1.PermissionOption):
        check_sendable("ask()", offered)
        return offered
    if not isinstance(cast("object", offered), str):
        raise wrong_type("ask()", "options, each a v1.PermissionOption or its kind as text", offered)
    if offered not in KINDS:
        raise ValueError(
            f"ask() takes the answers to offer, each one of {', '.join(map(repr, KINDS))} or a v1.PermissionOption, "
            f"got {shown(offered)}; the question is the title: turn.ask(title), or turn.tool(title)"
        )
    return v1.PermissionOption.of(offered)


async def decided(
    requester: Requester,
    memory: PermissionMemory,
    subject: Subject,
    request: v1.RequestPermissionRequest,
) -> Decision:
    """Return the user's decision, remembered or new."""
    known = memory.recall(subject)
    if known is not None:
        return known
    try:
        answer = await requester.request(request)
    except PeerError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        log.warning("the client cannot ask its user for permission; the request counts as refused")
        return Decision(allowed=False)
    outcome, meta = answer.outcome, answer.meta or {}
    if not isinstance(outcome, v1.SelectedPermissionOutcome):
        return Decision(allowed=False, meta=meta)
    option = next((it for it in request.options if it.option_id == outcome.option_id), None)
    if option is None:
        log.warning(
            "the client chose the option %r, which was not offered; the request counts as refused", outcome.option_id
        )
        return Decision(allowed=False, meta=meta)
    memory.learn(subject, option)
    return Decision(option.kind in ("allow_once", "allow_always"), option, meta=meta)


# Forms and links


T = TypeVar("T")


UNAVAILABLE = "unavailable"


class Elicited(Consent, msgspec.Struct, Generic[T], frozen=True):
    """The result of a form; it is true if the user filled it in."""

    action: str
    """`accept`, `decline` or `cancel`, `unavailable` if the client cannot ask, or an action of a newer protocol."""
    value: T | None = None
    """The filled-in value; the fallback, if the client cannot ask."""
    meta: JsonObject = msgspec.field(default_factory=dict[str, Json])
    """The `_meta` of the client's answer."""

    @property
    def accepted(self) -> bool:
        """Whether the user filled the form in."""
        return self.action == "accept"

    def _agreed(self) -> bool:
        return self.accepted


class ElicitedUrl(Consent):
    """The result of asking the user to visit a URL; it is true if they agreed to go.

    Only the page knows what they do there.
    """

    def __init__(
        self, client: ClientLink, action: str, elicitation_id: v1.ElicitationId, meta: JsonObject | None = None
    ) -> None:
        self.action: str = action
        """`accept`, `decline` or `cancel`; `unavailable` if the client cannot open URLs."""
        self.id: v1.ElicitationId = elicitation_id
        """The id that the client knows the visit by."""
        self.meta: JsonObject = meta or {}
        """The `_meta` of the client's answer."""
        self._client = client

    @property
    def accepted(self) -> bool:
        """Whether the user agreed to go there: it has begun, and is not done."""
        # rfd-elicitation: consent to the URL does not mean that the visit succeeded.
        return self.action == "accept"

    def _agreed(self) -> bool:
        return self.accepted

    def __repr__(self) -> str:
        return f"ElicitedUrl({self.action!r})"

    async def complete(self, *, meta: JsonObject | None = None) -> None:
        """Notify the client that the purpose of the visit is fulfilled."""
        completed = with_meta("complete", v1.CompleteElicitationNotification(self.id), meta)
        if self.action != UNAVAILABLE:
            await self._client.notify(completed)


class Elicits:
    """The base of `Turn`, `Tool` and `Login`, which ask the user for input."""

    _client: ClientLink
    _scope: dict[str, Any]

    @overload
    async def elicit(
        self, message: str, form: type[T], *, fallback: T | None = None, meta: JsonObject | None = None
    ) -> Elicited[T]: ...
    @overload
    async def elicit(
        self,
        message: str,
        form: v1.ElicitationSchema,
        *,
        fallback: Content | None = None,
        meta: JsonObject | None = None,
    ) -> Elicited[Content]: ...
    async def elicit(
        self, message: str, form: Any, *, fallback: Any = None, meta: JsonObject | None = None
    ) -> Elicited[Any]:
        """Ask the user to fill in a form: for the fields of a class, or an `ElicitationSchema`.

        Do not ask for secrets: the user's input passes through the client, and often through a model. `meta` is the
        request's `_meta`.

        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Approach:
        ...     strategy: str = "careful"
        >>> async def choose(turn):
        ...     answer = await turn.elicit("How shall I go about it?", Approach, fallback=Approach())
        """
        from accord.agent.form_schema import check, filled_in, schema_of  # few agents ask for values

        schema = schema_of(form)
        check(schema)
        check_meta("elicit(meta=...)", meta)
        if re.search(r"https?://", message):
            # rfd-elicitation: buttons and links are not part of a form.
            log.warning("a form's message contains a URL, which clients do not make clickable; use `elicit_url`")
        if not self._can_show_forms():
            return Elicited(UNAVAILABLE, fallback)
        request = v1.ElicitationFormMode(message=message, requested_schema=schema, meta=meta, **self._scope)
        answer = await self._client.request(request, force=True)
        if isinstance(answer, v1.ElicitationAcceptAction):
            return Elicited("accept", filled_in(form, answer.content or {}), answer.meta or {})
        return Elicited(_action(answer), meta=_meta(answer))

    async def elicit_url(self, message: str, url: str, *, meta: JsonObject | None = None) -> ElicitedUrl:
        """Ask the user to visit a URL: for data that must not pass through the client, such as a login.

        Put no secret into the URL: everyone who sees it can open it. `meta` is the request's `_meta`.
        """
        _check_url(url)
        check_meta("elicit_url(meta=...)", meta)
        elicitation_id = v1.ElicitationId(uuid.uuid4().hex)
        if not self._client.capabilities.has("elicitation.url"):
            return ElicitedUrl(self._client, UNAVAILABLE, elicitation_id)
        request = v1.ElicitationUrlMode(
            message=message, elicitation_id=elicitation_id, url=url, meta=meta, **self._scope
        )
        answer = await self._client.request(request)
        return ElicitedUrl(self._client, _action(answer), elicitation_id, _meta(answer))

    def _can_show_forms(self) -> bool:
        declares = self._client.capabilities.has
        # rfd-elicitation, Client capabilities: an empty object means forms only.
        return declares("elicitation.form") or (declares("elicitation") and not declares("elicitation.url"))


def _check_url(url: str) -> None:
    from accord.services.url_to_visit import is_here

    parts = urlsplit(url)
    if not all(parts[:2]):
        raise ValueError(f"url must have a scheme and a host, got {url!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"the URL must not contain a user name or password ({parts.hostname})")
    if parts.scheme == "http" and not is_here(parts.hostname or ""):
        log.warning("the URL for the user is not encrypted (%s); use https outside of development", parts.hostname)


def _action(answer: v1.CreateElicitationResponse) -> str:
    if isinstance(answer, Unknown):
        return answer.tag
    return str(answer.__struct_config__.tag)


def _meta(answer: v1.CreateElicitationResponse) -> dict[str, Json]:
    return {} if isinstance(answer, Unknown) else answer.meta or {}
