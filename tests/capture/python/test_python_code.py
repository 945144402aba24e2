"""Reading Python code in the graph instead of running it."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import graphwidget as gw
from graphwidget.capture.python.code import Reading, read_backward, read_function

kept = []
table = {"n": 0}
rows = {"all": [None]}
other = torch.rand(2, requires_grad=True)


def test_arithmetic_on_arguments_is_plain():
    def f(ctx, g):
        x, y = ctx.saved_tensors
        return (x * g).sum(0), torch.exp(y) @ g.t()

    assert read_function(f) == Reading(True, "", True, (True, True), exact=True)


def test_a_backward_that_never_reads_what_was_saved_says_so():
    assert read_function(lambda ctx, g: g * 2).reads_saved is False


def test_reading_under_a_condition_or_after_an_early_return_is_no_certainty():
    def under(ctx, g):
        if g.sum() > 0:
            return g * ctx.saved_tensors[0]
        return g

    def after(ctx, g):
        if g.sum() > 0:
            return g
        return g * ctx.saved_tensors[0]

    def in_loop(ctx, g):
        for x in range(3):
            g = g * ctx.saved_tensors[x]
        return g

    assert [read_function(f).reads_saved for f in (under, after, in_loop)] == [None, None, None]
    assert read_function(under).plain


def test_gradients_that_are_none_are_distinguished_from_those_that_may_be():
    def f(ctx, g):
        first = second = None
        if g.sum() > 0:
            second = g * 2
        return g, None, first, second

    assert read_function(f).returns == (True, False, False, None)


def test_writing_into_a_tensor_made_here_is_plain_and_into_another_is_not():
    def own(ctx, g):
        g = g.clone()
        g[g < 0] = 0
        made = torch.zeros_like(g)
        made += g
        made.mul_(2)
        return made

    def theirs(ctx, g):
        g[g < 0] = 0
        return g

    def method(ctx, g):
        return g.mul_(2)

    def augmented(ctx, g):
        g += 1
        return g

    assert read_function(own).plain
    assert {read_function(f).effect for f in (theirs, method, augmented)} == {"writes into its argument in place"}


def test_writing_into_what_came_from_elsewhere_is_an_effect_whatever_else_is_written():
    def saved(ctx, g):
        g.mul_(2)
        ctx.saved_tensors[0].zero_()
        return g

    def helper(t):
        t.zero_()

    def through_helper(ctx, g):
        helper(ctx.saved_tensors[0])
        return g

    def outer(g):
        other.data[0] = 1
        return g

    assert {read_function(f).effect for f in (saved, through_helper, outer)} == {"writes into a tensor in place"}


def test_counting_and_filling_lists_is_not_taken_for_a_write_into_a_tensor():
    n = 0

    def f(g):
        nonlocal n
        n += 1
        rows["all"][0] = g
        f.calls += 1

    assert not read_function(f).effect and not read_function(f).plain


def test_counting_in_a_dict_and_appending_to_a_list_is_plain():
    def f(g):
        table["n"] += 1
        kept.append(g)
        return None if g is None else g * 0.5

    assert read_function(f).plain


def test_backward_is_an_effect_wherever_it_is_called():
    def helper():
        other.sum().backward()

    def through_helper(g):
        helper()
        return g

    def direct(g):
        torch.autograd.backward([other])
        return g

    assert read_function(through_helper).effect == read_function(direct).effect == "calls backward itself"


def test_grad_of_leaves_detached_here_is_plain_and_of_others_an_effect():
    def own(ctx, g):
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            (d,) = torch.autograd.grad(x.sin().sum(), x)
        return d * g

    def theirs(ctx, g):
        (d,) = torch.autograd.grad(other.sin().sum(), other)
        return d * g

    assert read_function(own).plain and read_function(own).returns == (True,)
    assert read_function(theirs).effect


def test_leaves_detached_in_a_comprehension_are_leaves_of_ones_own():
    def own(ctx, g):
        x, w = [t.detach().requires_grad_() for t in ctx.saved_tensors]
        with torch.enable_grad():
            y = (x * w).tanh()
        return torch.autograd.grad(y, (x, w), g)

    def borrowed(ctx, g):
        leaves = [t for t in ctx.saved_tensors if t.requires_grad]
        with torch.enable_grad():
            y = leaves[0].tanh()
        return torch.autograd.grad(y, leaves, g)

    assert not read_function(own).effect
    assert read_function(borrowed).effect


def test_raising_always_is_an_effect_and_raising_perhaps_only_not_plain():
    def always(ctx, g):
        raise NotImplementedError

    def perhaps(ctx, g):
        if g is None:
            raise ValueError
        return g

    def helper_perhaps(ctx, g):
        if g is None:
            always(ctx, g)
        return g

    assert read_function(always).effect == "raises"
    for f in (perhaps, helper_perhaps):
        read = read_function(f)
        assert not read.plain and not read.effect


def test_changing_a_gradient_is_an_effect():
    def f(p):
        p.grad = None

    assert read_function(f).effect


def test_what_cannot_be_looked_into_is_not_plain():
    module = torch.nn.Linear(2, 2)

    def calls_a_module(x):
        return module(x)

    def calls_an_argument(ctx, g):
        return ctx.kernel(g)

    def checkpoints(x):
        return checkpoint(torch.sin, x, use_reentrant=False)

    for f in (calls_a_module, calls_an_argument, checkpoints, torch.sin, module, 3, eval("lambda g: g")):
        read = read_function(f)
        assert not read.plain and not read.effect


def test_a_helper_that_is_defined_anew_is_read_anew():
    scope = {"torch": torch}

    def f(g):
        return helper(g)  # noqa: F821 (in `scope`)

    def plain(g):
        return g * 2

    def loud(g):
        g.backward()

    f = type(f)(f.__code__, scope, "f")
    scope["helper"] = plain
    assert read_function(f).plain
    scope["helper"] = loud
    assert read_function(f).effect


def test_source_that_is_not_what_was_compiled_is_not_believed(tmp_path):
    path = tmp_path / "mod.py"
    path.write_text("def f(g):\n    return g.backward()\n")
    scope = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    path.write_text("def f(g):\n    return g.sin()\n")
    assert read_function(scope["f"]) == Reading()


def test_once_differentiable_is_looked_through():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    assert read_backward(Once) == Reading(True, "", True, (True,), exact=True)


class Nosy:
    """An object that records every access to it."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was looked up")

    @property
    def __class__(self):
        raise AssertionError("__class__ was looked up")

    def __call__(self, *_):
        raise AssertionError("it was called")


