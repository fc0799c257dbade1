"""The user's settings: agents with names, and trusted files of projects."""

import os

PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TERM", "TMPDIR", "XDG_*",
    "SSL_CERT_*", "NODE_EXTRA_CA_CERTS", "*_PROXY",
)  # fmt: skip
"""The variables that an agent with a clean environment sees: where programs and folders are, the language, and how to
reach the network. `*` stands for any text, and case does not count."""

PASSED_ON_WINDOWS = (
    "SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "APPDATA",
    "LOCALAPPDATA", "PROGRAM*",
)  # fmt: skip
"""Those that it sees as well on Windows, where most programs do not start without them."""


def passed_on() -> tuple[str, ...]:
    """Return the patterns of a clean environment on this system; help texts name them, so this module imports
    nothing.
    """
    return (*PASSED_ON, *PASSED_ON_WINDOWS) if os.name == "nt" else PASSED_ON
