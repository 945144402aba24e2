"""Which optimizer a call is for: a GAN that trains its generator first cuts what its discriminator is shown."""

import pytest
from told import findings_of

SETUP = """
G, D = nn.Linear(2, 3), nn.Linear(3, 1)
opt_G = torch.optim.SGD(G.parameters(), 0.1)
opt_D = torch.optim.SGD({held}, 0.1)
z = torch.randn(4, 2)
"""
LOOP = """
for step in range(3):
    opt_G.zero_grad()
    fake = G(z)
    g_loss = D(fake).mean()
    g_loss.backward()
    opt_G.step()
    opt_D.zero_grad()
    d_loss = -D(fake).mean()
    d_loss.backward()
    opt_D.step()
"""


def first_fix(held: str = "D.parameters()", loop: str = LOOP):
    found = next(one for one in findings_of(SETUP.format(held=held), loop) if one.kind == "second_backward")
    return found.fixes[0]


def test_what_was_trained_is_cut_for_the_other_optimizer():
    fix = first_fix()
    assert fix.id == "detach" and not fix.starves and [edit.new for edit in fix.edits] == [".detach()"]


@pytest.mark.parametrize(
    ("held", "loop"),
    [
        ("[*D.parameters(), *G.parameters()]", LOOP),  # the second step trains the generator, too
        ("D.parameters()", LOOP.replace("    opt_D.step()\n", "    opt_D.step()\n    opt_G.step()\n")),
        ("D.parameters()", LOOP.replace("    opt_G.zero_grad()\n", "")),  # the next step uses what is added here
    ],
)
def test_what_is_still_trained_is_not_cut_first(held, loop):
    assert first_fix(held, loop).id != "detach"
