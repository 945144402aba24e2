"""A penalty on gradients that were made without a graph: what they were computed from is no cause."""

from told import findings_of

PENALTY = """critic, generator = nn.Linear(2, 1), nn.Linear(2, 2)
opt = torch.optim.SGD(critic.parameters(), lr=0.1)
def penalty(real, fake):
    mixed = (0.5 * real + 0.5 * fake).requires_grad_()
    slopes = torch.autograd.grad(critic(mixed).sum(), mixed, retain_graph=True)[0]
    return ((slopes.norm(2, dim=1) - 1) ** 2).mean() * 10.0
fake = generator(torch.ones(4, 2)).data
cost = penalty(torch.ones(4, 2), fake.data)
cost.backward()"""


def test_the_gradient_and_not_the_fake_is_the_cause() -> None:
    (found,) = findings_of(PENALTY)
    assert found.cut_at is not None and found.cut_at.line == 5
    assert found.fixes[0].id == "create_graph" and found.fixes[0].edits


def test_a_cut_behind_the_gradient_is_the_cause() -> None:
    (found,) = findings_of(PENALTY.replace("retain_graph", "create_graph").replace("slopes.norm", "slopes.data.norm"))
    assert found.cut_at is not None and found.cut_at.line == 6
