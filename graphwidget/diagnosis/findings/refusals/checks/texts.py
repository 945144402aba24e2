"""What PyTorch checks, and why: a list of texts.

Where it happened (the line, the node, the module, the shapes) is found as for any other error. What needs more, such as
a look at the program, has a module of its own.
"""

from __future__ import annotations

from graphwidget.diagnosis.findings.refusals.checks import edits
from graphwidget.diagnosis.findings.refusals.checks.call_texts import OF_CALLS
from graphwidget.diagnosis.findings.refusals.checks.check import Check
from graphwidget.diagnosis.findings.refusals.checks.own_code_texts import OF_OWN_CODE
from graphwidget.model import torch_messages

__all__ = ["CHECKS"]

CHECKS = (
    *OF_CALLS,
    *OF_OWN_CODE,
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
        edit=edits.set_to("mode='reduced'"),
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
    # ---- operations on tensors with a graph
    Check(
        torch_messages.TENSOR_AS_NUMBER,
        "{line} passes a tensor that requires grad where a number is asked for.",
        "A factor such as `alpha` is a number: its value would be taken, and no gradient would come back to it.",
        ("differentiable_op", "Multiply instead, which is recorded: `a + w * b`. Or pass the number: `w.item()`."),
        edit=edits.multiplied,
    ),
    Check(
        torch_messages.SHAPE_OF_DATA,
        "{line} changes the shape or storage of a tensor that `.data` or `.detach()` made.",
        "Such a tensor shares its memory with the one that it was made of, which would not know of the change.",
        ("out_of_place", "Make a copy first: `.detach().clone()`; or work under `torch.no_grad()` on the tensor."),
    ),
    Check(
        torch_messages.QUANTIZED,
        "{line} lets a quantized tensor require grad.",
        "Quantized values are integers with a scale, and have no derivative.",
        ("straight_through", "Train with floating point and simulated quantization: `torch.fake_quantize_...`."),
    ),
    Check(
        torch_messages.DERIVED_ONCE,
        "{node} has a first derivative, and no second one.",
        "The gradient that this call goes back through was computed by a kernel that PyTorch cannot differentiate.",
        (
            "differentiable_op",
            "Use another operation of the same effect: for a recurrent layer on a GPU `torch.backends.cudnn.flags("
            "enabled=False)` around its forward, for a pooling or sampling layer one of other settings.",
        ),
    ),
    Check(
        torch_messages.NO_VERSION,
        "{line} asks a tensor of inference mode for its version.",
        "Tensors that are made under `torch.inference_mode()` do not count their modifications.",
        ("remove_no_grad", "Make it under `torch.no_grad()`, or copy it outside: `.clone()`."),
    ),
    Check(
        torch_messages.VIEW_DETACHED,
        "{line} detaches a view in place.",
        "A view shares its history with its base. To cut it off in place would cut off the base as well.",
        (
            "detach",
            "Make a new tensor of it, `.detach()` without the `_`, and keep that in place of this one. For gradients, "
            "`set_to_none=True`.",
        ),
        edit=edits.detaches_anew,
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
        edit=edits.detaches,
    ),
    Check(
        torch_messages.SENT,
        "{line} sends a tensor that has a graph to another process.",
        "A graph exists in one process. What the other would compute from it could not come back here.",
        ("detach", "Send its values: `.detach()`. A Dataset or a worker should compute under `torch.no_grad()`."),
        edit=edits.sends_values,
    ),
    Check(
        torch_messages.DATA_OF_INTEGERS,
        "{line} gives a tensor that requires grad values that can have no gradient.",
        "Only tensors of floating point and complex numbers can require grad.",
        ("float_dtype", "Convert the values first: `.float()`."),
        edit=edits.as_float,
    ),
    # ---- checkpoints that keep a part
    Check(
        torch_messages.KEPT_MODIFIED,
        "{line}: what a checkpoint has kept was modified.",
        "A selective checkpoint keeps the results of some operations, and uses them when it runs again.",
        ("out_of_place", "Do not write to them, or let the policy compute these operations again."),
    ),
    Check(
        torch_messages.NOT_KEPT,
        "{line}: the second run of a checkpoint is another than the first.",
        "A selective checkpoint looks up what it has kept by the order of the operations. In the second run one came "
        "that the first did not have.",
        ("pure_function", "Let the function do the same in both runs: no counters, no state that changes between."),
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
        edit=edits.dropped("weight_decay"),
    ),
    Check(
        torch_messages.SPARSE_BY_FREQUENCY,
        "{node}: `scale_grad_by_freq` needs a dense gradient.",
        "It divides each row's gradient by how often the row was used, which is not written for sparse ones.",
        ("dense_gradient", "Leave out one of the two: `scale_grad_by_freq=True` or `sparse=True`."),
        makers=("scale_grad_by_freq",),
        edit=edits.dropped("sparse"),
    ),
    Check(
        torch_messages.NO_SPARSE_KERNEL,
        "{node} is not written for sparse tensors.",
        "PyTorch has operations of their own for sparse tensors, and not for everything. The gradient of an embedding "
        "with `sparse=True` is one, too.",
        ("dense_gradient", "Make it dense before: `.to_dense()`; for an embedding, `sparse=False`."),
        makers=("sparse",),
        edit=edits.set_to("sparse=False"),
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
        edit=edits.set_to("warn_only=True"),
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
        edit=edits.set_to("inplace=False"),
    ),
    Check(
        torch_messages.INDEPENDENT,
        "{line}: a result does not depend on an input.",
        "With `strict=True`, PyTorch checks that the function's output depends on each of its inputs.",
        ("use_input", "Compute the result from that input, without `detach`; or leave out `strict`: it is then zero."),
        edit=edits.dropped("strict"),
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
