"""Forward hooks that modify what they are given: they return a new tensor."""

import pytest
from told import findings_of

PROGRAM = """
from functools import partial
class Pair(nn.Module):
    def forward(self, x): return x.softmax(-1), 3
class Take(nn.Module):
    def forward(self, pair): return pair[0]
keep = torch.tensor([1.0, 0.0] * 4)
{hook}
net = nn.Sequential(nn.Linear(4, 8), nn.Softmax(-1), nn.Linear(8, 8), Pair(), Take(), nn.Linear(8, 1))
def build():
    {register}
build()
opt = torch.optim.SGD(net.parameters(), 0.1)
for step in range(3):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
AFTER = "net[1].register_forward_hook(hook)"
COPIED = ["+ output = output.clone()", "+ return output"]


def first(hook, register=AFTER):
    (finding,) = findings_of(PROGRAM.format(hook=hook, register=register))
    assert finding.kind == "inplace"
    return finding.fixes[0]


def changed(fix):
    return [line for line in fix.edit if line[0] in "+-"]


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("output.mul_(keep)", ["- output.mul_(keep)", "+ return output.mul(keep)"]),
        ("output *= keep", ["- output *= keep", "+ return output * keep"]),
        ("output[:, 1] = 0", COPIED),
        ("output[:, 1] = 0\n    output.clamp_(max=0.5)", COPIED),
        ("part = output[:, :3]\n    part.zero_()", COPIED),
        ("if m.training:\n        output.mul_(keep)", COPIED),
        ("with torch.no_grad():\n        output.mul_(keep)", COPIED),
        ("if not m.training: return\n    output.clamp_(0.1)", ["- output.clamp_(0.1)", "+ return output.clamp(0.1)"]),
    ],
)
def test_a_hook_returns_what_it_has_modified(body, new):
    fix = first(f"def hook(m, args, output):\n    {body}")
    assert (fix.id, fix.verified, changed(fix)) == ("out_of_place", True, new)


@pytest.mark.parametrize(
    ("hook", "register"),
    [
        ("def hook(m, args, o, keep): o.mul_(keep)", "net[1].register_forward_hook(partial(hook, keep=keep))"),
        ("def hook(keep, m, args, o): o.mul_(keep)", "net[1].register_forward_hook(partial(hook, keep))"),
        ("def hook(m, args, o): o.mul_(keep)", "h = partial(hook)\n    net[1].register_forward_hook(h)"),
        ("def hook(o, m): o.mul_(keep)", "net[1].register_forward_hook(lambda a, b, c: hook(c, m=a))"),
        ("def hook(m, args, kwargs, o): o.mul_(keep)", "net[1].register_forward_hook(hook, with_kwargs=True)"),
        (
            "def make():\n    def hook(m, args, o): o.mul_(keep)\n    return hook",
            "net[1].register_forward_hook(make())",
        ),
        ("class Mask:\n    def __call__(self, m, args, o): o.mul_(keep)", "net[1].register_forward_hook(Mask())"),
        ("class Mask:\n    def hook(self, m, args, o): o.mul_(keep)", "net[1].register_forward_hook(Mask().hook)"),
        ("", "@net[1].register_forward_hook\n    def hook(m, args, o): o.mul_(keep)"),
    ],
)
def test_a_hook_is_known_however_it_is_registered(hook, register):
    assert changed(first(hook, register))[-1].endswith("return o.mul(keep)")


@pytest.mark.parametrize(
    ("hook", "register", "copy"),
    [
        ("def hook(m, args): args[0].mul_(keep)", "net[2].register_forward_pre_hook(hook)", "args"),
        ("def hook(m, args):\n    x, = args\n    x[:, 0] = 0", "net[2].register_forward_pre_hook(hook)", "args"),
        ("def hook(m, args, out):\n    out[0].mul_(keep)", "net[3].register_forward_hook(hook)", "out"),
    ],
)
def test_of_a_tuple_a_tuple_is_returned(hook, register, copy):
    new = changed(first(hook.replace("): args", "):\n    args"), register))
    assert new == [f"+ {copy} = ({copy}[0].clone(), *{copy}[1:])", f"+ return {copy}"]


def test_a_hook_that_returns_it_goes_on_to_do_so():
    fix = first("def hook(m, args, output):\n    output.mul_(keep)\n    return output")
    assert changed(fix) == ["- output.mul_(keep)", "+ output = output.mul(keep)"]


@pytest.mark.parametrize(
    ("hook", "register"),
    [
        ("@torch.no_grad()\ndef hook(m, args, output):\n    output.mul_(keep)", AFTER),  # it would have no graph
        (
            "def hook(m, args, kwargs):\n    args[0].mul_(keep)",
            "net[2].register_forward_pre_hook(hook, with_kwargs=True)",
        ),
        (
            "def hook(m, args, output):\n    output.mul_(keep)",
            "net[1].register_forward_hook(hook)\n    hook(None, None, torch.ones(8))",
        ),
    ],
)
def test_in_doubt_there_is_no_edit(hook, register):
    assert first(hook, register).edit == ()
