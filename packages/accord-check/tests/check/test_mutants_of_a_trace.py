"""Each fault that a trace can show is found under its own name, and nothing else is found.

A healthy conversation is broken in one place. What the judge says of it must be exactly what the table says.
"""

from __future__ import annotations

import pytest

from accord_check import Finding, judge
from tests.check.healthy import healthy
from tests.check.healthy_v2 import healthy_v2
from tests.check.trace_mutants import handshake, lent, other_side, proposals, second, sessions, turns, types, wire
from tests.check.trace_mutants.table import MUTANTS, MUTANTS_V2

LOADED = (handshake, lent, other_side, proposals, second, sessions, turns, types, wire)

MARKS = {"fail": "", "warn": "~", "note": "?"}


def named(finding: Finding) -> str:
    return f"{MARKS[finding.severity]}{finding.side} {finding.id}"


def test_nothing_is_found_in_a_healthy_conversation():
    assert judge(healthy().events()) == []


def test_nothing_is_found_in_a_healthy_conversation_of_version_2():
    assert judge(healthy_v2().events()) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_found_under_its_own_name_and_nothing_else_is(name: str):
    mutation, expected = MUTANTS[name]
    talk = healthy()
    mutation(talk)
    found = judge(talk.events())
    assert {named(finding) for finding in found} == expected, "\n".join(str(finding) for finding in found)


@pytest.mark.parametrize("name", MUTANTS_V2)
def test_a_fault_of_version_2_is_found_under_its_own_name_and_nothing_else_is(name: str):
    mutation, expected = MUTANTS_V2[name]
    talk = healthy_v2()
    mutation(talk)
    found = judge(talk.events())
    assert {named(finding) for finding in found} == expected, "\n".join(str(finding) for finding in found)
