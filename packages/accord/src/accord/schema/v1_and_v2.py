"""Types that are the same in both versions of the protocol: messages and their parts, by topic."""

# pyright: reportGeneralTypeIssues=false
# It imports UNSET, which is Final.

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NewType, TypeAlias

from msgspec import UNSET, UnsetType

from accord import redaction
from accord.schema.base import (
    Int32,
    Int64,
    Json,
    Model,
    Notification,
    Open,
    Request,
    Shape,
    Tolerant,
    Uint16,
    Uint64,
    ValidItems,
    needs,
    tagged_or,
    unstable,
    words,
)
from accord.schema.content import ContentBlock
from accord.schema.shared_updates import SessionConfigId, SessionId

# Methods and messages of your own. Page: extensibility.


ExtRequest: TypeAlias = Json
"""Params of a request whose method begins with `_`: the two sides define them between themselves."""

ExtResponse: TypeAlias = Json

ExtNotification: TypeAlias = Json


# Authentication: how a user proves who they are. Pages: authentication; proposals: auth-methods, logout-method.


AuthMethodId = NewType("AuthMethodId", str)

AuthState: TypeAlias = Annotated[str, words("authenticated", "unauthenticated", "not_required", "unknown")]


@unstable
class AuthAccount(Model):
    """An account that the agent knows."""

    label: str
    active: Tolerant[bool | None] = None
    name: Tolerant[str | None] = None
    email: Tolerant[str | None] = None
    organization: Tolerant[str | None] = None
    description: Tolerant[str | None] = None


@unstable
class AuthStatusResponse(Model):
    """The result of `auth/status`: the accounts that are logged in."""

    state: AuthState
    accounts: Tolerant[ValidItems[AuthAccount]] = []


class AuthStatusRequest(Request[AuthStatusResponse], method="auth/status", unstable=True, needs="auth.status"):
    """Ask which accounts are logged in; needs `auth.status`."""


class AuthStatusUpdateNotification(Notification, method="auth/status_update", unstable=True):
    """Tells the client that the accounts that are logged in have changed."""

    state: AuthState
    accounts: Tolerant[ValidItems[AuthAccount]] = []


@unstable
class AuthStatusCapabilities(Model):
    """Declares that the agent answers `auth/status`."""


# The first call of a connection: versions, capabilities, names. Page: initialization.


ProtocolVersion: TypeAlias = Annotated[Uint16, "ProtocolVersion"]
"""One number, raised only when something breaks."""


class Implementation(Model):
    """The name, title and version of an agent or client."""

    name: str
    version: str
    title: Tolerant[str | None] = None


# The client's capabilities


@unstable
class PromptSuggestionsImageCapabilities(Model):
    """Declares that a suggested prompt may hold images."""


@unstable
class PromptSuggestionsAudioCapabilities(Model):
    """Declares that a suggested prompt may hold sounds."""


@unstable
class PromptSuggestionsEmbeddedContextCapabilities(Model):
    """Declares that a suggested prompt may hold resources with their contents."""


@unstable
class PromptSuggestionsCapabilities(Model):
    """Declares that the client shows suggested prompts, and their content besides text and links."""

    image: Tolerant[PromptSuggestionsImageCapabilities | None] = None
    audio: Tolerant[PromptSuggestionsAudioCapabilities | None] = None
    embedded_context: Tolerant[PromptSuggestionsEmbeddedContextCapabilities | None] = None


class ElicitationFormCapabilities(Model):
    """Declares that the client can show forms."""


class ElicitationUrlCapabilities(Model):
    """Declares that the client can send its user to a URL."""


class ElicitationCapabilities(Model):
    """The modes of elicitation that the client supports."""

    form: Tolerant[ElicitationFormCapabilities | None] = None
    url: Tolerant[ElicitationUrlCapabilities | None] = None


# The agent's capabilities


class SessionDeleteCapabilities(Model):
    """Declares that the agent answers `session/delete`."""


class SessionAdditionalDirectoriesCapabilities(Model):
    """Declares that a session may have folders besides `cwd`."""


@unstable
class SessionForkCapabilities(Model):
    """Declares that the agent answers `session/fork`."""


@unstable
class SessionArchiveCapabilities(Model):
    """Declares that the agent answers `session/archive` and `session/unarchive`."""


@unstable
class SessionStatusCapabilities(Model):
    """Declares that the agent answers `session/status`."""


@unstable
class SessionTitleCapabilities(Model):
    """Declares that the agent answers `session/set_title`."""


@unstable
class SessionOptionsCapabilities(Model):
    """Declares that the agent answers `session/options`, and accepts config options when a session is opened."""


