"""What a Function's methods pass to each other through `ctx`, and what the engine passes to them and to hooks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.refusals.makers import CallText, calls
from graphwidget.diagnosis.findings.refusals.user_code.operands import Misfit
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText
from graphwidget.diagnosis.wording import names, place_of, where
from graphwidget.model import CellRun, Place, Record

__all__ = ["REGISTERING", "Miscalled", "calls_of", "miscalled", "of_context"]

# What registers code that a backward runs, and what that code is called with.
REGISTERING = {
    "register_hook": ("the gradient",),
    "register_full_backward_hook": ("the module", "`grad_input`", "`grad_output`"),
    "register_full_backward_pre_hook": ("the module", "`grad_output`"),
    "register_backward_hook": ("the module", "`grad_input`", "`grad_output`"),
    "register_post_accumulate_grad_hook": ("the parameter",),
    "register_prehook": ("a tuple of gradients",),
    "register_multi_grad_hook": ("the gradients",),
    "saved_tensors_hooks": ("what was saved",),
}
_COUNTED = re.compile(r"^(?P<name>[\w.<>]+)\(\) (?:takes .*? but (?P<given>\d+) w|missing \d+ required positional)")


def of_context(function: FunctionText, statement: ast.stmt, message: str) -> Misfit | None:
    """Why a method of a Function did not find what another one was to leave in `ctx`."""
    unset = re.search(r"'\w+Backward' object has no attribute '(\w+)'", message)
    if unset is not None:
        return _unset(function, unset[1])
    if "values to unpack" in message and "saved_tensors" in ast.unparse(statement):
        return _unpacked(function, statement)
    unknown = re.search(r"name '(\w+)' is not defined|local variable '(\w+)'", message)
    if unknown is not None:
        return _local(function, unknown[1] or unknown[2])
    return None


def _unset(function: FunctionText, name: str) -> Misfit:
    forward = function.method("setup_context", "forward")
    who = f"`{function.name}.{forward.name}`" if forward is not None else f"`{function.name}`"
    return Misfit(
        f"`ctx` passes on what {who} puts there, and that never sets `ctx.{name}`.",
        f"Set it there: `ctx.{name} = {name}`; a tensor that is an input or output by `ctx.save_for_backward`.",
    )


def _unpacked(function: FunctionText, statement: ast.stmt) -> Misfit | None:
    """``x, w = ctx.saved_tensors`` where `forward` saved another number."""
    saving = list(calls_of(function, "save_for_backward"))
    wanted = list(source.targets(statement))
    if len(saving) != 1 or any(isinstance(one, ast.Starred) for one in saving[0].args):
        return None
    saved = tuple(ast.unparse(one) for one in saving[0].args)
    place = place_of(function.run, saving[0].lineno)
    return Misfit(
        f"`ctx.saved_tensors` has what was saved, in that order: {names(saved, most=6) or 'nothing'} "
        f"({where(place)}). This line takes {len(wanted)}.",
        f"Save and take the same: `{', '.join(wanted)}` here, `{', '.join(saved)}` there.",
    )


def _local(function: FunctionText, name: str) -> Misfit | None:
    """A variable of `forward` that another method reads."""
    forward = function.method("forward")
    if forward is None or name not in {
        *(function.inputs or ()),
        *(each for one in source.own_statements(forward.body) for each in source.targets(one)),
    }:
        return None
    return Misfit(
        f"`{name}` is a variable of `{function.name}.forward`, and each method has its own: only `ctx` is passed on.",
        f"Let `forward` save it: `ctx.save_for_backward({name})`, or `ctx.{name} = {name}` for what is no tensor.",
    )


def calls_of(function: FunctionText, name: str) -> Iterator[ast.Call]:
    """The calls of a method of `ctx` in the text of a Function."""
    for node in ast.walk(function.made):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node


# ------------------------------------------------------------------ numbers of arguments


class Miscalled(NamedTuple):
    """A function that the engine could not call: it takes another number of arguments."""

    name: str
    place: Place | None
    registered: Place | None
    wants: str
    edits: Edits = ()


def miscalled(record: Record, message: str, made: list[FunctionText]) -> Miscalled | None:
    """Which code of the user's own the engine could not call, and with what it is called; None: no such error."""
    found = _COUNTED.match(message.strip())
    if found is None:
        return None
    name = found["name"]
    last = name.rsplit(".", 1)[-1]
    if last in ("backward", "vjp"):
        one = next((one for one in made if one.backward is not None and f"{one.name}.{last}" in name), None)
        if one is None or one.backward is None:
            return None
        defining = place_of(one.run, one.backward.lineno)
        return Miscalled(f"{one.name}.{last}", defining, None, _gradients(found), _with_more(one, found))
    registering = [one for one in calls(record, *REGISTERING) if _registers(one, last)]
    if len(registering) != 1:
        return None
    one_call = registering[0]
    given = REGISTERING[source.last_name(ast.unparse(one_call.call.func))]
    defined = _definition(record, last)
    place = place_of(defined[0], defined[1].lineno) if defined is not None else None
    registered = place_of(one_call.run, one_call.call.lineno)
    return Miscalled(last, place or registered, registered, _listed(given))


def _with_more(function: FunctionText, found: re.Match[str]) -> Edits:
    """``backward(ctx, grad_dist, grad_index)`` for one that takes the gradient of the first output only."""
    taken, results = function.backward.args if function.backward is not None else None, function.results
    if taken is None or not taken.args or not found["given"] or taken.vararg or taken.kwonlyargs or taken.defaults:
        return ()
    lacking = int(found["given"]) - len(taken.args)
    outputs = results[0].value.elts if len(results) == 1 and isinstance(results[0].value, ast.Tuple) else []
    if not 0 < lacking <= len(outputs):
        return ()
    known = {node.id for node in ast.walk(function.made) if isinstance(node, ast.Name)}
    names = [f"grad_{ast.unparse(one)}" for one in outputs[-lacking:]]
    if not all(one.isidentifier() and one not in known for one in names):
        return ()
    more = "".join(f", {one}" for one in names)
    return text_edit.insert_behind(function.run.cell, function.run.source, taken.args[-1], more)


def _gradients(found: re.Match[str]) -> str:
    given = int(found["given"]) - 1 if found["given"] else 0
    more = f": here {given}" if given else ""
    return f"`ctx`, and one gradient for each output of `forward`{more}"


def _listed(given: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(given[:-1]), given[-1]]))


def _registers(one: CallText, last: str) -> bool:
    given = [*one.call.args, *(keyword.value for keyword in one.call.keywords)]
    if last == "<lambda>":
        return any(isinstance(value, ast.Lambda) for value in given)
    return any(source.last_name(ast.unparse(value)) == last for value in given if not isinstance(value, ast.Lambda))


def _definition(record: Record, name: str) -> tuple[CellRun, ast.FunctionDef] | None:
    found = [
        (run, node)
        for run in Cells.of(record).latest
        for node in source.nodes_of(run.source)
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    return found[0] if len(found) == 1 else None
