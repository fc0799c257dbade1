"""Runs a program over two connections, and keeps what each side saw in the order in which it saw it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from accord import ConnectionClosed, Context, Handlers, Limits, Peer, PeerError, TraceEvent, memory_pair, v1
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame, ResponseFrame
from accord.trace import IN
from tests.engine.programs import Node, Program, Step

NO_DEADLINE = 1e9
decode = msgspec.json.decode
encode = msgspec.json.encode


class Planned(Exception):
    """What a handler fails with when its program says so."""


class Driver:
    """A task that is no handler; its requests are an ordinary caller's."""


class Handling:
    """A message that has arrived, and its handler."""

    def __init__(self, node: Node, session: str | None, arrived: int):
        self.node = node
        self.session = session
        self.arrived = arrived
        self.started: list[int] = []
        self.entered = False
        """Whether the awaitable part has begun."""
        self.ended: int | None = None
        self.cancel_asked: int | None = None
        """When the other side, or a `session/cancel`, wanted its end."""

    def __repr__(self):
        return f"{self.node.kind} {self.node.number} in {self.session}"


class Request:
    """One request of ours, from sending it until its caller goes on."""

    def __init__(self, node: Node, session: str | None, by: Driver | Handling):
        self.node = node
        self.session = session
        self.by = by
        self.answers: list[int] = []
        self.given_up = 0
        """How often the other side was told that nobody wants the answer."""
        self.seen: int | None = None
        self.outcome: Any = None

    def __repr__(self):
        return f"request {self.node.number} in {self.session}"