class SessionSystemPromptOverrideCapabilities(Model):
    """Declares that the client may replace the agent's system prompt."""


class SessionSystemPromptModeCapabilities(Model):
    """The modes of system prompt besides appending."""

    override: Tolerant[SessionSystemPromptOverrideCapabilities | None] = None


class SessionSystemPromptCapabilities(Model):
    """Declares that the client may add to the agent's system prompt."""

    mode: Tolerant[SessionSystemPromptModeCapabilities | None] = None


@unstable
class ProvidersCapabilities(Model):
    """Declares that the client may choose the agent's providers."""


# MCP servers that a client gives to a session, and MCP spoken over ACP. Pages: session-setup, mcp-over-acp.


McpServerAcpId = NewType("McpServerAcpId", str)

McpRequestId = NewType("McpRequestId", str)


class EnvVariable(Model):
    """An environment variable for a process."""

    name: str
    value: str


class HttpHeader(Model):
    """A header for every HTTP request to a server."""

    name: str
    value: str


@unstable
@needs("mcp_capabilities.acp")
class McpServerAcp(Model, tag_field="type", tag="acp"):
    """An MCP server of the client itself, reached over this connection; for agents with `mcpCapabilities.acp`."""

    name: str
    server_id: McpServerAcpId


class McpError(Shape):
    """An error of an MCP server, in MCP's own form."""

    code: Int32
    message: str
    data: Json | UnsetType = UNSET


@unstable
class MessageMcpResponse(Model):
    """The answer of an MCP server: a result, or its own error."""

    result: Json | UnsetType = UNSET
    error: McpError | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.result is UNSET) == (self.error is UNSET):
            raise ValueError("exactly one of result and error is required")


class MessageMcpRequest(Request[MessageMcpResponse], method="mcp/message", unstable=True):
    """Call an MCP server of the client."""

    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: dict[str, Json] | None = None


class MessageMcpNotification(Notification, method="mcp/message", unstable=True, needs="mcp_capabilities.acp"):
    """A notification of the client's MCP server while it works on a request."""

    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: dict[str, Json] | None = None


# Sessions: finding them, ending them, and their details in answers. Pages: session-list, session-delete.


SystemPromptMode: TypeAlias = Annotated[str, words("append", "override")]


class SystemPrompt(Model):
    """Text of the client that extends or replaces the agent's system prompt."""

    mode: SystemPromptMode
    content: list[ContentBlock]


@unstable
class InitialSessionConfigBoolean(Model, tag_field="type", tag="boolean"):
    """The value that an on-off option has from the start of a session."""

    config_id: SessionConfigId
    value: bool


SessionArchiveFilter: TypeAlias = Annotated[str, words("exclude", "include", "only")]


class CloseSessionResponse(Model):
    """The result of `session/close`: the session accepts no more requests."""


class CloseSessionRequest(Request[CloseSessionResponse], method="session/close", needs="session_capabilities.close"):
    """Stop a session's work and free its resources; needs `sessionCapabilities.close`."""

    session_id: SessionId


class DeleteSessionResponse(Model):
    """The result of `session/delete`: the session is gone, whether or not it existed."""


class DeleteSessionRequest(
    Request[DeleteSessionResponse], method="session/delete", needs="session_capabilities.delete"
):
    """Delete a session permanently; needs `sessionCapabilities.delete`."""

    session_id: SessionId


@unstable
class ArchiveSessionResponse(Model):
    """The result of `session/archive`: the session is archived."""


class ArchiveSessionRequest(
    Request[ArchiveSessionResponse], method="session/archive", unstable=True, needs="session_capabilities.archive"
):
    """Archive a session; needs `sessionCapabilities.archive`."""

    session_id: SessionId


@unstable
class UnarchiveSessionResponse(Model):
    """The result of `session/unarchive`: the session is listed again."""


class UnarchiveSessionRequest(
    Request[UnarchiveSessionResponse], method="session/unarchive", unstable=True, needs="session_capabilities.archive"
):
    """Restore a session from the archive."""

    session_id: SessionId


SessionStatus: TypeAlias = Annotated[str, words("open", "saved")]


@unstable
class SetSessionTitleResponse(Model):
    """The result of `session/set_title`: the title as the agent stores it."""

    title: str


class SetSessionTitleRequest(
    Request[SetSessionTitleResponse], method="session/set_title", unstable=True, needs="session_capabilities.title"
):
    """Set the title of a session; needs `sessionCapabilities.title`."""

    session_id: SessionId
    title: str


# Asking the user before doing something. Page: tool-calls, Requesting Permission.


PermissionOptionId = NewType("PermissionOptionId", str)


