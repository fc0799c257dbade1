"""Text of the inspector's page can be read: WCAG 2 asks for a contrast of 4.5 between text and what is behind it."""

import re

import pytest

from accord_tools.inspector.inspector_app import static_file

TEXTS = ["text", "quiet", "faint", "model", "thought", "tool", "client", "user", "error", "ok"]


def colours(theme):
    """The colours of a theme by their names."""
    found = static_file("style.css")
    assert found is not None
    block = found[0].decode().split("color-scheme: " + theme)[1].split("}")[0]
    return dict(re.findall(r"--([a-z]+): #([0-9a-f]{6})", block))


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_of_text_stands_out(theme):
    named = colours(theme)
    pairs = [(text, "back") for text in TEXTS] + [(text, it) for text in TEXTS[:3] for it in ("raised", "chosen")]
    weak = {pair: contrast(named[pair[0]], named[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}
