"""The first value that is not finite: found where it is made, and nothing of the user's is changed."""

import pytest
import torch
from torch import nn

import graphwidget as gw


def test_a_leaf_that_was_given_comes_first() -> None:
    w = torch.tensor([1.0, float("nan")], requires_grad=True)
    y = (w * 2).exp()
    found = gw.find_nan(y.sum())
    assert (found.stage, found.what, found.value, found.at, found.count) == ("forward", "`w`", "nan", (1,), 1)
    assert found.node is None and "it was given" in str(found)


def test_a_constant_that_was_saved_is_named() -> None:
    w, scale = torch.ones(2, requires_grad=True), torch.tensor([1.0, float("inf")])
    found = gw.find_nan((w * scale).sum())
    assert (found.what, found.value) == ("`scale`", "inf")


def test_a_value_of_the_forward_has_the_node_that_made_it() -> None:
    p = torch.tensor([0.0, 1.0], requires_grad=True)
    found = gw.find_nan(p.log().pow(2).sum())
    assert found.stage == "forward" and found.node is not None and found.node.name == "LogBackward0"
    assert (found.value, found.at) == ("-inf", (0,))


def test_the_first_gradient_has_its_node_its_line_and_what_was_saved_there() -> None:
    with gw.track():
        x = torch.tensor([4.0, 0.0], requires_grad=True)
        root = x.sqrt()
        loss = (root * 3).sum()
        found = gw.find_nan(loss)
    assert (found.stage, found.value, found.at) == ("backward", "inf", (1,))
    assert found.node is not None and found.node.name == "SqrtBackward0"
    assert found.place is not None and found.place.source == "root = x.sqrt()"
    assert "`result` 0" in str(found)


def test_all_may_be_finite() -> None:
    found = gw.find_nan(nn.Linear(3, 1)(torch.ones(2, 3)).sum())
    assert not found.found and str(found) == "All values and gradients that the graph shows are finite."


def test_nothing_of_the_users_is_changed() -> None:
    net, x = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1)), torch.ones(2, 3)
    with gw.track() as tracker:
        net(x).sum().backward()
        loss = net(x).pow(2).mean().sqrt()
        grads = {name: (one.grad, one.grad._version, one._version) for name, one in net.named_parameters()}
        before, number = torch.get_rng_state(), torch._C._autograd._get_sequence_nr()
        gw.find_nan(loss)
        gw.find_nan(loss)
        assert torch.equal(before, torch.get_rng_state()) and torch._C._autograd._get_sequence_nr() == number
        for name, one in net.named_parameters():
            grad, version, own = grads[name]
            assert one.grad is grad and one.grad._version == version and one._version == own
        assert len(tracker.calls) == 1
        loss.backward()  # the graph is still there
        assert tracker.calls[-1].result == "ok"


def test_a_graph_that_was_freed_shows_what_is_left() -> None:
    w = torch.ones(2, requires_grad=True)
    loss = w.exp().sum()
    loss.backward()
    found = gw.find_nan(loss)
    assert not found.found and "a backward would raise (freed)" in str(found)


@pytest.mark.parametrize("where", ["leaf", "computed", "module"])
def test_code_of_the_users_does_not_run(where: str) -> None:
    ran = []
    w, net = torch.ones(2, requires_grad=True), nn.Linear(2, 2)
    y = net(w * 2)
    with gw.track():
        if where == "leaf":
            w.register_hook(ran.append)
        elif where == "computed":
            y = net(w * 2)
            y.register_hook(ran.append)
        else:
            net.register_full_backward_hook(lambda *given: ran.append(given))
            y = net(w * 2)
        found = gw.find_nan(y.sum())
    assert not ran and "hooks of yours would run" in str(found)


def test_a_checkpoint_is_not_run_again() -> None:
    from torch.utils.checkpoint import checkpoint

    ran = []

    def block(x: torch.Tensor) -> torch.Tensor:
        ran.append(1)
        return x.tanh()

    loss = checkpoint(block, torch.ones(2, requires_grad=True) * 1, use_reentrant=False).sum()
    found = gw.find_nan(loss)
    assert len(ran) == 1 and not found.found and found.unseen


def test_misuse_is_reported() -> None:
    with pytest.raises(TypeError):
        gw.find_nan(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="find_nan"):
        gw.find_nan(torch.ones(2))
