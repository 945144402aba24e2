"""Parts of PyTorch's error messages that identify them, in torch 2.10 to 2.13. No other module spells them.

Each name is a tuple of alternatives: an error is of that kind if its message contains one of them (`says`).
"""

from __future__ import annotations

import re

__all__ = ["AUTOGRAD_CALL", "FORECAST", "OF_AUTOGRAD", "TWO_TYPES", "UNDIFFERENTIABLE", "says", "shape_of_modified"]

# ---- an autograd call fails while it runs
FREED = ("second time", "extra time", "already been freed")
MODIFIED = (
    "modified by an inplace operation",
    "its base or another view of its base has been modified inplace",  # of a view whose history cannot be made anew
)
DETACHED = ("detached in-place",)
NO_GRAD = ("does not require grad",)
INPUT_WITHOUT_GRAD = ("One of the differentiated Tensors does not require grad",)
UNUSED = ("appears to not have been used in the graph",)


# ---- what a custom Function's backward does, while a call runs
GRADIENTS_COUNTED = ("returned an incorrect number of gradients",)
GRADIENT_OF_NO_TENSOR = ("returned a gradient different than None at position",)
GRADIENT_SHAPE = ("but expected shape compatible with",)
GRADIENT_DEVICE = (" - expected device ",)
NO_GRADIENT_TYPE = ("expected Variable or None",)
NO_BACKWARD = ("You must implement either the backward or vjp method",)
ONCE_DIFFERENTIABLE = ("trying to differentiate twice a function that was marked with @once_differentiable",)

# ---- what the engine finds out about a gradient, while a call runs
NO_FORMULA = (
    "derivative for aten::",
    "the derivative for '",
    "not differentiable",
    "does not support automatic differentiation",
    "don't support automatic differentiation",
)
UNDIFFERENTIABLE = re.compile(  # which operation, and by which argument
    r"derivative for aten::(\w+)|the derivative for '(\w+)(?:: (\w+))?'|forward AD with (\w+)|(\w+)\(\): functions with"
)
OUT_OF_MEMORY = ("out of memory", "can't allocate memory")
NOT_A_NUMBER = ("returned nan values in its ",)
TYPES_APART = ("Found dtype ", "expected scalar type ", " to have the same dtype, but got: ")
TWO_TYPES = re.compile(  # which two types these are
    r"Found dtype (\w+) but expected (\w+)|expected scalar type (\w+) but found (\w+)|"
    r"same dtype, but got: (?:c10::)?(\w+) != (?:c10::)?(\w+)"
)
HOOK_CHANGED = (
    "has changed the size of value",
    "has changed the type of value",
    "expected Variable, but hook returned",
    "has returned an incorrect number of values",
    "Backward hook returned an invalid number of grad_input",
    "Backward pre hook returned an invalid number of grad_output",
    "Backward hook for Modules where no input requires gradient",
)

# ---- an autograd call is refused before it runs
NOT_SCALAR = ("grad can be implicitly created only for scalar",)
GRADIENT_MISMATCH = ("Mismatch in shape: grad_output[",)
COMPLEX = ("grad can be implicitly created only for real",)

# ---- an operation is refused
LEAF_WRITTEN = ("leaf Variable that requires grad is being used in an in-place operation",)
VIEW_WRITTEN = ("is a view and is being modified inplace. This view is the output of a function that returns multiple",)
FLAG_OF_NO_LEAF = ("you can only change requires_grad flags of leaf variables",)
NO_LEAF_OPTIMIZED = ("can't optimize a non-leaf Tensor",)
NO_PARAMETER = ("(torch.nn.Parameter or None expected)",)
TO_NUMPY = ("Can't call numpy() on Tensor that requires grad",)
TO_NUMBER = (
    "cannot be converted to Scalar",
    "only one element tensors can be converted to Python scalars",
    "Boolean value of Tensor with more than one value is ambiguous",
)
COPIED = ("support the deepcopy protocol",)
NO_FLOAT = ("nly Tensors of floating point",)
INFERENCE = ("Inference tensors cannot be saved for backward",)
NO_DIMENSION = ("invalid index of a 0-dim tensor",)
LEGACY_FUNCTION = ("Legacy autograd function with non-static forward method",)
NONE = ("NoneType",)  # Python's own
KEYWORD = ("got an unexpected keyword argument",)  # Python's own

