"""What a notebook shows of sessions and outcomes, and that an agent cannot put HTML or images there."""

import random

import pytest
from markdown_it import MarkdownIt

import accord
from accord.client.markdown import safe

PARTS = [
    *(
        "```",
        "~~~",
        "````",
        "`",
        "``",
        "\n",
        "\n",
        "\n\n",
        " ",
        "   ",
        "    ",
        "\t",
        "- ",
        "1. ",
        "> ",
        ">",
        "#",
        "---\n",
    ),
    *("<b>", "<script>", "<!--", "</i>", "<?", "<!D>", "<http://a>", "![a](u)", "![", "](u)", "[a]: <", "&lt;"),
    *("x", "py", "|", "\\", "$", "*", "| a | b |\n|---|---|\n"),
]
RENDERERS = [MarkdownIt("commonmark"), MarkdownIt("gfm-like", {"linkify": False, "html": True})]
DANGEROUS = {"html_inline", "html_block", "image"}


def kinds(markdown):
    """The kinds of everything that the renderers find."""
    found = set()
    for renderer in RENDERERS:
        waiting = renderer.parse(markdown)
        while waiting:
            token = waiting.pop()
            found.add(token.type)
            waiting += token.children or []
    return found


def random_markdown(seed):
    generator = random.Random(seed)
    return "".join(generator.choice(PARTS) for _ in range(generator.randint(1, 40)))


def test_no_markdown_of_an_agent_becomes_html_or_an_image_in_a_notebook(pytestconfig):
    texts = [random_markdown(seed) for seed in range(pytestconfig.option.seeds or 2000)]
    assert any(kinds(text) & DANGEROUS for text in texts), "the texts try nothing"
    for seed, text in enumerate(texts):
        assert not kinds(safe(text)) & DANGEROUS, (seed, text, safe(text))


@pytest.mark.parametrize(
    "markdown",
    [
        "Plain *words* and **bold**, a [link](https://example.org), 1 < 2 & a<2",
        "Use `List<int>` here",
        "```python\nif a < b: print('<b>')\n```",
        "- item\n  ```html\n  <b>\n  ```\n- next",
        "> ```\n> <b>\n> ```",
        "| a | b |\n|---|---|\n| 1 | 2 |",
    ],
)
def test_ordinary_markdown_stays_as_it_is(markdown):
    assert safe(markdown) == markdown


@pytest.fixture
async def session():
    agent = accord.Agent("artist")

    @agent.on_prompt
    async def draw(turn):
        async with turn.tool("Look <img src=x>", kind="read") as tool:
            await tool.diff("a.html", "<b>", "<i>")
        await turn.say("**Done** <script>alert(1)</script> ![x](https://example.org/?secret)")

    async with accord.connect(agent) as remote:
        yield await remote.new_session("/")


async def test_a_notebook_shows_a_session_as_markdown_without_html(session):
    await session.prompt("Draw")
    shown = session._repr_markdown_()
    assert "**You:** Draw" in shown
    assert "**Done** &lt;script>" in shown
    assert "+<i>" in shown
    assert not kinds(shown) & DANGEROUS
    assert "<script>" in session.markdown()


async def test_a_notebook_shows_an_outcome_as_markdown_without_html(session):
    outcome = await session.prompt("Draw")
    shown = outcome._repr_markdown_()
    assert shown.index("Look") < shown.index("**Done**")
    assert not kinds(shown) & DANGEROUS


async def test_a_notebook_shows_why_a_turn_ended_early():
    agent = accord.Agent("short")
    agent.on_prompt(lambda _: "max_tokens")
    async with accord.connect(agent) as remote:
        outcome = await (await remote.new_session("/")).prompt("x")
    assert "max" in outcome._repr_markdown_()
