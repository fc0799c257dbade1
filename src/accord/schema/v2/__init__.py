"""Version 2 of the protocol, all of it in one namespace: `v2.PromptRequest`, `v2.TextContent`.

Each topic has a file of its own, which begins with what differs from version 1; what does not differ comes from there.
"""

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
from accord.schema.v2.auth import (
    AgentAuthCapabilities as AgentAuthCapabilities,
    AuthMethod as AuthMethod,
    AuthMethodAgent as AuthMethodAgent,
    AuthMethodTerminal as AuthMethodTerminal,
    ClientAuthCapabilities as ClientAuthCapabilities,
    LoginAuthRequest as LoginAuthRequest,
    LoginAuthResponse as LoginAuthResponse,
    LogoutAuthRequest as LogoutAuthRequest,
    LogoutAuthResponse as LogoutAuthResponse,
    TerminalAuthCapabilities as TerminalAuthCapabilities,
)
from accord.schema.v2.commands import (
    AvailableCommand as AvailableCommand,
    AvailableCommandInput as AvailableCommandInput,
    AvailableCommandsUpdate as AvailableCommandsUpdate,
    Command as Command,
    TextCommandInput as TextCommandInput,
)
from accord.schema.v2.config import (
    ConfigOptionUpdate as ConfigOptionUpdate,
    SessionConfigBoolean as SessionConfigBoolean,
    SessionConfigOption as SessionConfigOption,
    SessionConfigSelect as SessionConfigSelect,
    SessionConfigSelectGroup as SessionConfigSelectGroup,
    SessionConfigSelectOptions as SessionConfigSelectOptions,
    SetSessionConfigOption as SetSessionConfigOption,
    SetSessionConfigOptionBoolean as SetSessionConfigOptionBoolean,
    SetSessionConfigOptionId as SetSessionConfigOptionId,
    SetSessionConfigOptionRequest as SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse as SetSessionConfigOptionResponse,
)
from accord.schema.v2.content import (
    Annotations as Annotations,
    AudioContent as AudioContent,
    BlobResourceContents as BlobResourceContents,
    ContentBlock as ContentBlock,
    EmbeddedResource as EmbeddedResource,
    EmbeddedResourceResource as EmbeddedResourceResource,
    Icon as Icon,
    IconTheme as IconTheme,
    ImageContent as ImageContent,
    MediaType as MediaType,
    ResourceLink as ResourceLink,
    Role as Role,
    TextContent as TextContent,
    TextResourceContents as TextResourceContents,
    as_block as as_block,
)
from accord.schema.v2.diffs import (
    Diff as Diff,
    DiffAdd as DiffAdd,
    DiffChange as DiffChange,
    DiffCopy as DiffCopy,
    DiffDelete as DiffDelete,
    DiffFileType as DiffFileType,
    DiffModify as DiffModify,
    DiffMove as DiffMove,
    DiffPatch as DiffPatch,
    DiffPatchFormat as DiffPatchFormat,
    DiffPathChange as DiffPathChange,
    DiffPathPairChange as DiffPathPairChange,
)
from accord.schema.v2.elicitation import (
    CreateElicitationRequest as CreateElicitationRequest,
    CreateElicitationResponse as CreateElicitationResponse,
    ElicitationAcceptAction as ElicitationAcceptAction,
    ElicitationContentValue as ElicitationContentValue,
    ElicitationFormMode as ElicitationFormMode,
    ElicitationMode as ElicitationMode,
    ElicitationPropertySchema as ElicitationPropertySchema,
    ElicitationSchema as ElicitationSchema,
    ElicitationUrlMode as ElicitationUrlMode,
    StringFormat as StringFormat,
    StringPropertySchema as StringPropertySchema,
)
from accord.schema.v2.initialize import (
    AgentCapabilities as AgentCapabilities,
    ClientCapabilities as ClientCapabilities,
    InitializeRequest as InitializeRequest,
    InitializeResponse as InitializeResponse,
    McpAcpCapabilities as McpAcpCapabilities,
    McpCapabilities as McpCapabilities,
    McpHttpCapabilities as McpHttpCapabilities,
    McpStdioCapabilities as McpStdioCapabilities,
    PromptAudioCapabilities as PromptAudioCapabilities,
    PromptCapabilities as PromptCapabilities,
    PromptEmbeddedContextCapabilities as PromptEmbeddedContextCapabilities,
    PromptImageCapabilities as PromptImageCapabilities,
    SessionCapabilities as SessionCapabilities,
)
from accord.schema.v2.mcp import (
    McpServer as McpServer,
    McpServerHttp as McpServerHttp,
    McpServerStdio as McpServerStdio,
)
from accord.schema.v2.messages import (
    AgentMessage as AgentMessage,
    AgentMessageChunk as AgentMessageChunk,
    AgentThought as AgentThought,
    AgentThoughtChunk as AgentThoughtChunk,
    ContentChunk as ContentChunk,
    UserMessage as UserMessage,
    UserMessageChunk as UserMessageChunk,
)
from accord.schema.v2.permission import (
    CancelledPermissionOutcome as CancelledPermissionOutcome,
    CommandPermissionSubject as CommandPermissionSubject,
    PermissionOption as PermissionOption,
    PermissionOptionKind as PermissionOptionKind,
    RequestPermissionOutcome as RequestPermissionOutcome,
    RequestPermissionRequest as RequestPermissionRequest,
    RequestPermissionResponse as RequestPermissionResponse,
    RequestPermissionSubject as RequestPermissionSubject,
    ToolCallPermissionSubject as ToolCallPermissionSubject,
)
from accord.schema.v2.plan import (
    PlanEntry as PlanEntry,
    PlanEntryPriority as PlanEntryPriority,
    PlanEntryStatus as PlanEntryStatus,
    PlanItems as PlanItems,
    PlanUpdate as PlanUpdate,
    PlanUpdateContent as PlanUpdateContent,
)
from accord.schema.v2.prompt import (
    CancelSessionNotification as CancelSessionNotification,
    PromptRequest as PromptRequest,
    PromptResponse as PromptResponse,
)
from accord.schema.v2.protocol import (
    AbsolutePath as AbsolutePath,
    CancelRequestNotification as CancelRequestNotification,
    Error as Error,
    ErrorData as ErrorData,
    RequestId as RequestId,
    SessionNotFoundErrorData as SessionNotFoundErrorData,
    UnsupportedProtocolVersionErrorData as UnsupportedProtocolVersionErrorData,
)
from accord.schema.v2.proxy import (
    InitializeProxyRequest as InitializeProxyRequest,
    InitializeProxyResponse as InitializeProxyResponse,
)
from accord.schema.v2.session import (
    ForkSessionRequest as ForkSessionRequest,
    ForkSessionResponse as ForkSessionResponse,
    ListSessionsRequest as ListSessionsRequest,
    ListSessionsResponse as ListSessionsResponse,
    NewSessionRequest as NewSessionRequest,
    NewSessionResponse as NewSessionResponse,
    ReplayFrom as ReplayFrom,
    ReplayFromStart as ReplayFromStart,
    ResumeSessionRequest as ResumeSessionRequest,
    ResumeSessionResponse as ResumeSessionResponse,
    SessionInfo as SessionInfo,
    SessionListCursor as SessionListCursor,
    SessionStatusRequest as SessionStatusRequest,
    SessionStatusResponse as SessionStatusResponse,
    SystemPrompt as SystemPrompt,
)
from accord.schema.v2.state import (
    BackgroundSubagent as BackgroundSubagent,
    BackgroundTerminal as BackgroundTerminal,
    BackgroundToolCall as BackgroundToolCall,
    BackgroundWork as BackgroundWork,
    IdleStateUpdate as IdleStateUpdate,
    RequiresActionStateUpdate as RequiresActionStateUpdate,
    RunningStateUpdate as RunningStateUpdate,
    SessionStateUpdate as SessionStateUpdate,
    StateUpdate as StateUpdate,
    UnknownStateUpdate as UnknownStateUpdate,
)
from accord.schema.v2.subagents import (
    SessionMessage as SessionMessage,
    SessionMessageChunk as SessionMessageChunk,
    SubagentUpdate as SubagentUpdate,
)
from accord.schema.v2.terminal import (
    CancelTerminalRequest as CancelTerminalRequest,
    CancelTerminalResponse as CancelTerminalResponse,
    TerminalCancelCapabilities as TerminalCancelCapabilities,
    TerminalCapabilities as TerminalCapabilities,
    TerminalExitStatus as TerminalExitStatus,
    TerminalOutput as TerminalOutput,
    TerminalOutputChunk as TerminalOutputChunk,
    TerminalSize as TerminalSize,
    TerminalUpdate as TerminalUpdate,
)
from accord.schema.v2.tools import (
    CancelToolCallRequest as CancelToolCallRequest,
    CancelToolCallResponse as CancelToolCallResponse,
    Content as Content,
    ToolCallCancelCapabilities as ToolCallCancelCapabilities,
    ToolCallCapabilities as ToolCallCapabilities,
    ToolCallContent as ToolCallContent,
    ToolCallContentChunk as ToolCallContentChunk,
    ToolCallLocation as ToolCallLocation,
    ToolCallProgress as ToolCallProgress,
    ToolCallStatus as ToolCallStatus,
    ToolCallUpdate as ToolCallUpdate,
    ToolKind as ToolKind,
)
from accord.schema.v2.updates import (
    CompactionSummaryChunk as CompactionSummaryChunk,
    CompactionUpdate as CompactionUpdate,
    SessionInfoUpdate as SessionInfoUpdate,
    SessionUpdate as SessionUpdate,
    UpdateSessionNotification as UpdateSessionNotification,
    UsageUpdate as UsageUpdate,
)
