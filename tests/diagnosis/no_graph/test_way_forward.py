"""The way of a parameter's values forwards: what a mapped function does, what only some calls give, and its cost."""

import ast

import pytest
from told import findings_of, record_of, with_lineage

from graphwidget.diagnosis.no_graph.way_forward import cuts_behind

LEARNER = """class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.vars = nn.ParameterList([nn.Parameter(torch.randn(1, 3)), nn.Parameter(torch.zeros(1))])
    def forward(self, x, vars=None):
        if vars is None:
            vars = self.vars
        return torch.nn.functional.linear(x, vars[0], vars[1])
    def parameters(self):
        return self.vars
class Meta(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Learner()
        self.scale = nn.Parameter(torch.ones(()))
        self.opt = torch.optim.Adam({held}, lr=0.1)
    def forward(self, x, y):
        loss = self.scale * (self.net(x) - y).pow(2).mean()
        grad = torch.autograd.grad(loss, self.net.parameters())
        {fast}
        with torch.no_grad():
            before = (self.net(x, self.net.parameters()) - y).pow(2).mean()
        after = (self.net(x, fast) - y).pow(2).mean()
        self.opt.zero_grad()
        after.backward()
        self.opt.step()
        return before
"""
RUN = "meta = Meta()\nfor _ in range(3): before = meta(torch.ones(4, 3), torch.zeros(4, 1))"
ALL = "[*self.net.parameters(), self.scale]"


@pytest.mark.parametrize(
    "fast",
    [
        "fast = list(map(lambda p: (p[1].data - 0.4 * p[0]).requires_grad_(), zip(grad, self.net.parameters())))",
        "fast = list(map(lambda g, p: (p.data - 0.4 * g).requires_grad_(), grad, self.net.parameters()))",
        "fast = [(p.detach() - 0.4 * g).requires_grad_() for g, p in zip(grad, self.net.parameters())]",
    ],
)
@pytest.mark.parametrize("found_in", [findings_of, with_lineage])
def test_a_cut_of_the_elements_of_what_an_expression_goes_over_is_the_cause(fast, found_in) -> None:  # type: ignore[no-untyped-def]
    cell = LEARNER.format(held="self.net.parameters()", fast=fast)
    (found,) = found_in(cell, RUN)
    assert found.headline == "`self.opt.step()` changed nothing."
    assert found.cause is not None and found.cause.line == cell.split("fast = ")[0].count("\n") + 1
    assert found.fixes[0].edits and "for another" not in found.fixes[0].text
    fixed = cell.replace(".data - 0.4", " - 0.4").replace(".detach() - 0.4", " - 0.4")
    assert found_in(fixed, RUN) == ()


@pytest.mark.parametrize("found_in", [findings_of, with_lineage])
def test_the_gradient_without_a_graph_is_the_cause_and_no_line_that_reads_other_values(found_in) -> None:  # type: ignore[no-untyped-def]
    cell = LEARNER.format(held=ALL, fast="fast = [p - 0.4 * g for g, p in zip(grad, self.net.parameters())]")
    (found,) = found_in(cell, RUN)
    assert found.tensor == "meta.scale"
    assert found.cut_at is not None and found.cut_at.line == cell.split("grad = ")[0].count("\n") + 1
    assert "no_grad" not in found.text
    assert found.fixes[0].id == "create_graph" and found.fixes[0].edits
    assert (
        found_in(cell.replace("self.net.parameters())\n", "self.net.parameters(), create_graph=True)\n", 1), RUN) == ()
    )


def test_each_text_is_walked_once_whatever_the_number_of_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = "\n".join(
        f"class Layer{n}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.part{n} = Layer{n + 1}()\n    def forward(self, x, a, b):\n"
        f"        x = self.part{n}(x, b, a)\n        y = self.part{n}(a, x, b)\n        return self.part{n}(y, x, b)"
        for n in range(12)
    )
    last = "class Layer12(nn.Module):\n    def forward(self, x, a, b): return x + a + b"
    start = "w = nn.Parameter(torch.ones(1))\nnet = Layer0()\nif w is None:\n    out = net(w, w, w)"
    record = record_of(f"{layers}\n{last}", start)
    whole = 0
    walk = ast.walk

    def counted(node: ast.AST):  # type: ignore[no-untyped-def]
        nonlocal whole
        whole += isinstance(node, ast.Module)
        return walk(node)

    monkeypatch.setattr(ast, "walk", counted)
    cuts_behind(record, "w")
    assert whole < 20
