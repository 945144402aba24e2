"""What DistributedDataParallel refuses: parameters that reported no gradient, or reported twice."""

from __future__ import annotations

import re

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.makers import CallText, calls, line_that_made
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, Scene

__all__ = ["of_ready_twice", "of_unreported"]

_CLASSES = ("DistributedDataParallel", "DDP")
_MOST_NAMED = 6


def of_unreported(failure: Failure) -> Finding:
    """``model(x)`` after a backward that gave some parameters no gradient."""
    message = failure.run.error or ""
    listed = re.search(r"did not receive grad for rank \d+:((?: \d+)+)", message)
    numbers = [int(one) for one in listed[1].split()] if listed is not None else []
    parameters = failure.run.scene.parameters
    found = tuple(parameters[one] for one in numbers if one < len(parameters))
    shown = names(found, _MOST_NAMED) or "Some parameters"
    made = next((place for place in (line_that_made(failure.record, path) for path in found) if place), None)
    modules = dict.fromkeys(_module_of(path) for path in found)
    one = next(iter(modules)) if len(modules) == 1 else ""
    origin = f" `{one}` is made in {where(made)}." if one and made is not None else ""
    edit = _with(failure.record, "find_unused_parameters=True")
    return failure.finding(
        f"{shown} got no gradient from the backward before.",
        f"DistributedDataParallel waits until all parameters have reported a gradient. {shown} "
        f"{'were' if len(found) != 1 else 'was'} not used for the loss of the pass before, so it is still waiting."
        f"{origin}",
        failure.fix(
            "find_unused_parameters",
            "Pass `find_unused_parameters=True` to DistributedDataParallel: it then looks in each pass for what took "
            "no part.",
            edit,
            price="Each forward goes through the graph once more.",
        ),
        failure.fix(
            "use_every_parameter",
            f"Or use {f'`{one}`' if one else 'them'} in the loss, or do not make {'it' if one else 'them'}: what is "
            "never used is never trained.",
        ),
        tensor=found[0] if found else None,
        cause=made,
    )


def _module_of(path: str) -> str:
    """``net.fc`` for ``net.fc.weight``."""
    return path.rsplit(".", 1)[0]


def of_ready_twice(record: Record, call: BackwardCall) -> Finding:
    """A backward that delivered a parameter's gradient a second time."""
    scene = record.scenes.get(call.n, Scene())
    number = re.search(r"Parameter at index (\d+)", call.error or "")
    index = int(number[1]) if number is not None else -1
    name = scene.parameters[index] if 0 <= index < len(scene.parameters) else None

    named = re.search(r"with name ([\w.]+) has been", call.error or "")
    name = name or (named[1] if named is not None else None)
    shown = f"`{name}`" if name else "A parameter"
    reentrant = [one for one in calls(record, "checkpoint", "checkpoint_sequential") if _is_true(one)]
    place: Place | None = None
    if reentrant:
        run, found = reentrant[0].run, reentrant[0].call
        place = place_of(run, found.lineno)
        text = (
            f"The checkpoint in {where(place)} is re-entrant: it runs a backward of its own inside of this one, and "
            "the same parameters are reached by more than one of these."
        )
        edits = tuple(
            edit
            for one in reentrant
            for edit in text_edit.with_argument(one.run.cell, one.run.source, one.call, "use_reentrant=False")
        )
        fix = Fix("use_reentrant_false", "Pass `use_reentrant=False`.", False, at(place), edits=edits)
    else:
        text = "It was used by more than one forward of this DistributedDataParallel, or outside of its forward."
        static = _with(record, "static_graph=True")
        spot = (static[0].cell, static[0].start[0]) if static and static[0].cell is not None else None
        sentence = (
            "Compute all that the loss needs in one call of the model. If each pass builds the same graph, "
            "`static_graph=True` lets DistributedDataParallel count how often a parameter reports."
        )
        fix = Fix("static_graph", sentence, False, spot, edits=static)
    return Finding(
        "refused",
        "error",
        f"DistributedDataParallel takes one gradient for each parameter and pass. {shown} reported a second one in "
        f"{short(call.place.source)}. {text}",
        f"{shown} reported its gradient twice.",
        call.n,
        tensor=name,
        made_at=place,
        fixes=(fix,),
    )


def _is_true(one: CallText) -> bool:
    value = one.argument("use_reentrant")
    return getattr(value, "value", None) is True


def _with(record: Record, keyword: str) -> Edits:
    """Edits that pass a keyword argument to the only DistributedDataParallel; none if there are several."""
    found = calls(record, *_CLASSES)
    if len(found) != 1:
        return ()
    run, call = found[0]
    return text_edit.with_argument(run.cell, run.source, call, keyword)
