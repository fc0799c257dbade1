"""The alerts of examples/hosting use figures that a server tells, and fire when they should."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from accord.metrics import ServerMetrics

ROOT = Path(__file__).parents[4]
ALERTS = ROOT / "examples" / "hosting" / "alerts.yaml"
NAME = re.compile(r"\baccord_[a-z_]+")


def names():
    """The alerts' names, in order."""
    return re.findall(r"- alert: (\w+)", ALERTS.read_text())


def test_every_figure_in_an_alert_is_one_of_a_server():
    told = set(re.findall(r"^# TYPE (\w+)", ServerMetrics(host="web-1").text(), re.MULTILINE))
    used = {name.removesuffix("_bucket") for name in NAME.findall(ALERTS.read_text())}
    assert used
    assert used <= told


def test_the_page_says_what_each_alert_means():
    page = (ROOT / "docs" / "hosts.md").read_text()
    assert re.findall(r"^\| `(Accord\w+)` \|", page, re.MULTILINE) == names()


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is missing: it is in Debian's package prometheus"
)
def test_the_alerts_fire_when_they_should(tmp_path):
    for file in ALERTS, Path(__file__).with_name("alerts_test.yaml"):
        shutil.copy(file, tmp_path)
    for command in ["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]:
        done = subprocess.run(["promtool", *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
