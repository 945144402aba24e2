"""A debugger that traces beside us: both see all lines."""

import bdb
import sys
import types
from pathlib import Path

import pytest
import torch

from graphwidget.capture.tracker import Tracker

MODEL = """import torch

def forward(net, w):
    a = w * 2
    b = net(a)
    return b.exp()

def train(net, w, debug):
    for i in range(3):
        debug(i)
        loss = forward(net, w).sum()
        loss.backward()
"""


class Debugger(bdb.Bdb):
    """Steps through every line of a file, as a person does with `s`, until it is let go."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file, self.lines = file, []

    def user_line(self, frame):
        if frame.f_code.co_filename == self.file:
            self.lines.append(frame.f_lineno)
        self.set_step()


@pytest.fixture
def model(tmp_path: Path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    module = types.ModuleType("model")
    module.__file__ = str(path)
    exec(compile(MODEL, str(path), "exec"), module.__dict__)
    return module


def places(model, debug):
    """The line at which each node of the last loss was made."""
    net, w = torch.nn.Linear(2, 2), torch.ones(2, requires_grad=True)
    tracker = Tracker(lambda: {"net": net, "w": w})
    before = sys.gettrace()
    tracker.start()
    try:
        tracker.begin_cell(None, "")
        model.train(net, w, debug)
    finally:
        tracker.end_cell()
        tracker.stop()
        model.left = sys.gettrace()  # what traces when we have gone
        sys.settrace(before)
    graph = tracker.calls[-1].graph
    assert list(tracker.problems) == []
    found = {graph.name_of(i): graph.place_of(i) for i in range(len(graph))}
    return {name: place.line for name, place in found.items() if place is not None}


ALL = {"MulBackward0": 4, "ExpBackward0": 6, "SumBackward0": 11}


def test_a_debugger_that_installs_itself_over_us_hides_no_lines_after_the_first_module(model):
    debugger = Debugger(model.__file__)
    found = places(model, lambda i: debugger.set_trace(sys._getframe(1)) if i == 0 else None)
    assert {name: found.get(name) for name in ALL} == ALL
    assert debugger.lines.count(12) == 3 and debugger.lines.count(6) == 3
    assert model.left == debugger.trace_dispatch


def test_one_that_has_gone_leaves_us_alone(model):
    debugger = Debugger(model.__file__)

    def debug(i):
        if i == 0:
            debugger.set_trace(sys._getframe(1))
        elif i == 1:
            debugger.user_line = lambda frame: debugger.set_continue()

    found = places(model, debug)
    assert {name: found.get(name) for name in ALL} == ALL
    assert debugger.lines.count(12) == 1 and model.left is None


def layers(trace) -> int:
    """How many trace functions of trackers lie on top of each other."""
    found = 0
    while trace is not None:
        trace, found = getattr(trace, "theirs", None), found + 1
    return found


def other(frame, event, arg):
    return other


@pytest.mark.parametrize("debugger", [None, other])
@pytest.mark.parametrize("inner_ends_first", [True, False])
def test_trackers_inside_each_other_do_not_pile_up_and_leave_nothing(debugger, inner_ends_first) -> None:
    w = torch.ones(2, requires_grad=True)
    trackers, most = [Tracker(dict), Tracker(dict)], 0
    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        for one in trackers:
            one.start()
            one.begin_cell(1, "pass", cell_id="1", filename="<cell>")
        for step in range(20):
            if step in (8, 16):
                sys.settrace(debugger)  # as pdb does on its own
            if step == 12:
                sys.settrace(None)
            (w * 2).sum().backward()
            most = max(most, layers(sys.gettrace()))
        assert most <= 3
        for one in reversed(trackers) if inner_ends_first else trackers:
            one.end_cell(None)
            one.stop()
        assert sys.gettrace() in (None, debugger)
    finally:
        sys.settrace(before)
