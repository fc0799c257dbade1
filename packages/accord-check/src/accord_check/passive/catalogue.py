"""The passive checks: every observer, in the order in which they are asked."""

from __future__ import annotations

from accord_check.passive.answers import Answers
from accord_check.passive.framing import Framing
from accord_check.passive.gates import Gates
from accord_check.passive.lent import Lent
from accord_check.passive.observer import Observer
from accord_check.passive.opening import Opening
from accord_check.passive.options import Options
from accord_check.passive.results import Results
from accord_check.passive.schema import Schema
from accord_check.passive.sessions import Sessions
from accord_check.passive.states import States
from accord_check.passive.tools import Tools
from accord_check.passive.turns import Turns
from accord_check.passive.upserts import Upserts
from accord_check.passive.versions import Versions

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
