"""Version 1 of the protocol, all of it in one namespace: `v1.PromptRequest`, `v1.TextContent`.

Each topic has a file of its own, named like the page that explains it, and is loaded when one of its names is first
used: making a class costs more than a thousand messages, and few programs need them all.
"""

# pyright: reportGeneralTypeIssues=false
# Several topics import UNSET, which is Final.

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loading import on_first_use

if TYPE_CHECKING:
    from accord.schema.v1.auth import *
    from accord.schema.v1.commands import *
    from accord.schema.v1.config import *
    from accord.schema.v1.content import *
    from accord.schema.v1.elicitation import *
    from accord.schema.v1.files import *
    from accord.schema.v1.initialize import *
    from accord.schema.v1.mcp import *
    from accord.schema.v1.mcp_connections import *
    from accord.schema.v1.messages import *
    from accord.schema.v1.models import *
    from accord.schema.v1.modes import *
    from accord.schema.v1.nes import *
    from accord.schema.v1.nes_capabilities import *
    from accord.schema.v1.permission import *
    from accord.schema.v1.plan import *
    from accord.schema.v1.prompt import *
    from accord.schema.v1.protocol import *
    from accord.schema.v1.providers import *
    from accord.schema.v1.proxy import *
    from accord.schema.v1.session import *
    from accord.schema.v1.subagents import *
    from accord.schema.v1.terminal import *
    from accord.schema.v1.tools import *
    from accord.schema.v1.updates import *

