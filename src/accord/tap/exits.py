"""How a process ended, as an event of a trace. PURE."""

from __future__ import annotations

import signal


def exited(code: int) -> dict[str, str | int]:
    """The event for a return code as `subprocess` has it: a negative one is a signal.

    >>> exited(3), exited(-9)
    ({'event': 'exited', 'code': 3}, {'event': 'exited', 'signal': 'SIGKILL'})
    """
    return {"event": "exited", "signal": signal_name(-code)} if code < 0 else {"event": "exited", "code": code}


def signal_name(number: int) -> str:
    """The name of a signal; its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
