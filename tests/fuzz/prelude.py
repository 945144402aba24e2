"""Names for the programs of the fuzz, besides torch: custom Functions, hooks, checkpointed functions, threads."""

# ruff: noqa: F401
from __future__ import annotations

import threading
from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

counts: Counter[str] = Counter()  # how often hooks and recomputing ran; observing must not change it
ELSEWHERE: list[torch.Tensor] = []  # tensors on which `Elsewhere` calls backward
_depth = [0]

Function = torch.autograd.Function


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class SavesNothing(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class NeverReads(Function):
    """Saves a tensor, but survives any number of calls."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + 1

    @staticmethod
    def backward(ctx, g):
        return g


class KeepsOnCtx(Function):
    """Keeps its tensor as an attribute of ctx, which is neither freed nor checked."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x.detach()
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.x * g


class ReadsNothing(Function):
    """Reads `saved_tensors` although it saved none: fails the second time anyway."""

    @staticmethod
    def forward(ctx, x):
        return x + 2

    @staticmethod
    def backward(ctx, g):
        ctx.saved_tensors
        return g


class TwoOutputs(Function):
    @staticmethod
    def forward(ctx, x, y):
        e = x.tanh()
        ctx.save_for_backward(y, e)
        return e * 1, x * y

    @staticmethod
    def backward(ctx, g1, g2):
        y, e = ctx.saved_tensors
        return g1 * (1 - e * e) + g2 * y, g2


class SavesOutput(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.sigmoid()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y * (1 - y)


class NoneForOne(Function):
    @staticmethod
    def forward(ctx, x, y, factor=2.0):
        ctx.save_for_backward(x)
        return x + y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x, None, None


class NoneForAll(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, g):
        return None, None


class OnceDifferentiable(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class WritesIntoInput(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


class UndefinedGradients(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x * 1, x * 2

    @staticmethod
    def backward(ctx, a, b):
        (x,) = ctx.saved_tensors
        if a is None and b is None:
            return None
        return (0 if a is None else a) + (0 if b is None else b)


class OwnGraph(Function):
    """Calls autograd.grad inside its backward, on a graph made there."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            y = z.sin()
            (d,) = torch.autograd.grad(y, z, g.detach())
        return d


class WritesIntoCopy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g = g.clone()
        g[x < 0] = 0
        return g


class ReadsPerhaps(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx, g):
        if g.sum() > 5:
            (x,) = ctx.saved_tensors
            return g * x
        return g


class Raises(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise ValueError("boom in a custom backward")


class Elsewhere(Function):
    """Calls backward on a tensor of another graph, inside its own backward."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        if ELSEWHERE:
            nested_backward(ELSEWHERE[-1])
        return g


def nested_backward(tensor):
    """Call backward a limited number of times: a hook on its own ancestor would recurse for ever."""
    if _depth[0] >= 2:
        return
    _depth[0] += 1
    try:
        tensor.backward(torch.ones_like(tensor))
    except RuntimeError:
        pass
    finally:
        _depth[0] -= 1


def pack(tensor):
    counts["pack"] += 1
    return tensor


def unpack(tensor):
    counts["unpack"] += 1
    return tensor


def pack_copy(tensor):
    counts["pack"] += 1
    return ("copy", tensor.detach().clone())


def unpack_copy(packed):
    counts["unpack"] += 1
    return packed[1]


def one(a):
    counts["recompute"] += 1
    return (a.exp() * a).sin()


def two(a, b):
    counts["recompute"] += 1
    return (a.tanh() * b) @ b.sigmoid()


def noisy(a):
    counts["recompute"] += 1
    return F.dropout(a * a, 0.5)


def closing_over(tensor):
    def closure(a):
        counts["recompute"] += 1
        return (a * tensor).tanh() * tensor

    return closure


def _refresh(tensor):
    """Reading grad_fn first avoids a crash of torch 2.13 when a hook is put on a stale view."""
    return tensor.grad_fn if tensor._is_view() else None


def harmless_hook(tensor):
    _refresh(tensor)

    def halve(g):
        counts["hook"] += 1
        return None if g is None else g * 0.5

    tensor.register_hook(halve)


def harmless_leaf_hook(leaf):
    def count(p):
        counts["hook"] += 1

    leaf.register_post_accumulate_grad_hook(count)


def nested_hook(tensor, other):
    _refresh(tensor)
    tensor.register_hook(lambda g: nested_backward(other))


def raising_hook(tensor):
    _refresh(tensor)

    def boom(g):
        raise ValueError("boom in a hook")

    tensor.register_hook(boom)


def optimizing_hook(leaf):
    def step(p):
        with torch.no_grad():
            p.sub_(0.1 * p.grad)
        p.grad = None

    leaf.register_post_accumulate_grad_hook(step)


def in_thread(function):
    """Run a function in a new thread: nodes made there get that thread's sequence numbers."""
    box = []

    def run():
        try:
            box.append((function(), None))
        except BaseException as error:
            box.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = box[0]
    if error is not None:
        raise error
    return result


def defined(tensors):
    """Return the gradients that are tensors."""
    return [tensor for tensor in tensors if tensor is not None]


def second_order(a, b, function):
    """Return a tensor computed from gradients that have a graph themselves."""
    leaves = [t for t in (a, b) if t.requires_grad] or [torch.ones(4, 4, requires_grad=True)]
    loss = (function(a * 1.5) * b * b + function(leaves[0])).sum()
    return sum(defined(torch.autograd.grad(loss, leaves, create_graph=True, allow_unused=True))) + a
