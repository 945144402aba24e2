"""A state that a caller stores of what a model returns is cut in the caller: others train by the same model."""

from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

AGENT = """class Core(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(2, 4), nn.Linear(4, 1)
    def forward(self, x, h):
        h = self.cell(x, h)
        return self.head(h), h
class Agent:
    def __init__(self):
        self.core, self.hidden = Core(), torch.zeros(1, 4)
        self.opt = torch.optim.SGD(self.core.parameters(), 0.1)
    def act(self, x):
        value, self.hidden = self.core(x, self.hidden)
        return value.item()
    def learn(self, xs):
        h = torch.zeros(1, 4)
        for x in xs:
            value, h = self.core(x, h)
        self.opt.zero_grad()
        value.pow(2).mean().backward()
        self.opt.step()
agent = Agent()"""
LOOP = "for step in range(24):\n    agent.act(torch.randn(1, 2))\n    agent.learn(torch.randn(3, 1, 2))"


def test_the_line_that_stores_it_detaches_it() -> None:
    (found,) = findings_of(AGENT, LOOP)
    assert found.kind == "leak" and found.carriers == ("agent.hidden",)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 13)
    fixed = text_edit.apply(AGENT, found.fixes[0].edits)
    assert "self.hidden = self.hidden.detach()" in fixed and "h = self.cell(x, h)\n" in fixed
    trains = "assert agent.core.cell.weight_hh.grad.abs().sum() > 0 and agent.hidden.abs().sum() > 0"
    assert not findings_of(fixed, LOOP, trains)
