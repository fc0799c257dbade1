"""The smallest agent of pydantic-acp that writes a file: a pydantic-ai agent whose sessions last.

python pydantic_acp_agent.py SESSIONS        (OPENAI_BASE_URL and OPENAI_API_KEY say where its model is)
"""

import sys
from pathlib import Path

from pydantic_acp import AdapterConfig, ClientHostContext, FileSessionStore, run_acp
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel


def agent_of(session):
    agent = Agent(OpenAIChatModel("fake"), name="pydantic-acp")

    @agent.tool_plain(requires_approval=True)
    async def write_file(path: str, content: str) -> str:
        """Write a text file of the project."""
        host = ClientHostContext.from_bound_session(session)
        await host.filesystem.write_text_file(path, content)
        return "written"

    return agent


run_acp(agent_factory=agent_of, config=AdapterConfig(session_store=FileSessionStore(Path(sys.argv[1]))))
