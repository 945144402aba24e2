"""What `torch.utils.checkpoint` refuses: a recomputation that differs, and calls that a re-entrant one cannot serve."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.makers import CallText, calls
from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.grad_mode import training_mode
from graphwidget.diagnosis.no_graph.values import Values
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.dataflow.reached import reached
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.checkpoints import without_reentrance
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, Record, Scene, torch_messages

__all__ = [
    "not_reentrant",
    "of_inputs",
    "of_keywords",
    "of_recomputation",
    "of_unneeded",
    "of_unpacked_twice",
    "reentrant",
]

_NAMES = ("checkpoint", "checkpoint_sequential")
_NUMBERS = "preserve_rng_state"
_OPTIONS = ("use_reentrant", _NUMBERS)
_TRUE = ast.Constant(True)
_OTHERS = "lets the second run draw other numbers."
_FOREIGN = "the random numbers"
_UNIFORM = ("random.random()", "np.random.rand()", "np.random.random()", "numpy.random.rand()", "numpy.random.random()")
_DRAWN = "torch.rand(()).item()"
_RANDOM = re.compile(r"\b(?:np\.random|random|torch\.Generator)\b|\bgenerator=")
_MAKES = re.compile(r"\b(?:default_rng|RandomState|Random|SystemRandom|Generator)\(")  # an object that draws
_OF_TORCH = re.compile(
    r"\b(?:rand|randn|randint|randperm|bernoulli|multinomial)(?:_like)?\(|\.(?:normal|uniform|bernoulli)_\("
)


class _Suspect(NamedTuple):
    """A line of the checkpointed function that makes its second run differ from the first."""

    run: CellRun
    statement: ast.stmt
    why: str
    name: str


def of_recomputation(record: Record, call: BackwardCall) -> Finding:
    """``checkpoint(block, x, use_reentrant=False)`` where the second run of `block` saves other tensors."""
    message, scene = call.error or "", record.scenes.get(call.n, Scene())
    by_mode = _in_another_mode(record, call, scene)
    function = _function(record, scene.checkpointed)
    saved_at, saver = _saver(call, scene)
    suspects = list(_suspects(record, *function)) if function is not None and by_mode is None else []
    if function is not None and not suspects:
        suspects = [one for run, called in _called(record, function[1]) for one in _suspects(record, run, called)]
    unkept = [
        one for one in calls(record, *_NAMES) if ast.unparse(one.argument("preserve_rng_state") or _TRUE) == "False"
    ]
    if not suspects and unkept:
        cells = Cells.of(record).latest
        inner = reached(cells, syntax.words_in(function[1]), ("forward",)) if function is not None else ()
        functions = [*([function] if function is not None else ()), *inner]
        suspects = [one for run, made in functions for one in _drawing(run, made)] or [_asking(unkept[0])]
    if function is not None and not suspects and saved_at is not None:
        suspects = list(_branches(*function, saved_at))
    name = scene.checkpointed.rsplit(".", 1)[-1] if scene.checkpointed else ""
    shown = f"`{scene.checkpointed}`" if name and name != "<lambda>" else "The checkpointed function"
    made = place_of(function[0], function[1].lineno) if function is not None else _only_call(record)
    place = place_of(suspects[0].run, suspects[0].statement.lineno) if suspects else saved_at or made
    if by_mode is not None:
        cause, place, fix = by_mode.text, by_mode.place or place, by_mode.fix
    elif suspects:
        lines = " ".join(
            f"{short(_first_line(one.statement))} ({where(place_of(one.run, one.statement.lineno))}) {one.why}"
            for one in suspects[:2]
        )
        cause = f" {lines}"
        fix = _for_suspect(suspects[0], shown, unkept)
    else:
        cause = (
            " What usually does that: a container or a counter outside of the function that its first run changed. Or "
            "a branch that asks for one, random numbers that torch does not draw, an autocast that was left since."
        )
        fix = Fix("pure_function", f"Let {shown} do the same in each run, from its arguments alone.", False, at(place))
    by = by_mode.names if by_mode is not None else ()
    away = Fix("no_checkpoint", "Or call it without a checkpoint: then it runs once.", False, None, "More memory.")
    return Finding(
        "refused",
        "error",
        f"A checkpoint keeps no saved tensors: {short(call.place.source)} runs {shown} again to get them. Its second "
        f"run saved other tensors than the first: {_difference(message)}.{saver}{cause}",
        f"{shown} does not do the same when its checkpoint runs it again.",
        call.n,
        tensor=suspects[0].name if suspects else None,
        names=tuple(dict.fromkeys(filter(None, (name.strip("<>"), suspects[0].name if suspects else "", *by)))),
        made_at=place,
        fixes=(fix, away),
    )


def _for_suspect(suspect: _Suspect, shown: str, unkept: list[CallText]) -> Fix:
    spot = at(place_of(suspect.run, suspect.statement.lineno))
    if suspect.name == _NUMBERS:
        return _keeping_random(unkept)
    if suspect.name == _FOREIGN:
        drawn = [n for head in syntax.head_of(suspect.statement) for n in ast.walk(head) if ast.unparse(n) in _UNIFORM]
        edits = text_edit.replace_node(suspect.run.cell, suspect.run.source, drawn[0], _DRAWN) if drawn else ()
        how = "Draw them by torch's own generator, which a checkpoint sets back"
        words = f"{how}: `{_DRAWN}`." if drawn else f"{how}, or before the call, and hand them in."
        return Fix("pure_function", words, False, spot, edits=edits)
    words = f"Let {shown} compute from its arguments alone: keep `{suspect.name}` outside, or hand it in."
    return Fix("pure_function", words, False, spot)


def _first_line(statement: ast.stmt) -> str:
    return ast.unparse(statement).split("\n", 1)[0]


def _saver(call: BackwardCall, scene: Scene) -> tuple[Place | None, str]:
    """The line that saved in the forward what the second run did not save so, and a sentence that says so."""
    graph, what = call.graph, scene.recomputed
    index = next((at for at, seq in enumerate(graph.seq) if seq == what.seq), -1) if graph and what else -1
    if graph is None or what is None or what.seq < 0 or index < 0:
        return None, ""
    place, module = graph.place_of(index), graph.module_of(index)
    inside = "; ".join(filter(None, (where(place), f"in `{module.path}`" if module is not None else "")))
    spot = f" ({inside})" if inside else ""
    nth = _ordinal(what.position + 1)
    sentence = f" In the forward, `{graph.name_of(index)}`{spot} saved the {nth} as its `{what.slot}`."
    return (place if where(place) else None), sentence


def _in_another_mode(record: Record, call: BackwardCall, scene: Scene) -> Cause | None:
    """The module that computes by its mode, and was in training mode in the forward only; None: it is none such."""
    graph, what = call.graph, scene.recomputed
    index = next((at for at, seq in enumerate(graph.seq) if seq == what.seq), -1) if graph and what else -1
    module = graph.module_of(index) if graph is not None and index >= 0 else None
    if what is None or module is None or module.class_name not in what.evaluating:
        return None
    values = Values([run for _, run in sorted(record.runs.items())])
    off = training_mode.switched_off(values)
    # An input may also be another one: then the mode is not sure to be the difference.
    sure = what.slot not in ("input", "self")
    if not sure and not off:
        return None
    place = place_of(off[0].run, off[0].call.lineno) if len(off) == 1 else None
    by = f": {short(place.source)} ({where(place)})" if place is not None else ""
    shown = f"`{module.path}`" + (f", a `{module.class_name}`," if module.path != module.class_name else "")
    words = "Let the model be in the same mode until the backward has run: evaluate behind it, or put the mode back."
    advice = Fix("training_mode", words, False, at(place))
    fix = training_mode.put_back(values, off) or advice
    then = "was in training mode then, and is" if sure else "computes by its mode, and is"
    return Cause(f" {shown} {then} in evaluation mode now{by}.", fix, place, (module.path, f"{module.path}.training"))


def of_unpacked_twice(record: Record, call: BackwardCall) -> Finding:
    """``ctx.saved_tensors`` read twice in the backward of a Function that a checkpoint runs again."""
    found = []
    for run in Cells.of(record).latest:
        tree = syntax.parse(run.source)
        for function in ast.walk(tree) if tree is not None else ():
            if isinstance(function, ast.FunctionDef):
                nodes = [node for node in ast.walk(function) if isinstance(node, ast.Attribute)]
                reads = [node for node in nodes if node.attr == "saved_tensors"]
                if len(reads) > 1:
                    found.append((run, function, reads))
    place = place_of(found[0][0], found[0][2][1].lineno) if len(found) == 1 else None
    shown = f"`{found[0][1].name}`" if len(found) == 1 else "A backward"
    spot = f" ({where(place)})" if place is not None else ""
    return Finding(
        "refused",
        "error",
        f"A checkpoint hands out each tensor that it computed again once, and then lets go of it. {shown}{spot} asks "
        "for the same saved tensors once more.",
        "Saved tensors of a checkpoint were read twice.",
        call.n,
        made_at=place or call.failed_place,
        names=("saved_tensors",),
        fixes=(
            Fix(
                "read_saved_once",
                "Read `ctx.saved_tensors` once, and keep what it returns in a variable.",
                False,
                at(place),
            ),
        ),
    )


def _difference(message: str) -> str:
    """What torch's message says about the tensors that were saved."""
    counts = re.findall(r"Number of tensors saved during (?:forward|recomputation): (\d+)", message)
    if len(counts) == 2:
        return f"{counts[1]} tensors, before it were {counts[0]}"
    position = re.search(r"tensor at position (\d+)", message)
    shapes = re.findall(r"'shape': torch\.Size\((\[[\d, ]*\])\), 'dtype': torch\.(\w+)", message)
    if position is None or len(shapes) < 2:
        return "they have other shapes or types"
    (before, kind), (after, kind_after) = shapes[:2]
    changed = f"{before}, now {after}" if before != after else f"of {kind}, now of {kind_after}"
    nth = int(position[1]) + 1
    return f"the {_ordinal(nth)} was {changed}"


