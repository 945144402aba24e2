"""A trained leaf whose values a line writes into a part of a frozen parameter: a new token, a prompt."""

import pytest
from told import with_lineage

from graphwidget.diagnosis.fixes.handed_over import handed_over
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit

FROZEN = """
net = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 8)).requires_grad_(False)
learned = nn.Parameter(torch.randn(8))
opt = torch.optim.Adam([learned], 1e-2)
ids = torch.randint(0, 20, (4, 5))
for step in range(3):
    {write}
    out = net(ids)
    opt.zero_grad()
    out.pow(2).mean().backward()
    opt.step()
"""


@pytest.mark.parametrize(
    "write",
    [
        "net[0].weight.data[3] = learned",
        "net[0].weight.detach()[3] = learned",
        "net[0].weight.data[3].copy_(learned)",
        "with torch.no_grad(): net[0].weight[3] = learned",
        "with torch.no_grad():\n        net[0].weight[3].copy_(learned)",
    ],
)
def test_the_write_is_the_cause_and_not_what_froze_the_embedding(write: str) -> None:
    (found,) = with_lineage(FROZEN.format(write=write))
    line = 8 if "\n" in write else 7
    assert found.kind == "no_grad" and found.cause is not None and found.cause.line == line
    assert "writes only the values of `learned` into a part of a parameter that is not trained" in found.text
    assert not any("requires_grad_(True)" in line for line in found.fixes[0].edit)


def test_the_module_is_called_with_a_weight_that_has_the_learned_part() -> None:
    (found,) = with_lineage(FROZEN.format(write="with torch.no_grad():\n        net[0].weight[2:3] = learned"))
    edit = [line.strip("+- ") for line in found.fixes[0].edit]
    assert {"weight = net[0].weight.clone()", "weight[2:3] = learned"} <= set(edit)
    assert 'out = torch.func.functional_call(net, {"0.weight": weight}, (ids,))' in edit


def test_a_network_and_an_average_that_follow_another_are_no_cause() -> None:
    cell = """
net, target = nn.Linear(4, 4), nn.Linear(4, 4).requires_grad_(False)
opt = torch.optim.Adam(net.parameters(), 1e-2)
for step in range(3):
    for t, p in zip(target.parameters(), net.parameters()):
        t.data = 0.9 * t.data + 0.1 * p
        t.data.copy_(p)
    opt.zero_grad()
    target(torch.ones(2, 4)).sum().backward()
    opt.step()
"""
    (found,) = with_lineage(cell)
    assert "only the values" not in found.text


def test_weights_that_are_computed_and_written_are_the_cause() -> None:
    cell = """
layer = nn.Linear(6, 5).requires_grad_(False)
a, b = nn.Parameter(torch.randn(2, 6)), nn.Parameter(torch.randn(5, 2))
opt = torch.optim.SGD([a, b], 0.1)
layer.weight.data = b @ a
layer(torch.ones(3, 6)).sum().backward()
"""
    (found,) = with_lineage(cell)
    assert found.cause is not None and found.cause.line == 5


def test_nothing_is_edited_where_the_module_is_not_called_behind_the_write() -> None:
    inside = "def put():\n    net.emb.weight.data[3] = v\nput()\nnet(x)\n"
    statement = syntax.statements_at(inside, 2)[-1]
    assert handed_over(1, inside, statement) is None
    branch = "if step == 3:\n    net.emb.weight.data[3] = v\nnet(x)\n"
    assert handed_over(1, branch, syntax.statements_at(branch, 2)[-1]) is None


def test_the_arguments_of_the_call_are_kept() -> None:
    text = "weight = 1\nnet.emb.weight.data[i, 1:] = v\ny = net(x, mask=m)\n"
    handed = handed_over(1, text, syntax.statements_at(text, 2)[-1])
    assert handed is not None and handed.module == "net"
    new = text_edit.new_text(text, handed.edits)
    assert "new_weight[i, 1:] = v" in new
    assert 'torch.func.functional_call(net, {"emb.weight": new_weight}, (x,), {"mask": m})' in new
