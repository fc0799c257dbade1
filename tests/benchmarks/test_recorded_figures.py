"""The chart and the tables of the documentation show what was recorded last."""

import re
from pathlib import Path

import pytest
from benchmarks.chart import recorded
from benchmarks.record import RECORDED, load

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = load(RECORDED)
RATIOS = {result.key: result.ratio for result in RESULTS}
PEERS = ("python", "typescript", "go", "rust", "floor")
MEASURES = {
    "updates a second": "stream",
    "tool calls": "tools",
    "sequential round trips": "read",
    "round trips, one after another": "read",
    "100 in flight": "conc",
    "round trips, 100 in flight": "conc",
    "10 MB both ways": "big",
    "spawn to initialized": "start",
    "import": "import",
    "memory of 1,000 sessions": "memory",
}


def test_the_chart_shows_the_recorded_results():
    assert (DOCS / "performance.svg").read_text() == recorded(RESULTS), (
        "run: python -m benchmarks.chart docs/performance.svg"
    )


def rows(page, heading):
    """The cells of each row that begins with a measure, or continues one for another loop."""
    name = ""
    section = (DOCS / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = re.sub(r" with diffs| \(`\w+`\)", "", cells[0]) or name
        if line.startswith("|") and name in MEASURES:
            yield MEASURES[name], cells


@pytest.mark.parametrize(
    ("page", "heading", "first", "figures"),
    [("performance.md", "Over stdio", 2, 68)],
)
def test_a_table_has_the_recorded_ratios(page, heading, first, figures):
    found = 0
    for measure, cells in rows(page, heading):
        loop = "uvloop" if cells[1] == "uvloop" else "asyncio"
        for peer, cell in zip(PEERS, cells[first:], strict=False):
            if re.fullmatch(r"[\d.]+", cell):
                digits = len(cell.partition(".")[2])
                assert float(cell) == pytest.approx(RATIOS[measure, peer, loop], abs=0.51 * 10**-digits), cells
                found += 1
    assert found == figures
