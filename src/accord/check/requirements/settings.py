"""What a session offers to choose from: modes, configuration options, commands."""

from __future__ import annotations

from accord.check.requirements.entry import agent, agent_engine, client, stated

MODES = (
    *stated(
        "session-modes, Initial state",
        agent.must("mode.current-is-offered", "names as current mode one of those it offers"),
        agent.must("mode.ids-unique", "gives each mode of a session an id of its own"),
    ),
    *stated(
        "session-modes, Setting the current mode",
        agent.must("mode.set.any-time", "takes a change of mode while idle and in the middle of a turn"),
    ),
    *stated(
        "session-modes, From the Client",
        client.must("mode.set.offered-only", "sets only a mode that the agent offers"),
    ),
    *stated(
        "session-modes, From the Agent",
        agent.should("mode.change-announced", "announces every change of mode that it makes by itself"),
    ),
)

CONFIGURATION = (
    *stated(
        "session-config-options, ConfigOption",
        agent.must("config.ids-unique", "gives each option of a session an id of its own"),
    ),
    *stated(
        "session-config-options, Default Values and Graceful Degradation",
        agent.must("config.value-always", "gives every option a current value from the start"),
        agent.must("config.untouched-works", "runs a turn even if no option was ever set or shown"),
        client.should("config.unknown-type-ignored", "ignores an option of a type that it does not know"),
    ),
    *stated(
        "session-config-options, Option Categories",
        agent.must("config.category.agent-needs-none", "works the same whatever a client makes of categories"),
        client.must("config.category.unknown-accepted", "copes with a missing and with an unknown category"),
        agent.must("config.category.own-underscore", "begins categories of its own with an underscore"),
        client.should("config.category.model-settings-near-model", "shows model_config options beside the model's"),
    ),
    *stated(
        "session-config-options, Option Ordering",
        agent.should("config.order.by-priority", "lists what matters most first"),
        client.should("config.order.kept", "shows options in the agent's order, the first ones if not all"),
    ),
    *stated(
        "session-config-options, From the Client",
        client.must("config.set.offered-only", "sets a select option only to one of its listed values"),
        agent.must("config.set.whole-state", "answers a change with every option and its current value"),
    ),
    *stated(
        "session-config-options, Setting a Config Option",
        agent.must("config.set.any-time", "takes a change of option while idle and in the middle of a turn"),
    ),
    *stated(
        "session-config-options, From the Agent",
        agent.must("config.update.whole-state", "announces its own change with every option and its value"),
    ),
    *stated(
        "session-config-options, Relationship to Session Modes",
        client.should("config.modes-ignored", "ignores modes where it uses options"),
        client.should("config.modes-fallback", "falls back to modes where it knows no options"),
        agent.should("config.modes-also-sent", "sends a mode-like option both as option and as modes"),
        agent.should("config.modes-in-step", "keeps modes and the mode option in step"),
    ),
    *stated(
        "rfd-session-config-options, Shiny future",
        agent.must("config.set.invalid-refused", "refuses a value that an option cannot take with an error"),
        client.must("config.replaced-whole", "replaces all options it holds by each new list"),
    ),
)

BOOLEAN_OPTIONS = (
    *stated(
        "rfd-boolean-config-option, Client capability",
        agent.must("config.boolean.only-when-advertised", "sends boolean options only to a client that declared them"),
        agent.must("config.boolean.null-is-unsupported", "takes null at any level of that capability for absent"),
    ),
    *stated(
        "rfd-boolean-config-option, Wire format: setting a boolean option",
        client.must("config.boolean.set-with-type", "sets a boolean option with type boolean and a JSON boolean"),
    ),
)

COMMANDS = (
    *stated(
        "slash-commands, Advertising commands",
        agent_engine.should(
            "commands.after-session-exists", "announces commands only after the answer that opens the session"
        ),
    ),
    *stated(
        "slash-commands, Dynamic updates",
        client.must("commands.replaced-whole", "replaces all commands it holds by each new list"),
    ),
    *stated(
        "slash-commands, Running commands",
        client.must("commands.sent-as-prompt", "runs a command as text of an ordinary prompt"),
        agent.must("commands.recognized", "recognizes its commands in a prompt, with other content beside them"),
    ),
)

SETTINGS = (*MODES, *CONFIGURATION, *BOOLEAN_OPTIONS, *COMMANDS)
