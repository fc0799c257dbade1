"""`Arrival`: the transport to a client that has started our agent, or has opened a connection to its URL."""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from accord.transports.transport_interface import Transport


class Arrival(Transport):
    """One start of the agent, or one connection to it."""

    name = "client"
    starts_process = True
    """Whether the client has started a process, which has a standard input and a standard error."""

    def __init__(self) -> None:
        self.end_of_input = False
        """Whether the client has closed the agent's standard input."""
        self.input_over = asyncio.Event()
        """Set when it has, or when the process has ended before."""

    @abstractmethod
    def complain(self, data: bytes) -> None:
        """Write these bytes to the agent's standard error, if there is one."""

    @abstractmethod
    def exit(self, code: int) -> None:
        """End the agent: its process with this exit code, or its connection."""
