"""Which of our types each model of the official SDK is made from, where the names differ. Data.

A type of ours that carries a tag is two classes there: one with the tag as a field, which unions hold, and one without.
"""

from __future__ import annotations

VARIANTS = {
    "AcceptElicitationResponse": "ElicitationAcceptAction",
    "AcpMcpServer": "McpServerAcp",
    "AgentMessageChunk": "AgentMessageChunk",
    "AgentPlanContentUpdate": "PlanUpdate",
    "AgentPlanRemovedUpdate": "PlanRemoved",
    "AgentPlanUpdate": "Plan",
    "AgentThoughtChunk": "AgentThoughtChunk",
    "AllowedOutcome": "SelectedPermissionOutcome",
    "AudioContentBlock": "AudioContent",
    "AvailableCommandsUpdate": "AvailableCommandsUpdate",
    "CancelElicitationResponse": "ElicitationCancelAction",
    "ConfigOptionUpdate": "ConfigOptionUpdate",
    "ContentToolCallContent": "Content",
    "CurrentModeUpdate": "CurrentModeUpdate",
    "DeclineElicitationResponse": "ElicitationDeclineAction",
    "DeniedOutcome": "CancelledPermissionOutcome",
    "ElicitationBooleanPropertySchema": "BooleanPropertySchema",
    "ElicitationIntegerPropertySchema": "IntegerPropertySchema",
    "ElicitationMultiSelectPropertySchema": "MultiSelectPropertySchema",
    "ElicitationNumberPropertySchema": "NumberPropertySchema",
    "ElicitationStringPropertySchema": "StringPropertySchema",
    "EmbeddedResourceContentBlock": "EmbeddedResource",
    "EnvVarAuthMethod": "AuthMethodEnvVar",
    "FileEditToolCallContent": "Diff",
    "HttpMcpServer": "McpServerHttp",
    "ImageContentBlock": "ImageContent",
    "NesEditSuggestionVariant": "NesEditSuggestion",
    "NesJumpSuggestionVariant": "NesJumpSuggestion",
    "NesRenameSuggestionVariant": "NesRenameSuggestion",
    "NesSearchAndReplaceSuggestionVariant": "NesSearchAndReplaceSuggestion",
    "PlanUpdateFile": "PlanFile",
    "PlanUpdateItems": "PlanItems",
    "PlanUpdateMarkdown": "PlanMarkdown",
    "ResourceContentBlock": "ResourceLink",
    "SessionConfigOptionBoolean": "SessionConfigBoolean",
    "SessionConfigOptionSelect": "SessionConfigSelect",
    "SessionInfoUpdate": "SessionInfoUpdate",
    "SseMcpServer": "McpServerSse",
    "StringMultiSelectItems": "StringMultiSelectItems",
    "TerminalAuthMethod": "AuthMethodTerminal",
    "TerminalToolCallContent": "Terminal",
    "TextContentBlock": "TextContent",
    "ToolCallProgress": "ToolCallProgress",
    "ToolCallStart": "ToolCall",
    "UsageUpdate": "UsageUpdate",
    "UserMessageChunk": "UserMessageChunk",
}
"""The variants of unions: models that show their tag as a field, and the type of ours that each is made from."""

BASES = {
    "AgentMessageChunk": "ContentChunk",
    "AgentThoughtChunk": "ContentChunk",
    "UserMessageChunk": "ContentChunk",
    "ToolCallProgress": "ToolCallUpdate",
    **{variant: source for variant, source in VARIANTS.items() if variant != source},
}
"""The model that a model derives from, if that has a name of its own."""
del BASES["DeniedOutcome"], BASES["CancelElicitationResponse"], BASES["DeclineElicitationResponse"]

OTHERS = {
    "ElicitationAcceptAction": "OtherElicitationResponse",
    "StringPropertySchema": "ElicitationOtherPropertySchema",
    "StringMultiSelectItems": "OtherMultiSelectItems",
}
"""The model of an unknown variant, by the first of the variants that the union knows."""

OPEN = {*OTHERS.values(), "CreateOtherElicitationRequest"}
"""Models that keep members which they do not know."""

HIDDEN = {
    "ForkSessionRequest": {"system_prompt"},
    "ListSessionsRequest": {"archived"},
    "LoadSessionRequest": {"system_prompt"},
    "NewSessionRequest": {"system_prompt"},
    "ResumeSessionRequest": {"system_prompt"},
}
"""Fields of requests that the official SDK does not have: an agent's method would be called with them."""

EMPTY_BY_DEFAULT = {"InitializeResponse": "auth_methods", "ElicitationSchema": "properties"}
"""Fields whose default is empty; that of other lists and objects is None."""

ROOTS = {
    "AvailableCommandInput": "UnstructuredCommandInput",
    "ElicitationContentValue": "ElicitationContentValue",
    "ElicitationFormMode": "FormMode",
    "ElicitationUrlMode": "UrlMode",
}
"""Models with the one field `root`, and the type of ours, or of `shapes`, that it has."""

UNIONS = {
    "CreateElicitationRequest": (
        "CreateFormSessionElicitationRequest",
        "CreateFormRequestElicitationRequest",
        "CreateUrlSessionElicitationRequest",
        "CreateUrlRequestElicitationRequest",
        "CreateOtherElicitationRequest",
    ),
    "CreateElicitationResponse": (
        "AcceptElicitationResponse",
        "DeclineElicitationResponse",
        "CancelElicitationResponse",
        "OtherElicitationResponse",
    ),
    "CreateFormElicitationRequest": ("CreateFormSessionElicitationRequest", "CreateFormRequestElicitationRequest"),
    "CreateUrlElicitationRequest": ("CreateUrlSessionElicitationRequest", "CreateUrlRequestElicitationRequest"),
    "ElicitationMode": (
        "ElicitationFormSessionMode",
        "ElicitationFormRequestMode",
        "ElicitationUrlSessionMode",
        "ElicitationUrlRequestMode",
    ),
}
"""Unions of models; for programs they are type aliases."""

LITERALS = ("PermissionOptionKind", "PlanEntryPriority", "PlanEntryStatus", "StopReason", "ToolCallStatus", "ToolKind")
"""Sets of words; for programs they are type aliases."""
