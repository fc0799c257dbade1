"""A proxy or an agent that misbehaves at random: it dies, stops, floods, prints, or closes its output.

python chaos.py proxy|agent SEED FOLDER
"""

import os
import random
import signal
import sys
from pathlib import Path

import accord
from accord import v1

KIND, SEED, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
DICE = random.Random(SEED)
OUTPUT = os.dup(1)


def misbehave(flood):
    roll = DICE.random()
    if roll < 0.06:
        os.kill(os.getpid(), signal.SIGKILL)
    elif roll < 0.10:
        os._exit(DICE.randrange(4))
    elif roll < 0.14:
        (FOLDER / f"stopped-{os.getpid()}").touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    elif roll < 0.24:
        flood()
    elif roll < 0.32:
        os.write(OUTPUT, b"what is this\n[1,2]\n\xff\xfe\n")
    elif roll < 0.34:
        os.close(OUTPUT)


def update(session, text):
    return v1.SessionNotification(session, v1.AgentMessageChunk.of(text))


def run_proxy():
    proxy = accord.Proxy("chaos")

    @proxy.from_client(v1.PromptRequest)
    async def prompt(request, hop):
        misbehave(lambda: [hop.client.tell(update(request.session_id, "x" * 500)) for _ in range(3000)])
        return await hop.forward(request)

    @proxy.updates
    def look(update):
        if DICE.random() < 0.02:
            misbehave(lambda: None)
        return update

    proxy.run()


def run_agent():
    agent = accord.Agent("chaos")

    @agent.on_prompt
    async def prompt(turn):
        for number in range(DICE.randrange(50)):
            await turn.say(f"{number} ")
            if DICE.random() < 0.02:
                misbehave(lambda: None)
        if DICE.random() < 0.3:
            for _ in range(2000):
                await turn.say("y" * 500)

    agent.run()


(FOLDER / f"pid-{os.getpid()}").touch()
run_proxy() if KIND == "proxy" else run_agent()
