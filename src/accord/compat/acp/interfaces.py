"""`Agent` and `Client`: what each side handles, as methods. A program implements those that it needs."""

from __future__ import annotations

from typing import Any, Protocol

from accord.compat.acp import schema as s

__all__ = ["Agent", "Client"]


class Client(Protocol):
    """What an agent asks of its client, and tells it."""

    async def request_permission(
        self, session_id: str, tool_call: s.ToolCallUpdate, options: list[s.PermissionOption], **kwargs: Any
    ) -> s.RequestPermissionResponse:
        """Ask the user for permission."""
        ...

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        """Show an update of the session."""
        ...

    async def write_text_file(
        self, session_id: str, path: str, content: str, **kwargs: Any
    ) -> s.WriteTextFileResponse | None:
        """Write a file."""
        ...

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> s.ReadTextFileResponse:
        """Read a file."""
        ...

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[s.EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **kwargs: Any,
    ) -> s.CreateTerminalResponse:
        """Start a command in a terminal."""
        ...

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> s.TerminalOutputResponse:
        """The output of a terminal until now."""
        ...

    async def release_terminal(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> s.ReleaseTerminalResponse | None:
        """End a terminal, and forget it."""
        ...

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> s.WaitForTerminalExitResponse:
        """Wait for the end of a terminal's command."""
        ...

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> s.KillTerminalResponse | None:
        """End the command of a terminal."""
        ...

    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> Any:
        """Ask the user for values, or to visit a URL."""
        ...

    async def complete_elicitation(self, elicitation_id: str, **kwargs: Any) -> None:
        """The user has finished at a URL."""
        ...

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Handle a request of an extension."""
        ...

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Handle a notification of an extension."""
        ...

    def on_connect(self, conn: Agent) -> None:
        """Keep the connection, which has the agent's methods."""
        ...


class Agent(Protocol):
    """What a client asks of an agent, and tells it."""

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: s.ClientCapabilities | None = None,
        client_info: s.Implementation | None = None,
        **kwargs: Any,
    ) -> s.InitializeResponse:
        """Agree on the version, and tell what the agent offers."""
        ...

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **kwargs: Any,
    ) -> s.NewSessionResponse:
        """Begin a session."""
        ...

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        **kwargs: Any,
    ) -> s.LoadSessionResponse | None:
        """Open a session again, and replay it."""
        ...

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> s.ListSessionsResponse:
        """A page of the sessions."""
        ...

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> s.SetSessionModeResponse | None:
        """Change the session's mode."""
        ...

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> s.SetSessionConfigOptionResponse | None:
        """Change a config option of the session."""
        ...

    async def authenticate(self, method_id: str, **kwargs: Any) -> s.AuthenticateResponse | None:
        """Log the user in."""
        ...

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> s.PromptResponse:
        """Work on a prompt."""
        ...

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **kwargs: Any,
    ) -> s.ForkSessionResponse:
        """Copy a session."""
        ...

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **kwargs: Any,
    ) -> s.ResumeSessionResponse:
        """Open a session again, without a replay."""
        ...

    async def close_session(self, session_id: str, **kwargs: Any) -> s.CloseSessionResponse | None:
        """End a session."""
        ...

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """Cancel the session's turn."""
        ...

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Handle a request of an extension."""
        ...

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Handle a notification of an extension."""
        ...

    def on_connect(self, conn: Client) -> None:
        """Keep the connection, which has the client's methods."""
        ...
