"""What a turn has used, in words: tokens, the context, and the cost. PURE."""

from __future__ import annotations

from collections.abc import Iterator

from accord.cli.work import Line, Span
from accord.printable import label
from accord.schema import v1


def usage_lines(turn: v1.Usage | None, context: v1.UsageUpdate | None) -> Iterator[Line]:
    """One line for what the agent has reported; none if it has reported nothing.

    >>> [line.text for line in usage_lines(v1.Usage(1200, 1000, 200), v1.UsageUpdate(50, 200))]
    ['1,200 tokens (1,000 in, 200 out), context 25% full (50 of 200)']
    """
    texts: list[str] = []
    if turn is not None:
        texts.append(f"{turn.total_tokens:,} tokens ({turn.input_tokens:,} in, {turn.output_tokens:,} out)")
    if context is not None and context.size:
        full = round(100 * context.used / context.size)
        texts.append(f"context {full}% full ({context.used:,} of {context.size:,})")
    if context is not None and context.cost is not None:
        texts.append(f"{context.cost.amount:.4g} {label(context.cost.currency, 8)}")
    if texts:
        yield Line([Span(", ".join(texts), "dim")])
