"""Tensors that a custom Function is given inside of a list, a tuple or a module."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

PROGRAM = """class Poly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ws):
        ctx.save_for_backward(x)
        ctx.ws = [w.detach() for w in ws]
        return sum(w * x ** k for k, w in enumerate(ctx.ws))
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        gx = sum(k * w * x ** (k - 1) for k, w in enumerate(ctx.ws) if k) * g
        gws = [(g * x ** k).sum() for k, w in enumerate(ctx.ws)]
        return RETURNED
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ws = HOLDER(nn.Parameter(torch.ones(())) for _ in range(3))
    def forward(self, x):
        return APPLIED
net = Net()
net(torch.rand(4, requires_grad=True)).sum().backward()
grads = [w.grad for w in net.ws if w.requires_grad]
assert None not in grads"""


def program(returned: str, holder: str = "nn.ParameterList", applied: str = "Poly.apply(x, self.ws)") -> str:
    return PROGRAM.replace("RETURNED", returned).replace("HOLDER", holder).replace("APPLIED", applied)


@pytest.mark.parametrize(
    ("returned", "holder", "edited"),
    [
        ("gx, torch.stack(gws)", "nn.ParameterList", ["torch.stack(list(self.ws))"]),
        ("gx, gws", "nn.ParameterList", ["def forward(ctx, x, *ws)", "return gx, *gws", "Poly.apply(x, *self.ws)"]),
        ("gx, tuple(gws)", "list", ["return gx, *gws", "Poly.apply(x, *self.ws)"]),
        ("gx, *gws", "tuple", ["def forward(ctx, x, *ws)", "return gx, *gws", "Poly.apply(x, *self.ws)"]),
    ],
)
def test_what_is_in_a_list_is_passed_and_not_left_untrained(returned, holder, edited):
    cell = program(returned, holder)
    (found,) = findings_of(cell)
    assert "`ws`, which is no tensor" in found.headline and "3 tensors that require grad" in found.text
    assert {fix.id for fix in found.fixes} == {"pass_parameters"}
    for fix in found.fixes:
        assert not findings_of(apply(cell, fix.edits))
    assert all(one in apply(cell, found.fixes[0].edits) for one in edited)


def test_what_a_function_was_given_by_its_caller_is_followed():
    helper = "def poly(x, weights):\n    return Poly.apply(x, weights)\n"
    cell = helper + program("gx, gws", applied="poly(x, list(self.ws))")
    (found,) = findings_of(cell)
    assert "gives it `weights`: 3 tensors" in found.text
    assert "Poly.apply(x, *weights)" in apply(cell, found.fixes[0].edits)
    assert not findings_of(apply(cell, found.fixes[0].edits))


def test_the_elements_of_a_tuple_are_arguments_of_their_own():
    cell = program("gx, gws", applied="Poly.apply(x, (self.ws[0], self.ws[1], self.ws[2]))")
    (found,) = findings_of(cell)
    fixed = apply(cell, found.fixes[0].edits)
    assert "Poly.apply(x, self.ws[0], self.ws[1], self.ws[2])" in fixed and not findings_of(fixed)


def test_of_a_module_the_parameters_are_passed_behind_it():
    cell = """class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, module, x):
        ctx.module, ctx.x = module, x.detach()
        with torch.no_grad():
            return module(x)
    @staticmethod
    def backward(ctx, g):
        with torch.enable_grad():
            x = ctx.x.clone().requires_grad_()
            y = ctx.module(x)
        grads = torch.autograd.grad(y, [x, *ctx.module.parameters()], g)
        return grads[1:], grads[0]
fc = nn.Linear(3, 2)
Own.apply(fc, torch.ones(4, 3, requires_grad=True)).sum().backward()
assert fc.weight.grad is not None"""
    (found,) = findings_of(cell)
    fixed = apply(cell, found.fixes[0].edits)
    assert "return None, grads[0], *grads[1:]" in fixed and "Own.apply(fc, torch" in fixed
    assert "*fc.parameters())" in fixed and not findings_of(fixed)


def test_where_nothing_is_to_train_none_is_the_gradient():
    cell = program("gx, gws", applied="Poly.apply(x, [w.detach() for w in self.ws])").replace("\nassert", "\n#")
    (found,) = findings_of(cell.replace("nn.Parameter(torch.ones(()))", "torch.ones(())").replace("HOLDER", "list"))
    assert [fix.id for fix in found.fixes] == ["return_all_gradients"]


def test_the_gradients_of_a_dict_are_only_told():
    cell = program("gx, {k: w for k, w in enumerate(gws)}", applied='Poly.apply(x, {"a": self.ws[0], "b": self.ws[1]})')
    cell = cell.replace("for w in ws]", "for w in ws.values()]")
    (found,) = findings_of(cell)
    (fix,) = found.fixes
    assert fix.id == "pass_parameters" and not fix.edits and ".values()" in fix.text


def test_the_values_of_a_dict_that_is_written_in_the_call_are_followed():
    cell = program("gx, gws", applied='Poly.apply(x, {"a": self.ws[0], "b": self.ws[1], "c": self.ws[2]}.values())')
    (found,) = findings_of(cell)
    assert {fix.id for fix in found.fixes} == {"pass_parameters"} and "3 tensors that require grad" in found.text
    assert not findings_of(apply(cell, found.fixes[0].edits))
