"""Forecasts of calls through derivatives of derivatives, next to what the engine then does.

A node generated from a formula may pass on no gradient, or have no formula for one of its inputs.
"""

import pytest
import torch
import torch.nn.functional as F

from graphwidget import forecast

LABELS = torch.tensor([0, 1, 2])
TWO, CUBE = torch.rand(3, 4), torch.rand(1, 2, 6, 6)
ONES = torch.ones(3, 4)


def likelihoods(x):
    return (x * 0.5 + 0.2).clamp(0.1, 0.9)


# Function, inputs. Forecasts for all of these are as definite as for the first order.
COMPLETE = {
    "adaptive_avg_pool": (lambda x: F.adaptive_avg_pool2d(x, 2), [CUBE]),
    "adaptive_max_pool": (lambda x: F.adaptive_max_pool2d(x, 2), [CUBE]),
    "avg_pool": (lambda x: F.avg_pool2d(x, 2), [CUBE]),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), [torch.rand(1, 1, 4, 4, 4)]),
    "binary_cross_entropy": (lambda x, t: F.binary_cross_entropy(likelihoods(x), likelihoods(t)), [TWO, TWO]),
    "diagonal": (lambda x: x.diagonal(), [TWO]),
    "elu": (F.elu, [TWO]),
    "embedding": (lambda x: F.embedding(LABELS, x), [TWO]),
    "fractional_max_pool": (lambda x: F.fractional_max_pool2d(x, 2, output_size=3), [CUBE]),
    "gelu": (F.gelu, [TWO]),
    "glu": (F.glu, [TWO]),
    "hardshrink": (F.hardshrink, [TWO]),
    "hardswish": (F.hardswish, [TWO]),
    "hardtanh": (F.hardtanh, [TWO]),
    "huber_loss": (F.huber_loss, [TWO, TWO + 0.1]),
    "leaky_relu": (F.leaky_relu, [TWO]),
    "logsigmoid": (F.logsigmoid, [TWO]),
    "masked_scatter": (lambda x, y: x.masked_scatter(TWO > 0.5, y), [TWO, TWO]),
    "max_pool": (lambda x: F.max_pool2d(x, 2), [CUBE]),
    "mse_loss": (F.mse_loss, [TWO, TWO + 0.1]),
    "nll_loss": (lambda x: F.cross_entropy(x, LABELS), [TWO]),
    "nll_loss2d": (lambda x: F.cross_entropy(x, torch.zeros(1, 6, 6, dtype=torch.long)), [CUBE]),
    "pad1d": (lambda x: F.pad(x, (1, 1), mode="reflect"), [TWO]),
    "pad2d": (lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), [CUBE]),
    "relu": (F.relu, [TWO]),
    "rrelu": (lambda x: F.rrelu(x, training=True), [TWO]),
    "select": (lambda x: x[0], [TWO]),
    "sigmoid": (torch.sigmoid, [TWO]),
    "slice": (lambda x: x[:, 1:], [TWO]),
    "smooth_l1_loss": (F.smooth_l1_loss, [TWO, TWO + 0.1]),
    "soft_margin_loss": (lambda x: F.soft_margin_loss(x, ONES), [TWO]),
    "softmax": (lambda x: x.softmax(1), [TWO]),
    "softplus": (F.softplus, [TWO]),
    "softshrink": (F.softshrink, [TWO]),
    "tanh": (torch.tanh, [TWO]),
    "unfold": (lambda x: x.unfold(1, 2, 1), [TWO]),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), [CUBE]),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [CUBE]),
}
DOUBTFUL = {
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, torch.zeros(4), torch.ones(4), w, b, False),
        [TWO, torch.rand(4), torch.rand(4)],
    ),
    "batch_norm_in_training": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [TWO, TWO[0], TWO[1]]),
    "cdist": (torch.cdist, [TWO, TWO + 0.1]),
    "conv": (F.conv2d, [CUBE, torch.rand(3, 2, 3, 3), torch.rand(3)]),
    "embedding_bag": (lambda w: F.embedding_bag(torch.tensor([[0, 1]]), w, mode="max"), [TWO]),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        [CUBE, torch.rand(1, 3, 3, 2) - 0.5],
    ),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [torch.rand(2, 4, 3), TWO[0], TWO[1]]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), [TWO, TWO[0], TWO[1]]),
}


def outcome(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("name", [*COMPLETE, *DOUBTFUL])
def test_which_leaves_a_second_derivative_reaches(name, squared):
    torch.manual_seed(0)
    function, values = {**COMPLETE, **DOUBTFUL}[name]
    leaves = [value.clone().requires_grad_() for value in values]
    y = function(*leaves)
    loss = (y * y if squared else y).sum()
    for leaf in leaves:
        (g,) = torch.autograd.grad(loss, leaf, create_graph=True)
        if not g.requires_grad:
            continue
        second = g.pow(2).sum()
        told = forecast(second, retain_graph=True)
        assert told.ok and (not told.assumes or name in DOUBTFUL)
        used = [forecast(second, inputs=[x], api="grad", allow_unused=False) for x in leaves]
        for x, use in zip(leaves, used, strict=True):
            if not use.assumes:
                assert use.ok == outcome(torch.autograd.grad, second, x, retain_graph=True), use.why
        for x in leaves:
            x.grad = None
        works = outcome(second.backward, retain_graph=True)
        if not told.assumes:
            assert works and len(told.reaches) == sum(x.grad is not None for x in leaves)


@pytest.mark.parametrize("function", [torch.special.gammainc, torch.special.gammaincc, torch.special.zeta])
def test_a_formula_that_lacks_a_part_is_assumed_not_to_need_it(function):
    loss = function(torch.rand(3, requires_grad=True) + 2, torch.rand(3, requires_grad=True)).sum()
    assert forecast(loss).assumes
    with pytest.raises(RuntimeError, match="is not implemented"):
        loss.backward()
