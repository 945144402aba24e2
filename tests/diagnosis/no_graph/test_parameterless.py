"""A module without parameters is not what is frozen, where another module is."""

import pytest
from told import findings_of

CELL = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(3, 2)
        for p in self.backbone.parameters():
            p.requires_grad = False
    def forward(self, x):
        return self.backbone(x)
class Trainer:
    def __init__(self, model, criterion):
        self.model, self.criterion = model, criterion
    def halves(self, features):
        return features * 2, torch.zeros(len(features), dtype=torch.long)
    def train(self):
        features = self.model(torch.ones(4, 3))
        logits, labels = self.halves(features)
        loss = self.criterion(logits, labels)
        {root}.backward()
trainer = Trainer(Net(), nn.CrossEntropyLoss())
trainer.train()"""


@pytest.mark.parametrize("root", ["loss", "torch.nn.Identity()(loss)", "(loss * 2)"])
def test_a_loss_without_parameters_is_not_named_as_frozen(root: str) -> None:
    (found,) = findings_of(CELL.format(root=root))
    assert "no parameter of `self.model` requires grad" in found.text and "criterion" not in found.text
    assert found.fixes[0].id == "unfreeze" and found.fixes[0].edits
