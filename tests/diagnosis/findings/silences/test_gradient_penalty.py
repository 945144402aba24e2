"""A gradient penalty in a method of its own: what it leads to is trained, whatever its names are there."""

import pytest
from told import findings_of, said

DISCRIMINATOR = """class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.optimizer = torch.optim.Adam(self.trunk.parameters())
    def penalty(self, real, fake):
        mixed = (0.5 * real + 0.5 * fake).requires_grad_(True)
        out = self.trunk(mixed)
        grad = torch.autograd.grad(outputs=out, inputs=mixed, grad_outputs=torch.ones_like(out), {option})[0]
        return 10 * (grad.norm(2, dim=1) - 1).pow(2).mean()
    def update(self):
        real, fake = torch.rand(5, 3), torch.rand(5, 3)
        grad_pen = self.penalty(real, fake)
        loss = self.trunk(fake).mean() - self.trunk(real).mean()
        self.optimizer.zero_grad()
        (loss + grad_pen).backward()
        self.optimizer.step()
def main():
    discriminator = Discriminator()
    for _ in range(4):
        discriminator.update()
"""


@pytest.mark.parametrize("option", ["retain_graph=True", "allow_unused=False"])
def test_a_penalty_without_create_graph_is_told(option: str) -> None:
    (found,) = findings_of(DISCRIMINATOR.format(option=option), "main()")
    assert (found.severity, found.cause and found.cause.line) == ("warning", 9)
    assert found.headline.startswith("`grad_pen` is a constant: its gradient was computed without `create_graph=True`")
    assert "gives `self.trunk[0].weight` and others no gradient" in found.text
    assert "create_graph=True" in found.fixes[0].edit[-1]


def test_a_penalty_with_create_graph_is_right() -> None:
    assert said(DISCRIMINATOR.format(option="create_graph=True"), "main()") == []
