"""Errors for authors about their mistakes: a forgotten `await`, an error of their function, an unknown word.

Forgotten `await`s are detected at no cost for the others. Python itself notices a coroutine that is thrown away before
it has begun, at the line where that happens, and warns with the name of one of our internal functions. While
`agent.run()` has the process, that warning names the author's line and the remedy. Each coroutine could carry its line
itself (`sys.set_coroutine_origin_tracking_depth`), but every correct `await turn.say(...)` would pay.

Arguments are checked where they are passed, so that an error names the argument and the line that passed it. A wrong
type raises TypeError, a wrong value ValueError. Each text has the same form: `turn.say() takes text or a content block,
got int 5`. Only hand-written values are checked; the text of a stream pays nothing more.

An error of an author's function passes through our frames before it reaches the log. They are left out: the traceback
begins with the author's own function and ends with the error.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import inspect

NOT_AWAITED = "is not awaited, so it does nothing"
"""Words that no other line has: clients search for them in an agent's standard error."""
MOST_SHOWN = 5
"""The most forgotten `await`s of one agent that a client shows."""

_WARNING = r"coroutine '(?P<name>.*)' was never awaited"
_OWN = __file__.removesuffix("mistakes.py")


@contextmanager
def forgotten_awaits_are_logged() -> Generator[None]:
    """During this block, log Python's warning about a coroutine that was never awaited as our own line."""
    import linecache  # here and not above: `accord --version` needs none of them
    import logging

    log = logging.getLogger("accord")
    usual = warnings.showwarning

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, *more: Any, **named: Any
    ) -> None:
        found = re.search(_WARNING, str(message)) if issubclass(category, RuntimeWarning) else None
        if found is None:
            usual(message, category, filename, lineno, *more, **named)
            return
        name = found["name"].replace("SessionUpdates.send", "Turn.say")
        # Without a place it was stored in a variable, and thrown away with the author's function.
        place = "" if filename.startswith(_OWN) else f"{filename}, line {lineno}: "
        written = place and _written_call("".join(linecache.getlines(filename)), lineno, name)
        remedy = f"`await {written}`" if written else "`await` before it"
        log.warning("%s%s %s: write %s", place, written or f"a call of {name}", NOT_AWAITED, remedy)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _written_call(source: str, line: int, coroutine: str) -> str:
    """Return the call in this line that made a coroutine with this name; nothing if it is not certain which.

    >>> _written_call("if done: turn.say('x')", 1, "Turn.say"), _written_call("kept = None", 1, "Turn.say")
    ("turn.say('x')", '')
    """
    import ast

    try:
        nodes = [node for node in ast.walk(ast.parse(source)) if getattr(node, "lineno", None) == line]
    except SyntaxError:  # the file has changed
        return ""
    awaited = [node.value for node in nodes if isinstance(node, ast.Await)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and node not in awaited]
    name = coroutine.rpartition(".")[2]
    named = [call for call in calls if name in (getattr(call.func, "attr", ""), getattr(call.func, "id", ""))]
    texts = {" ".join((ast.get_source_segment(source, call) or "").split()) for call in named}
    return texts.pop() if len(texts) == 1 else ""


class ForgottenAwaits:
    """Reads the lines of an agent's standard error, and shows the first few that name a forgotten `await`."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show = show
        self._left = MOST_SHOWN

    def __call__(self, line: str) -> None:
        """Show this line if it names a forgotten `await`."""
        if NOT_AWAITED in line and self._left:
            self._left -= 1
            self._show(f"the agent: {line}")


def error_of_author(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """Return an error for a log's `exc_info`, without our frames; with all of them if none is the author's.

    A function that returned a wrong value has no frame any more. Its error names its place.
    """
    if isinstance(error, WrongReturn):
        return type(error), error, None
    frames: list[tuple[FrameType, int, int]] = []
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OWN):
            frames.append((trace.tb_frame, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    folded: TracebackType | None = None
    for frame, instruction, line in reversed(frames):
        folded = TracebackType(folded, frame, instruction, line)
    return type(error), error, folded or error.__traceback__


def place_of(function: Callable[..., Any]) -> str:
    """Describe an author's function and its place for an error: `reply() in mine.py, line 4`."""
    function = getattr(function, "__wrapped__", function)
    name = getattr(function, "__qualname__", None) or repr(function)
    code = getattr(function, "__code__", None)
    return f"{name}() in {code.co_filename}, line {code.co_firstlineno}" if code is not None else f"{name}()"


_MESSAGE = ("message", "context?")
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "on_prompt": ("turn",),
    "on_session": ("session",),
    "on_rewind": ("session",),
    "on_config": ("session", "option_id", "value"),
    "command": ("turn", "text?"),
    "on_suggest": ("request",),
    "on_suggestion_outcome": ("suggestion", "outcome"),
    "on_document_save": ("document",),
    "on_document_focus": ("document", "offset"),
    "login": ("login?",),
    "terminal_login": (),
    "on_login_check": (),
    "on_logout": (),
    "on_auth_status": (),
    "check": ("endpoint",),
    "on": _MESSAGE,
    "before": _MESSAGE,
    "on_request": ("params", "context?"),
    "on_notification": ("params", "context?"),
    "Permissions": ("question",),
    "Elicitation": ("question",),
}
"""The arguments of the author's functions, by place. An optional one has a question mark."""


