"""A program whose evaluation leaves the model in evaluation mode: what it says once the run has been measured."""

import json

import prepared

PROGRAM = """import torch
from torch import nn
class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
    def loss(self, x):
        with torch.set_grad_enabled(self.model.training):
            return self.model(x).pow(2).mean()
    def score(self, x):
        self.model.eval()
        return self.loss(x).item()
    def fit(self):
        for i in range(4):
            loss = self.loss(torch.randn(4, 3))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.score(torch.randn(4, 3))
Trainer().fit()
"""


def test_where_the_mode_cannot_be_put_back_it_is_said_that_it_stays(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = prepared.run("-m", "graphwidget", "explain", "--format", "json", "train.py", cwd=tmp_path)
    (found,) = json.loads(done.stdout)["findings"]
    first = found["fixes"][0]
    assert "`self.model.training` is false since `self.model.eval()` (train.py:11" in found["text"]
    assert first["id"] == "remove_no_grad" and first["text"].split(". The model stays in evaluation mode then")[1:]
