"""Accord: the Agent Client Protocol for Python.

Every public name is here, and each is loaded when it is first used: `import accord` by itself loads next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.installation import on_first_use

if TYPE_CHECKING:
    from accord import http as http, sync as sync
    from accord._internal.endpoint import Endpoint as Endpoint
    from accord.agent.agent import Agent as Agent
    from accord.agent.agent_suggestions import (
        MirroredDocument as MirroredDocument,
        SuggestionRequest as SuggestionRequest,
    )
    from accord.agent.authentication import Login as Login
    from accord.agent.model_answer import ModelAnswer as ModelAnswer, ModelUsage as ModelUsage
    from accord.agent.model_messages import ModelCall as ModelCall
    from accord.agent.model_providers import Provider as Provider
    from accord.agent.plan import PlanDocument as PlanDocument, TurnPlan as TurnPlan
    from accord.agent.remote_client import (
        CommandResult as CommandResult,
        RemoteClient as RemoteClient,
        RemoteTerminal as RemoteTerminal,
    )
    from accord.agent.session import RunningCompaction as RunningCompaction, Session as Session
    from accord.agent.skills import AgentSkill as AgentSkill
    from accord.agent.subagent import Subagent as Subagent
    from accord.agent.tool import Tool as Tool
    from accord.agent.turn import SentMessage as SentMessage, Turn as Turn
    from accord.agent.user_questions import Decision as Decision, Elicited as Elicited, ElicitedUrl as ElicitedUrl
    from accord.client.budget import Budget as Budget, BudgetQuestion as BudgetQuestion
    from accord.client.client import Client as Client
    from accord.client.connect import (
        connect as connect,
        open as open,  # noqa: A004
    )
    from accord.client.mcp_config import load_mcp_servers as load_mcp_servers
    from accord.client.remote_agent import RemoteAgent as RemoteAgent
    from accord.client.remote_session import RemoteSession as RemoteSession
    from accord.client.remote_subagent import RemoteSubagent as RemoteSubagent
    from accord.client.reply import Outcome as Outcome, Reply as Reply
    from accord.client.restart import Restart as Restart, Restarted as Restarted
    from accord.client.suggested_edits import (
        OpenDocument as OpenDocument,
        Suggestion as Suggestion,
        Suggestions as Suggestions,
    )
    from accord.client.typed_answer import TypedReply as TypedReply
    from accord.engine.connection import Connection as Connection, Limits as Limits, Statistics as Statistics
    from accord.engine.handlers import Handlers as Handlers
    from accord.engine.peer import Context as Context, Peer as Peer
    from accord.engine.spans import Spans as Spans
    from accord.errors import (
        AccordError as AccordError,
        CapabilityMissing as CapabilityMissing,
        ConfigurationError as ConfigurationError,
        ConnectionClosed as ConnectionClosed,
        DecodeError as DecodeError,
        EncodeError as EncodeError,
        McpServerError as McpServerError,
        OutputError as OutputError,
        Overflow as Overflow,
        PeerError as PeerError,
        ProtocolError as ProtocolError,
        RequestError as RequestError,
        StaleSuggestion as StaleSuggestion,
        StoreError as StoreError,
        Timeout as Timeout,
    )
    from accord.hosts.hosts import Hosts as Hosts
    from accord.mcp.tool_server import ToolServer as ToolServer, tools as tools
    from accord.program import run as run
    from accord.proxy.chain import Chain as Chain, chain as chain
    from accord.proxy.hop import Hop as Hop
    from accord.proxy.proxy import Proxy as Proxy
    from accord.schema import v1 as v1, v2 as v2
    from accord.schema.base import Model as Model, Notification as Notification, Request as Request, Unknown as Unknown
    from accord.schema.capabilities import Capabilities as Capabilities
    from accord.schema.extension import Extension as Extension, MetaMember as MetaMember
    from accord.services.elicitation_service import (
        Elicitation as Elicitation,
        FormQuestion as FormQuestion,
        LinkQuestion as LinkQuestion,
    )
    from accord.services.file_service import Files as Files
    from accord.services.permission_policy import PermissionPolicy as PermissionPolicy
    from accord.services.permission_question import PermissionQuestion as PermissionQuestion
    from accord.services.permission_service import Permissions as Permissions, RememberedAnswers as RememberedAnswers
    from accord.services.service import ServedSession as ServedSession, Service as Service
    from accord.services.terminal_service import Terminal as Terminal, Terminals as Terminals
    from accord.services.terminal_user import TerminalUser as TerminalUser
    from accord.session import updates as updates
    from accord.store import MemoryStore as MemoryStore, Store as Store
    from accord.store.postgres_store import PostgresStore as PostgresStore
    from accord.store.sqlite_store import SqliteStore as SqliteStore
    from accord.sync.sync_connect import ask as ask
    from accord.trace import TraceEvent as TraceEvent, TraceFile as TraceFile
    from accord.transports import CommandTarget as CommandTarget, Target as Target, memory_transport as _memory
    from accord.transports.memory_transport import MemoryTransport as MemoryTransport
    from accord.transports.process_transport import ProcessTransport as ProcessTransport
    from accord.transports.stdio_transport import StdioTransport as StdioTransport

    memory_pair = _memory.pair

__version__ = "0.2.0"

_HOMES = {
    "": "http: sync:",
    "_internal.endpoint": "Endpoint",
    "agent.agent": "Agent",
    "agent.agent_suggestions": "MirroredDocument SuggestionRequest",
    "agent.authentication": "Login",
    "agent.model_answer": "ModelAnswer ModelUsage",
    "agent.model_messages": "ModelCall",
    "agent.model_providers": "Provider",
    "agent.plan": "PlanDocument TurnPlan",
    "agent.remote_client": "CommandResult RemoteClient RemoteTerminal",
    "agent.session": "RunningCompaction Session",
    "agent.skills": "AgentSkill",
    "agent.subagent": "Subagent",
    "agent.tool": "Tool",
    "agent.turn": "SentMessage Turn",
    "agent.user_questions": "Decision Elicited ElicitedUrl",
    "client.budget": "Budget BudgetQuestion",
    "client.client": "Client",
    "client.connect": "connect open",
    "client.mcp_config": "load_mcp_servers",
    "client.remote_agent": "RemoteAgent",
    "client.remote_session": "RemoteSession",
    "client.remote_subagent": "RemoteSubagent",
    "client.reply": "Outcome Reply",
    "client.restart": "Restart Restarted",
    "client.suggested_edits": "OpenDocument Suggestion Suggestions",
    "transports": "CommandTarget Target",
    "client.typed_answer": "TypedReply",
    "engine.connection": "Connection Limits Statistics",
    "engine.handlers": "Handlers",
    "engine.peer": "Context Peer",
    "engine.spans": "Spans",
    "errors": (
        "AccordError CapabilityMissing ConfigurationError ConnectionClosed DecodeError EncodeError McpServerError "
        "OutputError Overflow PeerError ProtocolError RequestError StaleSuggestion StoreError Timeout"
    ),
    "hosts.hosts": "Hosts",
    "mcp.tool_server": "ToolServer tools",
    "program": "run",
    "proxy.chain": "Chain chain",
    "proxy.hop": "Hop",
    "proxy.proxy": "Proxy",
    "schema": "v1: v2:",
    "schema.base": "Model Notification Request Unknown",
    "schema.capabilities": "Capabilities",
    "schema.extension": "Extension MetaMember",
    "services.elicitation_service": "Elicitation FormQuestion LinkQuestion",
    "services.file_service": "Files",
    "services.permission_policy": "PermissionPolicy",
    "services.permission_question": "PermissionQuestion",
    "services.permission_service": "Permissions RememberedAnswers",
    "services.service": "ServedSession Service",
    "services.terminal_service": "Terminal Terminals",
    "services.terminal_user": "TerminalUser",
    "session": "updates:",
    "store": "MemoryStore Store",
    "store.postgres_store": "PostgresStore",
    "store.sqlite_store": "SqliteStore",
    "sync.sync_connect": "ask",
    "trace": "TraceEvent TraceFile",
    "transports.memory_transport": "MemoryTransport memory_pair=pair",
    "transports.process_transport": "ProcessTransport",
    "transports.stdio_transport": "StdioTransport",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES, "__version__")
