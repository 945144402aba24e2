"""State in one of several objects: it is cut where its own method reads it."""

from told import findings_of

CALLBACKS = """class Smooth:
    def __init__(self): self.avg = None
    def on_loss(self, loss):
        self.avg = loss if self.avg is None else 0.9 * self.avg + 0.1 * loss
        return self.avg
class Printer:
    def on_loss(self, loss): return loss
class Engine:
    def __init__(self, net, callbacks):
        self.net, self.callbacks = net, callbacks
    def fit(self, data):
        for x in data:
            loss = self.net(x).pow(2).mean()
            for one in self.callbacks:
                loss = one.on_loss(loss)
            loss.backward()
engine = Engine(nn.Linear(2, 1), [Smooth(), Printer()])"""


def test_the_object_is_one_of_several_of_different_kinds():
    (found,) = findings_of(CALLBACKS, "engine.fit(torch.ones(3, 4, 2))")
    edits = [fix.edit for fix in found.fixes]
    assert edits[0][:2] == ("+ if self.avg is not None:", "+     self.avg = self.avg.detach()")
    assert not any("each" in line for edit in edits for line in edit), "a Printer has no `avg`"