def _ordinal(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


# ------------------------------------------------------------------ the checkpointed function


def _function(record: Record, qualified: str) -> tuple[CellRun, ast.FunctionDef] | None:
    """The function of that name in the cells; for a class of modules its `forward`."""
    parts = [part for part in qualified.split(".") if part != "<locals>"]
    found: list[tuple[CellRun, ast.FunctionDef]] = []
    for run in Cells.of(record).latest:
        tree = syntax.parse(run.source)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.ClassDef) and parts and node.name in parts[-2:]:
                wanted = "forward" if node.name == parts[-1] else parts[-1]
                found += [(run, one) for one in node.body if isinstance(one, ast.FunctionDef) and one.name == wanted]
            elif isinstance(node, ast.FunctionDef) and parts and node.name == parts[-1]:
                found.append((run, node))
    unique = {id(made): (run, made) for run, made in found}
    return next(iter(unique.values())) if len(unique) == 1 else None


def _called(record: Record, function: ast.FunctionDef) -> Iterator[tuple[CellRun, ast.FunctionDef]]:
    """The functions of the program that a function calls by their names, where there is one of that name."""
    wanted = {syntax.last_name(name) for one in syntax.own_statements(function.body) for name in syntax.calls_in(one)}
    found: dict[str, list[tuple[CellRun, ast.FunctionDef]]] = {}
    for run in Cells.of(record).latest:
        for node in syntax.nodes_of(run.source):
            if isinstance(node, ast.FunctionDef) and node.name in wanted and node is not function:
                found.setdefault(node.name, []).append((run, node))
    yield from (made[0] for made in found.values() if len(made) == 1)


