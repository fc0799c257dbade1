"""Questions to the user: forms and links, their answers, and what keeps them safe."""

from __future__ import annotations

from accord.check.requirements.entry import agent, host, stated

ASKING = (
    *stated(
        "rfd-elicitation, Elicitation Modes",
        host.must("elicitation.declares-a-mode", "supports forms, links or both once it declares elicitation"),
        agent.must("elicitation.declared-modes-only", "asks only in a mode that the client declared"),
        agent.must("elicitation.url.valid", "sends a valid URL in url mode"),
        agent.must("elicitation.mode.own-underscore", "begins a mode of its own with an underscore"),
        host.must("elicitation.mode.unknown-not-shown", "shows no mode that it does not know as if it were another"),
    ),
    *stated(
        "rfd-elicitation, Restricted JSON Schema",
        agent.must("elicitation.form.flat", "asks for a flat object of strings, numbers, booleans and choices"),
        agent.must("elicitation.form.own-types-underscore", "begins a property type of its own with an underscore"),
        host.must("elicitation.form.unknown-type-not-shown", "draws no known input for a property of unknown type"),
        host.should("elicitation.form.defaults-filled", "fills the fields of a form with their defaults"),
        agent.must("elicitation.form.no-secrets", "asks for passwords, keys and tokens by link, never in a form"),
    ),
    *stated(
        "rfd-elicitation, Elicitation Request",
        agent.must("elicitation.scope", "ties each question to a session or to a request"),
    ),
    *stated(
        "rfd-elicitation, Client Capabilities",
        agent.must("elicitation.absent-is-unsupported", "asks nothing of a client that declared no elicitation"),
    ),
    *stated(
        "rfd-elicitation, Backward Compatibility",
        agent.must("elicitation.goes-on-without", "goes on with a default where it cannot ask"),
        agent.should("elicitation.answer-not-needed", "works on without an answer"),
        agent.must("elicitation.empty-means-form", "takes an empty elicitation capability for forms alone"),
    ),
    *stated(
        "rfd-elicitation, Error Handling",
        host.must("elicitation.undeclared-mode-code", "refuses a mode that it did not declare with -32602"),
    ),
)

ANSWERING = (
    *stated(
        "rfd-elicitation, User Response",
        host.must("elicitation.answer.action", "answers accept with the data, decline, or cancel"),
        host.must("elicitation.answer.own-action-underscore", "begins an action of its own with an underscore"),
        agent.must("elicitation.answer.unknown-action", "takes an unknown action for none of the known ones"),
        agent.must("elicitation.url.accept-is-consent", "takes an accepted link as begun, not as completed"),
    ),
    *stated(
        "rfd-elicitation, Frequently asked questions",
        host.must("elicitation.answer.dismissed-is-cancel", "answers cancel when the user dismisses the question"),
        host.should("elicitation.form.validated", "checks the data of a form against its schema before it answers"),
        agent.should("elicitation.answer.validated", "checks the data that it gets against the schema that it sent"),
    ),
    *stated(
        "rfd-elicitation, Completion Notifications for URL Mode",
        agent.must("elicitation.complete.carries-id", "names in elicitation/complete the id that it asked under"),
        agent.must("elicitation.complete.same-client", "tells completion only to the client that it had asked"),
        host.must("elicitation.complete.unknown-ignored", "ignores a completion that is unknown or a repetition"),
        host.should("elicitation.complete.may-not-come", "lets the user go on when no completion arrives"),
    ),
)

SAFETY = (
    *stated(
        "rfd-elicitation, Frequently asked questions",
        agent.must("elicitation.url.no-secrets", "puts neither personal data nor credentials into a URL"),
        agent.must("elicitation.url.not-signed-in", "sends no URL that opens a protected resource by itself"),
        agent.should("elicitation.url.https", "sends HTTPS URLs outside development"),
        agent.should("elicitation.form.no-links", "puts no URL meant for clicking into a form"),
        host.must("elicitation.url.not-fetched", "fetches nothing of a URL ahead of the user"),
        host.must("elicitation.url.consent", "opens a URL only when the user has agreed"),
        host.must("elicitation.url.shown-whole", "shows the whole URL before the user agrees"),
        host.must("elicitation.url.opened-apart", "opens a URL where neither client nor model can look in"),
        host.should("elicitation.url.domain-stands-out", "makes the URL's domain stand out"),
        host.should("elicitation.url.suspicious-warned", "warns of an ambiguous URL, such as one in Punycode"),
        host.should("elicitation.text-not-clickable", "makes no other URL of a question clickable"),
    ),
)

ELICITATION = (*ASKING, *ANSWERING, *SAFETY)