def check_handler(what: str, function: Callable[..., Any]) -> None:
    """Raise TypeError for a function that does not take the `ARGUMENTS` of this decorator: `@agent.on(Message)`."""
    import inspect  # with a decorator only, where an agent's program has it loaded

    if not callable(function):
        raise TypeError(f"{what} takes a function, got {type(function).__name__} {function!r:.60}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function in C, whose parameters are unknown
        return
    arguments = ARGUMENTS[what.partition("(")[0].rpartition(".")[2]]
    names = [name.rstrip("?") for name in arguments]
    least = sum(not name.endswith("?") for name in arguments)
    if any(_binds(signature, names[:count]) for count in range(least, len(names) + 1)):
        return
    given = " or ".join(f"({', '.join(names[:count])})" for count in range(least, len(names) + 1))
    raise TypeError(f"{what} calls its function with {given}, and {place_of(function)}, takes {signature}")


def _binds(signature: inspect.Signature, names: list[str]) -> bool:
    try:
        signature.bind(*names)
    except TypeError:
        return False
    return True


class WrongReturn(TypeError):
    """A function of an author returned an invalid value; the text names the function and its line."""


MOST_LISTED = 12
"""Known words that an error lists when none is close."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown word: the known word that is meant, or all of them if they are few.

    >>> nearest("comand", ["command", "url"]), nearest("x", ["command", "url"])
    ('; did you mean command?', '; known are command, url')
    """
    words = list(known)
    return meant(word, words) or (f"; known are {', '.join(words)}" if 0 < len(words) <= MOST_LISTED else "")


def meant(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the known word that is meant, if one is close.

    >>> meant("--modle", ["--mode", "--model"]), meant("--nosuch", ["--schema"])
    ('; did you mean --model?', '')
    """
    import difflib  # errors are rare

    known = {it.lstrip("-"): it for it in known}  # equal dashes are no similarity
    typed = word.lstrip("-")
    close = [it for it in known if sorted(it) == sorted(typed)]  # two letters changed places
    close = close or difflib.get_close_matches(typed, known, n=1, cutoff=0.65)
    return f"; did you mean {known[close[0]]}?" if close else ""


_LONGEST = 60


def shown(value: object) -> str:
    """Return a value with its type, short enough for one line of an error.

    >>> shown(5), shown(None), shown("sure?")
    ('int 5', 'None', "str 'sure?'")
    """
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{type(value).__name__} {shortened(repr(value))}"


def wrong_type(call: str, takes: str, value: object, hint: str = "") -> TypeError:
    """Return the error for a value of a wrong type.

    >>> str(wrong_type("turn.say()", "text or a content block", 5))
    'turn.say() takes text or a content block, got int 5'
    """
    return TypeError(f"{call} takes {takes}, got {shown(value)}{hint and f'; {hint}'}")


def check_text(call: str, value: object) -> None:
    """Raise TypeError unless this is text."""
    if not isinstance(value, str):
        raise wrong_type(call, "text", value)


def check_path(name: str, value: object) -> None:
    """Raise TypeError for anything but text or a Path."""
    from pathlib import Path  # every command uses this module, and many need no paths

    if not isinstance(value, str | Path):
        raise wrong_type(name, "a path, as text or a Path", value)


def check_sequence(name: str, of: str, value: object) -> None:
    """Raise TypeError unless this is a collection of values; a single text, a collection of letters, is refused too."""
    if isinstance(value, str | bytes) or not isinstance(value, Collection):
        raise wrong_type(name, f"a list of {of}", value, f"write [{value!r}]" if isinstance(value, str) else "")


def check_callable(call: str, value: object) -> None:
    """Raise TypeError for an object that cannot be called, such as a function's result instead of the function."""
    if not callable(value):
        raise wrong_type(call, "a function", value)


def check_word(name: str, value: object, allowed: Iterable[str]) -> None:
    """Raise ValueError for a word that is not allowed, with the one that may have been meant.

    >>> check_word("remember", "sesion", ["session", "agent"])
    Traceback (most recent call last):
    ValueError: remember must be one of session, agent, got 'sesion'; did you mean session?
    """
    words = list(allowed)
    if not isinstance(value, str):
        raise wrong_type(name, f"one of {', '.join(words)}", value)
    if value not in words:
        raise ValueError(f"{name} must be one of {', '.join(words)}, got {shortened(repr(value))}{meant(value, words)}")


def check_extensible_word(name: str, value: object, allowed: Collection[str]) -> None:
    """Like `check_word`, for a word of which programs may have their own, which begin with an underscore."""
    if value not in allowed and not (isinstance(value, str) and value.startswith("_")):
        check_word(name, value, allowed)


def shortened(text: str) -> str:
    """A text for one line of an error or a `repr`."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def registered_once(what: str, before: Callable[..., Any] | None, function: Callable[..., Any]) -> None:
    """Raise ValueError for a second function where only one is allowed, and TypeError for one that does not fit.

    >>> registered_once("@agent.on_prompt", None, lambda: None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: @agent.on_prompt calls its function with (turn), and <lambda>() in ..., line 1, takes ()
    """
    check_handler(what, function)
    if before is not None and function not in (before, getattr(before, "__wrapped__", None)):
        raise ValueError(
            f"{what} was used twice: {place_of(before)}, is registered already; {place_of(function)}, would replace it"
        )
