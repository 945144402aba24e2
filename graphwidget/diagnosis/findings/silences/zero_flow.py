"""Trained leaves whose gradients were measured to be exactly zero in all steps, and the node that made them so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences import flat
from graphwidget.diagnosis.findings.silences.scored_sample import drawn_between, fixed
from graphwidget.diagnosis.reuse.reuse import call_at
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, lasting_name, names, short, spoken, where
from graphwidget.model import BackwardCall, Finding, Fix, MeasuredZeros, Place, Record, Snapshot

__all__ = ["find"]

MOST_NAMED = 4
_RECTIFIERS = ("relu", "threshold")


class _Zeros(NamedTuple):
    """A measured node in the graph of the same call of this run."""

    call: BackwardCall
    graph: Snapshot
    node: int
    leaves: tuple[str, ...]
    measured: MeasuredZeros

    @property
    def place(self) -> Place | None:
        return self.graph.place_of(self.node)

    @property
    def operation(self) -> str:
        """``log_softmax`` of ``LogSoftmaxBackward0``."""
        name = self.graph.name_of(self.node).rstrip("0123456789").removesuffix("Backward")
        return "".join(f"_{one.lower()}" if one.isupper() else one for one in name).lstrip("_")


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line with such a node."""
    by_line: dict[object, list[_Zeros]] = {}
    for one in record.lineage.zeros if record.lineage is not None else ():
        found = _in_graph(record, one)
        if found is not None and not flat.is_flat(found.graph, found.node):
            by_line.setdefault((where(found.place), found.operation, one.why), []).append(found)
    for several in by_line.values():
        yield _of(record, several)


def _in_graph(record: Record, measured: MeasuredZeros) -> _Zeros | None:
    """The same node in this run; None: the graphs of the two runs differ, or it is not remembered."""
    call = call_at(record.calls, measured.call)
    if call is not None and call.graph is None and call.same_as is not None:
        call = call_at(record.calls, call.same_as)
    if call is None or call.graph is None or call.result != "ok":
        return None
    graph = call.graph
    order = list(dict.fromkeys(root.node for root in call.roots if root.node >= 0))
    seen = set(order)
    for node in order:
        for after in graph.next(node):
            if after not in seen:
                seen.add(after)
                order.append(after)
    if max(measured.node, *measured.leaves) >= len(order):
        return None
    node, leaves = order[measured.node], [graph.leaves.get(order[one]) for one in measured.leaves]
    if graph.name_of(node) != measured.name or None in leaves:
        return None
    shown = dict.fromkeys(spoken(lasting_name(record, one.paths)) for one in leaves if one is not None and one.paths)
    by_weight = sorted(shown, key=lambda path: (not path.endswith("weight"), path))
    return _Zeros(call, graph, node, tuple(by_weight), measured) if by_weight else None


def _of(record: Record, several: list[_Zeros]) -> Finding:
    first = several[0]
    leaves = tuple(dict.fromkeys(path for one in several for path in one.leaves))
    shown, alone, place = names(leaves, MOST_NAMED), len(leaves) == 1, first.place
    line = f"{short(place.source)} ({where(place)})" if place is not None and where(place) else "The forward"
    drawn = drawn_between(record, first.graph, first.node) if first.measured.why == "cancel" else None
    moves = (
        f" {drawn.shown} drew a sample that is computed from the same values: it moves with them, so what it is scored "
        "by does not depend on them."
        if drawn is not None
        else ""
    )
    text = (
        f"{line} computes `{first.operation}`: {_why(first)}.{moves} Measured in {first.measured.steps} steps, all "
        f"that there were: a gradient arrives there, and {shown} {'gets' if alone else 'get'} zeros only. So no step "
        f"changes {'it' if alone else 'them'} by the loss."
    )
    places = [(one.graph, one.node) for one in several]
    found = flat.only_zeros(first.call, places, first.operation, leaves, text, _fix(record, first))
    if drawn is None:
        return found
    fixes = tuple(fixed(record, drawn, place))
    return replace(found, cause=drawn.place, cut_at=drawn.place, fixes=fixes or found.fixes)


