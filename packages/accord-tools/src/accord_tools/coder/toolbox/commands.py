"""A tool that runs commands: in the client's terminal where it lends one, else on this machine."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Meta, Struct

from accord_tools.coder.keys import without_secrets
from accord_tools.coder.toolbox.definition import REFUSED, Given, ToolDefinition, ToolUse

MOST_OUTPUT = 30_000
SHELL = ["cmd.exe", "/d", "/c"] if os.name == "nt" else ["sh", "-c"]


class Running(Struct):
    command: Annotated[str, Meta(min_length=1, description="The command, for a shell, in the session's folder.")]
    timeout: Annotated[float, Meta(gt=0, le=3600, description="Seconds after which it is ended.")] = 120.0


async def run(use: ToolUse, asked: Running) -> Given:
    async with use.turn.tool(asked.command, kind="execute") as tool:
        if use.asks_before("anything") and not await tool.ask():
            return REFUSED
        # A client that we share an environment with has our key, too, so its terminals are told the same.
        async with tool.command([*SHELL, asked.command], env=without_secrets()) as command:
            result = await command.wait(timeout=asked.timeout)
        if result.timed_out:
            ended = f"It was ended after {asked.timeout:g} s."
        elif result.signal is not None:
            ended = f"It was ended by {result.signal}."
        else:
            ended = f"Exit code {result.exit_code}."
        if result.exit_code != 0:
            await tool.fail()
    output = result.output
    if len(output) > MOST_OUTPUT:
        output = f"{output[: MOST_OUTPUT // 2]}\n[...]\n{output[-MOST_OUTPUT // 2 :]}"
    return Given(f"{output}\n{ended}".lstrip(), failed=result.exit_code != 0)


COMMANDS = (
    ToolDefinition(
        name="run_command",
        description="Run a command in a shell and get its output and exit code. Do not start servers with it.",
        arguments=Running,
        changes="anything",
        run=run,
    ),
)
