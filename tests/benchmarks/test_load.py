"""The load run's command line and its table; that it runs, and finds nothing lost, is shown in the tests of http."""

from dataclasses import replace

import pytest
from benchmarks.load.__main__ import HEADINGS, Run, arguments, main, table
from benchmarks.load.hosts import HEADINGS as OF_HOSTS, HostsRun


def test_a_run_is_a_row_and_every_column_has_a_heading():
    heading, rule, row = table([Run("HTTP/2", 1000, 200, 1.5, 40.2, 60.0, 2.5, 9.75, 0.5, 10_000, 0)]).splitlines()
    assert [cell.strip() for cell in heading.strip("|").split("|")] == list(HEADINGS)
    assert set(rule) == {"|", "-"}
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["HTTP/2", "1,000", "200", "1.5", "40.2", "60.0", "2.5", "9.75", "0.5", "10,000", "0"]


def test_a_run_over_hosts_is_a_row_and_every_column_has_a_heading():
    run = HostsRun(3, 1000, 200, 30.1, 124.2, 5.0, 90.0, 0.4, 8852, 0, 333, 333, 0, 0)
    heading, _, row = table([run], OF_HOSTS).splitlines()
    assert [cell.strip() for cell in heading.strip("|").split("|")] == list(OF_HOSTS)
    assert [cell.strip() for cell in row.strip("|").split("|")][8:] == ["8,852", "0", "333", "333", "0", "0"]
    assert run.is_right


@pytest.mark.parametrize("wrong", [{"wrong": 1}, {"ended_with_host": 332}, {"ended_without_cause": 1}, {"missing": 1}])
def test_a_run_over_hosts_is_right_only_if_nothing_is_lost(wrong):
    run = HostsRun(3, 1000, 200, 30.1, 124.2, 5.0, 90.0, 0.4, 8852, 0, 333, 333, 0, 0)
    assert not replace(run, **wrong).is_right


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--sockets", "-1"], "no fewer than 0 connections"),
        (["--seconds", "0"], "take numbers above 0"),
        (["--asks", "-5"], "take numbers above 0"),
        (["--hosts", "1"], "several hosts are at least 2"),
    ],
)
def test_numbers_that_make_no_run_are_refused(wrong, said, capsys):
    with pytest.raises(SystemExit) as ended:
        arguments(wrong)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_no_connections_at_all_are_no_runs(capsys):
    assert main(["--sockets", "0", "--http2", "0", "--hosted", "0", "--json"]) == 0
    assert capsys.readouterr().out.strip() == "[]"