def _why(zeros: _Zeros) -> str:
    """Why nothing but zeros gets through, as the end of a sentence."""
    why, operation = zeros.measured.why, zeros.operation
    if why == "one":
        result = "0" if operation == "log_softmax" else "1"
        return f"its dimension {zeros.measured.dim} has size 1, so the result is {result} whatever the input is"
    if why == "outside" and operation in _RECTIFIERS:
        return "its input was never above zero where a gradient arrived, and there the result does not change"
    if why in ("outside", "above"):
        beyond = "above its limit" if why == "above" else "outside of its range"
        return f"its input was {beyond} wherever a gradient arrived, and there the result does not change"
    if why == "masked" and operation == "mul":
        return "the other factor was zero everywhere"
    if why == "masked":
        return "it chose other values wherever a gradient arrived"
    if why == "zeros":
        return "both factors were zero, and each gets the gradient times the other"
    if why == "cancel":
        return "the gradients that meet behind it have a sum of exactly zero"
    return "in all calls that were watched, it passed nothing but zeros on"


def _fix(record: Record, zeros: _Zeros) -> Fix:
    why, operation, place = zeros.measured.why, zeros.operation, zeros.place
    line = f" ({where(place)})" if where(place) else ""
    if why == "one":
        return _without_softmax(record, zeros, line)
    if why == "outside" and operation in _RECTIFIERS:
        text = (
            f"Look at what comes before `{operation}`{line}: its values are all below zero, by a bias or by their "
            "scale. Or use an activation with a derivative there, such as `leaky_relu`."
        )
    elif why == "above":
        text = (
            f"Compute the loss without `{operation}`{line}: limit only what is shown, or the gradients (by "
            "`clip_grad_norm_`), or keep its input below the limit."
        )
    elif why == "outside":
        text = f"Keep the input of `{operation}`{line} inside its range, or use a smooth function."
    elif why == "masked":
        text = f"Look at what {'the other factor' if operation == 'mul' else 'the condition'} is made of{line}."
    elif why == "zeros":
        text = f"Begin with other values than zero in one of the two factors{line}."
    elif why == "cancel":
        text = f"Look at the formula{line}: as it is, the loss does not depend on this value."
    else:
        text = f"Use an operation in place of `{operation}`{line} that has a derivative for these values."
    return Fix("differentiable_op", text, False, at(place))


def _without_softmax(record: Record, zeros: _Zeros, line: str) -> Fix:
    outputs, dim, place = zeros.graph.outputs_of(zeros.node), zeros.measured.dim, zeros.place
    shape = outputs[0].shape if outputs else ()
    classes = shape[-1] if shape else 1
    if classes > 1:
        text = f"If it should be over the {classes} values of the last dimension, say `dim=-1`{line}."
        return Fix("differentiable_op", text, False, at(place))
    if zeros.operation == "log_softmax" or len(shape) > 2 or dim != len(shape) - 1:
        text = (
            f"Let what comes before{line} have more than one value in dimension {dim}. For one score, "
            "use `torch.sigmoid`, or `F.binary_cross_entropy_with_logits` for the loss."
        )
        return Fix("differentiable_op", text, False, at(place))
    text = f"For one score, use `sigmoid` in place of `softmax`{line}; a softmax needs one output for each class."
    return Fix("sigmoid", text, False, at(place), edits=_sigmoid(record, zeros))


def _sigmoid(record: Record, zeros: _Zeros) -> Edits:
    """The call of softmax in the line, or the only module of that kind that the program makes."""
    cells, spot, module = Cells.of(record), at(zeros.place), zeros.graph.module_of(zeros.node)
    if module is not None and module.class_name == "Softmax":
        made = [(run, call) for run in cells.latest for call in _calls(source.parse(run.source), "Softmax")]
        if len(made) != 1:
            return ()
        run, call = made[0]
        return text_edit.replace_node(
            run.cell, run.source, call, f"{ast.unparse(call.func)[: -len('Softmax')]}Sigmoid()"
        )
    statement = cells.statement(spot) if spot is not None else None
    called = _calls(statement, "softmax")
    if spot is None or len(called) != 1 or not isinstance(called[0].func, ast.Attribute):
        return ()
    owner, args = called[0].func.value, called[0].args
    value = args[0] if args and ast.unparse(owner) in ("torch", "F", "nn.functional", "torch.nn.functional") else owner
    return text_edit.replace_node(spot[0], cells.text(spot[0]), called[0], f"torch.sigmoid({ast.unparse(value)})")


def _calls(tree: ast.AST | None, name: str) -> list[ast.Call]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    return [one for one in found if ast.unparse(one.func).rsplit(".", 1)[-1] == name]
