"""Values of version 2 as the classes of version 1 in which a session's state shows them. PURE.

A state has one set of classes, so that a program reads it in the same way in both versions. The classes of content,
of plans and of places differ between the versions only in which words they allow. So a value moves field by field, and
a word that version 1 lacks stays as it came. Nothing is lost:

- a link with icons is a `LinkWithIcons`, which is a `v1.ResourceLink` with one field more;
- a diff stays a `v2.Diff`: version 1 needs the whole texts of the file, which a patch rarely has;
- an unknown variant stays the `Unknown` that it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from accord.schema import codec, v1, v2
from accord.schema.base import Tolerant, ValidItems


class LinkWithIcons(v1.ResourceLink, tag_field="type", tag="resource_link"):
    """A link of version 2 that has icons."""

    icons: Tolerant[ValidItems[v2.Icon] | None] = None


_SAME_FIELDS: tuple[tuple[type, type], ...] = (
    (v2.Annotations, v1.Annotations),
    (v2.TextContent, v1.TextContent),
    (v2.ImageContent, v1.ImageContent),
    (v2.AudioContent, v1.AudioContent),
    (v2.TextResourceContents, v1.TextResourceContents),
    (v2.BlobResourceContents, v1.BlobResourceContents),
    (v2.EmbeddedResource, v1.EmbeddedResource),
    (v2.Content, v1.Content),
    (v2.ToolCallLocation, v1.ToolCallLocation),
    (v2.PlanEntry, v1.PlanEntry),
    (v2.PlanItems, v1.PlanItems),
    (v2.RunningStateUpdate, v1.RunningStateUpdate),
    (v2.RequiresActionStateUpdate, v1.RequiresActionStateUpdate),
    (v2.UnknownStateUpdate, v1.UnknownStateUpdate),
    (v2.IdleStateUpdate, v1.IdleStateUpdate),
)


def _by_fields(target: Any) -> Callable[[Any], Any]:
    names = target.__struct_fields__
    return lambda value: target(**{name: shown(getattr(value, name)) for name in names})


def _link(value: v2.ResourceLink) -> v1.ResourceLink:
    link: v1.ResourceLink = _with_icons(value) if value.icons is not None else _without_icons(value)
    return link


def _error(value: v2.Error) -> v1.Error:
    return v1.Error(value.code, value.message, codec.plain(value.data))


def _text(value: v2.TextContent) -> v1.TextContent:
    return v1.TextContent(value.text, None if value.annotations is None else shown(value.annotations), meta=value.meta)


_without_icons, _with_icons = _by_fields(v1.ResourceLink), _by_fields(LinkWithIcons)
_SHOWN: dict[type, Callable[[Any], Any]] = {
    **{source: _by_fields(target) for source, target in _SAME_FIELDS},
    list: lambda values: [shown(value) for value in values],
    v2.TextContent: _text,
    v2.ResourceLink: _link,
    v2.Error: _error,
}


def shown(value: Any) -> Any:
    """This value as the state shows it; a value that has no other class in version 1 stays the same."""
    show = _SHOWN.get(value.__class__)
    return value if show is None else show(value)


def shown_blocks(blocks: Iterable[Any] | None) -> Sequence[v1.ContentBlock]:
    """These blocks as the state shows them; None clears, like an empty list."""
    return [] if blocks is None else [shown(block) for block in blocks]
