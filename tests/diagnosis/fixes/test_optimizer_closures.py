"""A forward that stands outside of the closure of an optimizer."""

import pytest
from told import findings_of

START = "net = nn.Linear(3, 1)\nx = torch.ones(4, 3)\nopt = torch.optim.LBFGS(net.parameters(), max_iter=3)\n"
STEP = """for i in range(2):
    out = net(x).tanh()
    print("step %d of %d"
          % (i, 2))
    def closure():
        opt.zero_grad()
        loss = (out - 1).pow(2).mean()
        loss.backward()
        return loss
    opt.step(closure)"""
FUNCTION = "def fit():\n" + "".join(f"    {line}\n" for line in STEP.splitlines()) + "fit()"


@pytest.mark.parametrize("text", [STEP, FUNCTION])
def test_it_is_moved_into_the_closure_and_nothing_is_kept(text: str) -> None:
    (found,) = findings_of(START + text)
    (fix,) = found.fixes
    assert fix.id == "recompute_in_loop" and "at the start of `closure`" in fix.text
    (edit,) = fix.edits
    assert edit.new.strip() == "out = net(x).tanh()"
