"""Why no gradient came to a backward hook, and what lets one come."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.measured import cut_at, place_at, statement_of
from graphwidget.diagnosis.no_graph.restoring import cause_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Fix, MeasuredCut, MeasuredHook, Place, PlainInput, Record

__all__ = ["Why", "name_of", "of"]

_NO_MODULES = frozenset({"torch", "F", "nn", "print", "len", "list", "tuple"})
_POSTFIX = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


class Why(NamedTuple):
    """Sentences, the line to look at (None: the one that registered the hook), and whether that cuts the graph."""

    text: str
    fixes: tuple[Fix, ...]
    place: Place | None = None
    cut: Place | None = None


def of(record: Record, one: MeasuredHook) -> Why:
    """Why a hook was never called."""
    if one.why == "frozen":
        return _frozen(record, one)
    if one.why == "late":
        return _late(record, one)
    if one.why == "uncalled":
        return _uncalled(record, one)
    if one.why == "packed":
        return _packed(record, one)
    return _cut(record, one)


def name_of(record: Record, one: MeasuredHook) -> str:
    """What the hook's module or tensor is called: in the model that ran, or in the line that registered it."""
    named = bool(one.path) and not one.path[0].isdigit()
    found = statement_of(record, place_at(record, one.lines)) if not named else None
    calls = [node for node in ast.walk(found[1]) if isinstance(node, ast.Attribute)] if found is not None else []
    owners = [ast.unparse(node.value) for node in calls if node.attr == one.by]
    return one.path if named else (owners[0] if len(owners) == 1 and re.fullmatch(r"[\w.\[\]]+", owners[0]) else "")


def _name(record: Record, one: MeasuredHook) -> str:
    known = name_of(record, one)
    return f"`{known}`" if known else "the tensor" if one.why == "tensor" else "the module"


def _frozen(record: Record, one: MeasuredHook) -> Why:
    frozen, called = place_at(record, one.frozen), place_at(record, one.called)
    off = f": {short(frozen.source)} ({where(frozen)}) switched its parameters off" if frozen is not None else ""
    text = (
        f"Nothing that {_name(record, one)} computes with requires grad{off}, and no input that requires grad comes to "
        "it. So what it returns has no graph, and backward does not come to it."
    )
    advice = "Let the input of the model require grad (`x.requires_grad_()`): then gradients pass frozen modules, too."
    edits = _requiring(record, called, one.plain) if called is not None and one.plain is not None else ()
    let = Fix("input_requires_grad", advice, False, at(called), edits=edits, choice=True)
    line = f" in {where(frozen)}" if frozen is not None else ""
    words = f"{'Or do' if one.plain is not None else 'Do'} not freeze {_name(record, one)}{line}."
    thaw = Fix("unfreeze", words, False, at(frozen))
    return Why(text, (let, thaw) if one.plain is not None else (thaw,), frozen)


def _requiring(record: Record, called: Place, plain: PlainInput) -> Edits:
    """``model(x.requires_grad_())``, if the line shows which call it is."""
    found = statement_of(record, called)
    if found is None or hasattr(found[1], "body"):
        return ()
    run, statement = found
    given = [
        value
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and syntax.words_in(node.func).isdisjoint(_NO_MODULES)
        and (value := _argument(node, plain)) is not None
    ]
    inner = [one for one in given if not any(other in ast.walk(one) for other in given if other is not one)]
    if len(inner) != 1:
        return ()
    if isinstance(inner[0], _POSTFIX):
        return text_edit.insert_behind(run.cell, run.source, inner[0], ".requires_grad_()")
    return text_edit.replace_node(run.cell, run.source, inner[0], f"({ast.unparse(inner[0])}).requires_grad_()")


def _argument(call: ast.Call, plain: PlainInput) -> ast.expr | None:
    if plain.position is None:
        return next((one.value for one in call.keywords if one.arg == plain.name), None)
    if len(call.args) != plain.positional or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    found = call.args[plain.position]
    return None if isinstance(found, (ast.Constant, ast.UnaryOp)) else found


