"""What PyTorch checks in code of the program's own that a backward runs: custom Functions, and hooks."""

from __future__ import annotations

from graphwidget.diagnosis.findings.refusals.checks import edits
from graphwidget.diagnosis.findings.refusals.checks.check import Check
from graphwidget.model import torch_messages

__all__ = ["OF_OWN_CODE"]

OF_OWN_CODE = (
    # ---- custom Functions
    Check(
        torch_messages.SAVED_NO_TENSOR,
        "`save_for_backward` was given something that is no tensor.",
        "`ctx.save_for_backward` keeps tensors, so that PyTorch can free them and see whether they are modified. It "
        "takes nothing else, and is checked when `forward` has returned.",
        ("save_for_backward", "Keep numbers, shapes and flags as attributes: `ctx.scale = scale`."),
    ),
    Check(
        torch_messages.DIRTY_NOT_RETURNED,
        "What `forward` modified in place is not what it returned.",
        "`ctx.mark_dirty(x)` says that `forward` has modified `x`. PyTorch then gives that tensor the Function as its "
        "history, so `forward` has to return it.",
        ("mark_dirty", "Return the tensor that was marked itself, and no copy or view of it."),
        makers=("mark_dirty",),
    ),
    Check(
        torch_messages.DIRTY_LEAF,
        "{line} lets a Function modify a leaf that requires grad.",
        "A leaf that a recorded operation modifies is a leaf no longer, and its `.grad` would have no meaning.",
        ("out_of_place", "Let `forward` make a new tensor, or give the Function a copy: `x.clone()`."),
        edit=edits.clones_leaves,
    ),
    Check(
        torch_messages.DIRTY_VIEW,
        "{line}: a Function that modifies a view may return only that.",
        "The history of a view that is modified in place has to be written anew, which PyTorch does for Functions with "
        "one output.",
        ("clone_before_inplace", "Give the Function a copy (`x.clone()`), or let it return one tensor."),
    ),
    Check(
        torch_messages.MARKED_NO_TENSOR,
        "`mark_non_differentiable` was given something that is no tensor.",
        "It takes outputs of `forward` that have no gradient, as tensors.",
        ("mend_the_code", "Pass it the tensors that `forward` returns."),
        makers=("mark_non_differentiable",),
    ),
    Check(
        torch_messages.NO_FORWARD,
        "{line} applies a Function that has no `forward`.",
        "`apply` runs the static method `forward` of the class.",
        ("static_methods", "Write `forward(ctx, ...)` as a static method. See the spelling and the indentation."),
    ),
    Check(
        torch_messages.RETURNED_INPUT_SAVED,
        "{line}: a Function saves an input that it returns unchanged.",
        "With `setup_context`, PyTorch cannot tell whether the saved tensor is to be the input or the output.",
        ("save_for_backward", "Return and save a view of it: `x.view_as(x)`."),
    ),
    Check(
        torch_messages.TWO_BACKWARDS,
        "{line} applies a Function that has both a `backward` and a `vjp`.",
        "`vjp` is another name for `backward`, and PyTorch takes one of them.",
        ("mend_the_code", "Keep one of the two."),
    ),
    Check(
        torch_messages.TANGENT_OF_NOTHING,
        "{node}: `jvp` returns a tangent for an output that has none.",
        "An output that is no tensor of floating point, or was marked as not differentiable, has no tangent.",
        ("return_all_gradients", "Return None in its place."),
    ),
    Check(
        torch_messages.OF_A_FUNCTION_S_OBJECT,
        "{line} reads from a Function what belongs to one of its calls.",
        "`apply` makes an object for each call: what `forward` and `backward` are given as `ctx`. The class and "
        "objects that the program makes itself have none of its fields.",
        ("static_methods", "Read it from `ctx`, in a static `forward` or `backward`; call the Function by `.apply`."),
    ),
    # ---- hooks
    Check(
        torch_messages.HOOK_NOT_CALLABLE,
        "{line} registers a hook that cannot be called.",
        "A hook is a function. What was passed is, for example, what a function returned: `register_hook(f(x))`.",
        ("mend_the_code", "Pass the function itself: `register_hook(f)`."),
        edit=edits.not_called,
    ),
    Check(
        torch_messages.SAVED_HOOKED_TWICE,
        "{line} hooks a saved tensor that cannot be hooked.",
        "A saved tensor takes one pair of hooks, and only if it is a tensor: some operations save None.",
        ("read_saved_once", "Register once for each, and leave out those that are None."),
    ),
    Check(
        torch_messages.HOOK_RETURNS,
        "A hook that runs after `.grad` was written returns something.",
        "`register_post_accumulate_grad_hook` calls it with the parameter when its `.grad` is there. Nothing takes "
        "what it returns, so PyTorch checks that it is None.",
        ("return_nothing", "Change `param.grad` in the hook, and return nothing."),
        makers=("register_post_accumulate_grad_hook",),
        edit=edits.hook_without_return,
    ),
    Check(
        torch_messages.HOOKS_MIXED,
        "{line}: a module has backward hooks of both kinds.",
        "`register_backward_hook` is the old kind, which gets wrong gradients for modules of several operations.",
        ("full_backward_hook", "Use `register_full_backward_hook` for all of them."),
        edit=edits.renamed("register_backward_hook", "register_full_backward_hook"),
    ),
    Check(
        torch_messages.PACK_WRITES,
        "A hook for saved tensors modifies what it is given.",
        "The hook is given the tensor that the program goes on to use, so a write would change its values.",
        ("out_of_place", "Let the hook make a new tensor: `t.clone()`, or an operation without `_`."),
        makers=("saved_tensors_hooks",),
        edit=edits.without_underscore,
    ),
    Check(
        torch_messages.UNPACKED_NO_TENSOR,
        "A hook for saved tensors returns something that is no tensor.",
        "The second hook gets what the first one returned, and has to make the saved tensor of it again.",
        ("mend_the_code", "Return a tensor of the same shape, type and device, for example by `torch.from_numpy`."),
        makers=("saved_tensors_hooks",),
    ),
)
