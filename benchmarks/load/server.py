"""The server of a load run: an agent that counts, for as long as this process is not told to end.

    python -m benchmarks.load.server        prints its URL

`count N PACE` is answered with N numbered messages, PACE seconds apart; everything else at once.
"""

import asyncio

import accord
from accord.http.server.serve import Server
from benchmarks.contract import parse

agent = accord.Agent("load")


@agent.on_prompt
async def answer(turn: accord.Turn) -> None:
    command = parse(turn.text)
    if command.verb == "count":
        pace = float(command.words[1])
        for number in range(command.number(0)):
            await turn.say(f"{number} ")
            await asyncio.sleep(pace)


def say_where(server: Server) -> None:
    print(server.url, flush=True)


if __name__ == "__main__":
    asyncio.run(accord.http.serve(agent, port=0, on_ready=say_where))
