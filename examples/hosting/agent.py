"""The agent of this example; put yours in its place. It keeps its sessions where `accord serve --store` says."""

import accord

agent = accord.Agent("greeter")


@agent.on_prompt
async def greet(turn: accord.Turn) -> None:
    await turn.say(f"Hello, {turn.text}!")


if __name__ == "__main__":
    agent.run()
