"""Tensors that never had a graph: code that is not recorded, and calls under a grad mode that a caller switched off."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.no_graph.applied import applied_at
from graphwidget.diagnosis.no_graph.cause import Cause, expression
from graphwidget.diagnosis.no_graph.cutting import any_of
from graphwidget.diagnosis.no_graph.origins import Origins
from graphwidget.diagnosis.no_graph.values import Spot
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.blocks import in_block
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at as line_of
from graphwidget.diagnosis.wording import names, place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Fix, Place, Record, Sight

__all__ = ["around_the_call", "from_a_library", "not_recorded"]


def around_the_call(origins: Origins, call: BackwardCall, root: ast.expr, spot: Spot) -> Cause | None:
    """Grad mode was measured to be off where the call raised, and the root was computed inside its cause."""
    scene, own = origins.values.scene, call.place
    if scene.grad_mode is not False:
        return None
    name = ast.unparse(root)
    for depth, sight in enumerate(scene.sights):
        run = next((run for run in origins.values.runs if run.run == sight.place.run), None)
        at = source.statements_at(run.source, sight.place.line or 0) if run is not None else []
        switch = grad_modes.around(run.source, at[-1]) if run is not None and at else None
        if run is None or (switch is None and not sight.decorators and not sight.forward_of):
            continue
        if switch is None and not sight.decorators:
            own_grad = _grad_of_its_own(origins.values.runs[spot.at], spot.line)
            return _inside_a_forward(call, name, sight.forward_of, scene.sights[depth + 1 :], own_grad)
        line = _line_of(switch) if switch is not None else sight.place.line or 0
        if switch is not None and isinstance(switch.outer, ast.FunctionDef):
            text = f"`@{switch.text}` of `{switch.outer.name}`"
        else:
            text = f"`with {switch.text}`" if switch is not None else f"`{sight.decorators[-1]}`"
        if not _made_within(origins, name, spot, depth, switch.outer if switch is not None else None):
            return None
        place = place_of(run, line)
        inference = "inference" in text
        words = (
            f"Take the call out of {text} ({where(place)})."
            if inference
            else f"Take the call out of {text} ({where(place)}), or compute `{name}` and what follows from it under "
            "`with torch.enable_grad():`."
        )
        fix = Fix("remove_no_grad", words, False, line_of(place), edits=_with_grad(run, switch))
        own_grad = _grad_of_its_own(origins.values.runs[spot.at], spot.line) if depth > 0 and not inference else ()
        if own_grad:
            words = (
                f"Compute `{name}` and its gradient under `with torch.enable_grad():`. What calls this goes on without "
                "a graph."
            )
            fix = Fix("remove_no_grad", words, False, line_of(own), edits=own_grad)
        return Cause(
            f"Grad mode is off where {short(own.source)} runs: {text} ({where(place)}) is around it. "
            f"`{name}` was computed there, without a graph.",
            fix,
            place,
        )
    return None


def _line_of(switch: grad_modes.Switch) -> int:
    """The line of a `with`, or of a decorator."""
    decorators = getattr(switch.outer, "decorator_list", [])
    return next((one.lineno for one in decorators if ast.unparse(one) == switch.text), switch.outer.lineno)


def _grad_of_its_own(run: CellRun, line: int) -> text_edit.Edits:
    """``with torch.enable_grad():`` around what leads from a leaf that a function makes to the gradient it asks for.

    It computes the gradient of something of its own, whatever the grad mode of its caller is.
    """
    inside, asking = source.function_at(run.source, line), source.statements_at(run.source, line)
    for block in (source.block_of(run.source, one) for one in reversed(asking) if inside is not None):
        before = [one for one in block if one.lineno <= line]
        first = next((one for one in before if _makes_leaf(one)), None)
        if first is not None:
            return in_block(run.cell, run.source, "with torch.enable_grad():", first, before[-1])
    return ()


def _makes_leaf(statement: ast.stmt) -> bool:
    """``x.requires_grad_()``, ``x.requires_grad = True``, ``torch.zeros(3, requires_grad=True)``."""
    text = ast.unparse(statement)
    simple = not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
    return (
        simple and re.search(r"requires_grad_\((?!False|requires_grad=False)|requires_grad ?= ?True", text) is not None
    )


def _inside_a_forward(
    call: BackwardCall, name: str, function: str, outer: Sequence[Sight], own_grad: text_edit.Edits
) -> Cause:
    """The `forward` of a custom Function is around a call: that runs without grad mode."""
    place = outer[0].place if outer else None
    applied = f" (applied in {where(place)})" if place is not None else ""
    given = _asked_for(call)
    words = (
        f"Compute `{name}` and its gradient under `with torch.enable_grad():`, from an input that requires grad there: "
        f"`{given} = {given}.clone().requires_grad_(True)`. Or call it without `{function}`."
        if not own_grad
        else f"Compute `{name}` and its gradient under `with torch.enable_grad():`, whatever is around it."
    )
    return Cause(
        f"Grad mode is off where {short(call.place.source)} runs: the `forward` of the custom Function `{function}`"
        f"{applied} is around it. PyTorch runs a `forward` without a graph, as its `backward` stands for that. "
        f"`{name}` was computed there.",
        Fix("remove_no_grad", words, False, line_of(call.place), edits=own_grad),
        call.place,
    )


def _asked_for(call: BackwardCall) -> str:
    """The variable whose gradient a call of `autograd.grad` asks for; "x" where it is no plain name."""
    statement = source.statement_of(call.place.source)
    calls = [one for one in ast.walk(statement) if isinstance(one, ast.Call)] if statement is not None else []
    asked = [one.args[1] for one in calls if ast.unparse(one.func).endswith("grad") and len(one.args) > 1]
    return next((one.id for one in asked if isinstance(one, ast.Name)), "x")


def _with_grad(run: CellRun, switch: grad_modes.Switch | None) -> text_edit.Edits:
    """Edits that let a block or a function record what it computes; none where it writes to tensors in place."""
    if switch is None or switch.off is not True:
        return ()
    if any(inplace.written(one) for one in ast.walk(switch.outer) if isinstance(one, ast.stmt)):
        return ()
    if isinstance(switch.outer, ast.FunctionDef):
        found = restore_graph.without_decorator(run.cell, run.source, switch.outer, switch.text)
        return found[1] if found is not None else ()
    module, _, name = switch.text.removesuffix("()").rpartition(".")
    if not module or name not in ("no_grad", "inference_mode") or not isinstance(switch.outer, ast.With):
        return ()
    items = [item.context_expr for item in switch.outer.items if ast.unparse(item.context_expr) == switch.text]
    return text_edit.replace_node(run.cell, run.source, items[0], f"{module}.enable_grad()") if items else ()


def _made_within(origins: Origins, name: str, spot: Spot, depth: int, outer: ast.stmt | None) -> bool:
    """Whether what the root is made of was assigned where grad mode was off: in `outer`, or a deeper frame."""
    names = sorted(source.names_in(expression(name)))
    for at, one in (pair for each in names for pair in origins.values.made(each, spot)):
        if not isinstance(one, ast.stmt) or isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            continue
        inside = source.function_at(origins.values.runs[at.at].source, one.lineno)
        own = source.function_at(origins.values.runs[spot.at].source, spot.line)
        if at.at == spot.at and (
            (depth > 0 and own is not None and inside == own)
            or (depth == 0 and outer is not None and outer.lineno <= one.lineno <= (outer.end_lineno or 0))
        ):
            return True
    return False


def from_a_library(origins: Origins, root: ast.expr, spot: Spot) -> Cause | None:
    """A library's method of a module that trains, whose result led to the root: ``gpt.generate(x)`` runs without grad.

    No line cuts the graph behind it, and the root has none: so what the method returned had none.
    """
    for where_made, node, _ in origins.back(root, spot):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg)):
            continue
        statement = node if isinstance(node, ast.stmt) else origins.values.statement_of(where_made, node)
        value = source.given(node) if isinstance(node, ast.stmt) else node
        for call in (one for one in ast.walk(value) if isinstance(one, ast.Call)):
            module = origins.method_of_a_library(call, where_made)
            if module is None or statement is None:
                continue
            place = place_of(origins.values.runs[where_made.at], statement.lineno)
            shown = short(f"{ast.unparse(call.func)}(…)")
            text = (
                f"{shown} ({where(place)}) returned what has no graph, although parameters of `{module}` require grad: "
                "it computes without grad mode, or makes its result anew."
            )
            words = f"Compute what the loss needs by `{module}(…)` itself, whose result has a graph."
            return Cause(text, Fix("differentiable_op", words, False, line_of(place)), place)
    return None


def not_recorded(record: Record, origins: Origins, root: ast.expr, spot: Spot) -> Cause | None:
    """Code that is never recorded got no tensor that requires grad: then its results have no graph."""
    for where_made, node, _ in origins.back(root, spot):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg)):
            continue
        statement = node if isinstance(node, ast.stmt) else origins.values.statement_of(where_made, node)
        value = source.given(node) if isinstance(node, ast.stmt) else node
        calls = [n for n in ast.walk(value) if isinstance(n, ast.Call)]
        for call in calls:
            passed = origins.values.unrecorded(call, where_made)
            had = any_of(origins.passes_graph(one, where_made) for one in passed) if passed is not None else True
            if statement is None or had is True:
                continue
            place = place_of(origins.values.runs[where_made.at], statement.lineno)
            given = f"{short(ast.unparse(call))} ({where(place)})"
            tensors = [ast.unparse(one) for one in passed or () if _is_plain_tensor(origins, one, where_made)]
            known = (
                f"{names(tuple(tensors))} {'do' if len(tensors) > 1 else 'does'} not require grad." if tensors else ""
            )
            applied = applied_at(record, origins.values.runs[where_made.at], statement)
            if applied is not None:
                known += f" No parameter of {names(applied.objects)} is passed."
            return Cause(
                f"{given} runs code that is not recorded. It gets a graph only if a tensor among its arguments "
                f"requires grad, whatever the parameters used inside do. {known.strip()}".rstrip(),
                applied.fix if applied is not None else _for_unrecorded(origins, where_made, call, place, tensors),
                place,
            )
    return None


def _is_plain_tensor(origins: Origins, one: ast.expr, spot: Spot) -> bool:
    """Whether an argument was measured to be a tensor without grad; a parameter, at the function's calls."""
    value = origins.values.measured(ast.unparse(one), spot)
    if value is not None:
        return value.kind == "tensor" and not value.requires_grad
    passed = [(at, made) for at, made in origins.values.made(ast.unparse(one), spot) if isinstance(made, ast.expr)]
    seen = [origins.values.measured(ast.unparse(made), at) for at, made in passed]
    return bool(seen) and all(each is not None and each.kind == "tensor" and not each.requires_grad for each in seen)


