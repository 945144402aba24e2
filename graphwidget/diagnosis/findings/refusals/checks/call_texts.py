"""What PyTorch checks in a call: what `backward`, `grad` and the functions of `torch.autograd.functional` are given."""

from __future__ import annotations

from graphwidget.diagnosis.findings.refusals.checks import edits
from graphwidget.diagnosis.findings.refusals.checks.check import Check
from graphwidget.model import torch_messages

__all__ = ["OF_CALLS"]

OF_CALLS = (
    # ---- of backward and autograd.grad
    Check(
        torch_messages.GRADIENTS_GIVEN,
        "{line}: there is not one gradient for each root.",
        "Each root begins with a gradient of its own: as many `grad_outputs` as outputs, in their order. None stands "
        "for 1 where a root is one number.",
        ("pass_gradient", "Pass one for each, or None: `grad_outputs=[torch.ones_like(a), None]`."),
        edit=edits.one_gradient_each,
    ),
    Check(
        torch_messages.NO_INPUTS,
        "{line} asks for the gradients of nothing.",
        "`inputs` limits the call to some leaves, and was given none: a generator that has run out, or a filter that "
        "leaves nothing.",
        ("mend_the_code", "Pass a list that is not empty, or leave `inputs` out: then all leaves get their `.grad`."),
        edit=edits.as_list,
    ),
    Check(
        torch_messages.NO_TENSORS_ASKED,
        "{line} asks for the gradient of something that is no tensor.",
        "Gradients exist for tensors that were used in the graph. A module, a name or a number is none.",
        ("mend_the_code", "Pass tensors: for a module `list(net.parameters())`."),
        edit=edits.parameters_of,
    ),
    Check(
        torch_messages.ROOT_NO_TENSOR,
        "{line} begins at something that is no tensor.",
        "A backward begins at tensors that have a graph. A number, such as `loss.item()`, has none.",
        ("mend_the_code", "Pass the tensors themselves."),
        edit=edits.without_item,
    ),
    Check(
        torch_messages.UNUSED_MATERIALIZED,
        "{line}: `materialize_grads=True` needs unused inputs to be allowed.",
        "It gives zeros for inputs that were not used, and `allow_unused=False` forbids these.",
        ("allow_unused", "Leave `allow_unused` out."),
        edit=edits.dropped("allow_unused"),
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
    Check(
        torch_messages.GRADIENT_GIVEN_NO_TENSOR,
        "{line} is given a gradient that is no tensor.",
        "A gradient says how much each value of a root counts, so it is a tensor of the root's shape, or None for 1.",
        ("pass_gradient", "Pass a tensor: `torch.tensor(...)`, or `torch.ones_like(out)` for equal weights."),
    ),
    Check(
        torch_messages.EDGES_ONLY_PLAIN,
        "{line} asks an edge for what only tensors can give.",
        "A `GradientEdge` is a place in a graph, without shape and type. What needs these works with tensors only.",
        ("pass_gradient", "Pass the tensors themselves, or leave the argument out."),
    ),
    Check(
        torch_messages.DISTRIBUTED_CONTEXT,
        "{line} runs outside a context of distributed autograd.",
        "Distributed autograd keeps the gradients of all processes in a context, which has to be there first.",
        ("mend_the_code", "Run it under `with torch.distributed.autograd.context() as context_id:`."),
    ),
    # ---- of torch.autograd.functional
    Check(
        torch_messages.VECTOR_MISSING,
        "{line} needs a vector `v`.",
        "A product with a Jacobian or a Hessian is that with a vector: of the outputs' shapes for `vjp`, of the "
        "inputs' for `jvp`, `vhp` and `hvp`. It may be left out only where it would be one number.",
        ("pass_gradient", "Pass `v`: a tensor, or a tuple of tensors, of these shapes."),
    ),
    Check(
        torch_messages.VECTOR_UNLIKE,
        "{line}: `v` is not like what it is multiplied with.",
        "`vjp` multiplies with the outputs, so `v` has their shapes; for `jvp`, `vhp` and `hvp` it has the inputs'.",
        ("pass_gradient", "Pass a `v` with as many tensors, of the same shapes: `torch.ones_like(x)`."),
    ),
    Check(
        torch_messages.NEITHER_TENSOR_NOR_TUPLE,
        "{line}: a function of tensors was given, or returned, something else.",
        "`torch.autograd.functional` takes a tensor or a tuple of tensors; so has the function to return one.",
        ("mend_the_code", "Pass a tuple of tensors: `(x, w)`, no list and no number. Bind the rest by a `lambda`."),
    ),
    Check(
        torch_messages.OPTIONS_APART,
        "{line}: two options do not go together.",
        "`jacobian` and `hessian` compute in one of several ways: forward mode is written for `vectorize=True` only, "
        "and neither it nor `vectorize=True` can check `strict`; and forward mode builds no graph.",
        ("mend_the_code", "Leave out the option that the message names, or use `torch.func.jacrev` and `jacfwd`."),
    ),
)