HOOKED_VIEW_WRITTEN = ("Output 0 of BackwardHookFunction is a view and is being modified inplace",)
VIEW_OF_FUNCTION = ("This view was created inside a custom Function",)
VIEW_OF_ANOTHER_MODE = ("A view was created in no_grad mode and is", "A view was created in inference mode and is")
INFERENCE_WRITTEN = ("Inplace update to inference tensor outside InferenceMode",)
INFERENCE_FLAG = ("Setting requires_grad=True on inference tensor",)

# ---- hooks, and the attribute `.grad`
HOOK_WITHOUT_GRAD = ("cannot register a hook on a tensor that doesn't require gradient",)
RETAINED_WITHOUT_GRAD = ("can't retain_grad on Tensor that has requires_grad=False",)
HOOK_OF_NO_LEAF = ("post accumulate grad hooks cannot be registered on non-leaf tensors",)
GRADIENT_ASSIGNED = ("attempting to assign a gradient", "assigned grad", "can't assign Variable as its own grad")
SPARSE = ("sparse gradients",)

# ---- of transforms of functions: vmap, grad, jvp and the like
NO_ONE_VALUE = (
    "calling .item() on a Tensor",
    "data-dependent control flow",
    "Cannot access data pointer of Tensor that doesn't have storage",
)
NO_ONE_SHAPE = ("We do not support batching operators that can",)
WRITE_TO_UNMAPPED = ("vmap: inplace arithmetic", "vmap: aten::")
STATISTICS_UNMAPPED = ("which will be updated in place, were not batched",)
RANDOM_IN_VMAP = ("called random operation while in randomness error mode",)
ARGUMENTS_OF_VMAP = (
    "We cannot vmap over non-Tensor arguments",
    "expected in_dim to satisfy",
    "in_dims is not compatible with the structure",
    "to have the same size in the mapped dimension",
    "must only return Tensors, got type",
    "out_dims is not compatible",
)
TRANSFORMED_OUTPUT = (
    "Expected f(*args) to return",
    "expected f(*primals) to return only tensors",
    "should contain a single element",
    "must be floating-point or complex Tensors",
)
NO_SETUP = ("In order to use an autograd.Function with functorch transforms",)
NO_JVP = ("You must implement the jvp function",)
NO_RULE = (*NO_SETUP, "but it does not have vmap support", *NO_JVP)
ENGINE_IN_TRANSFORM = (
    "called inside a functorch transform",
    "inside of a function being transformed by a functorch transform",
)
NOT_DEPENDENT = (  # the strict mode of `torch.autograd.functional`
    "of the user-provided function does not require gradients",
    "of the user-provided function is independent of",
    "of the user-provided function with respect to input",
    "is independent of the inputs of the user-provided function",
)
NO_FORWARD_FORMULA = ("Trying to use forward AD with",)

