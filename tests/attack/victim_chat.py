"""A chat without a terminal. It runs in the client that is attacked, whose numbers are looked at anyway."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from accord_tools.tui.chat_app import ChatApp
from accord_tools.tui.chat_settings import ChatOptions
from accord_tools.tui.connection import AgentChoice, ConnectionOptions
from tests.waiting import eventually

THREADS = 6


async def start_threads() -> None:
    """Start all threads of the event loop now.

    A thread keeps the standard error that it started with. While Textual captures that, it is an object of the app,
    which a thread of the loop would keep for as long as the loop lives.
    """
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    all_run = threading.Barrier(THREADS)
    await asyncio.gather(*(loop.run_in_executor(None, all_run.wait) for _ in range(THREADS)))


async def chat(target: list[str], seconds: float, lends: bool) -> None:
    """Let a chat show what a hostile agent says for so long. It has to hear the key that ends it, and end."""
    await start_threads()
    connection = ConnectionOptions(allow="auto" if lends else "ask", start_within=seconds)
    with tempfile.TemporaryDirectory(prefix="chat-") as folder:
        options = ChatOptions(Path(folder), prompt="go", connection=connection, keeps=False)
        app = ChatApp(AgentChoice("hostile", lambda _: target), options)
        async with app.run_test() as pilot:
            await asyncio.sleep(seconds)
            await pilot.press("ctrl+q")
            await eventually(lambda: app.return_code == 0)
