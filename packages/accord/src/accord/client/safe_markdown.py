"""Markdown of an agent made safe for a page, such as a notebook: no raw HTML, and no image that loads by itself. PURE.

A notebook shows Markdown as a page. Raw HTML in it could run scripts or imitate the notebook, and an image would be
fetched at once from an address that the agent chose, with whatever it put into the address. So `<` before a tag, and
`!` before an image, become character references, except in code.

What is code? If this module and the notebook disagreed, text that is code here would be HTML there. So the result has
no mark of code that this module did not write: fences are written again, longer than any run of their character in the
code, and with the same indentation on every line; a span of code is one pair of single backticks on a line; every other
backtick, and every other run of `~`, becomes character references.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = re.compile(r"(?P<indent> {0,3})(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<language>[\w+#.-]*).*")
SPAN = re.compile(r"(?<![\\`])`([^`|\\$]+)`(?!`)")
TAG = re.compile(r"<(?=[A-Za-z/!?])")
QUOTE = "> "


def safe(markdown: str) -> str:
    """The same Markdown without raw HTML and images.

    >>> safe("Use `List<int>`, <b>not</b> ![x](https://example.org/?secret)")
    'Use `List<int>`, &lt;b>not&lt;/b> &#33;[x](https://example.org/?secret)'
    """
    return "\n".join(_lines(_separated(markdown)))


def _separated(markdown: str) -> list[str]:
    """The lines, by every character that a renderer may take for the end of one."""
    return re.split(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", markdown)


def _lines(lines: list[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        quote, line = _quoted(lines[at])
        at += 1
        match = FENCE.fullmatch(line)
        if match is None:
            yield quote + _prose(line)
            continue
        code: list[str] = []
        closing = re.compile(rf" {{0,3}}{match['fence'][0]}{{{len(match['fence'])},}}[ \t]*")
        while at < len(lines):
            its_quote, line = _quoted(lines[at])
            if its_quote != quote:
                break
            at += 1
            if closing.fullmatch(line):
                break
            code.append(line)
        yield from (quote + match["indent"] + line for line in _fenced(code, match))


def _quoted(line: str) -> tuple[str, str]:
    """The mark of a quotation, if the line is in one, and the rest."""
    if line.startswith(QUOTE):
        return QUOTE, line[len(QUOTE) :]
    return (QUOTE, "") if line == QUOTE.rstrip() else ("", line)


def _fenced(code: list[str], opening: re.Match[str]) -> Iterator[str]:
    longest = max((len(run) for line in code for run in re.findall("`{3,}", line)), default=2)
    fence = "`" * (longest + 1)
    yield fence + opening["language"]
    for line in code:
        yield line.removeprefix(opening["indent"])
    yield fence


def _prose(line: str) -> str:
    """A line outside of fences: spans of code stay, marks of code and of HTML elsewhere become references."""
    parts: list[str] = []
    end = 0
    for span in SPAN.finditer(line):
        parts += [_text(line[end : span.start()]), span[0]]
        end = span.end()
    return "".join([*parts, _text(line[end:])])


def _text(text: str) -> str:
    text = TAG.sub("&lt;", text).replace("`", "&#96;").replace("![", "&#33;[")
    return re.sub("~{3,}", lambda run: "&#126;" * len(run[0]), text)