# ---- what one sentence explains, and one change cures: `diagnosis/findings/refusals/checks`
PHASE = ("up to multiplication by e^{i phi}",)
FACTOR_MISSING = ("The QR decomposition is not differentiable when", "The derivative of linalg.qr depends on Q")
COMPILED_TWICE = ("torch.compile with aot_autograd does not currently support double backward",)
COMPILED_KEPT = ("non-empty donated buffers",)
INPLACE_SLOPE = ("backward calculation is triggered with a negative slope",)
NONDETERMINISTIC = ("does not have a deterministic implementation",)
FORKED = ("Unable to handle autograd's threading in combination with fork-based",)
SAVED_NO_TENSOR = ("save_for_backward can only save variables", "save_for_forward expects all arguments to be tensors")
DIRTY_NOT_RETURNED = ("Some elements marked as dirty during the forward method were not returned",)
DIRTY_LEAF = ("a leaf Variable that requires grad has been used in an in-place operation",)
DIRTY_VIEW = ("your Function cannot return more than one Tensor",)
MARKED_NO_TENSOR = ("mark_non_differentiable only accepts variable arguments",)
NO_MODULE_FORWARD = ('is missing the required "forward" function',)
NO_FORWARD = ("You must implement the forward function for custom autograd.Function",)
RETURNED_INPUT_SAVED = ("An input that has been returned as-is as output is being saved for backward",)
HOOK_RETURNS = ("post accumulate grad hooks should return None",)
HOOKS_MIXED = ("Cannot use both regular backward hooks and full backward hooks",)
PACK_WRITES = ("A saved tensor pack hook is modifying its input in place",)
UNPACKED_NO_TENSOR = ("Output of saved tensor unpack_hook expected to be a Tensor",)
GRADIENTS_GIVEN = tuple(f" tensors and {number} gradients" for number in range(20))
NO_INPUTS = ("argument to `backward()` cannot be empty", "argument to `grad()` cannot be empty")
NO_TENSORS_ASKED = ("all inputs have to be Tensors or GradientEdges",)
NOT_ITERABLE = ("object is not iterable",)  # Python's own words
ROOT_NO_TENSOR = ("Expected output to be a torch.Tensor",)
UNUSED_MATERIALIZED = ("Expected allow_unused to be True or not passed when materialize_grads=True",)
BATCHED_GRADIENTS = ("If `is_grads_batched=True`, we interpret the first dimension",)
COMPLEX_GRADIENT = ("both grad_output and output are required to have the same dtype",)
VIEW_DETACHED = ("Can't detach views in-place",)
RESIZED = ("cannot resize variables that require grad",)
APPLIED_BY_PYTHON = (
    "Can't call apply_() on Variable",
    "Can't call map_() on Variable",
    "Can't call map2_() on Variable",
)
EXPORTED = (
    "Can't export tensors that require gradient",
    "Can't get __cuda_array_interface__ on Variable that requires",
)
SENT = ("Cowardly refusing to serialize non-leaf tensor which requires_grad",)
DATA_OF_INTEGERS = ("data set to a tensor that requires gradients must be floating point",)
DENSE = ("does not support dense gradients",)
SPARSE_WITH_DENSE = ("add(sparse, dense) is not supported",)
SPARSE_BY_FREQUENCY = ("scale_grad_by_freq not supported with sparse gradients",)
NO_NESTED_KERNEL = ("with arguments from the 'Nested", "Internal error: NestedTensorImpl doesn't", "aten._nested_")
NO_SPARSE_KERNEL = ("with arguments from the 'Sparse",)
REPLICA_UNTRAINED = ("DistributedDataParallel is not needed when a module doesn't have any parameter",)
CHECKPOINT_KEYWORDS = ("Unexpected keyword arguments: ", "is only supported when use_reentrant=False")
INDEPENDENT = ("is not allowed in strict mode", "is independent of the inputs of the user-provided function")
ONE_TENSOR = ("should return a single Tensor", "The given v should contain a single Tensor")
NO_PARAMETERS = ("optimizer got an empty parameter list",)
TWO_GROUPS = ("some parameters appear in more than one parameter group",)
GRADIENT_GIVEN_NO_TENSOR = ("gradients can be either Tensors or None, but got",)
EDGES_ONLY_PLAIN = (
    "materialize_grads cannot be used when the given input is a GradientEdge",
    "Batched grads are not supported with GradientEdge",
)
DISTRIBUTED_CONTEXT = ("Current thread doesn't have a valid autograd context",)
VECTOR_MISSING = ("The vector v can only be None if",)
VECTOR_UNLIKE = ("v has invalid size: should be", "v is a tuple of invalid length: should be")
NEITHER_TENSOR_NOR_TUPLE = ("must be either a Tensor or a tuple of Tensors but the",)
OPTIONS_APART = (
    '`strategy="forward-mode"` are not supported together',
    "`strict=True` and `vectorized=True` are not supported together",
    "Computing Jacobian using forward-AD or forward-over-reverse Hessian",
    'Expected strategy to be either "forward-mode" or "reverse-mode"',
)
TWO_BACKWARDS = ("Implementing both 'backward' and 'vjp' for a custom Function",)
TANGENT_OF_NOTHING = ("but the corresponding forward output is not a differentiable Tensor",)
OF_A_FUNCTION_S_OBJECT = ("is invalid for this instance of _C._FunctionBase",)
HOOK_NOT_CALLABLE = ("hook must be callable, got",)
SAVED_HOOKED_TWICE = (
    "Calling register_hooks on a saved tensor whose hooks have already been set",
    "Calling register_hooks on a saved tensor with value None",
)
TENSOR_AS_NUMBER = ("Cannot input a tensor that requires grad as a scalar argument",)
SHAPE_OF_DATA = ("is not allowed on a Tensor created from .data or .detach()",)
QUANTIZED = ("quantized tensors do not support autograd",)
DERIVED_ONCE = (
    "Double backwards is not supported for CuDNN RNNs",
    "double backward not implemented for interpolation_mode",
    "is not infinitely differentiable",
)
NO_VERSION = ("Inference tensors do not track version counter", "Cannot set version_counter for inference tensor")
KEPT_MODIFIED = ("Tensor cached during selective activation checkpoint has been mutated",)
NOT_KEPT = ("encountered during backward but not found in storage",)
WRITTEN_IN_TRANSFORM = ("that would mutate a captured Tensor",)

