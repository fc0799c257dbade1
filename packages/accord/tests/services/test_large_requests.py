"""Permission requests that name very much: bounded work, outside of the event loop, and a refusal that says why."""

import os
import re
import threading
from collections import Counter

import pytest
from hypothesis import given, strategies

import accord
from accord import v1
from accord.project.confined import LONGEST
from accord.services.permission_policy import PermissionPolicy, path_pattern, simple_commands
from accord.services.permission_question import FILES, LONGEST_NAME, LONGEST_TEXT, MOST_OPTIONS
from accord.services.permission_service import Permissions, RememberedAnswers

ALL = [v1.PermissionOption.of(kind) for kind in ("allow_always", "allow_once", "reject_always", "reject_once")]

RULES = """
[[rules]]
answer = "reject"
paths = ["**/.env", "/etc/**"]
[[rules]]
answer = "reject"
paths = ["**/secret*/**"]
[[rules]]
answer = "reject"
commands = ["rm *"]
[[rules]]
answer = "allow"
kinds = ["read"]
paths = ["**"]
"""


@pytest.fixture
def looks(monkeypatch):
    """How often each thread looks at the file system."""
    counted, look = Counter(), os.lstat

    def lstat(*args, **options):
        counted[threading.get_ident()] += 1
        return look(*args, **options)

    monkeypatch.setattr(os, "lstat", lstat)
    return counted


def reading(session, paths, **more):
    locations = [v1.ToolCallLocation(str(path)) for path in paths]
    call = {"title": "Read", "kind": "read", "locations": locations, **more}
    return v1.RequestPermissionRequest(session.id, v1.ToolCallUpdate(v1.ToolCallId("t"), **call), ALL)


async def refusal(client, request):
    with pytest.raises(accord.PeerError) as caught:
        await client.request(request)
    assert caught.value.code == -32602
    return caught.value.message


async def test_a_request_for_too_many_files_is_refused_before_any_is_looked_at(project, session, lend, looks):
    asked = []
    permissions = Permissions(asked.append, policy=PermissionPolicy.parse(RULES))
    async with lend(permissions, sessions=[session]) as client:
        looks.clear()
        message = await refusal(client, reading(session, [project / str(number) for number in range(10_000)]))
    assert message == (
        f"too many files in a permission request: 10000, at most {FILES} are allowed; ask about fewer files at once"
    )
    assert (looks, asked) == ({}, [])


async def test_files_of_a_request_are_looked_at_once_each_and_not_in_the_event_loop(
    project, session, lend, looks, tmp_path
):
    permissions = Permissions(
        policy=PermissionPolicy.parse(RULES),
        remembered=RememberedAnswers(tmp_path / "remembered.json"),
        audit=tmp_path / "audit.jsonl",
    )
    folder = project / "a" / "b"
    async with lend(permissions, sessions=[session]) as client:
        looks.clear()
        answer = await client.request(reading(session, [folder / str(number) for number in range(FILES)]))
    assert answer.outcome.option_id == "allow_once"
    assert threading.get_ident() not in looks
    assert FILES <= looks.total() <= FILES + 10 * len(folder.parts)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"paths": ["/" + "a/" * LONGEST]}, "bytes of a path"),
        ({"paths": ["/" + "ü" * LONGEST_NAME]}, "bytes of a name in a path"),
        ({"paths": ["/a\0b"]}, "without null bytes"),
        ({"paths": [], "title": "x" * (LONGEST_TEXT + 1)}, "bytes of the title"),
        ({"paths": [], "raw_input": {"command": "x;" * LONGEST_TEXT}}, "bytes of the command"),
        ({"paths": [], "raw_input": {"command": "x", "args": ["y"] * LONGEST_TEXT}}, "bytes of the command"),
    ],
)
async def test_a_request_past_a_bound_is_refused_with_what_was_given(session, lend, given, problem):
    async with lend(Permissions(), sessions=[session]) as client:
        assert problem in await refusal(client, reading(session, **given))


async def test_a_request_with_too_many_options_is_refused(session, lend):
    options = [v1.PermissionOption(v1.PermissionOptionId(str(number)), "x", "allow_once") for number in range(101)]
    call = v1.ToolCallUpdate(v1.ToolCallId("t"))
    async with lend(Permissions(), sessions=[session]) as client:
        message = await refusal(client, v1.RequestPermissionRequest(session.id, call, options))
    assert f"101, at most {MOST_OPTIONS}" in message


def fits(pattern, path):
    return path_pattern(pattern).fullmatch(path) is not None


def plainly(pattern):
    """The same pattern as an expression that tries everything."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(words.get(piece) or re.escape(piece) for piece in pieces), re.DOTALL)


@given(
    strategies.lists(strategies.sampled_from(["a", "b", "/", "*", "**", "**/", "?", "."]), max_size=8).map("".join),
    strategies.text("ab/.", max_size=9),
)
def test_a_pattern_fits_the_paths_that_it_always_fitted(pattern, path):
    assert fits(pattern, path) == (plainly(pattern.removeprefix("./")).fullmatch(path) is not None)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("**/a/**/b/**/c/**/d", "a/b/"), ("*a*a*a*a*b", "a"), ("**a**a**a**b", "a"), ("**/*/*/**/*/*/**/x", "a/")],
)
def test_several_stars_do_not_multiply_the_work_for_a_long_path(pattern, name):
    # Where each star is tried at each place, this ends after hours.
    assert not fits(pattern, (name * LONGEST)[:LONGEST_NAME] + "/" + (name * LONGEST)[: LONGEST - 300] + "y")


def test_a_long_line_is_taken_apart_word_by_word():
    words = ["x" * 40_000, "'y z'" * 1_000, "&&", "last"]
    assert simple_commands(" ".join(words)) == ["x" * 40_000 + " " + "y z" * 1_000, "last"]
    assert simple_commands("a" * LONGEST_TEXT) == ["a" * LONGEST_TEXT]
    assert simple_commands("'" + "a" * LONGEST_TEXT) is None
