"""What a record's findings leave open, and how it is said: nothing false, and nothing about what was not looked at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.diagnosis.verdict import verdict
from graphwidget.model import Verdict
from graphwidget.render.report import finding_lines, summary, verdict_lines


def looked_at(*cells: str, diagnose: Any = diagnose) -> tuple[Verdict, str]:
    """Run cells with a tracker, as the extension does; the verdict and its words."""
    space: dict[str, Any] = {"torch": torch, "w": torch.ones(2, requires_grad=True)}
    tracker = Tracker(lambda: space, diagnose=diagnose)
    tracker.start()
    try:
        for number, cell in enumerate(cells, 1):
            code = compile(cell, f"<verdict {number}>", "exec")
            tracker.begin_cell(number, cell, cell_id=str(number), filename=f"<verdict {number}>")
            error = None
            try:
                exec(code, space)
            except BaseException as raised:
                error = raised
            tracker.end_cell(error)
        found = tracker.findings()
        left = verdict(tracker.record(), found)
    finally:
        tracker.stop()
    return left, "\n".join([*(line for one in found for line in finding_lines(one)), *verdict_lines(left)])


def test_all_calls_ran() -> None:
    left, told = looked_at("for _ in range(12):\n    (w * 2).sum().backward()")
    assert (left.calls, left.raised) == (12, 0)
    assert told == "No finding. 12 backward calls, all ran."


def test_many_calls_are_all_counted() -> None:
    left, told = looked_at("for _ in range(300):\n    (w * 2).sum().backward()")
    assert left.calls == left.remembered == 300 and told == "No finding. 300 backward calls, all ran."


def test_of_forgotten_calls_no_more_is_said_than_that_they_began() -> None:
    told = summary(Verdict(calls=100_000, remembered=30_000))
    assert told == "No finding. 100000 backward calls; of the 30000 that are remembered, none raised."


OF_ANOTHER_KIND = {
    "NameError": "no_such_name",
    "ModuleNotFoundError": "import no_such_module_at_all",
    "ValueError": "raise ValueError('bad data')",
    "RuntimeError": "torch.ones(2) @ torch.ones(3, 3)",
}


@pytest.mark.parametrize("kind", OF_ANOTHER_KIND)
def test_an_error_of_another_kind_is_reported_with_what_is_known_of_it(kind: str) -> None:
    left, told = looked_at("w.sum().backward()", OF_ANOTHER_KIND[kind])
    assert not left.unexplained and not left.open_cells
    assert told == (
        f"No finding. 1 backward call, which ran. Raised outside of any backward call: {kind} (In[2], line 1)."
    )


def test_an_exit_is_told_with_its_status() -> None:
    assert looked_at("raise SystemExit(3)")[1].endswith("Ended by SystemExit: 3 (In[1], line 1).")


def test_leaving_with_status_0_is_no_error() -> None:
    assert looked_at("w.sum().backward()", "raise SystemExit(0)")[1] == "No finding. 1 backward call, which ran."


UNEXPLAINED = {
    "an operation whose gradient is refused": (
        "import numpy as np\na, at = torch.ones(3, requires_grad=True), np.array([0])\n"
        "y = a.gather(0, torch.from_numpy(at))\nat[0] = 9\ny.sum().backward()",
        "index 9 is out of bounds",
    ),
    "a message of autograd outside of a call": (
        "torch.zeros(2, dtype=torch.long, requires_grad=True)",
        "can require gradients",
    ),
}


@pytest.mark.parametrize("what", UNEXPLAINED)
def test_an_error_of_autograd_without_a_finding_is_called_unexplained_with_its_whole_message(what: str) -> None:
    cell, message = UNEXPLAINED[what]
    left, told = looked_at(cell, diagnose=lambda record: () if what.startswith("a message") else diagnose(record))
    assert len(left.unexplained) + len(left.open_cells) == 1 and not left.other_cells
    words = " ".join(told.split())
    assert "which is not explained yet" in words and message in words
    assert told.endswith("1 error is not explained yet.")


def test_a_call_that_was_refused_at_once_is_not_among_those_that_ran() -> None:
    _, told = looked_at("w.sum().backward()", "torch.autograd.backward([w.sum()], [torch.ones(2)])")
    assert "1 backward call, which ran. 1 more was refused." in told


def test_an_error_that_has_a_finding_is_not_mentioned_again() -> None:
    left, told = looked_at("y = w.exp().sum()\ny.backward()", "y.backward()")
    assert left == Verdict(findings=1, calls=2, remembered=2, raised=1)
    assert told.endswith("1 finding. 2 backward calls, 1 raised.") and "not explained" not in told


def test_an_error_of_a_cell_that_has_a_finding_is_not_mentioned_again() -> None:
    left, _ = looked_at("w.add_(1)")
    assert left.findings == 1 and not left.open_cells and not left.other_cells


def test_an_error_that_a_loop_catches_is_one_error_however_often_it_comes() -> None:
    cell = (
        "import numpy as np\na, at = torch.ones(3, requires_grad=True), np.array([0])\n"
        "for _ in range(5):\n    at[0] = 0\n    u = a.gather(0, torch.from_numpy(at))\n    at[0] = 9\n"
        "    try:\n        u.sum().backward()\n"
        "    except RuntimeError:\n        pass"
    )
    left, told = looked_at(cell)
    assert (left.raised, len(left.unexplained)) == (5, 1) and "5 backward calls, 5 raised." in told


def test_an_error_whose_own_words_fail_does_no_harm() -> None:
    cell = "class Odd(Exception):\n    def __str__(self):\n        raise RuntimeError\nraise Odd('x')"
    assert "Odd (In[1], line 4)" in looked_at(cell)[1]


def test_the_words_need_no_record() -> None:
    place = SimpleNamespace(outer_line=3, file=None)
    run = SimpleNamespace(cell=None, error_place=place, error_type="ValueError")
    assert summary(Verdict(other_cells=(run,))).endswith("ValueError (A cell, line 3).")  # type: ignore[arg-type]


def test_an_exit_is_no_error_and_no_line_is_named_where_none_is_known() -> None:
    place = SimpleNamespace(outer_line=3, file="proj/train.py", spot="proj/train.py:3")
    runs = [
        SimpleNamespace(cell=None, error_place=place, error_type="SystemExit", error="5"),
        SimpleNamespace(cell=None, error_place=None, error_type="SystemExit", error="no data\nat all"),
        SimpleNamespace(cell=None, error_place=None, error_type="KeyError", error="x"),
    ]
    said = summary(Verdict(other_cells=tuple(runs)))  # type: ignore[arg-type]
    assert "Raised outside of any backward call: KeyError." in said
    assert said.endswith("Ended by SystemExit: 5 (proj/train.py:3), SystemExit: no data.")
