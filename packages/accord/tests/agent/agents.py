"""Agents that run as programs of their own: `python agents.py NAME`."""

import asyncio
import contextlib
import os
import sys
import time

import accord

echo = accord.Agent("echo", version="1.0.0")


@echo.on_prompt
async def say_it_again(turn):
    print("this is no message")
    await turn.say(turn.text)


slow = accord.Agent("slow", version="1.0.0")


@slow.on_session
async def hold(session):
    session.resources.callback(lambda: sys.stderr.write("freed\n"))


@slow.on_prompt
async def wait(turn):
    await turn.say("working")
    try:
        await asyncio.Event().wait()
    finally:
        sys.stderr.write("stopped\n")


mute = accord.Agent("mute")

lingering = accord.Agent("lingering", cancel_grace=0.1, store=os.environ.get("AGENTS_STORE"))


@lingering.on_prompt
async def linger(turn):
    await turn.say("working")
    match turn.text:
        case "swallow":
            await swallow_cancellation()
        case "thread":
            await asyncio.to_thread(sit_in_a_thread)
        case "block":
            sit_in_a_thread()


async def swallow_cancellation():
    sys.stderr.write("stuck\n")
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


def sit_in_a_thread():
    sys.stderr.write("stuck\n")
    while True:
        time.sleep(1000)


if __name__ == "__main__":
    globals()[sys.argv[1]].run()
