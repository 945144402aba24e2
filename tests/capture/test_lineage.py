"""Where values leave the graph, from operation to operation."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import torch
from torch import nn

from graphwidget.capture.flow.lineage import LineageMode
from graphwidget.model import INTO_A_LEAF, Lineage, TextLine


class Program:
    """A mode, and a line number that the test sets."""

    def __init__(self) -> None:
        self.line = 0
        self.names: dict[int, str] = {}
        self.mode = LineageMode(
            lambda: (TextLine(1, None, self.line),) if self.line else (), lambda leaf: self.names.get(id(leaf), "")
        )

    def at(self, line: int) -> None:
        self.line = line

    def measured(self, root: torch.Tensor) -> Lineage:
        return self.mode.measured(0, (root,))


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    for name in ("__init__", "zero_grad"):  # which `begin` replaces for good
        monkeypatch.setattr(torch.optim.Optimizer, name, getattr(torch.optim.Optimizer, name))
    monkeypatch.setattr(nn.Parameter, "__new__", nn.Parameter.__new__)
    one = Program()
    one.mode.begin()
    yield one
    one.mode.end()


def behind(lineage: Lineage) -> list[tuple[int, str]]:
    return [(cut.lines[0].line, cut.by) for cut in lineage.behind_root]


def test_the_operation_that_cuts_is_known_behind_others(program: Program) -> None:
    w = torch.ones(3, requires_grad=True)
    program.names[id(w)] = "w"
    program.at(1)
    y = (w * 2).detach()
    program.at(2)
    loss = (y + 1).sum()
    found = program.measured(loss)
    assert behind(found) == [(1, "detach")] and found.behind_root[0].leaves == ("w",)


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize(
    ("how", "by"),
    [
        (lambda y: y.data, "data"),
        (lambda y: y.argmax().float(), "argmax"),
        (lambda y: (y > 1).float(), "gt"),
        (lambda y: torch.tensor(y.sum().item()), "item"),
        (lambda y: torch.tensor([y.sum(), y.max()]), "tensor"),
    ],
)
def test_operations_that_cut(program: Program, how: Callable[[torch.Tensor], torch.Tensor], by: str) -> None:
    w = torch.full((3,), 1.25, requires_grad=True)
    program.at(4)
    assert behind(program.measured(how(w * 2) + 1)) == [(4, by)]


def test_what_runs_without_grad_mode(program: Program) -> None:
    layer = nn.Linear(2, 2)
    program.at(7)
    with torch.no_grad():
        y = layer(torch.ones(1, 2))
    (cut,) = program.measured(y.sum()).behind_root
    assert (cut.lines[0].line, cut.by, cut.grad_mode) == (7, "linear", False)


def test_the_line_that_switched_grad_mode_off_is_known(program: Program) -> None:
    layer = nn.Linear(2, 2)
    with ExitStack() as stack:
        program.at(3)
        stack.enter_context(torch.no_grad())
        program.at(4)
        stack.enter_context(torch.no_grad())  # it is off already
        program.at(5)
        y = layer(torch.ones(1, 2))
    program.at(6)
    z = layer(torch.ones(1, 2)).detach()
    found = {cut.by: [line.line for line in cut.switched] for cut in program.measured(y + z).behind_root}
    assert found == {"linear": [3], "detach": []}


def test_the_optimizer_whose_gradients_were_cleared_says_what_is_wanted(program: Program) -> None:
    """An actor's output is detached on purpose; the critic, which is to be trained, has been frozen."""
    actor, critic = nn.Linear(2, 1), nn.Linear(1, 1)
    of_actor, of_critic = (torch.optim.SGD(one.parameters(), 0.1) for one in (actor, critic))
    program.at(1)
    critic.requires_grad_(False)
    program.at(2)
    loss = critic(actor(torch.ones(1, 2)).detach()).sum()
    of_critic.zero_grad()
    found = program.mode.measured(0, (loss,), [sys._getframe()])
    assert [cut.wanted for cut in found.behind_root] == [False]
    assert [(one.name, one.lines[0].line) for one in found.frozen] == [("critic", 1)]
    program.mode.called(0)
    of_actor.zero_grad()
    found = program.mode.measured(0, (loss,), [sys._getframe()])
    assert [cut.wanted for cut in found.behind_root] == [True] and found.frozen == ()


