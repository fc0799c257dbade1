"""`AuthorThread`: a plain function of an author in its own thread, and the task that works for it.

    task of the turn                               thread of the function
    run ─────────────────────────────────────────▶ reply(turn)
     │ ◀── wait: a coroutine that the task awaits ── turn.say("Hello")
     │ ─── its result, or its error ─────────────▶
     │ ◀── the end: what the function returned ───── return

Everything that the function does with its turn is done by the task that would have run an `async` function. So order,
task groups, time limits and cancelling are those of `async` functions, and nothing in the agent needs a lock.

A cancelled task raises `asyncio.CancelledError` in the call that the thread waits for, or in its next one. Like in
asyncio that happens once, so `with` and `finally` blocks can still use the turn. A thread that makes no call cannot be
ended: a second cancel, such as that of a closing connection, leaves it behind, and each later call of it raises. It is
a daemon, because a function that never returns must not keep the program from ending.

Threads that the function starts itself have no task. Each of their calls gets one, which ends with the function; a
cancel ends it, or the next call of such a thread raises.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, suppress
from functools import partial, wraps
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from accord._internal.tasks import in_thread, is_async, name_of, outcome_of, start_thread
from accord.mistakes import WrongReturn, check_callable, place_of, shown

if TYPE_CHECKING:
    from accord.agent.model_answer import ModelStream
    from accord.agent.session import Session

T = TypeVar("T")
ResultT = TypeVar("ResultT")

_END: Any = object()
_local = threading.local()


class Call(Generic[T]):
    """A call that a thread waits for."""

    __slots__ = ("_answer", "function")

    def __init__(self, function: Callable[[], T]) -> None:
        self.function = function
        self._answer: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def finish(self, result: T | None, error: BaseException | None = None) -> None:
        """Let the thread continue, with this result or this error."""
        self._answer.put((result, error))

    def call(self) -> None:
        """Call the function now, in the event loop."""
        try:
            result = self.function()
        except BaseException as error:
            self.finish(None, error)
        else:
            self.finish(result)

    def wait(self) -> T:
        """Wait for the result, in the thread; raises the error."""
        return cast("T", outcome_of(*self._answer.get()))


class AuthorThread:
    """The thread of one plain function, and how it reaches the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._task = asyncio.current_task()
        self._calls: asyncio.Queue[Call[Awaitable[Any]] | None] = asyncio.Queue()
        """The calls that the thread asks for; None is its end."""
        self._outcome: tuple[Any, BaseException | None] = None, None
        self._is_over = False
        self._owes_cancel = False
        """Whether the task was cancelled while the thread made no call, so that the next one has to raise."""
        self._others: set[asyncio.Task[None]] = set()
        """The calls of threads that the function has started."""
        self._notified: set[int] = set()
        """The threads to which a cancel was delivered."""

    # In the event loop

    async def run(self, function: Callable[[], T], name: str) -> T:
        """Call this in a new thread, and run the calls it makes; returns its result, or raises its error."""
        self._task = asyncio.current_task()
        start_thread(lambda: self._work(function), name)
        try:
            while (call := await self._next()) is not None:
                await self._do(call)
        finally:
            self._is_over = True
            self._cancel_others()
            while not self._calls.empty():
                if (call := self._calls.get_nowait()) is not None:
                    call.finish(None, asyncio.CancelledError())
        return cast("T", outcome_of(*self._taken()))

    def _taken(self) -> tuple[Any, BaseException | None]:
        outcome, self._outcome = self._outcome, (None, None)
        return outcome

    async def _next(self) -> Call[Awaitable[Any]] | None:
        while True:
            try:
                return await self._calls.get()
            except asyncio.CancelledError:
                if self._owes_cancel:
                    raise
                self._owes_cancel = True
                self._cancel_others()

    async def _do(self, call: Call[Awaitable[Any]]) -> None:
        """Run the call that the thread waits for."""
        if self._owes_cancel:
            self._owes_cancel = False
            call.finish(None, asyncio.CancelledError())
            return
        try:
            result = await call.function()
        except asyncio.CancelledError as error:
            self._cancel_others()
            call.finish(None, error)
        except BaseException as error:
            call.finish(None, error)
        else:
            call.finish(result)

    def _put(self, call: Call[Awaitable[Any]]) -> None:
        if self._is_over:
            call.finish(None, asyncio.CancelledError())
        else:
            self._calls.put_nowait(call)

    # Threads that the function has started

    def _do_beside(self, thread: int, call: Call[Awaitable[Any]]) -> None:
        """Run such a thread's call in a task of its own."""
        if self._is_cancelled and not self._is_over and thread not in self._notified:
            self._tell(thread, call)
            return
        task = self._loop.create_task(self._finish(call), name="call of a thread of the author's")
        self._others.add(task)
        task.add_done_callback(partial(self._ended, thread, call))

    async def _finish(self, call: Call[Awaitable[Any]]) -> None:
        try:
            result = await call.function()
        except asyncio.CancelledError:
            raise  # `_ended` tells the thread, as it does if the task is cancelled before it begins
        except BaseException as error:
            call.finish(None, error)
        else:
            call.finish(result)

    def _ended(self, thread: int, call: Call[Awaitable[Any]], task: asyncio.Task[None]) -> None:
        self._others.discard(task)
        if task.cancelled():
            self._tell(thread, call)

    def _tell(self, thread: int, call: Call[Awaitable[Any]]) -> None:
        if self._is_cancelled:
            self._notified.add(thread)
        call.finish(None, asyncio.CancelledError())

    @property
    def _is_cancelled(self) -> bool:
        return self._task is not None and self._task.cancelling() > 0

    def _cancel_others(self) -> None:
        for task in self._others:
            task.cancel()

    # In the thread

    def _work(self, function: Callable[[], Any]) -> None:
        _local.thread = self
        try:
            self._outcome = function(), None
        except StopIteration as error:  # no coroutine can raise it
            problem = RuntimeError(f"the function raised {error!r}")
            self._outcome = None, problem.with_traceback(error.__traceback__)
        except BaseException as error:
            self._outcome = None, error
        with suppress(RuntimeError):  # the loop is closed: the program has ended without this thread
            self._loop.call_soon_threadsafe(self._calls.put_nowait, None)

    def wait(self, function: Callable[[], Awaitable[T]], session: str | None = None) -> T:  # noqa: ARG002  # as a Portal
        """Run this in the event loop and wait; returns its result or raises its error."""
        if threading.get_ident() == self._loop_thread:
            raise RuntimeError(
                "this object belongs to a plain function in a thread, and was called in the event loop, which would "
                "wait for itself; write an `async def` handler, whose turn is used with `await`"
            )
        call = Call(function)
        own: AuthorThread | None = getattr(_local, "thread", None)
        if own is None:
            self._post(self._do_beside, threading.get_ident(), call)
        else:
            own._post(own._put, call)
        return cast("T", call.wait())

    def read(self, function: Callable[[], T]) -> T:
        """Call this in the event loop, between two steps of the task; returns its result or raises its error."""
        if threading.get_ident() == self._loop_thread:
            return function()
        call = Call(function)
        self._post(call.call)
        return call.wait()

    do = read

    def _post(self, function: Callable[..., object], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop is closed: the program ends
            raise asyncio.CancelledError from None

    def iterate(self, function: Callable[[], AsyncIterator[T]], session: str | None = None) -> Generator[T]:  # noqa: ARG002
        """Iterate in this thread over an async iterator of the event loop."""
        source = self.read(function)
        try:
            while (item := self.wait(lambda: anext(source, _END))) is not _END:
                yield item
        finally:
            if (close := getattr(source, "aclose", None)) is not None:
                self._post(lambda: asyncio.ensure_future(close()))

    @contextmanager
    def block(
        self, function: Callable[[], AbstractAsyncContextManager[T]], face: Callable[[T], ResultT]
    ) -> Generator[ResultT]:
        """Enter this block in the event loop; yields the face of its value."""
        manager = self.read(function)
        value = face(self.wait(manager.__aenter__))
        try:
            yield value
        except BaseException as error:
            kind, raised, trace = type(error), error, error.__traceback__
            if not self.wait(lambda: manager.__aexit__(kind, raised, trace)):
                raise
        else:
            self.wait(lambda: manager.__aexit__(None, None, None))


def call_plain(function: Callable[..., Any], turn: type[Any]) -> Callable[..., Any]:
    """Return this function as an `async` one, which calls it in a thread with the face of its first argument.

    If that is a `turn`, what the function yields is said.
    """

    @wraps(function)
    async def called(*arguments: Any) -> Any:
        from accord.agent.plain_face import face_of  # few agents have plain functions

        thread = AuthorThread()
        given = tuple(face_of(it, thread) for it in arguments)
        return await thread.run(partial(_call, function, given, turn), f"accord {name_of(function)}")

    called.__annotations__ = {}  # they describe the function, not this wrapper
    return called


def _call(function: Callable[..., Any], given: tuple[Any, ...], turn: type[Any]) -> Any:
    """Call the function in the thread; say what a generator yields, and return what another function returned."""
    result: Any = function(*given)
    if isinstance(result, Iterator) and isinstance(given[0], turn):
        said = cast("Iterator[Any]", result)
        try:
            for part in said:
                given[0].say(part)
        finally:
            if isinstance(said, Generator):
                cast("Generator[Any]", said).close()
        return None
    if isinstance(result, Awaitable | AsyncIterator):
        if isinstance(result, Coroutine):
            result.close()
        returned = shown(cast("object", result))
        raise WrongReturn(
            f"{place_of(function)}, is a plain function, and returned {returned}; write `async def`, or put "
            "@functools.wraps(...) on a function that wraps an `async` one"
        )
    return cast("object", result)


def started(function: Callable[..., T], arguments: tuple[Any, ...]) -> Callable[[], Coroutine[Any, Any, T]]:
    """Start to call this function in a thread, from the event loop."""
    check_callable("start()", function)
    return lambda: AuthorThread().run(partial(function, *arguments), f"accord {name_of(function)}")


def read_in_threads(stream: ModelStream) -> AsyncIterable[Any]:
    """Iterate over these events for the event loop, which must not block on them."""
    return stream if isinstance(stream, AsyncIterable) else _events_of(stream)


async def _events_of(stream: Iterable[Any]) -> AsyncGenerator[Any]:
    ended = object()
    following = in_thread(partial(next, iter(stream), ended))
    try:
        while (event := await following()) is not ended:
            yield event
    finally:
        if (close := getattr(stream, "close", None)) is not None:
            close()


_resources: WeakKeyDictionary[Any, ExitStack] = WeakKeyDictionary()


def resources_of(portal: AuthorThread, held: Session[Any]) -> ExitStack:
    """The resources that are closed when this session is."""

    def find() -> ExitStack:
        if held not in _resources:
            _resources[held] = stack = ExitStack()
            held.resources.push_async_callback(in_thread(stack.close))
        return _resources[held]

    return portal.read(find)


_HELD = "Turn", "Session", "Login", "Hop"
_PLAIN = "accord.agent.plain_turn", "accord.proxy.plain_hop"


def check_annotations(what: str, function: Callable[..., Any]) -> None:
    """Raise TypeError for a function whose annotations name a class that it does not get, such as an `accord.Turn`.

    `what` names the decorator.
    """
    is_plain = not is_async(function)
    for name, annotation in getattr(function, "__annotations__", {}).items():
        _check_annotation(what, function, name, annotation, is_plain=is_plain)


def _check_annotation(
    what: str, function: Callable[..., Any], name: str, annotation: object, *, is_plain: bool
) -> None:
    """Raise TypeError for a plain function annotated with the turn of `async` functions, and the other way round."""
    if isinstance(annotation, str):
        if not any(word in annotation for word in _HELD):
            return
        try:
            annotation = eval(annotation, getattr(function, "__globals__", {}))
        except Exception:  # names local to a function, or for type checkers only
            return
    held = getattr(annotation, "__origin__", annotation)
    if (
        not isinstance(held, type)
        or held.__name__ not in _HELD
        or not held.__module__.startswith(("accord.agent.", "accord.proxy."))
    ):
        return
    if is_plain != (held.__module__ in _PLAIN):
        cls = held.__name__
        kind, holds = ("plain", f"accord.sync.{cls}") if is_plain else ("async", f"accord.{cls}")
        other = f"async def {function.__name__}" if is_plain else f"def {function.__name__}"
        raise TypeError(
            f"{what}: {place_of(function)}, is {'a' if is_plain else 'an'} {kind} function, which gets an {holds}: "
            f"write `{name}: {holds}`, or `{other}(...)`"
        )