def _late(record: Record, one: MeasuredHook) -> Why:
    called, place = place_at(record, one.called), place_at(record, one.lines)
    line = f" {short(called.source)} ({where(called)}) had run it before." if called is not None else ""
    text = f"A hook waits for the gradient of what {_name(record, one)} computes after it is registered.{line}"
    edits = _sooner(record, called, place)
    advice = "Register it before the forward."
    return Why(text, (Fix("register_sooner", advice, False, at(place), edits=edits),))


def _sooner(record: Record, called: Place | None, place: Place | None) -> Edits:
    """Move the line that registers before the one that runs the module, in one block, if its names are there."""
    before, after = statement_of(record, called), statement_of(record, place)
    if before is None or after is None or before[0] is not after[0] or before[1].lineno >= after[1].lineno:
        return ()
    run, first, last = before[0], before[1], after[1]
    block = syntax.block_of(run.source, first)
    if block is not syntax.block_of(run.source, last) or hasattr(last, "body"):
        return ()
    between = [one for one in block if first.lineno <= one.lineno < last.lineno]
    made = {name for one in between for name in (*syntax.targets(one), *_defined(one))}
    if made & (syntax.paths_read(last) | syntax.names_in(last)):
        return ()
    added = text_edit.insert_before(run.cell, run.source, first, text_edit.statement_lines(run.source, last))
    return (*added, *text_edit.remove(run.cell, run.source, last))


def _defined(statement: ast.stmt) -> tuple[str, ...]:
    return (statement.name,) if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) else ()


def _uncalled(record: Record, one: MeasuredHook) -> Why:
    text = (
        f"{_name(record, one)} itself was never called: a hook is called for a module that is called, and not where "
        "another one computes with its weights (as `nn.MultiheadAttention` does with its `out_proj`), or calls "
        "`forward`."
    )
    advice = "Register it on the module that is called, or call `register_hook` on a tensor."
    return Why(f"{text[0].upper()}{text[1:]}", (Fix("hook_on_the_tensor", advice, at=at(place_at(record, one.lines))),))


def _packed(record: Record, one: MeasuredHook) -> Why:
    text = (
        f"What {_name(record, one)} returns is an object that holds its tensors. PyTorch attaches a module's hook to "
        "tensors that the module returns itself, or in a tuple."
    )
    advice = "Register it on a module that returns a tensor, or call `register_hook` on the tensor that is returned."
    return Why(text, (Fix("hook_on_the_tensor", advice, False, at(place_at(record, one.lines))),))


def _cut(record: Record, one: MeasuredHook) -> Why:
    """Grad mode was off, the module's own code cuts the graph, or something behind it does."""
    found = _cause(record, one)
    who = _name(record, one)
    who = f"{who[0].upper()}{who[1:]}"
    text = {
        "grad_off": f"{who} ran while grad mode was off, so what it returned has no graph.",
        "cut": f"{who} computes with something that requires grad, and what it returns has no graph.",
        "tensor": f"Nothing that was differentiated leads to {_name(record, one)}.",
    }.get(one.why, f"{who} returned something with a graph, and nothing that was differentiated leads to it.")
    if found is not None:
        fix = replace(found.fix, choice=True)  # it may have been cut off on purpose
        return Why(f"{text} {found.text}", (fix,), found.place, found.place)
    called = place_at(record, one.called)
    advice = "Compute the loss from it, and look for what cuts it off: `detach`, `.data`, `torch.no_grad()`, `.item()`."
    return Why(text, (Fix("find_the_cut", advice, False, at(called)),), called)


def _cause(record: Record, one: MeasuredHook) -> Cause | None:
    """The only line that cut off something from which a root of a call was computed; None: there is none, or several.

    Where the module itself returned no graph, a line that was running inside of it.
    """
    cuts = [cut for cut in record.lineage.cuts if cut.used] if record.lineage is not None else []
    if one.why in ("grad_off", "cut"):
        inside = [cut for cut in cuts if one.called[:1] and one.called[0] in cut.lines]
        cuts = [cut for cut in inside if one.why == "cut" or not cut.grad_mode]
    found = {at(cut.place): cut for measured in cuts if (cut := _caused(record, measured)) is not None}
    return next(iter(found.values())) if len(found) == 1 else None


def _caused(record: Record, measured: MeasuredCut) -> Cause | None:
    cut = cut_at(record, measured)
    return cause_of(record, cut) if cut is not None else None
