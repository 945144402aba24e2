"""What one pass has computed of weights that steps change, and keeps for the next ones."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

MIXING = """class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(3) + 0.1 * torch.rand(3, 3))
    def forward(self, z, reverse=False):
        w = self.weight.{view}
        if reverse:
            if not hasattr(self, "kept"):
                self.kept = {kept}
            return z @ self.kept
        return z @ w
mixing = Mixing()
opt = torch.optim.SGD(mixing.parameters(), lr=0.1)
x = torch.rand(4, 3)"""
LOOP = """for _ in range(3):
    loss = (mixing(x) - 1).pow(2).mean() + mixing(x, reverse=True).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()"""


@pytest.mark.parametrize("view", ["squeeze(-1)", "t()", "unsqueeze(0)[0]"])
def test_an_inverse_is_computed_again_and_not_detached(view: str) -> None:
    setup = MIXING.format(view=view, kept="w.inverse()")
    (found,) = findings_of(setup, LOOP)
    assert found.kind == "second_backward" and [one.id for one in found.fixes] == ["recompute_in_loop"]
    assert not findings_of(text_edit.apply(setup, found.fixes[0].edits), LOOP)
