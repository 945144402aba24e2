"""Parameters that no optimizer holds, and gradients that one loss leaves to another."""

from __future__ import annotations

import pytest

TWO = """from torch import nn
enc, dec = nn.Linear(2, 3), nn.Linear(3, 2)
opt = torch.optim.SGD(enc.parameters(), lr=0.1)
x = torch.randn(4, 2)"""
LOOP = """for i in range(4):
    loss = (dec(enc(x)) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()"""
GROUPS = """from torch import nn
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
x, groups = torch.randn(4, 2), []
part = []
for name, p in net.named_parameters():
    if name.startswith("0"):
        part.append(p)
groups.append({"params": part})
part = []
for name, p in net.named_parameters():
    if name.startswith("2"):
        part.append(p)
groups.append({"params": part})
opt = torch.optim.SGD(groups, lr=0.1)"""
OF_GROUPS = LOOP.replace("dec(enc(x))", "net(x)")
GAN = """from torch import nn
gen, dis = nn.Linear(2, 3), nn.Linear(3, 1)
opt_g, opt_d = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (gen, dis))"""
TURNS = """for i in range(4):
    d_loss = dis(torch.randn(4, 3)).mean() - dis(gen(torch.randn(4, 2)).detach()).mean()
    d_loss.backward()
    opt_d.step()
    opt_d.zero_grad()
    g_loss = -dis(gen(torch.randn(4, 2))).mean()
    g_loss.backward()
    opt_g.step()
    opt_g.zero_grad()"""


def test_a_module_that_no_optimizer_holds_is_an_information(run):
    (found,) = run(TWO, LOOP)
    assert (found.kind, found.severity, found.names) == ("silent", "info", ("dec.weight", "dec.bias"))


@pytest.mark.parametrize("line", ["{}.load_state_dict({}.state_dict())", "{}.requires_grad_(False)", "{}.eval()"])
def test_a_module_that_is_frozen_or_loaded_is_left_out_on_purpose(run, line):
    other = "".join(["d", "2"])  # no text of this file names it: the file is code of one's own, too
    cells = [text.replace("dec", other) for text in (TWO, line.replace("{}", other), LOOP)]
    assert not run(*cells)


def test_parameters_that_are_collected_and_handed_to_nothing(run):
    assert not run(GROUPS, OF_GROUPS)
    dropped = GROUPS[::-1].replace(')}trap :"smarap"{(dneppa.spuorg\n', "", 1)[::-1]
    (found,) = run(dropped, OF_GROUPS)
    assert (found.severity, found.names) == ("warning", ("net[2].weight", "net[2].bias"))
    assert found.cause.source.strip() == "part.append(p)" and found.cause.line == 12
    assert "+ groups.append({'params': part})" in found.fixes[0].edit


def test_gradients_that_another_loss_has_left_are_told(run):
    (found,) = run(GAN, TURNS)
    assert found.headline == "`opt_d` goes by gradients that another loss has left, too."
    assert found.cause.source.strip() == "g_loss.backward()" and "dis.weight" in found.names
    assert found.fixes[0].edit == ("+ opt_d.zero_grad()", "  d_loss.backward()")


def test_gradients_that_are_cleared_before_they_are_added_to_are_not(run):
    cleared = TURNS.replace("    d_loss.backward", "    opt_d.zero_grad()\n    d_loss.backward")
    assert not run(GAN, cleared)
    # Both losses of a pass, and one step: meant.
    both = TURNS.replace("    opt_d.step()\n    opt_d.zero_grad()\n", "") + "\n    opt_d.step()\n    opt_d.zero_grad()"
    assert not run(GAN, both)


SORTED = """from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm = nn.Linear(2, 2), nn.LayerNorm(2)
        self.scale = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return self.norm(self.body(x)) * self.scale
net, x = Net(), torch.randn(4, 2)
def groups(module):
    decay, rest = [], []
    for name, p in module.named_parameters():
        if name.endswith((".bias",)) or "norm" in name:
            rest.append(p)
        elif name.endswith(".weight"):
            decay.append(p)
    return [{"params": decay}, {"params": rest, "weight_decay": 0}]
opt = torch.optim.SGD(groups(net), lr=0.1)"""


