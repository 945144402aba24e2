"""The line that left a root without a graph, where the program has run once more to measure that.

The text of a program shows what its author could have meant by each line, and the measurement which of them it was. So
a cause that the text gives stays if the measurement confirms its line; else the measured one takes its place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from graphwidget.diagnosis.fixes.rerun.once_only import each_time, keeps
from graphwidget.diagnosis.no_graph.applied import APPLY, applied_around
from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.cutting import CUTTING, NOT_DIFFERENTIABLE, cuts_in
from graphwidget.diagnosis.no_graph.leaves.frozen_by_name import frozen_by_name
from graphwidget.diagnosis.no_graph.leaves.unused_held import beside_the_optimizer
from graphwidget.diagnosis.no_graph.origins import Cut, Kept
from graphwidget.diagnosis.no_graph.twins import called_at
from graphwidget.diagnosis.no_graph.values import Values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import UNNAMED, place_of, root_name, short, where
from graphwidget.diagnosis.wording import at as line_of
from graphwidget.model import (
    BackwardCall,
    CellRun,
    Fix,
    FrozenModule,
    Lineage,
    MeasuredCut,
    Place,
    Record,
    Scene,
    TextLine,
)

__all__ = [
    "CHECKPOINT",
    "MOST",
    "TAKING",
    "causes",
    "cut_at",
    "is_measured",
    "is_measured_at",
    "place_at",
    "run_of",
    "statement_of",
    "statements",
]

# Operations of which the second result has no graph, and other names of operations that a line may use.
_PAIRS = ("max", "min", "sort", "topk", "median", "kthvalue", "mode")
_NUMBERS = ("item", "tolist", "numpy")
CHECKPOINT = "checkpoint"  # as `Cut.by`: a re-entrant one, of which no input required grad
TAKING = ("item", "tolist", "__float__", "__int__", "__index__", "__bool__", "numpy", "__array__")
_WITHOUT_A_CUT = ("unfreeze", "find_the_cut")  # what is advised where no line left the graph
MOST = 3  # causes, of which each may be tried
_ALSO = {"__float__": "item", "__int__": "item", "as_tensor": "tensor"}


def causes(record: Record, call: BackwardCall, found: Cause, cause_of: Callable[[Cut], Cause]) -> list[Cause]:
    """The cause that was found in the text, if the measurement confirms it, else the measured one; then the others.

    The others are further lines that left the graph behind what should be trained: trials show which of them it was.

    Parameters
    ----------
    cause_of
        Makes the cause of a cut.
    """
    lineage = record.lineage
    if lineage is None or lineage.call != call.n:
        return [found]
    if lineage.idle is not None and found.fix.id in _WITHOUT_A_CUT:
        froze = next(iter(statements(record, lineage.idle.lines)), None)
        root = root_name(call)
        return [beside_the_optimizer(record, lineage.idle, root if root == UNNAMED else f"`{root}`", froze)]
    meant = [cut for cut in lineage.behind_root if cut.wanted]
    if not meant and lineage.frozen:
        confirmed = _is_at(record, found, lineage.frozen[0].lines)
        return [found if confirmed else _thaw(record, call, lineage.frozen[0])]
    meant = meant or list(lineage.behind_root)
    if not meant and found.place is None:
        meant = _only_numbers(lineage)
    of_mode = found.fix.id not in CUTTING.values()  # a block is around what a line calls, too
    confirmed = any(
        _is_at(record, found, cut.lines, switched=not cut.grad_mode) for cut in meant if cut.grad_mode or of_mode
    )
    cuts = [one for cut in meant if (one := cut_at(record, replace(cut, used=True))) is not None]
    kept = [one for one in cuts if one.kept is not None]
    if kept:
        return [cause_of(kept[0])]
    confirmed = confirmed and all(cut.switched is None for cut in cuts)  # the line that switched it off says more
    made = [*{_key(cut): cause_of(cut._replace(alone=len(cuts) == 1)) for cut in cuts}.values()]
    if confirmed:
        made = [found, *(one for one in made if one.fix.edits and one.fix.edits != found.fix.edits)]
    return (made or [found])[:MOST]


def _key(cut: Cut) -> tuple[int, int, str]:
    return cut.run.run, (cut.around or cut.statement).lineno, cut.by


def _only_numbers(lineage: Lineage) -> list[MeasuredCut]:
    """The only line that turned wanted values into numbers, for a root made of numbers: ``sum += v.item()``."""
    found = [cut for cut in lineage.cuts if cut.wanted and _ALSO.get(cut.by, cut.by) in _NUMBERS]
    return found if len({cut.lines[:1] for cut in found}) == 1 else []


def is_measured(record: Record, cut: Cut) -> bool:
    """Whether values with a graph were measured to leave it at the statement of a cut."""
    return is_measured_at(record, cut.run, cut.statement)


def is_measured_at(record: Record, run: CellRun, statement: ast.stmt) -> bool:
    """Whether an operation at a statement was measured to be given values with a graph, and to return none."""
    cuts = record.lineage.cuts if record.lineage is not None else ()
    found = (next(statements(record, one.lines), None) for one in cuts if one.by not in TAKING)
    return any(one is not None and one[0] is run and one[1].lineno == statement.lineno for one in found)


def statement_of(record: Record, place: Place | None) -> tuple[CellRun, ast.stmt] | None:
    """The innermost statement at a place, in its last run."""
    if place is None or place.line is None:
        return None
    return next(statements(record, (TextLine(place.cell, place.file, place.line),)), None)


def place_at(record: Record, lines: tuple[TextLine, ...]) -> Place | None:
    """The innermost of some lines; None: its text is not known."""
    found = ((run_of(record, line), line.line) for line in lines)
    return next((place_of(run, line) for run, line in found if run is not None), None)


def cut_at(record: Record, measured: MeasuredCut) -> Cut | None:
    """The statement of a measured cut; None if it is not known what switched grad mode off there."""
    values = Values([run for _, run in sorted(record.runs.items())])
    found = list(statements(record, measured.lines))
    if (twin := called_at(measured, found)) is not None:
        return Cut(*twin, None, True, True, frozenset())
    if (checkpointed := _in_checkpoint(record, measured)) is not None:
        return checkpointed
    if measured.grad_mode:
        by = "indices" if measured.by in _PAIRS else _ALSO.get(measured.by, measured.by)
        return Cut(*found[0], by, None, True, True, frozenset()) if found else None
    cut = _switched_off(record, measured, found) or next(
        (
            Cut(run, statement, switch.text, switch.outer, True, True, frozenset())
            for run, statement in found
            if (switch := values.switch_around(list(values.runs).index(run), statement)) is not None
            and switch.off is not False
        ),
        _in_a_library(found),
    )
    in_forward, applied = applied_around(record, found)
    if in_forward and (cut is None or cut.around is None or applied_around(record, [(cut.run, cut.around)])[0]):
        return Cut(*applied[:2], APPLY, None, True, True, frozenset()) if applied is not None else None
    return cut._replace(kept=_kept(found)) if cut is not None and measured.used else cut


def _in_checkpoint(record: Record, measured: MeasuredCut) -> Cut | None:
    """The line that called a re-entrant checkpoint, where that is what switched grad mode off."""
    switching = statements(record, measured.switched) if measured.checkpointed else iter(())
    run, statement = next(switching, (None, None))
    if run is None or statement is None or hasattr(statement, "body"):
        return None
    return Cut(run, statement, CHECKPOINT, None, True, True, frozenset())


def _kept(found: list[tuple[CellRun, ast.stmt]]) -> Kept | None:
    """The statement that keeps what was made without grad mode, so that a call in grad mode gets it, too."""
    for run, statement in found:
        if keeps(run.source, statement):
            around = source.statements_at(run.source, statement.lineno)
            plan = each_time(place_of(run, statement.lineno), run.source, around)
            if plan is not None:
                return Kept(run, statement, plan)
    return None


def _in_a_library(found: list[tuple[CellRun, ast.stmt]]) -> Cut | None:
    """The cut where a library switched grad mode off inside a call that is known to do so: ``q.sample()``."""
    for run, statement in found[:1]:
        called = [by for by, _ in cuts_in(source.given(statement)) if by in NOT_DIFFERENTIABLE]
        if called:
            return Cut(run, statement, called[0], None, True, True, frozenset())
    return None


def _switched_off(record: Record, measured: MeasuredCut, found: list[tuple[CellRun, ast.stmt]]) -> Cut | None:
    """The cut where what ran when grad mode was switched off is a block around it, or a statement that does so."""
    for run, outer in statements(record, measured.switched):
        here = [statement for other, statement in found if other is run]
        if isinstance(outer, ast.With):
            inside = [one for one in here if outer.lineno < one.lineno <= (outer.end_lineno or 0)]
            if inside:
                off = [one for one in grad_modes.expressions(outer) if grad_modes.switches_off(one) is not False]
                by = ast.unparse((off or grad_modes.expressions(outer))[0])
                return Cut(run, inside[0], by, outer, True, True, frozenset())
        elif isinstance(outer, ast.Expr) and grad_modes.switches_off(outer.value) is not False:
            function = source.function_at(run.source, outer.lineno)
            near = [(run, one) for one in here if source.function_at(run.source, one.lineno) == function]
            there, statement = (near or _beside_the_call(record, found) or [(run, outer)])[0]
            return Cut(there, statement, ast.unparse(outer.value), outer, True, True, frozenset(), run)
    return None


def _beside_the_call(record: Record, found: list[tuple[CellRun, ast.stmt]]) -> list[tuple[CellRun, ast.stmt]]:
    """Of some statements those in the function that made the call that raised."""
    failed = next((call.place for call in reversed(record.calls) if call.result == "raised"), None)
    if failed is None:
        return []
    there = [one for one in found if one[0].cell == failed.cell]
    functions = [(one, source.function_at(one[0].source, one[1].lineno)) for one in there]
    return [one for one, inside in functions if inside == source.function_at(one[0].source, failed.line or 0)]


def statements(record: Record, lines: tuple[TextLine, ...]) -> Iterator[tuple[CellRun, ast.stmt]]:
    """The innermost statements at some lines."""
    for line in lines:
        run = run_of(record, line)
        statements = source.statements_at(run.source, line.line) if run is not None else []
        if run is not None and statements:
            yield run, statements[-1]


def run_of(record: Record, line: TextLine) -> CellRun | None:
    """The last run of a line's cell, or its file."""
    runs = [run for _, run in sorted(record.runs.items()) if run.file == line.file]
    fitting = runs if line.file is not None else [run for run in runs if run.cell == line.cell]
    return fitting[-1] if fitting else None


