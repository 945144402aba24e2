"""Forecasts of calls that run Python code, next to what the engine then does."""

import pytest
import torch
from torch.autograd import Function

from graphwidget import forecast, track


class Square(Function):
    """Those below differ in how their backward gets at what this forward saves."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def rule(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


def rule(ctx, g):
    return 2 * ctx.saved_tensors[0] * g


def rule_by_keyword(g, *, saver):
    return rule(saver, g)


def passes_on(*args):
    return rule(*args)


class Callable:
    def __call__(self, ctx, g):
        return rule(ctx, g)


RULES, RULE = {"square": rule}, Callable()


class ThroughStaticMethod(Square):
    @staticmethod
    def backward(ctx, g):
        return Square.rule(ctx, g)


class ThroughKeyword(Square):
    @staticmethod
    def backward(ctx, g):
        return rule_by_keyword(g, saver=ctx)


class ThroughStar(Square):
    @staticmethod
    def backward(ctx, g):
        return passes_on(ctx, g)


class ThroughGetattr(Square):
    @staticmethod
    def backward(ctx, g):
        return 2 * getattr(ctx, "saved_tensors")[0] * g  # noqa: B009


class ThroughNested(Square):
    @staticmethod
    def backward(ctx, g):
        def inner():
            return 2 * ctx.saved_tensors[0] * g

        return inner()


class ThroughLambda(Square):
    @staticmethod
    def backward(ctx, g):
        get = lambda i: ctx.saved_tensors[i]  # noqa: E731
        return 2 * get(0) * g


class ThroughMatch(Square):
    @staticmethod
    def backward(ctx, g):
        match g.dim():
            case _:
                return 2 * ctx.saved_tensors[0] * g


class ThroughTable(Square):
    @staticmethod
    def backward(ctx, g):
        return RULES["square"](ctx, g)


class ThroughObject(Square):
    @staticmethod
    def backward(ctx, g):
        return RULE(ctx, g)


class ThroughOtherName(Square):
    @staticmethod
    def backward(ctx, g):
        c = ctx
        return 2 * c.saved_tensors[0] * g


class ThroughAttribute(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.read = lambda: ctx.saved_tensors
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.read()[0] * g


class AsVjp(Square):
    @staticmethod
    def vjp(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


FOLLOWED = [ThroughStaticMethod, ThroughKeyword, ThroughStar, ThroughGetattr, ThroughOtherName, AsVjp]
LOST = [
    ThroughNested,
    ThroughLambda,
    ThroughMatch,
    ThroughTable,
    ThroughObject,
    ThroughAttribute,
]


@pytest.mark.parametrize("function", [*FOLLOWED, *LOST])
def test_a_second_backward_through_what_may_read_its_saved_tensors_is_not_said_to_work(function):
    with track():
        loss = function.apply(torch.ones(3, requires_grad=True)).sum()
        assert forecast(loss).ok
        loss.backward()
        told = forecast(loss)
        assert told.reason == "freed" if function in FOLLOWED else told.ok is None
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()


def test_one_that_only_uses_other_attributes_of_ctx_works_twice():
    class Scale(Square):
        @staticmethod
        def backward(ctx, g):
            ctx.calls = 1
            return g * getattr(ctx, "scale", 2) if ctx.needs_input_grad[0] else None

    with track():
        loss = Scale.apply(torch.ones(3, requires_grad=True)).sum()
        loss.backward()
        told = forecast(loss)
        assert told.ok and not told.assumes
        loss.backward()


def test_an_operator_of_ones_own_is_read_where_its_formula_was_registered():
    @torch.library.custom_op("graphwidget_tests::square", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    square.register_autograd(rule, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    with track():
        loss = square(torch.ones(3, requires_grad=True)).sum()
        told = forecast(loss)
        assert told.ok and not told.assumes
        loss.backward()
        assert forecast(loss).reason == "freed"
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()


def test_a_gradient_returned_from_inside_match_is_not_called_missing():
    x = torch.ones(3, requires_grad=True)
    loss = ThroughMatch.apply(x).sum()
    assert forecast(loss, inputs=[x], api="grad", allow_unused=False).reason is None
    torch.autograd.grad(loss, x)


def test_a_class_with_both_backward_and_vjp_is_refused():
    class Both(AsVjp):
        @staticmethod
        def backward(ctx, g):
            return g

    loss = Both.apply(torch.ones(3, requires_grad=True)).sum()
    assert forecast(loss).reason == "raises"
    with pytest.raises(RuntimeError, match="not allowed"):
        loss.backward()


@pytest.mark.parametrize(
    "backward",
    [
        lambda ctx, g: (g * 1,),
        lambda ctx, g: g * 1,
        lambda ctx, g: None,
        lambda ctx, g: (None, None),
        lambda ctx, g: (g, g, None),
        lambda ctx, g: (g, g, g),
    ],
)
def test_as_many_gradients_as_inputs_must_be_returned(backward):
    class Two(Function):
        @staticmethod
        def forward(ctx, x, scale):
            return x * scale

    Two.backward = staticmethod(backward)
    loss = Two.apply(torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)).sum()
    told = forecast(loss)
    try:
        loss.backward()
    except RuntimeError as error:
        assert "incorrect number of gradients" in str(error)
        assert told.reason == "raises" and "for 2 inputs" in told.why
    else:
        assert told.ok and not told.assumes


def test_an_unpack_hook_that_takes_something_out_of_a_container_is_assumed_to_find_it():
    store = {}

    def pack(x):
        store[len(store)] = x.detach()
        return len(store) - 1

    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda key: store.pop(key)):
        loss = x.exp().sum()
    loss.backward(retain_graph=True)
    assert forecast(loss).assumes
    with pytest.raises(KeyError):
        loss.backward()