def test_passes_that_alternate_between_two_losses_may_step_by_both(run):
    turns = TURNS.replace("range(4)", "range(8)").splitlines()
    first, second = ["    " + line for line in turns[5:]], ["    " + line for line in turns[1:5]]
    assert not run(GAN, "\n".join([turns[0], "    if i % 2 == 0:", *first, "    else:", *second]))


def test_a_parameter_for_which_no_test_of_its_name_holds_is_in_no_group(run):
    (found,) = run(SORTED, OF_GROUPS)
    assert (found.severity, found.names) == ("warning", ("net.scale",))
    assert found.cause.line == 15 and "there is no `else`" in found.text


OF_CLASSES = (
    SORTED[: SORTED.index("def groups")]
    + """KEPT = (nn.LayerNorm, nn.Embedding)
def groups(module):
    decay, rest = [], []
    for part in module.modules():
        for name, p in part.named_parameters(recurse=False):
            if isinstance(part, nn.Linear) and name == "weight":
                decay.append(p)
            elif isinstance(part, KEPT) or name == "bias":
                rest.append(p)
    return [{"params": decay}, {"params": rest, "weight_decay": 0}]
opt = torch.optim.SGD(groups(net), lr=0.1)"""
)
OF_ATTRIBUTES = (
    SORTED[: SORTED.index("def groups")]
    + """def groups(module):
    decay, rest, norms = [], [], []
    for part in module.modules():
        if hasattr(part, "bias") and isinstance(part.bias, nn.Parameter):
            rest.append(part.bias)
        if isinstance(part, nn.LayerNorm):
            norms.append(part.weight)
        elif hasattr(part, "weight") and isinstance(part.weight, nn.Parameter):
            decay.append(part.weight)
    return [{"params": decay}, {"params": rest + norms, "weight_decay": 0}]
opt = torch.optim.SGD(groups(net), lr=0.1)"""
)


@pytest.mark.parametrize(("sorted_", "line"), [(OF_CLASSES, 17), (OF_ATTRIBUTES, 17)])
def test_a_parameter_of_a_module_s_own_falls_through_tests_of_classes(run, sorted_, line):
    (found,) = run(sorted_, OF_GROUPS)
    assert (found.severity, found.names) == ("warning", ("net.scale",))
    assert found.cause.line == line and "None of them holds for it" in found.text


@pytest.mark.parametrize(
    "kept",
    [
        ("KEPT = (nn.LayerNorm", "KEPT = (Net, nn.LayerNorm"),
        ("KEPT = (nn.LayerNorm, nn.Embedding)", "KEPT = tuple(c for c in (nn.LayerNorm,))"),
        ("elif isinstance(part, KEPT)", "elif part is not module"),
    ],
)
def test_what_a_test_of_a_class_takes_or_may_take_is_in_its_group(run, kept):
    assert not [one for one in run(OF_CLASSES.replace(*kept), OF_GROUPS) if "None of them holds" in one.text]


def test_a_test_of_something_else_may_leave_out_on_purpose(run):
    assert not run(SORTED.replace('name.endswith(".weight")', "p.ndim > 1"), OF_GROUPS)
    whole = SORTED.replace("    return [{", "        else:\n            rest.append(p)\n    return [{")
    assert not run(whole, OF_GROUPS)


def test_what_nothing_clears_is_cleared_before_its_backward_where_another_step_comes_first(run):
    turns = TURNS.replace("    opt_d.zero_grad()\n", "").splitlines()
    first, second = turns[1:4], turns[4:]
    (found,) = run(GAN, "\n".join([turns[0], *second, *first]))
    assert found.headline.endswith("nothing clears those of `opt_d`.")
    assert found.fixes[0].edit == ("+ opt_d.zero_grad()", "  d_loss.backward()")


def test_calls_that_add_up_on_purpose_are_cleared_behind_the_step(run):
    loop = "for i in range(8):\n    dis(torch.ones(1, 3)).sum().backward()\n    if i % 2:\n        opt_d.step()"
    (found,) = run(GAN, loop)
    assert found.fixes[0].edit == ("  opt_d.step()", "+ opt_d.zero_grad()")