# ---- of GradScaler
NOTHING_UNSCALED = ("No inf checks were recorded",)
UNSCALED_TWICE = ("unscale_() has already been called on this optimizer",)
UNSCALED_LATE = ("unscale_() is being called after step()",)
STEPPED_TWICE = ("step() has already been called since the last update()",)
HALF_GRADIENTS = ("Attempting to unscale FP16 gradients",)
NO_SCALE = (" but _scale is None.",)

# Words of PyTorch's messages about recording, running and differentiating.
OF_AUTOGRAD = re.compile(
    r"autograd|\bbackward\b|requires?[_ ]grad|\bgrad(_fn|_outputs?|ients?)?\b|\bleaf\b|in-?place|\bdifferentia|"
    r"derivative|saved tensor|inference tensor|deepcopy protocol|functorch|\bvmap\b|forward AD",
    re.IGNORECASE,
)

# ---- of checkpoints
CHECKPOINT_METADATA = ("Recomputed values for the following tensors have different metadata",)
CHECKPOINT_COUNT = (
    "A different number of tensors was saved during the original forward and recomputation",
    "trying to save more tensors during recomputation than during the original forward pass",
)
CHECKPOINT_UNPACKED = ("Unpack is being triggered for a tensor that was already unpacked once",)
CHECKPOINT_INPUTS = (
    "torch.utils.checkpoint is incompatible with .grad()",
    "Checkpointing is not compatible with .grad()",
)
CHECKPOINT_NOT_NEEDED = ("none of output has requires_grad=True, this checkpoint() is not necessary",)

# ---- of DistributedDataParallel
NOT_REDUCED = ("Expected to have finished reduction in the prior iteration",)
READY_TWICE = ("Expected to mark a variable ready only once",)

# Why an autograd call raised. The first match counts: "freed" has to be checked before "modified".
AUTOGRAD_CALL = (
    ("freed", FREED),
    ("inplace", MODIFIED),
    ("input", (*INPUT_WITHOUT_GRAD, *RETAINED_WITHOUT_GRAD)),  # the second of ``y.backward(inputs=[c])``
    ("no_grad", NO_GRAD),
    ("unused", UNUSED),
    ("gradient", (*GRADIENTS_COUNTED, *GRADIENT_OF_NO_TENSOR, *GRADIENT_SHAPE, *GRADIENT_DEVICE, *NO_GRADIENT_TYPE)),
    ("no_backward", NO_BACKWARD),
    ("once_differentiable", ONCE_DIFFERENTIABLE),
    ("not_a_number", NOT_A_NUMBER),
    ("no_formula", NO_FORMULA),
    ("hook_changed", HOOK_CHANGED),
    ("inference", (*INFERENCE, *INFERENCE_WRITTEN)),
    ("recomputed", (*CHECKPOINT_METADATA, *CHECKPOINT_COUNT)),
    ("unpacked_twice", CHECKPOINT_UNPACKED),
    ("checkpoint_inputs", CHECKPOINT_INPUTS),
    ("checkpoint_not_needed", CHECKPOINT_NOT_NEEDED),
    ("ready_twice", READY_TWICE),
    ("out_of_memory", OUT_OF_MEMORY),
    ("types", TYPES_APART),
)

# Reason of a forecast -> torch's message when the forecast comes true.
FORECAST = {
    "freed": FREED,
    "inplace": MODIFIED,
    "no_grad": (*NO_GRAD, "grad_fn"),
    "not_scalar": ("implicitly created",),
    "unused": UNUSED,
    "detached": DETACHED,
    "leaf_interior": ("graph interior",),
    "not_differentiable": ("once_differentiable", "not differentiable", "not implemented"),
    "checkpoint": ("checkpoint",),
    "overlap": ("written-to tensor",),
}


def says(message: object, words: tuple[str, ...]) -> bool:
    """Whether an error's message (or the error) contains one of these."""
    text = str(message)
    return any(one in text for one in words)


def shape_of_modified(message: str) -> tuple[int, ...] | None:
    """The shape of the saved tensor that a message says was modified in place; None: it says none."""
    found = re.search(r"inplace operation: \[[\w.]+ \[([\d, ]*)\]\]", message)
    return tuple(map(int, filter(None, found[1].split(", ")))) if found is not None else None