class Side:
    """One end: its connection, its handlers, and its log.

    The log's entries are (what, who). Its indices are the only time there is.
    """

    def __init__(self, name: str, program: Program, transport: Any, breaks_at: int | None = None):
        self.name = name
        self.breaks_at = breaks_at
        self.program = program
        self.log: list[tuple[str, Any]] = []
        self.arrived: dict[int, Handling] = {}
        self.requests: dict[int, Request] = {}
        self.paid: dict[Any, int] = {}
        self.over: int | None = None
        """When it was first noticed that the link has ended."""
        self.others: set[asyncio.Future[Any]] = set()
        self._asked: dict[Any, Request] = {}
        self.calls: dict[Any, Handling] = {}
        self.peer = Peer(
            transport,
            self._handlers(),
            role="client",
            limits=Limits(stuck_after=NO_DEADLINE, intake=program.intake),
        )
        self.connection = self.peer.connection
        self.connection.observe(self._observe)

    def note(self, what: str, who: Any = None) -> int:
        now = len(self.log)
        if self.over is None and not self.connection.is_open:
            self.over = now
        self.log.append((what, who))
        if now == self.breaks_at:
            self._keep(asyncio.ensure_future(self.connection.transport.close()))
        return now

    # The wire

    def _observe(self, event: TraceEvent) -> None:
        if event.frame is None:
            return
        message = event.message
        assert not hasattr(message, "problem"), f"malformed: {message}"
        if event.direction == IN:
            self._came_in(message)
        elif isinstance(message, RequestFrame):
            self._asked[message.id] = self.requests[decode(message.params)["n"]]
        elif isinstance(message, ResponseFrame):
            self.paid[message.id] = self.paid.get(message.id, 0) + 1
        elif message.method == "$/cancel_request":
            self._asked[decode(message.params)["requestId"]].given_up += 1

    def _came_in(self, message: Any) -> None:
        if isinstance(message, ResponseFrame):
            request = self._asked[message.id]
            request.answers.append(self.note("answer", request))
            return
        params = decode(message.params)
        if "n" in params:
            node = self.program.nodes[params["n"]]
            assert node.number not in self.arrived, f"{node} arrived twice"
            handling = Handling(node, params["sessionId"], len(self.log))
            self.arrived[node.number] = handling
            self.note("arrived", handling)
            if isinstance(message, RequestFrame):
                self.calls[message.id] = handling
        elif isinstance(message, NotificationFrame) and message.method == "$/cancel_request":
            if (handling := self.calls.get(params["requestId"])) and handling.cancel_asked is None:
                handling.cancel_asked = self.note("cancel", handling)
        else:
            for handling in self.calls.values():
                if handling.session == params["sessionId"] and handling.cancel_asked is None:
                    handling.cancel_asked = self.note("stop", handling)

    # Handlers

    def _handlers(self) -> Handlers:
        def begin(params: Any, context: Context) -> Any:
            handling = self.arrived[params["n"]]
            if handling.node.form == "def":
                return self._at_once(handling)
            handling.started.append(self.note("start", handling))
            return self._in_time(handling, context)

        async def run(params: Any, context: Context) -> Any:
            handling = self.arrived[params["n"]]
            handling.started.append(self.note("start", handling))
            return await self._in_time(handling, context)

        handlers = Handlers()
        for word, handler in (("def", begin), ("async", run)):
            handlers.on_notification(f"_tell/{word}")(handler)
            handlers.on_request(f"_ask/{word}")(handler)
        handlers.on(v1.CancelNotification)(lambda notification: self.note("stopped", notification.session_id) and None)
        return handlers

    def _at_once(self, handling: Handling) -> Any:
        handling.started.append(self.note("start", handling))
        try:
            for step in handling.node.steps:
                if step.does == "fail":
                    raise Planned
                if step.does == "cancel myself":
                    raise asyncio.CancelledError
                self._detach(step.branches[0], handling)
        finally:
            handling.ended = self.note("end", handling)
        return {"n": handling.node.number}

    async def _in_time(self, handling: Handling, context: Context) -> Any:
        handling.entered = True
        try:
            await self._perform(handling.node.steps, handling, context)
        except asyncio.CancelledError:
            await self._perform(handling.node.last_words, handling)
            if not handling.node.stubborn:
                raise
        finally:
            handling.ended = self.note("end", handling)
        return {"n": handling.node.number}

    # Steps

    async def drive(self, steps: list[Step]) -> None:
        await self._perform(steps, Driver())

    async def _perform(self, steps: list[Step], by: Driver | Handling, context: Context | None = None) -> None:
        for step in steps:
            match step.does:
                case "yield":
                    for _ in range(step.times):
                        await asyncio.sleep(0)
                case "tell":
                    await self._tell(step)
                case "ask":
                    await self._ask(step, by)
                case "give up":
                    await self._give_up(step, by)
                case "together":
                    async with asyncio.TaskGroup() as group:
                        for branch in step.branches:
                            group.create_task(self._perform(branch, by))
                case "detach":
                    self._detach(step.branches[0], by)
                case "stop":
                    await self._send("session/cancel", {"sessionId": step.session})
                case "afterwards":
                    context.after_response(self._perform, step.branches[0], Driver())
                case "fail":
                    raise Planned
                case "cancel myself":
                    asyncio.current_task().cancel()
                case "close":
                    await self.close()

    def _detach(self, steps: list[Step], by: Driver | Handling) -> None:
        self._keep(asyncio.ensure_future(self._perform(steps, by)))

    def _keep(self, task: asyncio.Future[Any]) -> None:
        self.others.add(task)
        task.add_done_callback(self.others.discard)

    async def _send(self, method: str, params: Any) -> None:
        try:
            await self.connection.notify(method, encode(params))
        except ConnectionClosed:
            assert not self.connection.is_open

    async def _tell(self, step: Step) -> None:
        word = "async" if step.node.form == "async def" else "def"
        await self._send(f"_tell/{word}", {"sessionId": step.session, "n": step.node.number})

    async def _ask(self, step: Step, by: Driver | Handling) -> None:
        request = Request(step.node, step.session, by)
        self.requests[step.node.number] = request
        word = "async" if step.node.form == "async def" else "def"
        params = msgspec.Raw(encode({"sessionId": step.session, "n": step.node.number}))
        self.note("wait", request)
        try:
            raw = await self.connection.call(
                f"_ask/{word}",
                params,
                lane=step.session,
                patient=step.patient,
                timeout=NO_DEADLINE if step.timed else None,
            )
            assert decode(raw) == {"n": step.node.number}, "somebody else's answer"
            request.outcome = "result"
        except PeerError as error:
            request.outcome = error.code
        except ConnectionClosed:
            assert not self.connection.is_open
            request.outcome = "closed"
        except asyncio.CancelledError:
            request.outcome = "cancelled"
            raise
        finally:
            request.seen = self.note("seen", request)

    async def _give_up(self, step: Step, by: Driver | Handling) -> None:
        asking = asyncio.ensure_future(self._ask(step, by))
        self._keep(asking)
        try:
            for _ in range(step.times):
                await asyncio.sleep(0)
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    # The end

    async def close(self) -> None:
        """Close the connection; perhaps a first attempt is cancelled."""
        if self.program.impatient:
            closing = asyncio.ensure_future(self.connection.close())
            self._keep(closing)
            await asyncio.sleep(0)
            closing.cancel()
        await self.connection.close()

    def left(self, *, complete: bool) -> list[str]:
        """What should not be there any more when everything has been done."""
        connection = self.connection
        books = {
            "requests of ours": connection._open.outgoing,
            "requests of theirs": connection._open.incoming,
            "requests given up": complete and connection._open._abandoned,
            "lanes": connection._lanes.busy,
            "tasks of lanes": connection._lanes._tasks,
            "bytes in lanes": connection._lanes.size,
            "handlers": connection._tasks.running,
            "handlers without a first step": connection._incoming.unstepped,
            "requests that wait to begin": connection._incoming._deferred,
            "requests that keep us reading": connection.read_pause.impatient,
            "senders that keep us reading": connection.read_pause.senders,
            "bytes unsent": complete and connection.transport.unsent,
            "frames unsent": connection._outbox.frames,
            "strays": connection._open.strays,
            "pollution": connection.pollution,
            "tasks of the program": self.others,
            "handlers that did not end": [it for it in self.arrived.values() if self._still_runs(it)],
        }
        return [f"{self.name}: {what}: {value}" for what, value in books.items() if value]

    def _still_runs(self, handling: Handling) -> bool:
        # What a `def` gave may never have been awaited, when the link ended just then.
        begun = handling.entered if handling.node.form == "def that gives an awaitable" else handling.started
        return bool(begun) and handling.ended is None


class Run:
    """A program on its way."""

    def __init__(self, program: Program):
        self.program = program
        here, there = memory_pair(high_water=program.high_water)
        self.sides = Side("here", program, here, program.break_at), Side("there", program, there)
        self.drivers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for side in self.sides:
            await side.connection.open()
        for side, bodies in zip(self.sides, self.program.drivers, strict=True):
            self.drivers += [asyncio.create_task(side.drive(body), name=f"driver {side.name}") for body in bodies]

    @property
    def complete(self) -> bool:
        """Whether the link has lived all the time."""
        return all(side.connection.is_open for side in self.sides)

    async def close(self) -> None:
        for side in self.sides:
            await side.close()

    def left(self, *, complete: bool) -> list[str]:
        left = [line for side in self.sides for line in side.left(complete=complete)]
        left += [f"a driver: {task}" for task in self.drivers if not task.done()]
        left += [f"a task: {task}" for task in asyncio.all_tasks() - {asyncio.current_task()}]
        return left

    def failures(self) -> list[str]:
        return [f"a driver failed: {error!r}" for task in self.drivers if task.done() and (error := task.exception())]
