"""What PyTorch refuses outside the engine: errors of cells that no call raised.

They are recognized by torch's message, the text of the line that raised, and the values of its names measured then. A
fix is called verified only if these leave no doubt that the program then runs, or if a simulation has confirmed it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from graphwidget.diagnosis.findings import none_grads
from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals import (
    arrays,
    checkpoints,
    inference,
    replicas,
    roots,
    several_views,
    single_numbers,
    unexplained,
    views,
)
from graphwidget.diagnosis.findings.refusals.checks import checks
from graphwidget.diagnosis.findings.refusals.gradients import assigned, complex_roots, without_formula
from graphwidget.diagnosis.findings.refusals.leaves import copied, written
from graphwidget.diagnosis.findings.refusals.leaves.flags_in_loops import frozen_where_made
from graphwidget.diagnosis.findings.refusals.no_tensors import no_tensors
from graphwidget.diagnosis.findings.refusals.optimizers import empty, no_leaves, scaler, sparse
from graphwidget.diagnosis.findings.refusals.outdated import calls, functions
from graphwidget.diagnosis.findings.refusals.transformed import independent, transforms
from graphwidget.diagnosis.findings.refusals.user_code import hooks, missing_methods, own_code
from graphwidget.diagnosis.findings.refusals.within_module import with_module
from graphwidget.diagnosis.no_graph.leaves.by_hand import updates_in_place
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, short
from graphwidget.model import CellRun, Finding, Fix, Place, Record, torch_messages


def of_cells(record: Record) -> Iterator[Finding]:
    """Findings for cells that raised when they were last run."""
    for run in Cells.of(record).latest:
        found = of_run(record, run)
        if found is not None:
            yield found


def of_run(record: Record, run: CellRun) -> Finding | None:
    """The finding for the error of one run of a cell."""
    if run.error is None:
        return None
    failure = Failure(record, run, run.error_place or Place(run.cell, None))
    if any(call.error == run.error for call in record.calls if call.result == "raised"):
        return None  # the error of a call that ran, which is told itself
    tell = next((tell for words, tell in _TELLERS if torch_messages.says(run.error, words)), None)
    found = missing_methods.of_cell(failure) or (tell(failure) if tell is not None else None)
    found = found or no_tensors.of_line(failure) or scaler.of_line(failure) or checks.of_line(failure)
    found = found or own_code.of_function(failure) or unexplained.of_refused(record, run)
    return with_module(found, failure) if found is not None else None


# ------------------------------------------------------------------ leaves and other tensors


def _flag_of_no_leaf(failure: Failure) -> Finding | None:
    """``y.requires_grad_(False)`` or ``y.requires_grad = True`` on a computed tensor."""
    found = re.match(r"([\w.\[\]'\"]+?)\.requires_grad(?:_\((?=False)| *= *)(False|True)", failure.text)
    name = found[1] if found else None
    if found is None or name is None:
        return None
    value = failure.value(name)
    own = ".clone()" if value is not None and value.view_of is not None else ""  # else a leaf that others may write to
    new = f"{name}.detach()" if found[2] == "False" else f"{name}.detach(){own}.requires_grad_()"
    cut, made = f"{name} = {new}", failure.made(failure.computed(name))
    # Another value of a loop's variable, or of what a module computes again, changes nothing where the old one is kept.
    alone = name.isidentifier() and name not in source.loop_names(failure.cell)
    frozen = frozen_where_made(failure, name) if found[2] == "False" and not alone else None
    return failure.finding(
        f"`{name}` is no leaf.",
        f"`{name}` was computed{made}, from what requires grad. So it does, too. Only a leaf's flag can be changed.",
        frozen
        or failure.fix(
            "detach",
            f"Cut it off: `{cut}`." if alone else f"Use `{new}` where it is read.",
            failure.rewritten(cut) if alone else (),
            price="No gradient flows back through it.",
        ),
        tensor=name,
    )


def _no_parameter(failure: Failure) -> Finding | None:
    """``net.weight = net.weight - 0.1 * net.weight.grad``."""
    refusal = re.search(r"cannot assign '([\w.]+)' as parameter '(\w+)'", failure.run.error or "")
    if refusal is not None and not refusal[1].endswith("Tensor"):
        return None  # a list, a string: not of autograd
    statement = failure.statement
    name = ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else None
    edits = updates_in_place(failure.place.cell, failure.cell, statement) if statement is not None else ()
    fix = (
        failure.fix("under_no_grad", "Change its values in place, and record nothing.", edits)
        if edits
        else failure.fix(
            "under_no_grad",
            "To change its values, use `.copy_(...)` under `with torch.no_grad():`. To compute with other weights, and "
            "get their gradient, use `torch.func.functional_call`.",
        )
    )
    computed = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp)
    what = "a computed tensor" if computed else "a tensor that is no Parameter"
    which = f"`{name}`" if name else f"`{refusal[2]}`" if refusal is not None else "A parameter"
    return failure.finding(
        f"{which} must stay a Parameter.",
        f"{short(failure.text)} would replace it by {what}. No optimizer knows that one, and `parameters()` would not "
        "list it. So the module refuses.",
        fix,
        tensor=name,
    )


# ------------------------------------------------------------------ tensors that cannot have a graph


def _no_real_numbers(failure: Failure) -> Finding:
    read = source.names_in(failure.statement) if failure.statement is not None else set()
    whole = {name: value.dtype for name in sorted(read) if (value := failure.value(name)) and value.dtype}
    found = {name: dtype for name, dtype in whole.items() if not re.match("float|bfloat|complex", dtype)}
    name, dtype = next(iter(found.items())) if len(found) == 1 else (None, "")
    headline = f"`{name}` is {dtype}, which cannot require grad." if name else "Integers cannot require grad."
    text = "Only tensors of floating point and complex numbers can: integers have no small changes."
    if name is not None and _may_be_indices(failure, name):
        looked_up = failure.fix(
            "leaf",
            f"If they are indices, ask for the gradient of what they look up: `e = embedding({name}).detach()"
            ".requires_grad_()`, and compute the rest from `e`. As floating point they would be no indices any more.",
        )
        return failure.finding(headline, text, looked_up, kind="no_grad", tensor=name)
    fix = Fix(
        "float_dtype",
        "If it is to be learned, make it one of floating point: write `1.` instead of `1`, or pass "
        "`dtype=torch.float32`. Indices and masks get no gradient.",
        False,
        at(failure.place),
        edits=_made_of_real_numbers(failure),
    )
    return failure.finding(headline, text, fix, kind="no_grad", tensor=name)


def _may_be_indices(failure: Failure, name: str) -> bool:
    """Whether a program that has embeddings hands a tensor on to a call behind the line."""
    if not any("mbedding" in text for text in failure.cells.texts.values()):
        return False
    calls = (node for one in failure.after for node in ast.walk(one) if isinstance(node, ast.Call))
    return any(ast.unparse(given) == name for call in calls for given in call.args)


def _made_of_real_numbers(failure: Failure) -> Edits:
    """The one tensor that the line lets require grad, as one of floating point."""
    cell, text = failure.place.cell, failure.cell
    nodes = [n for n in ast.walk(failure.statement) if isinstance(n, ast.Call)] if failure.statement else []
    flagged = [n for n in nodes if any(k.arg == "requires_grad" for k in n.keywords)]
    flagged += [n for n in nodes if source.last_name(ast.unparse(n.func)) in ("requires_grad_", "Parameter")]
    if len(flagged) != 1:
        return ()
    call = flagged[0]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        if failure.statement is not None and getattr(failure.statement, "value", None) is call:
            owner = ast.unparse(call.func.value)
            if isinstance(failure.statement, ast.Expr) and re.fullmatch(r"[\w.]+", owner):
                return text_edit.replace_node(cell, text, call, f"{owner} = {owner}.float().requires_grad_()")
        return text_edit.insert_before_attribute(cell, text, call.func, ".float()")
    if source.last_name(ast.unparse(call.func)) == "Parameter":
        return text_edit.insert_behind(cell, text, call.args[0], ".float()") if call.args else ()
    return text_edit.with_argument(cell, text, call, "dtype=torch.float32")


# Which finding explains which message. The first that applies is used.
_TELLERS: tuple[tuple[tuple[str, ...], Callable[[Failure], Finding | None]], ...] = (
    (torch_messages.NOT_SCALAR, roots.of_several_values),
    (torch_messages.COMPLEX, complex_roots.of_no_real_number),
    (torch_messages.GRADIENT_MISMATCH, roots.of_another_shape),
    (torch_messages.KEYWORD, calls.of_keyword),
    (torch_messages.NO_DIMENSION, calls.of_element),
    (torch_messages.LEGACY_FUNCTION, functions.of_legacy_function),
    (torch_messages.LEAF_WRITTEN, written.of_written_leaf),
    (torch_messages.VIEW_WRITTEN, several_views.of_one_of_several),
    (torch_messages.MODIFIED, several_views.of_one_whose_base_was_written),
    (torch_messages.FLAG_OF_NO_LEAF, _flag_of_no_leaf),
    (torch_messages.NO_LEAF_OPTIMIZED, no_leaves.of_line),
    (torch_messages.NO_PARAMETER, _no_parameter),
    (torch_messages.TO_NUMPY, arrays.of_numpy),
    (torch_messages.TO_NUMBER, single_numbers.of_several),
    (torch_messages.COPIED, copied.of_copy),
    (torch_messages.NO_FLOAT, _no_real_numbers),
    (torch_messages.INFERENCE, inference.of_cell),
    (torch_messages.INFERENCE_WRITTEN, inference.of_cell),
    (torch_messages.INFERENCE_FLAG, inference.of_cell),
    (torch_messages.HOOKED_VIEW_WRITTEN, views.of_hooked_module),
    (torch_messages.VIEW_OF_FUNCTION, views.of_custom_function),
    (torch_messages.VIEW_OF_ANOTHER_MODE, views.of_view_of_another_mode),
    (torch_messages.NOT_REDUCED, replicas.of_unreported),
    (torch_messages.HOOK_WITHOUT_GRAD, hooks.without_grad),
    (torch_messages.RETAINED_WITHOUT_GRAD, hooks.without_grad),
    (torch_messages.HOOK_OF_NO_LEAF, hooks.of_no_leaf),
    (torch_messages.GRADIENT_ASSIGNED, assigned.of_assigned),
    (torch_messages.SPARSE, sparse.of_optimizer),
    (torch_messages.NO_PARAMETERS, empty.of_nothing),
    (torch_messages.CHECKPOINT_KEYWORDS, checkpoints.of_keywords),
    (torch_messages.NOT_DEPENDENT, independent.of_strict_mode),
    (torch_messages.NO_RULE, transforms.of_function),
    (torch_messages.NO_ONE_VALUE, transforms.of_refusal),
    (torch_messages.NO_ONE_SHAPE, transforms.of_refusal),
    (torch_messages.WRITE_TO_UNMAPPED, transforms.of_refusal),
    (torch_messages.STATISTICS_UNMAPPED, transforms.of_refusal),
    (torch_messages.RANDOM_IN_VMAP, transforms.of_refusal),
    (torch_messages.ARGUMENTS_OF_VMAP, transforms.of_refusal),
    (torch_messages.TRANSFORMED_OUTPUT, transforms.of_refusal),
    (torch_messages.ENGINE_IN_TRANSFORM, transforms.of_refusal),
    (torch_messages.WRITTEN_IN_TRANSFORM, transforms.of_refusal),
    ((*torch_messages.NO_GRAD, *torch_messages.UNUSED), transforms.of_engine),
    (torch_messages.SAVED_NO_TENSOR, own_code.of_saved),
    (torch_messages.NO_FORWARD_FORMULA, without_formula.of_cell),
    (torch_messages.NO_FORMULA, without_formula.of_cell),
    (torch_messages.NONE, none_grads.of_none),
)
