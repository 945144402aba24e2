"""PyTorch's messages are known by words that the installed PyTorch really says, and that stand in one place."""

import ast
import copy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import graphwidget
from graphwidget.model import torch_messages as messages


def twice():
    loss = (torch.ones(2, requires_grad=True) ** 2).sum()
    loss.backward()
    loss.backward()


def modified():
    h = torch.ones(2, requires_grad=True).exp()
    loss = h.sin().sum()
    h.mul_(2)
    loss.backward()


def unused():
    x = torch.ones(2, requires_grad=True)
    torch.autograd.grad(x.sum(), torch.ones(2, requires_grad=True))


def of_a_module():
    torch.nn.Linear(1, 1).weight = torch.ones(1)


def under_inference():
    with torch.inference_mode():
        x = torch.ones(2)
    x * torch.ones(2, requires_grad=True)


def own(gradient):
    """Run the backward of a custom Function that returns what `gradient` makes of the one that it gets."""

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return gradient(g)

    Own.apply(torch.ones(2, requires_grad=True), 0.5).sum().backward()


def without_backward():
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    Own.apply(torch.ones(2, requires_grad=True)).sum().backward()


def differentiated_once():
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    torch.autograd.grad((Own.apply(x) * w).sum(), x, create_graph=True)[0].sum().backward()


def not_a_number():
    with torch.autograd.detect_anomaly(check_nan=True):
        (torch.zeros(2, requires_grad=True).sqrt() * 0).sum().backward()


def hooked(hook):
    x = torch.ones(2, requires_grad=True)
    x.register_hook(hook)
    x.sum().backward()


def sparse_gradient():
    layer = torch.nn.Embedding(3, 2, sparse=True)
    layer(torch.tensor([0])).sum().backward()
    torch.optim.Adam(layer.parameters()).step()


def own_twice():
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Own


LEAF = torch.ones(2, requires_grad=True)
RAISED = {
    "TYPES_APART": lambda: F.huber_loss(torch.ones(2, requires_grad=True), torch.ones(2).double()).backward(),
    "GRADIENTS_COUNTED": lambda: own(lambda g: g),
    "GRADIENT_OF_NO_TENSOR": lambda: own(lambda g: (g, g)),
    "GRADIENT_SHAPE": lambda: own(lambda g: (g[:0], None)),
    "GRADIENT_DEVICE": lambda: own(lambda g: (g.to("meta"), None)),
    "NO_GRADIENT_TYPE": lambda: own(lambda g: (1.0, None)),
    "NO_BACKWARD": without_backward,
    "ONCE_DIFFERENTIABLE": differentiated_once,
    "FREED": twice,
    "MODIFIED": modified,
    "NO_GRAD": lambda: torch.ones(1).backward(),
    "INPUT_WITHOUT_GRAD": lambda: torch.autograd.grad(LEAF.sum(), torch.ones(2)),
    "UNUSED": unused,
    "NOT_SCALAR": lambda: (LEAF * 2).backward(),
    "GRADIENT_MISMATCH": lambda: (LEAF * 2).backward(torch.ones(3)),
    "COMPLEX": lambda: (LEAF[0] * 1j).backward(),
    "LEAF_WRITTEN": lambda: LEAF.add_(1),
    "VIEW_WRITTEN": lambda: (LEAF * 1).unbind()[0].add_(1),
    "FLAG_OF_NO_LEAF": lambda: (LEAF * 2).requires_grad_(False),
    "NO_LEAF_OPTIMIZED": lambda: torch.optim.SGD([LEAF * 2]),
    "NO_PARAMETER": of_a_module,
    "TO_NUMPY": lambda: LEAF.numpy(),
    "COPIED": lambda: copy.deepcopy(LEAF * 2),
    "NO_FLOAT": lambda: torch.ones(1, dtype=torch.int64).requires_grad_(),
    "INFERENCE": under_inference,
    "NO_DIMENSION": lambda: LEAF.sum()[0],
    "LEGACY_FUNCTION": lambda: type("Old", (torch.autograd.Function,), {"forward": lambda self, x: x})()(LEAF),
    "KEYWORD": lambda: LEAF.sum().backward(retain_variables=True),
    "NO_FORMULA": lambda: torch.igamma(LEAF, LEAF).sum().backward(),
    "NOT_A_NUMBER": not_a_number,
    "OUT_OF_MEMORY": lambda: torch.ones(1, requires_grad=True).expand(2**45)[3].backward(),
    "HOOK_CHANGED": lambda: hooked(lambda g: g[:1]),
    "HOOK_WITHOUT_GRAD": lambda: torch.ones(2).register_hook(print),
    "RETAINED_WITHOUT_GRAD": lambda: torch.ones(2).retain_grad(),
    "HOOK_OF_NO_LEAF": lambda: (LEAF * 2).register_post_accumulate_grad_hook(print),
    "GRADIENT_ASSIGNED": lambda: setattr(torch.ones(3, requires_grad=True), "grad", torch.ones(2)),
    "SPARSE": sparse_gradient,
    "NO_ONE_VALUE": lambda: torch.vmap(lambda x: x.item())(LEAF),
    "NO_ONE_SHAPE": lambda: torch.vmap(lambda x: x.nonzero())(torch.ones(2, 2)),
    "WRITE_TO_UNMAPPED": lambda: torch.vmap(lambda x, y: y.__setitem__(0, x), (0, None))(LEAF, torch.ones(2)),
    "RANDOM_IN_VMAP": lambda: torch.vmap(lambda x: x + torch.rand(1))(LEAF),
    "ARGUMENTS_OF_VMAP": lambda: torch.vmap(lambda x, y: x + y)(torch.ones(2), torch.ones(3)),
    "TRANSFORMED_OUTPUT": lambda: torch.func.grad(lambda x: x * 2)(torch.ones(2)),
    "NO_RULE": lambda: torch.func.grad(lambda x: own_twice().apply(x).sum())(torch.ones(2)),
    "ENGINE_IN_TRANSFORM": lambda: torch.func.grad(lambda x: x.requires_grad_().sum())(torch.ones(2)),
    "NOT_DEPENDENT": lambda: torch.autograd.functional.jacobian(lambda x: x.detach(), torch.ones(2), strict=True),
    "NO_FORWARD_FORMULA": lambda: torch.func.jvp(
        lambda x: torch.nn.functional.ctc_loss(x, torch.tensor([[1]]), torch.tensor([3]), torch.tensor([1])),
        *((torch.zeros(3, 1, 2),), (torch.zeros(3, 1, 2),)),
    ),
}


@pytest.mark.parametrize("name", RAISED)
def test_pytorch_says_it(name):
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as caught:
        RAISED[name]()
    assert messages.says(caught.value, getattr(messages, name))


def test_a_call_has_the_first_reason_that_fits():
    found = {
        reason: messages.says("element 0 of tensors does not require grad", words)
        for reason, words in messages.AUTOGRAD_CALL
    }
    assert [reason for reason, fits in found.items() if fits] == ["no_grad"]


def literals(path):
    """The strings of a module that are no docstrings."""
    tree = ast.parse(path.read_text())
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in said)
    return [node.value for node in nodes if isinstance(node.value, str)]


def test_no_other_module_spells_them():
    package = Path(graphwidget.__file__).parent
    words = {word for name in RAISED for word in getattr(messages, name)}
    paths = (path for path in package.rglob("*.py") if path.name != "torch_messages.py")
    assert not [
        (path.name, word) for path in paths for text in literals(path) for word in words if text.startswith(word)
    ]