def test_an_average_that_is_written_in_place_comes_last(program: Program) -> None:
    online, target = nn.Linear(2, 1), nn.Linear(2, 1)
    program.at(1)
    with torch.no_grad():
        for one, other in zip(target.parameters(), online.parameters(), strict=True):
            one.lerp_(other, 0.1)
    buffer = torch.zeros(1)
    program.at(2)
    with torch.no_grad():
        buffer.add_(online(torch.ones(1, 2))[0])
    program.at(3)
    loss = (online(torch.ones(1, 2)).detach() - buffer - target(torch.ones(1, 2)).detach()).sum()
    assert [line for line, _ in behind(program.measured(loss))] == [3, 2]


def test_a_value_with_a_graph_has_no_cuts_and_results_are_the_same(program: Program) -> None:
    w = torch.arange(3.0, requires_grad=True)
    program.at(1)
    loss = (w * w.detach()).sum()
    assert program.measured(loss).behind_root == ()
    loss.backward()
    assert torch.equal(w.grad, torch.arange(3.0))


def test_a_copy_of_a_buffer_is_made_of_no_parameter_that_was_copied_before(program: Program) -> None:
    """`deepcopy` of a block hands on what it has copied so far, and that holds the parameters."""
    block = nn.Linear(3, 3)
    block.register_buffer("mask", torch.ones(3))
    program.at(7)
    copied = copy.deepcopy(block).requires_grad_(False)
    program.at(9)
    assert not program.measured(copied(torch.ones(2, 3)) * copied.mask).behind_root


def test_a_parameter_is_known_by_its_place_in_an_optimizer_that_is_gone(program: Program) -> None:
    first, other = nn.Linear(2, 2), nn.Linear(2, 2)

    def train() -> None:
        opt = torch.optim.SGD([*other.parameters(), first.weight], lr=0.1)
        program.at(1)
        loss = (first(torch.ones(1, 2)).detach() * other(torch.ones(1, 2))).sum()
        program.mode.called(0, loss)
        loss.backward()
        opt.step()

    train()
    (cut,) = [one for one in program.mode.measured(None).cuts if one.by == "detach"]
    assert cut.positions == ((0, 2),) and cut.used


def test_what_no_call_goes_by_is_not_used(program: Program) -> None:
    w = torch.ones(3, requires_grad=True)
    program.at(1)
    (w * 2).detach().sum()  # for a log
    program.at(2)
    leaf = (w * 2).detach().requires_grad_()
    program.at(3)
    program.mode.called(0, (leaf * 3).sum())
    used = {cut.lines[0].line: cut.used for cut in program.mode.measured(None).cuts}
    assert used == {1: False, 2: True}


def test_what_chose_the_values_that_a_call_goes_by_is_known(program: Program) -> None:
    w, table = torch.rand(3, requires_grad=True), torch.rand(8, requires_grad=True)
    program.at(1)
    cells = (w * 7).round().long()
    program.at(2)
    seen = (w * 7).long()  # for a log
    assert seen is not None
    program.at(3)
    chosen = table[cells.clamp(0, 7)] * 2
    program.mode.called(0, chosen.sum())
    found = {cut.lines[0].line: (cut.used, cut.chosen) for cut in program.mode.measured(None).cuts}
    assert found == {1: (False, True), 2: (False, False)}


def test_a_statistic_that_is_kept_in_place_is_not_what_a_call_lacks(program: Program) -> None:
    w, mean = torch.ones(3, requires_grad=True), torch.zeros(3)
    program.at(1)
    with torch.no_grad():
        mean.lerp_(w * 2, 0.1)
    program.at(2)
    program.mode.called(0, ((w - mean) ** 2).sum())
    assert not any(cut.used for cut in program.mode.measured(None).cuts if cut.by == "lerp_")


def test_what_has_only_the_form_of_a_value_does_not_come_from_it(program: Program) -> None:
    w = torch.ones(3, requires_grad=True)
    program.at(1)
    with torch.no_grad():
        state = w * 2
    program.at(2)
    program.mode.called(0, (torch.zeros_like(state) + w.new_zeros(3) + w).sum())
    cuts = program.mode.measured(None).cuts
    assert [(cut.lines[0].line, cut.used) for cut in cuts] == [(1, False)]


def test_a_parameter_of_a_computed_value(program: Program) -> None:
    w = torch.ones(3, requires_grad=True)
    program.names[id(w)] = "w"
    program.at(3)
    nn.Parameter(torch.zeros(3))
    made = nn.Parameter(w * 2)
    assert type(made) is nn.Parameter and made.is_leaf
    (cut,) = program.mode.measured(None).cuts
    assert (cut.by, cut.lines[0].line, cut.leaves) == ("Parameter", 3, ("w",))