def _for_unrecorded(origins: Origins, spot: Spot, call: ast.Call, place: Place, tensors: list[str]) -> Fix:
    run = origins.values.runs[spot.at]
    if any(k.arg == "use_reentrant" for k in call.keywords):
        edits = text_edit.replace_in(run.cell, run.source, call, "use_reentrant=True", "use_reentrant=False")
        words = f"Pass `use_reentrant=False` ({where(place)}): that records what the parameters inside need."
        return Fix("use_reentrant_false", words, False, line_of(place), edits=edits)
    which = names(tuple(tensors)) or "a tensor among its arguments"
    words = f"Let {which} require grad where it is made, or pass the parameters that should train as arguments."
    edits = _requiring_grad(origins, tensors[0], spot) if len(tensors) == 1 else ()
    return Fix("input_requires_grad", words, False, line_of(place), edits=edits)


def _requiring_grad(origins: Origins, name: str, spot: Spot) -> text_edit.Edits:
    """Edits of the only line that makes a tensor, after which it requires grad."""
    for _ in range(10):
        made = origins.values.made(name, spot)
        if len(made) != 1:
            return ()
        spot, node = made[0]
        value = origins.values.measured(name, spot._replace(past=1)) if isinstance(node, ast.stmt) else None
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = ast.unparse(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1:
            number = value is None or value.dtype.startswith(("float", "bfloat", "complex"))
            creates = source.last_name(ast.unparse(node.value.func)) in ("randn", "rand", "ones", "zeros", "full")
            run, new = origins.values.runs[spot.at], f"{ast.unparse(node.value)}.requires_grad_()"
            fits = number and creates and isinstance(node.targets[0], (ast.Name, ast.Attribute))
            return text_edit.replace_node(run.cell, run.source, node.value, new) if fits else ()
        else:
            return ()
    return ()
