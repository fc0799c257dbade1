"""Adapters: an agent of another framework as an `accord.Agent`, and any ACP agent as a tool of the framework.

`accord_adapters.pydantic_ai.serve(my_agent)` returns the agent, `accord_adapters.pydantic_ai.tool(accord.connect(...))`
the tool. `accord_adapters.official_sdk` runs programs of the official Python SDK on our engine. Each framework is a
module that is loaded on first use, and needs the extra of its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.installation import on_first_use

if TYPE_CHECKING:
    from accord_adapters import (
        chat as chat,
        claude_agent_sdk as claude_agent_sdk,
        langgraph as langgraph,
        llama_index as llama_index,
        official_sdk as official_sdk,
        openai_agents as openai_agents,
        pydantic_ai as pydantic_ai,
    )
    from accord_adapters.adapted_agent import current_turn as current_turn

__version__ = "0.2.0"

_HOMES = {
    "": "chat: claude_agent_sdk: langgraph: llama_index: official_sdk: openai_agents: pydantic_ai:",
    "adapted_agent": "current_turn",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES)
