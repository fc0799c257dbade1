"""The table and the chart."""

import math
from xml.etree import ElementTree as ET

import pytest
from benchmarks.chart import Scale, chart, times
from benchmarks.report import columns, figure, table

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("value", "text"), [(601_234.5, "601,234"), (99.94, "99.9"), (0.0471, "0.0471"), (5, "5"), (150, "150")]
)
def test_a_figure_has_three_digits_or_all_before_the_point(value, text):
    assert figure(value) == text


def test_columns_are_as_wide_as_their_widest_cell():
    assert columns([["a", "bbb"], ["cc", "d"]], [0]) == ["a   bbb", "cc    d"]


def test_the_table_has_a_row_for_each_result(result):
    lines = table([result(), result(peer="typescript", ratio=12.3456, spread=0.051)]).splitlines()
    assert lines[0].split() == ["measure", "peer", "loop", "ours", "theirs", "unit", "ratio", "spread", "runs"]
    assert set(lines[1]) == {"-"}
    assert lines[3].split() == [
        "stream",
        "typescript",
        "asyncio",
        "400,000",
        "100,000",
        "updates/s",
        "12.35x",
        "±5%",
        "5",
    ]


def test_the_columns_of_the_table_line_up(result):
    lines = table([result(), result(measure="memory", unit="MiB/1,000 sessions", ours=1.5)]).splitlines()
    assert len({line.rstrip().rfind("5") for line in lines[2:]}) == 1


def test_latencies_stand_below_the_table(result):
    text = table([result(measure="read", p50us=(31.25, 90.0), p99us=(1500.0, 2000.0))])
    assert text.endswith("read go (asyncio): p50 31.2 against 90 µs, p99 1,500 against 2,000 µs")


def test_a_table_of_nothing_says_so():
    assert table([]) == "nothing was measured"


def drawn(results, ours="accord"):
    return ET.fromstring(chart(results, ours))


def texts(picture):
    return [element.text for element in picture.iter(f"{SVG}text")]


def test_the_chart_has_a_bar_for_each_result_and_a_heading_for_each_measure(result):
    picture = drawn([result(), result(peer="rust"), result(measure="read", ratio=0.5)])
    assert len(list(picture.iter(f"{SVG}rect"))) == 3
    headings = [element.text for element in picture.iter(f"{SVG}text") if element.get("class") == "group"]
    assert headings == ["updates a second", "round trips"]
    assert texts(picture).count("4x") >= 2


def test_a_bar_starts_at_the_line_and_goes_the_way_of_the_better(result):
    picture = drawn([result(ratio=4.0), result(peer="rust", ratio=0.25)])
    (line,) = [float(element.get("x1")) for element in picture.iter(f"{SVG}line") if element.get("class") == "one"]
    better, worse = [(float(bar.get("x")), float(bar.get("width"))) for bar in picture.iter(f"{SVG}rect")]
    assert better[0] == pytest.approx(line)
    assert sum(worse) == pytest.approx(line)
    assert better[1] == pytest.approx(worse[1])


def test_the_chart_draws_one_loop(result):
    picture = drawn([result(loop="asyncio"), result(loop="uvloop")])
    assert len(list(picture.iter(f"{SVG}rect"))) == 1
    assert any("event loop asyncio" in text for text in texts(picture))


def test_everything_in_the_chart_is_inside_it(result):
    results = [result(ratio=2.0**power, peer=f"p{power}", spread=0.9) for power in range(-8, 9)]
    picture = drawn(results)
    width, height = map(float, picture.get("viewBox").split()[2:])
    for bar in picture.iter(f"{SVG}rect"):
        assert 0 <= float(bar.get("x")) <= float(bar.get("x")) + float(bar.get("width")) <= width
        assert float(bar.get("y")) + float(bar.get("height")) <= height


def test_names_are_escaped(result):
    picture = drawn([result(peer="<&>")], ours="a & b")
    assert "<&>" in texts(picture)


def test_the_chart_loads_nothing_and_runs_nothing(result):
    text = chart([result()], "accord")
    assert not any(word in text for word in ("<script", "href", "url(", "@import"))


@pytest.mark.parametrize("ratios", [[1.0], [1.3, 0.9], [100.0], [0.01], [0.03, 40.0]])
def test_a_scale_holds_every_ratio_and_has_a_tick_at_one(ratios):
    scale = Scale(ratios)
    assert 1.0 in scale.ticks()
    assert all(scale.low <= math.log2(ratio) <= scale.high for ratio in ratios)
    places = [scale.at(tick) for tick in scale.ticks()]
    assert places == sorted(places)


@pytest.mark.parametrize(("tick", "name"), [(1.0, "1x"), (16.0, "16x"), (0.25, "1/4x")])
def test_a_tick_below_one_is_a_fraction(tick, name):
    assert times(tick) == name
