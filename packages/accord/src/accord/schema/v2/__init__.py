"""Version 2 of the protocol, all of it in one namespace: `v2.PromptRequest`, `v2.TextContent`.

Each topic has a file of its own, which begins with what differs from version 1; what does not differ comes from there.
"""

# pyright: reportGeneralTypeIssues=false
# Several topics import UNSET, which is Final.

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loading import on_first_use
from accord.schema.v1.auth import (
    AuthAccount as AuthAccount,
    AuthMethodId as AuthMethodId,
    AuthState as AuthState,
    AuthStatusCapabilities as AuthStatusCapabilities,
    AuthStatusRequest as AuthStatusRequest,
    AuthStatusResponse as AuthStatusResponse,
    AuthStatusUpdateNotification as AuthStatusUpdateNotification,
)
from accord.schema.v1.config import (
    SessionConfigGroupId as SessionConfigGroupId,
    SessionConfigId as SessionConfigId,
    SessionConfigOptionCategory as SessionConfigOptionCategory,
    SessionConfigSelectOption as SessionConfigSelectOption,
    SessionConfigValueId as SessionConfigValueId,
)
from accord.schema.v1.elicitation import (
    BooleanPropertySchema as BooleanPropertySchema,
    CompleteElicitationNotification as CompleteElicitationNotification,
    ElicitationCancelAction as ElicitationCancelAction,
    ElicitationDeclineAction as ElicitationDeclineAction,
    ElicitationId as ElicitationId,
    EnumOption as EnumOption,
    IntegerPropertySchema as IntegerPropertySchema,
    MultiSelectItems as MultiSelectItems,
    MultiSelectPropertySchema as MultiSelectPropertySchema,
    NumberPropertySchema as NumberPropertySchema,
    StringMultiSelectItems as StringMultiSelectItems,
    TitledMultiSelectItems as TitledMultiSelectItems,
)
from accord.schema.v1.initialize import (
    ElicitationCapabilities as ElicitationCapabilities,
    ElicitationFormCapabilities as ElicitationFormCapabilities,
    ElicitationUrlCapabilities as ElicitationUrlCapabilities,
    Implementation as Implementation,
    ProtocolVersion as ProtocolVersion,
    ProvidersCapabilities as ProvidersCapabilities,
    SessionAdditionalDirectoriesCapabilities as SessionAdditionalDirectoriesCapabilities,
    SessionArchiveCapabilities as SessionArchiveCapabilities,
    SessionDeleteCapabilities as SessionDeleteCapabilities,
    SessionForkCapabilities as SessionForkCapabilities,
    SessionStatusCapabilities as SessionStatusCapabilities,
    SessionSystemPromptCapabilities as SessionSystemPromptCapabilities,
    SessionSystemPromptModeCapabilities as SessionSystemPromptModeCapabilities,
    SessionSystemPromptOverrideCapabilities as SessionSystemPromptOverrideCapabilities,
    SessionTitleCapabilities as SessionTitleCapabilities,
)
from accord.schema.v1.mcp import (
    EnvVariable as EnvVariable,
    HttpHeader as HttpHeader,
    McpError as McpError,
    McpRequestId as McpRequestId,
    McpServerAcp as McpServerAcp,
    McpServerAcpId as McpServerAcpId,
    MessageMcpNotification as MessageMcpNotification,
    MessageMcpRequest as MessageMcpRequest,
    MessageMcpResponse as MessageMcpResponse,
)
from accord.schema.v1.messages import (
    MessageId as MessageId,
)
from accord.schema.v1.permission import (
    PermissionOptionId as PermissionOptionId,
    SelectedPermissionOutcome as SelectedPermissionOutcome,
)
from accord.schema.v1.plan import (
    PlanFile as PlanFile,
    PlanId as PlanId,
    PlanMarkdown as PlanMarkdown,
    PlanRemoved as PlanRemoved,
)
from accord.schema.v1.prompt import (
    Usage as Usage,
)
from accord.schema.v1.protocol import (
    ErrorCode as ErrorCode,
    ExtNotification as ExtNotification,
    ExtRequest as ExtRequest,
    ExtResponse as ExtResponse,
)
from accord.schema.v1.providers import (
    DisableProviderRequest as DisableProviderRequest,
    DisableProviderResponse as DisableProviderResponse,
    ListProvidersRequest as ListProvidersRequest,
    ListProvidersResponse as ListProvidersResponse,
    LlmProtocol as LlmProtocol,
    ProviderCurrentConfig as ProviderCurrentConfig,
    ProviderId as ProviderId,
    ProviderInfo as ProviderInfo,
    SetProviderRequest as SetProviderRequest,
    SetProviderResponse as SetProviderResponse,
)
from accord.schema.v1.proxy import (
    ProxySuccessorNotification as ProxySuccessorNotification,
    ProxySuccessorRequest as ProxySuccessorRequest,
    ProxySuccessorResponse as ProxySuccessorResponse,
)
from accord.schema.v1.session import (
    ArchiveSessionRequest as ArchiveSessionRequest,
    ArchiveSessionResponse as ArchiveSessionResponse,
    CloseSessionRequest as CloseSessionRequest,
    CloseSessionResponse as CloseSessionResponse,
    DeleteSessionRequest as DeleteSessionRequest,
    DeleteSessionResponse as DeleteSessionResponse,
    SessionArchiveFilter as SessionArchiveFilter,
    SessionId as SessionId,
    SessionStatus as SessionStatus,
    SetSessionTitleRequest as SetSessionTitleRequest,
    SetSessionTitleResponse as SetSessionTitleResponse,
    SystemPromptMode as SystemPromptMode,
    UnarchiveSessionRequest as UnarchiveSessionRequest,
    UnarchiveSessionResponse as UnarchiveSessionResponse,
)
from accord.schema.v1.subagents import (
    SessionCancelCapabilities as SessionCancelCapabilities,
    SubagentSessionCapabilities as SubagentSessionCapabilities,
)
from accord.schema.v1.terminal import (
    TerminalId as TerminalId,
)
from accord.schema.v1.tools import (
    Terminal as Terminal,
    ToolCallId as ToolCallId,
)
from accord.schema.v1.updates import (
    CompactionId as CompactionId,
    CompactionStatus as CompactionStatus,
    Cost as Cost,
    Notice as Notice,
    NoticeSeverity as NoticeSeverity,
)

