"""The output of a command of the agent, for a client that shows no terminals of agents."""

from __future__ import annotations

from accord.printable import fenced
from accord.schema import v1


class CommandText:
    """The output of a command as content of a tool call."""

    def __init__(self) -> None:
        self.text = ""

    @property
    def content(self) -> v1.Content:
        """The output so far, in a block that Markdown leaves as it is."""
        return v1.Content.of(fenced(self.text))
