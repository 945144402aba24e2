"""Custom Functions that compute with the parameters of a module which they are given as an object."""

from dataclasses import replace

from told import findings_of, record_of, said

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.diagnosis.no_graph.measured import cut_at
from graphwidget.diagnosis.source.edits.text_edit import apply_to
from graphwidget.model import Lineage, MeasuredCut, TextLine

PARTS = "growth, seeds = nn.Linear(2, 2), torch.rand(3, 2)"
SOLVE = """def stepped(rate, y):
    return y + 0.1 * rate(y)
class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rate, y, steps):
        ctx.rate, ctx.y = rate, y
        with torch.no_grad():
            for _ in range(steps):
                y = stepped(rate, y)
        return y
    @staticmethod
    def backward(ctx, g):
        return None, g, None"""
AGAIN = """class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layer, y):
        ctx.layer, ctx.y = layer, y
        return layer(y)
    @staticmethod
    def backward(ctx, g):
        with torch.enable_grad():
            out = ctx.layer(ctx.y.detach())
        out.backward(g)
        return None, None"""


def test_a_forward_without_grad_mode_is_not_the_cause() -> None:
    (found,) = findings_of(PARTS, SOLVE, "loss = Solve.apply(growth, seeds, 4).sum()\nloss.backward()")
    assert "`Solve.apply(growth, seeds, 4)`" in found.text and "`seeds` does not require grad" in found.text
    assert "No parameter of `growth` is passed" in found.text and "no_grad" not in found.text
    assert "`Solve.apply(growth, seeds, 4, *growth.parameters())`" in found.fixes[0].text


def test_the_last_argument_may_be_a_call_itself() -> None:
    turned = SOLVE.replace("ctx, rate, y, steps", "ctx, rate, steps, y").replace(
        "return None, g, None", "return None, None, g"
    )
    (found,) = findings_of(PARTS, turned, "loss = Solve.apply(growth, 4, seeds.clone()).sum()\nloss.backward()")
    assert "`Solve.apply(growth, 4, seeds.clone(), *growth.parameters())`" in found.fixes[0].text


def test_a_backward_that_runs_one_of_its_own_returns_none_for_the_parameters() -> None:
    cells = (PARTS, AGAIN, "loss = Again.apply(growth, seeds).sum()\nloss.backward()\nassert growth.weight.grad.any()")
    (found,) = findings_of(*cells)
    mended = apply_to(dict(enumerate(cells, 1)), found.fixes[0].edits)
    assert said(*mended.values()) == []


def test_a_network_from_outside_is_named() -> None:
    within = AGAIN.replace("ctx, layer, y", "ctx, y").replace("ctx.layer, ctx.y = layer, y", "ctx.y = y")
    within = within.replace("return layer(y)", "return growth(y)").replace("ctx.layer(", "growth(")
    (found,) = findings_of(PARTS, within, "loss = Again.apply(seeds).sum()\nloss.backward()")
    assert "*growth.parameters()" in found.fixes[0].text


def test_measured_in_a_forward_the_line_that_applies_it_is_the_cut() -> None:
    record = record_of(PARTS, SOLVE, "loss = (Solve.apply(growth, seeds, 4) * growth.bias).sum()\nloss.backward()")
    lines = tuple(TextLine(cell, None, line) for cell, line in ((2, 2), (2, 9), (3, 1)))
    cut = cut_at(record, MeasuredCut(lines, "linear", False, ("growth.weight",), True, (TextLine(2, None, 7),)))
    assert cut is not None and cut.by == "apply" and cut.run.cell == 3


def test_parameters_that_are_passed_are_not_said_to_be_missing() -> None:
    own = (
        "class Scale(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, y, w):\n        return y * w\n"
    )
    own += "    @staticmethod\n    def backward(ctx, g):\n        return g, None"
    record = record_of(PARTS, own, "loss = Scale.apply(seeds, growth.bias).sum()\nloss.backward()")
    lines = (TextLine(2, None, 4), TextLine(3, None, 1))
    cut = MeasuredCut(lines, "mul", False, ("growth.bias",), True)
    assert cut_at(record, cut) is None
    assert all("apply" not in one.text for one in diagnose(replace(record, lineage=Lineage(None, cuts=(cut,)))))