if TYPE_CHECKING:
    from accord.schema.v2.auth import *
    from accord.schema.v2.commands import *
    from accord.schema.v2.config import *
    from accord.schema.v2.content import *
    from accord.schema.v2.diffs import *
    from accord.schema.v2.elicitation import *
    from accord.schema.v2.initialize import *
    from accord.schema.v2.mcp import *
    from accord.schema.v2.messages import *
    from accord.schema.v2.permission import *
    from accord.schema.v2.plan import *
    from accord.schema.v2.prompt import *
    from accord.schema.v2.protocol import *
    from accord.schema.v2.proxy import *
    from accord.schema.v2.session import *
    from accord.schema.v2.state import *
    from accord.schema.v2.subagents import *
    from accord.schema.v2.terminal import *
    from accord.schema.v2.tools import *
    from accord.schema.v2.updates import *

_TOPICS = {
    "auth": """
        AgentAuthCapabilities AuthMethod AuthMethodAgent AuthMethodTerminal ClientAuthCapabilities
        LoginAuthRequest LoginAuthResponse LogoutAuthRequest LogoutAuthResponse TerminalAuthCapabilities
    """,
    "commands": "AvailableCommand AvailableCommandInput AvailableCommandsUpdate Command TextCommandInput",
    "config": """
        ConfigOptionUpdate SessionConfigBoolean SessionConfigOption SessionConfigSelect SessionConfigSelectGroup
        SessionConfigSelectOptions SetSessionConfigOption SetSessionConfigOptionBoolean SetSessionConfigOptionId
        SetSessionConfigOptionRequest SetSessionConfigOptionResponse
    """,
    "content": """
        Annotations AudioContent BlobResourceContents ContentBlock EmbeddedResource EmbeddedResourceResource
        Icon IconTheme ImageContent MediaType ResourceLink Role TextContent TextResourceContents as_block
    """,
    "diffs": """
        Diff DiffAdd DiffChange DiffCopy DiffDelete DiffFileType DiffModify DiffMove DiffPatch DiffPatchFormat
        DiffPathChange DiffPathPairChange
    """,
    "elicitation": """
        CreateElicitationRequest CreateElicitationResponse ElicitationAcceptAction ElicitationContentValue
        ElicitationFormMode ElicitationMode ElicitationPropertySchema ElicitationSchema ElicitationUrlMode
        StringFormat StringPropertySchema
    """,
    "initialize": """
        AgentCapabilities ClientCapabilities InitializeRequest InitializeResponse McpAcpCapabilities
        McpCapabilities McpHttpCapabilities McpStdioCapabilities PromptAudioCapabilities PromptCapabilities
        PromptEmbeddedContextCapabilities PromptImageCapabilities SessionCapabilities
    """,
    "mcp": "McpServer McpServerHttp McpServerStdio",
    "messages": """
        AgentMessage AgentMessageChunk AgentThought AgentThoughtChunk ContentChunk UserMessage UserMessageChunk
    """,
    "permission": """
        CancelledPermissionOutcome CommandPermissionSubject PermissionOption PermissionOptionKind
        RequestPermissionOutcome RequestPermissionRequest RequestPermissionResponse RequestPermissionSubject
        ToolCallPermissionSubject
    """,
    "plan": "PlanEntry PlanEntryPriority PlanEntryStatus PlanItems PlanUpdate PlanUpdateContent",
    "prompt": "CancelSessionNotification PromptRequest PromptResponse",
    "protocol": """
        AbsolutePath CancelRequestNotification Error ErrorData RequestId SessionNotFoundErrorData
        UnsupportedProtocolVersionErrorData
    """,
    "proxy": "InitializeProxyRequest InitializeProxyResponse",
    "session": """
        ForkSessionRequest ForkSessionResponse ListSessionsRequest ListSessionsResponse NewSessionRequest
        NewSessionResponse ReplayFrom ReplayFromStart ResumeSessionRequest ResumeSessionResponse SessionInfo
        SessionListCursor SessionStatusRequest SessionStatusResponse SystemPrompt
    """,
    "state": """
        BackgroundSubagent BackgroundTerminal BackgroundToolCall BackgroundWork IdleStateUpdate
        RequiresActionStateUpdate RunningStateUpdate SessionStateUpdate StateUpdate UnknownStateUpdate
    """,
    "subagents": "SessionMessage SessionMessageChunk SubagentUpdate",
    "terminal": """
        CancelTerminalRequest CancelTerminalResponse TerminalCancelCapabilities TerminalCapabilities
        TerminalExitStatus TerminalOutput TerminalOutputChunk TerminalSize TerminalUpdate
    """,
    "tools": """
        CancelToolCallRequest CancelToolCallResponse Content ToolCallCancelCapabilities ToolCallCapabilities
        ToolCallContent ToolCallContentChunk ToolCallLocation ToolCallProgress ToolCallStatus ToolCallUpdate
        ToolKind
    """,
    "updates": """
        CompactionSummaryChunk CompactionUpdate SessionInfoUpdate SessionUpdate UpdateSessionNotification
        UsageUpdate
    """,
}

_HOMES = {name: topic for topic, names in _TOPICS.items() for name in names.split()}

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*_HOMES, *(name for name in globals() if name[0].isupper() and name != "TYPE_CHECKING")})
