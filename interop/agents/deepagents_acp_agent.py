"""The smallest agent of deepagents-acp that writes a file: a deep agent whose sessions last.

python deepagents_acp_agent.py SESSIONS      (ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY say where its model is)
"""

import asyncio
import sys

from acp import run_agent
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents_acp.server import AgentServerACP
from langchain_anthropic import ChatAnthropic
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


async def main(sessions: str) -> None:
    async with AsyncSqliteSaver.from_conn_string(sessions) as checkpoints:

        def agent_of(context):
            return create_deep_agent(
                model=ChatAnthropic(model="claude-fake"),
                backend=FilesystemBackend(root_dir=context.cwd, virtual_mode=False),
                interrupt_on={"write_file": True},
                checkpointer=checkpoints,
            )

        await run_agent(AgentServerACP(agent_of, load_sessions=True))


asyncio.run(main(sys.argv[1]))
