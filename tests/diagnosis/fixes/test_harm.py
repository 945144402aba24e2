"""What an edit would destroy."""

import pytest

from graphwidget.diagnosis.fixes import harm
from graphwidget.model import CellRun, Fix, Record, Snapshot

HOLDERS = {"net": "module", "net.fc": "module", "net.fc.weight": "parameter", "net.mean": "buffer", "opt": "optimizer",
           "w": "leaf", "h": "tensor", "temp": "container", "temp[0]": "tensor", "params": "leaves", "state": "object",
           "flow.steps": "module", "step:z": "tensor"}  # fmt: skip
CELL = "net = Net()\nh = net(x)\ntemp = [h]\nloss = h.sum()\nloss.backward()\n"


def record(text=CELL):
    return Record(Snapshot(), runs={0: CellRun(0, 1, text, "c1")}, holders=HOLDERS)


def destroyed(*edit, text=CELL, at=(1, 5)):
    return harm.destroys(record(text), Fix("x", "", True, at, "", edit))


@pytest.mark.parametrize(
    "line",
    ["del net", "del net.fc", "del flow.steps", "del opt", "net = None", "w = w.detach()", "net.mean = None",
     "net.fc.weight = net.fc.weight.detach()", "params = [one.detach() for one in params]", "self.weight = self.weight.detach()",
     "del state", "del nobody_knows", "opt.clear()"],
)  # fmt: skip
def test_what_the_program_uses_stays(line):
    assert destroyed(f"+ {line}")


@pytest.mark.parametrize(
    "line",
    ["h = h.detach()", "temp = [one.detach() for one in temp]", "temp.clear()", "del temp", "net.mean = net.mean.detach()",
     "self.mean = self.mean.detach()", "state = dataclasses.replace(state, h=state.h.detach())", "z = z.detach()",
     "t = t.mul(0.5)", "grads = torch.autograd.grad(loss, [w])", "net.relu.inplace = False", "w.grad = None"],
)  # fmt: skip
def test_a_tensor_may_be_cut_and_a_list_of_tensors_emptied(line):
    assert not destroyed(f"+ {line}")


def test_what_the_edit_moves_or_rewrites_is_the_program_s_own():
    assert not destroyed("- net = Net()", "+ net = Net().eval()")
    assert not destroyed("+ net = Net()", "  h = net(x)")


def test_what_a_line_overwrites_by_out_may_be_bound_instead():
    assert destroyed("- torch.mm(a, b)", "+ state = torch.mm(a, b)")
    assert not destroyed("- torch.mm(a, b, out=state)", "+ state = torch.mm(a, b)")
    assert not destroyed("- torch.max(a, 1, out=(state, w))", "+ state, w = torch.max(a, 1)")


def test_a_name_that_is_read_later_is_not_deleted():
    assert destroyed("+ del temp", text=CELL + "print(temp[-1])\n")
    assert destroyed("+ del temp", text="def show():\n    print(temp)\n" + CELL, at=None)
    assert not destroyed("+ del temp", text=CELL, at=None)


def test_in_a_loop_an_earlier_line_is_read_later():
    looped = "for x in data:\n    print(temp)\n    temp.append(h)\n    loss.backward()\n"
    assert destroyed("+ del temp", text=looped, at=(1, 4))
