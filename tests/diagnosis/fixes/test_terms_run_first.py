"""A loss that is a term of the next one is run first: its gradient comes with the sum's, so the call goes."""

import pytest
from told import findings_of

PROGRAM = """
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
def loss_fn(out):
    bce, kld = out.pow(2).sum(), out.exp().mean()
    kld.backward()
    return {}
for i in range(3):
    loss = loss_fn(net(torch.randn(5, 3)))
    {}
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("whole", ["bce + kld", "(bce + 0.5 * kld) / 5", "torch.stack([bce, kld]).sum()"])
def test_the_call_of_the_term_is_left_out(whole):
    fixes = findings_of(PROGRAM.format(whole, "pass"))[0].fixes
    assert [fix.id for fix in fixes] == ["remove_duplicate_call", "retain_graph_earlier_call"]
    assert "`kld` is a term of `loss`" in fixes[0].text and fixes[0].edits
    assert "The gradient of `kld` then counts twice." in fixes[1].price


def test_what_is_cleared_in_between_does_not_count_twice():
    first, kept = findings_of(PROGRAM.format("bce + kld", "opt.zero_grad()"))[0].fixes
    assert first.id == "remove_duplicate_call" and "twice" not in kept.price


@pytest.mark.parametrize("whole", ["bce * kld", "bce + kld.exp()"])
def test_what_the_next_loss_computes_with_is_no_term(whole):
    fixes = findings_of(PROGRAM.format(whole, "pass"))[0].fixes
    assert not any("is a term of" in fix.text or "twice" in fix.price for fix in fixes)


def test_a_gradient_that_is_read_is_kept():
    read = "norm = net.weight.grad.norm(); opt.zero_grad()"
    fixes = findings_of(PROGRAM.format("bce + kld", read))[0].fixes
    assert not any("is a term of" in fix.text for fix in fixes)
