"""What was made before a loop, and only weighs what each pass makes, is detached before the loop."""

import pytest

from graphwidget.diagnosis.source.edits.text_edit import apply_to
from graphwidget.model import Fix
from tests.support.told import findings_of

NETS = "actor, critic = nn.Linear(4, 1), nn.Linear(4, 1)\n"
NETS += "opt = torch.optim.SGD([*actor.parameters(), *critic.parameters()], lr=0.1)\n"
FIT = """def fit(x, y):
    {made}
    for _ in range(2):
        loss = {loss}
        opt.zero_grad()
        loss.backward()
        opt.step()
for _ in range(2):
    fit(torch.rand(3, 4), torch.rand(3, 1))
"""


def fixes_of(made: str, loss: str) -> tuple[Fix, ...]:
    (found,) = findings_of(NETS, FIT.format(made=made, loss=loss))
    return found.fixes


TWICE = "(actor(x).exp() * adv).mean() + (actor(x) * adv).mean() + (critic(x) - y).pow(2).mean()"


@pytest.mark.parametrize(
    ("made", "loss"),
    [
        ("adv = y - critic(x).exp()", "(actor(x).exp() * adv).mean() + (critic(x) - y).pow(2).mean()"),
        ("adv = (y - critic(x).exp())[:, 0]", "(actor(x)[:, 0] * (adv / adv.norm())).sum() + critic(x).sum()"),
        ("adv = y + critic(x).exp()", "nn.functional.mse_loss(critic(x), adv) + actor(x).sum()"),
        ("adv = y - critic(x).exp()", TWICE),
    ],
    ids=["a weight", "scaled in the loop", "a target", "read twice"],
)
def test_a_constant_of_the_passes_is_detached_first(made: str, loss: str) -> None:
    first = fixes_of(made, loss)[0]
    assert first.id == "detach" and first.verified and "adv.detach()" in first.text
    text = apply_to({2: FIT.format(made=made, loss=loss)}, first.edits)[2]
    assert findings_of(NETS, text) == ()


def test_it_is_detached_before_the_loop_where_several_lines_read_it() -> None:
    text = FIT.format(made="adv = y - critic(x).exp()", loss=TWICE.replace("+ (actor", "\\\n            + (actor"))
    (found,) = findings_of(NETS, text)
    assert found.fixes[0].verified and found.fixes[0].edit == ("+ adv = adv.detach()", "  for _ in range(2):")


@pytest.mark.parametrize(
    ("made", "loss"),
    [
        ("gate = critic(x).exp()", "(actor(x) * gate).mean()"),
        ("gate = critic(x).exp()", "(actor.weight * gate).mean() + critic(x).mean()"),
    ],
    ids=["trained by the loop", "an input of a layer"],
)
def test_what_the_loop_trains_is_computed_in_it(made: str, loss: str) -> None:
    first = fixes_of(made, loss)[0]
    assert first.id == "recompute_in_loop" and first.verified
    assert first.text.startswith("Move `gate") and first.edit[0] == "- gate = critic(x).exp()"


def test_what_is_read_behind_the_loop_stays_before_it_too() -> None:
    cell = FIT.format(made="gate = critic(x).exp()", loss="(actor(x) * gate).mean()")
    (found,) = findings_of(
        NETS, cell.replace("for _ in range(2):\n    fit", "    return gate\nfor _ in range(2):\n    fit")
    )
    first = found.fixes[0]
    assert first.text.startswith("Run `gate = critic(x).exp()` (In[2], line 2) again in the loop")
    assert first.edit[0] == "+ gate = critic(x).exp()"
