"""The objects for plain functions of a proxy: the hop and its neighbours, without `async`.

    @proxy.permissions
    def decide(request, hop: accord.sync.Hop):
        return requests.post(POLICY, json={"title": request.tool_call.title}).json()["allowed"]

A function for a request runs in a thread. One for a notification is called in the event loop, because notifications
come often and in order; it must not block, and cannot wait. The stub beside this module shows the members.
"""

from __future__ import annotations

from typing import Generic

from accord.agent.plain_face import Face
from accord.proxy import hop
from accord.proxy.hop import StateT


class Neighbour(Face, of=hop.Neighbour): ...


class Hop(Face, Generic[StateT], of=hop.Hop, attributes="session_id client agent came_from"): ...
