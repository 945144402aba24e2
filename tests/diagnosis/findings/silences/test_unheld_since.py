"""Leaves that no optimizer holds, as they were replaced or unfrozen after it was made."""

from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply


def test_a_state_dict_that_is_assigned_behind_the_optimizer_replaces_the_parameters():
    made = "opt = torch.optim.SGD(net.parameters(), 0.1)\nnet.load_state_dict(state, assign=True)"
    loop = "for _ in range(3):\n    net.zero_grad()\n    net(torch.ones(2, 3)).sum().backward()\n    opt.step()"
    cells = ("import copy\nnet = nn.Linear(3, 1)\nstate = copy.deepcopy(net.state_dict())", made, loop)
    (found,) = findings_of(*cells)
    assert "replaced them" in found.text and found.made_at.line == 2
    fixed = apply(made, found.fixes[0].edits)
    assert fixed.splitlines() == made.splitlines()[::-1] and not findings_of(cells[0], fixed, loop)


def test_a_layer_that_is_unfrozen_behind_an_optimizer_of_what_required_grad():
    made = "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))\nnet[0].requires_grad_(False)\n"
    made += "def chosen(named):\n    return [p for _, p in named if p.requires_grad]\n"
    made += "opt = torch.optim.SGD(chosen(net.named_parameters()), 0.1)"
    loop = "for epoch in range(12):\n    if epoch == 5:\n        net[0].requires_grad_(True){more}\n"
    loop += "    opt.zero_grad()\n    net(torch.ones(2, 3)).pow(2).sum().backward()\n    opt.step()"
    (found,) = findings_of(made, loop.format(more=""))
    assert "required no grad" in found.text and found.made_at.line == 3 and "`net[0].weight`" in found.headline
    more = "\n        opt.add_param_group({'params': net[0].parameters()})"
    assert not findings_of(made, loop.format(more=more))


def test_a_layer_that_is_unfrozen_shortly_before_the_end():
    made = "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))\nnet[0].requires_grad_(False)\n"
    made += "opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1)"
    loop = "for step in range(12):\n    if step == 8:\n        net[0].requires_grad_(True)\n"
    loop += "    opt.zero_grad()\n    net(torch.ones(2, 3)).pow(2).sum().backward()\n    opt.step()"
    (found,) = findings_of(made, loop)
    assert "made of what required grad before" in found.text and found.made_at.line == 3
    mended = apply(made, found.fixes[0].edits)
    assert mended.endswith("SGD([p for p in net.parameters()], 0.1)") and not findings_of(mended, loop)
    filtered = made.replace("[p for p in net.parameters() if p.requires_grad]", "filter(f, net.parameters())")
    (found,) = findings_of(f"f = lambda p: p.requires_grad\n{filtered}", loop)
    assert "required no grad" in found.text and not found.fixes[0].edits  # it may test something else, too
