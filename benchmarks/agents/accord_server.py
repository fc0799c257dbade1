"""Our own agent behind a URL, written as the documentation writes one. Prints its URL, and ends with its input."""

import asyncio
import sys

import accord
from accord.http import serving

# The scripts run by path, in interpreters that know nothing of this package.
sys.path.insert(1, f"{sys.path[0]}/../..")
from benchmarks.contract import parse, run, text

agent = accord.Agent("bench")


@agent.on_prompt
async def prompt(turn: accord.Turn) -> None:
    command = parse(turn.text)
    if command.verb != "stream":
        await turn.say(f"echo:{turn.text}")
        return
    words = text(command.number(1, 40))
    for _ in range(command.number(0)):
        await turn.say(words)


async def main() -> None:
    async with serving(agent) as server:
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    sys.exit(run(main, uvloop="--uvloop" in sys.argv))
