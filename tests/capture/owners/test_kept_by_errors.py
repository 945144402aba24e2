"""A tensor that only the last error keeps alive is shown by the user's name for it."""

import sys

import pytest
from cells import Notebook

from graphwidget.notebook.requests.offers import Offers

FAILING = """
import sys
try:
    {call}
    {call}
except RuntimeError as error:
    sys.last_traceback = error.__traceback__
"""


@pytest.mark.parametrize(
    ("call", "before", "name"),
    [
        ("loss.backward()", "loss = (w**2).sum()", "loss (kept by the last error)"),
        ("run()", "def run(w=w):\n    inner = (w**2).sum()\n    inner.backward()\n    inner.backward()", "inner (kept by the last error)"),
    ],
)  # fmt: skip
def test_a_root_is_called_as_it_was_when_a_call_was_made_on_it(monkeypatch, call, before, name):
    notebook = Notebook()
    monkeypatch.setattr(sys, "last_traceback", None, raising=False)
    notebook.run(f"w = torch.ones(3, requires_grad=True)\n{before}")
    notebook.run(FAILING.format(call=call))
    notebook.run("loss = (w**2).sum()")
    notebook.tracker.stop()
    roots = {root.path: root.paths for root in notebook.tracker.drawing().snapshot.roots}
    assert set(roots) == {"loss", name}
    assert roots[name][0].startswith("sys.last_traceback: ")
    # The page draws it and may not run it: the program has no name for it any more.
    offers = Offers()
    offered = offers.update(notebook.tracker.drawing())
    assert {root.ref.path for root in offered} == {"loss", name}
    assert {offer.ref.path for offer in offers.current.values()} == {"loss"}
