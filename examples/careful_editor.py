"""An agent that edits files, and asks before it does: `notes.txt: colour -> color`."""

import re

import accord

agent = accord.Agent("careful-editor", version="1.0.0")

WISH = re.compile(r"(?P<file>\S+):\s*(?P<old>.+?)\s*->\s*(?P<new>.+)")


@agent.on_prompt
async def edit(turn: accord.Turn) -> None:
    wish = WISH.fullmatch(turn.text.strip())
    if wish is None:
        await turn.say("Tell me what to replace: `notes.txt: colour -> color`")
        return
    text = await turn.files.read(wish["file"])
    async with turn.tool(f"Replace {wish['old']} in {wish['file']}", kind="edit", locations=[wish["file"]]) as tool:
        await tool.diff(wish["file"], text, changed := text.replace(wish["old"], wish["new"]))
        if not await tool.ask():  # the tool call is marked as failed, and the turn goes on
            await turn.say("I left it as it was.")
            return
        await turn.files.write(wish["file"], changed)
    await turn.say(f"I replaced {text.count(wish['old'])} of them.")


agent.run()
