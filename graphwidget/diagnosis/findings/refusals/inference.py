"""Inference tensors used outside of inference mode: their names, and the code that makes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.source.pytorch.trained import trained_calls
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, Record, Scene, torch_messages

__all__ = ["of_call", "of_cell"]

_COPIED = re.compile(r'While copying the parameter named "([\w.]+)"')


def of_cell(failure: Failure) -> Finding:
    """A line that computes with an inference tensor, writes to it, or lets it require grad."""
    copied = _COPIED.findall(failure.run.error or "")
    scene = failure.run.scene
    loaded = tuple(path for part in copied for path in scene.inference if _is_of(path, part))
    found = loaded or tuple(copied) or _in_the_line(failure) or scene.inference
    headline, text, fixes, cause = _explanation(failure.record, failure.run.error or "", found, short(failure.text))
    tensor = found[0] if found else None
    return failure.finding(headline, text, *fixes, kind="refused", tensor=tensor, cause=cause)


def of_call(record: Record, call: BackwardCall) -> Finding:
    """A backward whose Python code (a checkpoint, a hook, a Function) computes with an inference tensor."""
    found = record.scenes.get(call.n, Scene()).inference
    headline, text, fixes, cause = _explanation(record, call.error or "", found, short(call.place.source))
    tensor = found[0] if found else None
    return Finding("refused", "error", text, headline, call.n, tensor=tensor, made_at=cause, fixes=fixes)


def _is_of(path: str, part: str) -> bool:
    """Whether a path ends in a part of a `state_dict`: ``net.body[0].weight`` in ``body.0.weight``."""
    plain = re.sub(r"\[(\d+)\]", r".\1", path)
    return plain == part or plain.endswith(f".{part}")


def _in_the_line(failure: Failure) -> tuple[str, ...]:
    """The inference tensors that the failing line names, itself or the module that they are in."""
    read = syntax.paths_read(failure.statement) if failure.statement is not None else set()
    read |= syntax.names_read(failure.statement) if failure.statement is not None else set()
    whole = failure.run.scene.inference
    return tuple(path for path in whole if any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in read))


def _explanation(
    record: Record, message: str, found: tuple[str, ...], line: str
) -> tuple[str, str, tuple[Fix, ...], Place | None]:
    blocks = list(_blocks(record))
    places = [place_of(run, node.lineno) for run, node in blocks]
    shown = names(found) or "a tensor"
    several = len(found) > 1
    saved = False
    if torch_messages.says(message, torch_messages.INFERENCE_WRITTEN):
        what = f"{line} writes to {shown}. Outside of inference mode that is refused: such tensors count no versions."
    elif torch_messages.says(message, torch_messages.INFERENCE_FLAG):
        what = f"{line} lets {shown} require grad. Outside of inference mode that is refused."
    else:
        saved = True
        what = f"{line} needs {shown} for a backward. Such tensors cannot be saved for it: they count no versions."
    if len(places) == 1:
        made = f" The program switches inference mode on in {where(places[0])}; its tensors stay inference tensors."
    elif places:
        there = ", ".join(where(place) for place in places[:4])
        made = f" The program switches inference mode on in {there}; their tensors stay inference tensors."
    else:
        made = " Tensors made in inference mode stay inference tensors."
    recorded = _recorded(record, *blocks[0]) if saved and len(blocks) == 1 else None
    edits = _no_grad_instead(record, blocks)
    spot = at(places[0]) if len(places) == 1 else None
    fix = Fix(
        "no_grad_or_item",
        "Use `torch.no_grad()` in place of inference mode there: the tensors are then ordinary ones."
        f"{' What runs there gives no gradient then either.' if saved else ''}"
        if places
        else "Make it under `torch.no_grad()`, or `.clone()` it outside of inference mode.",
        False,
        spot,
        "A little slower than inference mode." if places else "",
        edits=edits,
    )
    headline = (
        f"{shown} {'are inference tensors' if several else 'is an inference tensor'}."
        if found
        else "An inference tensor is used outside of inference mode."
    )
    fixes = (fix, recorded) if recorded is not None else (fix,)
    return headline, f"{what}{made}", fixes, places[0] if len(places) == 1 else None


def _blocks(record: Record) -> Iterator[tuple[CellRun, ast.expr]]:
    """The expressions that switch inference mode on: ``torch.inference_mode()``, or the bare name as a decorator."""
    for run in Cells.of(record).latest:
        tree = syntax.parse(run.source)
        called: set[int] = set()
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and syntax.last_name(ast.unparse(node.func)) == "inference_mode":
                called.add(id(node.func))
                if not any(isinstance(one, ast.Constant) and not one.value for one in _given(node)):
                    yield run, node
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for one in node.decorator_list:
                    bare = isinstance(one, (ast.Name, ast.Attribute)) and id(one) not in called
                    if bare and syntax.last_name(ast.unparse(one)) == "inference_mode":
                        yield run, one


def _recorded(record: Record, run: CellRun, switch: ast.expr) -> Fix | None:
    """Take the code out of inference mode, if an optimizer is to train what runs there; None: nothing shows that."""
    around = syntax.statements_at(run.source, switch.lineno)
    outer = next((one for one in reversed(around) if switch in grad_modes.expressions(one)), None)
    if not isinstance(outer, (ast.With, ast.FunctionDef)):
        return None
    trained = trained_calls(Cells.of(record).latest, run, outer.body)
    if not trained:
        return None
    place = place_of(run, switch.lineno)
    if isinstance(outer, ast.With):
        edits = restore_graph.out_of_with(run.cell, run.source, outer, outer.body[0])
    else:
        found = restore_graph.without_decorator(run.cell, run.source, outer, ast.unparse(switch))
        edits = found[1] if found is not None else ()
    whose = f"{names(tuple(f'{one}' for one in trained))} {'runs' if len(trained) == 1 else 'run'}"
    text = (
        f"Or take the code out of it ({where(place)}): {whose} there, with parameters that an optimizer has, and no "
        "gradient comes to them from there. If they should train by it, that is the fix."
    )
    return Fix("remove_no_grad", text, False, at(place), "It keeps the graph of what runs there.", edits=edits)


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def _no_grad_instead(record: Record, blocks: list[tuple[CellRun, ast.expr]]) -> Edits:
    """Edits that write `no_grad` for each `inference_mode`; none if one of them is not written with its module."""
    found: Edits = ()
    for run, node in blocks:
        function = node.func if isinstance(node, ast.Call) else node
        given = _given(node) if isinstance(node, ast.Call) else []
        if not isinstance(function, ast.Attribute) or any(not isinstance(one, ast.Constant) for one in given):
            return ()
        new = f"{ast.unparse(function.value)}.no_grad{'()' if isinstance(node, ast.Call) else ''}"
        found += text_edit.replace_node(run.cell, run.source, node, new)
    return found