class SelectedPermissionOutcome(Model, tag_field="outcome", tag="selected"):
    """The user chose this option."""

    option_id: PermissionOptionId


# LLM providers that the client chooses for the agent: proposed (custom-llm-endpoint).


ProviderId = NewType("ProviderId", str)

LlmProtocol: TypeAlias = Annotated[str, words("anthropic", "openai", "azure", "vertex", "bedrock")]


@unstable
class ProviderCurrentConfig(Model):
    """The address of a provider in use, without its secrets."""

    api_type: LlmProtocol
    base_url: str


@unstable
class ProviderInfo(Model):
    """A provider that can be configured; `current` is None while it is disabled."""

    provider_id: ProviderId
    supported: Tolerant[ValidItems[LlmProtocol]]
    required: bool
    current: ProviderCurrentConfig | None = None


@unstable
class ListProvidersResponse(Model):
    """The result of `providers/list`: all providers."""

    providers: list[ProviderInfo]


class ListProvidersRequest(Request[ListProvidersResponse], method="providers/list", unstable=True, needs="providers"):
    """List the agent's providers; needs `providers`."""


@unstable
class SetProviderResponse(Model):
    """The result of `providers/set`: the provider is configured."""


class SetProviderRequest(Request[SetProviderResponse], method="providers/set", unstable=True, needs="providers"):
    """Configure a provider: its address and its headers, including secrets."""

    provider_id: ProviderId
    api_type: LlmProtocol
    base_url: str
    headers: dict[str, str] = {}

    def __repr__(self) -> str:
        url, names = redaction.mask_urls(self.base_url), dict.fromkeys(self.headers, redaction.MASK)
        return f"SetProviderRequest({self.provider_id!r}, {self.api_type!r}, {url!r}, headers={names})"


@unstable
class DisableProviderResponse(Model):
    """The result of `providers/disable`: the provider is off."""


class DisableProviderRequest(
    Request[DisableProviderResponse], method="providers/disable", unstable=True, needs="providers"
):
    """Turn a provider off."""

    provider_id: ProviderId


# Elicitation: asking the user for values in a form, or to visit a URL. Page: elicitation.


ElicitationId = NewType("ElicitationId", str)


class EnumOption(Model):
    """A value to choose in a form, with a title for people."""

    const: str
    title: str
    description: Tolerant[str | None] = None


class NumberPropertySchema(Model, tag_field="type", tag="number"):
    """A number field of a form."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    minimum: float | None = None
    maximum: float | None = None
    default: Tolerant[float | None] = None


class IntegerPropertySchema(Model, tag_field="type", tag="integer"):
    """A whole-number field of a form."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    minimum: Int64 | None = None
    maximum: Int64 | None = None
    default: Tolerant[Int64 | None] = None


class BooleanPropertySchema(Model, tag_field="type", tag="boolean"):
    """A yes-or-no field of a form."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    default: Tolerant[bool | None] = None


class StringMultiSelectItems(Model, tag_field="type", tag="string"):
    """The texts that a multi-select field offers."""

    enum: list[str]


class TitledMultiSelectItems(Model):
    """The titled values that a multi-select field offers."""

    any_of: list[EnumOption]


if TYPE_CHECKING:
    MultiSelectItems: TypeAlias = Open[StringMultiSelectItems | TitledMultiSelectItems]
else:
    MultiSelectItems = tagged_or("MultiSelectItems", "type", TitledMultiSelectItems, StringMultiSelectItems)


class MultiSelectPropertySchema(Model, tag_field="type", tag="array"):
    """A field of a form that takes several values of a set."""

    items: MultiSelectItems
    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    min_items: Uint64 | None = None
    max_items: Uint64 | None = None
    default: Tolerant[ValidItems[str] | None] = None


class ElicitationDeclineAction(Model, tag_field="action", tag="decline"):
    """The user declined to answer."""


class ElicitationCancelAction(Model, tag_field="action", tag="cancel"):
    """The user dismissed the question without an answer."""


class CompleteElicitationNotification(Notification, method="elicitation/complete"):
    """Tells the client that the user has finished at the URL of an elicitation."""

    elicitation_id: ElicitationId


# Proxies between a client and an agent: proposed (proxy-chains).


ProxySuccessorResponse: TypeAlias = Annotated[Json, "ProxySuccessorResponse"]


class ProxySuccessorRequest(Request[ProxySuccessorResponse], method="proxy/successor", unstable=True):
    """A request to or from the next component in the chain."""

    method: str
    params: Json = None


class ProxySuccessorNotification(Notification, method="proxy/successor", unstable=True):
    """A notification to or from the next component in the chain."""

    method: str
    params: Json = None
