"""What a custom Function does behind autograd's back."""

from told import findings_of, said

CLASS = (
    "class F(torch.autograd.Function):\n"
    "    @staticmethod\n    def forward(ctx, x, w):\n{forward}\n"
    "    @staticmethod\n    def backward(ctx, g):\n        return g, None\n"
    "v = torch.randn(3, requires_grad=True)\nw = torch.tensor(2.0)"
)
RUN = "h = v * 2\nloss = F.apply(h, w).sum()\nloss.backward()"


def function(*lines: str) -> str:
    return CLASS.replace("{forward}", "\n".join(f"        {line}" for line in lines))


def test_an_input_that_is_modified_without_a_word_is_named() -> None:
    (found,) = findings_of(function("x.clamp_(min=0)", "return x"), RUN)
    assert found.headline == "`F.forward` modifies `x` without `mark_dirty`."
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 4)
    assert found.fixes[0].edits[0].new.strip() == "ctx.mark_dirty(x)"


def test_what_is_marked_or_copied_or_needs_no_gradient_may_be_modified() -> None:
    assert not said(function("x.clamp_(min=0)", "ctx.mark_dirty(x)", "return x"), RUN)
    assert not said(function("x = x.clone()", "x.clamp_(min=0)", "return x"), RUN)
    assert not said(function("w.mul_(0.9)", "return x * 1"), RUN)


def test_what_a_method_has_made_anew_may_be_modified() -> None:
    assert not said(function("keep = x.new_empty(x.shape).uniform_() > 0.5", "return x * keep"), RUN)
    assert not said(function("y = x.clone().clamp_(min=0)", "return y"), RUN)


def test_a_write_through_a_view_is_named() -> None:
    (found,) = findings_of(function("x.view(-1)[1:].zero_()", "return x"), RUN)
    assert found.headline == "`F.forward` modifies `x` without `mark_dirty`."


def test_who_writes_through_data_means_to_hide_it() -> None:
    """An ODE solver fills its scratch space so, and hands it on with a backward of its own."""
    assert not said(function("x.data[0] = 1  # past the version counter", "return x"), RUN)
    assert not said(function("x.data.clamp_(min=0)", "return x"), RUN)


def test_a_tensor_that_is_kept_on_ctx_and_written_to_is_named() -> None:
    cell = RUN.replace("loss.backward()", "w.mul_(3)\nloss.backward()")
    (found,) = findings_of(function("ctx.w = w", "return x * 1"), cell)
    assert "keeps it on `ctx`" in found.headline and found.modified_at is not None and found.modified_at.line == 3
    assert "save_for_backward" in found.names


def test_a_tensor_on_ctx_that_nothing_writes_to_is_fine() -> None:
    assert not said(function("ctx.w = w", "return x * 1"), RUN)
    assert not said(function("ctx.w = w", "return x * 1"), RUN + "\nw.mul_(3)")


SOLVER = """
def fill(x):
    out = torch.empty(2, 3)
    out[0] = x
    out[1] = x * 2
    return out
class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = fill(x)
        ctx.save_for_backward(out)
        return out
    @staticmethod
    def backward(ctx, gradient):
        out, = ctx.saved_tensors
        return (gradient * out.sign()).sum(0)
w = torch.ones(3, requires_grad=True)
for _ in range(3):
    found = Solve.apply(w)
    (found * 2).sum().backward()
"""


def test_what_the_code_that_a_forward_calls_writes_is_written_before_it_saves():
    assert said(SOLVER) == []
