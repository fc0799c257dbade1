"""Gives the agent two tools: the open items of a to-do list, and a way to tick one off.

accord conduct "python todo_tools.py todo.md" claude-agent-acp

The list is a Markdown file with lines such as `- [ ] Write the tests`.
"""

import sys
from pathlib import Path

import accord

proxy = accord.Proxy("todo", version="1.0")

TODO = Path(sys.argv[1] if len(sys.argv) > 1 else "todo.md")
OPEN, DONE = "- [ ] ", "- [x] "


@proxy.tools
def open_items() -> list[str]:
    """The open items of the to-do list, in its order."""
    return [line.removeprefix(OPEN) for line in TODO.read_text().splitlines() if line.startswith(OPEN)]


@proxy.tools
def tick_off(item: str) -> str:
    """Mark an open item as done; the item is written as `open_items` gives it."""
    text = TODO.read_text()
    if OPEN + item not in text.splitlines():
        return f"there is no open item {item!r}"
    TODO.write_text(text.replace(OPEN + item, DONE + item, 1))
    return "done"


if __name__ == "__main__":
    proxy.run()
