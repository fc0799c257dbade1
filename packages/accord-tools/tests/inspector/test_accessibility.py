"""axe-core finds nothing in the inspector's page: each view, on a phone, a tablet and a screen, light and dark."""

import pytest
from tools.website.accessibility import Unavailable, axe

from tests.inspector.test_page import has
from tests.inspector.test_started_agent import AGENT

WIDTHS = (390, 800, 1280)
VIEWS = {
    "1": "document.querySelector('.item.end')",
    "2": "document.querySelectorAll('.shares i').length >= 8",
    "3": "document.querySelector('.arrow-row')",
    "4": "document.querySelector('.message')",
    "5": "document.querySelector('.compare')",
    "6": "document.querySelector('.latencies td')",
}
"""The keys of the views, and what holds when each is drawn."""


@pytest.fixture(scope="module")
def script():
    try:
        return axe().read_text()
    except Unavailable as missing:
        pytest.skip(f"axe-core is not here: {missing}")


@pytest.fixture
def everything(recording):
    """A trace with all that the page draws: Markdown, a lent command, a plan, permissions, an error, findings."""
    recording.opening()
    recording.turn(2)
    recording.prompt(3, "Test it")
    recording.says("s1", "# Title\n\n| name | cost |\n|---|--:|\n| `a` | 1 |\n\n> said\n\n```py\nx = 1\n```\n")
    recording.request("in", 7, "terminal/create", {"sessionId": "s1", "command": "make"})
    recording.answer("out", 7, {"terminalId": "t1"})
    shown = [{"type": "terminal", "terminalId": "t1"}]
    recording.update("s1", "tool_call", toolCallId="run", title="Run", kind="execute", status="pending", content=shown)
    recording.request("in", 8, "terminal/output", {"sessionId": "s1", "terminalId": "t1"})
    ended = {"exitCode": 2, "signal": None}
    recording.answer("out", 8, {"output": "1 failed\n", "truncated": False, "exitStatus": ended})
    steps = [("Look", "completed"), ("Repair", "in_progress"), ("Test", "pending")]
    entries = [{"content": content, "priority": "high", "status": status} for content, status in steps]
    recording.update("s1", "plan", entries=entries)
    recording.error("in", 3, -32603, "no model")
    recording.request("in", 9, "fs/read_text_file", {"sessionId": "s1", "path": "notes.md"})
    recording.turn(4)
    return recording


class Audit:
    """Runs axe in a page, and keeps what it finds by width, theme and view."""

    def __init__(self, page, script):
        self.page, self.found = page, {}
        page.evaluate(f"{script}; 0")

    def look(self, *where):
        """Run axe; in the dark theme, which differs in its colours alone, only what judges colours."""
        options = {"runOnly": ["color-contrast"]} if "dark" in where else {}
        rules = self.page.evaluate(
            f"axe.run({options})"
            ".then((it) => it.violations.map(({ id, nodes }) => `${id}: ${nodes.map((it) => it.target)}`))"
        )
        if rules:
            self.found[where] = rules

    def everywhere(self):
        """Each width and theme, one after the other."""
        for width in WIDTHS:
            self.page.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
            )
            self.page.until(f"innerWidth === {width}")
            for theme in ("light", "dark"):
                self.page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
                yield width, theme


def test_axe_finds_nothing_in_any_view(show, everything, script):
    page = show(everything.path)
    audit = Audit(page, script)
    for place in audit.everywhere():
        audit.look(*place, "overview")
    page.press("G")
    for place in audit.everywhere():
        for key, is_drawn in VIEWS.items():
            page.press(key)
            page.until(is_drawn)
            audit.look(*place, f"view {key}")
        if place not in ((390, "light"), (1280, "dark")):
            continue
        page.evaluate("document.body.classList.remove('no-detail')")
        for form in "wur":
            page.press(form)
            audit.look(*place, form)
        page.press("?")
        audit.look(*place, "help")
        page.press("Escape")
        page.press("k", control=True)
        audit.look(*place, "palette")
        page.press("Escape")
        page.evaluate("document.body.classList.toggle('no-detail', innerWidth < 720)")
    assert audit.found == {}


def test_axe_finds_nothing_in_the_form_that_sends(show, script):
    page = show(*AGENT)
    has(page, "session/new", ".send")
    audit = Audit(page, script)
    for place in audit.everywhere():
        audit.look(*place, "send")
    assert audit.found == {}
