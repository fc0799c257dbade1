"""`accord chat --plain`: a dialogue line by line, for terminals that cannot show a screen, and for screen readers.

A prompt is a line; a line that ends with a backslash goes on. The answer, the work and the questions are shown as
`accord run` shows them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from accord.mistakes import ForgottenAwaits
from accord_tools.cli import lending, mcp_file, opening, printing, protocol, target
from accord_tools.cli.endings import ENDED_WELL, INTERRUPTED, one_line

if TYPE_CHECKING:
    from accord import RemoteAgent, RemoteSession
    from accord_tools.cli.display import Display
    from accord_tools.cli.interrupts import Interrupts

LEAVING = ("/quit", "/exit")


def converse(options: argparse.Namespace) -> int:
    """Talk with the agent until the end of input."""
    from accord import run as run_loop

    options.non_interactive = None
    options.json = False
    return run_loop(_converse(options))


async def _converse(options: argparse.Namespace) -> int:
    from accord import connect
    from accord_tools.cli.display import Display
    from accord_tools.cli.interrupts import interrupts
    from accord_tools.cli.output import Output
    from accord_tools.cli.streams import streams

    with interrupts() as control:
        output = Output(os.dup(1), os.dup(2))
        view = Display(output, streams(), opening.absolute(options.cwd), shows_work=True)
        try:
            with lending.lent(options, view) as lent:
                agent = target.chosen(options)
                spoken = protocol.versions(options)
                where = agent.target(ForgottenAwaits(printing.complain))
                async with connect(where, lent.client, unstable=True, versions=spoken) as remote:
                    await opening.log_in(options, remote)
                    session = await _opened(options, remote)
                    return await _dialogue(options, session, view, control)
        finally:
            view.stop()
            with suppress(TimeoutError):
                await asyncio.wait_for(output.flush(), 1.0)


async def _opened(options: argparse.Namespace, remote: RemoteAgent) -> RemoteSession:
    servers = mcp_file.read(options.mcp, options.cwd) if options.mcp else ()
    session_id = await opening.session_id(options, remote)
    if session_id is None:
        session = await remote.new_session(options.cwd, mcp_servers=servers)
    else:
        reopen = remote.resume if remote.capabilities.sessions.resume else remote.load
        session = await reopen(session_id, options.cwd, mcp_servers=servers)
    opening.opened(options, session)
    if options.mode is not None:
        await session.set_mode(options.mode)
    if options.model is not None:
        await session.set_model(options.model)
    return session


async def _dialogue(options: argparse.Namespace, session: RemoteSession, view: Display, control: Interrupts) -> int:
    """Prompts and answers, one after the other."""
    text: str | None = options.prompt
    while True:
        if text is None:
            text = await asyncio.to_thread(_prompt)
        if text is None or text.strip() in LEAVING:
            return INTERRUPTED if control.count else ENDED_WELL
        if text.strip():
            await _turn(session, text, view, control)
        text = None


async def _turn(session: RemoteSession, text: str, view: Display, control: Interrupts) -> None:
    from accord import AccordError

    reply = session.prompt(text, mentions=True, subagents=True)
    control.politely = reply.request_cancel
    try:
        await view.prompted(session)
        await view.follow(reply)
        await view.ended(session, await reply)
    except AccordError as error:
        await view.failed(error)
        printing.complain(f"accord chat: {one_line(error)}")
    finally:
        control.politely = None


def _prompt() -> str | None:
    """What the user types; None at the end of input."""
    lines: list[str] = []
    mark = "> " if sys.stdin.isatty() else ""
    while True:
        try:
            line = input(mark)
        except EOFError:
            return "\n".join(lines) if lines else None
        lines.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            return "\n".join(lines)
