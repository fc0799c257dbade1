"""What must be true of a side's log, whatever the program was: the design's rules of order, looked at from outside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.engine.running import Handling, Request, Side


def broken_rules(side: Side, *, complete: bool) -> list[str]:
    """What this side did wrong; `complete` says that nothing was closed before its time."""
    problems = [
        *lanes_handle_one_at_a_time_in_order(side),
        *answers_come_behind_their_notifications(side),
        *requests_start_in_order(side),
        *everything_happens_once(side, complete=complete),
    ]
    return [f"{side.name}: {problem}" for problem in problems]


def tells_of(side: Side) -> dict[str | None, list[Handling]]:
    """The notifications of each lane, in the order of their arrival."""
    lanes = defaultdict(list)
    for handling in side.arrived.values():
        if handling.node.kind == "tell":
            lanes[handling.session].append(handling)
    return lanes


def lanes_handle_one_at_a_time_in_order(side: Side) -> Iterator[str]:
    for tells in tells_of(side).values():
        begun = [tell for tell in tells if tell.started]
        if begun != tells[: len(begun)]:
            yield f"the handlers that started are not the first to arrive: {begun}"
        for before, after in pairwise(begun):
            if before.ended is None or before.ended > after.started[0]:
                yield f"{after} started before {before} had ended"


def answers_come_behind_their_notifications(side: Side) -> Iterator[str]:
    """Of an ordinary caller always; of a handler's request unless the lane's own handler waited for an answer."""
    tells = tells_of(side)
    excused = excuses(side)
    for request in side.requests.values():
        if not request.answers or request.outcome in {"cancelled", "closed", None}:
            continue
        arrived = request.answers[0]
        before = [tell for tell in tells[request.session] if tell.arrived < arrived]
        missing = [tell for tell in before if tell.ended is None or tell.ended > request.seen]
        if not missing:
            continue
        if not inside_a_running_handler(request, arrived):
            yield f"the answer of {request} was seen before {missing}, which arrived before it, had ended"
        elif request not in excused:
            yield f"the answer of {request} was let through, and no handler of its lane waited for one"


def inside_a_running_handler(request: Request, when: int) -> bool:
    by = request.by
    return isinstance(by, Handling) and (by.ended is None or by.ended > when)


def excuses(side: Side) -> set[Request]:
    """The requests during whose last leg (from the answer's arrival until it was seen) their lane's handler waited."""
    in_lane: dict[str | None, Handling] = {}
    waiting: dict[object, int] = defaultdict(int)
    last_leg: set[Request] = set()
    excused: set[Request] = set()
    for what, who in side.log:
        if what == "start" and who.node.kind == "tell":
            in_lane[who.session] = who
        elif what == "end" and in_lane.get(who.session) is who:
            del in_lane[who.session]
        elif what in {"wait", "seen"}:
            waiting[who.by] += 1 if what == "wait" else -1
        if what == "answer":
            last_leg.add(who)
        elif what == "seen":
            last_leg.discard(who)
        for request in last_leg - excused:
            if (handling := in_lane.get(request.session)) is not None and waiting[handling]:
                excused.add(request)
    return excused


def requests_start_in_order(side: Side) -> Iterator[str]:
    """Behind the start of the notifications before them, unless one is suspended, and behind earlier requests."""
    tells = tells_of(side)
    calls = [it for it in side.arrived.values() if it.node.kind == "ask" and it.started]
    orderly = [call for call in calls if keeps_its_turn(call, side)]
    for before, after in pairwise(orderly):
        if before.started[0] > after.started[0]:
            yield f"{after} started before {before}"
    for call in orderly:
        start = call.started[0]
        before = [tell for tell in tells[call.session] if tell.arrived < call.arrived]
        missing = [tell for tell in before if not tell.started or tell.started[0] > start]
        begun = [tell for tell in before if tell.started and tell.started[0] < start]
        if missing and not any(keeps_its_lane(tell, start) for tell in begun):
            yield f"{call} started before {missing}, with no handler suspended"


def keeps_its_turn(call: Handling, side: Side) -> bool:
    """Not so what is cancelled before it starts, nor what is started because the link ends, only to be cancelled."""
    start = call.started[0]
    return (call.cancel_asked is None or call.cancel_asked > start) and (side.over is None or side.over > start)


def keeps_its_lane(tell: Handling, when: int) -> bool:
    """Until its end; and until its lane has a fresh task, if it cancelled the one it ran in."""
    return tell.ended is None or tell.ended > when or any(step.does == "cancel myself" for step in tell.node.steps)


def everything_happens_once(side: Side, *, complete: bool) -> Iterator[str]:
    for handling in side.arrived.values():
        if len(handling.started) > 1 or (complete and not handling.started):
            yield f"{handling} was handled {len(handling.started)} times"
    for request in side.requests.values():
        if len(request.answers) > 1 or (complete and not request.answers):
            yield f"{request} was answered {len(request.answers)} times"
        if request.outcome is None or (complete and request.outcome == "closed"):
            yield f"{request} came to no end: {request.outcome}"
        unanswered = not request.answers or request.answers[0] > request.seen
        if complete and request.given_up != (request.outcome == "cancelled" and unanswered):
            yield f"{request} was given up {request.given_up} times: {request.outcome}, answers {request.answers}"
    for request_id, call in side.calls.items():
        if (times := side.paid.get(request_id, 0)) != 1:
            yield f"{call} was answered {times} times by us"
