"""What an agent computed while it acted, and stored with its graph, for a loss that is computed anew."""

from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

AGENT = """from collections import deque
class Memory:
    def __init__(self):
        self.seen, self.states = deque(maxlen=500), deque(maxlen=500)
    def put(self, **row):
        for name, value in row.items():
            getattr(self, name).append(value)
class Core(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(2, 4), nn.Linear(4, 1)
    def forward(self, x, h):
        h = self.cell(x, h)
        return self.head(h), h
core, memory = Core(), Memory()
opt = torch.optim.SGD(core.parameters(), 0.1)"""
PLAY = """def play():
    h = torch.zeros(1, 4)
    for t in range(5):
        x = torch.randn(1, 2)
        value, after = core(x, h)
        memory.put(seen=x, states=h)
        h = after
def learn(cut):
    value, _ = core(torch.cat([*memory.seen]), cut(torch.cat([*memory.states])))
    opt.zero_grad()
    value.pow(2).mean().backward()
    opt.step()"""
LOOP = "for episode in range(6):\n    play()\n    learn(torch.detach)"


def test_the_line_that_acts_is_put_under_no_grad() -> None:
    (found,) = findings_of(AGENT, PLAY, LOOP)
    (fix,) = [one for one in found.fixes if one.id == "no_grad_or_item"]
    fixed = text_edit.apply(PLAY, fix.edits)
    assert "        with torch.no_grad():\n            value, after = core(x, h)\n        memory.put" in fixed
    assert not findings_of(AGENT, fixed, LOOP)


def test_what_a_backward_has_run_is_not_put_under_no_grad() -> None:
    kept = "kept = []\nfor _ in range(6):\n    y = (w * 2).exp()\n    kept.extend(one for one in [y])\n    y.sum().backward()"
    (found,) = findings_of("w = torch.ones(2, requires_grad=True)", kept)
    assert "no_grad_or_item" not in [fix.id for fix in found.fixes]


def test_a_line_whose_other_result_is_trained_keeps_its_graph() -> None:
    agent = AGENT.replace("nn.Linear(4, 1)", "nn.Linear(2, 1)").replace("self.head(h), h", "self.head(x), h")
    play = PLAY.replace("        h = after\n", "        value.pow(2).sum().backward()\n").replace(
        "states=h", "states=after"
    )
    found = findings_of(agent, play, LOOP)
    piles = [one for one in found if one.kind == "leak"]
    assert piles and all("no_grad_or_item" not in [fix.id for fix in one.fixes] for one in piles)
