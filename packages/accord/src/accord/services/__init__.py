"""The services that a client lends: files, terminals, permission and forms.

`accord.Files`, `accord.Terminals`, `accord.Permissions` and `accord.Elicitation` are the services. The names here are
for clients with a user interface of their own: they guard a service by permission, store the agent's writes, and show a
question.

    answers = UsePermissions(ask, level="edit")                   # asks for what is neither read nor edited
    client = accord.Client(files=Guarded(accord.Files(), answers), permissions=answers)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.installation import on_first_use

if TYPE_CHECKING:
    from accord.services.file_content import (
        LineRange as LineRange,
        NotText as NotText,
        decode as decode,
        texts as texts,
    )
    from accord.services.file_service import AgentWrite as AgentWrite
    from accord.services.form_fields import FormField as FormField
    from accord.services.guarded_services import Guarded as Guarded, UsePermissions as UsePermissions
    from accord.services.permission_policy import repeats_command as repeats_command, typed_command as typed_command
    from accord.services.permission_question import (
        LEVELS as LEVELS,
        Ask as Ask,
        Choice as Choice,
        Level as Level,
        command_of as command_of,
        level_of as level_of,
    )
    from accord.services.permission_service import (
        EVERYWHERE as EVERYWHERE,
        RememberedAnswer as RememberedAnswer,
        covered as covered,
    )
    from accord.services.terminal_service import ending_of as ending_of

_HOMES = {
    "file_service": "AgentWrite",
    "file_content": "LineRange NotText decode texts",
    "form_fields": "FormField",
    "guarded_services": "Guarded UsePermissions",
    "permission_policy": "repeats_command typed_command",
    "permission_question": "Ask Choice LEVELS Level command_of level_of",
    "permission_service": "EVERYWHERE RememberedAnswer covered",
    "terminal_service": "ending_of",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES)
