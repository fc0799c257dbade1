"""The load run's command line and its table; that it runs, and finds nothing lost, is shown in tests/http."""

import pytest
from benchmarks.load.__main__ import HEADINGS, Run, arguments, main, table


def test_a_run_is_a_row_and_every_column_has_a_heading():
    heading, rule, row = table([Run("HTTP/2", 1000, 200, 1.5, 40.2, 60.0, 2.5, 9.75, 0.5, 10_000, 0)]).splitlines()
    assert [cell.strip() for cell in heading.strip("|").split("|")] == list(HEADINGS)
    assert set(rule) == {"|", "-"}
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["HTTP/2", "1,000", "200", "1.5", "40.2", "60.0", "2.5", "9.75", "0.5", "10,000", "0"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--sockets", "-1"], "no fewer than 0 connections"),
        (["--seconds", "0"], "take numbers above 0"),
        (["--asks", "-5"], "take numbers above 0"),
    ],
)
def test_numbers_that_make_no_run_are_refused(wrong, said, capsys):
    with pytest.raises(SystemExit) as ended:
        arguments(wrong)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_no_connections_at_all_are_no_runs(capsys):
    assert main(["--sockets", "0", "--http2", "0", "--json"]) == 0
    assert capsys.readouterr().out.strip() == "[]"
