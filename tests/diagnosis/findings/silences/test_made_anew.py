"""Leaves that are made anew from what was computed, and the program without the lines that do it."""

from dataclasses import replace

from told import record_of

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import INTO_A_LEAF, Lineage, MeasuredCut, MeasuredLeaf, TextLine

HYPER = """
gen, head = nn.Linear(2, 3), nn.Linear(3, 3)
opt = torch.optim.SGD({trained}, 0.1)
z = torch.ones(2)
for _ in range(3):
    head.weight = nn.Parameter(gen(z).expand(3, 3))
    loss = head(torch.ones(3)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
NUMBERS = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    parts = [float(net(torch.ones(3))) for _ in range(2)]
    total = sum(parts)
    total = torch.tensor(total, requires_grad=True)
    opt.zero_grad()
    total.backward()
    opt.step()
    print(net.weight.sum().item())
"""


def found_in(cell, *cuts):
    measured = tuple(MeasuredCut((TextLine(1, None, line),), by, True, leaves) for line, by, leaves in cuts)
    found = diagnose(replace(record_of(cell), lineage=Lineage(None, cuts=measured)))[0]
    text = text_edit.apply(cell, found.fixes[0].edits)
    return found, [line.strip() for line in text.splitlines() if line not in cell.splitlines()]


POLICY = """
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    loss = torch.zeros(1, requires_grad=True)
    for reward in (1.0, 2.0):
        score = nn.functional.log_softmax(net(torch.ones(3)), 0)[0]
        loss = loss - score.item() * reward
    print(score.exp().item())
    opt.zero_grad()
    loss.sum().backward()
    opt.step()
"""


def test_numbers_that_a_root_was_measured_to_be_computed_from():
    leaves = ("net.weight", "net.bias")
    shown, used = (
        MeasuredCut((TextLine(1, None, line),), "item", True, leaves, used=at) for line, at in ((9, None), (8, True))
    )
    (found,) = diagnose(replace(record_of(POLICY), lineage=Lineage(None, cuts=(shown, used))))
    assert found.cause.line == 8 and "makes a Python number" in found.text
    new = text_edit.apply(POLICY, found.fixes[0].edits)
    assert "loss = loss - score * reward" in new


def test_the_only_leaf_of_a_root_that_a_second_run_saw_being_made():
    cell = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
losses = {}
def put(name, value):
    losses[name] = torch.tensor(value, requires_grad=True)
for _ in range(3):
    put("all", net(torch.ones(3)).tolist())
    opt.zero_grad()
    sum(one.sum() for one in losses.values()).backward()
    opt.step()
"""
    record = record_of(cell)
    assert not any("new leaf" in one.text for one in diagnose(record))
    made = tuple(MeasuredLeaf(call.n, "tensor", (TextLine(1, None, 6),)) for call in record.calls)
    (found,) = diagnose(replace(record, lineage=Lineage(None, made=made)))
    assert "makes a new leaf" in found.text and found.cause.cell == 1


def test_a_parameter_that_is_made_of_a_computed_value_by_an_optimizer_that_has_nothing_else():
    cell = HYPER.format(trained="gen.parameters()")
    found, new = found_in(cell, (6, "Parameter", ("gen.weight", "gen.bias")))
    assert found.headline == "`opt.step()` changed nothing." and found.cause.line == 6
    assert new == ["del head.weight", "head.weight = gen(z).expand(3, 3)"] or new == [
        "head.weight = gen(z).expand(3, 3)"
    ]


def test_a_parameter_that_is_made_of_a_computed_value_beside_others_that_train():
    cell = HYPER.format(trained="[*gen.parameters(), head.bias]")
    found, new = found_in(cell, (6, "Parameter", ("gen.weight", "gen.bias")))
    assert found.headline.startswith("`gen.") and "makes a new leaf" in found.text and new


def test_a_leaf_that_takes_the_values_of_what_is_computed():
    cell = HYPER.format(trained="gen.parameters()").replace("weight = nn.Parameter(", "weight.data = (")
    found, new = found_in(cell, (6, INTO_A_LEAF, ("gen.weight", "gen.bias")))
    assert found.cause.line == 6 and "puts only the values" in found.text
    assert new == ["del head.weight", "head.weight = gen(z).expand(3, 3)"]


def test_a_parameter_made_once_is_no_cause():
    cell = HYPER.format(trained="gen.parameters()")
    cut = MeasuredCut((TextLine(1, None, 6),), "Parameter", True, ("gen.weight",), used=False)
    (found,) = diagnose(replace(record_of(cell), lineage=Lineage(None, cuts=(cut,))))
    assert found.headline == "`opt.step()` changed nothing." and "new leaf" not in found.text and not found.fixes


def test_numbers_of_which_a_leaf_is_made():
    found, new = found_in(NUMBERS, (5, "__float__", ("net.weight", "net.bias")), (11, "item", ("net.weight",)))
    assert found.cause.line == 5 and new == ["parts = [net(torch.ones(3)) for _ in range(2)]"]
    assert "requires_grad=True)\n" not in text_edit.apply(NUMBERS, found.fixes[0].edits)


def test_of_several_lines_those_are_undone_whose_numbers_the_leaf_is_made_of():
    cell = NUMBERS.replace("print(net.weight.sum().item())", "seen = net.weight.sum().item()")
    found, _ = found_in(cell, (5, "__float__", ("net.weight",)), (11, "item", ("net.weight",)))
    fixed = text_edit.apply(cell, found.fixes[0].edits)
    assert "parts = [net(torch.ones(3)) for" in fixed and "seen = net.weight.sum().item()" in fixed