def put(layer: nn.Linear, w: torch.Tensor) -> None:
    layer.weight = nn.Parameter(w)


def put_under_no_grad(layer: nn.Linear, w: torch.Tensor) -> None:
    with torch.no_grad():
        layer.weight.copy_(w)


def used(program: Program) -> list[tuple[str, tuple[str, ...]]]:
    return [(cut.by, cut.leaves) for cut in program.mode.measured(None).cuts if cut.used]


@pytest.mark.parametrize(
    ("how", "by"),
    [
        (put, "Parameter"),
        (lambda layer, w: put(layer, w.detach()), "detach"),
        (lambda layer, w: layer.weight.__setattr__("data", w), INTO_A_LEAF),
        (lambda layer, w: layer.weight.data.copy_(w), INTO_A_LEAF),
        (lambda layer, w: layer.weight.data.__setitem__(0, w[0]), INTO_A_LEAF),
        (put_under_no_grad, INTO_A_LEAF),
    ],
)
def test_a_leaf_of_each_pass_takes_only_the_values(
    program: Program, how: Callable[[nn.Linear, torch.Tensor], None], by: str
) -> None:
    w, other, layer = torch.ones(1, 3, requires_grad=True), torch.ones(1, requires_grad=True), nn.Linear(3, 1)
    program.names |= {id(w): "w", id(other): "other"}
    opt = torch.optim.SGD([w, other], lr=0.1)
    program.at(3)
    how(layer, w * 2)
    how(nn.Linear(3, 1), other * 2 + torch.zeros(1, 3))  # which the loss is not computed with
    loss = layer(torch.ones(3)).sum()
    program.mode.called(0, loss)
    leaves = ("other", "w") if by == "detach" else ("w",)  # cuts of one line are told apart only where leaves are made
    assert used(program) == [(by, leaves)] and opt is not None


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_a_tensor_that_is_asked_to_train_takes_only_the_values(program: Program) -> None:
    w = torch.ones(3, requires_grad=True)
    program.names[id(w)] = "w"
    opt = torch.optim.SGD([w], lr=0.1)
    program.at(3)
    leaf = torch.tensor(w * 2, requires_grad=True)
    program.mode.called(0, (leaf * 3).sum())
    assert used(program) == [("tensor", ("w",))] and opt is not None


def test_a_leaf_that_trains_itself_only_begins_with_the_values(program: Program) -> None:
    w, first, later = torch.ones(1, 3, requires_grad=True), nn.Linear(3, 1), nn.Linear(3, 1)
    program.at(3)
    put(first, w * 2)
    opt = torch.optim.SGD([w], lr=0.1)
    put(later, w * 2)
    opt.add_param_group({"params": [later.weight]})
    copied = copy.deepcopy(first)
    program.mode.called(0, sum(one(torch.ones(3)) for one in (first, later, copied)))
    assert used(program) == []


def test_what_has_only_the_shape_of_a_value_leaves_no_graph(program: Program) -> None:
    w = torch.ones(3, requires_grad=True)
    program.at(3)
    torch.ones_like(w * 2), torch.rand_like(w), (w * 2).new_zeros(2)
    assert not program.mode.measured(None).cuts


def in_loss(program: Program, loss: torch.Tensor) -> list[tuple[int, str]]:
    program.mode.called(0, loss)
    return [(cut.lines[0].line, cut.by) for cut in program.measured(loss).cuts if cut.used]


@pytest.mark.filterwarnings("ignore:Converting a tensor")
def test_of_several_cuts_the_one_is_known_whose_result_is_a_number_in_the_loss(program: Program) -> None:
    actor, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    program.at(1)
    pi = torch.distributions.Categorical(logits=actor(torch.ones(2)))
    program.at(2)
    action = pi.sample()
    program.at(3)
    log_prob = pi.log_prob(action)
    program.at(4)
    copied = torch.tensor([log_prob])
    program.at(5)
    loss = (critic(torch.ones(2)) * copied).sum() + 0 * critic.weight[0, action]
    assert in_loss(program, loss) == [(4, "tensor")]


