"""What PyTorch checks, and why: a list of texts.

Where it happened (the line, the node, the module, the shapes) is found as for any other error. What needs more, such as
a look at the program, has a module of its own.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from graphwidget.model import torch_messages

__all__ = ["CHECKS", "Check"]

Kind = Literal["refused", "no_grad"]


class Check(NamedTuple):
    """A check of PyTorch's. `{line}` in its headline is the line that raised; `{node}` the operation, or the line.

    `makers`: functions and keywords by which a program asks for what is checked. The only such call is the cause.
    """

    words: tuple[str, ...]
    headline: str
    why: str
    fix: tuple[str, str]
    kind: Kind = "refused"
    makers: tuple[str, ...] = ()


CHECKS = (
    # ---- linear algebra
    Check(
        torch_messages.PHASE,
        "The loss depends on a factor that {node} leaves open.",
        "Eigenvectors and singular vectors of a complex matrix are fixed only up to a factor of length 1. PyTorch "
        "checks that the loss does not depend on that factor: if it does, it has no derivative.",
        (
            "differentiable_op",
            "Compute the loss from what the factor does not change: the values (`eigvals`, `svdvals`), absolute values "
            "of the vectors, or products such as `u @ diag(s) @ vh`. Or divide each vector by the sign (`torch.sgn`) "
            "of one of its elements first.",
        ),
    ),
    Check(
        torch_messages.FACTOR_MISSING,
        "{node} has no derivative in this mode.",
        "The derivative of a QR decomposition is computed from Q. In the mode that was asked for, Q is not there, or "
        "is not determined by the matrix.",
        ("differentiable_op", "Write `mode='reduced'`."),
        makers=("qr",),
    ),
    # ---- torch.compile
    Check(
        torch_messages.COMPILED_TWICE,
        "A gradient that comes out of a compiled function cannot be differentiated.",
        "`torch.compile` has compiled the function's backward too, and that has no derivative of its own. The gradient "
        "was computed with `create_graph=True`, and this call goes back through it.",
        (
            "differentiable_backward",
            "Where a gradient is differentiated (a penalty on gradients, forces, a step of meta-learning), call the "
            "module as it was before `torch.compile` (`net._orig_mod`), or compile it with `backend='eager'`.",
        ),
        makers=("compile",),
    ),
    Check(
        torch_messages.COMPILED_KEPT,
        "A compiled function's graph cannot be kept.",
        "A compiled backward writes its results into the memory of saved tensors, so it can run once only. PyTorch "
        "checks that neither `retain_graph=True` nor `create_graph=True` asks for more.",
        (
            "single_backward_sum",
            "Run one backward on the sum of the losses, without `retain_graph=True`. If the graph must be kept: "
            "`torch._functorch.config.donated_buffer = False` before the first call, which takes more memory.",
        ),
        makers=("compile",),
    ),
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
    ),
    Check(
        torch_messages.DIRTY_VIEW,
        "{line}: a Function that modifies a view may return only that.",
        "The history of a view that is modified in place has to be written anew, which PyTorch does for Functions with "
        "one output.",
        ("clone_before_inplace", "Give the Function a copy (`x.clone()`), or let it return one tensor."),
    ),
    Check(
        torch_messages.VIEW_OF_FUNCTION,
        "{line} modifies a view that a Function has returned.",
        "The Function returned a view of its input, or the input itself. A write to that would give it another "
        "history, and the Function's backward would no longer run.",
        ("out_of_place", "Make a new tensor in place of the write, or let `forward` return a copy: `.clone()`."),
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
    # ---- hooks
    Check(
        torch_messages.HOOK_RETURNS,
        "A hook that runs after `.grad` was written returns something.",
        "`register_post_accumulate_grad_hook` calls it with the parameter when its `.grad` is there. Nothing takes "
        "what it returns, so PyTorch checks that it is None.",
        ("mend_the_code", "Change `param.grad` in the hook, and return nothing."),
        makers=("register_post_accumulate_grad_hook",),
    ),
    Check(
        torch_messages.HOOKS_MIXED,
        "{line}: a module has backward hooks of both kinds.",
        "`register_backward_hook` is the old kind, which gets wrong gradients for modules of several operations.",
        ("hook_on_the_tensor", "Use `register_full_backward_hook` for all of them."),
    ),
    Check(
        torch_messages.PACK_WRITES,
        "A hook for saved tensors modifies what it is given.",
        "The hook is given the tensor that the program goes on to use, so a write would change its values.",
        ("out_of_place", "Let the hook make a new tensor: `t.clone()`, or an operation without `_`."),
        makers=("saved_tensors_hooks",),
    ),
    Check(
        torch_messages.UNPACKED_NO_TENSOR,
        "A hook for saved tensors returns something that is no tensor.",
        "The second hook gets what the first one returned, and has to make the saved tensor of it again.",
        ("mend_the_code", "Return a tensor of the same shape, type and device, for example by `torch.from_numpy`."),
        makers=("saved_tensors_hooks",),
    ),
    # ---- what a call is asked for
    Check(
        torch_messages.GRADIENTS_GIVEN,
        "{line}: there is not one gradient for each root.",
        "Each root begins with a gradient of its own: as many `grad_outputs` as outputs, in their order. None stands "
        "for 1 where a root is one number.",
        ("pass_gradient", "Pass one for each, or None: `grad_outputs=[torch.ones_like(a), None]`."),
    ),
    Check(
        torch_messages.NO_INPUTS,
        "{line} asks for the gradients of nothing.",
        "`inputs` limits the call to some leaves, and was given none: a generator that has run out, or a filter that "
        "leaves nothing.",
        ("mend_the_code", "Pass a list that is not empty, or leave `inputs` out: then all leaves get their `.grad`."),
    ),
    Check(
        torch_messages.NO_TENSORS_ASKED,
        "{line} asks for the gradient of something that is no tensor.",
        "Gradients exist for tensors that were used in the graph. A module, a name or a number is none.",
        ("mend_the_code", "Pass tensors: for a module `list(net.parameters())`."),
    ),
    Check(
        torch_messages.ROOT_NO_TENSOR,
        "{line} begins at something that is no tensor.",
        "A backward begins at tensors that have a graph. A number, such as `loss.item()`, has none.",
        ("mend_the_code", "Pass the tensors themselves."),
    ),
    Check(
        torch_messages.UNUSED_MATERIALIZED,
        "{line}: `materialize_grads=True` needs unused inputs to be allowed.",
        "It gives zeros for inputs that were not used, and `allow_unused=False` forbids these.",
        ("allow_unused", "Leave `allow_unused` out."),
    ),
    Check(
        torch_messages.BATCHED_GRADIENTS,
        "{line}: the gradients have no dimension for the batch, or another shape behind it.",
        "With `is_grads_batched=True` the first dimension of each gradient counts the calls. The others are the shape "
        "of the root.",
        ("pass_gradient", "Pass gradients of shape `[n, *out.shape]`."),
    ),
    Check(
        torch_messages.COMPLEX_GRADIENT,
        "{line}: the gradient is complex, and its root is not, or the other way round.",
        "A gradient has the type of what it belongs to; PyTorch checks it where complex numbers are involved.",
        ("pass_gradient", "Pass one of the root's type: `torch.ones_like(out)`, or take `.real` of it."),
    ),
    # ---- operations on tensors with a graph
    Check(
        torch_messages.VIEW_DETACHED,
        "{line} detaches a view in place.",
        "A view shares its history with its base. To cut it off in place would cut off the base as well.",
        ("detach", "Make a new tensor of it: `.detach()` without the `_`. For gradients, `set_to_none=True`."),
    ),
    Check(
        torch_messages.RESIZED,
        "{line} resizes a tensor that requires grad.",
        "What was computed from it was recorded for its old shape.",
        ("out_of_place", "Make a new tensor: `torch.cat`, `F.pad`, `.reshape`."),
    ),
    Check(
        torch_messages.APPLIED_BY_PYTHON,
        "{line} computes values by Python, which no graph records.",
        "`apply_` and `map_` call a Python function on each number. It has no derivative that PyTorch knows.",
        ("differentiable_op", "Use operations of PyTorch, or `.detach()` first if no gradient should come back."),
    ),
    Check(
        torch_messages.EXPORTED,
        "{line} hands a tensor that requires grad to another library.",
        "What another library does with it is not recorded, so PyTorch asks for an explicit `.detach()`.",
        ("detach", "Pass `.detach()` of it."),
    ),
    Check(
        torch_messages.SENT,
        "{line} sends a tensor that has a graph to another process.",
        "A graph exists in one process. What the other would compute from it could not come back here.",
        ("detach", "Send its values: `.detach()`. A Dataset or a worker should compute under `torch.no_grad()`."),
    ),
    Check(
        torch_messages.DATA_OF_INTEGERS,
        "{line} gives a tensor that requires grad values that can have no gradient.",
        "Only tensors of floating point and complex numbers can require grad.",
        ("float_dtype", "Convert the values first: `.float()`."),
    ),
    # ---- sparse and nested tensors
    Check(
        torch_messages.DENSE,
        "{line}: this optimizer takes sparse gradients only.",
        "A parameter that is no sparse embedding has a dense gradient, and `SparseAdam` has no rule for that.",
        (
            "sparse_optimizer",
            "Give it only the embeddings that have `sparse=True`, and the others to an optimizer of their own: `Adam`.",
        ),
        makers=("SparseAdam",),
    ),
    Check(
        torch_messages.SPARSE_WITH_DENSE,
        "{line} adds dense values to a sparse gradient.",
        "A sparse gradient lists only the rows that were used. `weight_decay` adds the whole weight to it, which "
        "PyTorch does not do.",
        (
            "dense_gradient",
            "Leave out `weight_decay` for these parameters, or make the gradient dense: `sparse=False`.",
        ),
        makers=("weight_decay",),
    ),
    Check(
        torch_messages.SPARSE_BY_FREQUENCY,
        "{node}: `scale_grad_by_freq` needs a dense gradient.",
        "It divides each row's gradient by how often the row was used, which is not written for sparse ones.",
        ("dense_gradient", "Leave out one of the two: `scale_grad_by_freq=True` or `sparse=True`."),
        makers=("scale_grad_by_freq",),
    ),
    Check(
        torch_messages.NO_SPARSE_KERNEL,
        "{node} is not written for sparse tensors.",
        "PyTorch has operations of their own for sparse tensors, and not for everything. The gradient of an embedding "
        "with `sparse=True` is one, too.",
        ("dense_gradient", "Make it dense before: `.to_dense()`; for an embedding, `sparse=False`."),
        makers=("sparse",),
    ),
    Check(
        torch_messages.NO_NESTED_KERNEL,
        "{node} is not written for nested tensors.",
        "PyTorch has operations of their own for nested tensors, and derivatives for a part of them.",
        (
            "differentiable_op",
            "Make it dense before, by `torch.nested.to_padded_tensor(x, 0.0)`. Of the two layouts, `torch.jagged` has "
            "more operations.",
        ),
        makers=("nested_tensor", "as_nested_tensor"),
    ),
    # ---- around the loop
    Check(
        torch_messages.NONDETERMINISTIC,
        "{node} adds up its results in an order that differs from run to run.",
        "`torch.use_deterministic_algorithms(True)` asks for the same result in each run. PyTorch has no version of "
        "this operation, or of its derivative, that gives it on this device.",
        (
            "differentiable_op",
            "Use an operation that has one, or `torch.use_deterministic_algorithms(True, warn_only=True)`.",
        ),
        makers=("use_deterministic_algorithms",),
    ),
    Check(
        torch_messages.FORKED,
        "{line} runs a backward in a forked process.",
        "PyTorch's engine has threads, and a fork copies none of them: after a backward in the parent, a child that "
        "was forked cannot run one.",
        ("mend_the_code", "Start processes by `torch.multiprocessing.set_start_method('spawn')`."),
    ),
    Check(
        torch_messages.REPLICA_UNTRAINED,
        "{line} wraps a module in which nothing requires grad.",
        "DistributedDataParallel adds up gradients between processes, and this module has none.",
        ("unfreeze", "Use the module without it, or let its parameters require grad before it is wrapped."),
    ),
    Check(
        torch_messages.INPLACE_SLOPE,
        "{node}: an activation that works in place cannot have a negative slope.",
        "It keeps its output only. With a negative slope, that does not show on which side of 0 the input was.",
        ("out_of_place", "Write `inplace=False`."),
        makers=("inplace",),
    ),
    Check(
        torch_messages.INDEPENDENT,
        "{line}: a result does not depend on an input.",
        "With `strict=True`, PyTorch checks that the function's output depends on each of its inputs.",
        ("use_input", "Compute the result from that input, without `detach`; or leave out `strict`: it is then zero."),
    ),
    Check(
        torch_messages.ONE_TENSOR,
        "{line}: the function has to return one tensor.",
        "A second derivative is that of one number.",
        ("scalar_loss", "Let the function return one number, by `.sum()` or `.mean()`."),
    ),
    Check(
        torch_messages.NO_PARAMETERS,
        "{line} makes an optimizer of nothing.",
        "It was given no tensors. `parameters()` lists what is a `nn.Parameter`, in the module itself or in modules "
        "that are its attributes or in a `nn.ModuleList`; a generator is empty when it was gone through before.",
        (
            "register_modules",
            "Put layers in a `nn.ModuleList`, tensors in `nn.Parameter`; pass a list, no used generator.",
        ),
        "no_grad",
    ),
    Check(
        torch_messages.TWO_GROUPS,
        "{line} gives a parameter to two groups.",
        "Each group would change it in a step, with settings of its own.",
        ("mend_the_code", "Leave out of the general group what has one of its own, for example by its `id`."),
    ),
)
