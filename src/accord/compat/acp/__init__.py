"""The official Python SDK's names, on our engine: `import accord.compat.acp as acp`.

Names and behaviour are those of the package `agent-client-protocol`; the code and the models are ours. What differs
stands in the table of `docs/from-the-official-sdk.md`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from accord.compat.acp.listing import NAMES
from accord.loading import on_first_use

if TYPE_CHECKING:
    from accord.compat.acp.core import (
        Agent as Agent,
        Client as Client,
        RequestError as RequestError,
        connect_to_agent as connect_to_agent,
        run_agent as run_agent,
    )
    from accord.compat.acp.helpers import (
        audio_block as audio_block,
        embedded_blob_resource as embedded_blob_resource,
        embedded_text_resource as embedded_text_resource,
        image_block as image_block,
        plan_entry as plan_entry,
        resource_block as resource_block,
        resource_link_block as resource_link_block,
        session_notification as session_notification,
        start_edit_tool_call as start_edit_tool_call,
        start_read_tool_call as start_read_tool_call,
        start_tool_call as start_tool_call,
        text_block as text_block,
        tool_content as tool_content,
        tool_diff_content as tool_diff_content,
        tool_terminal_ref as tool_terminal_ref,
        update_agent_message as update_agent_message,
        update_agent_message_text as update_agent_message_text,
        update_agent_thought as update_agent_thought,
        update_agent_thought_text as update_agent_thought_text,
        update_plan as update_plan,
        update_tool_call as update_tool_call,
        update_user_message as update_user_message,
        update_user_message_text as update_user_message_text,
    )
    from accord.compat.acp.meta import (
        AGENT_METHODS as AGENT_METHODS,
        CLIENT_METHODS as CLIENT_METHODS,
        PROTOCOL_VERSION as PROTOCOL_VERSION,
    )
    from accord.compat.acp.schema import (
        AcceptElicitationResponse as AcceptElicitationResponse,
        AuthenticateRequest as AuthenticateRequest,
        AuthenticateResponse as AuthenticateResponse,
        CancelElicitationResponse as CancelElicitationResponse,
        CancelNotification as CancelNotification,
        CompleteElicitationNotification as CompleteElicitationNotification,
        CreateElicitationRequest as CreateElicitationRequest,
        CreateElicitationResponse as CreateElicitationResponse,
        CreateFormElicitationRequest as CreateFormElicitationRequest,
        CreateFormRequestElicitationRequest as CreateFormRequestElicitationRequest,
        CreateFormSessionElicitationRequest as CreateFormSessionElicitationRequest,
        CreateOtherElicitationRequest as CreateOtherElicitationRequest,
        CreateTerminalRequest as CreateTerminalRequest,
        CreateTerminalResponse as CreateTerminalResponse,
        CreateUrlElicitationRequest as CreateUrlElicitationRequest,
        CreateUrlRequestElicitationRequest as CreateUrlRequestElicitationRequest,
        CreateUrlSessionElicitationRequest as CreateUrlSessionElicitationRequest,
        DeclineElicitationResponse as DeclineElicitationResponse,
        ElicitationBooleanPropertySchema as ElicitationBooleanPropertySchema,
        ElicitationCapabilities as ElicitationCapabilities,
        ElicitationFormCapabilities as ElicitationFormCapabilities,
        ElicitationFormRequestMode as ElicitationFormRequestMode,
        ElicitationFormSessionMode as ElicitationFormSessionMode,
        ElicitationIntegerPropertySchema as ElicitationIntegerPropertySchema,
        ElicitationMode as ElicitationMode,
        ElicitationMultiSelectPropertySchema as ElicitationMultiSelectPropertySchema,
        ElicitationNumberPropertySchema as ElicitationNumberPropertySchema,
        ElicitationOtherPropertySchema as ElicitationOtherPropertySchema,
        ElicitationSchema as ElicitationSchema,
        ElicitationStringPropertySchema as ElicitationStringPropertySchema,
        ElicitationUrlCapabilities as ElicitationUrlCapabilities,
        ElicitationUrlRequestMode as ElicitationUrlRequestMode,
        ElicitationUrlSessionMode as ElicitationUrlSessionMode,
        InitializeRequest as InitializeRequest,
        InitializeResponse as InitializeResponse,
        KillTerminalRequest as KillTerminalRequest,
        KillTerminalResponse as KillTerminalResponse,
        LoadSessionRequest as LoadSessionRequest,
        LoadSessionResponse as LoadSessionResponse,
        NewSessionRequest as NewSessionRequest,
        NewSessionResponse as NewSessionResponse,
        OtherElicitationResponse as OtherElicitationResponse,
        PromptRequest as PromptRequest,
        PromptResponse as PromptResponse,
        ReadTextFileRequest as ReadTextFileRequest,
        ReadTextFileResponse as ReadTextFileResponse,
        ReleaseTerminalRequest as ReleaseTerminalRequest,
        ReleaseTerminalResponse as ReleaseTerminalResponse,
        RequestPermissionRequest as RequestPermissionRequest,
        RequestPermissionResponse as RequestPermissionResponse,
        SessionNotification as SessionNotification,
        SetSessionConfigOptionResponse as SetSessionConfigOptionResponse,
        SetSessionConfigOptionSelectRequest as SetSessionConfigOptionSelectRequest,
        SetSessionModeRequest as SetSessionModeRequest,
        SetSessionModeResponse as SetSessionModeResponse,
        TerminalOutputRequest as TerminalOutputRequest,
        TerminalOutputResponse as TerminalOutputResponse,
        WaitForTerminalExitRequest as WaitForTerminalExitRequest,
        WaitForTerminalExitResponse as WaitForTerminalExitResponse,
        WriteTextFileRequest as WriteTextFileRequest,
        WriteTextFileResponse as WriteTextFileResponse,
    )
    from accord.compat.acp.stdio import (
        spawn_agent_process as spawn_agent_process,
        spawn_client_process as spawn_client_process,
        spawn_stdio_connection as spawn_stdio_connection,
        stdio_streams as stdio_streams,
    )
    from accord.compat.acp.transports import (
        default_environment as default_environment,
        spawn_stdio_transport as spawn_stdio_transport,
    )

__all__ = list(NAMES)  # pyright: ignore[reportUnsupportedDunderAll]

_load = on_first_use(__name__, NAMES)
_DISCOURAGED = {
    "AgentSideConnection": ("core", "run_agent"),
    "ClientSideConnection": ("core", "connect_to_agent"),
}


def __getattr__(name: str) -> Any:
    if name in _DISCOURAGED:
        module, better = _DISCOURAGED[name]
        warnings.warn(f"{name} is deprecated here: use {better}", DeprecationWarning, stacklevel=2)
        return on_first_use(__name__, {name: module})(name)
    return _load(name)


def __dir__() -> list[str]:
    return sorted(__all__)
