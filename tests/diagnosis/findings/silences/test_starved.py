"""Parameters that no backward has given a gradient, and the line that cuts off what is computed from them."""

from told import findings_of, said, with_lineage

LOOP = "for _ in range(3):\n    opt.zero_grad()\n    {}\n    loss.backward()\n    opt.step()"
NET = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.cls, self.proj = nn.Linear(3, 2), nn.Linear(3, 2)\n"
    "    def forward(self, x):\n        return self.cls(x), self.proj(x)\n"
)
MADE = "net = Net()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nx = torch.ones(4, 3)"


def test_a_value_is_followed_through_a_tuple_and_into_a_function() -> None:
    helper = "def near(feature, other):\n    return (feature.detach() - other).pow(2).mean()"
    (found,) = findings_of(
        NET, helper, MADE, LOOP.format("out, feat = net(x)\n    loss = out.sum() + near(feat, x[:, :2])")
    )
    assert found.kind == "silent" and "net.proj.weight" in found.text and "net.cls" not in found.text
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (2, 2)


def test_a_value_is_followed_into_a_list() -> None:
    helper = "def total(parts):\n    return torch.tensor(parts).sum()"
    line = "parts = []\n    out, feat = net(x)\n    parts.append(feat.sum())\n    loss = out.sum() + total(parts)"
    (found,) = findings_of(NET, helper, MADE, LOOP.format(line))
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (2, 2)


def test_a_copy_that_a_loop_moves_along_is_not_missing_a_gradient() -> None:
    moved = (
        "class Pair(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.quick, self.slow = nn.Linear(3, 2), nn.Linear(3, 2)\n"
        "    @torch.no_grad()\n    def move(self):\n"
        "        for q, s in zip(self.quick.parameters(), self.slow.parameters()):\n"
        "            s.data = s.data * 0.9 + q.data * 0.1\n"
        "    def forward(self, x):\n        with torch.no_grad():\n            self.move()\n            aim = self.slow(x)\n"
        "        return (self.quick(x) - aim).pow(2).sum()"
    )
    assert not findings_of(moved, MADE.replace("Net", "Pair"), LOOP.format("loss = net(x)"))


def test_a_branch_that_may_never_have_run_is_not_followed() -> None:
    branch = "        if x.dim() > 2:\n            return self.cls(x) + self.proj(x)\n        return self.cls(x)"
    net = NET.replace("        return self.cls(x), self.proj(x)", branch)
    assert not findings_of(net, MADE, LOOP.format("cost = net(x)\n    loss = (cost.detach() * cost).sum()"))


def test_a_tensor_made_of_an_operation_s_result_is_that_result() -> None:
    net = NET.replace("self.proj(x)\n", "torch.tensor(torch.relu(self.proj(x)))\n")
    (found,) = findings_of(net, MADE, LOOP.format("out, feat = net(x)\n    loss = (out * feat).sum()"))
    (edit,) = found.fixes[0].edits
    assert edit.new == "torch.relu(self.proj(x))"


def test_a_choice_is_passed_straight_through() -> None:
    net = NET.replace("self.proj(x)\n", "torch.ones(2)[self.proj(x).argmax(1)][:, None]\n")
    (found,) = findings_of(net, MADE, LOOP.format("out, feat = net(x)\n    loss = (out * feat).sum()"))
    assert found.fixes[0].id == "straight_through" and "`net.proj.weight`" in found.text


def test_a_line_that_reads_another_part_of_the_object_cuts_nothing_off() -> None:
    setup = (
        "from torch.func import grad, vmap\n"
        "class V(nn.Module):\n"
        "    def __init__(s):\n"
        "        super().__init__()\n"
        "        s.f = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))\n"
        "    def forward(s, x): return s.f(x).squeeze(-1)\n"
        "v = V()\nopt = torch.optim.SGD(v.parameters(), lr=0.1)\n"
        "first = v.f[0].weight.detach().clone()\n"
    )
    loop = (
        "for step in range(4):\n"
        "    opt.zero_grad()\n"
        "    vmap(lambda x: grad(v)(x))(torch.rand(5, 2)).pow(2).sum().backward()\n"
        "    opt.step()\n"
    )
    assert said(setup, loop) == []
    cut = setup.replace(
        "return s.f(x).squeeze(-1)", "return s.f[:2](x).sum(-1) + s.f[2](s.f[:2](x)).detach().squeeze(-1)"
    )
    (found,) = with_lineage(cut, loop.replace("vmap(lambda x: grad(v)(x))", "v"))
    assert "v.f[2].weight" in found.headline and found.made_at is not None and found.made_at.line == 6
