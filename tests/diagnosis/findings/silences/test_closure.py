"""Gradients that add up inside the step of an optimizer with a closure."""

from told import findings_of, said

FIT = """
w = torch.ones(3, requires_grad=True)
x, y = torch.randn(20, 3), torch.randn(20)
opt = torch.optim.LBFGS([w], max_iter=5)

def loss_of():
    return (x @ w - y).square().mean()

def closure():
    CLEAR
    loss = loss_of()
    loss.backward()
    return loss

opt.step(closure)
"""
HEADLINE = ("warning", "Gradients add up inside a step: the closure does not clear them.")


def test_a_closure_that_clears_nothing_is_told_and_mended():
    (found,) = findings_of(FIT.replace("    CLEAR\n", ""))
    assert (found.severity, found.headline) == HEADLINE
    assert "`opt.step(closure)` (In[1], line 14) ran `loss.backward()` (In[1], line 11)" in found.text
    assert (found.cause.line, found.names) == (11, ("w.grad", "opt", "zero_grad"))
    assert found.fixes[0].edits[0].new.strip() == "opt.zero_grad()" and found.fixes[0].edits[0].start[0] == 10


def test_a_method_of_the_object_that_has_the_optimizer():
    cell = """
class Fit:
    def __init__(self):
        self.w = nn.Parameter(torch.ones(3))
        self.opt = torch.optim.LBFGS([self.w], max_iter=5)
        self.x, self.y = torch.randn(20, 3), torch.randn(20)
    def evaluate(self):
        loss = (self.x @ self.w - self.y).square().mean()
        loss.backward()
        return loss
    def run(self):
        self.opt.step(self.evaluate)
fit = Fit()
fit.run()
"""
    (found,) = findings_of(cell)
    assert (found.severity, found.headline) == HEADLINE and found.fixes[0].edits


def test_what_clears_is_left_alone():
    for clear in ("opt.zero_grad()", "w.grad = None", "opt.zero_grad(set_to_none=False)"):
        assert said(FIT.replace("CLEAR", clear)) == [], clear


def test_one_evaluation_that_adds_up_parts_is_meant():
    cell = """
w = torch.ones(3, requires_grad=True)
x, y = torch.randn(20, 3), torch.randn(20)
opt = torch.optim.SGD([w], 0.1)
def closure():
    opt.zero_grad()
    for a, b in zip(x.split(5), y.split(5)):
        (a @ w - b).square().mean().backward()
def several():
    opt.zero_grad()
    [(a @ w - b).square().mean().backward() for a, b in zip(x.split(5), y.split(5))]
    loss = (w * w).sum()
    loss.backward()
    return loss
opt.step(STEP)
"""
    assert said(cell.replace("STEP", "closure")) == [] and said(cell.replace("STEP", "several")) == []
