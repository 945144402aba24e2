"""Which of two calls is cut off from what they share, and what of a list is only added."""

from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

GAN = """
class Model:
    def __init__(self):
        self.gens, self.discs = {"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)}, {"a": nn.Linear(2, 1), "b": nn.Linear(2, 1)}
        self.opt_g = torch.optim.SGD([p for g in self.gens.values() for p in g.parameters()], 0.1)
        self.opt_d = torch.optim.SGD([p for d in self.discs.values() for p in d.parameters()], 0.1)
    def judge(self, k, x):
        return self.discs[k](x).pow(2).mean()
    def critic(self, k):
        loss = self.judge(k, self.fake[k])
        loss.backward()
    def step(self, x):
        self.fake = {k: g(x).tanh() for k, g in self.gens.items()}
        for k in self.discs:
            self.critic(k)
        self.opt_d.step()
        self.opt_g.zero_grad()
        loss = sum(self.judge(k, self.fake[k]) for k in self.discs) + self.fake["a"].exp().sum()
        loss.backward()
        self.opt_g.step()
"""
EPOCH = """
body, probe = nn.Sequential(nn.Linear(3, 2), nn.ReLU()), nn.Linear(2, 1)
opt = torch.optim.SGD(probe.parameters(), 0.1)
data = [body(torch.ones(4, 3)) for _ in range(2)]
def epoch(data):
    for features in data:
        loss = probe(features).pow(2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
KEPT = """
class Sparsity:
    def __init__(self, net):
        self.acts{more} = []{given}
        net.register_forward_hook(self.keep)
    def keep(self, module, args, out):
        self.acts.append(out.sigmoid()){beside}
    def term(self):
        return sum({each})
net = nn.Linear(2, 2)
sparse, opt = Sparsity(net), torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2):
    loss = net(torch.ones(2)).pow(2).sum() + sparse.term()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def first(*cells):
    (found,) = findings_of(*cells)
    return found.fixes[0]


def test_the_call_whose_step_is_for_other_weights_is_the_one_to_cut():
    fix = first(GAN, "Model().step(torch.ones(3, 2))")
    assert fix.id == "detach" and fix.at == (1, 10) and [one.new for one in fix.edits] == [".detach()"]


def test_what_a_function_reads_by_a_name_of_its_own_is_cut_there():
    fix = first(EPOCH, "for _ in range(2):\n    epoch(data)")
    assert fix.id == "detach" and fix.verified and fix.at == (1, 7)


def test_old_elements_of_a_list_that_are_only_added_are_dropped():
    fix = first(KEPT.format(more="", given="", beside="", each="a.mean() for a in self.acts"))
    assert fix.id == "clear_buffer" and fix.verified and "sparse.acts.clear()" in fix.edits[0].new


def test_a_list_that_is_read_with_another_one_is_not_emptied_alone():
    fix = first(
        KEPT.format(
            more=", self.scales",
            given=", []",
            beside="; self.scales.append(2.0)",
            each="a.mean() * s for a, s in zip(self.acts, self.scales)",
        )
    )
    assert fix.id == "detach"


def test_the_price_of_the_same_backward_twice_says_what_it_adds():
    (found,) = findings_of(
        "w = torch.ones(3, requires_grad=True)\nloss = w.exp().sum()", "loss.backward()\nloss.backward()"
    )
    assert "the same once more" in next(fix.price for fix in found.fixes if fix.id == "retain_graph_earlier_call")


def test_losses_that_go_backward_one_by_one_are_added_up():
    cell = (
        "net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())\nout, seen = net(torch.ones(3, 2)), []\n"
        "opt = torch.optim.SGD(net.parameters(), 0.1)\n"
        "for k in (1.0, 2.0):\n    loss = (out - k).pow(2).sum()\n    loss.backward()\n    seen.append(loss.item())\n"
        "opt.step()"
    )
    (found,) = findings_of(cell)
    fix = next(fix for fix in found.fixes if fix.id == "single_backward_sum")
    new = text_edit.apply(cell, fix.edits).splitlines()
    assert fix.verified and new[3:] == [
        "total = 0.0",
        "for k in (1.0, 2.0):",
        "    loss = (out - k).pow(2).sum()",
        "    total = total + loss",
        "    seen.append(loss.item())",
        "total.backward()",
        "opt.step()",
    ]


def test_losses_whose_gradients_are_used_one_by_one_are_not_added_up():
    cell = (
        "net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())\nout = net(torch.ones(3, 2))\n"
        "for k in (1.0, 2.0):\n    loss = (out - k).pow(2).sum()\n    loss.backward()\n    print(net[0].weight.grad.norm())"
    )
    (found,) = findings_of(cell)
    assert not any(fix.id == "single_backward_sum" for fix in found.fixes)


def test_a_list_of_which_the_mean_is_taken_is_not_emptied():
    cell = KEPT.format(more="", given="", beside="", each="(a.mean() for a in self.acts)) / len((self.acts)")
    assert first(cell).id == "detach"
