"""The passive checks: every observer, in the order in which they are asked."""

from __future__ import annotations

from accord.check.passive.answers import Answers
from accord.check.passive.framing import Framing
from accord.check.passive.gates import Gates
from accord.check.passive.lent import Lent
from accord.check.passive.observer import Observer
from accord.check.passive.opening import Opening
from accord.check.passive.options import Options
from accord.check.passive.results import Results
from accord.check.passive.schema import Schema
from accord.check.passive.sessions import Sessions
from accord.check.passive.states import States
from accord.check.passive.tools import Tools
from accord.check.passive.turns import Turns
from accord.check.passive.upserts import Upserts
from accord.check.passive.versions import Versions

OBSERVERS: tuple[type[Observer], ...] = (
    Framing,
    Answers,
    Schema,
    Opening,
    Versions,
    Gates,
    Sessions,
    Options,
    Turns,
    States,
    Tools,
    Upserts,
    Lent,
    Results,
)

PASSIVE = {check.id: check for observer in OBSERVERS for check in observer.CHECKS}
"""Every passive check by its id."""
