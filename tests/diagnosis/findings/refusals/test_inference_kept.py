"""Inference tensors saved for a backward: `no_grad` lets it run, and what should train needs the graph."""

import pytest
from told import findings_of

CELL = """class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(3, 3)
    def forward(self, x):
        return self.hidden(x)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(3, 3)
    def forward(self, x):
        with torch.inference_mode():
            context = {inside}
        return self.head(x) * context
model = Model()
opt = torch.optim.SGD({held}.parameters(), 0.1)
loss = model(torch.ones(2, 3)).sum()"""


@pytest.mark.parametrize(("inside", "held"), [("self.encoder(x)", "model"), ("self.encoder.hidden(x)", "model")])
def test_the_code_can_be_taken_out_where_an_optimizer_is_to_train_it(inside: str, held: str) -> None:
    cell = CELL.format(inside=inside, held=held)
    (found,) = findings_of(cell)
    assert [fix.id for fix in found.fixes] == ["no_grad_or_item", "remove_no_grad"]
    assert "gives no gradient" in found.fixes[0].text and inside.split("(")[0] in found.fixes[1].text
    fixed = cell.replace("        with torch.inference_mode():\n    ", "")
    assert [line for line in found.fixes[1].edit if line.startswith("+")] == [f"+ context = {inside}"]
    assert findings_of(fixed) == ()


@pytest.mark.parametrize(("inside", "held"), [("x * 2", "model"), ("self.encoder(x)", "model.head")])
def test_it_is_not_offered_where_nothing_there_is_to_be_trained(inside: str, held: str) -> None:
    (found,) = findings_of(CELL.format(inside=inside, held=held))
    assert [fix.id for fix in found.fixes] == ["no_grad_or_item"]
