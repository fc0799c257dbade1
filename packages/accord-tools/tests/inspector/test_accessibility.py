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


@pytest.fixture(params=WIDTHS)
def audit_of(request, script):
    """Return the audit of a page in one width."""
    return lambda page: Audit(page, script, request.param)


class Audit:
    """Runs axe in a page of this width, and keeps what it finds by theme and view."""

    def __init__(self, page, script, width):
        self.page, self.width, self.found = page, width, {}
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        page.until(f"innerWidth === {width}")
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

    def look_in_dialog(self, dialog, key, *, control=False):
        """Look at a dialog that a key opens, and close it: a key before it is closed would be its own."""
        is_open = f"document.querySelector('#{dialog}').open"
        self.page.press(key, control=control)
        self.page.until(is_open)
        self.look(dialog)
        self.page.press("Escape")
        self.page.until(f"!{is_open}")

    def themes(self):
        """Both themes, one after the other."""
        for theme in ("light", "dark"):
            self.page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            yield theme


def test_axe_finds_nothing_in_any_view(show, everything, audit_of):
    page = show(everything.path)
    audit = audit_of(page)
    for theme in audit.themes():
        audit.look(theme, "overview")
    page.press("G")
    for theme in audit.themes():
        for key, is_drawn in VIEWS.items():
            page.press(key)
            page.until(is_drawn)
            audit.look(theme, f"view {key}")
    page.evaluate("document.body.classList.remove('no-detail')")
    for form in "wur":
        page.press(form)
        audit.look(form)
    audit.look_in_dialog("help", "?")
    audit.look_in_dialog("palette", "k", control=True)
    assert audit.found == {}


def test_axe_finds_nothing_in_the_form_that_sends(show, audit_of):
    page = show(*AGENT)
    has(page, "session/new", ".send")
    audit = audit_of(page)
    for theme in audit.themes():
        audit.look(theme, "send")
    assert audit.found == {}
