"""The smallest agent: it says what it hears."""

import accord

agent = accord.Agent("echo")


@agent.on_prompt
async def echo(turn: accord.Turn) -> None:
    await turn.say(f"You said: {turn.text}")


agent.run()
