"""An extension of the protocol: the ticket that a session works on, which either side may set.

Agents and clients that have this distribution write `extensions=["tickets"]` or `extensions=[Tickets]`. `accord chat`,
`accord inspect` and `accord check` need no more than its installation: they show the ticket and check its messages.
"""

from __future__ import annotations

import accord
from accord import updates


class Ticket(accord.Model):
    key: str
    title: str


class SetTicket(accord.Request[Ticket], method="_example.com/ticket"):
    """The client's user chose a ticket; the agent answers with what it knows of it."""

    session_id: str
    key: str


class TicketUpdate(accord.Model, tag_field="sessionUpdate", tag="_example.com/ticket"):
    """The session works on this ticket from now on."""

    ticket: Ticket


class Tickets(accord.Extension[dict[str, str]], name="example.com/tickets"):
    """The ticket that a session works on."""

    label = "Ticket"
    messages = (SetTicket,)
    updates = (TicketUpdate,)
    commit = accord.MetaMember(str, "example.com/ticket")
    """The ticket that a tool call's change is for, in the `_meta` of the call."""

    ticket: Ticket | None = None

    async def choose(self, key: str) -> Ticket:
        """Ask the agent to work on this ticket."""
        return await self.request(SetTicket(self.session_id, key))

    def fold(self, update: object) -> None:
        if isinstance(said := self.read(update), TicketUpdate):
            self.ticket = said.ticket

    @property
    def summary(self) -> str | None:
        return f"{self.ticket.key} {self.ticket.title}" if self.ticket else None

    @classmethod
    def notice(cls, update: object) -> updates.Notice | None:
        said = cls.read(update)
        return (
            updates.Notice("info", f"Works on {said.ticket.key}", said.ticket.title)
            if isinstance(said, TicketUpdate)
            else None
        )