SPLIT = (
    SORTED[: SORTED.index("def groups")]
    + """def split(module):
    decay, rest = [], []
    for name, p in module.named_parameters():
        if p.ndim > 1:
            decay.append(p)
        else:
            rest.append(p)
    print(len(decay), len(rest))
    return decay, rest
decay, rest = split(net)
opt = torch.optim.SGD([{"params": decay, "weight_decay": 0.1}], lr=0.1)"""
)
NAMES = (
    SORTED[: SORTED.index("def groups")]
    + """def optimizer(module):
    decay, rest = set(), set()
    for path, part in module.named_modules():
        for name, p in part.named_parameters(recurse=False):
            full = f"{path}.{name}" if path else name
            if name == "weight" and isinstance(part, nn.Linear):
                decay.add(full)
            else:
                rest.add(full)
    all_of = dict(module.named_parameters())
    both = decay & rest
    assert not both and len(decay | rest) == len(all_of)
    return torch.optim.SGD([{"params": [all_of[name] for name in sorted(decay)]}], lr=0.1)
opt = optimizer(net)"""
)


@pytest.mark.parametrize(("made", "line"), [(SPLIT, 16), (NAMES, 18)])
def test_a_group_that_gets_to_no_optimizer_is_told_by_the_line_that_fills_it(run, made, line):
    (found,) = run(made, OF_GROUPS)
    assert found.severity == "warning" and "net.norm.weight" in found.names
    assert found.cause.line == line and "none is made of `rest`" in found.text


def test_the_group_is_added_where_the_groups_are_written_out(run):
    (found,) = run(SPLIT, OF_GROUPS)
    assert any('{"params": rest}]' in line for line in found.fixes[0].edit)


@pytest.mark.parametrize(
    "left",
    [
        ("decay, rest = split(net)", "decay, _rest = split(net)"),
        ("decay, rest = split(net)", "decay, rest = split(net)\nsomething = type(net)\nsomething.kept = rest"),
        ('opt = torch.optim.SGD([{"params": decay', 'decay.extend(rest)\nopt = torch.optim.SGD([{"params": decay'),
    ],
)
def test_what_is_left_on_purpose_or_goes_elsewhere_is_not_told_as_dropped(run, left):
    assert not [one for one in run(SPLIT.replace(*left), OF_GROUPS) if "gets to no optimizer" in one.text]


def test_names_that_are_only_printed_are_no_group(run):
    printed = "names, sizes = [], []\nfor name, p in enc.named_parameters():\n    names.append(name)\n    sizes.append(p.numel())\nprint(names)"
    assert not [one for one in run(TWO, printed, LOOP) if "gets to no optimizer" in one.text]


HEAD = """from torch import nn
net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), torch.randn(4, 2)
def split(module):
    body, head = [], []
    for name, p in module.named_parameters():
        if name.startswith("2"):
            head.append(p)
        else:
            body.append(p)
    return body, head
body, head = split(net)
opt = torch.optim.SGD([{"params": head}], lr=0.1)"""


def test_whole_modules_may_be_left_out_on_purpose_so_it_is_an_information(run):
    (found,) = run(HEAD, OF_GROUPS)
    assert found.severity == "info" and found.fixes[0].text.startswith("If they should be trained")


TEACHER = """from torch import nn
def teachers(count):
    return [nn.Linear(2, 2){eval} for _ in range(count)]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.student, self.teachers = nn.Linear(2, 2), None
        self.teachers = teachers(2)
    def forward(self, x):
        return self.student(x) - sum(teacher(x) for teacher in self.teachers)
net, x = Net(), torch.randn(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)"""


def test_what_is_in_a_list_that_a_function_returns_is_to_be_registered(run):
    (found,) = run(TEACHER.replace("{eval}", ""), OF_GROUPS)
    assert found.severity == "warning" and found.fixes[0].id == "register_modules"


def test_what_is_in_evaluation_mode_in_a_list_is_hidden_from_the_optimizer_on_purpose(run):
    assert not [one for one in run(TEACHER.replace("{eval}", ".eval()"), OF_GROUPS) if one.severity == "warning"]
