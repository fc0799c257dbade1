"""The names of OpenTelemetry's conventions for agents (`gen_ai`), in one table. PURE.

They are still in development, and moved to a repository of their own (open-telemetry/semantic-conventions-genai). The
names here are those of its documents on agent spans and tool execution in November 2026. Where the conventions have no
name, ours begins with `acp.`.
"""

from __future__ import annotations

INVOKE_AGENT, EXECUTE_TOOL = "invoke_agent", "execute_tool"
"""Operations: a turn of an agent, and a call of a tool."""

OPERATION = "gen_ai.operation.name"
AGENT_NAME = "gen_ai.agent.name"
AGENT_VERSION = "gen_ai.agent.version"
CONVERSATION = "gen_ai.conversation.id"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
USAGE = {
    "input_tokens": INPUT_TOKENS,
    "output_tokens": OUTPUT_TOKENS,
    "thought_tokens": "gen_ai.usage.reasoning.output_tokens",
    "cached_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cached_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
}
"""The attribute of each number in the usage of a prompt's answer."""
FINISH_REASONS = "gen_ai.response.finish_reasons"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"

RPC_SYSTEM = "rpc.system"
RPC_METHOD = "rpc.method"
RPC_REQUEST = "rpc.jsonrpc.request_id"
RPC_ERROR_CODE = "rpc.jsonrpc.error_code"
ERROR_TYPE = "error.type"

STOP_REASON = "acp.stop_reason"
COST, CURRENCY = "acp.session.cost", "acp.session.currency"
CONTEXT_USED, CONTEXT_SIZE = "acp.context.used", "acp.context.size"
PROTOCOL_VERSION = "acp.protocol_version"
TOOL_KIND = "acp.tool.kind"
OUTCOME = "acp.permission.outcome"
FIRST_UPDATE = "acp.first_update"
FIRST_TEXT = "acp.first_text"

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable that asks for the content of messages, which is left out otherwise."""
