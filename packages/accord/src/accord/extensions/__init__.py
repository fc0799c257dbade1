"""Conventions of agents in the field, each as an `accord.Extension`; none of them is in the specification.

    client = accord.Client(extensions=[Goals, DisplayTerminals])
    async with accord.connect(command, client) as remote:
        session = await remote.new_session()
        if session.extension(Goals).offer is not None:
            await session.extension(Goals).set("Ship it")

`air_conventions` has the conventions of claude-agent-acp and codex-acp for clients that declare `_meta.jetbrains.air`;
`adapter_conventions` has the others. An extension of your own is a class like these: see `accord.Extension`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.installation import on_first_use

if TYPE_CHECKING:
    from accord.extensions.adapter_conventions import (
        DisplayTerminal as DisplayTerminal,
        DisplayTerminals as DisplayTerminals,
        RateLimit as RateLimit,
        RateLimits as RateLimits,
        RewindFiles as RewindFiles,
        Steering as Steering,
    )
    from accord.extensions.air_conventions import (
        AsyncTask as AsyncTask,
        AsyncTasks as AsyncTasks,
        BackgroundSubagents as BackgroundSubagents,
        CommandTitles as CommandTitles,
        DiffPatches as DiffPatches,
        Goal as Goal,
        GoalOffer as GoalOffer,
        Goals as Goals,
        NativeSubagents as NativeSubagents,
        SessionFailure as SessionFailure,
        SessionFailures as SessionFailures,
        SessionIndex as SessionIndex,
        SessionListChanges as SessionListChanges,
        SessionRow as SessionRow,
    )
    from accord.schema.extension import (
        installed_extensions as installed_extensions,
        notice_of as notice_of,
        translated as translated,
    )

_HOMES = {
    "adapter_conventions": "DisplayTerminal DisplayTerminals RateLimit RateLimits RewindFiles Steering",
    "air_conventions": (
        "AsyncTask AsyncTasks BackgroundSubagents CommandTitles DiffPatches Goal GoalOffer Goals NativeSubagents "
        "SessionFailure SessionFailures SessionIndex SessionListChanges SessionRow"
    ),
    ".schema.extension": "installed_extensions notice_of translated",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES)
