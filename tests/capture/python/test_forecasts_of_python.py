"""Forecasts of calls that run Python code, next to what the engine then does."""

import pytest
import torch
from torch.autograd import Function

from graphwidget import forecast, track


class Square(Function):
    """The base of the classes below, which differ in how their backward reads the saved tensors."""

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
        lambda ctx, g: torch.autograd.grad(ctx.product, ctx.factors, g),
        lambda ctx, g: torch.stack((g, g)).unbind(),
        lambda ctx, g: (g * 2,) + (None,) * 1,
    ],
)
def test_as_many_gradients_as_inputs_must_be_returned(backward):
    class Two(Function):
        @staticmethod
        def forward(ctx, x, scale):
            with torch.enable_grad():
                a, b = x.detach().requires_grad_(), scale.detach().requires_grad_()
                ctx.product, ctx.factors = a * b, (a, b)
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
        assert told.ok is not False


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


def second_call(loss):
    """Return the forecast of a second call, and whether the call works."""
    loss.backward(retain_graph=True)
    told = forecast(loss)
    try:
        loss.backward()
    except Exception as error:
        return told, error
    return told, None


def test_a_selective_checkpoint_is_not_said_to_work_twice():
    from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

    def policy(ctx, operator, *args, **kwargs):
        kept = operator == torch.ops.aten.mm.default
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    w = torch.rand(3, 3, requires_grad=True)
    with track():
        loss = checkpoint(
            lambda x: (x @ w).sin(),
            torch.rand(2, 3),
            use_reentrant=False,
            context_fn=lambda: create_selective_checkpoint_contexts(policy),
        ).sum()
        first = forecast(loss)
        assert first.ok and first.assumes
        told, error = second_call(loss)
    assert error is not None and "an extra time" in str(error)
    assert told.ok is None and "selective" in told.why


@pytest.mark.parametrize("method", [False, True])
def test_a_parameter_frozen_after_a_checkpoint_of_its_module_leaves_the_outcome_open(method):
    from torch.utils.checkpoint import checkpoint

    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    with track():
        part = net.forward if method else net
        loss = checkpoint(part, torch.rand(2, 3, requires_grad=True), use_reentrant=False).sum()
        assert forecast(loss).ok
        net[0].weight.requires_grad_(False)
        assert forecast(loss).ok is None
        with pytest.raises(torch.utils.checkpoint.CheckpointError):
            loss.backward()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_scripted_function_saved_cannot_be_seen():
    @torch.jit.script
    def scripted(x, y):
        a = torch.sigmoid(x * y)
        b = torch.tanh(a * x)
        return a * b + y

    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    with track():
        for _ in range(4):  # it gets compiled during these calls
            loss = scripted(x, y).sum()
        assert "DifferentiableGraph" in loss.grad_fn.next_functions[0][0].name()
        told = forecast(loss)
        assert told.ok and told.assumes
        loss.backward()
        assert forecast(loss).ok is None
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()


def test_hooks_on_several_tensors_leave_the_call_foreseen():
    x = torch.rand(3, requires_grad=True)
    with track():
        a, b = x * 2, x.exp()
        torch.autograd.graph.register_multi_grad_hook([a, b], lambda gradients: None)
        loss = (a + b).sum()
        told = forecast(loss)
        assert told.ok and told.assumes
        loss.backward()


@pytest.mark.parametrize("expanded", [False, True])
def test_a_hook_that_clips_its_gradient_in_place_is_assumed_to_succeed(expanded):
    x = torch.rand(3, requires_grad=True)
    x.register_hook(lambda g: g.clamp_(-0.1, 0.1))
    loss = x.sum() if expanded else (x * x).sum()
    told = forecast(loss)
    assert told.ok and told.assumes
    if expanded:  # the reason why the forecast is not certain
        with pytest.raises(RuntimeError, match="single memory location"):
            loss.backward()
    else:
        loss.backward()


def test_anomaly_detection_raises_where_a_gradient_is_nan():
    x = torch.zeros(2, requires_grad=True)
    loss = (x.sqrt() * 0).sum()
    assert not forecast(loss).assumes
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert not forecast(loss).assumes
        loss.backward(retain_graph=True)
    with pytest.warns(UserWarning, match="Error detected"), torch.autograd.set_detect_anomaly(True):
        assert any("NaN" in assumed for assumed in forecast(loss).assumes)
        with pytest.raises(RuntimeError, match="nan values"):
            loss.backward()


def test_a_leaf_given_data_of_another_shape_leaves_the_outcome_open():
    w = torch.ones(3, requires_grad=True)
    loss = (w**2).sum()
    with torch.no_grad():
        w.data = torch.full((3,), 2.0)
    assert forecast(loss).ok
    w.data = torch.ones(5)
    told = forecast(loss)
    assert told.ok is None and told.unknown_at.name == "PowBackward0" and "another shape" in told.why
    with pytest.raises(RuntimeError, match="size of tensor"):
        loss.backward()


def test_gradients_put_together_as_tuples_may_be_none():
    class Second(Function):
        @staticmethod
        def forward(ctx, x, scale):
            return x * scale

        @staticmethod
        def backward(ctx, g):
            return (None,) + (g,)

    x, scale = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    loss = Second.apply(x, scale).sum()
    assert forecast(loss, inputs=[x], api="grad", allow_unused=False).ok is None
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(loss, x)