def test_a_sample_is_known_by_the_leaves_behind_its_distribution(program: Program) -> None:
    mean, decoder = torch.ones(3, requires_grad=True), nn.Linear(3, 1)
    program.names[id(mean)] = "mean"
    pi = torch.distributions.Normal(mean * 2, torch.ones(3))
    program.at(2)
    z = pi.sample()
    program.at(3)
    loss = decoder(z).sum()
    assert (2, "normal") in in_loss(program, loss)
    assert any(cut.by == "normal" and "mean" in cut.leaves for cut in program.measured(loss).cuts)


def test_a_worker_s_copy_is_known_by_what_it_was_copied_from(program: Program) -> None:
    shared, own = nn.Linear(2, 1), nn.Linear(2, 1)
    program.names[id(shared.weight)] = "shared.weight"
    own.load_state_dict(shared.state_dict())
    program.at(6)
    y = own(torch.ones(1, 2)).detach()
    (cut,) = (one for one in program.measured(y).cuts if one.lines and one.lines[0].line == 6)
    assert cut.copies == ("shared.weight",)


def test_a_layer_called_without_grad_mode_from_two_lines_is_cut_at_each(program: Program) -> None:
    w = torch.ones(3, requires_grad=True)
    kept = []
    for caller in (7, 8):
        program.mode._lines = lambda caller=caller: (TextLine(1, None, 1), TextLine(1, None, caller))
        with torch.no_grad():
            kept.append(w * 2)
    program.mode.called(0, (torch.ones(3, requires_grad=True) * kept[1]).sum())
    cuts = [one for one in program.measured(torch.zeros(1)).cuts if one.by == "mul"]
    assert [(one.lines[-1].line, one.used) for one in cuts] == [(7, False), (8, True)]


def test_the_inputs_that_were_cut_off_on_the_way_to_a_root_are_known(program: Program) -> None:
    table, scale = nn.Embedding(5, 2), torch.ones(2, requires_grad=True)
    ids, other = (torch.ones(3, requires_grad=True) for _ in range(2))
    program.at(1)
    rows = table(ids.long())
    program.at(2)
    shown = other.long()
    program.at(3)
    root = (rows * scale.detach()).sum()
    lineage = program.mode.measured(0, (root,), (), (ids, other, scale))
    cuts = {one.lines[0].line: (one.by, one.asked, one.used, one.chosen) for one in lineage.cuts}
    assert cuts == {1: ("long", (0,), False, True), 2: ("long", (), False, False), 3: ("detach", (2,), True, False)}
    assert not shown.requires_grad


def test_numbers_carry_the_cuts_before_them_through_what_python_computes(program: Program) -> None:
    w = torch.ones(3, requires_grad=True)
    opt = torch.optim.SGD([w], 0.1)
    program.at(1)
    number = (w * 0.7).sum().item()
    program.at(2)
    total = 1 - sum([number * 3, 0.5]) / 2 + (w * 0.3).tolist()[0]
    assert float(total) == pytest.approx(1 - (2.1 * 3 + 0.5) / 2 + 0.3) and isinstance(total, float)
    program.at(3)
    loss = torch.zeros(1, requires_grad=True) - total
    program.mode.called(0, (loss,))
    program.at(4)
    assert f"{(w * 0.9).sum().item():.1f}" == "2.7"  # it is only shown
    found = program.measured(torch.zeros(1) + total)
    assert {(cut.lines[0].line, cut.by): cut.used for cut in found.cuts} == {
        (1, "item"): True,
        (2, "tolist"): True,
        (4, "item"): None,
    }
    assert sorted(behind(found)) == [(1, "item"), (2, "tolist")]
    assert [(one.call, one.by, one.lines[0].line) for one in found.made] == [(0, "zeros", 3)]
    opt.step()


def test_a_matrix_of_numbers_that_happen_to_be_zero_or_one_leads_back_to_its_angle(program: Program) -> None:
    angle = torch.zeros(1, requires_grad=True)
    program.at(1)
    c, s = torch.cos(angle).item(), torch.sin(angle).item()
    program.at(2)
    loss = (torch.tensor([[c, -s], [s, c]]) @ torch.ones(2)).sum()
    assert behind(program.measured(loss)) == [(1, "item")]


def test_a_number_that_carries_cuts_is_copied_and_saved_as_a_plain_one(program: Program) -> None:
    program.at(1)
    number = (torch.ones(1, requires_grad=True) * 0.7).item()
    assert type(number) is not float  # it carries
    for other in (copy.deepcopy(number), pickle.loads(pickle.dumps(number)), json.loads(json.dumps(number))):
        assert type(other) is float and other == number
