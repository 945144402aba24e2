"""Grad mode that was measured to be off at a call, by the one line that may have switched it off."""

import pytest
from told import findings_of

NET = "net, x = nn.Linear(3, 3), torch.ones(2, 3)\n"
LOOP = """for step in range(4):
    {switch}
    out = net(x)
    out = out.masked_fill(mask == 0, 0.0)
    loss = out.mean()
    loss.backward()"""
MASK = "mask = torch.tril(torch.ones(2, 3))\n"


def test_a_computed_switch_is_named_and_no_cut_that_may_be_meant() -> None:
    (found,) = findings_of(NET + MASK, LOOP.format(switch="torch.set_grad_enabled(step % 2 == 0)"))
    assert "`torch.set_grad_enabled(step % 2 == 0)` (In[2], line 2) is in force" in found.text
    assert found.fixes[0].id == "remove_no_grad" and "compares" not in found.text


@pytest.mark.parametrize(
    "switch",
    ["torch.set_grad_enabled(step % 2 == 0); torch.set_grad_enabled(step < 1)", "torch.set_grad_enabled(True)"],
)
def test_of_two_lines_or_one_that_switches_it_on_none_is_named(switch: str) -> None:
    made = LOOP.format(switch=switch).replace("loss = out.mean()", "loss = (out > 0).float().mean()")
    (found,) = findings_of(NET + MASK, made)
    assert "is in force" not in found.text


def test_a_package_of_that_name_cuts_nothing() -> None:
    loader = "loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=2)\n"
    (found,) = findings_of(NET + loader, "for (batch,) in loader:\n    loss = batch.mean()\n    loss.backward()")
    assert "`.data`" not in found.text