_TOPICS = {
    "auth": """
        AgentAuthCapabilities AuthAccount AuthCapabilities AuthEnvVar AuthMethod AuthMethodAgent
        AuthMethodEnvVar AuthMethodId AuthMethodTerminal AuthState AuthStatusCapabilities AuthStatusRequest
        AuthStatusResponse AuthStatusUpdateNotification AuthenticateRequest AuthenticateResponse
        LogoutCapabilities LogoutRequest LogoutResponse
    """,
    "commands": "AvailableCommand AvailableCommandInput AvailableCommandsUpdate UnstructuredCommandInput",
    "config": """
        BooleanConfigOptionCapabilities SessionConfigBoolean SessionConfigGroupId SessionConfigId
        SessionConfigOption SessionConfigOptionCategory SessionConfigOptionsCapabilities SessionConfigSelect
        SessionConfigSelectGroup SessionConfigSelectOption SessionConfigSelectOptions SessionConfigValueId
    """,
    "content": """
        Annotations AudioContent BlobResourceContents ContentBlock EmbeddedResource EmbeddedResourceResource
        ImageContent ResourceLink Role TextContent TextResourceContents as_block
    """,
    "elicitation": """
        BooleanPropertySchema CompleteElicitationNotification CreateElicitationRequest CreateElicitationResponse
        ElicitationAcceptAction ElicitationCancelAction ElicitationContentValue ElicitationDeclineAction
        ElicitationFormMode ElicitationId ElicitationMode ElicitationPropertySchema ElicitationSchema
        ElicitationUrlMode EnumOption IntegerPropertySchema MultiSelectItems MultiSelectPropertySchema
        NumberPropertySchema StringFormat StringMultiSelectItems StringPropertySchema TitledMultiSelectItems
    """,
    "files": "ReadTextFileRequest ReadTextFileResponse WriteTextFileRequest WriteTextFileResponse",
    "initialize": """
        AgentCapabilities ClientCapabilities ClientSessionCapabilities CompactionCapabilities
        ElicitationCapabilities ElicitationFormCapabilities ElicitationUrlCapabilities FileSystemCapabilities
        Implementation InitializeRequest InitializeResponse McpCapabilities NoticeCapabilities PlanCapabilities
        PromptCapabilities ProtocolVersion ProvidersCapabilities SessionAdditionalDirectoriesCapabilities
        SessionArchiveCapabilities SessionCapabilities SessionCloseCapabilities SessionDeleteCapabilities
        SessionForkCapabilities SessionListCapabilities SessionResumeCapabilities SessionStatusCapabilities
        SessionSystemPromptCapabilities SessionSystemPromptModeCapabilities
        SessionSystemPromptOverrideCapabilities SessionTitleCapabilities SubagentCapabilities
    """,
    "mcp": """
        EnvVariable HttpHeader McpError McpRequestId McpServer McpServerAcp McpServerAcpId McpServerHttp
        McpServerSse McpServerStdio MessageMcpNotification MessageMcpRequest MessageMcpResponse
    """,
    "mcp_connections": """
        AnyMcpNotification AnyMcpRequest ConnectMcpRequest ConnectMcpResponse DisconnectMcpRequest
        DisconnectMcpResponse McpConnectionId McpConnectionNotification McpConnectionRequest
    """,
    "messages": "AgentMessageChunk AgentThoughtChunk ContentChunk MessageId UserMessageChunk",
    "models": "ModelId ModelInfo SessionModelState",
    "modes": "SessionMode SessionModeId SessionModeState",
    "nes": """
        AcceptNesNotification CloseNesRequest CloseNesResponse DidChangeDocumentNotification
        DidCloseDocumentNotification DidFocusDocumentNotification DidOpenDocumentNotification
        DidSaveDocumentNotification NesDiagnostic NesDiagnosticSeverity NesEditHistoryEntry NesEditSuggestion
        NesExcerpt NesJumpSuggestion NesOpenFile NesRecentFile NesRejectReason NesRelatedSnippet
        NesRenameSuggestion NesRepository NesSearchAndReplaceSuggestion NesSuggestContext NesSuggestion
        NesTextEdit NesTriggerKind NesUserAction Position Range RejectNesNotification StartNesRequest
        StartNesResponse SuggestNesRequest SuggestNesResponse TextDocumentContentChangeEvent WorkspaceFolder
    """,
    "nes_capabilities": """
        ClientNesCapabilities NesCapabilities NesContextCapabilities NesDiagnosticsCapabilities
        NesDocumentDidChangeCapabilities NesDocumentDidCloseCapabilities NesDocumentDidFocusCapabilities
        NesDocumentDidOpenCapabilities NesDocumentDidSaveCapabilities NesDocumentEventCapabilities
        NesEditHistoryCapabilities NesEventCapabilities NesJumpCapabilities NesOpenFilesCapabilities
        NesRecentFilesCapabilities NesRelatedSnippetsCapabilities NesRenameCapabilities
        NesSearchAndReplaceCapabilities NesUserActionsCapabilities PositionEncodingKind TextDocumentSyncKind
    """,
    "permission": """
        CancelledPermissionOutcome PermissionOption PermissionOptionId PermissionOptionKind
        RequestPermissionOutcome RequestPermissionRequest RequestPermissionResponse SelectedPermissionOutcome
    """,
    "plan": """
        Plan PlanEntry PlanEntryPriority PlanEntryStatus PlanFile PlanId PlanItems PlanMarkdown PlanRemoved
        PlanUpdate PlanUpdateContent
    """,
    "prompt": "CancelNotification PromptRequest PromptResponse StopReason Usage",
    "protocol": "CancelRequestNotification Error ErrorCode ExtNotification ExtRequest ExtResponse RequestId",
    "providers": """
        DisableProviderRequest DisableProviderResponse ListProvidersRequest ListProvidersResponse LlmProtocol
        ProviderCurrentConfig ProviderId ProviderInfo SetProviderRequest SetProviderResponse
    """,
    "proxy": """
        InitializeProxyRequest InitializeProxyResponse ProxySuccessorNotification ProxySuccessorRequest
        ProxySuccessorResponse
    """,
    "session": """
        ArchiveSessionRequest ArchiveSessionResponse CloseSessionRequest CloseSessionResponse
        DeleteSessionRequest DeleteSessionResponse ForkSessionRequest ForkSessionResponse ListSessionsRequest
        ListSessionsResponse LoadSessionRequest LoadSessionResponse NewSessionRequest NewSessionResponse
        ResumeSessionRequest ResumeSessionResponse SessionArchiveFilter SessionId SessionInfo SessionStatus
        SessionStatusRequest SessionStatusResponse SetSessionConfigOptionRequest SetSessionConfigOptionResponse
        SetSessionModeRequest SetSessionModeResponse SetSessionModelRequest SetSessionModelResponse
        SetSessionTitleRequest SetSessionTitleResponse SystemPrompt SystemPromptMode UnarchiveSessionRequest
        UnarchiveSessionResponse
    """,
    "subagents": """
        IdleStateUpdate RequiresActionStateUpdate RunningStateUpdate SessionCancelCapabilities SessionMessage
        SessionMessageChunk StateUpdate SubagentSessionCapabilities SubagentUpdate UnknownStateUpdate
    """,
    "terminal": """
        CreateTerminalRequest CreateTerminalResponse KillTerminalRequest KillTerminalResponse
        ReleaseTerminalRequest ReleaseTerminalResponse TerminalExitStatus TerminalId TerminalOutputRequest
        TerminalOutputResponse WaitForTerminalExitRequest WaitForTerminalExitResponse
    """,
    "tools": """
        Content Diff Terminal ToolCall ToolCallContent ToolCallId ToolCallLocation ToolCallProgress
        ToolCallStatus ToolCallUpdate ToolKind
    """,
    "updates": """
        CompactionId CompactionStatus CompactionSummaryChunk CompactionUpdate ConfigOptionUpdate Cost
        CurrentModeUpdate Notice NoticeSeverity SessionInfoUpdate SessionNotification SessionUpdate UsageUpdate
    """,
}

_HOMES = {name: topic for topic, names in _TOPICS.items() for name in names.split()}

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(_HOMES)
