"""The work of a test as an author's `async` function, and the same work as a plain function, word for word.

`as_plain(work)` is a plain function: it has a plain turn, and runs the coroutine of `work` by hand. What `work` awaits
are the plain turn's calls, which have returned already. So `work` may await the turn's calls, and nothing else.
"""

from __future__ import annotations

import pytest

from accord.agent.plain_face import Face

ONLY_ASYNC = pytest.mark.parametrize("author_kind", ["async"], indirect=True)
"""Marks a test of the low level, of timing within one step of the event loop, or of what is outside of a turn."""

_kind = ["async"]


@pytest.fixture(params=["async", "plain"], autouse=True)
def author_kind(request):
    """The kind of the authors' functions; a module that imports this runs its tests with both."""
    _kind[0] = request.param
    yield request.param
    _kind[0] = "async"


def of_kind(work):
    """The work as a function of the test's kind."""
    return as_plain(work) if _kind[0] == "plain" else work


def as_plain(work):
    """A plain function that does the same as this `async` one."""

    def function(*given):
        coroutine = work(*map(_called, given))
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value
        coroutine.close()
        raise AssertionError("this work awaits something else than a call of its turn")

    return function


def _called(value):
    return (
        Called(value) if isinstance(value, Face) or hasattr(value, "__enter__") or hasattr(value, "__next__") else value
    )


def _plain(value):
    return value._value if isinstance(value, Called) else value


class Called:
    """What a plain call has returned, for code that awaits it, enters it or iterates over it."""

    def __init__(self, value):
        self.__dict__["_value"] = value

    def __getattr__(self, name):
        member = getattr(self._value, name)
        if not callable(member):
            return _called(member)
        return lambda *given, **named: Called(member(*map(_plain, given), **{k: _plain(it) for k, it in named.items()}))

    def __setattr__(self, name, value):
        setattr(self._value, name, _plain(value))

    def __await__(self):
        return _called(self._value)
        yield

    async def __aenter__(self):
        return _called(self._value.__enter__())

    async def __aexit__(self, *error):
        return self._value.__exit__(*error)

    def __aiter__(self):
        self.__dict__["_items"] = iter(self._value)
        return self

    async def __anext__(self):
        try:
            return _called(next(self._items))
        except StopIteration:
            raise StopAsyncIteration from None

    def __iter__(self):
        return map(_called, self._value)

    def __len__(self):
        return len(self._value)

    def __contains__(self, item):
        return _plain(item) in self._value

    def __getitem__(self, key):
        return _called(self._value[key])

    def __bool__(self):
        return bool(self._value)

    def __eq__(self, other):
        return self._value == _plain(other)

    def __hash__(self):
        return hash(self._value)

    def __str__(self):
        return str(self._value)