NOSY = Nosy()
SHARED = [1.0, 2.0]


def calls_nosy(ctx, g):
    return NOSY(g) * NOSY.scale(g)


def writes_into_nosy(ctx, g):
    NOSY[0] += g
    return g


def writes_into_a_starred_name(ctx, g):
    _, *SHARED = ctx.saved_tensors
    SHARED[0] += g
    return g


def writes_into_a_global_list(ctx, g):
    SHARED[0] += 1
    return g


def makes_a_starred_name_twice(ctx, g):
    first, *rest = ctx.saved_tensors
    if len(rest) > 3:
        rest = torch.zeros(2)
    rest[0] += g
    return g


def test_reading_runs_nothing_of_an_object_that_is_called():
    assert not read_function(calls_nosy).plain
    assert not read_function(writes_into_nosy).plain


def test_starred_names_are_local():
    assert read_function(writes_into_a_starred_name).effect
    assert read_function(makes_a_starred_name_twice).effect
    assert not read_function(writes_into_a_global_list).effect


def test_gradients_that_are_returned_as_they_came_are_tensors():
    def same(ctx, *grads):
        return grads

    def changed(ctx, *grads):
        grads = [None for _ in grads]
        return grads

    def all_of_it(*everything):
        return everything

    assert read_function(same).returns == (True,)
    assert read_function(changed).returns != (True,) and read_function(all_of_it).returns != (True,)


@pytest.mark.parametrize("hooked", [0, 2])
def test_a_module_with_a_backward_hook_hands_its_gradients_on(hooked):
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    net[hooked].register_full_backward_hook(lambda module, given, got: None)
    with gw.track():
        loss = net(torch.rand(2, 3)).sum()
        told = gw.forecast(loss)
        loss.backward()
    assert told.ok and len(told.reaches) == 4 and all(p.grad is not None for p in net.parameters())
