"""Backward hooks that no call has run, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as module_hooks

from graphwidget.capture.flow.hooks.unrun import UnrunHooks
from graphwidget.model import MeasuredHook, PlainInput, TextLine

pytestmark = pytest.mark.filterwarnings("ignore:For backward hooks", "ignore:Full backward hook")


class Program:
    """What watches the hooks of this file, and the calls that it is told of."""

    def __init__(self) -> None:
        self.calls = 0
        self.hooks = UnrunHooks(
            lambda: (TextLine(1, None, 1),),
            lambda code: TextLine(1, None, code.co_firstlineno) if code.co_filename == __file__ else None,
            lambda parameter: (TextLine(1, None, 9),) if not parameter.requires_grad else (),
        )

    def backward(self, loss: torch.Tensor) -> None:
        self.hooks.called(self.calls)
        self.calls += 1
        loss.sum().backward()

    @property
    def found(self) -> tuple[MeasuredHook, ...]:
        return self.hooks.found()


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    for of, names in (
        (nn.Module, ("register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook")),
        (torch.Tensor, ("register_hook", "register_post_accumulate_grad_hook")),
    ):
        for name in names:  # which `begin` replaces for good
            monkeypatch.setattr(of, name, getattr(of, name))
    handles: list[Any] = []
    for name in ("register_module_forward_pre_hook", "register_module_forward_hook"):
        register = getattr(module_hooks, name)
        monkeypatch.setattr(module_hooks, name, _kept(register, handles))
    one = Program()
    one.hooks.begin()
    yield one
    for handle in handles:
        handle.remove()


def _kept(register: Callable[..., Any], handles: list[Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: handles.append(register(*args, **kwargs))


class Net(nn.Module):
    def __init__(self, how: str = "") -> None:
        super().__init__()
        self.body, self.head, self.how = nn.Linear(3, 3), nn.Linear(3, 1), how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.how == "no_grad":
            with torch.no_grad():
                return self.head(self.body(x))  # type: ignore[no-any-return]
        h = self.body(x)
        return self.head(h.detach() if self.how == "detach" else h)  # type: ignore[no-any-return]


class Cut(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).detach()


class Packing(nn.Linear):
    def forward(self, x: torch.Tensor) -> Any:
        return {"hidden": super().forward(x)}


def hook(module: Any, grad_input: Any, grad_output: Any) -> None: ...


def test_a_frozen_module_that_gets_plain_inputs(program: Program) -> None:
    net = Net()
    net.body.requires_grad_(False)
    net.body.register_full_backward_hook(hook)
    program.backward(net(torch.ones(2, 3)))
    (found,) = program.found
    assert (found.why, found.path, found.calls) == ("frozen", "body", (0,))
    assert found.plain == PlainInput(0, "", 1) and found.frozen == (TextLine(1, None, 9),)


def test_it_is_called_where_the_input_requires_grad(program: Program) -> None:
    net = Net()
    net.body.requires_grad_(False)
    net.body.register_full_backward_hook(hook)
    program.backward(net(torch.ones(2, 3, requires_grad=True)))
    assert program.found == ()


def test_indices_cannot_require_grad(program: Program) -> None:
    net = nn.Sequential(nn.Embedding(4, 3).requires_grad_(False), nn.Linear(3, 1))
    net[0].register_full_backward_hook(hook)
    program.backward(net(torch.tensor([1, 2])))
    assert [(one.why, one.plain) for one in program.found] == [("frozen", None)]


def test_what_cuts_a_module_off(program: Program) -> None:
    behind, inside = Net("detach"), nn.Sequential(Cut(3, 3), nn.Linear(3, 1))
    behind.body.register_full_backward_hook(hook)
    program.backward(behind(torch.ones(2, 3)))
    assert [one.why for one in program.found] == [""]
    inside[0].register_full_backward_hook(lambda *given: None)
    program.backward(inside(torch.ones(2, 3)))
    assert [one.why for one in program.found] == ["", "cut"]


def test_grad_mode_was_off(program: Program) -> None:
    net, w = Net("no_grad"), torch.ones(1, requires_grad=True)
    net.body.register_full_backward_hook(hook)
    program.backward(net(torch.ones(2, 3)) * w)
    assert [one.why for one in program.found] == ["grad_off"]


def test_torch_does_not_look_into_objects(program: Program) -> None:
    net = Packing(3, 3)
    net.register_full_backward_hook(hook)
    program.backward(net(torch.ones(2, 3))["hidden"])
    assert [one.why for one in program.found] == ["packed"]


def test_a_hook_that_comes_too_late(program: Program) -> None:
    net = Net()
    loss = net(torch.ones(2, 3))
    net.body.register_full_backward_hook(hook)
    program.backward(loss)
    (found,) = program.found
    assert found.why == "late" and found.called == (TextLine(1, None, 1),)


def test_a_module_whose_weights_another_one_uses(program: Program) -> None:
    net, x = nn.MultiheadAttention(4, 2), torch.ones(3, 1, 4)
    net.out_proj.register_full_backward_hook(hook)
    program.backward(net(x, x, x)[0])
    assert [one.why for one in program.found] == ["uncalled"]


def test_a_hook_of_a_tensor(program: Program) -> None:
    w = torch.ones(3, requires_grad=True)
    kept, left = w * 2, w * 3
    kept.register_hook(lambda grad: None)
    left.register_hook(lambda grad: grad)
    program.backward(kept + left.detach())
    assert [one.why for one in program.found] == ["tensor"]


def test_what_is_no_miss(program: Program) -> None:
    net, other = Net(), Net("no_grad")
    net.head.register_full_backward_hook(hook)
    net.body.register_full_backward_hook(lambda *given: None).remove()  # removed before
    program.backward(net(torch.ones(2, 3)))
    net.head.register_full_backward_hook(lambda *given: None)  # for a later call
    other.body.register_full_backward_hook(lambda *given: None)
    other(torch.ones(2, 3))
    assert program.found == ()


def test_of_one_line_that_registers_many_it_is_known_that_some_ran(program: Program) -> None:
    net = Net("detach")
    for module in (net.body, net.head):
        module.register_full_backward_hook(hook)
    program.backward(net(torch.ones(2, 3)))
    assert [(one.path, one.elsewhere) for one in program.found] == [("body", True)]
