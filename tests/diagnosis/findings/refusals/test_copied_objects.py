"""Copies of objects that hold computed tensors: the tensors by their paths, and what computes them again."""

from __future__ import annotations

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm")

PRUNED = (
    "from torch.nn.utils import prune\nfrom torch.optim.swa_utils import AveragedModel\n"
    "net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))\n"
    "for part in (net[0], net[2]):\n    prune.l1_unstructured(part, 'weight', 0.5)\n"
    "net(torch.ones(4, 3)).sum().backward()"
)


def test_the_weights_of_a_pruned_net_are_named_with_the_hook_that_computes_them() -> None:
    copy = "averaged = AveragedModel(net)"
    (found,) = findings_of(PRUNED, copy)
    assert found.headline.startswith("`net[0].weight` and `net[2].weight` have a graph")
    assert "`L1Unstructured`, a forward pre-hook of `net[0]`, computes `net[0].weight` from `weight_orig`" in found.text
    assert "In[1], line 6" in found.text and "`averaged = AveragedModel(net)` makes such a copy" in found.text
    assert [fix.id for fix in found.fixes] == ["detach", "forward_under_no_grad", "remove_reparametrization"]
    assert '`torch.nn.utils.prune.remove(net[0], "weight")`' in found.fixes[2].text
    fixed = text_edit.apply(copy, found.fixes[0].edits)
    assert not findings_of(PRUNED, fixed, "net(torch.ones(4, 3)).sum().backward()")


def test_many_weights_are_cut_off_in_a_loop_and_where_the_library_gives_its_function_out_it_is_told() -> None:
    net = (
        "import copy\nfrom torch.nn.utils import weight_norm\n"
        "net = nn.Sequential(*[weight_norm(nn.Linear(3, 3)) for _ in range(5)])"
    )
    (found,) = findings_of(net, "other = copy.deepcopy(net)")
    assert "`torch.nn.utils.remove_weight_norm(net[0]" in found.fixes[2].text
    fixed = text_edit.apply("other = copy.deepcopy(net)", found.fixes[0].edits)
    assert "for part in net.modules():" in fixed and not findings_of(net, fixed)


def test_a_hook_of_the_program_s_own_is_told_by_its_name_in_the_function_that_copies() -> None:
    own = (
        "import copy\nclass Masked(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.raw = nn.Parameter(torch.ones(2, 3))\n        self.register_forward_pre_hook(Masked.fill)\n"
        "    def fill(self, args):\n        self.weight = self.raw * 2\n"
        "    def forward(self, x):\n        return x @ self.weight.t()\n"
        "def clone(module):\n    return copy.deepcopy(module)\n"
        "nets = {'a': Masked()}\nnets['a'](torch.ones(1, 3)).sum().backward()"
    )
    (found,) = findings_of(own, "clone(nets)")
    assert found.tensor == "module['a'].weight"
    assert "`Masked.fill`, a forward pre-hook of `module['a']`, computes" in found.text and "line 8" in found.text
    assert len(found.fixes) == 2
    assert not findings_of(text_edit.apply(own, found.fixes[0].edits), "clone(nets)")


def test_what_a_forward_keeps_is_named_in_all_parts_and_no_hook_is_blamed() -> None:
    kept = (
        "import copy\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc, self._cache = nn.Linear(3, 1), {}\n"
        "        self.register_forward_pre_hook(lambda module, args: None)\n"
        "    def forward(self, x):\n        self._cache['h'] = self.fc(x)\n        return self._cache['h']\n"
        "nets = {'a': Net(), 'b': Net()}\nfor net in nets.values():\n    net(torch.ones(1, 3)).sum().backward()"
    )
    (found,) = findings_of(kept, "saved = copy.deepcopy(nets)")
    assert found.headline.startswith("`nets['a']._cache['h']` and `nets['b']._cache['h']` have a graph")
    assert "hook" not in found.text and found.fixes[0].id == "detach"
    assert not findings_of(kept, text_edit.apply("saved = copy.deepcopy(nets)", found.fixes[0].edits))


def test_a_part_that_copies_itself_in_its_own_way_is_not_blamed() -> None:
    own = (
        "import copy\nclass Kept:\n    def __init__(self, h):\n        self.h = h\n"
        "    def __deepcopy__(self, memo):\n        return Kept(self.h)\n"
        "x = torch.ones(2, requires_grad=True)\nstate = [Kept(x * 2), x * 3]"
    )
    (found,) = findings_of(own, "copy.deepcopy(state)")
    assert found.tensor == "state[1]" and "state[0]" not in found.text


def test_a_variable_of_the_library_s_function_is_no_name() -> None:
    seen = (
        "import copy\nclass Seen(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.net, self.seen = nn.Linear(3, 3), {}\n    def forward(self, a):\n        x = self.net(a)\n"
        "        self.seen.update(first=x, second=x * 2)\n        return self.seen['second']\n"
        "net = Seen()\nnet(torch.ones(1, 3)).sum().backward()"
    )
    (found,) = findings_of(seen, "other = copy.deepcopy(net)")
    assert found.headline.startswith("`net.seen['first']` and `net.seen['second']` have a graph")
    assert found.names == ("net.seen['first']", "net.seen['second']")
