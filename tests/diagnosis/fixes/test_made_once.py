"""What must not run again, and what is handed on to the next pass."""

import ast

import pytest

from graphwidget.diagnosis.fixes.rerun.made_once import MadeOnce, starts_over
from graphwidget.diagnosis.fixes.rerun.rerun import Statement
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import CellRun


@pytest.mark.parametrize(
    "text",
    [
        "w = torch.randn(3, requires_grad=True)",
        "w = torch.randn(3).requires_grad_()",
        "w.requires_grad = True",
        "w = nn.Parameter(torch.zeros(2))",
        "net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())",
        "opt = torch.optim.SGD([w], lr=0.1)",
        "net = Net()",
        "net = Wider()",
        "opt = Adam([w])",
    ],
)
def test_parameters_modules_and_optimizers_are_made_once(text):
    cells = ["from torch.optim import Adam\nclass Net(nn.Module):\n    pass\nclass Wider(Net):\n    pass\n"]
    assert MadeOnce(cells).makes(ast.parse(text).body[0])


@pytest.mark.parametrize(
    "text",
    ["loss = nn.CrossEntropyLoss()(net(x), y)", "y = nn.functional.relu(x)", "w = raw.exp()", "y = nn.Tanh()(x)"],
)
def test_what_only_builds_a_graph_may_run_again(text):
    assert not MadeOnce([]).makes(ast.parse(text).body[0])


def test_a_state_that_the_loop_carries_on_does_not_start_over():
    (loop,) = ast.parse("for x in xs:\n    h = f(x, h)\n    item = queue.pop()\n    y = g(z)\n").body
    begun = [ast.parse(text).body[0] for text in ("h = zeros()", "queue = list(z)", "z = net(x)")]
    assert [starts_over([one], loop) for one in begun] == [True, True, False]


def test_a_statement_is_taken_from_the_line_that_it_shares():
    cell = "raw = make(); w = raw.exp()\n"
    second = Statement(CellRun(0, 1, cell), source.beginning_at(cell, 1)[1])
    assert second.lines == ["w = raw.exp()"]


def test_lines_that_hand_a_tensor_to_the_next_pass():
    cell = "for x in xs:\n    out = net(x)\n    f(out, prev).backward()\n    prev = out\n    best = prev\n"
    (loop,) = ast.parse(cell).body
    assert [(s.lineno, a, b) for s, a, b in source.hand_overs(loop, 3)] == []
    (loop,) = ast.parse(cell.replace("    best = prev\n", "")).body
    assert [(s.lineno, a, b) for s, a, b in source.hand_overs(loop, 3)] == [(4, "prev", "out")]
