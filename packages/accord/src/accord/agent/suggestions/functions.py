"""What an author registers for suggestions, and what the agent declares because of it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import msgspec

from accord.arguments import registered_once, wrong_type
from accord.documents.positions import chosen
from accord.schema import v1
from accord.schema.v1 import NesContextCapabilities

if TYPE_CHECKING:
    from accord.agent.suggestions.mirror import MirroredDocument
    from accord.agent.suggestions.request import SuggestionRequest

Wish = Literal["recent_files", "related_snippets", "edit_history", "user_actions", "open_files", "diagnostics"]
"""What a client may send along with a request for suggestions."""

WISHES: tuple[str, ...] = get_args(Wish)
_COUNTED = ("recent_files", "edit_history", "user_actions")
"""The wishes that may say how many."""

Suggested: TypeAlias = "Sequence[v1.NesSuggestion | None] | None"
"""What a function for suggestions returns: suggestions, the best first; None among them is skipped."""

SuggestFunction: TypeAlias = "Callable[[SuggestionRequest], Suggested | Awaitable[Suggested]]"
OutcomeFunction: TypeAlias = "Callable[[v1.NesSuggestion, str], object]"
SavedFunction: TypeAlias = "Callable[[MirroredDocument], object]"
FocusedFunction: TypeAlias = "Callable[[MirroredDocument, int], object]"


class SuggestionFunctions(msgspec.Struct):
    """The functions of an author for suggestions; nothing is declared without the first."""

    suggest: Callable[..., Any] | None = None
    wishes: dict[str, int | None] = {}
    """What the client is asked to send along, and how many of each at most."""
    outcome: Callable[..., Any] | None = None
    """Gets a suggestion and what became of it."""
    saved: Callable[..., Any] | None = None
    focused: Callable[..., Any] | None = None

    def register(self, function: Callable[..., Any], context: Collection[str] | Mapping[str, int | None]) -> None:
        """Register the function that suggests; raises for a second one, and for an unknown wish."""
        registered_once("@agent.on_suggest", self.suggest, function)
        self.wishes = checked_wishes(context)
        self.suggest = function

    def declared(self, capabilities: v1.AgentCapabilities, client: v1.ClientCapabilities) -> v1.AgentCapabilities:
        """These capabilities with suggestions, and the position encoding for this client."""
        if self.suggest is None:
            return capabilities
        # next-edit-suggestions: the agent chooses one of the encodings that the client offers; without one, utf-16.
        encoding = chosen(client.position_encodings or ())
        return msgspec.structs.replace(capabilities, nes=self._capabilities(), position_encoding=encoding)

    def _capabilities(self) -> v1.NesCapabilities:
        documents = v1.NesDocumentEventCapabilities(
            did_open=v1.NesDocumentDidOpenCapabilities(),
            did_change=v1.NesDocumentDidChangeCapabilities("incremental"),
            did_close=v1.NesDocumentDidCloseCapabilities(),
            did_save=None if self.saved is None else v1.NesDocumentDidSaveCapabilities(),
            did_focus=None if self.focused is None else v1.NesDocumentDidFocusCapabilities(),
        )
        events = v1.NesEventCapabilities(documents)
        return v1.NesCapabilities(events, _context(self.wishes) if self.wishes else None)


def checked_wishes(context: Collection[str] | Mapping[str, int | None]) -> dict[str, int | None]:
    """The wishes by name, each with how many are wanted at most; raises TypeError or ValueError."""
    if isinstance(context, str):
        raise wrong_type(
            "@agent.on_suggest(context=...)", "a sequence of names, or a dict from names to counts", context
        )
    counted = cast("Mapping[str, int | None]", context) if isinstance(context, Mapping) else dict.fromkeys(context)
    wishes = dict(counted)
    for name, most in wishes.items():
        if name not in WISHES:
            raise ValueError(f"context must be of {', '.join(WISHES)}; got {name!r}")
        if most is not None and (name not in _COUNTED or type(most) is not int or most < 1):
            raise ValueError(
                f"a count in context is a number from 1 on, for {', '.join(_COUNTED)}; got {name}={most!r}"
            )
    return wishes


def _context(wishes: Mapping[str, int | None]) -> v1.NesContextCapabilities:
    made: dict[str, Any] = {}
    for field in msgspec.structs.fields(NesContextCapabilities):
        if field.name in wishes:
            cls = _CAPABILITIES[field.name]
            most = wishes[field.name]
            made[field.name] = cls() if most is None else cls(max_count=most)
    return v1.NesContextCapabilities(**made)


_CAPABILITIES: dict[str, Any] = {
    "recent_files": v1.NesRecentFilesCapabilities,
    "related_snippets": v1.NesRelatedSnippetsCapabilities,
    "edit_history": v1.NesEditHistoryCapabilities,
    "user_actions": v1.NesUserActionsCapabilities,
    "open_files": v1.NesOpenFilesCapabilities,
    "diagnostics": v1.NesDiagnosticsCapabilities,
}


async def finished(result: Any) -> Any:
    """What an author's function returned, once it is there."""
    return await result if inspect.isawaitable(result) else result
