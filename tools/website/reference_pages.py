"""A page for each public name, with its example, and a page for each topic. The texts are those of docs/reference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from tools import reference
from tools.reference import Public, Topic
from tools.website.links import outside_of_code
from tools.website.name_examples import Example, examples_of_names
from tools.website.page import Page

HEADING = re.compile(r"^#(#+ )", re.MULTILINE)

NO_EXAMPLE = "There is no example of this name yet."


def reference_pages() -> Iterator[Page]:
    names = list(reference.public_names())
    examples = examples_of_names([it.name for it in names])
    yield Page("reference/index.md", index(names))
    for topic in reference.TOPICS:
        own = [it for it in names if reference.topic_of(it) is topic]
        yield Page(f"reference/{topic.file}.md", topic_page(topic, own))
        for public in own:
            yield Page(f"reference/{file_of(public.name)}", name_page(public, examples))


@cache
def file_of(name: str) -> str:
    """The page of a name. `Chain` beside `chain` gets another file name: some file systems cannot tell them apart."""
    twins = [it.name for it in reference.public_names() if it.name.lower() == name.lower()]
    return f"{name}.md" if name == max(twins) else f"{name}-class.md"


def index(names: list[Public]) -> str:
    """The list of all names, by topic."""
    lines = ["# API reference", "", "Every public name of Accord, by topic. Each has a page.", ""]
    for topic in reference.TOPICS:
        own = [it for it in names if reference.topic_of(it) is topic]
        lines += [f"## [{topic.title}]({topic.file}.md)", "", topic.about, "", *rows(own), ""]
    return "\n".join([*lines, "## The types of the protocol", "", reference.SCHEMA])


def topic_page(topic: Topic, names: list[Public]) -> str:
    """A topic: each name under a heading with the anchor that docs/reference gives it."""
    lines = [f"# {topic.title}", "", topic.about, ""]
    for it in names:
        lines += [f"## `{it.name}`", "", f"{reference.first_line(it)} [Signature and example]({file_of(it.name)}).", ""]
    return "\n".join(lines)


def rows(names: list[Public]) -> Iterator[str]:
    yield from ("| name | |", "|---|---|")
    for it in names:
        yield f"| [`{it.name}`]({file_of(it.name)}) | {reference.cell(reference.first_line(it))} |"


def name_page(public: Public, examples: Mapping[str, Example]) -> str:
    """What docs/reference says of a name, as a page of its own, with an example below what the name is."""
    text = outside_of_code(reference.entry(public), lambda it: HEADING.sub(r"\1", it))
    example = examples.get(public.name)
    shown = example.text() if example else NO_EXAMPLE
    topic = reference.topic_of(public)
    head, separator, members = split_members(text)
    end = f"Topic: [{topic.title}]({topic.file}.md)."
    parts = [head.rstrip(), "## Example", shown, separator, members.rstrip(), end]
    return "\n\n".join(it for it in parts if it) + "\n"


def split_members(text: str) -> tuple[str, str, str]:
    """What the name is, and its members: their table, or the first method."""
    found = re.search(r"^(?:\| attribute \||## )", text, re.MULTILINE)
    return (text[: found.start()], "## Members", text[found.start() :]) if found else (text, "", "")
