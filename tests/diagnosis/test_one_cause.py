"""One line that stops several calls is told once, with the places of all of them."""

from collections.abc import Iterator

import pytest
import torch
from told import findings_of, record_of

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.diagnosis.verdict import verdict

NET = "net, x = nn.Linear(3, 1), torch.ones(2, 3)"
TRAIN = "def train():\n    loss = net(x).sum()\n    loss.backward()"
SCORE = "def score(x):\n    torch.set_grad_enabled(False)\n    return float(net(x).sum())"


@pytest.fixture(autouse=True)
def _switched_on_again() -> Iterator[None]:
    yield
    torch.set_grad_enabled(True)


def test_calls_of_several_cells_that_one_line_stops_are_one_finding() -> None:
    record = record_of(NET, TRAIN, SCORE, "train()", "score(x)", "train()", "train()", "train()")
    (found,) = diagnose(record)
    assert found.headline == "`loss` has no grad_fn."
    assert "So backward (In[2], line 3, from In[8], line 1) would reach no leaf." in found.text
    assert found.text.endswith("The same has stopped 2 other calls: from In[6], line 1; from In[7], line 1.")
    assert found.call == 3 and found.also == (1, 2)
    assert not verdict(record, [found]).unexplained


def test_a_call_of_another_line_is_named_with_its_line() -> None:
    cells = (NET, TRAIN, SCORE, "score(x)", "loss = net(x * 2).sum()\nloss.backward()", "train()")
    record = record_of(*cells)
    (found,) = diagnose(record)
    assert found.text.endswith("The same has stopped one other call: In[5], line 2.")
    assert not verdict(record, [found]).unexplained


def test_the_line_that_failed_is_told_where_there_is_one_call() -> None:
    (found,) = findings_of(NET, "with torch.no_grad():\n    loss = net(x).sum()", "loss.backward()")
    assert "So backward (In[3], line 1) would reach no leaf." in found.text and not found.also


def test_two_causes_stay_two_findings() -> None:
    cut = "loss = net(x).sum().detach()\nloss.backward()"
    found = findings_of(NET, cut, cut.replace("x)", "x * 2)"))
    assert [one.also for one in found] == [(), ()] and len({one.fixes[0].edits for one in found}) == 2
