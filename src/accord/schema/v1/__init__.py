"""Version 1 of the protocol, all of it in one namespace: `v1.PromptRequest`, `v1.TextContent`.

Each topic has a file of its own, named like the page that explains it, and is loaded when one of its names is first
used: making a class costs more than a thousand messages, and few programs need them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loading import on_first_use

if TYPE_CHECKING:
    from accord.schema.v1.auth import (
        AgentAuthCapabilities as AgentAuthCapabilities,
        AuthAccount as AuthAccount,
        AuthCapabilities as AuthCapabilities,
        AuthenticateRequest as AuthenticateRequest,
        AuthenticateResponse as AuthenticateResponse,
        AuthEnvVar as AuthEnvVar,
        AuthMethod as AuthMethod,
        AuthMethodAgent as AuthMethodAgent,
        AuthMethodEnvVar as AuthMethodEnvVar,
        AuthMethodId as AuthMethodId,
        AuthMethodTerminal as AuthMethodTerminal,
        AuthState as AuthState,
        AuthStatusCapabilities as AuthStatusCapabilities,
        AuthStatusRequest as AuthStatusRequest,
        AuthStatusResponse as AuthStatusResponse,
        AuthStatusUpdateNotification as AuthStatusUpdateNotification,
        LogoutCapabilities as LogoutCapabilities,
        LogoutRequest as LogoutRequest,
        LogoutResponse as LogoutResponse,
    )
    from accord.schema.v1.commands import (
        AvailableCommand as AvailableCommand,
        AvailableCommandInput as AvailableCommandInput,
        AvailableCommandsUpdate as AvailableCommandsUpdate,
        UnstructuredCommandInput as UnstructuredCommandInput,
    )
    from accord.schema.v1.config import (
        BooleanConfigOptionCapabilities as BooleanConfigOptionCapabilities,
        SessionConfigBoolean as SessionConfigBoolean,
        SessionConfigGroupId as SessionConfigGroupId,
        SessionConfigId as SessionConfigId,
        SessionConfigOption as SessionConfigOption,
        SessionConfigOptionCategory as SessionConfigOptionCategory,
        SessionConfigOptionsCapabilities as SessionConfigOptionsCapabilities,
        SessionConfigSelect as SessionConfigSelect,
        SessionConfigSelectGroup as SessionConfigSelectGroup,
        SessionConfigSelectOption as SessionConfigSelectOption,
        SessionConfigSelectOptions as SessionConfigSelectOptions,
        SessionConfigValueId as SessionConfigValueId,
    )
    from accord.schema.v1.content import (
        Annotations as Annotations,
        AudioContent as AudioContent,
        BlobResourceContents as BlobResourceContents,
        ContentBlock as ContentBlock,
        EmbeddedResource as EmbeddedResource,
        EmbeddedResourceResource as EmbeddedResourceResource,
        ImageContent as ImageContent,
        ResourceLink as ResourceLink,
        Role as Role,
        TextContent as TextContent,
        TextResourceContents as TextResourceContents,
        as_block as as_block,
    )
    from accord.schema.v1.elicitation import (
        BooleanPropertySchema as BooleanPropertySchema,
        CompleteElicitationNotification as CompleteElicitationNotification,
        CreateElicitationRequest as CreateElicitationRequest,
        CreateElicitationResponse as CreateElicitationResponse,
        ElicitationAcceptAction as ElicitationAcceptAction,
        ElicitationCancelAction as ElicitationCancelAction,
        ElicitationContentValue as ElicitationContentValue,
        ElicitationDeclineAction as ElicitationDeclineAction,
        ElicitationFormMode as ElicitationFormMode,
        ElicitationId as ElicitationId,
        ElicitationMode as ElicitationMode,
        ElicitationPropertySchema as ElicitationPropertySchema,
        ElicitationSchema as ElicitationSchema,
        ElicitationUrlMode as ElicitationUrlMode,
        EnumOption as EnumOption,
        IntegerPropertySchema as IntegerPropertySchema,
        MultiSelectItems as MultiSelectItems,
        MultiSelectPropertySchema as MultiSelectPropertySchema,
        NumberPropertySchema as NumberPropertySchema,
        StringFormat as StringFormat,
        StringMultiSelectItems as StringMultiSelectItems,
        StringPropertySchema as StringPropertySchema,
        TitledMultiSelectItems as TitledMultiSelectItems,
    )
    from accord.schema.v1.files import (
        ReadTextFileRequest as ReadTextFileRequest,
        ReadTextFileResponse as ReadTextFileResponse,
        WriteTextFileRequest as WriteTextFileRequest,
        WriteTextFileResponse as WriteTextFileResponse,
    )
    from accord.schema.v1.initialize import (
        AgentCapabilities as AgentCapabilities,
        ClientCapabilities as ClientCapabilities,
        ClientSessionCapabilities as ClientSessionCapabilities,
        CompactionCapabilities as CompactionCapabilities,
        ElicitationCapabilities as ElicitationCapabilities,
        ElicitationFormCapabilities as ElicitationFormCapabilities,
        ElicitationUrlCapabilities as ElicitationUrlCapabilities,
        FileSystemCapabilities as FileSystemCapabilities,
        Implementation as Implementation,
        InitializeRequest as InitializeRequest,
        InitializeResponse as InitializeResponse,
        McpCapabilities as McpCapabilities,
        NoticeCapabilities as NoticeCapabilities,
        PlanCapabilities as PlanCapabilities,
        PromptCapabilities as PromptCapabilities,
        ProtocolVersion as ProtocolVersion,
        ProvidersCapabilities as ProvidersCapabilities,
        SessionAdditionalDirectoriesCapabilities as SessionAdditionalDirectoriesCapabilities,
        SessionArchiveCapabilities as SessionArchiveCapabilities,
        SessionCapabilities as SessionCapabilities,
        SessionCloseCapabilities as SessionCloseCapabilities,
        SessionDeleteCapabilities as SessionDeleteCapabilities,
        SessionForkCapabilities as SessionForkCapabilities,
        SessionListCapabilities as SessionListCapabilities,
        SessionResumeCapabilities as SessionResumeCapabilities,
        SessionStatusCapabilities as SessionStatusCapabilities,
        SessionSystemPromptCapabilities as SessionSystemPromptCapabilities,
        SessionSystemPromptModeCapabilities as SessionSystemPromptModeCapabilities,
        SessionSystemPromptOverrideCapabilities as SessionSystemPromptOverrideCapabilities,
        SessionTitleCapabilities as SessionTitleCapabilities,
        SubagentCapabilities as SubagentCapabilities,
    )
    from accord.schema.v1.mcp import (
        EnvVariable as EnvVariable,
        HttpHeader as HttpHeader,
        McpError as McpError,
        McpRequestId as McpRequestId,
        McpServer as McpServer,
        McpServerAcp as McpServerAcp,
        McpServerAcpId as McpServerAcpId,
        McpServerHttp as McpServerHttp,
        McpServerSse as McpServerSse,
        McpServerStdio as McpServerStdio,
        MessageMcpNotification as MessageMcpNotification,
        MessageMcpRequest as MessageMcpRequest,
        MessageMcpResponse as MessageMcpResponse,
    )
    from accord.schema.v1.mcp_connections import (
        AnyMcpNotification as AnyMcpNotification,
        AnyMcpRequest as AnyMcpRequest,
        ConnectMcpRequest as ConnectMcpRequest,
        ConnectMcpResponse as ConnectMcpResponse,
        DisconnectMcpRequest as DisconnectMcpRequest,
        DisconnectMcpResponse as DisconnectMcpResponse,
        McpConnectionId as McpConnectionId,
        McpConnectionNotification as McpConnectionNotification,
        McpConnectionRequest as McpConnectionRequest,
    )
    from accord.schema.v1.messages import (
        AgentMessageChunk as AgentMessageChunk,
        AgentThoughtChunk as AgentThoughtChunk,
        ContentChunk as ContentChunk,
        MessageId as MessageId,
        UserMessageChunk as UserMessageChunk,
    )
    from accord.schema.v1.models import (
        ModelId as ModelId,
        ModelInfo as ModelInfo,
        SessionModelState as SessionModelState,
    )
    from accord.schema.v1.modes import (
        SessionMode as SessionMode,
        SessionModeId as SessionModeId,
        SessionModeState as SessionModeState,
    )
    from accord.schema.v1.nes import (
        AcceptNesNotification as AcceptNesNotification,
        CloseNesRequest as CloseNesRequest,
        CloseNesResponse as CloseNesResponse,
        DidChangeDocumentNotification as DidChangeDocumentNotification,
        DidCloseDocumentNotification as DidCloseDocumentNotification,
        DidFocusDocumentNotification as DidFocusDocumentNotification,
        DidOpenDocumentNotification as DidOpenDocumentNotification,
        DidSaveDocumentNotification as DidSaveDocumentNotification,
        NesDiagnostic as NesDiagnostic,
        NesDiagnosticSeverity as NesDiagnosticSeverity,
        NesEditHistoryEntry as NesEditHistoryEntry,
        NesEditSuggestion as NesEditSuggestion,
        NesExcerpt as NesExcerpt,
        NesJumpSuggestion as NesJumpSuggestion,
        NesOpenFile as NesOpenFile,
        NesRecentFile as NesRecentFile,
        NesRejectReason as NesRejectReason,
        NesRelatedSnippet as NesRelatedSnippet,
        NesRenameSuggestion as NesRenameSuggestion,
        NesRepository as NesRepository,
        NesSearchAndReplaceSuggestion as NesSearchAndReplaceSuggestion,
        NesSuggestContext as NesSuggestContext,
        NesSuggestion as NesSuggestion,
        NesTextEdit as NesTextEdit,
        NesTriggerKind as NesTriggerKind,
        NesUserAction as NesUserAction,
        Position as Position,
        Range as Range,
        RejectNesNotification as RejectNesNotification,
        StartNesRequest as StartNesRequest,
        StartNesResponse as StartNesResponse,
        SuggestNesRequest as SuggestNesRequest,
        SuggestNesResponse as SuggestNesResponse,
        TextDocumentContentChangeEvent as TextDocumentContentChangeEvent,
        WorkspaceFolder as WorkspaceFolder,
    )
    from accord.schema.v1.nes_capabilities import (
        ClientNesCapabilities as ClientNesCapabilities,
        NesCapabilities as NesCapabilities,
        NesContextCapabilities as NesContextCapabilities,
        NesDiagnosticsCapabilities as NesDiagnosticsCapabilities,
        NesDocumentDidChangeCapabilities as NesDocumentDidChangeCapabilities,
        NesDocumentDidCloseCapabilities as NesDocumentDidCloseCapabilities,
        NesDocumentDidFocusCapabilities as NesDocumentDidFocusCapabilities,
        NesDocumentDidOpenCapabilities as NesDocumentDidOpenCapabilities,
        NesDocumentDidSaveCapabilities as NesDocumentDidSaveCapabilities,
        NesDocumentEventCapabilities as NesDocumentEventCapabilities,
        NesEditHistoryCapabilities as NesEditHistoryCapabilities,
        NesEventCapabilities as NesEventCapabilities,
        NesJumpCapabilities as NesJumpCapabilities,
        NesOpenFilesCapabilities as NesOpenFilesCapabilities,
        NesRecentFilesCapabilities as NesRecentFilesCapabilities,
        NesRelatedSnippetsCapabilities as NesRelatedSnippetsCapabilities,
        NesRenameCapabilities as NesRenameCapabilities,
        NesSearchAndReplaceCapabilities as NesSearchAndReplaceCapabilities,
        NesUserActionsCapabilities as NesUserActionsCapabilities,
        PositionEncodingKind as PositionEncodingKind,
        TextDocumentSyncKind as TextDocumentSyncKind,
    )
    from accord.schema.v1.permission import (
        CancelledPermissionOutcome as CancelledPermissionOutcome,
        PermissionOption as PermissionOption,
        PermissionOptionId as PermissionOptionId,
        PermissionOptionKind as PermissionOptionKind,
        RequestPermissionOutcome as RequestPermissionOutcome,
        RequestPermissionRequest as RequestPermissionRequest,
        RequestPermissionResponse as RequestPermissionResponse,
        SelectedPermissionOutcome as SelectedPermissionOutcome,
    )
    from accord.schema.v1.plan import (
        Plan as Plan,
        PlanEntry as PlanEntry,
        PlanEntryPriority as PlanEntryPriority,
        PlanEntryStatus as PlanEntryStatus,
        PlanFile as PlanFile,
        PlanId as PlanId,
        PlanItems as PlanItems,
        PlanMarkdown as PlanMarkdown,
        PlanRemoved as PlanRemoved,
        PlanUpdate as PlanUpdate,
        PlanUpdateContent as PlanUpdateContent,
    )
    from accord.schema.v1.prompt import (
        CancelNotification as CancelNotification,
        PromptRequest as PromptRequest,
        PromptResponse as PromptResponse,
        StopReason as StopReason,
        Usage as Usage,
    )
    from accord.schema.v1.protocol import (
        CancelRequestNotification as CancelRequestNotification,
        Error as Error,
        ErrorCode as ErrorCode,
        ExtNotification as ExtNotification,
        ExtRequest as ExtRequest,
        ExtResponse as ExtResponse,
        RequestId as RequestId,
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
        InitializeProxyRequest as InitializeProxyRequest,
        InitializeProxyResponse as InitializeProxyResponse,
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
        ForkSessionRequest as ForkSessionRequest,
        ForkSessionResponse as ForkSessionResponse,
        ListSessionsRequest as ListSessionsRequest,
        ListSessionsResponse as ListSessionsResponse,
        LoadSessionRequest as LoadSessionRequest,
        LoadSessionResponse as LoadSessionResponse,
        NewSessionRequest as NewSessionRequest,
        NewSessionResponse as NewSessionResponse,
        ResumeSessionRequest as ResumeSessionRequest,
        ResumeSessionResponse as ResumeSessionResponse,
        SessionArchiveFilter as SessionArchiveFilter,
        SessionId as SessionId,
        SessionInfo as SessionInfo,
        SessionStatus as SessionStatus,
        SessionStatusRequest as SessionStatusRequest,
        SessionStatusResponse as SessionStatusResponse,
        SetSessionConfigOptionRequest as SetSessionConfigOptionRequest,
        SetSessionConfigOptionResponse as SetSessionConfigOptionResponse,
        SetSessionModelRequest as SetSessionModelRequest,
        SetSessionModelResponse as SetSessionModelResponse,
        SetSessionModeRequest as SetSessionModeRequest,
        SetSessionModeResponse as SetSessionModeResponse,
        SetSessionTitleRequest as SetSessionTitleRequest,
        SetSessionTitleResponse as SetSessionTitleResponse,
        SystemPrompt as SystemPrompt,
        SystemPromptMode as SystemPromptMode,
        UnarchiveSessionRequest as UnarchiveSessionRequest,
        UnarchiveSessionResponse as UnarchiveSessionResponse,
    )
    from accord.schema.v1.subagents import (
        IdleStateUpdate as IdleStateUpdate,
        RequiresActionStateUpdate as RequiresActionStateUpdate,
        RunningStateUpdate as RunningStateUpdate,
        SessionCancelCapabilities as SessionCancelCapabilities,
        SessionMessage as SessionMessage,
        SessionMessageChunk as SessionMessageChunk,
        StateUpdate as StateUpdate,
        SubagentSessionCapabilities as SubagentSessionCapabilities,
        SubagentUpdate as SubagentUpdate,
        UnknownStateUpdate as UnknownStateUpdate,
    )
    from accord.schema.v1.terminal import (
        CreateTerminalRequest as CreateTerminalRequest,
        CreateTerminalResponse as CreateTerminalResponse,
        KillTerminalRequest as KillTerminalRequest,
        KillTerminalResponse as KillTerminalResponse,
        ReleaseTerminalRequest as ReleaseTerminalRequest,
        ReleaseTerminalResponse as ReleaseTerminalResponse,
        TerminalExitStatus as TerminalExitStatus,
        TerminalId as TerminalId,
        TerminalOutputRequest as TerminalOutputRequest,
        TerminalOutputResponse as TerminalOutputResponse,
        WaitForTerminalExitRequest as WaitForTerminalExitRequest,
        WaitForTerminalExitResponse as WaitForTerminalExitResponse,
    )
    from accord.schema.v1.tools import (
        Content as Content,
        Diff as Diff,
        Terminal as Terminal,
        ToolCall as ToolCall,
        ToolCallContent as ToolCallContent,
        ToolCallId as ToolCallId,
        ToolCallLocation as ToolCallLocation,
        ToolCallProgress as ToolCallProgress,
        ToolCallStatus as ToolCallStatus,
        ToolCallUpdate as ToolCallUpdate,
        ToolKind as ToolKind,
    )
    from accord.schema.v1.updates import (
        CompactionId as CompactionId,
        CompactionStatus as CompactionStatus,
        CompactionSummaryChunk as CompactionSummaryChunk,
        CompactionUpdate as CompactionUpdate,
        ConfigOptionUpdate as ConfigOptionUpdate,
        Cost as Cost,
        CurrentModeUpdate as CurrentModeUpdate,
        Notice as Notice,
        NoticeSeverity as NoticeSeverity,
        SessionInfoUpdate as SessionInfoUpdate,
        SessionNotification as SessionNotification,
        SessionUpdate as SessionUpdate,
        UsageUpdate as UsageUpdate,
    )

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
