"""A client: shows what the built-in agent does with a few prompts, or what the agent that you name does with yours.

python examples/tour.py [PROMPT ...] [-- AGENT [ARGUMENT ...]]
"""

import os
import sys
from tempfile import TemporaryDirectory

import accord
from accord import updates
from accord_tools.demo import demo_agent

PROMPTS = ("What is a tool call?", "/plan", "/edit", "/run ls -l", "/usage")
COLOURS = (
    {"bold": 1, "dim": 2, "red": 31, "green": 32, "cyan": 36}
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ
    else {}
)


def coloured(text: str, colour: str) -> str:
    return f"\033[{COLOURS[colour]}m{text}\033[0m" if colour in COLOURS else text


def show(update: updates.Update) -> None:
    match update:
        case updates.AgentMessageChunk(content=updates.TextContent(text)):
            print(text, end="", flush=True)
        case updates.ToolCallUpdate(title=str(title), kind=kind):
            print(coloured(f"* {title} ({kind})", "cyan"))
        case updates.ToolCallUpdate(content=content, status=status):
            for part in content or []:
                show_content(part)
            if status in ("completed", "failed"):
                print(coloured(f"  {status}", "green" if status == "completed" else "red"))
        case updates.PlanUpdate(plan=updates.PlanItems(entries=steps)) if all(
            step.status == "completed" for step in steps
        ):
            print(coloured("".join(f"  [x] {step.content}\n" for step in steps), "dim"), end="")
        case updates.UsageUpdate(used=used, size=size):
            print(coloured(f"  context: {used} of {size}", "dim"))
        case _:
            pass


def show_content(part: updates.ToolCallContent) -> None:
    if isinstance(part, updates.TextDiff):
        print(coloured("".join(f"  + {line}\n" for line in part.new_text.splitlines()), "green"), end="")


def allow(question: accord.PermissionQuestion) -> bool:
    print(coloured(f"  may it? {question.tool_call.title}: yes", "bold"))
    return True


async def main(prompts: list[str], command: list[str]) -> None:
    client = accord.Client("tour", files=True, terminals=True, permissions=allow)
    with TemporaryDirectory() as folder:
        async with accord.connect(command or demo_agent(pace=0.01), client) as remote:
            session = await remote.new_session(folder)
            for prompt in prompts or PROMPTS:
                print(coloured(f"> {prompt}", "bold"))
                reply = session.prompt(prompt)
                async for update in reply:
                    show(update)
                print(coloured(f"\n[{(await reply).stop_reason}]\n", "dim"))


if __name__ == "__main__":
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    try:
        accord.run(main(words[:end], words[end + 1 :]))
    except BrokenPipeError:
        sys.stdout = None  # who read it has gone; Python would complain when it flushes at exit
