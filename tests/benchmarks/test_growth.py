"""The cost by load: its figures, and its charts."""

import json
from xml.etree import ElementTree as ET

import pytest
from benchmarks.curves import Axis, Curve, curves, named, spread_apart
from benchmarks.growth import CHARTS, SERIES, Point, draw, main, microseconds, table

SVG = "{http://www.w3.org/2000/svg}"


def test_a_quick_run_measures_every_series_of_ours_and_draws_it(tmp_path, capsys):
    assert main(["--quick", "--peer", "accord", "--json", "--charts", str(tmp_path)]) == 0
    points = json.loads(capsys.readouterr().out)
    assert {point["series"] for point in points} == {"cpu", "amid", "sessions", "memory", "bytes"}
    assert {point["peer"] for point in points} == {"accord"}
    assert all(point["value"] > 0 for point in points if point["series"] in {"amid", "sessions", "bytes"})
    assert [(point["at"], point["of"]) for point in points if point["series"] == "amid"] == [
        (0, "p50"),
        (0, "p99"),
        (10, "p50"),
        (10, "p99"),
    ]
    for chart in CHARTS:
        assert ET.parse(tmp_path / f"growth-{chart.series}.svg").getroot().tag == f"{SVG}svg"


def test_a_chart_has_a_line_and_a_name_for_each_peer():
    picture = ET.fromstring(
        curves(Curve("bytes", "Title", "bytes", "µs"), {"accord": [(1, 10.0), (1000, 90.0)], "go": [(1, 20.0)]})
    )
    assert len(picture.findall(f"{SVG}polyline")) == 2
    assert {"Accord", "Go", "Title", "bytes"} <= {text.text for text in picture.iter(f"{SVG}text")}
    assert len(list(picture.iter(f"{SVG}circle"))) == 3


def test_an_axis_has_every_power_of_ten_of_its_values():
    axis = Axis([2.0, 300.0], 0, 300)
    assert axis.ticks() == [1, 10, 100, 1000]
    assert [axis.at(tick) for tick in axis.ticks()] == [0, 100, 200, 300]


def test_an_axis_of_one_value_has_two_ticks():
    assert Axis([10.0], 0, 100).ticks() == [10, 100]


@pytest.mark.parametrize(("value", "name"), [(0.1, "0.1"), (100, "100"), (10_000, "10k"), (10_000_000, "10M")])
def test_a_tick_has_a_short_name(value, name):
    assert named(value) == name


def test_names_keep_a_distance_and_their_order():
    assert spread_apart({"a": 20.0, "b": 22.0, "c": 100.0}) == {"a": 20.0, "b": 35.0, "c": 100.0}
    assert spread_apart({"a": 20.0, "b": 98.0, "c": 99.0}, 100.0) == {"a": 20.0, "b": 85.0, "c": 100.0}


def test_a_point_without_a_positive_value_is_not_drawn(tmp_path):
    draw([Point(series="memory", peer="accord", at=1, value=0.0, unit="KiB")], tmp_path)
    assert not list(tmp_path.iterdir())


def test_processor_time_is_that_of_a_message_in_the_median_pair():
    assert microseconds([3.0, 90.0, 2.0], 200) == 15_000


def test_processor_time_is_never_negative():
    assert microseconds([-0.1], 200) == 0


def test_the_table_has_a_line_for_each_point():
    lines = table([Point(series="bytes", peer="go", at=10_000, value=12.5, unit="µs")]).splitlines()
    assert lines[1].split() == ["bytes", "go", "10,000", "12.500", "µs"]
    assert set(SERIES) == {"cpu", "amid", "sessions", "bytes"}
