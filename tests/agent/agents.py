"""Agents that run as programs of their own: `python agents.py NAME`."""

import asyncio
import sys

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

if __name__ == "__main__":
    globals()[sys.argv[1]].run()
