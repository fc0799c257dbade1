"""An agent that counts, and a client that listens, each as a process.

    python counting.py agent PROGRESS        the agent over standard streams
    python counting.py server PROGRESS       the agent in a server, which prints its URL
    python counting.py client URL WAY PROMPT one turn; says when it begins, then the numbers

`count N SIZE` is answered with N messages of SIZE characters that begin with their numbers, `who` with the id of the
process, everything else at once. The file PROGRESS grows by a byte with each message that the agent could send.
"""

import asyncio
import os
import sys
from pathlib import Path

import accord

PYTHON = sys.executable
HERE = str(Path(__file__))


class Forgetful(accord.MemoryStore):
    """Keeps no history: what a server's memory holds is then what waits for its readers."""

    def appending(self, _):
        return lambda _: None


def counting_agent(progress):
    agent = accord.Agent("counter", store=Forgetful())
    reached = os.open(progress, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    @agent.on_prompt
    async def count(turn):
        match turn.text.split():
            case ["count", number, size]:
                for reached_number in range(int(number)):
                    await turn.say(f"{reached_number} ".ljust(int(size)))
                    os.write(reached, b".")
            case ["who"]:
                await turn.say(str(os.getpid()))

    return agent


async def serve(progress):
    await accord.http.serve(counting_agent(progress), port=0, on_ready=lambda server: print(server.url, flush=True))


async def listen(url, way, prompt):
    from tests.http.talking import editor_of, transport_to

    async with editor_of(transport_to(url, way)) as editor:
        session = await editor.open_session()
        turn = asyncio.create_task(editor.prompt(session, prompt))
        await editor.first_words.wait()
        print("begun", flush=True)
        answer = await turn
        print(*(text.split()[0] for text in editor.heard[session]), answer.stop_reason, flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["agent", progress]:
            counting_agent(progress).run()
        case ["server", progress]:
            asyncio.run(serve(progress))
        case ["client", url, way, prompt]:
            asyncio.run(listen(url, way, prompt))
