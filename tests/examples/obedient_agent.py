"""An agent that obeys: `read FILE`, `write FILE TEXT`, `run LINE`, `may LINE`, `change FILE`, `say TEXT`.

What it got, or why it was refused, is its answer.
"""

import accord
from accord import v1

agent = accord.Agent("obedient")


@agent.on_prompt
async def obey(turn: accord.Turn) -> None:
    verb, _, rest = turn.text.partition(" ")
    try:
        await turn.say(await DO[verb](turn, rest))
    except accord.PeerError as error:
        await turn.say(f"refused: {error.code} {error.message}")


async def read(turn: accord.Turn, file: str) -> str:
    return await turn.client.read_text_file(file)


async def write(turn: accord.Turn, rest: str) -> str:
    file, _, text = rest.partition(" ")
    await turn.client.write_text_file(file, text)
    return "written"


async def run(turn: accord.Turn, line: str) -> str:
    return (await turn.client.run(line)).output


async def may(turn: accord.Turn, line: str) -> str:
    """Announce the command first, and ask about it by its id alone, as many agents do."""
    call = v1.ToolCallId(line)
    await turn.send(v1.ToolCall(call, "Run a command", "execute", raw_input={"command": line}))
    options = [v1.PermissionOption(v1.PermissionOptionId(it), it, it) for it in ("allow_once", "reject_once")]
    asked = v1.RequestPermissionRequest(turn.session.id, v1.ToolCallUpdate(call), options)
    return str((await turn.client.request(asked)).outcome.option_id)


async def change(turn: accord.Turn, file: str) -> str:
    async with turn.tool(f"Change {file}", kind="edit", locations=[file]) as tool:
        return str(bool(await tool.ask()))


async def say(_: accord.Turn, text: str) -> str:
    return text


DO = {"read": read, "write": write, "run": run, "may": may, "change": change, "say": say}

if __name__ == "__main__":
    agent.run()
