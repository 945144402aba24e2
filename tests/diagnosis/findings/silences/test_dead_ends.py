"""Single values that no loss is computed from, and terms of a loss that had left the graph somewhere else."""

import pytest
from told import findings_of, record_of, with_lineage

from graphwidget.diagnosis.diagnose import may_have_constant_terms
from graphwidget.diagnosis.source.edits import text_edit

NETS = """
base, aux = nn.Linear(3, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([*base.parameters(), *aux.parameters()], 0.1)
x = torch.ones(4, 3)
"""
FORGOTTEN = """
for _ in range(3):
    h = base(x)
    loss = h.pow(2).mean()
    aux_loss = (aux(h) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(aux_loss.item())
"""


def of_aux(findings):
    return [one for one in findings if one.headline.startswith("`aux.")]


def test_a_loss_that_is_computed_and_not_added():
    (found,) = of_aux(with_lineage(NETS, FORGOTTEN))
    assert "computes a single value from them, and no loss is computed from that" in found.text
    assert (found.made_at.cell, found.made_at.line) == (2, 5) and found.fixes[0].choice
    fixed = text_edit.apply(FORGOTTEN, found.fixes[0].edits)
    assert "    loss = loss + aux_loss\n    loss.backward()" in fixed
    assert not of_aux(with_lineage(NETS, fixed))


def test_a_term_that_a_condition_leaves_out_of_the_sum():
    cell = """
def total(parts):
    shown = {}
    for name, value in parts.items():
        shown[name] = value.mean()
    loss = sum(value for name, value in shown.items() if "loss" in name)
    for name, value in shown.items():
        shown[name] = value.item()
    return loss
for _ in range(3):
    h = base(x)
    loss = total({"loss_base": h.pow(2), "aux": (aux(h) - 1).pow(2)})
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    (found,) = of_aux(with_lineage(NETS, cell))
    assert "takes only others by its condition" in found.text and found.made_at.line == 6


@pytest.mark.parametrize(
    "more",
    ["loss = loss + 0.1 * aux_loss", "loss = torch.stack([loss, aux_loss]).sum()", "(0.1 * aux_loss).backward()"],
)
def test_a_loss_that_is_used_is_no_matter(more):
    assert not of_aux(with_lineage(NETS, FORGOTTEN.replace("    opt.zero_grad()", f"    opt.zero_grad()\n    {more}")))


# ------------------------------------------------------------------ terms

HELPER = """
class Smooth:
    def __call__(self, values):
        self.kept = values.{cut}
        with torch.{mode}():
            return self.kept.diff(dim=0).abs().mean()
smooth = Smooth()
"""
ADDED = """
for _ in range(3):
    h = base(x)
    loss = aux(h).pow(2).mean()
    loss = loss + 0.1 * smooth(h)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def constants(findings):
    return [one for one in findings if "is a constant" in one.headline]


@pytest.mark.parametrize(("cut", "mode"), [("detach()", "enable_grad"), ("clone()", "no_grad")])
def test_a_term_that_an_object_of_another_cell_has_cut_off(cut, mode):
    cells = (NETS, HELPER.format(cut=cut, mode=mode), ADDED)
    assert may_have_constant_terms(record_of(*cells)) and not constants(findings_of(*cells))
    (found,) = constants(with_lineage(*cells))
    assert found.headline.startswith("`0.1 * smooth(h)`") and found.fixes[0].choice
    assert found.cause.cell == 2 and found.cause.line in (4, 5, 6)


@pytest.mark.parametrize(
    "added",
    [
        "loss = loss + 0.1 * smooth(h).detach()",  # the line says so
        "loss = loss + torch.ones(1).mean()",  # of nothing that is trained
        "loss = loss + h.mean() - h.mean().detach()",
        "loss = loss * smooth(h)",  # a weight
        "loss = loss - smooth(loss.expand(3))",  # a baseline of the loss itself
        "centred = loss - smooth(h)\n    loss = centred",  # one of two, and it is not known which
    ],
)
def test_a_term_that_is_meant_as_a_constant_or_is_none(added):
    smooth = HELPER.format(cut="clone()", mode="no_grad")
    cells = (NETS, smooth, ADDED.replace("loss = loss + 0.1 * smooth(h)", added))
    assert not constants(with_lineage(*cells))


def test_a_value_and_the_same_detached_are_no_constant_term():
    cell = ADDED.replace(
        "loss = loss + 0.1 * smooth(h)", "value = h.mean()\n    kept = value.detach()\n    loss = loss + (value - kept)"
    )
    assert not constants(with_lineage(NETS, cell))


def test_a_sum_that_begins_as_a_number_needs_no_second_run():
    cell = """
for _ in range(3):
    loss = 0
    for row in x:
        loss = loss + aux(base(row)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    assert not may_have_constant_terms(record_of(NETS, cell))