def _is_at(record: Record, cause: Cause, lines: tuple[TextLine, ...], *, switched: bool = False) -> bool:
    """Whether a cause is at one of some lines, or at the block around one. `switched`: or at a decorated function."""
    place = cause.place
    if place is None or place.line is None:
        return False
    for line in lines:
        run = run_of(record, line)
        if run is not None and (run.file, run.cell) == (place.file, place.cell):
            around = source.statements_at(run.source, line.line)
            begun = {one.lineno for one in around if not isinstance(one, (ast.FunctionDef, ast.ClassDef))}
            functions = [one for one in around if isinstance(one, ast.FunctionDef) and one.decorator_list]
            decorated = {one.lineno for one in functions}
            decorated |= {each.lineno for one in functions for each in one.decorator_list}
            if place.line in begun | {line.line} | (decorated if switched else set()):
                return True
    return False


def _thaw(record: Record, call: BackwardCall, module: FrozenModule) -> Cause:
    """The cause that a module which the optimizer of the call trains is frozen, and nothing has thawed it since."""
    froze = next(iter(statements(record, module.lines)), None)
    name, spot = module.name, None
    edits: text_edit.Edits = ()
    text = f"No parameter of `{name}` that should train requires grad."
    place = None
    if froze is not None:
        by_name = frozen_by_name(record.scenes.get(call.n, Scene()).frozen, *froze)
        if by_name is not None:
            return by_name
        place = place_of(froze[0], froze[1].lineno)
        text = (
            f"{short(ast.unparse(froze[1]))} ({where(place)}) froze `{name}`, and its parameters did not require grad "
            "when the loss was computed from it."
        )
    used = _first_use(record, call, name)
    sentence = f"Let `{name}` require grad again before its loss is computed."
    if used is not None:
        run, statement = used
        spot = line_of(place_of(run, statement.lineno))
        line = f"{name}.requires_grad_(True)"
        edits = text_edit.insert_before(run.cell, run.source, statement, [line])
        sentence = f"Let `{name}` require grad again: `{line}` before {where(place_of(run, statement.lineno))}."
    return Cause(text, Fix("unfreeze", sentence, False, spot, edits=edits), place)


def _first_use(record: Record, call: BackwardCall, name: str) -> tuple[CellRun, ast.stmt] | None:
    """The last statement before the call, in its block, that calls the module."""
    run = next((one for _, one in sorted(record.runs.items(), reverse=True) if one.cell == call.place.cell), None)
    if run is None or call.place.line is None:
        return None
    around = source.statements_at(run.source, call.place.line)
    for block in reversed(list(_blocks(run.source, around))):
        before = [one for one in block if one.lineno <= call.place.line and name in source.calls_in(one)]
        if before:
            return run, before[-1]
    return None


def _blocks(text: str, around: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The blocks of statements around a line, the outermost first."""
    tree = source.parse(text)
    if tree is not None:
        yield tree.body
    for one in around:
        yield from (block for block in source.blocks_of(one) if any(inner in block for inner in around))
