"""The table of calls: what one line says is true of every call that it stands for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphwidget.model import BackwardCall, Place
from graphwidget.render.calls import call_lines


def call(n: int, line: int = 7, iteration: int | None = None, **other: object) -> BackwardCall:
    place = Place(3, line, "loss.backward()", 3, line, "loss.backward()", iteration, run=2)
    plain = BackwardCall(n, place, "backward", False, False, (), (), result="ok", executed_count=4, freed_slots=2)
    return replace(plain, **{"freed_bytes": 24, **other})


def lines(calls: list[BackwardCall]) -> list[str]:
    return [line.strip() for line in call_lines(calls)]


TOLD = "loss.backward()  ran 4 nodes, freed 2 saved tensors (24 B)"


def test_equal_calls_of_a_loop_are_one_line() -> None:
    assert lines([call(n, iteration=n) for n in range(60)]) == [f"1-60  In[3]:7, iterations 0-59  {TOLD}"]


def test_one_call_is_written_as_it_is() -> None:
    assert lines([call(0)]) == [f"1  In[3]:7  {TOLD}"]
    assert lines([call(4, iteration=2)]) == [f"5  In[3]:7, iteration 2  {TOLD}"]


def test_a_call_whose_nodes_are_not_known_does_not_say_that_it_ran_none() -> None:
    unknown = call(0, executed_count=0, freed_slots=0)
    assert lines([unknown]) == ["1  In[3]:7  loss.backward()  ran; which nodes is not known"]


def test_what_differs_gets_a_line_of_its_own() -> None:
    calls = [call(n, iteration=n) for n in range(10)]
    calls[4] = replace(calls[4], executed_count=5)
    failed = replace(call(10, iteration=10), result="raised", failed_node="MulBackward0", freed_by=9)
    assert lines([*calls, failed]) == [
        f"1-4, 6-10  In[3]:7, iterations 0-3, 5-9  {TOLD}",
        "5  In[3]:7, iteration 4  loss.backward()  ran 5 nodes, freed 2 saved tensors (24 B)",
        "11  In[3]:7, iteration 10  loss.backward()  raised at MulBackward0, freed by call 10",
    ]


def failing(n: int, freed_by: int, iteration: int) -> BackwardCall:
    return replace(call(n, iteration=iteration), result="raised", failed_node="MulBackward0", freed_by=freed_by)


def test_calls_that_fail_alike_are_one_line_that_says_who_freed_it() -> None:
    pairs = [one for n in range(5) for one in (call(2 * n, 6, n), failing(2 * n + 1, 2 * n, n))]
    assert lines(pairs)[1] == (
        "2, 4, … 10  In[3]:7, iterations 0-4  loss.backward()  raised at MulBackward0, freed by the call before it"
    )
    same = [call(0, 6), *(failing(n, 0, n - 1) for n in range(1, 6))]
    assert lines(same)[1] == "2-6  In[3]:7, iterations 0-4  loss.backward()  raised at MulBackward0, freed by call 1"


def test_two_calls_of_one_loop_are_two_lines() -> None:
    calls = [call(n, line=7 + n % 2, iteration=n // 2) for n in range(120)]
    assert lines(calls) == [
        f"1, 3, … 119  In[3]:7, iterations 0-59  {TOLD}",
        f"2, 4, … 120  In[3]:8, iterations 0-59  {TOLD}",
    ]


def test_an_inner_loop_that_runs_again_says_how_often_it_was_called() -> None:
    calls = [call(n, iteration=n % 10) for n in range(300)]
    assert lines(calls) == [f"1-300  In[3]:7, iterations 0-9, 300 calls  {TOLD}"]


def test_a_cell_that_runs_again_gets_a_line_of_its_own() -> None:
    again = replace(call(1), place=replace(call(1).place, run=5))
    assert len(lines([call(0), again])) == 2


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([0, 1], "1, 2"),
        ([0, 2, 4], "1, 3, 5"),
        ([0, 4, 5, 6, 20, 22, 30, 40], "1, 5-7, 21, … 41"),
    ],
)
def test_numbers(numbers: list[int], told: str) -> None:
    (line,) = lines([call(n) for n in numbers])
    assert line.startswith(f"{told}  ")


def test_calls_without_a_known_place_are_not_taken_for_equal() -> None:
    nowhere = [replace(call(n), place=Place(None, None)) for n in range(3)]
    assert len(lines(nowhere)) == 3


def test_the_table_ends_somewhere() -> None:
    told = lines([call(n, line=n + 1) for n in range(150)])
    assert len(told) == 101 and told[-1] == "and 50 more"
