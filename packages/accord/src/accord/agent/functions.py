"""The types of the functions that an author registers with an `Agent`: type checkers compare functions with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from accord.agent.login import Login
from accord.agent.suggestions.functions import FocusedFunction, OutcomeFunction, SavedFunction, SuggestFunction
from accord.agent.turn import Turn
from accord.schema import v1

Said: TypeAlias = "str | v1.ContentBlock"
"""What a generator may yield: the agent says it."""

PromptResult: TypeAlias = "str | Awaitable[str | None] | AsyncIterator[Said] | Iterator[Said] | None"
"""What a function for prompts may return: nothing, a stop reason, or an iterator of what to say."""

AuthAnswer: TypeAlias = "str | Sequence[v1.AuthAccount] | v1.AuthStatusResponse | None"
"""What a function for `auth/status` may return: a state, the accounts of the user, the whole answer, or nothing."""

ResultT = TypeVar("ResultT")
PromptResultT = TypeVar("PromptResultT", bound=PromptResult)
LoginT = TypeVar("LoginT", bound="Callable[[], object] | Callable[[Login], object]")
LoginCheckT = TypeVar("LoginCheckT", bound="Callable[[], bool | Awaitable[bool]]")
AuthStatusT = TypeVar("AuthStatusT", bound="Callable[[], AuthAnswer | Awaitable[AuthAnswer]]")
LogoutT = TypeVar("LogoutT", bound="Callable[[], object]")

CommandFunction: TypeAlias = "Callable[[Turn], PromptResult] | Callable[[Turn, str], PromptResult]"
"""Takes the turn and, if it wants it, the text after the command's name."""

CommandT = TypeVar("CommandT", bound=CommandFunction)

SuggestFunctionT = TypeVar("SuggestFunctionT", bound=SuggestFunction)
OutcomeFunctionT = TypeVar("OutcomeFunctionT", bound=OutcomeFunction)
SavedFunctionT = TypeVar("SavedFunctionT", bound=SavedFunction)
FocusedFunctionT = TypeVar("FocusedFunctionT", bound=FocusedFunction)
