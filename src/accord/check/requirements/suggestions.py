"""Next edit suggestions: a proposal that version 1 had, and the documents that they are about."""

from __future__ import annotations

from accord.check.requirements.entry import agent, client, proposed

PAGE = "rfd-next-edit-suggestions"

SUGGESTIONS = (
    *proposed(
        f"{PAGE}, Client capabilities",
        agent.must("nes.kinds.only-shown", "suggests only edits, and the kinds that the client declared"),
    ),
    *proposed(
        f"{PAGE}, Position encoding",
        agent.must("nes.encoding.of-the-list", "chooses a position encoding of the client's list"),
        agent.must("nes.encoding.agent-default", "counts positions in utf-16 if the client offers no encoding"),
        client.must("nes.encoding.client-default", "counts positions in utf-16 if the agent chose no encoding"),
    ),
    *proposed(
        f"{PAGE}, Events",
        client.must("nes.events.only-wanted", "sends only the events of documents that the agent declared"),
    ),
    *proposed(
        f"{PAGE}, Suggestion request",
        client.must("nes.context.only-wanted", "sends only the context that the agent declared"),
    ),
    *proposed(
        f"{PAGE}, Error handling",
        client.must("nes.start.login-required", "reports that a login is required, and starts after it"),
    ),
    *proposed(
        f"{PAGE}, NES session close",
        agent.must("nes.close.ends-work", "ends the work for a suggestion session that the client closes"),
    ),
)