def _asks_another_generator(record: Record, statement: ast.stmt) -> bool:
    """Whether a statement, or its head, draws numbers that torch does not: by a module, or an object made of one."""
    heads = list(syntax.head_of(statement))
    owners = {name.partition(".")[0] for head in heads for name in syntax.calls_in(head) if "." in name}
    made = [one for run in record.runs.values() for owner in owners for one in syntax.assignments(run.source, owner)]
    return any(_RANDOM.search(ast.unparse(one)) for one in heads) or any(
        _MAKES.search(ast.unparse(one)) for one in made
    )


def _suspects(record: Record, run: CellRun, function: ast.FunctionDef) -> Iterator[_Suspect]:
    """Lines that change something outside of the function which it reads again, in the order of the text."""
    local = {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    everything = list(syntax.own_statements(function.body))
    statements = [one for one in everything if not hasattr(one, "body")]
    outer = {name for one in statements if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
    made = {name for one in statements for name in syntax.targets(one) if name.isidentifier()}
    read = {
        name
        for node in ast.walk(function)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        for name in [ast.unparse(node)]
    }
    for one in everything:
        for name in _changed_by(one) if one in statements else ():
            root = name.split(".", 1)[0].split("[", 1)[0]
            mine = root in made - outer or (root in local and root != "self")
            base = name.split("[", 1)[0]
            if mine or (root == name and isinstance(one, ast.AugAssign) and root not in outer):
                continue
            if sum(base == path or path.startswith(f"{base}.") for path in read):
                yield _Suspect(run, one, f"changes `{base}`, which outlives the first run.", base)
        if _asks_another_generator(record, one):
            yield _Suspect(run, one, "draws random numbers that no checkpoint restores.", _FOREIGN)


def _drawing(run: CellRun, function: ast.FunctionDef) -> Iterator[_Suspect]:
    """Lines that draw numbers by torch, under a checkpoint that was told not to draw the same ones again."""
    for one in syntax.own_statements(function.body):
        text = ast.unparse(one.test) if isinstance(one, (ast.If, ast.While)) else _first_line(one)
        if _OF_TORCH.search(text):
            yield _Suspect(run, one, f"draws random numbers, and `preserve_rng_state=False` {_OTHERS}", _NUMBERS)


def _asking(unkept: CallText) -> _Suspect:
    """The checkpoint itself, where no line is seen to draw: a dropout does, too."""
    statement = syntax.statements_at(unkept.run.source, unkept.call.lineno)[-1]
    return _Suspect(unkept.run, statement, _OTHERS, _NUMBERS)


def _keeping_random(unkept: list[CallText]) -> Fix:
    """The same checkpoints, which draw the same numbers in both runs."""
    edits: Edits = tuple(
        edit
        for one in unkept
        for value in [one.argument(_NUMBERS)]
        if value is not None
        for edit in text_edit.replace_node(one.run.cell, one.run.source, value, "True")
    )
    spot = at(place_of(unkept[0].run, unkept[0].call.lineno))
    text = "Leave out `preserve_rng_state=False`: a checkpoint then draws the same numbers again."
    return Fix("pure_function", text, False, spot, edits=edits)


def _branches(run: CellRun, function: ast.FunctionDef, saved_at: Place) -> Iterator[_Suspect]:
    """Conditions from outside of the function, on which it depends whether a line of it runs."""
    if saved_at.cell != run.cell or saved_at.line is None:
        return
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    own = {one.arg for one in arguments} - {"self"}
    own |= {name for one in syntax.own_statements(function.body) for name in syntax.targets(one)}
    for node in ast.walk(function):
        if isinstance(node, ast.If) and node.lineno < saved_at.line <= (node.end_lineno or 0):
            called = {name.split(".", 1)[0] for name in syntax.calls_in(node.test)}
            outer = sorted(syntax.names_in(node.test) - own - called)
            paths = sorted(one for one in syntax.paths_read(ast.Expr(node.test)) if one.startswith("self."))
            name = (paths or outer or [""])[0]
            if name:
                yield _Suspect(run, node, "decides whether that line runs, by what is outside of the function.", name)


_CHANGING = ("append", "extend", "insert", "add", "update", "pop", "popleft", "appendleft", "remove", "clear")


def _changed_by(statement: ast.stmt) -> Iterator[str]:
    """What a statement changes for the next run: ``cache.append(y)``, ``self.n += 1``."""
    if isinstance(statement, ast.AugAssign):
        yield ast.unparse(statement.target)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            read = {ast.unparse(node) for node in ast.walk(statement.value) if isinstance(node, ast.expr)}
            if isinstance(target, (ast.Attribute, ast.Subscript)) and (
                ast.unparse(target) in read or isinstance(target, ast.Subscript)
            ):
                yield ast.unparse(target)
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            if isinstance(node.func.value, (ast.Name, ast.Attribute)):
                yield ast.unparse(node.func.value)


def _only_call(record: Record) -> Place | None:
    """The only line that makes a checkpoint; None: there are several."""
    found = calls(record, *_NAMES)
    return place_of(found[0].run, found[0].call.lineno) if len(found) == 1 else None


# ------------------------------------------------------------------ re-entrant checkpoints


def of_inputs(record: Record, call: BackwardCall) -> Finding:
    """``torch.autograd.grad`` or ``backward(inputs=...)`` through a re-entrant checkpoint."""
    asked = "`torch.autograd.grad`" if call.api == "autograd.grad" else "`backward` with `inputs`"
    found = reentrant(record)
    place = place_of(found[0].run, found[0].call.lineno) if found else None
    there = f" ({where(place)})" if place is not None else ""
    text = (
        f"A re-entrant checkpoint{there} runs a whole backward of its own, which writes the `.grad` of all leaves that "
        f"it reaches. {asked[0].upper()}{asked[1:]} asks for some gradients only, so the checkpoint refuses."
    )
    whole = torch_messages.says(call.error, torch_messages.CHECKPOINT_INPUTS)
    headline = "A re-entrant checkpoint works only with a plain `backward()`." if whole else "A checkpoint refused."
    return Finding("refused", "error", text, headline, call.n, made_at=place, fixes=(not_reentrant(record, found),))


def of_unneeded(record: Record, call: BackwardCall) -> Finding:
    """A re-entrant checkpoint of which no output requires grad when it runs again."""
    found = reentrant(record)
    place = place_of(found[0].run, found[0].call.lineno) if found else None
    there = f" ({where(place)})" if place is not None else ""
    text = (
        f"A re-entrant checkpoint{there} has run its function again for the backward, and nothing that this returned "
        "requires grad: inside, the graph is cut, or all that it uses is frozen."
    )
    fix = Fix("find_the_cut", "See what cuts the graph inside, or call the function without a checkpoint.", False)
    return Finding(
        "refused", "error", text, "A checkpointed function has no graph.", call.n, made_at=place, fixes=(fix,)
    )


def of_keywords(failure: Failure) -> Finding | None:
    """``checkpoint(net, x, mask=m, use_reentrant=True)``; None: the line calls no checkpoint."""
    own = [one for one in calls(failure.record, *_NAMES) if _is_at(one, failure.place)]
    if len(own) != 1:
        return None
    keywords = [one.arg for one in own[0].call.keywords if one.arg not in (None, *_OPTIONS)]
    shown = ", ".join(f"`{one}`" for one in keywords) or "a keyword"
    return failure.finding(
        f"A re-entrant checkpoint takes no {shown}.",
        f"{short(failure.text)} passes {shown}. A re-entrant checkpoint hands its function positional arguments only: "
        "these are the inputs of the Function that it is made of.",
        not_reentrant(failure.record, own),
    )


def _is_at(one: CallText, place: Place) -> bool:
    return one.run.cell == place.cell and one.call.lineno <= (place.line or 0) <= (one.call.end_lineno or 0)


def reentrant(record: Record) -> list[CallText]:
    """The checkpoints that are, or may be, re-entrant."""
    return [
        one
        for one in calls(record, *_NAMES)
        if ast.unparse(one.argument("use_reentrant") or ast.Constant(True)) != "False"
    ]


def not_reentrant(record: Record, found: list[CallText]) -> Fix:
    """The same calls without re-entrance."""
    edits = without_reentrance(Cells.of(record).latest, [(one.run, one.call) for one in found])
    spot = at(place_of(found[0].run, found[0].call.lineno)) if found else None
    return Fix("use_reentrant_false", "Pass `use_reentrant=False`: it works with all calls.", False, spot, edits=edits)
